//! Values of configuration files that may stand for a variable or a command's output.

use std::{collections::HashMap, fmt, process::Stdio, sync::Mutex, time::Duration};

use tokio::{io::AsyncReadExt, process::Command};

use super::environment::Environment;

/// How long a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// The most that a command's output may have: keys are short, and a command that never stops printing must not fill
/// the memory.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// A key or header value as it is written in a configuration file.
///
/// | written | stands for |
/// |---|---|
/// | `sk-123` | itself |
/// | `$NAME`, `${NAME}`, `Bearer ${NAME}` | the variable's value, within the text around it |
/// | `!command with arguments` | what the shell command prints, trimmed |
/// | `$$`, `$!` | a `$`, a `!` |
///
/// A template with any unset variable has no value; neither has a command that fails, prints nothing or takes longer
/// than ten seconds. Nothing of it prints: it may be a key.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueTemplate(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    Command(String),
    Text(Vec<Part>),
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

/// A template has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unset {
    /// Variables that it needs are not set.
    #[error("{} not set in the environment", listed(.names))]
    Variables {
        /// Their names.
        names: Vec<String>,
    },
    /// Its command gave nothing.
    #[error("its command {reason}")]
    Command {
        /// What went wrong. Neither the command nor its output is told: both may hold secrets.
        reason: String,
    },
    /// It is empty.
    #[error("it is empty")]
    Empty,
}

fn listed(names: &[String]) -> String {
    match names {
        [name] => format!("the variable {name} is"),
        names => format!("the variables {} are", names.join(", ")),
    }
}

impl ValueTemplate {
    /// Reads a value as it is written.
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix('!') {
            Some(command) => Self(Form::Command(command.to_owned())),
            None => Self(Form::Text(parts(text))),
        }
    }

    /// A value that stands for itself, whatever characters it has.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(Form::Text(vec![Part::Literal(text.into())]))
    }

    /// Whether it runs a command.
    pub fn is_command(&self) -> bool {
        matches!(self.0, Form::Command(_))
    }

    /// The variables that it needs, each once.
    pub fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        if let Form::Text(parts) = &self.0 {
            for part in parts {
                if let Part::Variable(name) = part
                    && !names.contains(&name.as_str())
                {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The variables that it needs and that are not set.
    pub fn missing(&self, environment: &Environment) -> Vec<String> {
        let unset = self.variables().into_iter().filter(|name| environment.get(name).is_none());
        unset.map(str::to_owned).collect()
    }

    /// Its value.
    ///
    /// # Errors
    /// When a variable is not set or a command gives nothing.
    pub async fn resolve(&self, environment: &Environment) -> Result<String, Unset> {
        match &self.0 {
            Form::Command(command) => run(command, environment).await,
            Form::Text(parts) => {
                let names = self.missing(environment);
                if !names.is_empty() {
                    return Err(Unset::Variables { names });
                }
                let value: String = parts
                    .iter()
                    .map(|part| match part {
                        Part::Literal(text) => text.clone(),
                        Part::Variable(name) => environment.get(name).unwrap_or_default(),
                    })
                    .collect();
                if value.is_empty() { Err(Unset::Empty) } else { Ok(value) }
            }
        }
    }
}

impl fmt::Debug for ValueTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Command(_) => f.write_str("ValueTemplate(!…)"),
            Form::Text(_) => f.debug_tuple("ValueTemplate").field(&self.variables()).finish(),
        }
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        literal.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.chars().next().filter(|c| matches!(c, '$' | '!')) {
            literal.push(escaped);
            rest = &after[1..];
            continue;
        }
        let (name, length) = match after.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        if is_name(name) {
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = &after[length..];
        } else {
            // Not a variable: the text stands for itself.
            literal.push('$');
            literal.push_str(&after[..length]);
            rest = &after[length..];
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() || parts.is_empty() {
        parts.push(Part::Literal(literal));
    }
    parts
}

fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Runs a command in the system's shell. Whoever stops waiting ends it.
async fn run(command: &str, environment: &Environment) -> Result<String, Unset> {
    let failed = |reason: String| Unset::Command { reason };
    let (shell, flag) = if cfg!(windows) {
        (environment.get("COMSPEC").unwrap_or_else(|| "cmd.exe".into()), "/C")
    } else {
        ("/bin/sh".into(), "-c")
    };
    let mut child = Command::new(shell)
        .arg(flag)
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("could not be started: {error}")))?;
    let mut output = Vec::new();
    let finished = async {
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await?;
        }
        child.wait().await
    };
    let status = tokio::time::timeout(COMMAND_TIMEOUT, finished)
        .await
        .map_err(|_| failed(format!("did not end within {} s", COMMAND_TIMEOUT.as_secs())))?
        .map_err(|error| failed(format!("could not be read: {error}")))?;
    if !status.success() {
        return Err(failed(format!("failed ({status})")));
    }
    let text = String::from_utf8(output).map_err(|_| failed("did not print UTF-8 text".into()))?;
    match text.trim() {
        "" => Err(failed("printed nothing".into())),
        value => Ok(value.to_owned()),
    }
}

