//! Facts of a project: dependencies, languages, version, how to build and run it, its largest files.

use serde_json::Value;

use super::{
    overview::join,
    parts,
    text::{code, enumerate, list, plural},
};
use crate::guide::{
    desk::{Amount, Ask, Desk, Query, QueryKind, Settle},
    intent::HowTo,
    language::{Language, toml},
};

/// What a project depends on.
pub(super) fn dependencies(desk: &mut Desk<'_>, of: Option<&str>) -> Ask<String> {
    desk.remark("Reading the manifest.");
    let mut folder = ".".to_owned();
    if let Some(of) = of {
        if let Some(parent) = of.rsplit_once('/').map(|(parent, _)| parent).filter(|_| is_manifest(of)) {
            folder = parent.to_owned();
        } else if !is_manifest(of) {
            let found = parts::find(desk, ".")?;
            match found.named(of) {
                Some(part) => folder = part.folder.clone(),
                None => return Ok(format!("There is no part called {} here. {}", code(of), found.names_sentence())),
            }
        }
    }
    let mut answers = Vec::new();
    for name in ["Cargo.toml", "package.json", "pyproject.toml", "requirements.txt", "go.mod"] {
        let file = join(&folder, name);
        if !has_entry(desk, &folder, name)? {
            continue;
        }
        let text = desk.read_start(&file)?.text;
        let groups = dependency_groups(name, &text);
        for (title, names) in &groups {
            let names: Vec<String> = names.iter().map(code).collect();
            answers.push(format!(
                "{} lists {} ({title}):\n\n{}",
                code(&file),
                plural(names.len(), "dependency"),
                list(&names, 60)
            ));
        }
        if groups.is_empty() {
            answers.push(format!("{} lists no dependencies.", code(&file)));
        }
    }
    Ok(if answers.is_empty() {
        "I found no manifest here that lists dependencies.".to_owned()
    } else {
        answers.join("\n\n")
    })
}

fn is_manifest(path: &str) -> bool {
    matches!(
        path.rsplit('/').next().unwrap_or(path),
        "Cargo.toml" | "package.json" | "pyproject.toml" | "requirements.txt" | "go.mod"
    )
}

pub(super) fn has_entry(desk: &mut Desk<'_>, folder: &str, name: &str) -> Ask<bool> {
    Ok(desk.list(folder)?.iter().any(|entry| entry.name == name))
}

/// Dependencies by group, each with its version where it is plain.
pub(super) fn dependency_groups(manifest: &str, text: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |title: &str, names: Vec<String>| {
        if !names.is_empty() {
            groups.push((title.to_owned(), names));
        }
    };
    let versioned = |(name, value): (&String, &Value)| match value.as_str().or_else(|| value.get("version")?.as_str()) {
        Some(version) => format!("{name} {version}"),
        None => name.clone(),
    };
    let of_table = |table: &Value| {
        table.as_object().map(|table| table.iter().map(versioned).collect::<Vec<_>>()).unwrap_or_default()
    };
    match manifest {
        "Cargo.toml" => {
            let toml = toml::parse(text);
            add("of the workspace", of_table(&toml["workspace"]["dependencies"]));
            add("normal", of_table(&toml["dependencies"]));
            add("for tests", of_table(&toml["dev-dependencies"]));
            add("for the build", of_table(&toml["build-dependencies"]));
        }
        "package.json" => {
            let json: Value = serde_json::from_str(text).unwrap_or_default();
            add("normal", of_table(&json["dependencies"]));
            add("for development", of_table(&json["devDependencies"]));
            add("of the host", of_table(&json["peerDependencies"]));
        }
        "pyproject.toml" => {
            let toml = toml::parse(text);
            let texts = |list: &Value| {
                list.as_array()
                    .map(|list| list.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect::<Vec<_>>())
                    .unwrap_or_default()
            };
            add("normal", texts(&toml["project"]["dependencies"]));
            add("of poetry", of_table(&toml["tool"]["poetry"]["dependencies"]));
            for table in [&toml["project"]["optional-dependencies"], &toml["dependency-groups"]] {
                for (name, group) in table.as_object().into_iter().flatten() {
                    add(name, texts(group));
                }
            }
        }
        "requirements.txt" => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '-']));
            add("required", lines.map(str::to_owned).collect());
        }
        "go.mod" => {
            let direct = |line: &str| {
                let line = line.trim().trim_start_matches("require ").trim();
                let mut words = line.split_whitespace();
                let (name, version) = (words.next()?, words.next()?);
                (name.contains('.') && version.starts_with('v') && !line.contains("// indirect"))
                    .then(|| format!("{name} {version}"))
            };
            add("direct", text.lines().filter_map(direct).collect());
        }
        _ => {}
    }
    groups
}

