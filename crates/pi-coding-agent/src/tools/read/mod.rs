//! The `read` tool: lines of a text file, or an image.

mod encoding;
mod image;
mod notice;
mod select;
mod tool;

use std::path::Path;

use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

pub use self::image::{ImageData, ImageLimits, ImageOptions, ImageRead};
pub use self::tool::{ReadImages, ReadTool};

pub(crate) use self::notice::take_remarks;

use self::encoding::{Content, SAMPLE, TextEncoding, recognise};
use self::notice::{Limit, Notice};
use self::select::{LineSelector, Selection};
use super::file_error::FileError;
use super::paths::{self, PathError};
use super::truncate::{TruncatedBy, Truncation, format_size};
use crate::workspace::{OpenedFile, Workspace};

/// Largest image that is decoded: a larger file is no picture that a model could be shown.
const LARGEST_IMAGE: u64 = 64 * 1024 * 1024;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// Which lines of which file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadRequest {
    /// The file, as the model wrote it.
    pub path: String,
    /// The first line, from 1. Numbers need not be whole: that is how models send them.
    pub offset: Option<f64>,
    /// Most lines.
    pub limit: Option<f64>,
}

/// Lines of a text file.
#[derive(Clone, Debug, PartialEq)]
pub struct TextRead {
    /// The lines.
    pub body: String,
    /// What is missing and how to go on, and how the text was decoded, for the model.
    pub notice: Option<String>,
    /// Set when a limit cut the lines.
    pub truncation: Option<Truncation>,
    /// The encoding, unless it is UTF-8.
    pub encoding: Option<&'static str>,
}

impl TextRead {
    /// The text that the model gets.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.notice {
            None => self.body.clone(),
            Some(notice) if self.body.is_empty() => notice.clone(),
            Some(notice) => format!("{}\n\n{notice}", self.body),
        }
    }
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The path has no meaning.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The first line that was asked for is not there.
    #[error("Offset {offset} is behind the end of the file, which has {lines} lines in all.")]
    PastEnd {
        /// The line that was asked for.
        offset: f64,
        /// Lines of the file.
        lines: u64,
    },
    /// The file holds neither text nor an image that can be shown.
    #[error("{path:?} is {what} ({}); read shows text and images only. Look at it with a suitable command.", format_size(*size))]
    Binary {
        /// The path as it was given.
        path: String,
        /// What it is.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
    },
    /// The caller cancelled.
    #[error("Operation aborted")]
    Aborted,
}

/// What a file turned out to be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReadOutcome {
    /// A text.
    Text(TextRead),
    /// An image.
    Image(ImageRead),
}

/// Reads lines of a text file, or an image.
///
/// # Errors
///
/// When the file is missing, neither text nor image, or shorter than the request's offset; see [`ReadError`].
pub async fn read_file(
    workspace: &Workspace,
    request: &ReadRequest,
    images: &ImageOptions,
    cancel: &CancellationToken,
) -> Result<ReadOutcome, ReadError> {
    let path = paths::to_read(&request.path, workspace).await?;
    let reading = Reading { workspace, request, path: &path, cancel };
    let file = reading.open().await?;
    match recognise(&file.sample) {
        Content::Text(_) if file.sample.is_empty() && has_image_name(&path) => {
            Err(reading.binary("an empty file and no image", &file))
        }
        Content::Text(encoding) => reading.text(file, encoding).await.map(ReadOutcome::Text),
        Content::Image(_) if file.file.len > LARGEST_IMAGE => Err(reading.binary("an image that is too large", &file)),
        Content::Image(image) => {
            let bytes = reading.all_bytes(file).await?;
            Ok(ReadOutcome::Image(image::prepare(bytes, image, images).await))
        }
        Content::Binary(what) => Err(reading.binary(what, &file)),
    }
}

