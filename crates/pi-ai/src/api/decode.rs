//! Reading the JSON of response events: fast when it is as it should be, and never put off by what it need not be.
//!
//! The types here read a field of any JSON type, and take one of another type than their own for absent: a provider's
//! odd field must not cost the answer around it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use super::{
    Frame, errors,
    in_place::{self, Found, Members},
};
use crate::{
    ProviderId,
    error::{ErrorKind, ProviderError},
    json::{repair_strings, without_unpaired_escapes},
};

/// Reads an event's data. Text that breaks JSON's rules in the ways that servers do is repaired and read again; a key
/// that stands twice counts as it stood last.
///
/// # Errors
/// [`ErrorKind::Protocol`] when it is no JSON even then.
pub fn parse<'a, T: Deserialize<'a>>(data: &'a str, scratch: &'a mut Scratch) -> Result<T, ProviderError> {
    match serde_json::from_str(data) {
        Ok(value) => Ok(value),
        Err(error) => mended(data, &error, scratch, T::deserialize),
    }
}

/// Reads text that is no JSON as what it was meant to be.
pub(super) fn mended<'a, T>(
    data: &str,
    error: &serde_json::Error,
    scratch: &'a mut Scratch,
    read: impl FnOnce(&'a Value) -> serde_json::Result<T>,
) -> Result<T, ProviderError> {
    let repaired = repair_strings(data);
    let repaired = without_unpaired_escapes(&repaired);
    // Reading into a value keeps the last of repeated keys.
    match serde_json::from_str::<Value>(&repaired) {
        Ok(value) => {
            scratch.0 = value;
            read(&scratch.0).map_err(|error| unreadable(data, &error))
        }
        Err(_) => Err(unreadable(data, error)),
    }
}

/// What an event of a wire brings that sends JSON objects and ends them with `[DONE]`.
pub(super) enum Payload<T> {
    /// The terminator.
    Done,
    Nothing,
    Object(T),
    /// JSON that is no object.
    Other,
}

/// Reads an event of such a wire.
///
/// # Errors
/// When its data is no JSON; what an event of the name `error` says is then the provider's error.
pub(super) fn payload<'a, T: Deserialize<'a>>(
    frame: Frame<'a>,
    provider: &ProviderId,
    scratch: &'a mut Scratch,
) -> Result<Payload<T>, ProviderError> {
    payload_of(frame, provider, |data| {
        let Object(object) = parse(data, scratch)?;
        Ok(object.map_or(Payload::Other, Payload::Object))
    })
}

/// As [`payload`], into an object that stands already.
///
/// # Errors
/// As for [`payload`].
pub(super) fn payload_into<'a, T: Members<'a>>(
    frame: Frame<'a>,
    provider: &ProviderId,
    scratch: &'a mut Scratch,
    into: &mut T,
) -> Result<Payload<()>, ProviderError> {
    payload_of(frame, provider, |data| match in_place::parse_into(data, scratch, into)? {
        Found::Object => Ok(Payload::Object(())),
        Found::Other => Ok(Payload::Other),
    })
}

fn payload_of<'a, T>(
    frame: Frame<'a>,
    provider: &ProviderId,
    read: impl FnOnce(&'a str) -> Result<Payload<T>, ProviderError>,
) -> Result<Payload<T>, ProviderError> {
    match frame.data.trim() {
        "[DONE]" => Ok(Payload::Done),
        "" => Ok(Payload::Nothing),
        data => match read(data) {
            Err(_) if frame.name == Some("error") => Err(errors::from_event(provider, data)),
            read => read,
        },
    }
}

/// Where repaired data stays while it is read.
#[derive(Debug, Default)]
pub struct Scratch(Value);

fn unreadable(data: &str, error: &serde_json::Error) -> ProviderError {
    const SHOWN: usize = 300;
    let shown = data.char_indices().nth(SHOWN).map_or(data, |(at, _)| &data[..at]);
    ProviderError::new(ErrorKind::Protocol, format!("An event of the answer could not be read ({error}): {shown}"))
        .with_body(data)
}

/// A string, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    pub(crate) fn borrowed(text: &'a str) -> Self {
        Self(Some(Cow::Borrowed(text)))
    }

    pub(crate) fn owned(text: String) -> Self {
        Self(Some(Cow::Owned(text)))
    }

    /// The text, also when it is empty.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The text, unless it is empty.
    pub fn non_empty(&self) -> Option<&str> {
        self.as_str().filter(|text| !text.is_empty())
    }

    /// The text, owned; empty when there is none.
    pub fn into_string(self) -> String {
        self.0.map(Cow::into_owned).unwrap_or_default()
    }
}

/// A count, or nothing. Fractions are cut off, negative numbers are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub Option<u64>);

