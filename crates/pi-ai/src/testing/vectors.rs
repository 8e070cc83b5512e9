//! Vector files: JSON arrays of cases with a name, an input and the expected output.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::expect::Comparer;

/// One case of a vector file.
#[derive(Clone, Debug, Deserialize)]
pub struct Vector {
    /// What the case shows.
    pub name: String,
    /// What the runner gets.
    pub input: Value,
    /// What its output is compared with; may hold the placeholders of [`super::expect`].
    pub expected: Value,
}

/// The cases of one vector file.
///
/// # Errors
///
/// Says which file could not be read, or where it is not a list of cases.
pub fn load(path: &Path) -> Result<Vec<Vector>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: not a list of cases: {error}", path.display()))
}

/// Runs every case of one file and returns a line per failure.
///
/// `run` gets each case's input; `None` from it means that it has no runner for this file, which is a failure here.
///
/// # Errors
///
/// As [`load`].
pub fn failures(path: &Path, area: &str, run: impl Fn(&Value) -> Option<Value>) -> Result<Vec<String>, String> {
    let failures = load(path)?.into_iter().filter_map(|case| {
        let difference = match run(&case.input) {
            Some(actual) => Comparer::for_area(area).mismatch(&case.expected, &actual)?,
            None => "no runner".to_owned(),
        };
        Some(format!("{} / {}: {difference}", path.display(), case.name))
    });
    Ok(failures.collect())
}
