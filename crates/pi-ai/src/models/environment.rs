//! Where variables come from.

use std::{collections::HashMap, fmt, sync::Arc};

/// The environment that keys and settings are read from.
///
/// It is handed in, so that nothing deep inside reads the process's: a program passes
/// [`Environment::of_process`], a test a map. A variable that is set to nothing counts as unset.
///
/// ```
/// use pi_ai::models::Environment;
/// let environment = Environment::from([("GROQ_API_KEY", "gsk-1"), ("EMPTY", "")]);
/// assert_eq!(environment.get("GROQ_API_KEY").as_deref(), Some("gsk-1"));
/// assert_eq!(environment.get("EMPTY"), None);
/// ```
#[derive(Clone)]
pub struct Environment(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Environment {
    /// An environment that asks a closure.
    pub fn new(variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(variable))
    }

    /// No variable is set.
    pub fn empty() -> Self {
        Self::new(|_| None)
    }

    /// The process's environment, as it is when a variable is asked for. Values that are not UTF-8 count as unset.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    /// The value of a variable; `None` when it is unset or empty.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// This environment with some variables on top. Empty values do not hide those below.
    #[must_use]
    pub fn with(&self, variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        let top: HashMap<String, String> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        if top.is_empty() {
            return self.clone();
        }
        let below = self.clone();
        Self::new(move |name| top.get(name).filter(|value| !value.is_empty()).cloned().or_else(|| below.get(name)))
    }
}

impl<N: Into<String>, V: Into<String>, const COUNT: usize> From<[(N, V); COUNT]> for Environment {
    fn from(variables: [(N, V); COUNT]) -> Self {
        Self::empty().with(variables)
    }
}

impl From<HashMap<String, String>> for Environment {
    fn from(variables: HashMap<String, String>) -> Self {
        Self::empty().with(variables)
    }
}

impl fmt::Debug for Environment {
    /// Without values: some of them are keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(…)")
    }
}
