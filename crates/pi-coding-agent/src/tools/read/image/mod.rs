//! Images for the model: in a type it takes, within the size it takes.

#[cfg(feature = "images")]
mod resize;

use base64::Engine as _;

use super::encoding::ImageType;

/// Limits of the images that a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Most pixels from left to right.
    pub width: u32,
    /// Most pixels from top to bottom.
    pub height: u32,
    /// The base64 text must be shorter than this many bytes.
    pub bytes: usize,
    /// Quality of a JPEG, from 1 to 100, when an image is made smaller.
    pub jpeg_quality: u8,
}

impl Default for ImageLimits {
    /// What every provider takes.
    fn default() -> Self {
        Self { width: 2000, height: 2000, bytes: 4_718_592, jpeg_quality: 80 }
    }
}

/// How images are handed to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageOptions {
    /// Made smaller where they are over the limits.
    #[default]
    Default,
    /// Made smaller where they are over these limits.
    Within(ImageLimits),
    /// As they are.
    AsTheyAre,
}

/// An image in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageData {
    /// The base64 text.
    pub data: String,
    /// Its MIME type.
    pub mime_type: &'static str,
}

/// An image file as the model gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRead {
    /// The text that goes with it: its type, and what was done to it.
    pub text: String,
    /// The image; `None` when it had to be left out, which the text then says.
    pub image: Option<ImageData>,
}

/// An image that was made ready, and what was done to it.
struct Prepared {
    bytes: Vec<u8>,
    image: ImageType,
    hints: Vec<String>,
}

/// Makes an image ready for the model.
pub(super) async fn prepare(bytes: Vec<u8>, image: ImageType, options: &ImageOptions) -> ImageRead {
    let limits = match options {
        ImageOptions::Default => Some(ImageLimits::default()),
        ImageOptions::Within(limits) => Some(*limits),
        ImageOptions::AsTheyAre => None,
    };
    // Decoding takes long, and a broken image must not take the tool down with it.
    let prepared = tokio::task::spawn_blocking(move || {
        std::panic::catch_unwind(|| make_ready(bytes, image, limits))
            .unwrap_or_else(|_| Err("it could not be decoded".to_owned()))
    })
    .await
    .unwrap_or_else(|error| Err(error.to_string()));
    match prepared {
        Ok(prepared) => {
            let mime_type = prepared.image.mime();
            let mut text = format!("Read image file [{mime_type}]");
            for hint in prepared.hints {
                text.push('\n');
                text.push_str(&hint);
            }
            let data = base64::engine::general_purpose::STANDARD.encode(prepared.bytes);
            ImageRead { text, image: Some(ImageData { data, mime_type }) }
        }
        Err(reason) => {
            ImageRead { text: format!("Read image file [{}]\n[Image omitted: {reason}.]", image.mime()), image: None }
        }
    }
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(feature = "images")]
fn make_ready(bytes: Vec<u8>, image: ImageType, limits: Option<ImageLimits>) -> Result<Prepared, String> {
    resize::make_ready(bytes, image, limits)
}

#[cfg(not(feature = "images"))]
fn make_ready(bytes: Vec<u8>, image: ImageType, limits: Option<ImageLimits>) -> Result<Prepared, String> {
    let fits = limits.is_none_or(|limits| base64_length(bytes.len()) < limits.bytes);
    if image == ImageType::Bmp || !fits {
        return Err(
            "converting and resizing images needs the `images` feature, which this build does not have".to_owned()
        );
    }
    Ok(Prepared { bytes, image, hints: Vec::new() })
}
