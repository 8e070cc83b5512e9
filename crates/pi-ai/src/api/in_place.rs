//! Reading an object into a value that stands already.
//!
//! A derived reader builds each object and moves it up through every object around it. For an event that comes a
//! hundred thousand times in an answer, and is some hundred bytes large, that is a third of the cost of reading it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::decode::{Scratch, Text, ignore_other_types, mended};
use crate::error::ProviderError;

/// An object that is read member by member.
pub(super) trait Members<'de>: Default {
    /// Reads the value of a member, or skips it.
    ///
    /// # Errors
    /// When the value is no JSON.
    fn read<A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error>;
}

/// Where an object is read into. What is no object leaves the default there; the result tells which it was.
pub(super) struct Into<'t, T>(pub(super) &'t mut T);

/// Whether there was an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Found {
    Object,
    #[default]
    Other,
}

/// As [`decode::parse`](super::decode::parse), into a value that stands already.
///
/// # Errors
/// [`ErrorKind::Protocol`](crate::ErrorKind::Protocol) when it is no JSON even then.
pub(super) fn parse_into<'a, T: Members<'a>>(
    data: &'a str,
    scratch: &'a mut Scratch,
    into: &mut T,
) -> Result<Found, ProviderError> {
    let mut reader = serde_json::Deserializer::from_str(data);
    let read = Into(into).deserialize(&mut reader).and_then(|found| reader.end().map(|()| found));
    match read {
        Ok(found) => Ok(found),
        Err(error) => mended(data, &error, scratch, |value| Into(into).deserialize(value)),
    }
}

impl<'de, T: Members<'de>> DeserializeSeed<'de> for Into<'_, T> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        *self.0 = T::default();
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Members<'de>> Visitor<'de> for Into<'_, T> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Found, A::Error> {
        while let Some(name) = object.next_key::<Text<'de>>()? {
            self.0.read(name.as_str().unwrap_or_default(), &mut object)?;
        }
        Ok(Found::Object)
    }

    ignore_other_types!(@scalars);
    ignore_other_types!(@numbers);
    ignore_other_types!(@text);
    ignore_other_types!(@list);
}
