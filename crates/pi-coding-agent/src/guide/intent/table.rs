//! Requests with a form of their own, as patterns.

use std::sync::LazyLock;

use super::{
    Countable, Existing, GitQuestion, HowTo, Intent, Lines, Missing, PartKind, Place, Scope, Subject, Usage,
    WholeWords,
    pattern::{Captures, Pattern},
};
use crate::guide::{
    language::Language,
    utterance::{Utterance, has_extension, looks_like_identifier, looks_like_path},
};

type Make = fn(&Captures, &Utterance) -> Option<Intent>;

/// Patterns that mean the same, and what they mean. The first one that fits and makes an intent counts.
struct Rule {
    patterns: &'static [&'static str],
    make: Make,
}

/// Finds the rule that fits.
pub(super) fn look_up(said: &Utterance) -> Option<Intent> {
    static READ: LazyLock<Vec<(Vec<Pattern>, Make)>> = LazyLock::new(|| {
        let read = |rule: &Rule| (rule.patterns.iter().map(|pattern| Pattern::new(pattern)).collect(), rule.make);
        RULES.iter().map(read).collect()
    });
    READ.iter().find_map(|(patterns, make)| patterns.iter().find_map(|pattern| make(&pattern.fit(said)?, said)))
}

const RULES: &[Rule] = &[
    // Changes of files: their arguments may contain any word, so they come first.
    Rule {
        patterns: &[
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q} everywhere|throughout *",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q} in|inside|within|of|across {scope}",
            "in|inside|within {scope} replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q}",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} in|inside|within {scope} by|with|to|into|-> * {b:q}",
            "in|inside|within {scope} * {a:q} should|must be|read|become {b:q} *",
            "replace|substitute|change|swap|rename|update|turn|convert * {a:q} by|with|to|into|for|as|-> * {b:q}",
            "use {b:q} instead of {a:q} in {scope}",
            "use {b:q} instead of {a:q}",
            "replace|substitute|change|swap|rename {a} by|with|to|into|-> {b} in|inside|within|across {scope}",
            "in|inside|within {scope} replace|substitute|change|swap|rename {a} by|with|to|into|-> {b}",
            "replace|substitute|change|swap|rename {a} in|inside|within {scope} by|with|to|into|-> {b}",
            "replace|substitute|change|swap|rename {a} by|with|to|into|-> {b} everywhere|throughout *",
            "use {b} instead of {a} in {scope}",
        ],
        make: replace,
    },
    Rule { patterns: &["rename|move|mv the? file|folder? {a:p} to|into|as|-> {b:p}"], make: rename },
    Rule { patterns: &["replace|substitute|change|swap|rename {a} by|with|to|into|-> {b}"], make: replace },
    Rule {
        patterns: &[
            "create|make|add|mkdir a|the? new? empty? folder|directory|dir called|named? {path:p}",
            "create|make a|the? new? empty? folder|directory|dir called|named? {path:1}",
            "mkdir {path:1}",
        ],
        make: |kept, said| Some(Intent::MakeFolder { folder: kept.text(said, "path")?.to_owned() }),
    },
    Rule {
        patterns: &[
            "create|make|write|add|generate|produce|overwrite a|an|the|me? new? empty? text|source|small|simple? file|script|document|module|test? called|named|at? {path:p} with|containing|holding|saying|having|that|which *",
            "overwrite the? file? {path:p} with *",
            "create|make|write|add|generate|produce|touch|overwrite a|an|the|me? new? empty? text|source|small|simple? file|script|document|module|test? called|named|at? {path:p}",
            "create|make|write|add|generate|produce|touch|overwrite an? empty? {path:p}",
            "create|make|write|add|generate|produce|touch|overwrite {path:p} * {content:q} *",
            "create|make|write|generate a|an|the? new? file|script|document with * {content:q} called|named|at|in|as {path:p}",
        ],
        make: create,
    },
    Rule {
        patterns: &[
            "append|add|insert|put * {text:q} to|at|into|in|on the? very? top|beginning|start|head of|in * {file:p}",
            "append|add|insert|put * {text:q} to|at|into|in|on the? very? end|bottom of|in * {file:p}",
            "append|add|insert|put * {text:q} before|above * {anchor:q} to|in|into|of * {file:p}",
            "append|add|insert|put * {text:q} after|below|behind * {anchor:q} to|in|into|of * {file:p}",
            "append|add|insert|put in|to * {file:p} * {text:q}",
            "append|add * {text:q} to|into|in * {file:p}",
            "append|add a|the? line|text|words? {text} to|at|into|in the? end|bottom? of? the? file? {file:p}",
            "append|add a|the? new? line|lines|text {text:q}",
            "append {text:q}",
        ],
        make: insert,
    },
    Rule {
        patterns: &[
            "write|put|save|store|insert {content:q} to|into|in|as|at a|the? new? file? called|named? {path:p}",
            "write|put|save|store a|the? text|line|words? {content} to|into|as a|the? new? file? called|named? {path:p}",
        ],
        make: create,
    },
    Rule {
        patterns: &[
            "remove|delete|drop|erase|strip * {a:q} from|in|out of? the? file? {scope:p}",
            "remove|delete|drop|erase|strip all? every? the? occurrences|word|text|line|lines? of? {a} from|in the? file? {scope:p}",
        ],
        make: remove,
    },
    Rule {
        patterns: &["remove|delete|rm|erase the? file? called|named? {file:p}"],
        make: |kept, said| Some(Intent::Delete { file: kept.text(said, "file")?.to_owned() }),
    },
    // Commands.
    Rule {
        patterns: &[
            "run|execute|launch the? command|commands|shell? {command:q} *",
            "run|execute the? command|shell {command}",
        ],
        make: run,
    },
    Rule { patterns: &["run|execute|launch|start|do? {command}", "{command}"], make: run_known_program },
    Rule {
        patterns: &[
            "run|execute|launch|start|rerun|repeat|try all? of? the|my|our|your|its? unit|integration|doc|all? tests|test|testsuite|specs suite|cases? in|of|for|from|under the? file|folder|crate|package|module? {scope}",
            "run|execute|rerun the? test|tests|spec called|named|for? {scope:p} *",
            "run|execute|rerun|test {scope:p} *",
            "run|execute|rerun|try the? {scope:1} tests|test *",
        ],
        make: scoped_tests,
    },
    Rule {
        patterns: &[
            "run|execute|launch|start|rerun|repeat|try|do * tests|test|testsuite|testing|pytest|specs *",
            "test it|this|everything|all|the|my|our *",
            "test",
            "tests",
            "* do|does|did|are|is|will|if|whether * tests|test|testsuite|suite pass|passing|passes|pass|green|work|working|succeed|fail|failing|fails|ok|okay|red|broken *",
            "which|what|any|how many tests|test are|do|does? fail|fails|failing|failed|broken|pass|red *",
            "are|is there any? failing|failed|broken tests|test *",
            "what * tests|test * fail|fails|failing|failed *",
        ],
        make: |_, _| Some(Intent::Tests { scope: None, command: None }),
    },
    Rule {
        patterns: &[
            "build|compile|check it|this|everything|the|my|our? project|code|crate|workspace|package|program? *",
            "does|do|will * build|compile|builds|compiles *",
            "is the? build|code * broken|green|ok|working *",
            "run|start|do the|a? build *",
        ],
        make: build,
    },
    // Questions to git.
    Rule {
        patterns: &[
            "what|which * changed|changes|modified *",
            "what did|have i|we|you|it|they change|changed|modify|modified|edit|edited|touch *",
            "git status",
            "is|are * uncommitted|unstaged|dirty *",
            "show|list|give me? the|my|all? uncommitted|unstaged|local|current|recent? changes|modifications *",
        ],
        make: |_, said| {
            let file = first_path(said);
            Some(Intent::Git(if said.has(&["commit", "commits"]) && !said.has(&["uncommitted"]) {
                GitQuestion::LastCommit
            } else {
                GitQuestion::Changes { file }
            }))
        },
    },
    Rule {
        patterns: &["show|print|give|see|what|which me? is? the|a|my? diff|diffs|patch *", "git diff *", "diff *"],
        make: |_, said| Some(Intent::Git(GitQuestion::Diff { file: first_path(said) })),
    },
    Rule {
        patterns: &["* last|latest|newest|previous|recent commit *", "git show *"],
        make: |_, said| (!said.has(&["commits"])).then_some(Intent::Git(GitQuestion::LastCommit)),
    },
    Rule {
        patterns: &["* commits|history|changelog|log *", "git log *"],
        make: |_, said| {
            if said.has(&["many", "number", "count"]) {
                return Some(Intent::Count { what: Countable::Commits, scope: None });
            }
            let about_git = said.has(&["commit", "commits", "history", "git"]);
            about_git.then(|| Intent::Git(GitQuestion::Log { file: first_path(said) }))
        },
    },
    Rule {
        patterns: &["which|what|current|on * branch|branches *", "git branch *", "show|list the? branch|branches *"],
        make: |_, _| Some(Intent::Git(GitQuestion::Branch)),
    },
    // Counting.
    Rule {
        patterns: &[
            "how many lines|line|loc in|of|does|has|are|do|is * {scope:p} * ",
            "how long|big|large is the? file? {scope:p} *",
            "count the? lines|line in|of * {scope:p} *",
            "* number of lines in|of * {scope:p} *",
        ],
        make: |kept, said| {
            Some(Intent::Count { what: Countable::Lines, scope: Some(kept.text(said, "scope")?.to_owned()) })
        },
    },
    Rule {
        patterns: &[
            "how many times|often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show in|across * {scope:p} *",
            "how many times|often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show *",
            "how often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show in|across * {scope:p} *",
            "how often does|do|is|are? the? word|text|string? {text} occur|occurs|appear|appears|used|mentioned|show *",
            "how many|count|number the|of? all? occurrences|mentions|instances|uses|usages of|for? the? word|text? {text} are|in|across|there|do|does * {scope:p} *",
            "how many|count|number the|of? all? occurrences|mentions|instances|uses|usages of|for? the? word|text? {text}",
            "how many todo|todos|fixme|fixmes *",
        ],
        make: |kept, said| {
            let text = kept.text(said, "text").unwrap_or(if said.has(&["fixme", "fixmes"]) { "FIXME" } else { "TODO" });
            let scope = kept.text(said, "scope").map(str::to_owned).or_else(|| scope_after_in(said));
            Some(Intent::Count { what: Countable::Occurrences(without_scope(text).to_owned()), scope })
        },
    },
    Rule {
        patterns: &["how many|much {what}", "count all? the? {what}", "* number|amount|count of {what}"],
        make: count,
    },
    // Reading.
    Rule {
        patterns: &[
            "<show> * first|top|last|bottom {n:1} lines|line of|from|in the? file? {file:p} *",
            "<show> * lines|line {n:1} to|through|-|until|and {m:1} of|from|in the? file? {file:p} *",
            "<show> * lines|line {n:1} of|from|in the? file? {file:p} *",
            "<show> {file:p} lines|line from? {n:1} to|through|-|until|and {m:1}",
            "<show> {file:p} lines|line {n:1}",
            "<show> me? the? first|top|last|bottom {n:1} lines|line",
            "what is|does|are|stands? on|in|at? line|lines {n:1} of|from|in the? file? {file:p} *",
            "head|tail {file:p}",
        ],
        make: read_lines,
    },
    Rule {
        patterns: &[
            "<show> me? the? whole|full|complete|entire|raw? file|content|contents|text|source|code of|in|from the? file? called|named? {file:p} *",
            "<show> me? the|whole|full? file {file:p} *",
            "<show> me? {file:p}",
            "<show> me? the? content|contents|text|source of {file:p}",
            "what does the? file? {file:p} say|contain|hold|look *",
            "what is|are written|inside|the? content|contents? in|of|inside the? file {file:p} *",
            "what is the? content|contents of|in the? file? {file:p} *",
        ],
        make: |kept, said| {
            let file = kept.text(said, "file")?;
            if is_listing(said) || file.ends_with('/') || matches!(file, "." | "..") {
                return Some(Intent::Overview { folder: Some(file.to_owned()) });
            }
            Some(Intent::Read { file: file.to_owned(), lines: Lines::All })
        },
    },
    // Places in the code.
    Rule {
        patterns: &[
            "* where|wherever is|are|was|does|do? the|a? <kind>? {x} is|are|was|get|gets|being? defined|declared|implemented|introduced|located|live|lives|coming|come *",
            "* where is|are the|a? definition|declaration|implementation|source|code of|for the? <kind>? {x}",
            "* definition|declaration|implementation of|for the? <kind>? {x}",
            "* which|what file|files|module|crate|class|place|line defines|define|declares|declare|implements|implement the? <kind>? {x}",
            "* who|what defines|declares|implements the? <kind>? {x}",
            "go|jump|take to the? definition? of? {x:1}",
            "find|locate|show|where|get me? is? the? definition|declaration|implementation? of? the|a? function|fn|method|struct|class|enum|trait|type|interface|constant|const|macro|variable|symbol|module {x:1}",
            "find|locate|where|get is? the? {x:1} function|fn|method|struct|class|enum|trait|type|interface|constant|const|macro|variable|symbol",
            "where do|does|did we|you|i|it|they|the? code|program|project? define|declare|implement|set the? <kind>? {x}",
            "define|definition|def {x:1}",
        ],
        make: definition,
    },
    Rule {
        patterns: &[
            "* entry point|points *",
            "* entrypoint *",
            "where does|is the? program|main|app|application|it|execution start|starts|begin|begins|function *",
        ],
        make: |_, _| Some(Intent::Definition { name: "main".into() }),
    },
    Rule {
        patterns: &[
            "* where|how is|are|do|does|did we|you|i|it|they? the|a? <kind>? {x} is|are|get|gets|being? used|called|referenced|invoked|imported|mentioned|use|call *",
            "* usages|usage|uses|references|reference|callers|caller|calls of|to|for the|a? <kind>? {x}",
            "* who|what|which files|file|code|place|places|modules|module|functions|tests? uses|use|calls|call|references|reference|imports|import|invokes the|a? <kind>? {x}",
        ],
        make: |kept, said| {
            let (text, scope) = split_scope(kept.text(said, "x")?);
            Some(Intent::Search { text: bare(text).to_owned(), scope, usage: Usage::Name })
        },
    },
    Rule {
        patterns: &[
            "find|list|show|search|count|look me? for? all? the|any? files|file named|called|matching|like|with the|a? name|extension? {pattern:1} *",
            "find|list|show|search me? for? all|every|the|any? {pattern:1} files|file *",
            "find|locate|search|look for? the? file|folder {pattern:1}",
            "where is|are the? file|folder|directory? {pattern:p}",
            "where can|do i|we find the? file|folder|directory? {pattern:p}",
            "is|are there a|an|any? file|files|folder? called|named? {pattern:p} *",
            "do|does we|you|it|this|the? project|repo? have a|an? {pattern:p} *",
            "find|locate {pattern:p}",
        ],
        make: find_files,
    },
    Rule {
        patterns: &[
            "search|grep|look|scan|hunt|query|find in|through|inside {scope:p} for all? the? word|text|string|occurrences|phrase? of? {text}",
            "in {scope:p} search|grep|look|find for? the? word|text|string? {text}",
            "search|grep|look|scan|hunt|query the|this|whole|entire? project|code|codebase|repo|repository|files|folder? for all? the? word|text|string|occurrences|phrase|pattern|term? of? {text}",
            "grep {text}",
            "search {text}",
            "find|list|show|get me? all|every|any|the? occurrences|occurrence|mentions|mention|instances|places|matches|lines of|with|containing|where|that|for? contain|mention|match? the? word|text|string? {text}",
            "which|what|list|find|show all? the? files|file|lines|places contain|contains|mention|mentions|include|includes|have|has|containing|mentioning|with the? word|text|string? {text}",
            "where does|do|is|are the? word|text|string|message|error|phrase|comment {text} occur|appear|appears|stand|come|mentioned|written|from|found|printed|in? *",
            "where does|do|is|are * {text:q} occur|appear|appears|stand|come|mentioned|written|from|found|printed *",
            "find|locate * {text:q} in|inside|within {scope}",
            "find|locate * {text:q}",
            "find|locate {text} in|inside|within the? {scope:p} *",
            "find|locate|show|list all? the|any? todo|todos|fixme|fixmes *",
            "are|is there any? todo|todos|fixme|fixmes *",
        ],
        make: search,
    },
    // The parts of a project.
    Rule {
        patterns: &[
            "what is|does|do the? crate|package|module|member|library {named:1} *",
            "what is|does|do the? {named:1} crate|package|module|member|library *",
            "explain|describe|summarize|summarise the? crate|package|module|member {named:1} *",
            "explain|describe|summarize|summarise the? {named:1} crate|package|module|member *",
        ],
        make: |kept, said| {
            members(kept, said).filter(|intent| matches!(intent, Intent::Members { named: Some(_), .. }))
        },
    },
    Rule {
        patterns: &[
            "which|what|list|show|name|give|describe|explain|enumerate|summarize|summarise|are|do|does * crates|crate|packages|subpackages|members|modules|subprojects|subproject|projects|components|libraries|libs|apps|services|parts|pieces *",
            "* crates|packages|members|modules|subprojects|components|libraries of|in this|the|my|our *",
        ],
        make: members,
    },
    // Facts.
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
    // Folders and projects as a whole.
    Rule {
        patterns: &[
            "what is this|the|that|your|our|my? project|repo|repository|codebase|code|program|app|application|tool|package|thing|software for|about|all|doing|here|supposed? *",
            "what is this",
            "what does this|the|our|my? whole? project|repo|repository|codebase|code|program|app|application|tool|software|it do|contain|offer *",
            "what is this|the|it about|for",
            "explain|describe|summarize|summarise|introduce|document|overview|analyze|analyse|review|understand me? this|the|our|my|to|through? whole|entire? project|repo|repository|codebase|code|program|app|application|workspace|structure|architecture|layout *",
            "* overview|structure|architecture|layout|organization|organisation of|in this|the|our|my? project|repo|repository|codebase|code|program|app|application|workspace *",
            "give|show me? an|a? short|brief|quick|high|high-level? level? overview|summary|introduction|tour *",
            "walk|guide|show|take me|us through|around this|the|our? project|repo|repository|codebase|code *",
            "how is this|the|our? project|repo|repository|codebase|code|program organized|organised|structured|laid|built *",
            "overview|summary *",
            "tell me about this|the|our? project|repo|repository|codebase|code *",
        ],
        make: |_, said| Some(Intent::Project { folder: first_path(said) }),
    },
    Rule {
        patterns: &[
            "what is|are|do|does|can * in|inside|under|at|here this|the|that|my|our|current? working|current? folder|directory|dir|here *",
            "what|which * files|folders|directories|things|stuff|items *",
            "list|show|ls|dir|display|print|give|tree me? all|the? files|folders|directories|contents|content|entries|everything|directory|folder|tree *",
            "list|ls|tree|dir the? files? in|of|under? {folder:p}",
            "what is in|inside|under|at the? folder|directory|dir? {folder:p} *",
            "what does the? folder|directory|dir? {folder:p} contain|hold|have *",
            "what is|do we have? here|there",
            "what do we|you|i have|see|find here|there *",
            "look|have a? look around|here|there|into? *",
            "ls|dir|tree",
            "ls -la|-l|-a|-al *",
            "show me around|everything *",
        ],
        make: overview,
    },
    // Explanations.
    Rule {
        patterns: &[
            "what is|are|does the? purpose|point|meaning|job|role|idea of|behind the? file|folder|crate|module|function|class|struct|type? {subject}",
            "what does|do the? file|folder|crate|module|package|function|class|struct|type|method|program|script? {subject} do|mean|represent|provide|contain|handle|say|implement *",
            "what is|are the? file|folder|crate|module|package|function|class|struct|type? {subject} for|about|good|doing|used|there",
            "how does|do the? file|crate|module|package|function|class|struct|type|method|program|script? {subject} work|works|function|operate *",
            "explain|describe|summarize|summarise|clarify|document|analyze|analyse|interpret|review|outline to? me? what|how? the? file|folder|crate|module|package|function|class|struct|type|method|script? {subject} does|do|is|works|means|contains|to|for *",
            "explain|describe|summarize|summarise|clarify|document|analyze|analyse|interpret|review|outline|understand to? me? what|how? the|this|that? file|folder|crate|module|package|function|class|struct|type|method|script|code? {subject}",
            "walk|guide|take|talk|lead me|us through the? file|code|source? of|in? {subject}",
            "tell me about the? file|folder|crate|module|package|function|class|struct|type|method|script? {subject}",
            "give|show me? an|a|the? short|brief|quick? summary|explanation|description|overview|outline of|for the? file? {subject}",
            "what is|are in|inside the? {subject:p} *",
            "what is {subject:p}",
            "what is|are a|an|the? function|class|struct|type|trait|enum|method|file|folder|module {subject}",
            "{subject:p} explain|explained|describe|explanation|summary *",
        ],
        make: explain,
    },
    Rule {
        patterns: &["explain|describe|summarize|summarise|review *", "what is|does this|that|it do|about|mean? *"],
        make: |_, said| (!said.attachments.is_empty()).then_some(Intent::Explain { subject: Subject::Attached }),
    },
    // Talk.
    Rule {
        patterns: &[
            "help",
            "?",
            "what|which * can|could|do you do|help|offer|understand|know|answer *",
            "how do|can|does|should you|i|one work|help|use|ask you|this|it|pi *",
            "who|what are|is you|pi|guide|this *",
            "what are your|the capabilities|abilities|skills|commands|features *",
            "are you a|an|really? *",
            "help|commands|usage *",
        ],
        make: |_, said| (said.tokens.len() <= 10).then_some(Intent::Help),
    },
    Rule {
        patterns: &["there|pi|guide|all|everyone|again"],
        make: |_, said| {
            let greets = ["hi", "hello", "hey"].iter().any(|word| said.text.to_lowercase().starts_with(word));
            greets.then_some(Intent::Greet)
        },
    },
    Rule {
        patterns: &[
            "hello|hi|hey|moin|servus|greetings|howdy|yo there|pi|guide|all|everyone|again?",
            "good morning|evening|afternoon|day *",
        ],
        make: |_, _| Some(Intent::Greet),
    },
    Rule {
        patterns: &[
            "thanks|thank|thx|cheers|bravo *",
            "great|good|nice|perfect|cool|ok|okay|fine|super|excellent|wonderful|awesome job|work|one|answer?",
            "bye|goodbye|ciao|quit|exit *",
        ],
        make: |_, said| (said.tokens.len() <= 6).then_some(Intent::Thanks),
    },
];

