//! A host whose session is replaced now and then.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{
    agent_session::{AgentSession, AgentSessionError, ListenerContext, SessionEvent, UserMessageTiming},
    extensions::{
        Command, CommandContext, Extension, ExtensionApi, ExtensionContext, ExtensionError,
        event::{self, ForkDecision, SwitchDecision},
    },
    sdk::{
        AgentSessionRuntime, CreateSessionError, ForkPosition, RuntimeError, SessionStart, StartReason,
        create_agent_session,
    },
    session::{EntryKind, MessageRole, NewSession, SessionEnvironment, SessionError, SessionManager},
};
use pretty_assertions::assert_eq;

use super::{DEADLINE, Heard, Place, open_for_writing, said};

struct Hosted {
    place: Arc<Place>,
    runtime: AgentSessionRuntime,
    fails: Arc<AtomicBool>,
    watcher: Arc<Watcher>,
}

/// An extension that notes beginnings and ends, and can refuse.
#[derive(Default)]
struct Watcher {
    seen: Arc<Mutex<Vec<String>>>,
    refuses: Arc<AtomicBool>,
}

#[async_trait::async_trait]
impl Extension for Watcher {
    fn name(&self) -> &str {
        "watcher"
    }

    async fn register(&self, pi: &mut ExtensionApi) -> Result<(), ExtensionError> {
        let (started, ended) = (self.seen.clone(), self.seen.clone());
        pi.on(event::SessionStart, async move |event: event::SessionStartEvent, _: ExtensionContext| {
            started.lock().unwrap().push(format!("start {:?}", event.reason));
        });
        pi.on(event::SessionShutdown, async move |event: event::SessionShutdownEvent, _: ExtensionContext| {
            ended.lock().unwrap().push(format!("end {:?}", event.reason));
        });
        let refuses = self.refuses.clone();
        pi.on(event::SessionBeforeSwitch, async move |_: event::SessionBeforeSwitchEvent, _: ExtensionContext| {
            if refuses.load(Ordering::Relaxed) { SwitchDecision::Cancel } else { SwitchDecision::Proceed }
        });
        self.commands(pi);
        let refuses = self.refuses.clone();
        pi.on(event::SessionBeforeFork, async move |_: event::SessionBeforeForkEvent, _: ExtensionContext| {
            if refuses.load(Ordering::Relaxed) { ForkDecision::Cancel } else { ForkDecision::Proceed }
        });
        Ok(())
    }
}

impl Watcher {
    /// Commands that put another session in the place of theirs.
    fn commands(&self, pi: &mut ExtensionApi) {
        let log = |seen: &Arc<Mutex<Vec<String>>>, line: String| seen.lock().unwrap().push(line);
        let seen = self.seen.clone();
        pi.register_command(Command::new("anew", async move |text: String, ctx: CommandContext| {
            let parent = ctx.session_manager()?.path();
            let (noted, old) = (seen.clone(), ctx.clone());
            let replaced = ctx
                .new_session_then(parent, async move |ctx: CommandContext| {
                    log(
                        &noted,
                        format!("then {:?}, before: {}", ctx.session_name(), old.append_entry("x", 1).await.is_err()),
                    );
                    ctx.set_session_name("anew").await?;
                    ctx.send_user_message(text, UserMessageTiming::WhenIdle).await
                })
                .await?;
            log(&seen, format!("anew {replaced}, stale {}", ctx.session_manager().is_err()));
            Ok(())
        }));
        let seen = self.seen.clone();
        pi.register_command(Command::new("go", async move |file: String, ctx: CommandContext| {
            log(&seen, format!("go {}", ctx.switch_session(file).await?));
            Ok(())
        }));
        let seen = self.seen.clone();
        pi.register_command(Command::new("take", async move |file: String, ctx: CommandContext| {
            log(&seen, format!("take {}", ctx.import_session(file).await?));
            Ok(())
        }));
        let seen = self.seen.clone();
        pi.register_command(Command::new("split", async move |entry: String, ctx: CommandContext| {
            let forked = ctx
                .fork_then(entry.as_str().into(), ForkPosition::At, async |_ctx: CommandContext| {
                    Err(ExtensionError::new("nothing to do here"))
                })
                .await?;
            log(&seen, format!("split {forked}"));
            Ok(())
        }));
        let seen = self.seen.clone();
        pi.register_command(Command::new("again", async move |_: String, ctx: CommandContext| {
            ctx.reload().await?;
            log(&seen, format!("again, stale {}", ctx.session_manager().is_err()));
            Ok(())
        }));
        pi.register_command(Command::new("quit", async |_: String, ctx: CommandContext| {
            ctx.shutdown();
            Ok(())
        }));
    }
}