/// Which languages a project is written in, by files and lines.
pub(super) fn languages(desk: &mut Desk<'_>) -> Ask<String> {
    desk.remark("Counting files by language.");
    let files = desk.files(".")?;
    let mut counts: Vec<(Language, usize)> = Vec::new();
    for language in files.items.iter().filter_map(|file| Language::of_path(file)) {
        match counts.iter_mut().find(|(known, _)| *known == language) {
            Some((_, count)) => *count += 1,
            None => counts.push((language, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (code_files, others): (Vec<_>, Vec<_>) = counts.into_iter().partition(|(language, _)| language.is_code());
    let Some((main, _)) = code_files.first() else {
        let others: Vec<String> = others
            .iter()
            .map(|(language, count)| format!("{} ({})", language.name(), plural(*count, "file")))
            .collect();
        return Ok(if others.is_empty() {
            "I see no source files of a language that I know.".to_owned()
        } else {
            format!("I see no program code of a language that I know; there is {}.", enumerate(&others))
        });
    };
    let items: Vec<String> = code_files
        .iter()
        .chain(&others)
        .map(|(language, count)| format!("{}: {}", language.name(), plural(*count, "file")))
        .collect();
    let part = match files.total {
        Amount::Exactly(total) if total > files.items.len() => {
            format!(" (of the first {} of {total} files)", files.items.len())
        }
        Amount::AtLeast(seen) => format!(" (of the {seen} files that I could see)"),
        Amount::Exactly(_) => String::new(),
    };
    Ok(format!("Mostly {}. Files by language{part}:\n\n{}", main.name(), list(&items, 20)))
}

/// A fact of the manifest.
pub(super) fn fact(desk: &mut Desk<'_>, key: &str) -> Ask<String> {
    desk.remark("Reading the manifest.");
    let entries = desk.list(".")?;
    for name in ["Cargo.toml", "pyproject.toml", "package.json", "setup.cfg"] {
        if !entries.iter().any(|entry| entry.name == name) {
            continue;
        }
        let text = desk.read_start(name)?.text;
        if let Some(value) = parts::manifest_text(name, &text, key) {
            return Ok(format!("The {key} is {} (in {}).", code(value), code(name)));
        }
    }
    if key == "license"
        && let Some(entry) =
            entries.iter().find(|entry| entry.name.to_lowercase().starts_with("licen") || entry.name == "COPYING")
    {
        let text = desk.read_start(&entry.name)?.text;
        let title = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
        return Ok(format!("{} begins with: {title}", code(&entry.name)));
    }
    Ok(format!("I found no {key} in a manifest at the top of this folder."))
}

/// How something is done here.
pub(super) fn how_to(desk: &mut Desk<'_>, what: HowTo) -> Ask<String> {
    desk.remark("Looking for build files.");
    let entries = desk.list(".")?;
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    let mut ways: Vec<String> = Vec::new();
    let mut add = |command: &str, source: &str| ways.push(format!("{} ({})", code(command), code(source)));
    if has("Cargo.toml") {
        add(["cargo run", "cargo build", "cargo test", "cargo build --release"][what as usize], "Cargo.toml");
    }
    if has("package.json") {
        let text = desk.read_start("package.json")?.text;
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        let wanted: &[&str] = match what {
            HowTo::Run => &["start", "dev", "serve"],
            HowTo::Build => &["build", "compile"],
            HowTo::Test => &["test"],
            HowTo::Install => &["install", "postinstall"],
        };
        for script in wanted.iter().filter(|script| json["scripts"][**script].is_string()) {
            add(&format!("npm run {script}"), "package.json");
        }
        if what == HowTo::Install {
            add("npm install", "package.json");
        }
    }
    if has("pyproject.toml") || has("setup.py") {
        let source = if has("pyproject.toml") { "pyproject.toml" } else { "setup.py" };
        match what {
            HowTo::Install | HowTo::Build => add("python3 -m pip install .", source),
            HowTo::Test => add("python3 -m pytest", source),
            HowTo::Run => {}
        }
    }
    if has("go.mod") {
        add(["go run .", "go build ./...", "go test ./...", "go install ./..."][what as usize], "go.mod");
    }
    if let Some(makefile) = ["Makefile", "makefile", "GNUmakefile"].into_iter().find(|name| has(name)) {
        let text = desk.read_start(makefile)?.text;
        let targets: &[&str] = match what {
            HowTo::Run => &["run", "start", "serve"],
            HowTo::Build => &["build", "all"],
            HowTo::Test => &["test", "check"],
            HowTo::Install => &["install", "setup"],
        };
        for target in targets.iter().filter(|target| text.lines().any(|line| line.starts_with(&format!("{target}:")))) {
            add(&format!("make {target}"), makefile);
        }
    }
    let verb = ["run", "build", "test", "install"][what as usize];
    let readme = entries.iter().find(|entry| super::overview::is_readme(&entry.name)).map(|entry| entry.name.clone());
    let mut answer = if ways.is_empty() {
        String::new()
    } else {
        format!("To {verb} it, from the files here:\n\n{}", list(&ways, 10))
    };
    if let Some(readme) = readme {
        let text = desk.read_start(&readme)?.text;
        let commands = commands_in(&text, what);
        if !commands.is_empty() {
            answer.push_str(&format!(
                "\n\n{} has these commands:\n\n{}",
                code(&readme),
                super::text::block_in("sh", &commands.join("\n"), 12)
            ));
        }
    }
    Ok(if answer.is_empty() {
        format!(
            "I found nothing here that says how to {verb} it: no build file that I know and no commands in a README."
        )
    } else {
        answer.trim().to_owned()
    })
}

/// Shell lines of a text that have to do with a verb: those that name it, and those below a heading about it.
fn commands_in(markdown: &str, what: HowTo) -> Vec<String> {
    let words: &[&str] = match what {
        HowTo::Run => &["run", "usage", "use", "start", "quick"],
        HowTo::Build => &["build", "compil"],
        HowTo::Test => &["test"],
        HowTo::Install => &["install", "setup", "set up", "getting started"],
    };
    let names_it = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
    let (mut fenced, mut is_shell, mut below_heading) = (false, false, false);
    let mut commands = Vec::new();
    for line in markdown.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            is_shell = matches!(language.trim(), "" | "sh" | "bash" | "shell" | "console" | "zsh");
        } else if fenced && is_shell {
            let command = line.trim_start_matches("$ ");
            let is_command = command.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '/'));
            if is_command && (below_heading || names_it(command)) {
                commands.push(command.to_owned());
            }
        } else if !fenced && line.starts_with('#') {
            below_heading = names_it(line);
        }
    }
    commands
}

/// The largest files by lines.
pub(super) fn largest(desk: &mut Desk<'_>) -> Ask<String> {
    desk.remark("Measuring files.");
    let (mut counts, part) = match desk.longest_files(10).settle()? {
        Ok(Some(files)) => (files, ""),
        Ok(None) => {
            let found = desk.count_matches(".", &Query::new("", QueryKind::Text)).settle()?.unwrap_or_default();
            let part = if matches!(found.total, Amount::AtLeast(_)) { " among those that I could measure" } else { "" };
            (found.items, part)
        }
        Err(_) => (Vec::new(), ""),
    };
    counts.sort_by_key(|(_, lines)| std::cmp::Reverse(*lines));
    let items: Vec<String> =
        counts.iter().take(10).map(|(file, lines)| format!("{} — {}", code(file), plural(*lines, "line"))).collect();
    Ok(if items.is_empty() {
        "I could not measure any file here.".to_owned()
    } else {
        format!("The largest text files by lines{part}:\n\n{}", list(&items, 10))
    })
}
