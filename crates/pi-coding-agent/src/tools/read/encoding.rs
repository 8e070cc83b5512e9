//! What kind of content a file has, judged by its first bytes.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// First bytes that are looked at.
pub(super) const SAMPLE: usize = 64 * 1024;

/// Bytes in which a NUL makes a file binary.
const BINARY_SAMPLE: usize = 8 * 1024;

/// What a file's first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// An image of a type that models take, or that can be turned into one.
    Image(ImageType),
    /// Text in this encoding.
    Text(TextEncoding),
    /// Neither; the name says what, as far as it can be told.
    Binary(&'static str),
}

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextEncoding {
    pub(super) encoding: &'static Encoding,
    /// Bytes in front of the text that only name the encoding.
    pub(super) mark: usize,
}

/// Image types that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageType {
    Jpeg,
    Png,
    Gif,
    Webp,
    Bmp,
}

impl ImageType {
    pub(super) fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Bmp => "image/bmp",
        }
    }
}

/// Judges a file by its first bytes, at most [`SAMPLE`] of them.
pub(super) fn recognise(sample: &[u8]) -> Content {
    if let Some(image) = image_type(sample) {
        return Content::Image(image);
    }
    if let Some(name) = binary_type(sample) {
        return Content::Binary(name);
    }
    match sample {
        [0xff, 0xfe, 0, 0, ..] => return Content::Binary("text in UTF-32LE, which cannot be shown"),
        [0, 0, 0xfe, 0xff, ..] => return Content::Binary("text in UTF-32BE, which cannot be shown"),
        [0xff, 0xfe, ..] => return text(UTF_16LE, 2),
        [0xfe, 0xff, ..] => return text(UTF_16BE, 2),
        _ => {}
    }
    if sample.iter().take(BINARY_SAMPLE).any(|byte| *byte == 0) {
        return unmarked_utf16(sample).map_or(Content::Binary("binary data"), |encoding| text(encoding, 0));
    }
    match judge_utf8(sample) {
        Utf8::Valid | Utf8::Mostly => text(UTF_8, 0),
        Utf8::No if has_many_controls(sample) => Content::Binary("binary data"),
        Utf8::No => {
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(sample, true);
            text(detector.guess(None, Utf8Detection::Deny), 0)
        }
    }
}

fn text(encoding: &'static Encoding, mark: usize) -> Content {
    Content::Text(TextEncoding { encoding, mark })
}

enum Utf8 {
    Valid,
    /// Text in UTF-8 with some bytes that are not.
    Mostly,
    No,
}

fn judge_utf8(sample: &[u8]) -> Utf8 {
    let (mut good, mut bad) = (0_usize, 0_usize);
    let mut at = 0;
    for chunk in sample.utf8_chunks() {
        good += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
        at += chunk.valid().len() + chunk.invalid().len();
        let is_cut =
            at == sample.len() && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        bad += usize::from(!chunk.invalid().is_empty() && !is_cut);
    }
    match (good, bad) {
        (_, 0) => Utf8::Valid,
        (good, bad) if good > bad => Utf8::Mostly,
        _ => Utf8::No,
    }
}

/// UTF-16 without a mark: text of mostly Latin letters has its zeros on one side.
fn unmarked_utf16(sample: &[u8]) -> Option<&'static Encoding> {
    let pairs = sample.len() / 2;
    let zeros_at = |side: usize| sample.chunks_exact(2).filter(|pair| pair[side] == 0).count();
    let (high_first, low_first) = (zeros_at(0), zeros_at(1));
    let mostly = |zeros: usize, others: usize| pairs >= 4 && zeros * 10 >= pairs * 7 && others * 20 <= pairs;
    if mostly(low_first, high_first) {
        Some(UTF_16LE)
    } else if mostly(high_first, low_first) {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn has_many_controls(sample: &[u8]) -> bool {
    let controls = sample.iter().filter(|byte| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)).count();
    controls * 50 > sample.len()
}