fn replace(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (from, to) = (kept.text(said, "a")?, kept.text(said, "b")?);
    let from = without_prefix(
        from,
        &[
            "all occurrences of",
            "every occurrence of",
            "each occurrence of",
            "the occurrences of",
            "the word",
            "the text",
            "the string",
            "the name",
            "all",
            "every",
        ],
    );
    // A whole sentence is no text to be replaced: something else was meant.
    if from.is_empty() || from.split_whitespace().count() > 12 && !kept_is_quoted(kept, said, "a") {
        return None;
    }
    let renames = said.tokens.first().is_some_and(|token| token.word == "rename");
    let scope = match kept.text(said, "scope").map(scope_text) {
        Some(scope) => scope_of(scope),
        None if said.has(&["everywhere", "throughout"]) => Scope::Everywhere,
        None => Scope::Unsaid,
    };
    if renames && scope == Scope::Unsaid && looks_like_path(from) && looks_like_path(to) {
        return None;
    }
    let words = if renames && looks_like_word(from) { WholeWords::Only } else { WholeWords::Anywhere };
    Some(Intent::Replace { from: from.to_owned(), to: to.to_owned(), scope, words })
}

fn looks_like_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn kept_is_quoted(kept: &Captures, said: &Utterance, name: &str) -> bool {
    kept.range(name)
        .and_then(|range| said.tokens.get(range))
        .is_some_and(|tokens| tokens.len() == 1 && tokens[0].is_quoted())
}