impl Hosted {
    /// A runtime whose model answers `1`, `2` and so on.
    async fn new() -> Self {
        let place = Arc::new(Place::new());
        let new = NewSession { cwd: place.cwd(), ..NewSession::default() };
        let manager = SessionManager::create(&place.0.path().join("sessions"), new, SessionEnvironment::default());
        Self::with(place, manager.unwrap()).await
    }

    async fn with(place: Arc<Place>, manager: SessionManager) -> Self {
        let provider = FauxProvider::new((1..10).map(|number| FauxReply::text(number.to_string())));
        let fails = Arc::new(AtomicBool::new(false));
        let watcher = Arc::new(Watcher::default());
        let (refused, factory_place, watching) = (fails.clone(), place.clone(), watcher.clone());
        let factory = async move |manager: SessionManager, start: SessionStart| {
            if refused.swap(false, Ordering::Relaxed) {
                return Err(CreateSessionError::Host(std::io::Error::other("no more of them")));
            }
            let options = factory_place.options(&provider).cwd(manager.cwd()).extension(watching.clone());
            create_agent_session(options.session_manager(manager).session_start(start)).await
        };
        Self { place, runtime: AgentSessionRuntime::new(manager, factory).await.unwrap(), fails, watcher }
    }

    async fn prompt(&self, text: &str) -> String {
        self.runtime.session().unwrap().prompt(text).await.unwrap().text()
    }

    fn path(&self) -> PathBuf {
        self.runtime.session().unwrap().session_manager().path().unwrap()
    }
}

#[tokio::test]
async fn listeners_of_the_runtime_hear_every_session_in_turn() {
    let hosted = Hosted::new().await;
    let heard = Heard::default();
    let noted = heard.clone();
    let subscription =
        hosted.runtime.subscribe(async move |event: SessionEvent, _: ListenerContext| noted.note(&event));
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = starts.clone();
    let hook = async move |session: AgentSession, start: SessionStart| {
        assert_eq!(session.start_of_session(), &start);
        seen.lock().unwrap().push(start);
    };
    hosted.runtime.on_session(hook).detach();
    assert_eq!(hosted.prompt("one").await, "1");
    let first = hosted.path();
    let old = hosted.runtime.session().unwrap();
    hosted.runtime.new_session(Some(first.clone())).await.unwrap();
    assert_eq!(hosted.prompt("two").await, "2");
    assert_eq!(heard.all().iter().filter(|name| *name == "AgentSettled").count(), 2);
    let started = SessionStart { reason: StartReason::New, previous_file: Some(first.clone()) };
    assert_eq!(*starts.lock().unwrap(), [started]);
    let session = hosted.runtime.session().unwrap();
    let parent = session.session_manager().with(|session| session.header().parent_session.clone());
    assert_eq!(parent.as_deref(), first.to_str());
    // The one before has ended, and its file is free although somebody still holds it.
    assert!(matches!(old.prompt("three").await, Err(AgentSessionError::Ended)));
    drop(open_for_writing(&first).await);

    let second = hosted.path();
    hosted.runtime.switch_to(&first, None).await.unwrap();
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1"]);
    assert_eq!(hosted.prompt("three").await, "3");
    assert_eq!(starts.lock().unwrap()[1], SessionStart { reason: StartReason::Resume, previous_file: Some(second) });
    drop(subscription);
    hosted.prompt("four").await;
    assert_eq!(heard.all().iter().filter(|name| *name == "AgentSettled").count(), 3);
    hosted.runtime.clone().dispose().await.unwrap();
    assert!(matches!(hosted.runtime.session(), Err(RuntimeError::Ended)));
    assert!(matches!(hosted.runtime.new_session(None).await, Err(RuntimeError::Ended)));
}

