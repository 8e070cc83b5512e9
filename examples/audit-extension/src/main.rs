//! State that an extension keeps in a session: `cargo run -p example-audit-extension`.
//!
//! Each result of a tool leaves a note in the session's record. The note has a renderer, and no model ever sees it.

use std::error::Error;

use pi_agent_core::{Tool, ToolArguments, ToolContext};
use pi_ai::{
    ToolDeclaration,
    faux::{FauxProvider, FauxReply},
};
use pi_coding_agent::{
    agent_session::AgentSession,
    extensions::{ExtensionApi, RenderOptions, event},
    resources::{Theme, ThemeToken},
    sdk::{SessionOptions, create_agent_session},
    session::{EntryBody, EntryKind, SessionManager},
    styled_text::{Span, StyledText},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The extension's name for its entries.
const NOTE: &str = "audit-note";

#[derive(Serialize, Deserialize)]
struct AuditNote {
    tool: String,
    failed: bool,
    at: u64,
}

fn audit(pi: &mut ExtensionApi) {
    pi.on(event::ToolResult, async |event, ctx| {
        let note = AuditNote { tool: event.tool_name, failed: event.is_error, at: ctx.now().as_millis() };
        ctx.append_entry(NOTE, note).await?;
        // Nothing is answered: the result stays as it is.
        Ok(())
    });
    pi.register_entry_renderer::<AuditNote>(NOTE, |entry, options, _theme| {
        let note = &entry.data;
        let outcome = match note.failed {
            true => Span::token(" failed", ThemeToken::Error),
            false => Span::token(" ok", ThemeToken::Success),
        };
        let mut text =
            StyledText::line([Span::token("[audit] ", ThemeToken::Accent), Span::plain(&note.tool), outcome]);
        if options.is_expanded() {
            text.push_line([Span::token(format!("at {} ms", note.at), ThemeToken::Dim)]);
        }
        text
    });
}

fn deploy() -> Tool {
    let declaration = ToolDeclaration::new("deploy", "Deploys the service.", json!({"type": "object"}));
    Tool::from_declaration(declaration, async |_: ToolArguments, _: ToolContext| Ok("deployed"))
}

async fn audited(model: FauxProvider) -> Result<AgentSession, Box<dyn Error>> {
    let options = SessionOptions::default()
        .stream_fn(model)
        .model(FauxProvider::model())
        .session_manager(SessionManager::in_memory())
        .tool(deploy())
        .extension(audit);
    let session = create_agent_session(options).await?;
    session.prompt("Deploy it.").await?;
    Ok(session)
}

/// The notes of a session, drawn as text.
fn drawn(session: &AgentSession, options: RenderOptions) -> Result<Vec<String>, Box<dyn Error>> {
    let manager = session.session_manager();
    let mut drawn = Vec::new();
    for entry in manager.branch_entries().into_iter().filter(|entry| entry.kind == EntryKind::Custom) {
        let EntryBody::Custom(custom) = manager.entry(entry.id.as_str())?.body else { continue };
        let text = session.extensions().render_entry(&entry.id, &custom, options, &Theme::dark());
        drawn.extend(text.map(|text| text.to_string()));
    }
    Ok(drawn)
}

fn script() -> FauxProvider {
    FauxProvider::new([FauxReply::tool_call("deploy", json!({})), FauxReply::text("It is deployed.")])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let session = audited(script()).await?;
    for text in drawn(&session, RenderOptions::EXPANDED)? {
        println!("{text}");
    }
    session.dispose().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_note_is_in_the_record_and_in_no_request() {
        let model = script();
        let session = audited(model.clone()).await.unwrap();
        assert_eq!(drawn(&session, RenderOptions::COLLAPSED).unwrap(), ["[audit] deploy ok"]);
        assert!(drawn(&session, RenderOptions::EXPANDED).unwrap()[0].contains("\nat "));
        assert_eq!(model.requests().len(), 2);
        assert!(!format!("{:?}", model.requests()).contains(NOTE));
    }
}
