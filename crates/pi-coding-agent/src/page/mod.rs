//! A session as a page for people: one file that needs nothing from elsewhere and runs nothing.
//!
//! The branch that the session stands on is the page; other branches are folded away below it. Everything that came from
//! outside is escaped, and a policy in the page forbids scripts and the network, should something slip through. The data
//! of the session is in the page, too, base64-encoded, so that a program can take it out again.

mod entry;
mod style;
mod text;

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, Write},
};

use base64::{engine::general_purpose::STANDARD, write::EncoderWriter};
use pi_ai::{
    Message, Timestamp,
    transcript::{current_system_prompt, current_tools},
};
use serde_json::json;
use text::{escaped, headline, push_lines};

use crate::{
    messages::CustomContent,
    resources::Theme,
    session::{CustomEntry, EntryBody, EntryId, EntryKind, Session, write_time},
    styled_text::StyledText,
};

/// What the page may load: styles and pictures that stand in it.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'";

/// How what extensions keep and say looks.
pub trait Drawing {
    /// An entry. `None`: nobody says how it looks, and it is not shown.
    fn entry(&self, id: &EntryId, entry: &CustomEntry) -> Option<Drawn>;

    /// A message. `None`: nobody says how it looks, and its text is shown.
    fn message(&self, message: &CustomContent) -> Option<Drawn>;
}

/// Something of an extension, drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The gist.
    pub collapsed: StyledText,
    /// Everything.
    pub expanded: StyledText,
}

/// Writes sessions as pages.
pub struct SessionPage<'a> {
    theme: Theme,
    drawing: Option<&'a dyn Drawing>,
}

impl Default for SessionPage<'_> {
    fn default() -> Self {
        Self { theme: Theme::dark(), drawing: None }
    }
}

impl std::fmt::Debug for SessionPage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionPage").field("theme", &self.theme.name).finish_non_exhaustive()
    }
}

impl<'a> SessionPage<'a> {
    /// The page's colours. Default: those of the dark theme.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.theme = theme;
        self
    }

    /// How what extensions keep and say looks. Default: what they keep is not shown, what they say is shown as text.
    #[must_use]
    pub fn drawing(mut self, drawing: &'a dyn Drawing) -> Self {
        self.drawing = Some(drawing);
        self
    }

    /// Writes the page, entry by entry.
    ///
    /// # Errors
    /// When the session cannot be read, has no entries, or `sink` fails.
    pub fn write(&self, session: &Session, sink: &mut dyn Write) -> io::Result<()> {
        if session.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the session is empty: there is nothing to show"));
        }
        let places = Places::of(session);
        self.head(session, sink)?;
        self.outline(session, &places, sink)?;
        writeln!(sink, "<main>")?;
        facts(session, sink)?;
        for id in &places.branch {
            sink.write_all(self.entry(session, id, &places)?.as_bytes())?;
        }
        for side in &places.sides {
            self.side(session, side, &places, sink)?;
        }
        writeln!(sink, "</main>")?;
        data(session, sink)?;
        writeln!(sink, "</body></html>")
    }

    fn head(&self, session: &Session, sink: &mut dyn Write) -> io::Result<()> {
        writeln!(
            sink,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{}</title>\n<style>{}</style></head><body>",
            title(session),
            style::sheet(&self.theme)
        )
    }

    /// What was said and where it branched, beside the conversation.
    fn outline(&self, session: &Session, places: &Places, sink: &mut dyn Write) -> io::Result<()> {
        writeln!(sink, "<nav><ol>")?;
        for id in &places.branch {
            let Some(line) = outline_line(session, id)? else { continue };
            writeln!(sink, "<li><a href=\"#e{}\">{line}</a></li>", places.number(id))?;
        }
        for (index, side) in places.sides.iter().enumerate() {
            let count = side.entries.len();
            writeln!(sink, "<li class=\"deep\"><a href=\"#b{index}\">Another branch, {count} entries</a></li>")?;
        }
        writeln!(sink, "</ol></nav>")
    }

    fn entry(&self, session: &Session, id: &EntryId, places: &Places) -> io::Result<String> {
        let entry = session.entry(id.as_str()).map_err(io::Error::other)?;
        let time = session.summary(id.as_str()).and_then(|summary| summary.timestamp);
        let shown =
            Shown { number: places.number(id), label: session.label(id.as_str()).map(|mark| mark.text.as_str()), time };
        Ok(entry::entry(&entry, &shown, self.drawing))
    }

    fn side(&self, session: &Session, side: &Side, places: &Places, sink: &mut dyn Write) -> io::Result<()> {
        let from = match &side.from {
            Some(from) => format!("that left <a href=\"#e{}\">here</a>", places.number(from)),
            None => "from the beginning".to_owned(),
        };
        let (index, count) = (side.index, side.entries.len());
        writeln!(
            sink,
            "<details class=\"branch\" id=\"b{index}\"><summary>Another branch {from}, {count} entries</summary>"
        )?;
        let mut before = side.from.clone();
        for id in &side.entries {
            let parent = session.summary(id.as_str()).and_then(|summary| summary.parent_id);
            if parent != before
                && let Some(parent) = &parent
            {
                writeln!(sink, "<p class=\"note\">After <a href=\"#e{}\">this one</a>:</p>", places.number(parent))?;
            }
            sink.write_all(self.entry(session, id, places)?.as_bytes())?;
            before = Some(id.clone());
        }
        writeln!(sink, "</details>")
    }
}

