//! Compacting sessions with a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use pi_ai::{
    AssistantMessage, CacheRetention, CancellationToken, ErrorKind, InputBlock, Message, Model, ProviderError,
    StopReason, ThinkingLevel, Timestamp, ToolCall, ToolResultMessage, Usage,
    faux::{FauxProvider, FauxReply, FauxRequest},
    recovery::{RetryEvent, RetryPolicy},
};
use pi_coding_agent::{
    compaction::{
        CheckTime, CompactionReason, ContextAction, ContextCheck, NothingToCompact, RecoveryAttempt, SummaryError,
        SummaryInstructions, SummaryOptions, check_context, compact, estimate_projection, left_branch, plan_shrink,
        prepare_compaction, summarize_branch,
    },
    messages::{CodingMessage, message_text},
    resources::CompactionSettings,
    session::{Access, Entry, EntryBody, EntryId, SessionEnvironment, SessionManager},
};
use serde_json::json;

const KEEP_LITTLE: CompactionSettings =
    CompactionSettings { enabled: true, reserve_tokens: 1000, keep_recent_tokens: 30 };

fn user(text: &str) -> Message {
    Message::user(text)
}

fn answer(text: &str) -> Message {
    AssistantMessage { content: vec![pi_ai::AssistantBlock::text(text)], ..AssistantMessage::default() }.into()
}

fn call(id: &str, name: &str, path: &str) -> Message {
    let call = ToolCall::new(id, name, json!({"path": path}));
    AssistantMessage { content: vec![call.into()], stop_reason: StopReason::ToolUse, ..AssistantMessage::default() }
        .into()
}

fn result(id: &str, text: &str) -> Message {
    ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "read".into(),
        content: vec![InputBlock::text(text)],
        ..ToolResultMessage::default()
    }
    .into()
}

async fn session(messages: impl IntoIterator<Item = Message>) -> (SessionManager, Vec<EntryId>) {
    let session = SessionManager::in_memory();
    let mut ids = Vec::new();
    for message in messages {
        ids.push(session.append_message(message).await.unwrap().id);
    }
    (session, ids)
}

/// The text that the summariser got.
fn prompt(request: &FauxRequest) -> String {
    let [system, Message::User(user)] = request.context.messages() else { panic!("{:?}", request.context) };
    assert!(system.is_system());
    user.content.text().into_owned()
}

/// Prepares, runs and appends a compaction.
async fn compacted(
    session: &SessionManager,
    provider: &FauxProvider,
    settings: &CompactionSettings,
    options: &SummaryOptions,
) -> Result<EntryId, SummaryError> {
    let preparation = session.with(|session| prepare_compaction(session.projection(), settings)).unwrap();
    let signal = CancellationToken::new();
    let compaction = compact(provider, &FauxProvider::model(), &preparation, options, &signal).await?;
    Ok(session.append_compaction(compaction).await.unwrap().id)
}

fn summary_of(session: &SessionManager) -> String {
    let messages = session.context().messages;
    let summary =
        messages.iter().find(|message| matches!(message.as_custom(), Some(CodingMessage::CompactionSummary(_))));
    message_text(summary.expect("the context has a summary"))
}

