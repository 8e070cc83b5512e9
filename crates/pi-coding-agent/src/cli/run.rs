//! One run of `pi`, from its words to its exit code.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pi_ai::Message;

use super::{
    arguments::{Arguments, ExtensionFlag, OutputMode},
    extensions, help,
    initial_message::initial_message,
    list_models,
    output::{Output, say},
    resources,
    session_choice::choose_session,
    session_maker::{Brought, SessionMaker},
    sessions,
    signals::{Ended, Signals},
    stdin,
};
use crate::{
    agent_session::{Activity, AgentSession, ListenerContext, SessionEvent, SessionPrompt},
    extensions::FlagValues,
    host::Host,
    modes::{json, print},
    sdk::{self, AgentSessionRuntime, CreateSessionError, SessionStart},
    session::{SessionEnvironment, SessionManager},
};

/// Everything that can go wrong before a prompt is answered; printed once, without a trace.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the shell is told when the output's reader went away: as for a program that SIGPIPE ended.
const OUTPUT_CLOSED: u8 = 141;

/// An end that takes longer is announced, with the way to shorten it.
const QUICK: Duration = Duration::from_millis(300);

/// Wrong usage, and asking for what is not there.
const USAGE: u8 = 2;

/// Runs `pi` with the words of the command line after the program's name.
pub fn main(words: impl IntoIterator<Item = String>) -> ExitCode {
    match start(words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("pi: {}", with_causes(&*error)));
            ExitCode::FAILURE
        }
    }
}

fn start(words: impl IntoIterator<Item = String>) -> Result<u8, Failure> {
    let mut words = words.into_iter().peekable();
    if words.next_if(|word| word == "sessions").is_some() {
        return sessions::run(words);
    }
    let arguments = Arguments::parse(words)?;
    let output = Output::stdout();
    if arguments.help {
        output.write(&help::text(&flags_of_extensions(&arguments)));
        return Ok(u8::from(output.failed()));
    }
    if arguments.version {
        output.write(&version(&arguments));
        return Ok(u8::from(output.failed()));
    }
    if let Some(session) = &arguments.export {
        return sessions::export_page(session, &arguments);
    }
    let host = Host::of_process()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(arguments, host, output))?;
    // A read of standard input that nobody ends must not keep the process.
    runtime.shutdown_background();
    Ok(code)
}

/// How the answer comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Print,
    Json,
    Interactive,
}

async fn run(mut arguments: Arguments, host: Host, output: Output) -> Result<u8, Failure> {
    let mode = match arguments.mode {
        Some(OutputMode::Rpc) => return Err("the rpc mode is not there yet; --mode json prints every event".into()),
        Some(OutputMode::Json) => Mode::Json,
        _ if arguments.print || !io::stdin().is_terminal() || !io::stdout().is_terminal() => Mode::Print,
        _ => Mode::Interactive,
    };
    let nothing_to_say = arguments.messages.is_empty() && arguments.files.is_empty();
    // The prompt may stand behind a flag of an extension.
    if mode == Mode::Interactive
        && nothing_to_say
        && arguments.list_models.is_none()
        && arguments.unknown.iter().all(|flag| flag.value.is_none())
    {
        arguments
            .settle_flags(&flags_of_extensions(&arguments).into_iter().map(|(flag, _)| flag).collect::<Vec<_>>())?;
        say(help::short().trim_end());
        return Ok(USAGE);
    }
    let locations = host.locations();
    arguments.resolve_paths(&locations);
    let mut notices = Notices::default();
    let place = extensions::Place::new(&arguments, &host, &locations);
    let settings = resources::settings_for(&place, &mut notices).await;
    let extensions = place.load(&settings, &mut notices)?;
    let flags = settle_flags(&mut arguments, &extensions)?;
    let models = sdk::models_of(&host);
    extensions
        .iter()
        .flat_map(|extension| extension.manifest().providers())
        .for_each(|provider| models.register(provider));
    notices.extend(models.problems().iter().map(|problem| format!("Warning: {problem}")));
    if let Some(search) = &arguments.list_models {
        notices.say();
        let available = models.available().await?;
        output.write(&list_models::table(available.iter().map(AsRef::as_ref), search));
        return Ok(u8::from(output.failed()));
    }

    let stdin = read_stdin(&arguments).await?;
    let mut words = arguments.messages.iter().cloned();
    let first = initial_message(&host, stdin, &arguments.files, words.next()).await?;
    let Some(first) = first else {
        return Err("there is nothing to answer: give a prompt, a file or text on standard input".into());
    };
    let prompts: Vec<SessionPrompt> = std::iter::once(first).chain(words.map(Into::into)).collect();

    let environment =
        SessionEnvironment { sync: settings.settings().session_sync.into(), ..SessionEnvironment::default() };
    let chosen = choose_session(&arguments, &host, &settings, environment).await?;
    notices.extend(chosen.notices);
    let manager = chosen.manager;
    let known = (manager.cwd() == host.cwd).then_some(Brought { settings, extensions });
    let maker = Arc::new(SessionMaker { arguments, host, models, flags });
    let first = maker.options(&manager, known, &mut notices).await?;
    let first = Arc::new(Mutex::new(Some(first)));
    let making = maker.clone();
    let runtime = AgentSessionRuntime::new(manager, async move |manager: SessionManager, start: SessionStart| {
        let prepared = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        making.make(prepared, manager, start).await.map_err(CreateSessionError::Application)
    })
    .await?;
    let session = runtime.session()?;
    if let Some(name) = &maker.arguments.name {
        session.set_name(name).await?;
    }
    // Whatever fails from here on is told to the listeners of the session.
    if let Err(problem) = extensions::failures(session.extensions(), &mut notices) {
        drop(session);
        runtime.dispose().await?;
        return Err(problem.into());
    }
    drop(session);
    notices.say();
    answer(runtime, mode, prompts, &output).await
}

