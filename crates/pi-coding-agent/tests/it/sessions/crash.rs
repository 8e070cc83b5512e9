//! A process that is killed while it appends.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use pi_ai::Message;
use pi_coding_agent::session::{Access, NewSession, SessionEnvironment, SessionManager, SyncPolicy};

use super::{notices, open, open_for_writing, say};

/// Set in the child: the session that it appends to.
const FILE: &str = "PI_TEST_CRASH_FILE";
const KILLS: usize = 200;

/// The child's part; in a usual test run it does nothing.
#[tokio::test]
async fn child_that_appends_until_it_is_killed() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let path = Path::new(&path);
    let environment = SessionEnvironment { sync: SyncPolicy::Never, ..SessionEnvironment::default() };
    let session = if path.exists() {
        SessionManager::open(path, Access::Write, path, environment).await.unwrap()
    } else {
        SessionManager::create_at(path, NewSession::default(), environment).unwrap()
    };
    let mut stdout = std::io::stdout();
    for number in 0.. {
        // Some lines are longer than a page, some are written on another thread.
        let text = "x".repeat([10, 300, 9_000, 100_000][number % 4]);
        let id = session.append_message(Message::user(text)).await.unwrap().id;
        writeln!(stdout, "acknowledged {id}").unwrap();
        stdout.flush().unwrap();
    }
}

#[tokio::test]
async fn no_acknowledged_entry_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    // Fixed, so that a failure can be looked at again.
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut acknowledged = Vec::new();
    let mut path = folder.path().join("0.jsonl");
    for kill in 0..KILLS {
        if kill % 10 == 0 {
            check(&path, &acknowledged).await;
            acknowledged.clear();
            path = folder.path().join(format!("{kill}.jsonl"));
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["sessions::crash::child_that_appends_until_it_is_killed", "--exact", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = next(30);
        let mut seen = 0;
        let mut take = |line: String| {
            if let Some((_, id)) = line.split_once("acknowledged ") {
                acknowledged.push(id.to_owned());
                seen += 1;
            }
            seen
        };
        while let Some(Ok(line)) = lines.next() {
            if take(line) > wanted {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(next(3_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            take(line);
        }
    }
    check(&path, &acknowledged).await;
}

async fn check(path: &Path, acknowledged: &[String]) {
    if acknowledged.is_empty() {
        return;
    }
    let reader = open(path, Access::ReadOnly).await.unwrap();
    for id in acknowledged {
        assert!(reader.with(|session| session.contains(id)), "{id} is lost");
        reader.entry(id).unwrap();
    }
    let session = open_for_writing(path).await;
    say(&session, "it goes on").await;
    // A line that was cut by a kill is known as such, and nothing else is wrong.
    assert!(notices(&session).len() <= 20, "{:?}", notices(&session));
}