#[tokio::test]
async fn a_fork_goes_on_in_a_file_of_its_own() {
    let hosted = Hosted::new().await;
    hosted.prompt("one").await;
    hosted.prompt("two").await;
    let source = hosted.path();
    let before = std::fs::read(&source).unwrap();
    let user = |kind: EntryKind| kind == EntryKind::Message(MessageRole::User);
    let entries = hosted.runtime.session().unwrap().session_manager().branch_entries();
    let second = entries.iter().rfind(|entry| user(entry.kind)).unwrap().id.clone();
    let answer = entries.last().unwrap().id.clone();

    let forked = hosted.runtime.fork(&second, ForkPosition::Before).await.unwrap();
    assert_eq!(forked.text.as_deref(), Some("two"));
    assert_eq!(hosted.prompt("another two").await, "3");
    assert_eq!(said(&forked.session), ["one", "1", "another two", "3"]);
    assert_eq!(std::fs::read(&source).unwrap(), before);

    hosted.runtime.switch_to(&source, None).await.unwrap();
    hosted.runtime.fork(&answer, ForkPosition::At).await.unwrap();
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1", "two", "2"]);
    assert_ne!(hosted.path(), source);
    let error = hosted.runtime.fork(&answer, ForkPosition::Before).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Session(SessionError::NotAUserMessage { .. })), "{error}");
    // It goes on as if nothing had been asked.
    assert_eq!(hosted.prompt("five").await, "4");
    hosted.runtime.dispose().await.unwrap();
}

#[tokio::test]
async fn a_session_makes_the_record_of_a_fork_and_stays_as_it_is() {
    let hosted = Hosted::new().await;
    hosted.prompt("one").await;
    hosted.prompt("two").await;
    let session = hosted.runtime.session().unwrap();
    let leaf = session.session_manager().leaf_id().unwrap();
    let fork = session.fork(&leaf, ForkPosition::At).await.unwrap();
    assert_eq!(fork.record.context().messages.len(), session.messages().len());
    assert_ne!(fork.record.path(), session.session_manager().path());
    hosted.watcher.refuses.store(true, Ordering::Relaxed);
    assert!(matches!(session.fork(&leaf, ForkPosition::At).await, Err(RuntimeError::Cancelled)));
    assert_eq!(hosted.prompt("three").await, "3");
    hosted.runtime.dispose().await.unwrap();
}

#[tokio::test]
async fn what_is_not_saved_or_only_in_memory_is_told_apart() {
    let hosted = Hosted::new().await;
    let leaf = hosted.runtime.session().unwrap().session_manager().leaf_id().unwrap();
    let error = hosted.runtime.fork(&leaf, ForkPosition::At).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Session(SessionError::NotSaved)), "{error}");

    let place = Arc::new(Place::new());
    let hosted = Hosted::with(place, SessionManager::in_memory()).await;
    hosted.prompt("one").await;
    let leaf = hosted.runtime.session().unwrap().session_manager().leaf_id().unwrap();
    hosted.runtime.fork(&leaf, ForkPosition::At).await.unwrap();
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1"]);
    hosted.runtime.new_session(None).await.unwrap();
    assert_eq!(said(&hosted.runtime.session().unwrap()), [""; 0]);
    let error = hosted.runtime.import("x.jsonl".as_ref(), None).await.unwrap_err();
    assert!(matches!(error, RuntimeError::NoFolder), "{error}");
}

