//! Drives the fuzz entry points from a fixed seed for about two seconds each.
//!
//! `PI_FUZZ_SECONDS` sets another time, `PI_FUZZ_SEED` another seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pi_coding_agent::testing::fuzz;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Calls `entry` with texts made of `words` and of bytes at random; a text that breaks it is made smaller and shown.
fn drive(entry: fn(&[u8]), words: &'static [&'static [u8]]) {
    let setting = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let time = Duration::from_secs(setting("PI_FUZZ_SECONDS").unwrap_or(2));
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&setting("PI_FUZZ_SEED").unwrap_or(1).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let word = prop_oneof![
        12 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        2 => (any::<u8>(), any::<u8>(), any::<u8>()).prop_map(|(a, b, c)| vec![0x1e, 1, a, b, c, 0x1f]),
        1 => vec(any::<u8>(), 1..4),
    ];
    let texts = vec(word, 0..40).prop_map(|words| words.concat());

    let breaks = |text: &[u8]| catch_unwind(AssertUnwindSafe(|| entry(text))).is_err();
    let start = Instant::now();
    while start.elapsed() < time {
        let mut tree = texts.new_tree(&mut runner).expect("a text");
        if breaks(&tree.current()) {
            let mut smallest = tree.current();
            while tree.simplify() {
                if breaks(&tree.current()) {
                    smallest = tree.current();
                } else if !tree.complicate() {
                    break;
                }
            }
            panic!("broken by b\"{}\"", smallest.escape_ascii());
        }
    }
}

#[test]
fn edit() {
    const WORDS: &[&[u8]] = &[
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"a",
        b"b",
        b"one",
        b"two  ",
        b" ",
        b"\t",
        b"\"",
        b"'",
        b"-",
        b"x = 1;",
        b"\x1e",
        b"\x1f",
        "\u{feff}".as_bytes(),
        "\u{2019}".as_bytes(),
        "\u{201c}".as_bytes(),
        "\u{2014}".as_bytes(),
        "\u{a0}".as_bytes(),
        "\u{fb01}".as_bytes(),
        "e\u{301}".as_bytes(),
        "\u{e9}".as_bytes(),
        "漢".as_bytes(),
        "Ａ".as_bytes(),
        "😀".as_bytes(),
        b"\xe9",
        b"\xff\xfe",
        b"\\n",
        b"aa",
        b"line\nline\n",
    ];
    drive(fuzz::edit, WORDS);
}

#[test]
fn extension_lines() {
    const WORDS: &[&[u8]] = &[
        b"\n",
        b"\n",
        b"\r\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"\"jsonrpc\":\"2.0\",",
        b"\"jsonrpc\":\"2.0\"",
        b"\"id\":1",
        b"\"id\":null,",
        b"\"method\":\"log\"",
        b"\"params\":",
        b"\"result\":",
        b"\"error\":{\"code\":",
        b"null",
        b"\"",
        b"\\ud83d",
        b"1e999",
        b"[[[[[[[[",
        "\u{2028}".as_bytes(),
        b"\xff",
    ];
    drive(fuzz::extension_lines, WORDS);
}

#[test]
fn session_file() {
    const HEADER: &[u8] = b"{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n";
    const LINES: &[&[u8]] = &[
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"hi\",\"timestamp\":1}}\n",
        b"{\"type\":\"message\",\"id\":\"b\",\"parentId\":\"a\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"1\",\"name\":\"x\"}]}}\n",
        b"{\"type\":\"message\",\"id\":\"c\",\"parentId\":\"b\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"1\",\"toolName\":\"x\"}}\n",
        b"{\"type\":\"compaction\",\"id\":\"k\",\"parentId\":\"c\",\"summary\":\"s\",\"firstKeptEntryId\":\"b\",\"tokensBefore\":1}\n",
        b"{\"type\":\"context_edit\",\"id\":\"x\",\"parentId\":\"b\",\"targetId\":\"a\",\"replacement\":null}\n",
        b"{\"type\":\"context_edit\",\"id\":\"y\",\"parentId\":\"x\",\"targetId\":\"b\",\"replacement\":{\"content\":\"z\"}}\n",
        b"{\"type\":\"label\",\"id\":\"l\",\"parentId\":\"a\",\"targetId\":\"a\",\"label\":\"x\"}\n",
        b"{\"type\":\"session_info\",\"id\":\"i\",\"parentId\":\"l\",\"name\":\" n \"}\n",
        b"{\"type\":\"branch_summary\",\"id\":\"s\",\"parentId\":\"a\",\"fromId\":\"b\",\"summary\":\"s\"}\n",
        b"{\"type\":\"hologram\",\"id\":\"h\",\"parentId\":\"y\"}\n",
        b"{\"type\":\"message\",\"id\":\"",
        b"\"parentId\":\"",
        b"\"a\"",
        b"\"b\"",
        b"\"id\":",
        b"\"type\":\"session\"",
        b"{\"type\":\"mess",
        b"{",
        b"}",
        b"}}\n",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b":",
        b",",
        b"null",
        b"\\ud83d",
        "é".as_bytes(),
        b"\0",
    ];
    drive(|lines| fuzz::session_file(&[HEADER, lines].concat()), LINES);
    drive(fuzz::session_file, LINES);
}