/// Has the prompts answered one after another.
async fn answer(
    runtime: AgentSessionRuntime,
    mode: Mode,
    prompts: Vec<SessionPrompt>,
    output: &Output,
) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let mut session = runtime.session()?;
    if mode == Mode::Json {
        let header = session.session_manager().with(|session| serde_json::to_string(&session.header().fields));
        output.line(&header?);
    }
    let listener = output.clone();
    tell(&session, mode, listener.clone());
    let listening = async move |session: AgentSession, _start: SessionStart| tell(&session, mode, listener.clone());
    runtime.on_session(listening).detach();
    let (mut ended, mut failure, mut received) = (None, None, None);
    for prompt in prompts {
        let mut run = std::pin::pin!(session.prompt(prompt));
        let result = tokio::select! {
            result = &mut run => result,
            signal = signals.next() => {
                ended = Some(signal);
                session.abort();
                await_or_quit(&mut run, &mut signals, &session).await
            }
            () = output.closed().cancelled() => {
                session.abort();
                await_or_quit(&mut run, &mut signals, &session).await
            }
        };
        match result {
            Ok(reply) => {
                reply.advice.iter().for_each(|advice| say(advice));
                received = reply.message;
            }
            Err(error) => {
                received = session.last_answer();
                failure = Some(error);
            }
        }
        if ended.is_some() || failure.is_some() || output.closed().is_cancelled() {
            break;
        }
        // A command may have put another session in the place of this one, or said something that is being answered.
        session = runtime.settled_session().await?;
        if session.activity() != Activity::Idle {
            let mut idle = std::pin::pin!(session.wait_for_idle());
            tokio::select! {
                () = &mut idle => {}
                signal = signals.next() => {
                    ended = Some(signal);
                    session.abort();
                    await_or_quit(idle, &mut signals, &session).await;
                    break;
                }
            }
            received = session.last_answer();
        }
        if runtime.is_shutdown_requested() {
            break;
        }
    }
    // The answer that came counts, also when it was left out of the conversation or could not be stored.
    let last = received.map(Message::Assistant).or_else(|| session.last_message());
    let file = session.session_manager().path();
    let code = match mode {
        Mode::Json => 0,
        Mode::Print | Mode::Interactive => {
            let printed = print::printed(last.as_ref());
            output.text(&printed.stdout);
            // Of a prompt that could not be carried out the failure is told, below.
            if let (Some(text), None, None) = (&printed.stderr, &ended, &failure) {
                say(text);
                if file.is_some() {
                    say(
                        "What was said so far is kept: `pi --continue` goes on from here, with --model another model does.",
                    );
                }
            }
            printed.exit.code()
        }
    };
    let mut closing = std::pin::pin!(runtime.dispose());
    if ended.is_none() {
        tokio::select! {
            closed = &mut closing => closed?,
            signal = signals.next() => {
                ended = Some(signal);
                await_or_quit(closing, &mut signals, &session).await?;
            }
        }
    } else {
        await_or_quit(closing, &mut signals, &session).await?;
    }
    if let Some(Ended(code)) = ended {
        match file {
            Some(_) => say("Interrupted. `pi --continue` goes on from here."),
            None => say("Interrupted."),
        }
        return Ok(code);
    }
    if let Some(error) = failure {
        return Err(error.into());
    }
    match (output.failed(), output.closed().is_cancelled()) {
        (true, _) => Ok(1),
        (false, true) => Ok(OUTPUT_CLOSED),
        (false, false) => Ok(code),
    }
}

