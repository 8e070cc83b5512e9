//! How each request is fulfilled: plain functions that ask the desk for facts and compose an answer from them.

mod change;
mod command;
mod count;
mod explain;
mod find;
mod git;
mod overview;
mod parts;
mod project;
mod read;
mod replace;
mod summary;
mod talk;
mod tests;
mod text;

use super::{
    desk::{Ask, Desk, Stop, Trouble},
    intent::{Intent, Missing, Subject},
};

pub(super) use talk::not_understood;

/// Fulfils a request: an answer, or a wish for more facts.
pub(super) fn perform(intent: &Intent, desk: &mut Desk<'_>) -> Ask<String> {
    match intent {
        Intent::Greet => Ok(talk::greeting()),
        Intent::Thanks => Ok(talk::thanks()),
        Intent::Help => Ok(talk::help(desk)),
        Intent::Overview { folder } => overview::folder(desk, folder.as_deref()),
        Intent::Project { folder } => overview::project(desk, folder.as_deref()),
        Intent::Members { kind, named } => parts::members(desk, *kind, named.as_deref()),
        Intent::Explain { subject } => match subject {
            Subject::Named(name) => explain::named(desk, name),
            Subject::Attached => Ok(explain::attached(desk)),
            Subject::At { file, line } => explain::place(desk, file, *line),
        },
        Intent::Read { file, lines } => read::read(desk, file, *lines),
        Intent::Definition { name } => find::definition(desk, name),
        Intent::Search { text, scope, usage } => find::search(desk, text, scope.as_deref(), *usage),
        Intent::FindFiles { pattern } => find::files(desk, pattern),
        Intent::Tests { scope, command } => tests::run(desk, scope.as_deref(), command.as_deref()),
        Intent::Build => command::build(desk),
        Intent::Run { command } => command::run(desk, command),
        Intent::Replace { from, to, scope, words } => replace::replace(desk, from, to, scope, *words),
        Intent::Insert { text, file, place } => change::insert(desk, text, file, place),
        Intent::Create { file, content, existing } => change::create(desk, file, content.as_deref(), *existing),
        Intent::MakeFolder { folder } => change::make_folder(desk, folder),
        Intent::Move { from, to } => change::rename(desk, from, to),
        Intent::Delete { file } => change::delete(desk, file),
        Intent::Count { what, scope } => count::count(desk, what, scope.as_deref()),
        Intent::Git(question) => git::answer(desk, question),
        Intent::Dependencies { of } => project::dependencies(desk, of.as_deref()),
        Intent::Languages => project::languages(desk),
        Intent::HowTo(what) => project::how_to(desk, *what),
        Intent::Fact { key } => project::fact(desk, key),
        Intent::Largest => project::largest(desk),
        Intent::AboutPiped { text, question } => Ok(tests::about_piped(text, *question)),
        Intent::Summarize => Ok(summary::summarize(&desk.conversation.request)),
        Intent::Several(all) => several(all, desk),
        Intent::Missing { what, request } => Ok(missing(*what, request)),
    }
}

/// One after the other; a request that cannot be fulfilled does not stop the next one.
fn several(all: &[Intent], desk: &mut Desk<'_>) -> Ask<String> {
    let mut answers = Vec::new();
    for intent in all {
        match perform(intent, desk) {
            Ok(answer) => answers.push(answer),
            Err(Stop::Wait) => return Err(Stop::Wait),
            Err(Stop::Trouble(trouble)) => answers.push(explain_trouble(&trouble)),
        }
    }
    Ok(answers.join("\n\n"))
}

fn missing(what: Missing, request: &Intent) -> String {
    match (what, request) {
        (Missing::Content, Intent::Create { file, .. }) => format!(
            "I can write `{file}`, but I cannot make up what goes into it: I follow rules and am no language model. Give me \
             the text, for example: create `{file}` with \"…\", or with the content in a ``` block."
        ),
        (Missing::Content, _) => {
            "I need both texts. For example: replace \"old\" by \"new\" in `notes.txt`.".to_owned()
        }
        (Missing::File, _) => "In which file? Tell me its name.".to_owned(),
    }
}

/// What to tell a person when something cannot be done.
pub(super) fn explain_trouble(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NoTool { need, any_of } => format!(
            "I need a tool {need} ({any_of}), and none of them is active in this session, so I cannot answer this."
        ),
        Trouble::Failed { doing, message } => {
            let message = message.trim();
            if message.is_empty() {
                format!("That did not work: {doing} failed, and the tool did not say why.")
            } else if message.contains('\n') {
                format!("That did not work: {doing} failed:\n\n{}", text::block(message, 30))
            } else {
                format!("That did not work: {doing} failed: {message}")
            }
        }
        Trouble::Lost { doing } => format!("That was interrupted: {doing} has no result. Ask again to have it done."),
        Trouble::OutOfRounds => {
            "This takes more steps than I may spend on one request. Ask for a smaller part of it.".to_owned()
        }
    }
}
