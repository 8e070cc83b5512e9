//! Identifiers as types, and where new ones come from.
//!
//! Each kind of id is its own type, so that a session id cannot be passed where a tool-call id is wanted. All of them
//! are short strings behind an [`Arc`]: cloning one copies a pointer.

use std::{borrow::Borrow, cell::RefCell, fmt, ops::Deref, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a string.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self(Arc::from(""))
            }
        }

        impl Deref for $name {
            type Target = str;
            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Arc::<str>::deserialize(deserializer).map(Self)
            }
        }
    };
}

string_id! {
    /// A wire protocol, for example `anthropic-messages`. Open: an application may add its own.
    ApiId
}
string_id! {
    /// A provider, for example `openrouter`.
    ProviderId
}
string_id! {
    /// A model's name at its provider, for example `gpt-5`.
    ModelId
}
string_id! {
    /// A tool call, as minted by the model's provider.
    ToolCallId
}
string_id! {
    /// A conversation, as providers use it for caching and routing.
    SessionId
}

/// Makes new ids. Injected wherever ids are made, so that tests are deterministic.
pub trait IdSource: Send + Sync + 'static {
    /// A UUID of version 7 (sortable by time), in its usual lower-case form with hyphens.
    fn uuid_v7(&self) -> String;

    /// A random UUID of version 4.
    fn uuid_v4(&self) -> String;
}

impl<T: IdSource + ?Sized> IdSource for Arc<T> {
    fn uuid_v7(&self) -> String {
        (**self).uuid_v7()
    }

    fn uuid_v4(&self) -> String {
        (**self).uuid_v4()
    }
}

/// Ids from the operating system's randomness and clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn uuid_v7(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }

    fn uuid_v4(&self) -> String {
        uuid::Builder::from_random_bytes(random_bytes()).into_uuid().to_string()
    }
}

/// Sixteen bytes of the operating system's randomness, which is asked for thirty-two times as many at once: a call
/// costs as much as all else that an entry of a session needs.
fn random_bytes() -> [u8; 16] {
    const POOL: usize = 512;
    thread_local! {
        static UNUSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    UNUSED.with_borrow_mut(|unused| {
        if unused.is_empty() {
            let mut pool = [0; POOL];
            match getrandom::fill(&mut pool) {
                Ok(()) => unused.extend_from_slice(&pool),
                Err(_) => return uuid::Uuid::new_v4().into_bytes(),
            }
        }
        let rest = unused.len() - 16;
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&unused[rest..]);
        unused.truncate(rest);
        bytes
    })
}

/// Ids that count up from one: deterministic, for tests.
#[derive(Debug, Default)]
pub struct CountingIds(std::sync::atomic::AtomicU64);

impl CountingIds {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
    }
}

impl IdSource for CountingIds {
    fn uuid_v7(&self) -> String {
        format!("00000000-0000-7000-8000-{:012x}", self.next())
    }

    fn uuid_v4(&self) -> String {
        // The count leads, because entry ids are the first eight digits.
        format!("{:08x}-0000-4000-8000-000000000000", self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_ids_differ_in_their_first_eight_digits() {
        let ids = CountingIds::default();
        let (a, b) = (ids.uuid_v4(), ids.uuid_v4());
        assert_ne!(a[..8], b[..8]);
        assert_eq!(a.len(), 36);
        assert_eq!(ids.uuid_v7().len(), 36);
    }
}
