//! Reading files that have to be regular ones: opening a named pipe would wait for its writer, and a device may never end.

use std::{io, path::Path};

/// All bytes of a regular file, or of what a link leads to.
///
/// # Errors
/// Those of the file system; [`io::ErrorKind::InvalidInput`] for what is no regular file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file_type = std::fs::metadata(path)?.file_type();
    if !file_type.is_file() {
        let what = if file_type.is_dir() { "a folder" } else { "a named pipe, a device or a socket" };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")));
    }
    std::fs::read(path)
}