/// "the file a.txt please" → "a.txt".
fn scope_text(text: &str) -> &str {
    let text = without_prefix(text, &["the file", "file", "the folder", "the directory", "folder", "directory", "the"]);
    text.trim_end_matches(['.', '!', '?', ',']).trim().trim_matches(['`', '"', '\'', '\u{201c}', '\u{201d}'])
}

fn scope_of(text: &str) -> Scope {
    let lower = text.to_lowercase();
    let everywhere = [
        "all files",
        "every file",
        "whole",
        "entire",
        "everywhere",
        "project",
        "repo",
        "codebase",
        "this folder",
        "workspace",
        "all the files",
    ];
    if everywhere.iter().any(|word| lower.starts_with(word)) || lower.starts_with("this ") && lower != "this file" {
        Scope::Everywhere
    } else {
        Scope::In(text.to_owned())
    }
}

fn without_prefix<'t>(mut text: &'t str, prefixes: &[&str]) -> &'t str {
    while let Some(rest) = prefixes.iter().find_map(|prefix| {
        let rest = text.get(prefix.len()..)?;
        (text.is_char_boundary(prefix.len())
            && text[..prefix.len()].eq_ignore_ascii_case(prefix)
            && rest.starts_with(char::is_whitespace))
        .then(|| rest.trim_start())
    }) {
        text = rest;
    }
    // What was inside quotes is meant without them.
    unquoted(text)
}