#[tokio::test]
async fn the_summary_takes_the_place_of_what_it_stands_for() {
    let filler = "x".repeat(80);
    let (session, _) = session([
        user("make /src/main.rs faster"),
        call("1", "read", "/src/main.rs"),
        result("1", "fn main() {}"),
        call("2", "edit", "/src/lib.rs"),
        result("2", "done"),
        answer(&filler),
        user(&filler),
        answer("last words"),
    ])
    .await;
    let provider = FauxProvider::new([FauxReply::text("## Goal\nSpeed.")]);
    let options = SummaryOptions {
        instructions: SummaryInstructions::Focus("the benchmarks".into()),
        session_id: Some("conversation".into()),
        ..SummaryOptions::default()
    };
    compacted(&session, &provider, &CompactionSettings { keep_recent_tokens: 20, ..KEEP_LITTLE }, &options)
        .await
        .unwrap();

    let request = &provider.requests()[0];
    let prompt = prompt(request);
    assert!(prompt.starts_with("<conversation>\n[User] make /src/main.rs faster"));
    assert!(prompt.contains("read(path=\"/src/main.rs\")") && prompt.contains("the benchmarks"));
    assert!(!prompt.contains("<previous-summary>"));
    assert_eq!(request.options.cache_retention, CacheRetention::None);
    assert_eq!(request.options.session_id.as_deref(), Some("conversation"));

    let summary = summary_of(&session);
    assert!(summary.starts_with("## Goal\nSpeed."));
    assert!(
        summary
            .ends_with("<read-files>\n/src/main.rs\n</read-files>\n\n<modified-files>\n/src/lib.rs\n</modified-files>")
    );
    let texts: Vec<String> = session.context().messages.iter().map(message_text).collect();
    assert_eq!(texts[1..], [filler, "last words".into()]);
}

#[tokio::test]
async fn a_second_compaction_builds_on_the_first() {
    let filler = "x".repeat(120);
    let (session, _) = session([user("goal one"), call("1", "write", "/a"), result("1", "ok"), user(&filler)]).await;
    let provider = FauxProvider::new([FauxReply::text("first notes"), FauxReply::text("second notes")]);
    compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();
    for message in [answer(&filler), call("2", "read", "/b"), result("2", "ok"), user(&filler)] {
        session.append_message(message).await.unwrap();
    }
    compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();

    let second = prompt(&provider.requests()[1]);
    assert!(second.contains("<previous-summary>\nfirst notes") && !second.contains("goal one"));
    let summary = summary_of(&session);
    assert!(summary.starts_with("second notes"), "{summary}");
    assert!(summary.contains("<read-files>\n/b\n") && summary.contains("<modified-files>\n/a\n"), "{summary}");
    let refused = session.with(|session| prepare_compaction(session.projection(), &KEEP_LITTLE)).unwrap_err();
    assert_eq!(refused, NothingToCompact::AlreadyCompacted);
}

#[tokio::test]
async fn a_turn_that_is_cut_has_its_beginning_summarised_for_itself() {
    let filler = "x".repeat(200);
    let (session, _) =
        session([user("old"), answer("old answer"), user("the request"), answer(&filler), answer(&filler)]).await;
    let provider = FauxProvider::new([FauxReply::text("history"), FauxReply::text("turn")]);
    compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();
    let prompts: Vec<String> = provider.requests().iter().map(prompt).collect();
    assert!(prompts[0].contains("old answer") && !prompts[0].contains("the request"));
    assert!(prompts[1].contains("the request") && !prompts[1].contains("old answer"));
    let summary = summary_of(&session);
    assert!(summary.starts_with("history\n\n---\n\n") && summary.contains("split turn") && summary.ends_with("turn"));
}