/// What is shown of an entry besides its content.
struct Shown<'a> {
    /// Its place in the file: ids come from outside and do not go into links.
    number: usize,
    label: Option<&'a str>,
    time: Option<Timestamp>,
}

/// Where each entry stands.
struct Places {
    numbers: HashMap<EntryId, usize>,
    branch: Vec<EntryId>,
    sides: Vec<Side>,
}

/// A branch that the session does not stand on, with what branched off it.
struct Side {
    index: usize,
    /// The entry that it left.
    from: Option<EntryId>,
    /// In the order of the file.
    entries: Vec<EntryId>,
}

impl Places {
    fn of(session: &Session) -> Self {
        let numbers: HashMap<EntryId, usize> =
            session.entries().enumerate().map(|(number, entry)| (entry.id, number)).collect();
        let branch: Vec<EntryId> = session.branch().into_iter().map(|entry| entry.id).collect();
        // Which branch an entry belongs to; `None`: the one that the session stands on.
        let mut side_of: HashMap<EntryId, Option<usize>> = branch.iter().map(|id| (id.clone(), None)).collect();
        let mut sides: Vec<Side> = Vec::new();
        for entry in session.entries() {
            if side_of.contains_key(&entry.id) {
                continue;
            }
            let side = match entry.parent_id.as_ref().and_then(|parent| side_of.get(parent)) {
                Some(Some(side)) => *side,
                _ => {
                    sides.push(Side { index: sides.len(), from: entry.parent_id.clone(), entries: Vec::new() });
                    sides.len() - 1
                }
            };
            side_of.insert(entry.id.clone(), Some(side));
            if let Some(side) = sides.get_mut(side) {
                side.entries.push(entry.id);
            }
        }
        Self { numbers, branch, sides }
    }

    fn number(&self, id: &EntryId) -> usize {
        self.numbers.get(id).copied().unwrap_or_default()
    }
}

fn title(session: &Session) -> String {
    escaped(&session.name().map_or_else(|| format!("Session {}", session.id()), str::to_owned))
}

