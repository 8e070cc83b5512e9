//! Points in time, and the clock they come from.

use std::{fmt, sync::Arc, time::SystemTime};

use serde::{Deserialize, Deserializer, Serialize, de};

/// A point in time in milliseconds since the Unix epoch, as messages carry it.
///
/// ```
/// use pi_ai::Timestamp;
/// let at: Timestamp = serde_json::from_str("1700000000000")?;
/// assert_eq!(at, Timestamp::from_millis(1_700_000_000_000));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    /// Any JSON number: other writers store fractions of a millisecond. Negative ones count as the epoch.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Millis;
        impl de::Visitor<'_> for Millis {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time in milliseconds since 1970")
            }
            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Timestamp, E> {
                Ok(Timestamp(millis))
            }
            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Timestamp, E> {
                Ok(Timestamp(millis.try_into().unwrap_or(0)))
            }
            fn visit_f64<E: de::Error>(self, millis: f64) -> Result<Timestamp, E> {
                Ok(Timestamp(millis as u64))
            }
        }
        deserializer.deserialize_any(Millis)
    }
}

/// Tells the time. Injected wherever time is read, so that tests are deterministic.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;
}

impl<T: Clock + ?Sized> Clock for Arc<T> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

/// The operating system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still: deterministic, for tests.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_time_with_a_fraction_or_a_sign_is_read() {
        let read = |text| serde_json::from_str::<Timestamp>(text).unwrap();
        assert_eq!(read("12.7"), Timestamp::from_millis(12));
        assert_eq!(read("-3"), Timestamp::from_millis(0));
        assert!(serde_json::from_str::<Timestamp>("\"soon\"").is_err());
    }
}
