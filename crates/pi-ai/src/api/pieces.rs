//! The content of an answer as a list of typed pieces, which some servers send in place of a text.

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

use super::decode::{self, List, Text};

/// A piece of text, or a list of pieces of text and reasoning.
#[derive(Debug, Default)]
pub(super) enum Pieces<'a> {
    #[default]
    None,
    Text(Text<'a>),
    List(Vec<Piece<'a>>),
}

/// A text, or an object with a type.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Text(Text<'a>),
    Typed(TypedPiece<'a>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TypedPiece<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) text: Text<'a>,
    pub(super) refusal: Text<'a>,
    pub(super) thinking: List<ThinkingPiece<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ThinkingPiece<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrList<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextOrList<'a> {
            type Value = Pieces<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text or a list of pieces")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Pieces<'a>, E> {
                Ok(Pieces::Text(Text::borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pieces<'a>, E> {
                Ok(Pieces::Text(Text::owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces<'a>, A::Error> {
                let mut pieces = Vec::new();
                while let Some(piece) = list.next_element::<Option<Piece<'a>>>()? {
                    pieces.extend(piece);
                }
                Ok(Pieces::List(pieces))
            }
            decode::ignore_other_types!(@scalars);
            decode::ignore_other_types!(@numbers);
            decode::ignore_other_types!(@object);
        }
        deserializer.deserialize_any(TextOrList(std::marker::PhantomData))
    }
}

impl Default for Piece<'_> {
    fn default() -> Self {
        Self::Text(Text::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Piece<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTyped<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for TextOrTyped<'a> {
            type Value = Piece<'a>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a piece of content")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Piece<'a>, E> {
                Ok(Piece::Text(Text::borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Piece<'a>, E> {
                Ok(Piece::Text(Text::owned(text.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Piece<'a>, A::Error> {
                TypedPiece::deserialize(de::value::MapAccessDeserializer::new(object)).map(Piece::Typed)
            }
            decode::ignore_other_types!(@scalars);
            decode::ignore_other_types!(@numbers);
            decode::ignore_other_types!(@list);
        }
        deserializer.deserialize_any(TextOrTyped(std::marker::PhantomData))
    }
}