fn has_image_name(path: &Path) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|extension| {
        ["png", "jpg", "jpeg", "gif", "webp", "bmp"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

/// A file whose first bytes are known.
struct SampledFile {
    sample: Vec<u8>,
    file: OpenedFile,
}

/// One call of the tool.
struct Reading<'a> {
    workspace: &'a Workspace,
    request: &'a ReadRequest,
    path: &'a Path,
    cancel: &'a CancellationToken,
}

impl Reading<'_> {
    async fn open(&self) -> Result<SampledFile, ReadError> {
        let mut file = self.workspace.files().open(self.path).await.map_err(|error| self.failed(error))?;
        let mut sample = Vec::with_capacity(SAMPLE);
        while sample.len() < SAMPLE {
            let room = SAMPLE - sample.len();
            let read = (&mut file.reader).take(room as u64).read_buf(&mut sample).await;
            if read.map_err(|error| self.failed(error))? == 0 {
                break;
            }
        }
        Ok(SampledFile { sample, file })
    }

    async fn all_bytes(&self, mut file: SampledFile) -> Result<Vec<u8>, ReadError> {
        let mut bytes = file.sample;
        file.file.reader.read_to_end(&mut bytes).await.map_err(|error| self.failed(error))?;
        Ok(bytes)
    }

    async fn text(&self, file: SampledFile, encoding: TextEncoding) -> Result<TextRead, ReadError> {
        let range = Range::of(self.request);
        let (file, total) = if range.counts_from_the_end() {
            let all = self.select(file, encoding, 0, 0).await?;
            (self.open().await?, all.total_lines)
        } else {
            (file, 0)
        };
        let selection = self.select(file, encoding, range.start(), range.end(total)).await?;
        self.present(encoding, range, selection)
    }

    async fn select(
        &self,
        mut file: SampledFile,
        encoding: TextEncoding,
        start: u64,
        end: u64,
    ) -> Result<Selection, ReadError> {
        let mut selector = LineSelector::new(encoding, start, end);
        selector.push(file.sample.get(encoding.mark..).unwrap_or_default());
        let mut buffer = file.sample;
        buffer.reserve(CHUNK);
        loop {
            if self.cancel.is_cancelled() {
                return Err(ReadError::Aborted);
            }
            buffer.clear();
            let read = file.file.reader.read_buf(&mut buffer).await;
            if read.map_err(|error| self.failed(error))? == 0 {
                return Ok(selector.finish());
            }
            selector.push(&buffer);
        }
    }

    fn present(&self, encoding: TextEncoding, range: Range, selection: Selection) -> Result<TextRead, ReadError> {
        let total = selection.total_lines as f64;
        if range.start >= total {
            return Err(ReadError::PastEnd {
                offset: self.request.offset.unwrap_or_default(),
                lines: selection.total_lines,
            });
        }
        let truncation = selection.truncation;
        let first = range.start + 1.0;
        let mut notices = Vec::new();
        if truncation.first_line_exceeds_limit {
            let path = shell_quoted(&self.request.path);
            let bytes = selection.first_line_bytes as u64;
            notices.push(Notice::LineTooLong { line: first, bytes, path: &path }.to_string());
        } else if truncation.truncated {
            let last = first + truncation.output_lines as f64 - 1.0;
            let limit = if truncation.truncated_by == Some(TruncatedBy::Bytes) { Limit::Bytes } else { Limit::Lines };
            notices.push(Notice::Lines { first, last, total, limit }.to_string());
        } else if let Some(limit) = self.request.limit {
            // Also for a negative limit, which leaves lines out at the end.
            let shown = (range.start + limit).min(total) - range.start;
            if range.start + shown < total {
                let (left, next) = (total - (range.start + shown), range.start + shown + 1.0);
                notices.push(Notice::MoreLines { left, next }.to_string());
            }
        }
        let name = encoding.encoding.name();
        let is_utf8 = encoding.encoding == encoding_rs::UTF_8;
        if !is_utf8 {
            notices.push(Notice::Decoded(name).to_string());
        }
        if selection.had_odd_bytes {
            notices.push(Notice::OddBytes(name).to_string());
        }
        Ok(TextRead {
            body: truncation.content.clone(),
            notice: (!notices.is_empty()).then(|| notices.join("\n")),
            truncation: truncation.truncated.then_some(truncation),
            encoding: (!is_utf8).then_some(name),
        })
    }

    fn failed(&self, error: std::io::Error) -> ReadError {
        FileError { action: "read", path: self.request.path.clone(), error }.into()
    }

    fn binary(&self, what: &'static str, file: &SampledFile) -> ReadError {
        ReadError::Binary { path: self.request.path.clone(), what, size: file.file.len.max(file.sample.len() as u64) }
    }
}

/// The lines of a request, counted from 0. Fractions and negative numbers mean what they mean to an array's `slice`
/// in JavaScript, where models' habits come from: `limit: -1` is all but the last line.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: f64,
    end: Option<f64>,
}

impl Range {
    fn of(request: &ReadRequest) -> Self {
        let start = request.offset.filter(|offset| *offset != 0.0).map_or(0.0, |offset| (offset - 1.0).max(0.0));
        Self { start, end: request.limit.map(|limit| start + limit) }
    }

    fn start(self) -> u64 {
        self.start as u64
    }

    fn counts_from_the_end(self) -> bool {
        self.end.is_some_and(|end| end <= -1.0)
    }

    /// The first line that is not wanted, in a text of `total` lines.
    fn end(self, total: u64) -> u64 {
        match self.end {
            None => u64::MAX,
            Some(end) if end <= -1.0 => total.saturating_sub(-end as u64),
            // Casting ends at the limits and drops the fraction.
            Some(end) => end as u64,
        }
    }
}

/// A path as a shell reads it.
fn shell_quoted(path: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-+,:@%".contains(character);
    if !path.is_empty() && path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

/// Makes the bytes of a file ready for a model, when they are an image of a known type; else gives them back.
///
/// # Errors
/// The bytes, when they are no image. A broken image is no error: its text says why it is left out.
pub async fn read_image(bytes: Vec<u8>, options: &ImageOptions) -> Result<ImageRead, Vec<u8>> {
    match recognise(&bytes[..bytes.len().min(SAMPLE)]) {
        Content::Image(kind) => Ok(image::prepare(bytes, kind, options).await),
        Content::Text(_) | Content::Binary(_) => Err(bytes),
    }
}