/// A line for the outline; `None` for what is no landmark.
fn outline_line(session: &Session, id: &EntryId) -> io::Result<Option<String>> {
    let label = session.label(id.as_str()).map(|mark| format!("<span class=\"label\">{}</span> ", escaped(&mark.text)));
    let is_landmark = session.summary(id.as_str()).is_some_and(|summary| {
        use crate::session::MessageRole;
        matches!(summary.kind, EntryKind::Message(MessageRole::User) | EntryKind::Compaction | EntryKind::BranchSummary)
    });
    if !is_landmark && label.is_none() {
        return Ok(None);
    }
    let entry = session.entry(id.as_str()).map_err(io::Error::other)?;
    let text = match &entry.body {
        EntryBody::Message(message) => match message.message.as_llm() {
            Some(Message::User(user)) => headline(&user.content.text()),
            _ => headline(&crate::messages::message_text(&message.message)),
        },
        EntryBody::Compaction(_) => "Summary up to here".to_owned(),
        EntryBody::BranchSummary(_) => "Summary of a branch".to_owned(),
        _ => "Entry".to_owned(),
    };
    Ok(Some(format!("{}{text}", label.unwrap_or_default())))
}

/// What holds for the session as a whole: its folder, its prompt and its tools, as the transcript has them.
fn facts(session: &Session, sink: &mut dyn Write) -> io::Result<()> {
    let mut html = format!("<h1>{}</h1>\n<section class=\"facts\"><dl>", title(session));
    let mut fact = |name: &str, value: &str| {
        let _ = write!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    };
    fact("Session", session.id().as_str());
    if let Some(cwd) = &session.header().cwd {
        fact("Folder", cwd);
    }
    if let Some(created) = session.header().created {
        fact("Begun", &write_time(created));
    }
    if let Some(parent) = &session.header().parent_session {
        fact("Comes from", parent);
    }
    html.push_str("</dl>\n");
    let messages = session.projection().messages();
    let prompt = current_system_prompt(messages);
    if !prompt.trim().is_empty() {
        html.push_str("<details><summary>System prompt</summary>\n");
        push_lines(&mut html, "text", &prompt);
        html.push_str("</details>\n");
    }
    let tools = current_tools(messages);
    if !tools.is_empty() {
        let _ = writeln!(html, "<details><summary>{} tools</summary>", tools.len());
        for tool in &tools {
            let _ = writeln!(html, "<details><summary><code>{}</code></summary>", escaped(&tool.name));
            push_lines(&mut html, "text", &tool.description);
            let _ = writeln!(html, "<pre class=\"code\">{}</pre></details>", text::json(&tool.parameters));
        }
        html.push_str("</details>\n");
    }
    html.push_str("</section>\n");
    sink.write_all(html.as_bytes())
}

/// The session's own lines, for programs: header, entries, leaf, prompt and tools as base64 of JSON.
fn data(session: &Session, sink: &mut dyn Write) -> io::Result<()> {
    write!(sink, "<script type=\"application/json;base64\" id=\"session-data\">")?;
    let mut encoder = EncoderWriter::new(&mut *sink, &STANDARD);
    encoder.write_all(b"{\"header\":")?;
    serde_json::to_writer(&mut encoder, &session.header().fields)?;
    encoder.write_all(b",\"entries\":[")?;
    let mut first = true;
    for entry in session.entries() {
        let line = session.line(entry.id.as_str()).map_err(io::Error::other)?;
        // A damaged line would spoil the data of all others.
        if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_err() {
            continue;
        }
        if !std::mem::take(&mut first) {
            encoder.write_all(b",")?;
        }
        encoder.write_all(&line)?;
    }
    let messages = session.projection().messages();
    let rest = json!({
        "leafId": session.leaf_id(),
        "systemPrompt": current_system_prompt(messages),
        "tools": current_tools(messages),
    });
    let rest = rest.to_string();
    encoder.write_all(b"],")?;
    encoder.write_all(rest.strip_prefix('{').unwrap_or(&rest).as_bytes())?;
    encoder.finish()?;
    drop(encoder);
    writeln!(sink, "</script>")
}