#[tokio::test]
async fn a_summary_that_cannot_be_used_changes_nothing() {
    let (session, _) = session([user("one"), answer("two"), user(&"x".repeat(200))]).await;
    let before = session.with(|session| session.len());
    let cases = [
        (FauxReply::text("half of").stop_reason(StopReason::Length), "incomplete"),
        (FauxReply::error(ProviderError::new(ErrorKind::Other, "out of order")), "out of order"),
        (FauxReply::tool_call("read", json!({})), "tool"),
        (FauxReply::text("  \n"), "empty"),
    ];
    for (reply, told) in cases {
        let provider = FauxProvider::new([reply]);
        let error = compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
    assert_eq!(session.with(|session| session.len()), before);
}

#[tokio::test]
async fn an_aborted_summary_leaves_no_entry() {
    let (session, _) = session([user("one"), answer("two"), user(&"x".repeat(200))]).await;
    let preparation = session.with(|session| prepare_compaction(session.projection(), &KEEP_LITTLE)).unwrap();
    let signal = CancellationToken::new();
    let provider = FauxProvider::new([]);
    provider.append_with({
        let signal = signal.clone();
        move |_| {
            signal.cancel();
            FauxReply::text("a part").hang()
        }
    });
    // In a task, as the agent runs it.
    let running = tokio::spawn(async move {
        compact(&provider, &FauxProvider::model(), &preparation, &SummaryOptions::default(), &signal).await
    });
    assert_eq!(running.await.unwrap().unwrap_err(), SummaryError::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_in_passing_is_asked_for_again() {
    let (session, _) = session([user("one"), answer("two"), user(&"x".repeat(200))]).await;
    let overloaded = ProviderError::new(ErrorKind::Overloaded, "overloaded");
    let provider = FauxProvider::new([FauxReply::error(overloaded), FauxReply::text("notes")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = seen.clone();
    let options = SummaryOptions {
        retry: Some(RetryPolicy::default()),
        observer: Some(Arc::new(move |event: RetryEvent| {
            observed.lock().unwrap().push(event);
            Box::pin(async {})
        })),
        ..SummaryOptions::default()
    };
    compacted(&session, &provider, &KEEP_LITTLE, &options).await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(matches!(
        seen[..],
        [RetryEvent::Scheduled { attempt: 1, .. }, _, RetryEvent::Finished { success: true, .. }]
    ));
}

#[tokio::test]
async fn thinking_is_asked_for_only_where_the_model_can() {
    let (session, _) = session([user("one"), answer("two"), user(&"x".repeat(200))]).await;
    let preparation = session.with(|session| prepare_compaction(session.projection(), &KEEP_LITTLE)).unwrap();
    let options = SummaryOptions { thinking_level: ThinkingLevel::High, ..SummaryOptions::default() };
    for (reasoning, asked) in [(true, Some(ThinkingLevel::High)), (false, None)] {
        let model = Arc::new(Model { reasoning, ..(*FauxProvider::model()).clone() });
        let provider = FauxProvider::new([FauxReply::text("notes")]);
        compact(&provider, &model, &preparation, &options, &CancellationToken::new()).await.unwrap();
        assert_eq!(provider.requests()[0].options.reasoning, asked);
    }
}

#[tokio::test]
async fn a_conversation_larger_than_the_model_is_summarised_in_pieces() {
    let huge = format!("begin {} end", "h".repeat(40_000));
    let (session, _) = session([
        user("one"),
        answer(&"a".repeat(9_000)),
        answer(&"b".repeat(9_000)),
        user(&huge),
        user(&"x".repeat(200)),
    ])
    .await;
    let preparation = session.with(|session| prepare_compaction(session.projection(), &KEEP_LITTLE)).unwrap();
    let model = Arc::new(Model { context_window: 5_000, ..(*FauxProvider::model()).clone() });
    let provider = FauxProvider::new((1..=9).map(|number| FauxReply::text(format!("notes {number}"))));
    let compaction =
        compact(&provider, &model, &preparation, &SummaryOptions::default(), &CancellationToken::new()).await.unwrap();
    let requests = provider.requests();
    assert!(requests.len() > 2, "{}", requests.len());
    for (number, request) in requests.iter().enumerate() {
        let prompt = prompt(request);
        assert!(prompt.len() < 3 * 5_000, "{}", prompt.len());
        let previous = format!("<previous-summary>\nnotes {number}\n");
        assert_eq!(prompt.contains(&previous), number > 0);
    }
    let last = prompt(requests.last().unwrap());
    assert!(last.contains("[User] begin hhh") && last.contains("hhh end\n</conversation>"));
    assert_eq!(compaction.summary, format!("notes {}", requests.len()));
}

#[tokio::test]
async fn a_session_that_ends_in_an_open_call_can_be_compacted() {
    let (session, _) = session([user("one"), answer("two"), call("1", "ls", "/"), user(&"x".repeat(200))]).await;
    let provider = FauxProvider::new([FauxReply::text("notes")]);
    compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();
    // One message of text: there is no call in the request that could lack its result.
    assert!(prompt(&provider.requests()[0]).contains("ls(path=\"/\")"));
}

#[tokio::test]
async fn a_session_that_was_left_in_an_open_call_is_opened_and_compacted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/ends-in-open-call.jsonl"), &path).unwrap();
    let session =
        SessionManager::open(&path, Access::Write, folder.path(), SessionEnvironment::default()).await.unwrap();
    session.append_message(user(&"x".repeat(200))).await.unwrap();
    let provider = FauxProvider::new([FauxReply::text("notes")]);
    compacted(&session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();
    let request = &provider.requests()[0];
    assert!(prompt(request).contains("ls("), "{}", prompt(request));
    assert!(summary_of(&session).starts_with("notes"));
}

#[tokio::test]
async fn a_branch_is_summarised_from_where_the_ways_part() {
    let (session, ids) =
        session([user("common"), answer("ok"), user("side one"), call("1", "read", "/side"), result("1", "text")])
            .await;
    let left =
        session.with(|session| left_branch(session, session.leaf_id().map(EntryId::as_str), ids[1].as_str())).unwrap();
    assert_eq!((left.entries.len(), left.common_ancestor.as_ref()), (3, Some(&ids[1])));
    let entries: Vec<Entry> = left.entries.iter().map(|id| session.entry(id.as_str()).unwrap()).collect();
    let provider = FauxProvider::new([FauxReply::text("side notes")]);
    let (model, options, signal) = (FauxProvider::model(), SummaryOptions::default(), CancellationToken::new());
    let summary = summarize_branch(&provider, &model, &entries, 16_384, &options, &signal).await.unwrap();
    let prompt = prompt(&provider.requests()[0]);
    assert!(prompt.contains("side one") && !prompt.contains("common") && !prompt.contains("Critical Context"));
    session.branch_with_summary(Some(&ids[1]), summary).await.unwrap();
    let last = message_text(session.context().messages.last().unwrap());
    assert!(last.contains("side notes") && last.ends_with("<read-files>\n/side\n</read-files>"), "{last}");

    let empty = summarize_branch(&provider, &model, &[], 16_384, &options, &signal).await.unwrap();
    assert!(!empty.summary.is_empty() && empty.usage.is_none());
}

struct Check {
    session: SessionManager,
    answer: AssistantMessage,
    entry: EntryId,
}

impl Check {
    async fn new(answer: AssistantMessage) -> Self {
        let (session, _) = session([user("question")]).await;
        let entry = session.append_message(answer.clone()).await.unwrap().id;
        Self { session, answer, entry }
    }

    fn decide(&self, model: Option<&Model>, attempt: RecoveryAttempt) -> ContextAction {
        self.session.with(|session| {
            check_context(&ContextCheck {
                answer: &self.answer,
                entry: Some(&self.entry),
                projection: session.projection(),
                answered_by: model,
                context_window: 10_000,
                settings: &KEEP_LITTLE,
                time: CheckTime::AfterRun,
                attempt,
            })
        })
    }
}

fn model() -> Model {
    Model { context_window: 10_000, max_tokens: 1_000, ..Model::default() }
}

fn used(stop_reason: StopReason, input: u64, output: u64) -> AssistantMessage {
    let usage = Usage { input, output, total_tokens: input + output, ..Usage::default() };
    AssistantMessage { stop_reason, usage, timestamp: Timestamp::from_millis(1), ..AssistantMessage::default() }
}

fn overflowed() -> AssistantMessage {
    let error_message = Some("prompt is too long: 213000 tokens > 200000 maximum".into());
    AssistantMessage { error_message, ..used(StopReason::Error, 0, 0) }
}

#[tokio::test]
async fn the_context_is_compacted_when_it_is_nearly_full() {
    let full = Check::new(used(StopReason::Stop, 8_900, 101)).await;
    assert_eq!(full.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Compact(CompactionReason::Threshold));
    let room = Check::new(used(StopReason::Stop, 8_900, 100)).await;
    assert_eq!(room.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Nothing);
    let over = Check::new(used(StopReason::Stop, 10_001, 10)).await;
    assert_eq!(over.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Compact(CompactionReason::Overflow));
    let aborted = Check::new(used(StopReason::Aborted, 9_900, 10)).await;
    assert_eq!(aborted.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Nothing);
}

#[tokio::test]
async fn an_overflow_is_recovered_from_once() {
    let check = Check::new(overflowed()).await;
    let leave_out = vec![check.entry.clone()];
    assert_eq!(check.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Recover { leave_out });
    match check.decide(Some(&model()), RecoveryAttempt::Made) {
        ContextAction::GiveUp { message } => assert!(message.contains("message of the user"), "{message}"),
        other => panic!("{other:?}"),
    }
    // The user has chosen another model since: its limits are others.
    assert_eq!(check.decide(None, RecoveryAttempt::Open), ContextAction::Nothing);
    // Left out already.
    check.session.append_context_edit(&check.entry, None).await.unwrap();
    assert_eq!(check.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Nothing);
}

#[tokio::test]
async fn an_answer_that_was_cut_short_is_left_out_with_its_results() {
    let mut cut = used(StopReason::Length, 100, 900);
    cut.content = vec![ToolCall::new("1", "read", json!({"path": "/a"})).into()];
    let check = Check::new(cut).await;
    let result = check.session.append_message(result("1", "not run")).await.unwrap().id;
    let leave_out = vec![check.entry.clone(), result];
    assert_eq!(check.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Recover { leave_out });
    let wanted = Check::new(used(StopReason::Length, 100, 1_000)).await;
    assert_eq!(wanted.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Nothing);
}

#[tokio::test]
async fn an_answer_from_before_a_compaction_says_nothing() {
    let check = Check::new(overflowed()).await;
    check.session.append_message(user(&"x".repeat(200))).await.unwrap();
    let provider = FauxProvider::new([FauxReply::text("notes")]);
    compacted(&check.session, &provider, &KEEP_LITTLE, &SummaryOptions::default()).await.unwrap();
    assert_eq!(check.decide(Some(&model()), RecoveryAttempt::Open), ContextAction::Nothing);
}

#[test]
fn a_recovery_is_open_again_after_an_answer_that_came_through() {
    let made = RecoveryAttempt::Made;
    assert_eq!(made.after(&overflowed()), RecoveryAttempt::Made);
    assert_eq!(made.after(&used(StopReason::Length, 1, 1)), RecoveryAttempt::Made);
    assert_eq!(made.after(&used(StopReason::ToolUse, 1, 1)), RecoveryAttempt::Open);
}

#[tokio::test]
async fn a_result_larger_than_the_window_is_cut_to_its_ends() {
    let huge = format!("first line {} last line", "漢😀".repeat(20_000));
    let (session, ids) = session([user("read it"), call("1", "read", "/huge"), result("1", &huge)]).await;
    let limit = 5_000;
    let edits = session.with(|session| plan_shrink(session.projection(), limit));
    let [(id, replacement)] = &edits[..] else { panic!("{edits:?}") };
    assert_eq!(id, &ids[2]);
    session.append_context_edit(id, Some(replacement.clone())).await.unwrap();
    let (tokens, text) = session.with(|session| {
        (
            estimate_projection(session.projection()).tokens,
            message_text(session.projection().messages().last().unwrap()),
        )
    });
    assert!(tokens <= limit, "{tokens}");
    assert!(text.starts_with("first line") && text.ends_with("last line"));
    // The record keeps everything.
    match session.entry(ids[2].as_str()).unwrap().body {
        EntryBody::Message(entry) => assert_eq!(message_text(&entry.message), huge),
        other => panic!("{other:?}"),
    }
    assert!(session.with(|session| plan_shrink(session.projection(), limit)).is_empty());
}