/// Prints or says what happens in a session.
fn tell(session: &AgentSession, mode: Mode, output: Output) {
    if mode == Mode::Json {
        let printer = session.subscribe(async move |event: SessionEvent, context: ListenerContext| {
            let line = json::line(&event, context.partial().as_deref());
            match line {
                Ok(line) => output.line(&line),
                Err(error) => say(&format!("pi: an event cannot be written as JSON: {error}")),
            }
        });
        return printer.detach();
    }
    let notices = session.subscribe_to_steps(async move |event: SessionEvent, _context: ListenerContext| match event {
        SessionEvent::AutoRetryStart { attempt, max_attempts, delay, error_message } => {
            let seconds = delay.as_secs_f64();
            let why = error_message.trim_end_matches('.');
            say(&format!("{why}. Trying again in {seconds:.0} s ({attempt} of {max_attempts})."));
        }
        SessionEvent::ExtensionError { extension, event, error } => {
            say(&format!("Warning: extension `{extension}`, {event}: {error}"));
        }
        _ => {}
    });
    notices.detach();
}

/// Waits for the end of what was told to end. Whoever signals again does not want to wait: then the commands that run
/// are killed, and the program quits.
async fn await_or_quit<T>(ending: impl Future<Output = T>, signals: &mut Signals, session: &AgentSession) -> T {
    let mut ending = std::pin::pin!(ending);
    tokio::select! {
        biased;
        result = &mut ending => return result,
        Ended(code) = signals.next() => quit(code, session),
        () = tokio::time::sleep(QUICK) => say("pi: waiting for what runs to end; a second signal ends it at once"),
    }
    tokio::select! {
        result = ending => result,
        Ended(code) = signals.next() => quit(code, session),
    }
}

fn quit(code: u8, session: &AgentSession) -> ! {
    session.kill_commands();
    std::process::exit(i32::from(code))
}

async fn read_stdin(arguments: &Arguments) -> Result<Option<String>, Failure> {
    if arguments.no_stdin || io::stdin().is_terminal() {
        return Ok(None);
    }
    let has_prompt = !arguments.messages.is_empty() || !arguments.files.is_empty();
    let notice = || {
        if has_prompt {
            say("pi: waiting for standard input to end; --no-stdin does not read it");
        }
    };
    let text = stdin::read(tokio::io::stdin(), notice)
        .await
        .map_err(|error| format!("standard input cannot be read: {error}; pipe text into it, or use --no-stdin"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Gives the flags that no table knows to the extensions.
fn settle_flags(
    arguments: &mut Arguments,
    extensions: &[std::sync::Arc<crate::extensions::stdio::StdioExtension>],
) -> Result<FlagValues, Failure> {
    let known: Vec<ExtensionFlag> =
        extensions.iter().flat_map(|extension| extensions::flags_of(extension)).map(|(flag, _)| flag).collect();
    Ok(arguments.settle_flags(&known)?)
}

/// The flags that extensions bring, as far as that is known without asking or starting anything.
fn flags_of_extensions(arguments: &Arguments) -> Vec<(ExtensionFlag, Option<String>)> {
    let Ok(host) = Host::of_process() else { return Vec::new() };
    let locations = host.locations();
    extensions::Place::new(arguments, &host, &locations).flags()
}

fn version(arguments: &Arguments) -> String {
    let mut text = format!("pi {}\n", env!("CARGO_PKG_VERSION"));
    if arguments.verbose {
        text.push_str("features:");
        for (name, on) in FEATURES {
            text.push_str(&format!(" {}{name}", if *on { "+" } else { "-" }));
        }
        text.push('\n');
    }
    text
}

/// Every feature of this crate, and whether it is on.
const FEATURES: &[(&str, bool)] = &[
    ("bedrock", cfg!(feature = "bedrock")),
    ("cli", cfg!(feature = "cli")),
    ("codex", cfg!(feature = "codex")),
    ("images", cfg!(feature = "images")),
    ("sandbox", cfg!(feature = "sandbox")),
    ("search", cfg!(feature = "search")),
    ("vertex", cfg!(feature = "vertex")),
];

/// What a person should know before the answer. It is said when the answer begins, and when it cannot begin, too: often
/// it tells why.
#[derive(Debug, Default)]
struct Notices(Vec<String>);

impl Notices {
    fn say(&mut self) {
        self.0.drain(..).for_each(|notice| say(&notice));
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.say();
    }
}

impl std::ops::Deref for Notices {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

impl std::ops::DerefMut for Notices {
    fn deref_mut(&mut self) -> &mut Vec<String> {
        &mut self.0
    }
}

/// An error with everything below it that adds something.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
