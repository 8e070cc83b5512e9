//! TOML as manifests use it, read generously: what cannot be read is left out.

use serde_json::{Map, Value};

/// Reads a document. Tables are objects, dates are texts. Text that was cut off in the middle gives what came before.
pub(in crate::guide) fn parse(text: &str) -> Value {
    let mut root = Map::new();
    let mut table: Vec<String> = Vec::new();
    let mut reader = Reader { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 };
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => return Value::Object(root),
            Some('[') => {
                let line = reader.line();
                let inner = line.trim();
                let is_list = inner.starts_with("[[");
                let end = inner.find(']').unwrap_or(inner.len());
                table = keys(inner.get(..end).unwrap_or_default().trim_start_matches('['));
                if is_list {
                    append_table(&mut root, &table);
                } else {
                    let _ = table_at(&mut root, &table);
                }
            }
            Some(_) => {
                let Some((key, value)) = reader.pair() else {
                    reader.line();
                    continue;
                };
                let mut path = table.clone();
                path.extend(key);
                if let Some((last, folder)) = path.split_last()
                    && let Some(target) = table_at(&mut root, folder)
                {
                    target.insert(last.clone(), value);
                }
            }
        }
    }
}

fn table_at<'m>(root: &'m mut Map<String, Value>, path: &[String]) -> Option<&'m mut Map<String, Value>> {
    let mut current = root;
    for key in path {
        let next = current.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
        current = match next {
            Value::Object(table) => table,
            Value::Array(list) => list.last_mut()?.as_object_mut()?,
            _ => return None,
        };
    }
    Some(current)
}

fn append_table(root: &mut Map<String, Value>, path: &[String]) {
    let Some((last, folder)) = path.split_last() else { return };
    if let Some(parent) = table_at(root, folder)
        && let Value::Array(list) = parent.entry(last.clone()).or_insert_with(|| Value::Array(Vec::new()))
    {
        list.push(Value::Object(Map::new()));
    }
}

/// `a."b.c".d` as its parts.
fn keys(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in text.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '.') => parts.push(String::new()),
            (None, c) if c.is_whitespace() => {}
            (_, c) => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if self.peek() != Some('#') {
                return;
            }
            self.line();
        }
    }

    /// Takes the rest of the line.
    fn line(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn pair(&mut self) -> Option<(Vec<String>, Value)> {
        let rest = self.rest();
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let equals = rest.get(..line_end)?.find('=')?;
        let key = keys(rest.get(..equals)?);
        self.at += equals + 1;
        let value = self.value(0)?;
        Some((key, value))
    }

    fn inline_blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > 32 {
            return None;
        }
        self.inline_blank();
        let rest = self.rest();
        for quotes in ["\"\"\"", "'''"] {
            if let Some(inside) = rest.strip_prefix(quotes) {
                let end = inside.find(quotes)?;
                self.at += end + 6;
                return Some(inside.get(..end)?.trim_start_matches('\n').into());
            }
        }
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote),
            '[' => self.list(depth),
            '{' => self.inline_table(depth),
            _ => {
                let end = rest.find(['\n', ',', ']', '}', '#']).unwrap_or(rest.len());
                self.at += end;
                let word = rest.get(..end)?.trim();
                Some(match word {
                    "true" => true.into(),
                    "false" => false.into(),
                    "" => return None,
                    _ => word.replace('_', "").parse::<i64>().map(Value::from).unwrap_or_else(|_| word.into()),
                })
            }
        }
    }

    fn string(&mut self, quote: char) -> Option<Value> {
        let inside = self.rest().get(1..)?;
        let mut text = String::new();
        let mut characters = inside.char_indices();
        while let Some((index, c)) = characters.next() {
            match c {
                c if c == quote => {
                    self.at += 1 + index + 1;
                    return Some(text.into());
                }
                '\n' => return None,
                '\\' if quote == '"' => match characters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_blank();
            match self.peek()? {
                ']' => {
                    self.at += 1;
                    return Some(Value::Array(items));
                }
                ',' => self.at += 1,
                _ => items.push(self.value(depth + 1)?),
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut table = Map::new();
        loop {
            self.skip_blank();
            match self.peek()? {
                '}' => {
                    self.at += 1;
                    return Some(Value::Object(table));
                }
                ',' => self.at += 1,
                _ => {
                    let equals = self.rest().find('=')?;
                    let key = keys(self.rest().get(..equals)?);
                    self.at += equals + 1;
                    let value = self.value(depth + 1)?;
                    if let Some((last, folder)) = key.split_last()
                        && let Some(target) = table_at(&mut table, folder)
                    {
                        target.insert(last.clone(), value);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn manifests_are_read() {
        let text = r#"
# comment
[workspace]
members = [
    "crates/*", # all
    'tools/x',
]
[workspace.package]
version.workspace = true
[package]
name = "a" # the name
description = "says \"hi\""
edition = 2024
[dependencies]
serde = { version = "1", features = ["derive"] }
"quoted.key" = "x"
[[bin]]
name = "one"
[[bin]]
name = "two"
[tool.uv.workspace]
members = ["p/*"]
"#;
        let value = parse(text);
        assert_eq!(value["workspace"]["members"], json!(["crates/*", "tools/x"]));
        assert_eq!(value["workspace"]["package"], json!({"version": {"workspace": true}}));
        assert_eq!(value["package"], json!({"name": "a", "description": "says \"hi\"", "edition": 2024}));
        assert_eq!(
            value["dependencies"],
            json!({"serde": {"version": "1", "features": ["derive"]}, "quoted.key": "x"})
        );
        assert_eq!(value["bin"], json!([{"name": "one"}, {"name": "two"}]));
        assert_eq!(value["tool"]["uv"]["workspace"]["members"], json!(["p/*"]));
    }

    #[test]
    fn broken_text_gives_what_can_be_read_and_never_hangs() {
        assert_eq!(parse("a = \"x\"\nb = [1,\n"), json!({"a": "x"}));
        assert_eq!(parse("= 1\nno equals\nc = 2"), json!({"": 1, "c": 2}));
        for text in
            ["[", "[[", "[]", "a = {", "a = {b", "a = [[[[", "a = \"", "a = '''", "\"\" = ", "a.b = 1\na = 2\na.c = 3"]
        {
            let _ = parse(text);
        }
    }
}