/// What commands have printed, for values that are read once per process.
#[derive(Default)]
pub(super) struct CommandCache(Mutex<HashMap<String, String>>);

impl CommandCache {
    /// As [`ValueTemplate::resolve`], but each command that gives a value runs once.
    pub(super) async fn resolve(&self, template: &ValueTemplate, environment: &Environment) -> Result<String, Unset> {
        let Form::Command(command) = &template.0 else { return template.resolve(environment).await };
        if let Some(known) = self.lock().get(command) {
            return Ok(known.clone());
        }
        let value = template.resolve(environment).await?;
        self.lock().insert(command.clone(), value.clone());
        Ok(value)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(text: &str) -> Result<String, Unset> {
        let environment = Environment::from([("KEY", "k-1"), ("_X2", "x"), ("EMPTY", "")]);
        ValueTemplate::parse(text).resolve(&environment).await
    }

    #[tokio::test]
    async fn variables_and_escapes_are_replaced_within_their_text() {
        for (written, value) in [
            ("sk-plain", "sk-plain"),
            ("$KEY", "k-1"),
            ("${KEY}", "k-1"),
            ("Bearer ${KEY}!", "Bearer k-1!"),
            ("$KEY/$_X2-$KEY", "k-1/x-k-1"),
            ("$$KEY", "$KEY"),
            ("$!command", "!command"),
            ("cost: $5 and $", "cost: $5 and $"),
            ("${not a name}", "${not a name}"),
            ("${not a $KEY}", "${not a $KEY}"),
            ("${KEY", "${KEY"),
            ("a!b", "a!b"),
            ("$KEYé", "k-1é"),
        ] {
            assert_eq!(resolve(written).await.as_deref(), Ok(value), "{written}");
        }
    }

    #[tokio::test]
    async fn one_unset_variable_leaves_the_whole_value_unset() {
        let names =
            |names: &[&str]| Err(Unset::Variables { names: names.iter().map(|name| name.to_string()).collect() });
        assert_eq!(resolve("$KEY-$NOPE-${EMPTY}-$NOPE").await, names(&["NOPE", "EMPTY"]));
        assert_eq!(resolve("").await, Err(Unset::Empty));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_gives_what_it_prints() {
        assert_eq!(resolve("!printf '  k-2\\n\\n'").await.as_deref(), Ok("k-2"));
        assert!(matches!(resolve("!printf k; exit 3").await, Err(Unset::Command { reason }) if reason.contains('3')));
        assert!(matches!(resolve("!true").await, Err(Unset::Command { reason }) if reason == "printed nothing"));
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_command_that_hangs_is_given_up_after_ten_seconds() {
        assert!(matches!(resolve("!sleep 60").await, Err(Unset::Command { reason }) if reason.contains("10 s")));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_cached_command_runs_once() {
        let folder = std::env::temp_dir().join(format!("pi-ai-template-{}", std::process::id()));
        let template = ValueTemplate::parse(&format!("!echo run >> {0} && cat {0}", folder.display()));
        let cache = CommandCache::default();
        let (first, second) = (
            cache.resolve(&template, &Environment::empty()).await,
            cache.resolve(&template, &Environment::empty()).await,
        );
        std::fs::remove_file(folder).unwrap();
        assert_eq!((first.as_deref(), second.as_deref()), (Ok("run"), Ok("run")));
    }

    #[test]
    fn a_template_does_not_print() {
        assert!(!format!("{:?}", ValueTemplate::parse("sk-secret")).contains("secret"));
        assert!(!format!("{:?}", ValueTemplate::parse("!cat secret")).contains("secret"));
    }
}
