//! What a person wants, understood by rules: a table of patterns first, then keywords, then what was said before.

mod follow_up;
mod keywords;
mod pattern;
mod piped;
mod sequence;
mod table;

pub(super) use follow_up::Earlier;
pub(super) use piped::{PIPED, Piped};
pub(super) use sequence::understand;

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Intent {
    /// A greeting.
    Greet,
    /// Thanks, or a remark that asks for nothing.
    Thanks,
    /// What the guide is and can do.
    Help,
    /// What a folder holds.
    Overview { folder: Option<String> },
    /// What the project in a folder is.
    Project { folder: Option<String> },
    /// The parts of a project: crates, packages, modules.
    Members { kind: PartKind, named: Option<String> },
    /// What a file, folder, part or name is.
    Explain { subject: Subject },
    /// The text of a file.
    Read { file: String, lines: Lines },
    /// Where a name is defined.
    Definition { name: String },
    /// Where a text occurs.
    Search { text: String, scope: Option<String>, usage: Usage },
    /// Files by name.
    FindFiles { pattern: String },
    /// Run the tests.
    Tests { scope: Option<String>, command: Option<String> },
    /// Build or check.
    Build,
    /// Run a command that was given.
    Run { command: String },
    /// Replace a text.
    Replace { from: String, to: String, scope: Scope, words: WholeWords },
    /// Add text to a file.
    Insert { text: String, file: String, place: Place },
    /// Make a file. `content` is `None` when none was given.
    Create { file: String, content: Option<String>, existing: Existing },
    /// Make a folder.
    MakeFolder { folder: String },
    /// Move or rename a file.
    Move { from: String, to: String },
    /// Delete a file.
    Delete { file: String },
    /// Count something.
    Count { what: Countable, scope: Option<String> },
    /// A question to git.
    Git(GitQuestion),
    /// What a project depends on.
    Dependencies { of: Option<String> },
    /// Which languages a project is written in.
    Languages,
    /// How something is done in this project.
    HowTo(HowTo),
    /// A fact of the project's manifest.
    Fact { key: String },
    /// The largest files.
    Largest,
    /// A question about text that came through a pipe.
    AboutPiped { text: String, question: PipedQuestion },
    /// A summary of the conversation, for a compaction.
    Summarize,
    /// Several requests in one.
    Several(Vec<Intent>),
    /// Something to which the rest is missing: a file for a request that needs one.
    Missing { what: Missing, request: Box<Intent> },
}

/// What an explanation is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Subject {
    /// A path or a name, as it was said.
    Named(String),
    /// Files that came along with the request.
    Attached,
    /// A place in a file.
    At { file: String, line: usize },
}

/// What is asked about piped text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipedQuestion {
    /// What went wrong.
    Failures,
    /// One of the things that went wrong, counted from 1.
    Failure(usize),
    /// How long it is.
    Size,
}

/// A kind of part that a project is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Any,
    Crates,
    Packages,
    Modules,
}

/// Which lines of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    First(usize),
    Last(usize),
    Range(usize, usize),
}

/// Which occurrences are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    /// Any.
    Text,
    /// Uses of a name, as a whole word.
    Name,
}

/// Whether longer words that contain the text are left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WholeWords {
    Only,
    Anywhere,
}

/// Where something is to be changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scope {
    /// Nothing was said.
    Unsaid,
    /// In a file or folder.
    In(String),
    /// Wherever it occurs.
    Everywhere,
}

/// Where text goes in a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Top,
    End,
    Before(String),
    After(String),
}

/// What happens to a file that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Keep,
    Overwrite,
}

/// Something that can be counted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Countable {
    Lines,
    Words,
    Files { extension: Option<String> },
    Functions,
    Tests,
    Members(PartKind),
    Commits,
    Dependencies,
    Occurrences(String),
}

/// A question to git.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GitQuestion {
    Changes { file: Option<String> },
    Diff { file: Option<String> },
    Log { file: Option<String> },
    LastCommit,
    Branch,
}

/// Something that a project's files may tell how to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HowTo {
    Run,
    Build,
    Test,
    Install,
}

/// What a request lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    File,
    Content,
}

#[cfg(test)]
mod tests;
