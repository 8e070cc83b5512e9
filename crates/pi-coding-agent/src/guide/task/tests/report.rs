//! What test programs print, as facts.

use super::super::text::{code, shorten};

/// What a run of tests showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: Option<usize>,
    pub(super) failed: Option<usize>,
    pub(super) skipped: Option<usize>,
    pub(super) failures: Vec<Failure>,
}

/// A test that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) name: String,
    /// `file:line`.
    pub(super) place: Option<String>,
    pub(super) message: Option<String>,
}

/// Reads the output of whatever test program it was.
pub(super) fn read_report(output: &str) -> Report {
    let output = without_colours(output);
    let readers: [fn(&str) -> Report; 6] = [cargo, pytest, unittest, go, tap, javascript];
    let mut reports: Vec<Report> = readers.iter().map(|reader| reader(&output)).collect();
    // The reader that understood most of it is the right one.
    reports.sort_by_key(|report| {
        (report.failures.len(), report.passed.is_some() as usize + report.failed.is_some() as usize)
    });
    reports.pop().unwrap_or_default()
}

fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' {
            if characters.next() == Some('[') {
                for c in characters.by_ref() {
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

impl Report {
    fn add(&mut self, failure: Failure) {
        match self.failures.iter_mut().find(|known| known.name == failure.name) {
            Some(known) => {
                known.place = known.place.take().or(failure.place);
                known.message = known.message.take().or(failure.message);
            }
            None => self.failures.push(failure),
        }
    }
}

fn sum(total: &mut Option<usize>, more: Option<usize>) {
    if let Some(more) = more {
        *total = Some(total.unwrap_or(0) + more);
    }
}

/// The number before a word: "3 passed" → 3.
fn before(line: &str, word: &str) -> Option<usize> {
    let at = line.find(word)?;
    line.get(..at)?.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn message(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| shorten(text, 240))
}

fn cargo(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("test result: ") {
            sum(&mut report.passed, before(rest, " passed"));
            sum(&mut report.failed, before(rest, " failed"));
            sum(&mut report.skipped, before(rest, " ignored"));
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            report.add(Failure { name: name.to_owned(), ..Failure::default() });
        } else if let Some((before, place)) = line.split_once(" panicked at ") {
            let name = before.strip_prefix("thread '").and_then(|rest| rest.split('\'').next());
            // Older compilers put the message in quotes before the place.
            let (place, inline) = match place.rsplit_once("', ") {
                Some((text, place)) => (place, Some(text.trim_start_matches('\''))),
                None => (place.trim_end_matches(':'), None),
            };
            let text = inline.map(str::to_owned).unwrap_or_else(|| assertion(&lines[index + 1..]));
            if let Some(name) = name {
                // `src/lib.rs:10:9` without its column.
                let place = place.rsplit_once(':').map_or(place, |(place, _)| place);
                let failure = Failure { name: name.to_owned(), place: Some(place.to_owned()), message: message(&text) };
                if report.failures.iter().any(|known| known.name == failure.name)
                    || output.contains(&format!("test {name} ... FAILED"))
                {
                    report.add(failure);
                }
            }
        }
    }
    report
}

/// The message of a panic: its first line, and both sides of a comparison.
fn assertion(lines: &[&str]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for line in lines.iter().take(6).map(|line| line.trim()) {
        if line.is_empty()
            || line.starts_with("note:")
            || line.starts_with("stack backtrace")
            || line.starts_with("thread '")
        {
            break;
        }
        if parts.is_empty() || line.starts_with("left:") || line.starts_with("right:") {
            parts.push(line);
        }
    }
    parts.join(", ")
}

fn pytest(output: &str) -> Report {
    let mut report = Report::default();
    for line in output.lines() {
        if let Some(rest) =
            line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")).filter(|rest| rest.contains(".py"))
        {
            let (name, why) = rest.split_once(" - ").unwrap_or((rest, ""));
            report.add(Failure { name: name.trim().to_owned(), place: None, message: message(why) });
        }
        let summary = line.trim_matches(['=', ' ']);
        if summary.contains(" in ")
            && (summary.contains(" passed") || summary.contains(" failed") || summary.contains(" error"))
        {
            report.passed = before(summary, " passed").or(report.passed);
            let failed = before(summary, " failed").unwrap_or(0) + before(summary, " error").unwrap_or(0);
            report.failed = Some(failed);
            report.skipped = before(summary, " skipped");
            report.passed = report.passed.or(Some(0));
        }
    }
    // `path/test_a.py:12: AssertionError` says where.
    let places: Vec<(&str, &str)> = output
        .lines()
        .filter_map(|line| {
            let (place, error) = line.rsplit_once(": ")?;
            let (file, number) = place.rsplit_once(':')?;
            (file.ends_with(".py")
                && number.parse::<usize>().is_ok()
                && error.chars().next().is_some_and(char::is_uppercase))
            .then_some((file, place))
        })
        .collect();
    let mut used = 0;
    for failure in &mut report.failures {
        let file = failure.name.split("::").next().unwrap_or_default().to_owned();
        if let Some((offset, (_, place))) = places.iter().enumerate().skip(used).find(|(_, (known, _))| *known == file)
        {
            failure.place = Some((*place).to_owned());
            used = offset + 1;
        }
    }
    report
}

fn unittest(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    let mut ran = None;
    for (index, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: ")) {
            let block = lines[index + 1..]
                .iter()
                .skip(1)
                .take_while(|line| !line.starts_with("======") && !line.starts_with("Ran "));
            let block: Vec<&str> = block.copied().collect();
            let why = block
                .iter()
                .rev()
                .find(|line| !line.trim().is_empty() && !line.starts_with([' ', '-']))
                .copied()
                .unwrap_or_default();
            let place = block.iter().rev().find_map(|line| {
                let rest = line.trim().strip_prefix("File \"")?;
                let (file, rest) = rest.split_once("\", line ")?;
                Some(format!("{file}:{}", rest.split(',').next()?))
            });
            let name = rest.split(" (").next().unwrap_or(rest);
            let class = rest.split_once('(').map(|(_, class)| class.trim_end_matches(')'));
            let name = match class {
                Some(class) if class.ends_with(name) => class.to_owned(),
                Some(class) => format!("{class}.{name}"),
                None => name.to_owned(),
            };
            report.add(Failure { name, place, message: message(why) });
        } else if let Some(rest) = line.strip_prefix("Ran ") {
            ran = rest.split(' ').next().and_then(|count| count.parse::<usize>().ok());
        } else if line.starts_with("OK") || line.starts_with("FAILED (") {
            let count = |key: &str| {
                line.split(&format!("{key}="))
                    .nth(1)
                    .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok())
            };
            let failed = count("failures").unwrap_or(0) + count("errors").unwrap_or(0);
            report.skipped = count("skipped");
            report.failed = Some(failed);
            report.passed = ran.map(|ran| ran.saturating_sub(failed + report.skipped.unwrap_or(0)));
        }
    }
    if ran.is_none() { Report::default() } else { report }
}