fn unquoted(text: &str) -> &str {
    let said = Utterance::parse(text);
    match said.tokens.as_slice() {
        [one] if one.is_quoted() && one.outer == (0..text.len()) => text.get(one.inner.clone()).unwrap_or(text),
        _ => text,
    }
}

fn rename(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (from, to) = (kept.text(said, "a")?, kept.text(said, "b")?);
    let moves = said.tokens.first().is_some_and(|token| matches!(token.word.as_str(), "move" | "mv"));
    (moves || looks_like_path(from) && looks_like_path(to))
        .then(|| Intent::Move { from: from.to_owned(), to: to.to_owned() })
}

fn create(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let range = kept.range("path")?;
    let file = kept.text(said, "path")?.trim_end_matches([':', ',']);
    if !looks_like_path(file) && !said.has(&["file", "script", "document"]) {
        return None;
    }
    // "add a test", "make it work": a request to write code, which is not the creation of a file.
    let verb = said.tokens.first()?.word.as_str();
    if verb == "add" && !said.has(&["file", "folder"]) {
        return None;
    }
    let existing = if verb == "overwrite" || said.has(&["overwrite", "overwriting"]) {
        Existing::Overwrite
    } else {
        Existing::Keep
    };
    let content = match kept.text(said, "content") {
        Some(content) => Some(content.to_owned()),
        None => content_after(said, range.end),
    };
    if content.is_none() && !said.has(&["empty", "touch"]) && said.tokens.len() > range.end {
        let request = Intent::Create { file: file.to_owned(), content: None, existing };
        return Some(Intent::Missing { what: Missing::Content, request: Box::new(request) });
    }
    Some(Intent::Create { file: file.to_owned(), content: content.or(Some(String::new())), existing })
}

