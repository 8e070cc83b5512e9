//! What a subscription's token asks for: it is given to one client, and requests must look like that client's.

use std::borrow::Cow;

use crate::{api::EncodeRequest, tool::ToolDeclaration};

/// The tools of that client, as it writes their names.
const TOOL_NAMES: [&str; 17] = [
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillShell",
    "NotebookEdit",
    "Skill",
    "Task",
    "TaskOutput",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
];

/// The client's version, as it names itself.
pub(super) const USER_AGENT: &str = "claude-cli/2.1.322";

/// The prompt that it begins with. The service checks it.
pub(super) const IDENTITY: &str = "You are Claude Code, Anthropic's official CLI for Claude.";

/// How a request authenticates, and so how names are written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// With a key of the API, or a header.
    Key,
    /// With a subscription's token.
    Subscription,
}

impl Access {
    fn of(key: Option<&str>, provider: &str) -> Self {
        match key {
            Some(key) if key.contains("sk-ant-oat") && provider != "github-copilot" => Self::Subscription,
            _ => Self::Key,
        }
    }

    /// How a request authenticates.
    pub(super) fn of_request(request: &EncodeRequest<'_>) -> Self {
        Self::of(request.options.api_key.as_ref().map(|key| key.expose()), &request.model.provider)
    }

    /// A tool's name on the wire.
    pub(super) fn wire_name(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::Key => Cow::Borrowed(name),
            Self::Subscription => {
                let known = TOOL_NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name));
                Cow::Borrowed(known.unwrap_or(name))
            }
        }
    }

    /// The tool that a name on the wire means.
    pub(super) fn own_name(self, name: &str, tools: &[ToolDeclaration]) -> String {
        let matching = |tool: &&ToolDeclaration| tool.name.to_lowercase() == name.to_lowercase();
        match tools.iter().find(matching) {
            Some(tool) if self == Self::Subscription => tool.name.clone(),
            _ => name.to_owned(),
        }
    }
}