fn go(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("--- FAIL: ") {
            let name = rest.split(' ').next().unwrap_or(rest).to_owned();
            // A parent fails because its part does.
            let detail =
                lines[index + 1..].iter().take_while(|line| !line.trim_start().starts_with("--- ")).find_map(|line| {
                    let (place, text) = line.trim().split_once(": ")?;
                    place.contains(".go:").then(|| (place.to_owned(), text.to_owned()))
                });
            let (place, text) = detail.map_or((None, None), |(place, text)| (Some(place), message(&text)));
            report.add(Failure { name, place, message: text });
        } else if trimmed.starts_with("--- PASS: ") || line.starts_with("ok  \t") || line.starts_with("ok \t") {
            sum(&mut report.passed, Some(1));
        }
    }
    let names: Vec<String> = report.failures.iter().map(|failure| failure.name.clone()).collect();
    report.failures.retain(|failure| {
        !names.iter().any(|name| name.starts_with(&format!("{}/", failure.name))) || failure.message.is_some()
    });
    // Packages that passed are no tests that passed.
    report.passed = None;
    report
}

fn tap(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if let Some(rest) = line.trim_start().strip_prefix("not ok ") {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([' ', '-']);
            let name = rest.split(" # ").next().unwrap_or(rest).to_owned();
            // What is known of it follows as YAML.
            let details = lines[index + 1..].iter().take(20).map(|line| line.trim()).take_while(|line| *line != "...");
            let details: Vec<&str> = details.collect();
            let fact = |key: &str| {
                details.iter().find_map(|line| line.strip_prefix(key)).map(|text| text.trim_matches(['\'', '"', ' ']))
            };
            let place =
                fact("location: ").map(|place| place.rsplit_once(':').map_or(place, |(place, _)| place).to_owned());
            let of_parts = fact("failureType: ") == Some("subtestsFailed");
            if !of_parts {
                report.add(Failure { name, place, message: fact("error: ").and_then(message) });
            }
        } else {
            let line = line.trim_start_matches(['#', 'ℹ', ' ']);
            if let Some(count) = line.strip_prefix("pass ").and_then(|count| count.trim().parse().ok()) {
                report.passed = Some(count);
            } else if let Some(count) = line.strip_prefix("fail ").and_then(|count| count.trim().parse().ok()) {
                report.failed = Some(count);
            }
        }
    }
    report
}