/// The image types that models take or that can be turned into one. JPEG-LS and animated PNG are none.
fn image_type(sample: &[u8]) -> Option<ImageType> {
    match sample {
        [0xff, 0xd8, 0xff, 0xf7, ..] => None,
        [0xff, 0xd8, 0xff, ..] => Some(ImageType::Jpeg),
        _ if sample.starts_with(PNG) => is_still_png(sample).then_some(ImageType::Png),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(ImageType::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(ImageType::Webp),
        [b'B', b'M', ..] => is_bmp(sample).then_some(ImageType::Bmp),
        _ => None,
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn is_still_png(sample: &[u8]) -> bool {
    let chunk = |at: usize| {
        let length = u32::from_be_bytes(sample.get(at..at + 4)?.try_into().ok()?);
        Some((length as usize, sample.get(at + 4..at + 8)?))
    };
    if chunk(PNG.len()) != Some((13, b"IHDR")) {
        return false;
    }
    let mut at = PNG.len();
    while let Some((length, name)) = chunk(at) {
        match name {
            b"acTL" => return false,
            b"IDAT" => return true,
            _ => at += 12 + length,
        }
    }
    true
}

fn is_bmp(sample: &[u8]) -> bool {
    let u32_at = |at: usize| Some(u32::from_le_bytes(sample.get(at..at + 4)?.try_into().ok()?));
    let u16_at = |at: usize| Some(u16::from_le_bytes(sample.get(at..at + 2)?.try_into().ok()?));
    let judge = || {
        let (file_size, pixels_at, header) = (u32_at(2)?, u32_at(10)?, u32_at(14)?);
        let sizes_fit =
            (file_size == 0 || (file_size >= 26 && pixels_at < file_size)) && pixels_at >= header.checked_add(14)?;
        let (planes, depth) = match header {
            12 => (u16_at(22)?, u16_at(24)?),
            40..=124 => (u16_at(26)?, u16_at(28)?),
            _ => return None,
        };
        Some(sizes_fit && planes == 1 && matches!(depth, 1 | 4 | 8 | 16 | 24 | 32))
    };
    judge().unwrap_or(false)
}

/// Names of file types that are no text, by their first bytes.
fn binary_type(sample: &[u8]) -> Option<&'static str> {
    const AT_START: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF program or library"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
        (b"\xce\xfa\xed\xfe", "a Mach-O program or library"),
        (b"\xca\xfe\xba\xbe", "a Java class or universal binary"),
        (b"\0asm", "a WebAssembly module"),
        (b"PK\x03\x04", "a ZIP archive (or a format built on it, such as docx or jar)"),
        (b"PK\x05\x06", "an empty ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"Rar!\x1a\x07", "a RAR archive"),
        (b"%PDF-", "a PDF document"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image that is animated or broken, which cannot be shown"),
        (b"\xff\xd8\xff", "a JPEG-LS image, which cannot be shown"),
        (b"II*\0", "a TIFF image, which cannot be shown"),
        (b"MM\0*", "a TIFF image, which cannot be shown"),
        (b"\0\0\x01\0", "an icon, which cannot be shown"),
        (b"8BPS", "a Photoshop image, which cannot be shown"),
        (b"wOFF", "a font"),
        (b"wOF2", "a font"),
        (b"OTTO\0", "a font"),
        (b"\0\x01\0\0\0", "a font"),
        (b"OggS", "Ogg audio or video"),
        (b"fLaC", "FLAC audio"),
        (b"ID3", "MP3 audio"),
        (b"\x1aE\xdf\xa3", "Matroska or WebM video"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Microsoft Office document"),
        (b"PAR1", "a Parquet file"),
    ];
    if let Some((_, name)) = AT_START.iter().find(|(magic, _)| sample.starts_with(magic)) {
        return Some(name);
    }
    match sample {
        [b'M', b'Z', rest @ ..] if rest.contains(&0) => Some("a Windows program or library"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("WAV audio"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => Some("AVI video"),
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => Some(match brand.get(..4) {
            Some(b"heic" | b"heix" | b"mif1" | b"msf1" | b"hevc") => "a HEIC image, which cannot be shown",
            Some(b"avif" | b"avis") => "an AVIF image, which cannot be shown",
            _ => "MP4 audio or video",
        }),
        _ if sample.get(257..262) == Some(b"ustar") => Some("a tar archive"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(sample: &[u8]) -> &'static str {
        match recognise(sample) {
            Content::Text(text) => text.encoding.name(),
            Content::Binary(name) => name,
            Content::Image(image) => image.mime(),
        }
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(named(b""), "UTF-8");
        assert_eq!(named("caf\u{e9}".as_bytes()), "UTF-8");
        assert_eq!(named(b"\xff\xfeh\0i\0"), "UTF-16LE");
        assert_eq!(named(b"h\0e\0l\0l\0o\0"), "UTF-16LE");
        assert_eq!(named(b"\0h\0e\0l\0l\0o"), "UTF-16BE");
        assert_eq!(named(b"un caf\xe9 cr\xe8me, s'il vous pla\xeet"), "windows-1252");
        let (japanese, _, _) = encoding_rs::SHIFT_JIS.encode("これは日本語のテキストです。改行もあります。");
        assert_eq!(named(&japanese), "Shift_JIS");
    }

    #[test]
    fn text_with_a_few_odd_bytes_stays_utf8() {
        assert_eq!(named("naïve café Größe \u{e9}".as_bytes()), "UTF-8");
        assert_eq!(named(&["naïve café Größe".as_bytes(), b" \xff"].concat()), "UTF-8");
        // A character cut by the end of the sample is none.
        assert_eq!(named(b"abc \xe6\xbc"), "UTF-8");
    }

    #[test]
    fn types_are_judged_by_content() {
        assert_eq!(named(b"\x7fELF\x02\x01"), "an ELF program or library");
        assert_eq!(named(b"\0\0\0\x18ftypheic"), "a HEIC image, which cannot be shown");
        assert_eq!(named(b"abc\0\0\0def"), "binary data");
        assert_eq!(named(b"BM is how this text begins"), "UTF-8");
        assert_eq!(named(b"GIF89a"), "image/gif");
        assert_eq!(named(b"\x80\x81\x01\x02\x03\x04\x05"), "binary data");
    }
}