impl Count {
    /// The count, 0 when there is none.
    pub fn or_zero(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

/// A number that may come as a string, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index(pub Option<u64>);

/// A list, or nothing. Elements that cannot be read are an error: they are made of lenient parts themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A piece of the text of a call's arguments, or the arguments themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Arguments<'a> {
    /// Neither.
    #[default]
    None,
    /// A piece of text.
    Text(Text<'a>),
    /// All of them, as an object.
    Whole(Map<String, Value>),
}

/// A piece of a tool call, as the chat completions family of wires streams it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) arguments: Arguments<'a>,
}

/// An object, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object<T>(pub Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

macro_rules! ignore_other_types {
    (@scalars) => {
        fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        $crate::api::decode::ignore_other_types!(@unit);
    };
    (@unit) => {
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_none<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(self)
        }
    };
    (@numbers) => {
        fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@text) => {
        fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (@list) => {
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (@object) => {
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
            while object.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
}

pub(crate) use ignore_other_types;

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyText<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for AnyText<'a> {
            type Value = Text<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }
            fn visit_string<E: de::Error>(self, text: String) -> Result<Text<'a>, E> {
                Ok(Text(Some(Cow::Owned(text))))
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@numbers);
            ignore_other_types!(@list);
            ignore_other_types!(@object);
        }
        deserializer.deserialize_any(AnyText(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyCount;
        impl<'de> Visitor<'de> for AnyCount {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                Ok(Count(Some(count)))
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
                Ok(Count(Some(count.try_into().unwrap_or(0))))
            }
            fn visit_f64<E: de::Error>(self, count: f64) -> Result<Count, E> {
                Ok(Count(Some(count as u64)))
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@text);
            ignore_other_types!(@list);
            ignore_other_types!(@object);
        }
        deserializer.deserialize_any(AnyCount)
    }
}

impl<'de> Deserialize<'de> for Index {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyIndex;
        impl<'de> Visitor<'de> for AnyIndex {
            type Value = Index;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an index")
            }
            fn visit_u64<E: de::Error>(self, index: u64) -> Result<Index, E> {
                Ok(Index(Some(index)))
            }
            fn visit_i64<E: de::Error>(self, index: i64) -> Result<Index, E> {
                Ok(Index(index.try_into().ok()))
            }
            fn visit_f64<E: de::Error>(self, index: f64) -> Result<Index, E> {
                Ok(Index((index >= 0.0).then_some(index as u64)))
            }
            fn visit_str<E: de::Error>(self, index: &str) -> Result<Index, E> {
                Ok(Index(index.trim().parse().ok()))
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@list);
            ignore_other_types!(@object);
        }
        deserializer.deserialize_any(AnyIndex)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyList<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyList<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
                let mut elements = Vec::new();
                while let Some(Object(element)) = list.next_element()? {
                    elements.extend(element);
                }
                Ok(List(elements))
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@numbers);
            ignore_other_types!(@text);
            ignore_other_types!(@object);
        }
        deserializer.deserialize_any(AnyList(std::marker::PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyObject<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for AnyObject<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(object)).map(|object| Object(Some(object)))
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@numbers);
            ignore_other_types!(@text);
            ignore_other_types!(@list);
        }
        deserializer.deserialize_any(AnyObject(std::marker::PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrWhole<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextOrWhole<'a> {
            type Value = Arguments<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("arguments")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Arguments<'a>, E> {
                Ok(Arguments::Text(Text::borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Arguments<'a>, E> {
                Ok(Arguments::Text(Text::owned(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Arguments<'a>, A::Error> {
                Map::deserialize(de::value::MapAccessDeserializer::new(object)).map(Arguments::Whole)
            }
            ignore_other_types!(@scalars);
            ignore_other_types!(@numbers);
            ignore_other_types!(@list);
        }
        deserializer.deserialize_any(TextOrWhole(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Event<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        index: Index,
        list: List<Event<'a>>,
        object: Object<Box<Event<'a>>>,
    }

    fn read(data: &str) -> Event<'static> {
        let mut scratch = Scratch::default();
        let event: Event<'_> = parse(data, &mut scratch).unwrap();
        owned(event)
    }

    fn owned(event: Event<'_>) -> Event<'static> {
        Event {
            text: Text(event.text.0.map(|text| Cow::Owned(text.into_owned()))),
            count: event.count,
            index: event.index,
            list: List(event.list.0.into_iter().map(owned).collect()),
            object: Object(event.object.0.map(|event| Box::new(owned(*event)))),
        }
    }

    #[test]
    fn a_field_of_another_type_counts_as_absent() {
        for value in ["null", "true", "7", "-7", "1.5", "\"x\"", "[1,[2]]", "{\"a\":{\"b\":1}}"] {
            let names = ["text", "count", "index", "list", "object"];
            let data = names.map(|name| format!("\"{name}\":{value}")).join(",");
            let event = read(&format!("{{{data},\"other\":{value}}}"));
            assert_eq!(event.text.as_str(), (value == "\"x\"").then_some("x"), "{value}");
            assert_eq!(event.object.0.is_some(), value.starts_with('{'), "{value}");
            assert_eq!(event.list.0.len(), 0, "{value}");
        }
    }

    #[test]
    fn what_servers_break_is_mended() {
        assert_eq!(read("{\"text\":\"a\tb\\q\"}").text.as_str(), Some("a\tb\\q"));
        assert_eq!(read(r#"{"text":"cut \ud83d"}"#).text.as_str(), Some("cut "));
        assert_eq!(read(r#"{"text":"a","text":"b","count":1}"#).text.as_str(), Some("b"));
        assert_eq!(
            read(r#"{"index":"3","count":2.0}"#),
            Event { index: Index(Some(3)), count: Count(Some(2)), ..Event::default() }
        );
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let mut scratch = Scratch::default();
        let event: Event<'_> = parse(r#"{"text":"plain"}"#, &mut scratch).unwrap();
        assert!(matches!(event.text.0, Some(Cow::Borrowed("plain"))));
    }

    #[test]
    fn what_is_no_json_is_shown() {
        let error = parse::<Event<'_>>("{nope", &mut Scratch::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert!(error.message().contains("{nope"), "{error}");
    }
}
