//! Reading a tagged object without buffering it.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

/// A type whose JSON object carries a tag that says which shape the rest has.
pub trait Tagged<'de>: Sized {
    /// The tag's key: `role` or `type`.
    const TAG: &'static str;
    /// What a reader expected, for error messages.
    const EXPECTING: &'static str;

    /// Reads the rest of the object, now that the tag is known.
    ///
    /// # Errors
    /// When the rest does not fit the tag.
    fn from_tag<D: Deserializer<'de>>(tag: &str, rest: D) -> Result<Self, D::Error>;
}

/// Reads a [`Tagged`] object. When the tag comes first, as every writer puts it, the rest is handed on as a stream;
/// otherwise the object is buffered. (Serde's derived internally tagged enums always buffer.)
///
/// # Errors
/// When the input is no object, has no tag, or [`Tagged::from_tag`] refuses it.
pub fn deserialize_tagged<'de, T: Tagged<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct TagFirst<T>(PhantomData<T>);
    impl<'de, T: Tagged<'de>> Visitor<'de> for TagFirst<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTING)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
            let mut before = Map::new();
            while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                if key != T::TAG {
                    before.insert(key.into_owned(), map.next_value()?);
                    continue;
                }
                let tag: Cow<'de, str> = map.next_value()?;
                if before.is_empty() {
                    return T::from_tag(&tag, MapAccessDeserializer::new(map));
                }
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    before.insert(key, value);
                }
                return T::from_tag(&tag, Value::Object(before)).map_err(de::Error::custom);
            }
            Err(de::Error::missing_field(T::TAG))
        }
    }
    deserializer.deserialize_map(TagFirst(PhantomData))
}