fn javascript(output: &str) -> Report {
    let mut report = Report::default();
    let lines: Vec<&str> = output.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        let marked = trimmed
            .strip_prefix("✕ ")
            .or_else(|| trimmed.strip_prefix("✗ "))
            .or_else(|| trimmed.strip_prefix("✖ "))
            .or_else(|| trimmed.strip_prefix("× "));
        if let Some(name) = marked.filter(|name| !name.starts_with("failing tests")) {
            let name = name.rsplit_once(" (").map_or(name, |(name, time)| {
                if time.ends_with("ms)") || time.ends_with("s)") { name } else { marked.unwrap_or(name) }
            });
            let why = lines[index + 1..]
                .iter()
                .take(12)
                .map(|line| line.trim())
                .find(|line| line.contains("Error") || line.starts_with("Expected"));
            report.add(Failure { name: name.trim().to_owned(), place: None, message: why.and_then(message) });
        } else if let Some(rest) = trimmed.strip_prefix("FAIL ").filter(|rest| rest.contains(" > ")) {
            report.add(Failure { name: rest.trim().to_owned(), ..Failure::default() });
        }
        if trimmed.starts_with("Tests:") || trimmed.starts_with("Tests ") {
            report.passed = before(trimmed, " passed").or(report.passed);
            report.failed = before(trimmed, " failed").or(report.failed);
            report.skipped = before(trimmed, " skipped").or(report.skipped);
        } else if trimmed.ends_with(" passing") || trimmed.contains(" passing (") {
            report.passed = before(trimmed, " passing").or(report.passed);
        } else if trimmed.ends_with(" failing") {
            report.failed = before(trimmed, " failing").or(report.failed);
        } else if let Some(rest) = trimmed.strip_prefix("ℹ pass ") {
            report.passed = rest.trim().parse().ok();
        } else if let Some(rest) = trimmed.strip_prefix("ℹ fail ") {
            report.failed = rest.trim().parse().ok();
        }
    }
    report
}

