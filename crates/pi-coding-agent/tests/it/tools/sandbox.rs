//! Ways out of the sandbox, none of which may lead anywhere. Where the kernel has no Landlock or no seccomp only
//! the refusal is tested, and the run says so.

#![cfg(target_os = "linux")]

use std::os::unix::fs::symlink;

use pi_coding_agent::host::Host;
use pi_coding_agent::sdk::{SessionOptions, create_agent_session};
use pi_coding_agent::tools::builtin::BuiltinTool::{Bash, Edit, Read, Write};
use pi_coding_agent::workspace::local::{Network, Sandbox};
use pi_coding_agent::workspace::memory::memory_workspace;
use serde_json::json;
use tempfile::TempDir;

use super::Project;

/// A sandboxed project and a folder outside of it with a file that must stay as it is.
struct Sandboxed {
    project: Project,
    outside: TempDir,
}

impl Sandboxed {
    /// `None` where the sandbox is not to be had; then the refusal is tested.
    async fn new(network: Network) -> Option<Self> {
        if let Err(unavailable) = Sandbox::check() {
            eprintln!("not tested, there is no sandbox here: {unavailable}");
            let project = Project::with(|options| {
                options.processes.sandbox = Some(Sandbox { writable: vec![options.cwd.clone()], network });
            });
            let error = project.error(Bash, json!({"command": "touch ran"})).await;
            assert!(error.contains("The command was not run"), "{error}");
            assert!(!project.path().join("ran").exists());
            return None;
        }
        let outside = TempDir::new().unwrap();
        std::fs::write(outside.path().join("file"), "untouched\n").unwrap();
        let project = Project::with(|options| {
            *options = std::mem::take(options).sandboxed(network).unwrap();
        });
        Some(Self { project, outside })
    }

    /// Runs a command that knows the outside folder as `$out`, and checks that nothing happened there.
    async fn tries(&self, script: &str) -> String {
        let out = self.outside.path().display();
        let output = self.project.call(Bash, json!({"command": format!("out={out}\n{script}"), "timeout": 8})).await;
        let text = output.map_or_else(|error| error, |output| output.to_text());
        let names: Vec<_> =
            std::fs::read_dir(self.outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["file"], "{script}: {text}");
        let content = std::fs::read_to_string(self.outside.path().join("file")).unwrap();
        assert_eq!(content, "untouched\n", "{script}: {text}");
        text
    }
}

#[tokio::test]
async fn work_goes_on_in_a_sandbox() {
    let Some(sandboxed) = Sandboxed::new(Network::Denied).await else { return };
    let temporary = sandboxed.project.temporary.path().display();
    let script = format!(
        "set -e; mkdir -p a/b; echo 1 > a/b/f; mv a/b/f a/f; ln a/f a/g; ln -s f a/h; cat a/h; rm -r a; echo > /dev/null; \
         echo x > {temporary}/t; cat $out/file; (echo sub | cat); mkfifo p; truncate -s 3 s; chmod +x s"
    );
    assert_eq!(sandboxed.tries(&script).await, "1\nuntouched\nsub\n");
}

#[tokio::test]
async fn nothing_is_written_outside() {
    let Some(sandboxed) = Sandboxed::new(Network::Allowed).await else { return };
    for script in [
        "echo x > $out/new",
        "echo x >> $out/file",
        ": > $out/file",
        "truncate -s 0 $out/file",
        "rm $out/file",
        "rmdir $out || rm -rf $out",
        "mv $out/file .",
        "touch here; mv here $out/file",
        "mkdir $out/dir",
        "mkfifo $out/pipe",
        "ln -s /etc $out/link",
        // Paths that only look as if they were inside.
        "echo x > $(pwd)/../${out##*/}/new",
        "ln -s $out/new link; echo x > link",
        "ln -s $out folder; echo x > folder/new; rm -f folder/file",
        "echo x > /proc/self/root$out/new",
        "echo x > /proc/self/cwd/../${out##*/}/new",
        "cd /proc/self/cwd && cd ..; echo x > ${out##*/}/new",
        "exec 9< $out; echo x > /proc/self/fd/9/new",
        // Another name for what is outside.
        "ln $out/file hard && echo x > hard",
        "cp -l $out/file hard; echo x > hard",
        // Children of their own session, and those that outlive the shell.
        "setsid sh -c \"echo x > $out/new\"; setsid -w sh -c \": > $out/file\"",
        "(sleep 0.3; echo x > $out/new) & disown; sleep 0.6",
        // Other rights.
        "unshare -Urm sh -c \"mount --bind . $out && echo x > $out/new\"",
        "mount --bind . $out",
        "mknod disk b 8 0 && echo made",
    ] {
        let text = sandboxed.tries(script).await;
        assert!(!text.contains("made"), "{script}: {text}");
    }
}

