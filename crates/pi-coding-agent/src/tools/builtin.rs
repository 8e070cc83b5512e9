//! The built-in tools by name: what the prompt says about each, and how each is made.

use std::sync::Arc;

use pi_agent_core::AgentTool;

use super::bash::{BashOptions, BashTool};
use super::edit::EditTool;
use super::find::FindTool;
use super::grep::GrepTool;
use super::ls::LsTool;
use super::mutation_queue::MutationQueue;
use super::read::{ReadImages, ReadTool};
use super::write::WriteTool;
use crate::workspace::Workspace;

/// A built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuiltinTool {
    /// Reads files.
    Read,
    /// Runs commands.
    Bash,
    /// Replaces text in files.
    Edit,
    /// Writes files.
    Write,
    /// Searches the contents of files.
    Grep,
    /// Finds files by name.
    Find,
    /// Lists directories.
    Ls,
}

/// What the system prompt says about a tool while it is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptContribution {
    /// One line in the list of tools.
    pub snippet: &'static str,
    /// Rules for its use.
    pub guidelines: &'static [&'static str],
}

/// What the built-in tools are made from.
#[derive(Clone, Debug)]
pub struct ToolSetup {
    /// What they can reach.
    pub workspace: Workspace,
    /// Shared by all tools that change files.
    pub mutations: MutationQueue,
    /// How images are read.
    pub images: ReadImages,
    /// How commands run; its facts are used by other tools, too.
    pub bash: BashOptions,
}

impl ToolSetup {
    /// The usual set-up for a workspace.
    #[must_use]
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            mutations: MutationQueue::default(),
            images: ReadImages::default(),
            bash: BashOptions::default(),
        }
    }
}

impl BuiltinTool {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 7] = [Self::Read, Self::Bash, Self::Edit, Self::Write, Self::Grep, Self::Find, Self::Ls];

    /// The name that the model calls.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Bash => "bash",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Grep => "grep",
            Self::Find => "find",
            Self::Ls => "ls",
        }
    }

    /// The tool of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// What the system prompt says about it.
    #[must_use]
    pub fn prompt(self) -> PromptContribution {
        match self {
            Self::Read => PromptContribution {
                snippet: "Read files and look at images",
                guidelines: &["Look at files with read, not with cat or sed."],
            },
            Self::Bash => PromptContribution {
                snippet: "Run shell commands",
                guidelines: &["The environment variables PI_* tell a command about this session and its model."],
            },
            Self::Edit => PromptContribution {
                snippet: "Replace exact pieces of text in a file, several in one call",
                guidelines: &[
                    "Change existing files with edit, all changes to one file in one call.",
                    "Keep each oldText as short as it can be while it occurs only once in the file; join changes that touch.",
                ],
            },
            Self::Write => PromptContribution {
                snippet: "Create files, or replace them as a whole",
                guidelines: &["Use write for new files and for complete rewrites only."],
            },
            Self::Grep => PromptContribution {
                snippet: "Search the contents of files (leaves out what .gitignore excludes)",
                guidelines: &[],
            },
            Self::Find => PromptContribution {
                snippet: "Find files by glob (leaves out what .gitignore excludes)",
                guidelines: &[],
            },
            Self::Ls => PromptContribution { snippet: "List directories", guidelines: &[] },
        }
    }

    /// Makes it.
    #[must_use]
    pub fn build(self, setup: &ToolSetup) -> Arc<dyn AgentTool> {
        let workspace = setup.workspace.clone();
        let queue = setup.mutations.clone();
        match self {
            Self::Read => Arc::new(ReadTool::new(workspace, setup.images, setup.bash.facts.clone())),
            Self::Bash => Arc::new(BashTool::new(workspace, setup.bash.clone())),
            Self::Edit => Arc::new(EditTool::new(workspace, queue)),
            Self::Write => Arc::new(WriteTool::new(workspace, queue)),
            Self::Grep => Arc::new(GrepTool::new(workspace)),
            Self::Find => Arc::new(FindTool::new(workspace)),
            Self::Ls => Arc::new(LsTool::new(workspace)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::memory::memory_workspace;

    #[test]
    fn every_tool_declares_the_name_it_is_known_by() {
        let setup = ToolSetup::new(memory_workspace("/p", [("/p/a", "")]));
        for tool in BuiltinTool::ALL {
            assert_eq!(tool.build(&setup).declaration().name, tool.name());
            assert_eq!(BuiltinTool::from_name(tool.name()), Some(tool));
        }
    }
}