/// The content that is given behind a path: a block, else a quote, else the words after `with …` or a colon.
fn content_after(said: &Utterance, from: usize) -> Option<String> {
    let rest = said.tokens.get(from..)?;
    if let Some(quoted) = rest.iter().find(|token| token.is_quoted()) {
        return Some(quoted.word.clone());
    }
    const LEADS: [&str; 18] = [
        "with",
        "containing",
        "holding",
        "saying",
        "having",
        "that",
        "which",
        "contains",
        "says",
        "has",
        "the",
        "following",
        "content",
        "contents",
        "text",
        "line",
        "lines",
        "just",
    ];
    let skip = rest.iter().take_while(|token| LEADS.contains(&token.word.as_str())).count();
    // "with a function that …" asks for code that nobody wrote.
    let first = rest.get(skip)?;
    let described = matches!(
        first.word.as_str(),
        "a" | "an" | "some" | "prints" | "does" | "code" | "tests" | "reads" | "computes"
    );
    let named = rest.iter().take(skip).any(|token| {
        matches!(
            token.word.as_str(),
            "content" | "contents" | "text" | "line" | "lines" | "containing" | "saying" | "says"
        )
    });
    (skip > 0 && (!described || named))
        .then(|| said.rest_from(from + skip).to_owned())
        .filter(|content| !content.is_empty())
}

fn insert(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let file = kept.text(said, "file").map(str::to_owned);
    if file.as_deref().is_some_and(|file| !looks_like_path(file)) {
        return None;
    }
    let text = kept.text(said, "text")?.to_owned();
    let place = match kept.text(said, "anchor") {
        Some(anchor) if said.has(&["before", "above"]) => Place::Before(anchor.to_owned()),
        Some(anchor) => Place::After(anchor.to_owned()),
        None if said.has(&["top", "beginning", "start", "head"]) => Place::Top,
        None => Place::End,
    };
    Some(with_or_without_file(file, |file| Intent::Insert { text, file, place }))
}

