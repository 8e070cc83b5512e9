//! Edits made from a seed: of files with repeated lines and mixed line breaks, exact and often unique.

use serde_json::{Map, Value, json};

use super::{Call, Case, Content};

/// A small generator of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// The case of a seed; `None` when it shows a listed difference: occurrences that overlap count there as one.
pub(super) fn edit(seed: u64) -> Option<Case> {
    let mut numbers = Numbers(seed);
    let line_break = numbers.pick(&["\n", "\n", "\r\n"]);
    let lines: Vec<String> = (0..numbers.below(60))
        .map(|_| match numbers.below(4) {
            0 => "}".to_owned(),
            1 => String::new(),
            2 => format!("    call_{}();", numbers.below(6)),
            _ => format!("line {}", numbers.below(90)),
        })
        .collect();
    let mut file = lines.join(line_break);
    if numbers.below(3) > 0 && !file.is_empty() {
        file.push_str(line_break);
    }
    let edits: Vec<Value> = (0..=numbers.below(3))
        .map(|_| {
            let first = numbers.below(lines.len());
            let old = lines.get(first..(first + 1 + numbers.below(4)).min(lines.len())).unwrap_or_default();
            let mut new: Vec<String> = old.to_vec();
            match numbers.below(4) {
                0 => new.clear(),
                1 => new.insert(numbers.below(new.len() + 1), "an inserted line".to_owned()),
                2 => new.extend(lines.iter().take(3).cloned()),
                _ => new.iter_mut().for_each(|line| line.push_str(" changed")),
            }
            let end = numbers.pick(&["", "\n"]);
            json!({"oldText": old.join("\n") + end, "newText": new.join("\n") + end})
        })
        .collect();
    let text = lines.join("\n") + "\n";
    if edits.iter().filter_map(|edit| edit["oldText"].as_str()).any(|old| overlaps_itself(&text, old)) {
        return None;
    }
    let arguments = Map::from_iter([("path".to_owned(), "f".into()), ("edits".to_owned(), edits.into())]);
    Some(Case {
        name: format!("generated edit {seed}"),
        needs: None,
        files: [("f".to_owned(), Content::Text(file))].into(),
        calls: vec![Call { tool: "edit".to_owned(), arguments }],
    })
}

fn overlaps_itself(text: &str, old: &str) -> bool {
    let every = (0..text.len()).filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(old)).count();
    !old.is_empty() && every != text.matches(old).count()
}
