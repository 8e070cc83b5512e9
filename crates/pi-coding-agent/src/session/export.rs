//! A branch as a file of its own: lines for programs, Markdown and a page for people.

use std::{
    io::{self, Write},
    path::Path,
};

use pi_ai::{AssistantBlock, Content, InputBlock, Message, Timestamp};

use crate::{
    messages::{CodingMessage, SessionMessage},
    page::SessionPage,
    session::{
        entry::{Entry, EntryBody},
        environment::SessionEnvironment,
        error::SessionError,
        fork::write_new_file,
        header::NewHeader,
        session::Session,
        store::StoreError,
        time::iso,
    },
};

/// In what form a branch is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A session file of the branch alone, which can be opened and imported again.
    Jsonl,
    /// Text for people.
    Markdown,
    /// A page for people, with the other branches and the session's data in it; see
    /// [`SessionPage`](crate::page::SessionPage).
    Html,
}

impl ExportFormat {
    /// The format that a file's name asks for: Markdown for `.md` and `.markdown`, a page for `.html` and `.htm`, else
    /// lines.
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("md" | "markdown") => Self::Markdown,
            Some("html" | "htm") => Self::Html,
            _ => Self::Jsonl,
        }
    }
}

impl Session {
    /// Writes the branch that the session stands on. Reads it from the session's file, in the calling thread.
    ///
    /// # Errors
    /// When the session cannot be read or `sink` fails.
    pub fn export(&self, format: ExportFormat, cwd: &Path, now: Timestamp, sink: &mut dyn Write) -> io::Result<()> {
        match format {
            ExportFormat::Jsonl => self.export_lines(cwd, now, sink),
            ExportFormat::Markdown => self.export_markdown(sink),
            ExportFormat::Html => SessionPage::default().write(self, sink),
        }
    }

    /// Exports into a file that appears whole or not at all.
    ///
    /// # Errors
    /// When the session cannot be read, a page of an empty one is asked for, or there is such a file already.
    pub fn export_to(
        &self,
        path: &Path,
        format: ExportFormat,
        cwd: &Path,
        environment: &SessionEnvironment,
    ) -> Result<(), SessionError> {
        match format {
            ExportFormat::Html => self.export_page_to(path, &SessionPage::default(), environment),
            _ => write_new_file(environment, path, |sink| self.export(format, cwd, environment.clock.now(), sink)),
        }
    }

    /// Writes a page into a file that appears whole or not at all.
    ///
    /// # Errors
    /// When the session cannot be read or is empty, or there is such a file already.
    pub fn export_page_to(
        &self,
        path: &Path,
        page: &SessionPage<'_>,
        environment: &SessionEnvironment,
    ) -> Result<(), SessionError> {
        if self.is_empty() {
            return Err(SessionError::NothingToExport);
        }
        write_new_file(environment, path, |sink| page.write(self, sink))
    }

    fn export_lines(&self, cwd: &Path, now: Timestamp, sink: &mut dyn Write) -> io::Result<()> {
        let cwd = cwd.to_string_lossy();
        sink.write_all(&NewHeader { id: self.id(), timestamp: now, cwd: &cwd, parent_session: None }.line())?;
        let copy = self.plan_export().map_err(io::Error::other)?;
        copy.write(sink)
    }

    fn export_markdown(&self, sink: &mut dyn Write) -> io::Result<()> {
        let title = self.name().map_or_else(|| format!("Session {}", self.id()), str::to_owned);
        writeln!(sink, "# {title}\n")?;
        if let Some(cwd) = &self.header().cwd {
            writeln!(sink, "Folder: `{cwd}`  ")?;
        }
        if let Some(created) = self.header().created {
            writeln!(sink, "Begun: {}", iso(created))?;
        }
        for summary in self.branch() {
            let entry = self.entry(summary.id.as_str()).map_err(io::Error::other)?;
            markdown(&entry, sink)?;
        }
        Ok(())
    }

