//! Which command runs a project's tests.

use serde_json::Value;

use crate::guide::{
    desk::{Ask, Desk, Entry, Settle, quote},
    utterance::looks_like_path,
};

/// A command that runs tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runner {
    pub(super) command: String,
    /// A sign in the output that the tool is not installed, and the command to run then.
    pub(super) without: Option<(String, String)>,
}

fn runner(command: impl Into<String>) -> Option<Runner> {
    Some(Runner { command: command.into(), without: None })
}

/// Chooses by the files at the top of the folder.
pub(super) fn choose(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<Option<Runner>> {
    let entries = desk.list(".")?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let scope = scope.map(|scope| scope.trim_start_matches("./"));
    if has("Cargo.toml") {
        return Ok(runner(cargo(desk, scope)?));
    }
    if has("package.json") {
        let json: Value = serde_json::from_str(&desk.read_start("package.json")?.text).unwrap_or_default();
        if json["scripts"]["test"].is_string() {
            let program = if has("pnpm-lock.yaml") {
                "pnpm"
            } else if has("yarn.lock") {
                "yarn"
            } else if has("bun.lock") || has("bun.lockb") {
                "bun run"
            } else {
                "npm"
            };
            let scope = scope.map(|scope| format!(" -- {}", quote(scope))).unwrap_or_default();
            return Ok(runner(format!("CI=1 {program} test{scope}")));
        }
    }
    if has("go.mod") {
        return Ok(runner(match scope {
            Some(scope) if looks_like_path(scope) => format!("go test ./{}/...", scope.trim_end_matches('/')),
            Some(name) => format!("go test -run {} ./...", quote(name)),
            None => "go test ./...".to_owned(),
        }));
    }
    if let Some(place) = python_tests(desk, &entries)? {
        return Ok(Some(python(scope, place)));
    }
    if let Some(makefile) = ["Makefile", "makefile", "GNUmakefile"].into_iter().find(|name| has(name)) {
        let text = desk.read_start(makefile)?.text;
        if let Some(target) = ["test", "tests", "check"]
            .into_iter()
            .find(|target| text.lines().any(|line| line.starts_with(&format!("{target}:"))))
        {
            return Ok(runner(format!("make {target}")));
        }
    }
    const OTHERS: [(&str, &str); 9] = [
        ("deno.json", "deno test"),
        ("pom.xml", "mvn -q test"),
        ("gradlew", "./gradlew test"),
        ("build.gradle", "gradle test"),
        ("mix.exs", "mix test"),
        ("Package.swift", "swift test"),
        ("build.zig", "zig build test"),
        ("Gemfile", "bundle exec rake test"),
        ("composer.json", "composer test"),
    ];
    if let Some((_, command)) = OTHERS.into_iter().find(|(file, _)| has(file)) {
        return Ok(runner(command));
    }
    if entries.iter().any(|entry| entry.name.ends_with(".sln") || entry.name.ends_with(".csproj")) {
        return Ok(runner("dotnet test"));
    }
    let node_tests = entries.iter().any(|entry| entry.name.ends_with(".test.js") || entry.name.ends_with(".test.mjs"));
    Ok(if node_tests { runner("node --test") } else { None })
}

/// A scope may be a crate, a test file or a part of a test's name.
fn cargo(desk: &mut Desk<'_>, scope: Option<&str>) -> Ask<String> {
    let Some(scope) = scope else { return Ok("cargo test --no-fail-fast".to_owned()) };
    let found = crate::guide::task::parts::find(desk, ".").settle()?;
    if let Ok(found) = &found
        && let Some(part) = found.parts.iter().find(|part| {
            part.name == scope
                || part.folder == scope.trim_end_matches('/')
                || part.folder.rsplit('/').next() == Some(scope)
        })
    {
        return Ok(format!("cargo test --no-fail-fast -p {}", quote(&part.name)));
    }
    let file = scope.strip_prefix("tests/").and_then(|name| name.strip_suffix(".rs"));
    Ok(match file {
        Some(name) => format!("cargo test --no-fail-fast --test {}", quote(name)),
        None => format!(
            "cargo test --no-fail-fast {}",
            quote(scope.trim_end_matches(".rs").rsplit('/').next().unwrap_or(scope))
        ),
    })
}

/// Where a Python folder has its tests; `None` when it does not look like one.
fn python_tests(desk: &mut Desk<'_>, entries: &[Entry]) -> Ask<Option<&'static str>> {
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let is_test = |name: &str| name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"));
    if entries.iter().any(|entry| is_test(&entry.name)) || has("pytest.ini") || has("conftest.py") {
        return Ok(Some("."));
    }
    for folder in ["tests", "test"] {
        if has(folder) {
            let inner = desk.list(folder).settle()?.unwrap_or_default();
            if inner.iter().any(|entry| is_test(&entry.name) || entry.name == "conftest.py") {
                return Ok(Some(folder));
            }
        }
    }
    Ok((has("pyproject.toml") || has("setup.py") || has("tox.ini")).then_some("."))
}

/// Pytest, and where it is not installed, what Python itself has.
fn python(scope: Option<&str>, place: &str) -> Runner {
    let start = if place == "." { String::new() } else { format!(" -s {place}") };
    let (target, unit) = match scope {
        Some(path) if looks_like_path(path) => (format!(" {}", quote(path)), format!(" -v {}", quote(path))),
        Some(name) => (format!(" -k {}", quote(name)), format!(" discover -v{start} -k {}", quote(name))),
        None => (String::new(), format!(" discover -v{start}")),
    };
    Runner {
        command: format!("python3 -m pytest -q{target}"),
        without: Some(("No module named pytest".to_owned(), format!("python3 -m unittest{unit}"))),
    }
}