fn remove(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let from =
        without_prefix(kept.text(said, "a")?, &["all occurrences of", "the word", "the text", "the line", "the"]);
    Some(Intent::Replace {
        from: from.to_owned(),
        to: String::new(),
        scope: Scope::In(kept.text(said, "scope")?.to_owned()),
        words: WholeWords::Anywhere,
    })
}

fn run(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let command = kept.text(said, "command")?;
    Some(command_intent(command))
}

/// Programs that are started when their name is the first word of a request.
const PROGRAMS: [&str; 34] = [
    "cargo", "npm", "npx", "pnpm", "yarn", "bun", "node", "deno", "python", "python3", "pytest", "pip", "uv", "go",
    "git", "make", "cmake", "ninja", "gradle", "mvn", "dotnet", "ruby", "bundle", "rake", "mix", "swift", "zig",
    "docker", "bash", "sh", "echo", "tox", "jest", "vitest",
];

fn run_known_program(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let range = kept.range("command")?;
    let first = said.tokens.get(range.start)?;
    let local_script = first.word.starts_with("./") && range.start > 0;
    if first.is_quoted() || !(PROGRAMS.contains(&first.word.as_str()) || local_script) {
        return None;
    }
    // `go to …` and `make a file …` are English.
    let next = said.tokens.get(range.start + 1).map(|token| token.word.as_str());
    let english = matches!(
        (first.word.as_str(), next),
        ("go", Some("to" | "on" | "ahead" | "through" | "and" | "back"))
            | ("go" | "make" | "node" | "echo" | "ruby" | "swift" | "python" | "docker", None)
            | ("make", Some("a" | "an" | "the" | "it" | "sure" | "me" | "this" | "that" | "my" | "new"))
            | ("git", Some("status" | "diff" | "log" | "show" | "branch"))
            | (
                "node" | "ruby" | "swift" | "python" | "bundle",
                Some("is" | "files" | "code" | "modules" | "module" | "packages")
            )
    );
    if english && range.start == 0 {
        return None;
    }
    let command = said.slice(range).split(" and tell ").next()?.split(" and show ").next()?;
    Some(command_intent(command.trim_end_matches(['.', '?', '!'])))
}

fn command_intent(command: &str) -> Intent {
    let command = command.trim().trim_start_matches("$ ").to_owned();
    if is_test_command(&command) {
        Intent::Tests { scope: None, command: Some(command) }
    } else {
        Intent::Run { command }
    }
}

fn is_test_command(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["pytest" | "tox" | "jest" | "vitest" | "rspec" | "phpunit" | "ctest", ..] => true,
        [
            "cargo" | "npm" | "pnpm" | "yarn" | "bun" | "go" | "make" | "dotnet" | "mvn" | "gradle" | "./gradlew"
            | "mix" | "swift" | "deno",
            rest @ ..,
        ] => {
            rest.iter()
                .find(|word| !word.starts_with(['-', '+']))
                .is_some_and(|word| matches!(*word, "test" | "t" | "nextest"))
                || rest.first() == Some(&"run") && rest.get(1) == Some(&"test")
        }
        ["python" | "python3", "-m", "pytest" | "unittest", ..] => true,
        ["uv" | "poetry", "run", "pytest", ..] => true,
        ["node", "--test", ..] => true,
        _ => false,
    }
}

fn scoped_tests(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let scope = kept.text(said, "scope")?;
    // `run x.py` runs the tests only when the file is one.
    let name = scope.rsplit('/').next().unwrap_or(scope).to_lowercase();
    if !said.has(&["test", "tests", "testsuite", "spec", "specs"]) && !name.contains("test") && !name.contains("spec") {
        return None;
    }
    let scope = scope.split(" and ").next()?.trim();
    let scope = without_prefix(scope, &["the", "crate", "package", "module", "file", "folder"]);
    let general = [
        "this",
        "all",
        "the",
        "unit",
        "integration",
        "my",
        "our",
        "project",
        "this project",
        "here",
        "me",
        "repo",
        "it",
        "failing",
        "and",
        "workspace",
    ];
    let vague = general.contains(&scope.to_lowercase().as_str()) || scope.starts_with("this ");
    let scope = (!vague && scope.split_whitespace().count() == 1).then(|| bare(scope).to_owned());
    Some(Intent::Tests { scope, command: None })
}

fn build(_: &Captures, said: &Utterance) -> Option<Intent> {
    let first = said.tokens.first()?.word.as_str();
    // "check the tests", "check a.txt", "check what …" are not builds.
    let other = first == "check"
        && (said.tokens.len() < 2
            || first_path(said).is_some()
            || said.has(&["what", "whether", "if", "for", "where", "how"]));
    (!other).then_some(Intent::Build)
}

fn count(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let words: Vec<String> = kept
        .text(said, "what")?
        .to_lowercase()
        .split_whitespace()
        .map(|word| word.trim_matches(['?', '.', ',', '!']).to_owned())
        .collect();
    let has = |candidates: &[&str]| words.iter().take(5).any(|word| candidates.contains(&word.as_str()));
    let scope = scope_after_in(said).or_else(|| first_path(said));
    let language = words.iter().find_map(|word| Language::of_name(word));
    let what = if has(&["crates", "crate"]) {
        Countable::Members(PartKind::Crates)
    } else if has(&["packages", "members", "subprojects"]) {
        Countable::Members(PartKind::Packages)
    } else if has(&["modules"]) {
        Countable::Members(PartKind::Modules)
    } else if has(&["dependencies", "deps"]) {
        Countable::Dependencies
    } else if has(&["commits"]) {
        Countable::Commits
    } else if has(&["tests", "testcases"]) {
        Countable::Tests
    } else if has(&["functions", "function", "methods"]) {
        Countable::Functions
    } else if has(&["words"]) {
        Countable::Words
    } else if has(&["files", "file"]) {
        let extension = words.iter().find_map(|word| word.strip_prefix("*.").or_else(|| word.strip_prefix('.')));
        let by_language = language.and_then(|language| language.extensions().first().copied());
        let named = words
            .first()
            .filter(|word| words.get(1).is_some_and(|next| next == "files") && Language::of_extension(word).is_some());
        Countable::Files { extension: extension.or(by_language).or(named.map(String::as_str)).map(str::to_owned) }
    } else if has(&["lines", "line", "loc", "code"]) {
        Countable::Lines
    } else {
        return None;
    };
    let scope = scope.filter(|scope| {
        !matches!(what, Countable::Files { .. }) || !scope.starts_with(['*', '.']) || scope.contains('/')
    });
    Some(Intent::Count { what, scope })
}