/// Errors of compilers in an output: each with its place and message.
pub(in crate::guide::task) fn compile_errors(output: &str) -> Vec<String> {
    let output = without_colours(output);
    let lines: Vec<&str> = output.lines().collect();
    let mut errors: Vec<String> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let rust = line.strip_prefix("error").filter(|rest| rest.starts_with(": ") || rest.starts_with("[E"));
        let found = if let Some(rest) = rust {
            let text = rest.split_once(": ").map_or(rest, |(_, text)| text);
            let place = lines[index + 1..].iter().take(3).find_map(|line| line.trim().strip_prefix("--> "));
            let summary = text.starts_with("could not compile") || text.starts_with("aborting due to");
            match place {
                Some(place) => Some(format!(
                    "{}: {}",
                    code(place.rsplit_once(':').map_or(place, |(place, _)| place)),
                    shorten(text, 240)
                )),
                None if summary => None,
                None => Some(shorten(text, 240)),
            }
        } else {
            // `file.c:3:5: error: text`, `file.go:3:5: text`, `file.ts(3,5): error TS1: text`.
            let gcc = line.split_once(": error: ").or_else(|| line.split_once(": fatal error: "));
            let go = || {
                let (place, text) = line.split_once(": ")?;
                let place = place.trim_start_matches("./");
                (place.contains(".go:") && !place.contains(' ')).then_some((place, text))
            };
            let typescript = || line.split_once(": error TS");
            gcc.or_else(go)
                .or_else(typescript)
                .map(|(place, text)| format!("{}: {}", code(place.trim()), shorten(text, 240)))
        };
        if let Some(error) = found
            && !errors.contains(&error)
        {
            errors.push(error);
        }
    }
    if let Some(error) = lines.iter().rev().find(|line| {
        line.starts_with("SyntaxError:") || line.starts_with("ImportError:") || line.starts_with("ModuleNotFoundError:")
    }) && errors.is_empty()
    {
        errors.push(shorten(error, 240));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cargo_run_names_what_failed_where_and_why() {
        let output = "running 2 tests\ntest tests::ok ... ok\ntest tests::bad ... FAILED\n\nfailures:\n\n---- tests::bad stdout ----\n\nthread 'tests::bad' (123) panicked at src/lib.rs:10:9:\nassertion `left == right` failed\n  left: 1\n right: 2\nnote: run with `RUST_BACKTRACE=1`\n\n\nfailures:\n    tests::bad\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n\ntest result: ok. 3 passed; 0 failed; 1 ignored";
        let report = read_report(output);
        assert_eq!((report.passed, report.failed, report.skipped), (Some(4), Some(1), Some(1)));
        assert_eq!(
            report.failures,
            [Failure {
                name: "tests::bad".into(),
                place: Some("src/lib.rs:10".into()),
                message: Some("assertion `left == right` failed, left: 1, right: 2".into())
            }]
        );
    }

    #[test]
    fn a_pytest_run_names_what_failed() {
        let output = "F.\n=== FAILURES ===\n____ test_bad ____\n\n>       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_a.py:3: AssertionError\n=== short test summary info ===\nFAILED tests/test_a.py::test_bad - assert 1 == 2\n1 failed, 1 passed in 0.02s";
        let report = read_report(output);
        assert_eq!((report.passed, report.failed), (Some(1), Some(1)));
        assert_eq!(report.failures[0].name, "tests/test_a.py::test_bad");
        assert_eq!(report.failures[0].place.as_deref(), Some("tests/test_a.py:3"));
        assert_eq!(report.failures[0].message.as_deref(), Some("assert 1 == 2"));
    }

    #[test]
    fn a_unittest_run_names_what_failed() {
        let output = "test_bad (test_a.T.test_bad) ... FAIL\ntest_ok (test_a.T.test_ok) ... ok\n\n======================================================================\nFAIL: test_bad (test_a.T.test_bad)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/test_a.py\", line 5, in test_bad\n    self.assertEqual(1, 2)\nAssertionError: 1 != 2\n\n----------------------------------------------------------------------\nRan 2 tests in 0.001s\n\nFAILED (failures=1)";
        let report = read_report(output);
        assert_eq!((report.passed, report.failed), (Some(1), Some(1)));
        assert_eq!(report.failures[0].name, "test_a.T.test_bad");
        assert_eq!(report.failures[0].place.as_deref(), Some("/w/test_a.py:5"));
        assert_eq!(report.failures[0].message.as_deref(), Some("AssertionError: 1 != 2"));
    }

    #[test]
    fn go_tap_and_javascript_runs_name_what_failed() {
        let go = "--- FAIL: TestAdd (0.00s)\n    add_test.go:7: got 3, want 4\nFAIL\nFAIL\texample.com/a\t0.1s\nok  \texample.com/b\t0.1s";
        assert_eq!(
            read_report(go).failures,
            [Failure {
                name: "TestAdd".into(),
                place: Some("add_test.go:7".into()),
                message: Some("got 3, want 4".into())
            }]
        );
        let tap = "ok 1 - fine\nnot ok 2 - adds\n  ---\n  location: '/w/a.js:2:26'\n  error: '1 == 2'\n  ...\n# tests 2\n# pass 1\n# fail 1";
        let report = read_report(tap);
        assert_eq!(
            (report.failures[0].place.as_deref(), report.failures[0].message.as_deref()),
            (Some("/w/a.js:2"), Some("1 == 2"))
        );
        assert_eq!((report.failures[0].name.as_str(), report.passed, report.failed), ("adds", Some(1), Some(1)));
        let jest = "  Sum\n    ✓ works (2 ms)\n    ✕ adds (3 ms)\n\nTests:       1 failed, 1 passed, 2 total";
        let report = read_report(jest);
        assert_eq!((report.failures[0].name.as_str(), report.passed, report.failed), ("adds", Some(1), Some(1)));
    }

    #[test]
    fn errors_of_compilers_are_found() {
        let rust = "error[E0308]: mismatched types\n --> src/lib.rs:3:5\n  |\nerror: could not compile `a` (lib) due to 1 previous error";
        assert_eq!(compile_errors(rust), ["`src/lib.rs:3`: mismatched types"]);
        assert_eq!(compile_errors("a.c:3:5: error: expected ';'"), ["`a.c:3:5`: expected ';'"]);
        assert_eq!(compile_errors("./a.go:3:5: undefined: x"), ["`a.go:3:5`: undefined: x"]);
    }

    #[test]
    fn any_output_can_be_read() {
        for text in [
            "",
            "test result: ",
            "thread '' panicked at ",
            "FAIL: ",
            "FAILED ",
            "\u{1b}[",
            "--- FAIL: ",
            " passed in ",
            "✕ ",
        ] {
            let _ = read_report(text);
            let _ = compile_errors(text);
        }
    }
}
