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

#[cfg(test)]
#[cfg(feature = "images")]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

    use super::*;

    fn picture(width: u32, height: u32) -> DynamicImage {
        RgbImage::from_fn(width, height, |x, y| Rgb([(x * 7) as u8, (y * 13) as u8, (x ^ y) as u8])).into()
    }

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn limits(width: u32, height: u32, bytes: usize) -> ImageOptions {
        ImageOptions::Within(ImageLimits { width, height, bytes, jpeg_quality: 80 })
    }

    /// The image that was handed out.
    fn shown(read: &ImageRead) -> DynamicImage {
        let image = read.image.as_ref().unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(&image.data).unwrap();
        image::load_from_memory(&bytes).unwrap()
    }

    #[tokio::test]
    async fn an_image_within_the_limits_is_handed_out_as_it_is() {
        for (format, image) in [
            (ImageFormat::Png, ImageType::Png),
            (ImageFormat::Jpeg, ImageType::Jpeg),
            (ImageFormat::Gif, ImageType::Gif),
            (ImageFormat::WebP, ImageType::Webp),
        ] {
            let bytes = encoded(&picture(20, 10), format);
            let read = prepare(bytes.clone(), image, &ImageOptions::Default).await;
            assert_eq!(read.text, format!("Read image file [{}]", image.mime()));
            let data = read.image.unwrap();
            assert_eq!(data.mime_type, image.mime());
            assert_eq!(base64::engine::general_purpose::STANDARD.decode(data.data).unwrap(), bytes);
        }
    }

    #[tokio::test]
    async fn a_large_image_is_made_smaller_and_says_by_how_much() {
        let bytes = encoded(&picture(300, 50), ImageFormat::Png);
        let read = prepare(bytes.clone(), ImageType::Png, &limits(100, 100, 1_000_000)).await;
        let image = shown(&read);
        assert_eq!((image.width(), image.height()), (100, 17));
        assert!(read.text.contains("original 300x50, shown at 100x17") && read.text.contains("3.00"), "{}", read.text);
        let whole = prepare(bytes, ImageType::Png, &ImageOptions::AsTheyAre).await;
        assert_eq!(shown(&whole).width(), 300);
    }

    #[tokio::test]
    async fn an_image_of_too_many_bytes_becomes_one_of_fewer() {
        let bytes = encoded(&picture(120, 120), ImageFormat::Png);
        for most in [6000, 1500] {
            let read = prepare(bytes.clone(), ImageType::Png, &limits(2000, 2000, most)).await;
            assert!(read.image.as_ref().unwrap().data.len() < most, "{}", read.text);
            assert!(read.text.contains("original 120x120"), "{}", read.text);
        }
        let read = prepare(bytes, ImageType::Png, &limits(2000, 2000, 10)).await;
        assert_eq!(read.image, None);
        assert!(read.text.contains("omitted"), "{}", read.text);
    }

    #[tokio::test]
    async fn a_bitmap_becomes_a_png() {
        let bytes = encoded(&picture(8, 4), ImageFormat::Bmp);
        let read = prepare(bytes, ImageType::Bmp, &ImageOptions::Default).await;
        assert_eq!(read.image.as_ref().unwrap().mime_type, "image/png");
        assert!(
            read.text.starts_with("Read image file [image/png]\n") && read.text.contains("image/bmp"),
            "{}",
            read.text
        );
        assert_eq!(shown(&read).to_rgb8(), picture(8, 4).to_rgb8());
    }

    #[tokio::test]
    async fn a_photograph_is_turned_as_its_camera_says() {
        let plain = encoded(&picture(60, 20), ImageFormat::Jpeg);
        // One EXIF entry: orientation 6, a quarter turn.
        let tiff = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let payload = [b"Exif\0\0".as_slice(), tiff].concat();
        let length = (payload.len() as u16 + 2).to_be_bytes();
        let bytes = [&plain[..2], &[0xff, 0xe1], &length, &payload, &plain[2..]].concat();
        let read = prepare(bytes, ImageType::Jpeg, &limits(30, 30, 1_000_000)).await;
        let image = shown(&read);
        assert_eq!((image.width(), image.height()), (10, 30));
        assert!(read.text.contains("original 20x60"), "{}", read.text);
    }

    #[tokio::test]
    async fn a_broken_image_is_a_text() {
        let whole = encoded(&picture(30, 30), ImageFormat::Png);
        let huge =
            [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0".as_slice(), &[0; 60]]
                .concat();
        for bytes in [whole[..whole.len() / 2].to_vec(), huge, b"\x89PNG\r\n\x1a\n".to_vec()] {
            let read = prepare(bytes, ImageType::Png, &ImageOptions::Default).await;
            assert_eq!(read.image, None);
            assert!(read.text.contains("omitted"), "{}", read.text);
        }
    }

    /// A PNG of hardly any bytes that claims this size.
    fn claiming_png(width: u32, height: u32) -> Vec<u8> {
        fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
            let body = [name.as_slice(), data].concat();
            let checksum = body.iter().fold(u32::MAX, |sum, byte| {
                (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
            });
            [(data.len() as u32).to_be_bytes().as_slice(), &body, &(!checksum).to_be_bytes()].concat()
        }
        let header = [width.to_be_bytes().as_slice(), &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
        [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header), chunk(b"IDAT", &[0; 20]), chunk(b"IEND", &[])].concat()
    }

    #[tokio::test]
    async fn an_image_that_claims_to_be_huge_is_left_out_before_memory_is_asked_for() {
        let gif =
            [b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x02\x02L\x01\0;".as_slice(), &[0; 60]].concat();
        let png = claiming_png(100_000, 100_000);
        assert!(png.len() < 100);
        for (bytes, image, size) in [(png, ImageType::Png, "100000x100000"), (gif, ImageType::Gif, "65535x65535")] {
            let read = prepare(bytes, image, &ImageOptions::Default).await;
            assert_eq!(read.image, None);
            assert!(read.text.contains(&format!("[Image omitted: it claims to be {size} pixels")), "{}", read.text);
        }
    }
}
