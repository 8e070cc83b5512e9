//! Totals over a whole session, all branches.

use std::{borrow::Cow, fmt};

use pi_ai::{Usage, json::from_slice_lossy};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};

use crate::session::{
    bytes::read_lines,
    entry::{EntryKind, MessageRole},
    error::SessionError,
    session::Session,
};

/// Totals over a whole session: everything that was said and paid for, on all branches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// Entries, of whatever kind.
    pub entries: usize,
    /// Message entries, of whatever role.
    pub total_messages: usize,
    /// Messages of the user.
    pub user_messages: usize,
    /// Answers of models.
    pub assistant_messages: usize,
    /// Tool calls in those answers.
    pub tool_calls: usize,
    /// Tool results.
    pub tool_results: usize,
    /// Compactions.
    pub compactions: usize,
    /// Entries whose lines are damaged.
    pub damaged: usize,
    /// Tokens and price of answers, tools, summaries and requests outside the conversation.
    pub usage: Usage,
}

impl SessionStats {
    /// All tokens that were paid for.
    pub fn tokens(&self) -> u64 {
        self.usage.all_input().saturating_add(self.usage.output)
    }
}

impl Session {
    /// Totals over the whole session. Reads every entry that has a price, in the calling thread.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn stats(&self) -> Result<SessionStats, SessionError> {
        let mut stats = SessionStats { entries: self.len(), ..SessionStats::default() };
        let mut priced = Vec::new();
        for (_, node) in self.nodes() {
            match node.kind {
                EntryKind::Message(role) => {
                    stats.total_messages += 1;
                    match role {
                        MessageRole::User => stats.user_messages += 1,
                        MessageRole::Assistant => stats.assistant_messages += 1,
                        MessageRole::ToolResult => stats.tool_results += 1,
                        _ => continue,
                    }
                    if role == MessageRole::User {
                        continue;
                    }
                }
                EntryKind::Compaction => stats.compactions += 1,
                EntryKind::BranchSummary | EntryKind::Usage => {}
                EntryKind::Unreadable => {
                    stats.damaged += 1;
                    continue;
                }
                _ => continue,
            }
            priced.push((node.kind, node.place));
        }
        read_lines(&*self.source(), &priced, |kind, line| stats.add(*kind, line)).map_err(SessionError::read)?;
        Ok(stats)
    }
}

impl SessionStats {
    fn add(&mut self, kind: EntryKind, line: &[u8]) {
        let Ok(entry) = from_slice_lossy::<PricedEntry>(line) else {
            self.damaged += 1;
            return;
        };
        if kind == EntryKind::Message(MessageRole::Assistant) {
            self.tool_calls += entry.message.content.0;
        }
        let usages = [entry.usage, entry.message.usage];
        usages.iter().flatten().for_each(|usage| self.usage.add(usage));
    }
}

/// What of an entry counts for the totals; the rest is passed over.
#[derive(Deserialize)]
struct PricedEntry {
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    message: PricedMessage,
}

#[derive(Default, Deserialize)]
struct PricedMessage {
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    content: CallCount,
}

/// How many tool calls a content has. Nothing else of it is kept, so that counting costs no memory.
#[derive(Default)]
struct CallCount(usize);

impl<'de> Deserialize<'de> for CallCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Blocks;
        impl<'de> Visitor<'de> for Blocks {
            type Value = CallCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }
            fn visit_unit<E>(self) -> Result<CallCount, E> {
                Ok(CallCount(0))
            }
            fn visit_str<E>(self, _text: &str) -> Result<CallCount, E> {
                Ok(CallCount(0))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<CallCount, A::Error> {
                let mut calls = 0;
                while let Some(block) = blocks.next_element::<Block<'de>>()? {
                    calls += usize::from(block.kind.as_deref() == Some("toolCall"));
                }
                Ok(CallCount(calls))
            }
        }
        deserializer.deserialize_any(Blocks)
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
}
