//! Extensions that are programs: small shell scripts that speak the protocol, or break it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversation;
mod faults;
mod gates;
mod lifetime;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use pi_ai::faux::FauxReply;
use pi_coding_agent::extensions::stdio::StdioExtension;
use serde_json::{Value, json};

use super::{acceptance::tool, support::Fixture};

/// An extension in a folder of its own: a manifest and a shell script.
pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    /// The manifest gets a name and a command; `arms` are those of a `case` over the method of each message, in which
    /// `$id` is that of the message and `$line` all of it.
    pub(super) fn new(manifest: Value, arms: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.manifest(manifest);
        folder.script(arms);
        folder
    }

    pub(super) fn manifest(&self, mut manifest: Value) {
        let fields = manifest.as_object_mut().unwrap();
        fields.entry("name").or_insert_with(|| "helper".into());
        fields.entry("command").or_insert_with(|| json!(["sh", "main.sh"]));
        fs::write(self.file("extension.json"), manifest.to_string()).unwrap();
    }

    pub(super) fn script(&self, arms: &str) {
        let script = format!(
            r#"
reply() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
tell() {{ printf '{{"jsonrpc":"2.0","method":"%s","params":%s}}\n' "$1" "$2"; }}
ask() {{ printf '{{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}}\n' "$1" "$2" "$3"; }}
echo started >> starts
echo $$ > pid
while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  method=${{line#*'"method":"'}}; method=${{method%%'"'*}}
  case "$line" in *'"method":'*) echo "$method" >> methods;; *) method=answer;; esac
  case "$method" in
    {arms}
    initialize) printf '%s\n' "$line" > initialize; reply "$id" '{{"protocol":1}}';;
    shutdown) reply "$id" null;;
    answer) printf '%s\n' "$line" >> answers;;
    *) case "$line" in '{{"jsonrpc":"2.0","id":'*) reply "$id" null;; esac;;
  esac
done
echo closed >> methods
"#
        );
        fs::write(self.file("main.sh"), script).unwrap();
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// What the script wrote to a file of its folder.
    pub(super) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// What it was asked, method by method.
    pub(super) fn methods(&self) -> Vec<String> {
        self.text("methods").lines().map(str::to_owned).collect()
    }

    pub(super) fn starts(&self) -> usize {
        self.text("starts").lines().count()
    }

    pub(super) fn extension(&self) -> StdioExtension {
        let environment =
            std::env::vars_os().filter(|(name, _)| name == "PATH").collect::<std::collections::BTreeMap<_, _>>();
        StdioExtension::read(self.0.path(), environment).unwrap()
    }

    /// A session with this extension and a tool `deploy` of the application.
    pub(super) async fn session(&self, replies: impl IntoIterator<Item = FauxReply>) -> Fixture {
        Fixture::with(replies, |options| options.tool(tool("deploy")).extension(self.extension())).await
    }
}

/// Waits until something holds; a deadline tells that from a hang.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what} never came to be");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether the process that a file names runs.
pub(super) fn runs(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap();
    let status =
        std::process::Command::new("kill").args(["-0", pid.trim()]).stderr(std::process::Stdio::null()).status();
    status.unwrap().success()
}

/// A call of the tool `deploy`, and the answer after it.
pub(super) fn deploys(times: usize) -> Vec<FauxReply> {
    (0..times).flat_map(|_| [FauxReply::tool_call("deploy", json!({})), FauxReply::text("Done.")]).collect()
}

/// The result of the last tool call that the nth request shows.
pub(super) fn result(fixture: &Fixture, request: usize) -> String {
    fixture.model.said(request).into_iter().rev().find(|said| said.starts_with("toolResult: ")).unwrap()
}

pub(super) type Shared<T> = Arc<std::sync::Mutex<T>>;
