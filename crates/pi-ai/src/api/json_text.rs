//! Values that are written as strings, without building the string first where that can be helped.

use serde::{Serialize, Serializer, ser::Error as _};

use crate::message::ImageContent;

/// A value as a string that holds its JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonText<'a, T>(pub(crate) &'a T);

impl<T: Serialize> Serialize for JsonText<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(self.0).map_err(S::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

/// A picture as a `data:` URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a ImageContent);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data:{};base64,{}", self.0.mime_type, self.0.data))
    }
}
