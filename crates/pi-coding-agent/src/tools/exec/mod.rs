//! Running commands for tools and for people: output, updates, and what a result says.

mod accumulator;
mod clean;
mod report;
mod run;

pub(crate) use accumulator::{FullOutput, OutputAccumulator, Snapshot};
pub(crate) use clean::TextCleaner;
pub(crate) use report::{
    CutShort, NO_OUTPUT, Report, add_paragraph, cut_short_line, exit_line, shown_output, survivors_line,
};
pub(crate) use run::{Execution, Watch, execute};