#[tokio::test]
async fn an_import_is_copied_and_a_folder_that_is_gone_asks_for_another() {
    let hosted = Hosted::new().await;
    hosted.prompt("one").await;
    let elsewhere = hosted.place.0.path().join("elsewhere.jsonl");
    let text = std::fs::read_to_string(hosted.path()).unwrap();
    let cwd = hosted.place.cwd();
    std::fs::write(&elsewhere, text.replace(cwd.to_str().unwrap(), "/no/such/folder")).unwrap();
    let folder = hosted.path().parent().unwrap().to_owned();
    let files = || {
        std::fs::read_dir(&folder)
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "jsonl"))
            .count()
    };

    let error = hosted.runtime.import(&elsewhere, None).await.unwrap_err();
    assert!(matches!(&error, RuntimeError::FolderGone { cwd, .. } if cwd.starts_with("/no/such")), "{error}");
    assert_eq!(files(), 1);
    let session = hosted.runtime.import(&elsewhere, Some(&cwd)).await.unwrap();
    assert_eq!((files(), session.session_manager().cwd()), (2, cwd.as_path()));
    assert_eq!(hosted.path(), folder.join("elsewhere.jsonl"));
    hosted.prompt("two").await;
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1", "two", "2"]);
    // What lies there already is not copied again.
    let again = hosted.path();
    hosted.runtime.new_session(None).await.unwrap();
    hosted.runtime.import(&again, Some(&cwd)).await.unwrap();
    assert_eq!((files(), hosted.path()), (2, again));
    hosted.runtime.dispose().await.unwrap();
}

#[tokio::test]
async fn when_the_next_session_cannot_be_made_the_one_before_goes_on() {
    let hosted = Hosted::new().await;
    hosted.prompt("one").await;
    let (path, heard) = (hosted.path(), Heard::default());
    let noted = heard.clone();
    hosted.runtime.subscribe(async move |event: SessionEvent, _: ListenerContext| noted.note(&event)).detach();
    hosted.fails.store(true, Ordering::Relaxed);
    let error = hosted.runtime.new_session(None).await.unwrap_err();
    assert!(error.to_string().contains("no more of them"), "{error}");
    assert_eq!(hosted.path(), path);
    hosted.prompt("two").await;
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1", "two", "2"]);
    assert_eq!(heard.all().last().unwrap(), "AgentSettled");
    let error = hosted.runtime.switch_to("/no/such/session.jsonl".as_ref(), None).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/session.jsonl"), "{error}");
    hosted.prompt("three").await;
    hosted.runtime.dispose().await.unwrap();
}

#[tokio::test]
async fn extensions_may_refuse_and_are_told_why_sessions_begin_and_end() {
    let hosted = Hosted::new().await;
    hosted.prompt("one").await;
    let (path, leaf) = (hosted.path(), hosted.runtime.session().unwrap().session_manager().leaf_id().unwrap());
    let elsewhere = hosted.place.0.path().join("elsewhere.jsonl");
    std::fs::copy(&path, &elsewhere).unwrap();
    hosted.watcher.refuses.store(true, Ordering::Relaxed);
    let runtime = &hosted.runtime;
    let refused = [
        runtime.new_session(None).await.err(),
        runtime.switch_to(&elsewhere, None).await.err(),
        runtime.import(&elsewhere, None).await.err(),
        runtime.fork(&leaf, ForkPosition::At).await.err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(RuntimeError::Cancelled)), "{error:?}");
    }
    assert_eq!(hosted.path(), path);
    assert!(!path.with_file_name("elsewhere.jsonl").exists());

    hosted.watcher.refuses.store(false, Ordering::Relaxed);
    runtime.fork(&leaf, ForkPosition::At).await.unwrap();
    runtime.switch_to(&path, None).await.unwrap();
    runtime.new_session(None).await.unwrap();
    runtime.clone().dispose().await.unwrap();
    let seen = hosted.watcher.seen.lock().unwrap().join(", ");
    assert_eq!(seen, "start Startup, end Fork, start Fork, end Resume, start Resume, end New, start New, end Quit");
}