fn read_lines(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let number = |name: &str| -> Option<usize> { number_of(kept.text(said, name)?) };
    let file = kept.text(said, "file").map(str::to_owned);
    let lines = match (kept.text(said, "n"), number("m")) {
        (Some(n), Some(to)) => Lines::Range(number_of(n)?, to),
        (Some(n), None) => match n.split_once(['-', '–']) {
            Some((from, to)) => Lines::Range(number_of(from)?, number_of(to)?),
            None if said.has(&["first", "top"]) => Lines::First(number_of(n)?),
            None if said.has(&["last", "bottom"]) => Lines::Last(number_of(n)?),
            None => Lines::Range(number_of(n)?, number_of(n)?),
        },
        (None, _) if said.has(&["tail"]) => Lines::Last(10),
        (None, _) => Lines::First(10),
    };
    Some(with_or_without_file(file, |file| Intent::Read { file, lines }))
}

/// A request that asks for its file when none was named.
fn with_or_without_file(file: Option<String>, request: impl FnOnce(String) -> Intent) -> Intent {
    match file {
        Some(file) => request(file),
        None => Intent::Missing { what: Missing::File, request: Box::new(request(String::new())) },
    }
}

/// A number in digits or as a word.
pub(super) fn number_of(text: &str) -> Option<usize> {
    const WORDS: [&str; 21] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    let text = text.trim().trim_matches(['.', ',', '?', '!']).to_lowercase();
    text.parse().ok().or_else(|| WORDS.iter().position(|word| *word == text))
}

fn definition(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let name = kept.text(said, "x")?;
    let name = without_prefix(
        name,
        &[
            "the",
            "a",
            "an",
            "function",
            "fn",
            "method",
            "struct",
            "class",
            "enum",
            "trait",
            "type",
            "interface",
            "constant",
            "const",
            "macro",
            "variable",
            "symbol",
            "module",
            "field",
            "name",
        ],
    );
    let mut words = name.split_whitespace();
    let first = words.next()?;
    let rest: Vec<&str> = words.collect();
    // "the parse function", "Foo struct": the kind may follow.
    let kind_follows = rest.first().is_some_and(|word| {
        [
            "function",
            "fn",
            "method",
            "struct",
            "class",
            "enum",
            "trait",
            "type",
            "interface",
            "constant",
            "macro",
            "variable",
            "symbol",
            "module",
            "in",
        ]
        .contains(&word.to_lowercase().as_str())
    });
    if !rest.is_empty() && !kind_follows {
        return None;
    }
    let name = bare(first);
    let vague = ["it", "this", "that", "they", "i", "we", "you", "the", "project", "file", "files"];
    let is_file = looks_like_path(name) && !looks_like_identifier(name);
    (!name.is_empty() && !is_file && !vague.contains(&name.to_lowercase().as_str()))
        .then(|| Intent::Definition { name: name.to_owned() })
}

