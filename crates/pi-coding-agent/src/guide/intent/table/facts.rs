//! Questions about facts of a project: dependencies, languages, version, how things are done.

use super::{Captures, Rule, words::*};
use crate::guide::intent::*;
use crate::guide::utterance::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "what|which|list|show|name|give|does|do|how * dependencies|deps|dependency|depend|depends|libraries|requirements *",
            "dependencies|deps of? *",
        ],
        make: |_, said| {
            let of =
                first_path(said).or_else(|| after(said, &["of", "does", "for"], &["it", "this", "the", "project"]));
            Some(Intent::Dependencies { of })
        },
    },
    Rule {
        patterns: &[
            "which|what|in|is|list|show * language|languages *",
            "what * written|coded|programmed|implemented in *",
        ],
        make: |_, _| Some(Intent::Languages),
    },
    Rule { patterns: &["how do|can|could|should|would|to i|we|you|one|someone? {verb:1} *"], make: how_to },
    Rule {
        patterns: &[
            "what|which|show|who|tell|give|under * {key:1}",
            "what|which|show|give * {key:1} of|is|does|has|are|do *",
        ],
        make: fact,
    },
    Rule {
        patterns: &["* largest|biggest|longest|heaviest file|files|source|module|modules *"],
        make: |_, _| Some(Intent::Largest),
    },
];

fn how_to(kept: &Captures, said: &Utterance) -> Option<Intent> {
    // "How do I run the tests?" is not about running the program.
    if said.has(&["test", "tests", "testsuite"]) && said.has(&["run", "start", "execute", "launch", "try"]) {
        return Some(Intent::HowTo(HowTo::Test));
    }
    Some(Intent::HowTo(match kept.text(said, "verb")?.to_lowercase().as_str() {
        "run" | "start" | "use" | "launch" | "execute" | "try" => HowTo::Run,
        "build" | "compile" | "make" => HowTo::Build,
        "test" | "check" => HowTo::Test,
        "install" | "set" | "setup" | "deploy" => HowTo::Install,
        _ => return None,
    }))
    .filter(|_| !said.has(&["you", "pi"]) || said.has(&["project", "this"]))
}

const FACTS: [&str; 16] = [
    "version",
    "license",
    "licence",
    "author",
    "authors",
    "name",
    "description",
    "edition",
    "msrv",
    "rust-version",
    "repository",
    "homepage",
    "keywords",
    "maintainer",
    "maintainers",
    "readme",
];

fn fact(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let key = kept.text(said, "key")?.to_lowercase();
    let said_key = key.trim_matches(['?', '.', '!']);
    let key = match said_key {
        "licence" => "license",
        "author" | "maintainer" | "maintainers" => "authors",
        "msrv" => "rust-version",
        other => other,
    };
    // A question about one file's own fact is an explanation of the file.
    let about_file = first_path(said).is_some_and(|path| !path.to_lowercase().starts_with(said_key));
    (FACTS.contains(&key) && !about_file).then(|| Intent::Fact { key: key.to_owned() })
}
