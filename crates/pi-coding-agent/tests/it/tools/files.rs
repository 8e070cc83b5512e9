use pi_coding_agent::tools::builtin::BuiltinTool::{Bash, Edit, Ls, Read, Write};
use pi_coding_agent::workspace::local::{Access, Confinement, ReadScope};
use serde_json::{Value, json};

use super::Project;

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"oldText": old, "newText": new}]})
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn mode(project: &Project, path: &str) -> u32 {
        std::fs::metadata(project.path().join(path)).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(project: &Project, path: &str, mode: u32) {
        std::fs::set_permissions(project.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[tokio::test]
    async fn modes_stay() {
        let project = Project::new();
        for (path, bits) in [("script", 0o755), ("secret", 0o600), ("odd", 0o4711)] {
            project.put(path, "old\n");
            set_mode(&project, path, bits);
            project.call(Edit, edit(path, "old", "new")).await.unwrap();
            assert_eq!(mode(&project, path), bits);
            project.call(Write, json!({"path": path, "content": "newer"})).await.unwrap();
            assert_eq!(mode(&project, path), bits);
            assert_eq!(project.content(path), b"newer");
        }
    }

    /// As root any owner; as anybody else one of their own groups.
    #[tokio::test]
    async fn the_owner_and_the_group_stay() {
        let project = Project::new();
        project.put("file", "old\n");
        let path = project.path().join("file");
        let groups = std::process::Command::new("id").arg("-G").output().unwrap().stdout;
        let groups = String::from_utf8(groups).unwrap();
        let other = groups.split_whitespace().filter_map(|group| group.parse().ok()).next_back();
        let is_root = std::os::unix::fs::chown(&path, Some(12_345), Some(23_456)).is_ok();
        if !is_root {
            std::os::unix::fs::chown(&path, None, other).unwrap();
        }
        set_mode(&project, "file", 0o4750);
        let owner = |metadata: std::fs::Metadata| (metadata.uid(), metadata.gid());
        let before = owner(std::fs::metadata(&path).unwrap());
        assert!(!is_root || before == (12_345, 23_456));
        for (tool, arguments) in
            [(Edit, edit("file", "old", "new")), (Write, json!({"path": "file", "content": "newer"}))]
        {
            project.call(tool, arguments).await.unwrap();
            assert_eq!(owner(std::fs::metadata(&path).unwrap()), before);
            assert_eq!(mode(&project, "file"), 0o4750);
        }
        assert_eq!(project.content("file"), b"newer");
    }

    #[tokio::test]
    async fn a_link_stays_and_its_target_changes() {
        let project = Project::new();
        project.put("real.txt", "old\n");
        symlink("real.txt", project.path().join("link.txt")).unwrap();
        project.call(Edit, edit("link.txt", "old", "new")).await.unwrap();
        assert!(project.path().join("link.txt").is_symlink());
        assert_eq!(project.content("real.txt"), b"new\n");
        symlink("made.txt", project.path().join("to-nothing")).unwrap();
        project.call(Write, json!({"path": "to-nothing", "content": "x"})).await.unwrap();
        assert!(project.path().join("to-nothing").is_symlink());
        assert_eq!(project.content("made.txt"), b"x");
    }

    #[tokio::test]
    async fn every_name_of_a_file_sees_the_change() {
        let project = Project::new();
        project.put("one", "old\n");
        std::fs::hard_link(project.path().join("one"), project.path().join("two")).unwrap();
        project.call(Edit, edit("one", "old", "a longer text")).await.unwrap();
        project.call(Edit, edit("two", "a longer text", "short")).await.unwrap();
        assert_eq!(project.content("one"), b"short\n");
        assert_eq!(std::fs::metadata(project.path().join("one")).unwrap().nlink(), 2);
    }

    #[tokio::test]
    async fn pipes_and_folders_are_refused() {
        let project = Project::new();
        project.text(Bash, json!({"command": "mkfifo pipe; mkdir folder"})).await;
        for (tool, arguments) in [
            (Read, json!({"path": "pipe"})),
            (Write, json!({"path": "pipe", "content": "x"})),
            (Edit, edit("pipe", "a", "b")),
        ] {
            let error = project.error(tool, arguments).await;
            assert!(error.contains("named pipe"), "{error}");
        }
        for (tool, arguments) in [
            (Read, json!({"path": "folder"})),
            (Write, json!({"path": "folder", "content": "x"})),
            (Edit, edit("folder", "a", "b")),
        ] {
            let error = project.error(tool, arguments).await;
            assert!(error.contains("EISDIR"), "{error}");
        }
    }

    #[tokio::test]
    async fn nothing_is_left_beside_a_file() {
        let project = Project::new();
        project.put("a/f", "x\n");
        project.call(Edit, edit("a/f", "x", "y")).await.unwrap();
        let names: Vec<_> = std::fs::read_dir(project.path().join("a")).unwrap().collect();
        assert_eq!(names.len(), 1);
    }

    #[tokio::test]
    async fn kinds_are_marked_in_a_listing() {
        let project = Project::new();
        project
            .text(
                Bash,
                json!({"command": "mkdir d; mkfifo p; ln -s nowhere broken; ln -s d linked; echo > f; ln -s f to-f"}),
            )
            .await;
        assert_eq!(project.text(Ls, json!({})).await, "broken@\nd/\nf\nlinked/\np|\nto-f@");
    }

    #[tokio::test]
    async fn a_file_in_place_of_a_folder_is_told() {
        let project = Project::new();
        project.put("real", "old\n");
        for path in ["real/x", "real/x/y"] {
            let error = project.error(Write, json!({"path": path, "content": "x"})).await;
            assert_eq!(error, format!("Could not write {path:?}: its parent is not a directory (ENOTDIR)."));
        }
        assert_eq!(project.content("real"), b"old\n");
    }

    fn jail(read: ReadScope) -> (Project, tempfile::TempDir) {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret\n").unwrap();
        let project = Project::with(|options| {
            options.access = Access::Confined(Confinement { read, roots: vec![options.cwd.clone()] });
        });
        (project, outside)
    }

    #[tokio::test]
    async fn a_jail_lets_work_through() {
        let (project, _outside) = jail(ReadScope::Roots);
        project.call(Write, json!({"path": "a/b/c.txt", "content": "one\n"})).await.unwrap();
        project.call(Edit, edit("a/b/c.txt", "one", "two")).await.unwrap();
        assert_eq!(project.text(Read, json!({"path": "a/../a/b/c.txt"})).await, "two\n");
        symlink("b/c.txt", project.path().join("a/inside")).unwrap();
        assert_eq!(project.text(Read, json!({"path": "a/inside"})).await, "two\n");
        symlink(project.path().join("a"), project.path().join("absolute")).unwrap();
        project.call(Write, json!({"path": "absolute/new", "content": "x"})).await.unwrap();
        assert_eq!(project.text(Ls, json!({"path": "absolute"})).await, "b/\ninside@\nnew");
    }

    #[tokio::test]
    async fn no_way_leads_out_of_a_jail() {
        let (project, outside) = jail(ReadScope::Roots);
        let secret = outside.path().join("secret");
        symlink(&secret, project.path().join("link")).unwrap();
        symlink(outside.path(), project.path().join("folder")).unwrap();
        symlink(outside.path().join("not-yet"), project.path().join("dangling")).unwrap();
        symlink("/proc/self/root", project.path().join("root")).unwrap();
        let up = "../".repeat(40);
        let ways = [
            secret.display().to_string(),
            format!("{up}{}", secret.display()),
            "link".to_owned(),
            "folder/secret".to_owned(),
            format!("root{}", secret.display()),
            format!("/proc/self/root{}", secret.display()),
            format!("/proc/self/cwd/{up}{}", secret.display()),
        ];
        for way in &ways {
            let error = project.error(Read, json!({"path": way})).await;
            assert!(error.contains("outside the allowed directories"), "{way}: {error}");
        }
        let new = outside.path().join("new").display().to_string();
        let made = outside.path().join("made/x").display().to_string();
        for way in ways.iter().map(String::as_str).chain(["dangling", "folder/new", "folder/a/b", &new, &made]) {
            let error = project.error(Write, json!({"path": way, "content": "x"})).await;
            assert!(error.contains("outside the allowed directories"), "{way}: {error}");
        }
        for way in ["link", "folder/secret"] {
            let error = project.error(Edit, edit(way, "secret", "x")).await;
            assert!(error.contains("outside the allowed directories"), "{way}: {error}");
        }
        assert!(project.error(Ls, json!({"path": "folder"})).await.contains("outside"));
        assert_eq!(std::fs::read(&secret).unwrap(), b"secret\n");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn another_name_of_an_outside_file_is_not_written_in_a_jail() {
        let (project, outside) = jail(ReadScope::Roots);
        std::fs::hard_link(outside.path().join("secret"), project.path().join("other-name")).unwrap();
        let error = project.error(Write, json!({"path": "other-name", "content": "x"})).await;
        assert!(error.contains("hard link"), "{error}");
        assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"secret\n");
    }

    #[tokio::test]
    async fn a_confinement_of_writing_lets_everything_be_read() {
        let (project, outside) = jail(ReadScope::Anywhere);
        let secret = outside.path().join("secret").display().to_string();
        assert_eq!(project.text(Read, json!({"path": secret})).await, "secret\n");
        let error = project.error(Write, json!({"path": secret, "content": "x"})).await;
        assert!(error.contains("outside the allowed directories"), "{error}");
    }
}

#[tokio::test]
async fn home_is_where_it_is_said_to_be() {
    let project = Project::new();
    project.call(Write, json!({"path": "~/y", "content": "in home\n"})).await.unwrap();
    assert_eq!(project.content("home/y"), b"in home\n");
    assert_eq!(project.text(Read, json!({"path": "~/y"})).await, "in home\n");
    assert_eq!(project.text(Ls, json!({"path": "~"})).await, "y");
    assert!(!project.path().join("~").exists());
}

#[tokio::test]
async fn a_write_adds_no_byte_order_mark_and_keeps_the_line_breaks_that_it_was_given() {
    let project = Project::new();
    project.put("marked", "\u{feff}old\r\n");
    for (path, content) in [("marked", "new\nlines\r\n"), ("fresh", "gr\u{fc}n\n")] {
        project.call(Write, json!({"path": path, "content": content})).await.unwrap();
        assert_eq!(project.content(path), content.as_bytes());
    }
}

#[tokio::test]
async fn binary_files_are_refused_with_type_and_size() {
    let project = Project::new();
    project.put("program", b"\x7fELF\x02\x01\x01\0\0");
    let error = project.error(Read, json!({"path": "program"})).await;
    assert!(error.contains("ELF") && error.contains("9B"), "{error}");
    project.put("empty.png", "");
    assert!(project.error(Read, json!({"path": "empty.png"})).await.contains("no image"));
    project.put("text.png", "words\n");
    assert_eq!(project.text(Read, json!({"path": "text.png"})).await, "words\n");
}

#[tokio::test]
async fn other_encodings_are_decoded_and_named() {
    let project = Project::new();
    let wide: Vec<u8> = "\u{feff}h\u{e9}\nz\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.put("wide", wide);
    let text = project.text(Read, json!({"path": "wide"})).await;
    assert!(text.starts_with("h\u{e9}\nz\n\n\n[") && text.contains("UTF-16LE"), "{text}");
    let text = project.text(Read, json!({"path": "wide", "offset": 2, "limit": 1})).await;
    assert!(text.starts_with("z\n\n["), "{text}");
    project.put("latin", b"un caf\xe9 cr\xe8me\n");
    let text = project.text(Read, json!({"path": "latin"})).await;
    assert!(text.starts_with("un caf\u{e9} cr\u{e8}me\n") && text.contains("windows-1252"), "{text}");
    project.put("odd", [b"caf\xc3\xa9 \xff \n".as_slice(), "gr\u{f6}\u{df}er\n".as_bytes()].concat());
    let text = project.text(Read, json!({"path": "odd"})).await;
    assert!(text.starts_with("caf\u{e9} \u{fffd} \ngr\u{f6}\u{df}er\n") && text.contains("not valid UTF-8"), "{text}");
}

#[tokio::test]
async fn a_name_with_marks_that_nobody_sees_is_shown_with_them() {
    let project = Project::new();
    let error = project.error(Read, json!({"path": "no\u{200b}pe"})).await;
    assert!(error.contains(r"no\u{200b}pe"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_of_the_kernel_that_tell_no_size_are_read() {
    let project = Project::new();
    assert!(project.text(Read, json!({"path": "/proc/self/status"})).await.starts_with("Name:"));
}