#[tokio::test]
async fn other_processes_cannot_be_made_to_write() {
    let Some(sandboxed) = Sandboxed::new(Network::Denied).await else { return };
    let pid = std::process::id();
    let text =
        sandboxed.tries(&format!("echo x > /proc/{pid}/mem && echo written; : < /proc/{pid}/mem && echo read")).await;
    assert!(!text.contains("written\n"), "{text}");
    assert!(!text.contains("read\n"), "{text}");
}

#[tokio::test]
async fn the_network_is_out_of_reach_unless_it_is_allowed() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo connected || echo refused");
    let Some(sandboxed) = Sandboxed::new(Network::Denied).await else { return };
    assert_eq!(sandboxed.tries(&script).await, "refused\n");
    let udp = "(echo x > /dev/udp/127.0.0.1/9) 2>/dev/null && echo sent || echo refused";
    assert_eq!(sandboxed.tries(udp).await, "refused\n");
    let Some(sandboxed) = Sandboxed::new(Network::Allowed).await else { return };
    assert_eq!(sandboxed.tries(&script).await, "connected\n");
}

#[tokio::test]
async fn file_tools_keep_to_the_same_rules() {
    let Some(sandboxed) = Sandboxed::new(Network::Denied).await else { return };
    let (project, file) = (&sandboxed.project, sandboxed.outside.path().join("file"));
    symlink(&file, project.path().join("link")).unwrap();
    for path in ["link".to_owned(), file.display().to_string()] {
        assert_eq!(project.text(Read, json!({"path": path})).await, "untouched\n");
        let error = project.error(Write, json!({"path": path, "content": "x"})).await;
        assert!(error.contains("outside the allowed directories"), "{error}");
        let edits = json!([{"oldText": "untouched", "newText": "x"}]);
        let error = project.error(Edit, json!({"path": path, "edits": edits})).await;
        assert!(error.contains("outside the allowed directories"), "{error}");
    }
    project.call(Write, json!({"path": "inside", "content": "x"})).await.unwrap();
    let temporary = project.temporary.path().join("inside");
    project.call(Write, json!({"path": temporary, "content": "x"})).await.unwrap();
    sandboxed.tries("true").await;
}

#[tokio::test]
async fn this_process_stays_free() {
    let Some(sandboxed) = Sandboxed::new(Network::Denied).await else { return };
    sandboxed.tries("true").await;
    std::fs::write(sandboxed.outside.path().join("file"), "changed by the host\n").unwrap();
    std::net::TcpListener::bind("127.0.0.1:0").unwrap();
}

#[tokio::test]
async fn a_sandbox_and_a_workspace_of_the_application_exclude_each_other() {
    let folder = TempDir::new().unwrap();
    let host = Host {
        cwd: folder.path().to_owned(),
        home: None,
        agent_dir: folder.path().join("agent"),
        temp_dir: folder.path().to_owned(),
        variables: [].into(),
    };
    let workspace = memory_workspace("/p", [("/p/a", "")]);
    let options = SessionOptions::default().host(host).workspace(workspace).sandbox(Network::Denied);
    let error = create_agent_session(options).await.err().unwrap();
    assert!(error.to_string().contains("workspace of its own"), "{error}");
}
