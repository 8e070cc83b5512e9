//! The ids of entries and sessions.

use std::{borrow::Borrow, fmt, sync::Arc};

use pi_ai::{IdSource, SessionId};
use serde::{Deserialize, Serialize};

/// The id of an entry, unique within its session.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// Wraps a string.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A new id: the first eight digits of a random UUID, or all of it when a hundred of those are taken.
    pub(crate) fn generate(ids: &dyn IdSource, is_taken: impl Fn(&str) -> bool) -> Self {
        for _ in 0..100 {
            let uuid = ids.uuid_v4();
            let id = uuid.get(..8).unwrap_or(&uuid);
            if !is_taken(id) {
                return Self::new(id);
            }
        }
        Self::new(ids.uuid_v4())
    }
}

/// An id that no entry has.
impl Default for EntryId {
    fn default() -> Self {
        Self::new("")
    }
}

impl Borrow<str> for EntryId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for EntryId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for EntryId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl PartialEq<str> for EntryId {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for EntryId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Not a session id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is not a session id: it may have letters, digits, `.`, `_` and `-`, and begins and ends with a letter \
     or a digit"
)]
pub struct InvalidSessionId {
    /// What was given.
    pub found: String,
}

/// Checks that a text can be a session id: it becomes a part of a file name.
///
/// # Errors
/// When it is empty, has other characters than letters, digits, `.`, `_` and `-` (all of ASCII), or does not begin
/// and end with a letter or a digit.
///
/// ```
/// use pi_coding_agent::session::session_id;
/// assert!(session_id("release-1.2").is_ok());
/// assert!(session_id("../escape").is_err());
/// ```
pub fn session_id(text: &str) -> Result<SessionId, InvalidSessionId> {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let valid = ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
    if valid { Ok(SessionId::from(text)) } else { Err(InvalidSessionId { found: text.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct SameTail(AtomicU32);
    impl IdSource for SameTail {
        fn uuid_v7(&self) -> String {
            unreachable!("entries have random ids")
        }
        fn uuid_v4(&self) -> String {
            let tail = self.0.fetch_add(1, Ordering::Relaxed);
            format!("0badcafe-0000-4000-8000-{tail:012}")
        }
    }

    #[test]
    fn a_taken_id_is_not_given_again() {
        let ids = SameTail(AtomicU32::new(0));
        assert_eq!(EntryId::generate(&ids, |_| false), "0badcafe");
        assert_eq!(EntryId::generate(&ids, |id| id == "0badcafe"), "0badcafe-0000-4000-8000-000000000101");
    }
}