#[tokio::test]
async fn commands_of_extensions_put_another_session_in_the_place_of_theirs() {
    let hosted = Hosted::new().await;
    let failures = Arc::new(Mutex::new(Vec::new()));
    let heard = failures.clone();
    let listener = async move |event: SessionEvent, _: ListenerContext| {
        if let SessionEvent::ExtensionError { event, error, .. } = event {
            heard.lock().unwrap().push(format!("{event}: {error}"));
        }
    };
    hosted.runtime.subscribe(listener).detach();
    hosted.prompt("one").await;
    let (first, leaf) = (hosted.path(), hosted.runtime.session().unwrap().session_manager().leaf_id().unwrap());
    let old = hosted.runtime.session().unwrap();
    hosted.watcher.seen.lock().unwrap().clear();
    let seen = || std::mem::take(&mut *hosted.watcher.seen.lock().unwrap()).join(", ");

    // Anew, and what follows is said there.
    hosted.prompt("/anew go on").await;
    let session = hosted.runtime.session().unwrap();
    session.wait_for_idle().await;
    assert_eq!(seen(), "end New, start New, then None, before: true, anew true, stale true");
    assert_eq!(said(&session), ["go on", "2"]);
    assert_eq!(session.session_manager().name().as_deref(), Some("anew"));
    let parent = session.session_manager().with(|session| session.header().parent_session.clone());
    assert_eq!(parent.as_deref(), first.to_str());
    assert!(matches!(old.prompt("three").await, Err(AgentSessionError::Ended)));

    // Back, a copy from elsewhere, a fork whose continuation fails, and all of it loaded again.
    hosted.prompt(&format!("/go {}", first.display())).await;
    assert_eq!((seen().as_str(), hosted.path()), ("end Resume, start Resume, go true", first.clone()));
    hosted.prompt(&format!("/split {leaf}")).await;
    assert_eq!(seen(), "end Fork, start Fork, split true");
    assert_eq!(said(&hosted.runtime.session().unwrap()), ["one", "1"]);
    assert_eq!(failures.lock().unwrap().as_slice(), ["in the session that took the place: nothing to do here"]);
    let elsewhere = hosted.place.0.path().join("elsewhere.jsonl");
    std::fs::copy(&first, &elsewhere).unwrap();
    hosted.prompt(&format!("/take {}", elsewhere.display())).await;
    assert_eq!(seen(), "end Resume, start Resume, take true");
    assert_eq!(hosted.path(), first.with_file_name("elsewhere.jsonl"));
    hosted.prompt("/again").await;
    assert_eq!(seen(), "end Reload, start Reload, again, stale true");

    // An extension may refuse, and a file that is not there is a failure of the command; the session stays.
    hosted.watcher.refuses.store(true, Ordering::Relaxed);
    let path = hosted.path();
    hosted.prompt(&format!("/go {}", first.display())).await;
    hosted.prompt(&format!("/split {leaf}")).await;
    hosted.prompt("/anew").await;
    assert_eq!((seen().as_str(), hosted.path()), ("go false, split false, anew false, stale false", path.clone()));
    hosted.watcher.refuses.store(false, Ordering::Relaxed);
    hosted.prompt("/go /no/such/session.jsonl").await;
    assert_eq!((seen().as_str(), hosted.path()), ("", path));
    assert!(failures.lock().unwrap().last().unwrap().contains("/no/such/session.jsonl"), "{failures:?}");
    assert_eq!(hosted.prompt("two").await, "3");
    hosted.runtime.dispose().await.unwrap();
}

#[tokio::test]
async fn an_extension_asks_the_program_to_end_when_the_session_is_idle() {
    let hosted = Hosted::new().await;
    let runtime = hosted.runtime.clone();
    let asked = runtime.shutdown_requested();
    let mut asked = std::pin::pin!(asked);
    assert!(futures::poll!(&mut asked).is_pending());
    hosted.prompt("/quit").await;
    tokio::time::timeout(DEADLINE, asked).await.unwrap();
    runtime.clone().dispose().await.unwrap();
}
