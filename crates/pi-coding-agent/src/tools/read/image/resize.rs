//! Decoding, turning, resizing and encoding images.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader};

use super::{ImageLimits, Prepared, base64_length};
use crate::tools::read::encoding::ImageType;

/// Most bytes that an image may take up when it is decoded. Only the first bytes of a file say how large it is, so a
/// tiny file can claim what no memory holds; photographs of 100 megapixels are well within.
const LARGEST_DECODED: u64 = 512 * 1024 * 1024;

/// Qualities tried after the one that was asked for, when the image is still too large.
const LOWER_QUALITIES: [u8; 4] = [85, 70, 55, 40];

pub(super) fn make_ready(bytes: Vec<u8>, image: ImageType, limits: Option<ImageLimits>) -> Result<Prepared, String> {
    let (bytes, image, mut hints) = match image {
        ImageType::Bmp => {
            let hint = format!("[Image converted from {} to {}.]", ImageType::Bmp.mime(), ImageType::Png.mime());
            (encode_png(&decode(&bytes, image)?)?, ImageType::Png, vec![hint])
        }
        other => (bytes, other, Vec::new()),
    };
    let Some(limits) = limits else {
        return Ok(Prepared { bytes, image, hints });
    };
    let decoded = decode(&bytes, image)?;
    let original = Size { width: decoded.width(), height: decoded.height() };
    if original.fits(&limits) && base64_length(bytes.len()) < limits.bytes {
        return Ok(Prepared { bytes, image, hints });
    }
    let Some(smaller) = shrink(&decoded, original, &limits)? else {
        return Err("it could not be made small enough for the model".to_owned());
    };
    let factor = f64::from(original.width) / f64::from(smaller.size.width);
    hints.push(format!(
        "[Image: original {}x{}, shown at {}x{}. Multiply coordinates by {factor:.2} to map them to the original.]",
        original.width, original.height, smaller.size.width, smaller.size.height
    ));
    Ok(Prepared { bytes: smaller.bytes, image: smaller.image, hints })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
}

impl Size {
    fn fits(self, limits: &ImageLimits) -> bool {
        self.width <= limits.width && self.height <= limits.height
    }

    /// The largest size of the same shape within the limits.
    fn within(self, limits: &ImageLimits) -> Self {
        let mut size = self;
        if size.width > limits.width {
            size = Self { width: limits.width, height: scaled(size.height, limits.width, size.width) };
        }
        if size.height > limits.height {
            size = Self { width: scaled(size.width, limits.height, size.height), height: limits.height };
        }
        size
    }

    fn three_quarters(self) -> Self {
        let smaller = |length: u32| (u64::from(length) * 3 / 4).max(1) as u32;
        Self { width: smaller(self.width), height: smaller(self.height) }
    }
}

fn scaled(length: u32, to: u32, from: u32) -> u32 {
    let (length, to, from) = (u64::from(length), u64::from(to), u64::from(from));
    ((length * to + from / 2) / from).max(1) as u32
}

struct Smaller {
    bytes: Vec<u8>,
    image: ImageType,
    size: Size,
}

fn shrink(decoded: &DynamicImage, original: Size, limits: &ImageLimits) -> Result<Option<Smaller>, String> {
    let mut size = original.within(limits);
    loop {
        let resized = if size == original {
            decoded.clone()
        } else {
            decoded.resize_exact(size.width, size.height, FilterType::Lanczos3)
        };
        let fits = |bytes: &[u8]| base64_length(bytes.len()) < limits.bytes;
        let png = (encode_png(&resized)?, ImageType::Png);
        let jpeg = (encode_jpeg(&resized, limits.jpeg_quality)?, ImageType::Jpeg);
        let preferred = if jpeg.0.len() < png.0.len() { [jpeg, png] } else { [png, jpeg] };
        if let Some((bytes, image)) = preferred.into_iter().find(|(bytes, _)| fits(bytes)) {
            return Ok(Some(Smaller { bytes, image, size }));
        }
        for quality in LOWER_QUALITIES.into_iter().filter(|quality| *quality != limits.jpeg_quality) {
            let bytes = encode_jpeg(&resized, quality)?;
            if fits(&bytes) {
                return Ok(Some(Smaller { bytes, image: ImageType::Jpeg, size }));
            }
        }
        let next = size.three_quarters();
        if next == size {
            return Ok(None);
        }
        size = next;
    }
}

/// The image, turned as its camera says. One that would be too large for memory is refused before it is decoded.
fn decode(bytes: &[u8], image: ImageType) -> Result<DynamicImage, String> {
    let failed = |error: image::ImageError| format!("it could not be decoded ({error})");
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(LARGEST_DECODED);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format_of(image));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    // The decoder's own limits do not count the buffer that the pixels are put into.
    if decoder.total_bytes() > LARGEST_DECODED {
        return Err(format!(
            "it claims to be {width}x{height} pixels, which take up more than {}MB when decoded",
            LARGEST_DECODED / (1024 * 1024)
        ));
    }
    let orientation = decoder.orientation().map_err(failed)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(failed)?;
    decoded.apply_orientation(orientation);
    Ok(decoded)
}

fn format_of(image: ImageType) -> ImageFormat {
    match image {
        ImageType::Jpeg => ImageFormat::Jpeg,
        ImageType::Png => ImageFormat::Png,
        ImageType::Gif => ImageFormat::Gif,
        ImageType::Webp => ImageFormat::WebP,
        ImageType::Bmp => ImageFormat::Bmp,
    }
}

fn encode_png(image: &DynamicImage) -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).map_err(|error| format!("it could not be encoded ({error})"))?;
    Ok(bytes.into_inner())
}

fn encode_jpeg(image: &DynamicImage, quality: u8) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // JPEG has no transparency and eight bits per channel.
    image
        .to_rgb8()
        .write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))
        .map_err(|error| format!("it could not be encoded ({error})"))?;
    Ok(bytes)
}
