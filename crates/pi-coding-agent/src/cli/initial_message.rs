//! The first prompt: standard input, then `@files`, then the first word.

use std::{
    io,
    path::{Path, PathBuf},
};

use pi_ai::ImageContent;

use crate::{
    agent_session::SessionPrompt,
    host::Host,
    regular_file,
    resources::expand_home,
    tools::read::{ImageOptions, read_image},
};

/// A file that the command line names cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("@{named}: {reason}{}", hint(.path))]
pub struct FileArgumentError {
    /// As it was written.
    pub named: String,
    /// Where it was looked for.
    pub path: PathBuf,
    /// What went wrong.
    pub reason: String,
}

fn hint(path: &Path) -> String {
    format!(" ({})", path.display())
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "a word that begins with @ names a file to send along",
        io::ErrorKind::IsADirectory => "name the files in it, or give its path without the @",
        io::ErrorKind::InvalidInput => "pipe its text into standard input instead",
        _ => "only files that can be read are sent along",
    }
}

/// Puts the first prompt together, without a separator between its parts. `None` when there is nothing to say.
///
/// # Errors
/// When a file cannot be read, or is neither text nor a picture.
pub async fn initial_message(
    host: &Host,
    stdin: Option<String>,
    files: &[String],
    first_word: Option<String>,
) -> Result<Option<SessionPrompt>, FileArgumentError> {
    let mut prompt = SessionPrompt { text: stdin.unwrap_or_default(), images: Vec::new() };
    for named in files {
        add_file(host, named, &mut prompt).await?;
    }
    prompt.text.push_str(&first_word.unwrap_or_default());
    Ok((!prompt.text.is_empty() || !prompt.images.is_empty()).then_some(prompt))
}

async fn add_file(host: &Host, named: &str, prompt: &mut SessionPrompt) -> Result<(), FileArgumentError> {
    let path = host.cwd.join(expand_home(Path::new(named), host.home.as_deref()));
    let failed = |reason: String| FileArgumentError { named: named.to_owned(), path: path.clone(), reason };
    let file = path.clone();
    let bytes = tokio::task::spawn_blocking(move || regular_file::read(&file))
        .await
        .unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
        .map_err(|error| failed(format!("cannot be read: {error}; {}", remedy(&error))))?;
    if bytes.is_empty() {
        return Ok(());
    }
    let name = path.display();
    let bytes = match read_image(bytes, &ImageOptions::default()).await {
        Ok(read) => {
            prompt.text.push_str(&format!("<file name=\"{name}\">{}</file>\n", read.text));
            let image =
                read.image.map(|image| ImageContent { data: image.data, mime_type: image.mime_type.to_owned() });
            prompt.images.extend(image);
            return Ok(());
        }
        Err(bytes) => bytes,
    };
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).map(<[u8]>::to_vec).unwrap_or(bytes);
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(format!(
            "is neither UTF-8 text nor a known kind of picture (another byte at offset {at}); convert it to UTF-8, or \
             give its path without the @ and have the model read it"
        ))
    })?;
    prompt.text.push_str(&format!("<file name=\"{name}\">\n{text}\n</file>\n"));
    Ok(())
}
