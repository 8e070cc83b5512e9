//! What a tool says when a file cannot be used.

use std::fmt;
use std::io;

/// A file that could not be used, with the path as the model wrote it.
#[derive(Debug)]
pub struct FileError {
    /// What was to be done with it: `read`, `write`, `edit`, `list`.
    pub action: &'static str,
    /// The path as it was given.
    pub path: String,
    /// What the file system said.
    pub error: io::Error,
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Escaped: names differ in spaces and marks that nobody sees.
        write!(formatter, "Could not {} {:?}: {}", self.action, self.path, reason(&self.error))?;
        match code(&self.error) {
            Some(code) => write!(formatter, " ({code})."),
            None => formatter.write_str("."),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The reason in words, the same on every system where it is a usual one.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::NotADirectory if error.get_ref().is_none() => "a part of the path is not a directory".to_owned(),
        io::ErrorKind::PermissionDenied if error.get_ref().is_none() => "permission denied".to_owned(),
        _ => {
            // The operating system's own text ends with its number, which the name says better.
            let text = error.to_string();
            text.split_once(" (os error").map_or(text.clone(), |(text, _)| text.to_owned())
        }
    }
}

/// The name that the error has in the system's own terms.
fn code(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::IsADirectory => "EISDIR",
        io::ErrorKind::NotADirectory => "ENOTDIR",
        io::ErrorKind::AlreadyExists => "EEXIST",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::ReadOnlyFilesystem => "EROFS",
        io::ErrorKind::InvalidFilename => "ENAMETOOLONG",
        io::ErrorKind::FileTooLarge => "EFBIG",
        io::ErrorKind::QuotaExceeded => "EDQUOT",
        io::ErrorKind::ExecutableFileBusy => "ETXTBSY",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_shown_so_that_invisible_characters_can_be_told() {
        let error = FileError { action: "read", path: "a\u{202f}b".to_owned(), error: io::ErrorKind::NotFound.into() };
        assert_eq!(error.to_string(), r#"Could not read "a\u{202f}b": no such file or directory (ENOENT)."#);
    }
}