    /// The branch as text for people, for the screen.
    ///
    /// # Errors
    /// When the session cannot be read.
    pub fn to_markdown(&self) -> Result<String, SessionError> {
        let mut text = Vec::new();
        let written = self.export_markdown(&mut text);
        written.map_err(|error| SessionError::Store(StoreError::new("reading the session", error)))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn markdown(entry: &Entry, sink: &mut dyn Write) -> io::Result<()> {
    match &entry.body {
        EntryBody::Message(message) => message_markdown(&message.message, sink),
        EntryBody::CustomMessage(message) => {
            section(sink, &format!("Extension {}", message.custom_type))?;
            content_markdown(&message.content, sink)
        }
        EntryBody::BranchSummary(summary) => quoted(sink, "Summary of a branch", &summary.summary),
        EntryBody::Compaction(compaction) => {
            quoted(sink, "Summary of the conversation up to here", &compaction.summary)
        }
        EntryBody::ModelChange(change) => note(sink, &format!("Model: {}/{}", change.provider, change.model_id)),
        EntryBody::ThinkingLevelChange(change) => note(sink, &format!("Thinking: {}", change.thinking_level)),
        EntryBody::Unreadable => note(sink, &format!("Entry {} is damaged; what it said is lost.", entry.id)),
        // State, marks and names are not part of what was said.
        _ => Ok(()),
    }
}

fn message_markdown(message: &SessionMessage, sink: &mut dyn Write) -> io::Result<()> {
    match message {
        SessionMessage::Llm(Message::System(_)) | SessionMessage::Unknown(_) => Ok(()),
        SessionMessage::Llm(Message::User(user)) => {
            section(sink, "User")?;
            content_markdown(&user.content, sink)
        }
        SessionMessage::Llm(Message::Assistant(assistant)) => {
            section(sink, &format!("Assistant ({})", assistant.model))?;
            for block in &assistant.content {
                match block {
                    AssistantBlock::Text(text) => writeln!(sink, "{}\n", text.text.trim_end())?,
                    AssistantBlock::ToolCall(call) => {
                        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
                        writeln!(sink, "Calls `{}`:\n", call.name)?;
                        fenced(sink, "json", &arguments)?;
                    }
                    AssistantBlock::Thinking(_) | AssistantBlock::Unknown(_) => {}
                }
            }
            match &assistant.error_message {
                Some(error) => note(sink, &format!("Failed: {error}")),
                None => Ok(()),
            }
        }
        SessionMessage::Llm(Message::ToolResult(result)) => {
            let failed = if result.is_error { " (failed)" } else { "" };
            section(sink, &format!("Result of {}{failed}", result.tool_name))?;
            blocks_markdown(&result.content, sink)
        }
        SessionMessage::Custom(custom) => match &**custom {
            CodingMessage::BashExecution(bash) => {
                section(sink, "Shell")?;
                fenced(sink, "console", &format!("$ {}\n{}", bash.command, bash.output))
            }
            CodingMessage::Custom(custom) => {
                section(sink, &format!("Extension {}", custom.custom_type))?;
                content_markdown(&custom.content, sink)
            }
            CodingMessage::BranchSummary(summary) => quoted(sink, "Summary of a branch", &summary.summary),
            CodingMessage::CompactionSummary(summary) => {
                quoted(sink, "Summary of the conversation up to here", &summary.summary)
            }
        },
    }
}

fn section(sink: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(sink, "\n## {title}\n")
}

fn note(sink: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(sink, "\n*{text}*")
}

fn quoted(sink: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    section(sink, title)?;
    text.lines().try_for_each(|line| writeln!(sink, "> {line}"))
}

fn content_markdown(content: &Content, sink: &mut dyn Write) -> io::Result<()> {
    match content {
        Content::Text(text) => writeln!(sink, "{}", text.trim_end()),
        Content::Blocks(blocks) => blocks.iter().try_for_each(|block| match block {
            InputBlock::Text(text) => writeln!(sink, "{}\n", text.text.trim_end()),
            other => picture(other, sink),
        }),
    }
}

/// What tools give back is no Markdown, so it is shown as it is.
fn blocks_markdown(blocks: &[InputBlock], sink: &mut dyn Write) -> io::Result<()> {
    blocks.iter().try_for_each(|block| match block {
        InputBlock::Text(text) => fenced(sink, "", &text.text),
        other => picture(other, sink),
    })
}

fn picture(block: &InputBlock, sink: &mut dyn Write) -> io::Result<()> {
    match block {
        InputBlock::Image(image) => writeln!(sink, "*A picture ({}).*\n", image.mime_type),
        InputBlock::Text(_) | InputBlock::Unknown(_) => Ok(()),
    }
}

fn fenced(sink: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let fence = crate::messages::fence_for(text);
    writeln!(sink, "{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