/// A name without the signs around it: `foo()` → `foo`.
pub(super) fn bare(name: &str) -> &str {
    name.trim()
        .trim_matches(['`', '"', '\'', '?', '!', ',', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'])
        .trim_end_matches("()")
        .trim_end_matches('.')
}

fn search(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let (text, scope) = match kept.text(said, "text") {
        Some(text) => split_scope(text),
        None if said.has(&["fixme", "fixmes"]) => ("FIXME", scope_after_in(said)),
        None if said.has(&["todo", "todos"]) => ("TODO", scope_after_in(said)),
        None => return None,
    };
    let scope = kept
        .text(said, "scope")
        .map(|scope| scope_text(scope).to_owned())
        .or(scope)
        .filter(|scope| !is_everywhere(scope));
    let text = if kept_is_quoted(kept, said, "text") { text } else { bare(text) };
    (!text.is_empty()).then(|| Intent::Search { text: text.to_owned(), scope, usage: Usage::Text })
}

fn is_everywhere(scope: &str) -> bool {
    matches!(scope_of(scope), Scope::Everywhere)
        || ["code", "files", "source", "sources", "here", "it", "repository"].contains(&scope.to_lowercase().as_str())
}

/// "foo in src/lib.rs" → ("foo", "src/lib.rs"), when what follows the last `in` looks like a place.
pub(super) fn split_scope(text: &str) -> (&str, Option<String>) {
    for word in [" in ", " inside ", " within ", " under ", " across "] {
        if let Some((what, place)) = text.rsplit_once(word) {
            let place = scope_text(place);
            if looks_like_path(place) {
                return (unquoted(what.trim()), Some(place.to_owned()));
            }
            if is_everywhere(place) {
                return (unquoted(what.trim()), None);
            }
        }
    }
    (unquoted(text), None)
}

fn without_scope(text: &str) -> &str {
    split_scope(text).0
}

fn scope_after_in(said: &Utterance) -> Option<String> {
    let at = said.tokens.iter().rposition(|token| {
        !token.is_quoted() && matches!(token.word.as_str(), "in" | "of" | "inside" | "under" | "does")
    })?;
    let rest = said.tokens.get(at + 1..)?;
    rest.iter()
        .map(|token| said.text.get(token.inner.clone()).unwrap_or_default())
        .find(|text| looks_like_path(text))
        .map(str::to_owned)
}

fn find_files(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let pattern = kept.text(said, "pattern")?.trim_matches(['`', '"', '\'']);
    let lower = pattern.to_lowercase();
    if let Some(language) = Language::of_name(&lower)
        && said.has(&["files", "file"])
        && let Some(extension) = language.extensions().first()
    {
        return Some(Intent::FindFiles { pattern: format!("*.{extension}") });
    }
    if Language::of_extension(&lower).is_some() && said.has(&["files"]) {
        return Some(Intent::FindFiles { pattern: format!("*.{lower}") });
    }
    let pattern = if pattern.starts_with('.')
        && !pattern.contains('/')
        && Language::of_extension(pattern.trim_start_matches('.')).is_some()
    {
        format!("*{pattern}")
    } else {
        pattern.to_owned()
    };
    let plausible = looks_like_path(&pattern) || pattern.contains(['*', '?']) || said.has(&["named", "called", "file"]);
    let vague = [
        "the",
        "all",
        "these",
        "those",
        "source",
        "in",
        "that",
        "which",
        "containing",
        "with",
        "my",
        "changed",
        "failing",
    ]
    .contains(&lower.as_str());
    (plausible && !vague).then_some(Intent::FindFiles { pattern })
}

fn members(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let kind = if said.has(&["crate", "crates"]) {
        PartKind::Crates
    } else if said.has(&["module", "modules"]) {
        PartKind::Modules
    } else if said.has(&["package", "packages", "subpackages"]) {
        PartKind::Packages
    } else {
        PartKind::Any
    };
    let named = kept.text(said, "named").map(bare).filter(|name| {
        !["the", "this", "each", "every", "a", "all", "in", "of", "these", "which", "main", "whole", "what"]
            .contains(&name.to_lowercase().as_str())
    });
    // "which files depend on crate x", "what dependencies …" are other questions.
    if said.has(&["dependencies", "deps", "depend", "depends", "installed", "outdated", "defined", "files"]) {
        return None;
    }
    Some(Intent::Members { kind, named: named.map(str::to_owned) })
}

fn how_to(kept: &Captures, said: &Utterance) -> Option<Intent> {
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
    let key = key.trim_matches(['?', '.', '!']);
    let key = match key {
        "licence" => "license",
        "author" | "maintainer" | "maintainers" => "authors",
        "msrv" => "rust-version",
        other => other,
    };
    // A question about one file's own fact is an explanation of the file.
    let about_file = first_path(said).is_some_and(|path| !path.to_lowercase().starts_with(key));
    (FACTS.contains(&key) && !about_file).then(|| Intent::Fact { key: key.to_owned() })
}

fn is_listing(said: &Utterance) -> bool {
    said.tokens.first().is_some_and(|token| matches!(token.word.as_str(), "list" | "ls"))
}

fn overview(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let folder = kept.text(said, "folder").map(str::to_owned).or_else(|| first_path(said));
    // A file's content, not a folder's.
    if let Some(file) = folder.as_deref().filter(|path| has_extension(path)) {
        return Some(Intent::Explain { subject: Subject::Named(file.to_owned()) });
    }
    if said.has(&["changed", "import", "contain", "mention", "use", "uses", "fail", "failed", "tests"]) {
        return None;
    }
    Some(Intent::Overview { folder })
}

fn explain(kept: &Captures, said: &Utterance) -> Option<Intent> {
    let subject = without_prefix(
        kept.text(said, "subject")?,
        &["the", "this", "a", "an", "file", "folder", "function", "class", "struct", "code", "module", "script"],
    );
    let subject = bare(subject.trim_end_matches(['.', '?', '!']));
    let mut words = subject.split_whitespace();
    let (first, more) = (words.next()?, words.collect::<Vec<_>>());
    let kind_word = |word: &str| {
        [
            "file",
            "function",
            "folder",
            "module",
            "class",
            "struct",
            "crate",
            "package",
            "directory",
            "script",
            "method",
            "trait",
            "enum",
            "type",
            "does",
            "do",
            "is",
            "works",
            "to",
            "in",
            "for",
        ]
        .contains(&word.to_lowercase().as_str())
    };
    let plausible = more.is_empty() || more.first().is_some_and(|word| kind_word(word));
    if !plausible {
        return None;
    }
    let pronoun = [
        "it", "this", "that", "them", "these", "they", "each", "every", "all", "one", "code", "file", "me", "you", "i",
        "we",
    ]
    .contains(&first.to_lowercase().as_str());
    if pronoun {
        return (!said.attachments.is_empty()).then_some(Intent::Explain { subject: Subject::Attached });
    }
    if let Some((file, line)) = first.rsplit_once(':')
        && let Ok(line) = line.parse()
        && looks_like_path(file)
    {
        return Some(Intent::Explain { subject: Subject::At { file: file.to_owned(), line } });
    }
    Some(Intent::Explain { subject: Subject::Named(bare(first).to_owned()) })
}

/// The first word that looks like a path.
pub(super) fn first_path(said: &Utterance) -> Option<String> {
    let texts = said.tokens.iter().map(|token| said.text.get(token.inner.clone()).unwrap_or_default());
    texts.into_iter().find(|text| looks_like_path(text) && !matches!(*text, "." | "..")).map(str::to_owned)
}

fn after(said: &Utterance, markers: &[&str], vague: &[&str]) -> Option<String> {
    let at = said.tokens.iter().rposition(|token| markers.contains(&token.word.as_str()))?;
    let next =
        said.tokens.get(at + 1..)?.iter().find(|token| !["the", "crate", "package"].contains(&token.word.as_str()))?;
    let text = said.text.get(next.inner.clone())?;
    (!vague.contains(&next.word.as_str())).then(|| text.to_owned())
}
