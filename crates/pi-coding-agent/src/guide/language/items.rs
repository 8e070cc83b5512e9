//! Definitions in source text, line by line. No parser: enough to say what stands where.

use super::Language;

/// Something that a source file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::guide) struct Item {
    /// The word for what it is: "function", "struct".
    pub(in crate::guide) kind: &'static str,
    pub(in crate::guide) name: String,
    /// From 1.
    pub(in crate::guide) line: usize,
    /// Columns before it.
    pub(in crate::guide) indent: usize,
    /// Its first line without what opens its body.
    pub(in crate::guide) signature: String,
    /// The first sentence of what stands above it (or below, in Python).
    pub(in crate::guide) documentation: Option<String>,
}

/// Everything that a source text defines, in order.
pub(in crate::guide) fn items_of(language: Language, text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let mut items = Vec::new();
    let mut quoted = false;
    for (index, line) in lines.iter().enumerate() {
        // Text in a Python string that spans lines defines nothing.
        let was_quoted = quoted;
        if language == Language::Python && (line.matches("\"\"\"").count() + line.matches("'''").count()) % 2 == 1 {
            quoted = !quoted;
        }
        if was_quoted {
            continue;
        }
        let Some((kind, name)) = definition_on(language, line) else { continue };
        items.push(Item {
            kind,
            name: name.to_owned(),
            line: index + 1,
            indent: line.len() - line.trim_start().len(),
            signature: signature(line),
            documentation: documentation_at(language, &lines, index),
        });
    }
    items
}

/// What a line defines under a name: the word for it.
pub(in crate::guide) fn definition_of(language: Option<Language>, line: &str, name: &str) -> Option<&'static str> {
    let languages: &[Language] = match &language {
        Some(language) => std::slice::from_ref(language),
        None => &[Language::Rust, Language::Python, Language::JavaScript, Language::Go, Language::C, Language::Shell],
    };
    languages
        .iter()
        .find_map(|language| definition_on(*language, line).filter(|(_, found)| *found == name))
        .map(|(kind, _)| kind)
}

fn signature(line: &str) -> String {
    let text = line.trim().trim_end_matches(['{', ':', ';', '=', ',']).trim_end();
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Keywords that lead a definition, and the word for it.
type Keywords = &'static [(&'static str, &'static str)];

const RUST: Keywords = &[
    ("fn", "function"),
    ("struct", "struct"),
    ("enum", "enum"),
    ("trait", "trait"),
    ("type", "type alias"),
    ("const", "constant"),
    ("static", "static"),
    ("mod", "module"),
    ("union", "union"),
    ("macro_rules!", "macro"),
];
const PYTHON: Keywords = &[("def", "function"), ("class", "class")];
const JAVASCRIPT: Keywords = &[
    ("function", "function"),
    ("function*", "function"),
    ("class", "class"),
    ("interface", "interface"),
    ("type", "type alias"),
    ("enum", "enum"),
    ("namespace", "namespace"),
    ("const", "constant"),
    ("let", "variable"),
    ("var", "variable"),
];
const GO: Keywords = &[("func", "function"), ("type", "type"), ("var", "variable"), ("const", "constant")];
const C: Keywords = &[
    ("struct", "struct"),
    ("enum", "enum"),
    ("union", "union"),
    ("class", "class"),
    ("namespace", "namespace"),
    ("#define", "macro"),
];
const JVM: Keywords = &[
    ("class", "class"),
    ("interface", "interface"),
    ("enum", "enum"),
    ("record", "record"),
    ("object", "object"),
    ("trait", "trait"),
    ("fun", "function"),
    ("def", "function"),
    ("func", "function"),
    ("struct", "struct"),
    ("protocol", "protocol"),
    ("extension", "extension"),
    ("actor", "actor"),
    ("namespace", "namespace"),
    ("typealias", "type alias"),
    ("val", "value"),
    ("var", "variable"),
    ("let", "constant"),
];
const RUBY: Keywords = &[("def", "method"), ("class", "class"), ("module", "module")];
const PHP: Keywords = &[
    ("function", "function"),
    ("class", "class"),
    ("interface", "interface"),
    ("trait", "trait"),
    ("enum", "enum"),
    ("const", "constant"),
];
const LUA: Keywords = &[("function", "function")];
const ELIXIR: Keywords = &[
    ("def", "function"),
    ("defp", "function"),
    ("defmodule", "module"),
    ("defmacro", "macro"),
    ("defstruct", "struct"),
];
const ZIG: Keywords = &[("fn", "function"), ("const", "constant"), ("var", "variable")];
const PERL: Keywords = &[("sub", "function"), ("package", "package")];
const HASKELL: Keywords =
    &[("data", "type"), ("newtype", "type"), ("type", "type alias"), ("class", "class"), ("module", "module")];

/// Words that may stand before the keyword.
const MODIFIERS: [&str; 40] = [
    "pub",
    "async",
    "unsafe",
    "const",
    "extern",
    "default",
    "export",
    "declare",
    "abstract",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "final",
    "sealed",
    "open",
    "override",
    "virtual",
    "inline",
    "data",
    "case",
    "partial",
    "readonly",
    "local",
    "suspend",
    "lazy",
    "mutating",
    "fileprivate",
    "typedef",
    "constexpr",
    "explicit",
    "friend",
    "template",
    "auto",
    "\"C\"",
    "implicit",
    "inner",
    "companion",
    "comptime",
];

fn definition_on(language: Language, line: &str) -> Option<(&'static str, &str)> {
    let text = line.trim_start();
    if language.line_comments().iter().any(|comment| text.starts_with(comment)) && !text.starts_with("#define")
        || text.starts_with('*')
    {
        return None;
    }
    let indented = text.len() < line.len();
    let keywords = match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
        Language::JavaScript | Language::TypeScript => JAVASCRIPT,
        Language::Go => GO,
        Language::C | Language::Cpp => C,
        Language::CSharp | Language::Java | Language::Kotlin | Language::Scala | Language::Swift => JVM,
        Language::Ruby => RUBY,
        Language::Php => PHP,
        Language::Lua => LUA,
        Language::Elixir => ELIXIR,
        Language::Zig => ZIG,
        Language::Perl => PERL,
        Language::Haskell => HASKELL,
        Language::Shell => return shell_function(text),
        Language::Make => return make_target(line),
        Language::Sql => return sql_object(text),
        _ => return None,
    };
    if let Some((kind, name)) = after_keyword(text, keywords) {
        // Local variables are not what a file defines.
        let local = indented && matches!(kind, "variable" | "constant" | "value") && language != Language::Rust;
        let local = local || language == Language::Rust && kind == "constant" && line.starts_with("        ");
        return (!local).then_some((kind, name));
    }
    match language {
        Language::Python if !indented => assignment(text).map(|name| ("variable", name)),
        Language::JavaScript | Language::TypeScript if indented => method(text).map(|name| ("method", name)),
        Language::C | Language::Cpp if !indented => c_function(text).map(|name| ("function", name)),
        Language::CSharp | Language::Java => method(strip_type(text)?).map(|name| ("method", name)),
        Language::Haskell if !indented => {
            let (name, _) = text.split_once("::")?;
            is_name(name.trim()).then_some(("function", name.trim()))
        }
        _ => None,
    }
}

fn after_keyword(text: &str, keywords: Keywords) -> Option<(&'static str, &str)> {
    let mut rest = text;
    if let Some((_, after)) = text.strip_prefix("pub(").and_then(|scope| scope.split_once(')')) {
        rest = after.trim_start();
    }
    for _ in 0..6 {
        let end = rest.find(char::is_whitespace)?;
        let (word, after) = (rest.get(..end)?, rest.get(end..)?.trim_start());
        // `const fn f` is a function, `const X` a constant: the last keyword before the name counts.
        let next_is_keyword = after
            .split_whitespace()
            .next()
            .is_some_and(|next| keywords.iter().any(|(keyword, _)| *keyword == next) || MODIFIERS.contains(&next));
        if let Some((_, kind)) = keywords.iter().find(|(keyword, _)| *keyword == word)
            && !(next_is_keyword && (MODIFIERS.contains(&word) || word == "enum"))
        {
            return named(kind, after);
        }
        let attribute = word.starts_with('@') || word.starts_with("#[");
        if !(attribute || MODIFIERS.contains(&word) || keywords.iter().any(|(keyword, _)| *keyword == word)) {
            return None;
        }
        rest = after;
    }
    None
}

fn named<'t>(kind: &'static str, text: &'t str) -> Option<(&'static str, &'t str)> {
    // Go's methods have their receiver first; Rust's statics may be `mut`.
    let text = match text.strip_prefix('(') {
        Some(receiver) => receiver.split_once(')')?.1.trim_start(),
        None => text.strip_prefix("mut ").unwrap_or(text),
    };
    let text = text.strip_prefix("self.").unwrap_or(text);
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '?' | '!'))).unwrap_or(text.len());
    let mut name = text.get(..end)?;
    // Lua and others: `function table.name`.
    if let Some(member) = text.get(end..).and_then(|rest| rest.strip_prefix(['.', ':']))
        && !member.starts_with(':')
        && kind == "function"
    {
        let end = member.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(member.len());
        name = member.get(..end).filter(|member| !member.is_empty()).unwrap_or(name);
    }
    let name = name.trim_end_matches(['?', '!']);
    is_name(name).then_some((kind, name))
}

fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '\''))
}

fn assignment(text: &str) -> Option<&str> {
    let (left, right) = text.split_once('=')?;
    if right.starts_with('=') || left.ends_with(['!', '<', '>', '+', '-', '*', '/', '%', '|', '&', '^', '@']) {
        return None;
    }
    let name = left.split(':').next()?.trim();
    is_name(name).then_some(name)
}

/// `name(…) {` that is no statement.
fn method(text: &str) -> Option<&str> {
    let mut text = text;
    while let Some(rest) =
        ["async ", "static ", "get ", "set ", "public ", "private ", "protected ", "readonly ", "override ", "*"]
            .iter()
            .find_map(|word| text.strip_prefix(word))
    {
        text = rest.trim_start();
    }
    let open = text.find('(')?;
    let name = text.get(..open)?.split('<').next()?.trim();
    let statement = [
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "return",
        "function",
        "super",
        "new",
        "throw",
        "await",
        "else",
        "do",
        "foreach",
        "using",
        "lock",
        "synchronized",
    ];
    (is_name(name) && text.trim_end().ends_with('{') && !statement.contains(&name)).then_some(name)
}

/// Takes the type off the front of a Java or C# method.
fn strip_type(text: &str) -> Option<&str> {
    let open = text.find('(')?;
    let head = text.get(..open)?;
    let start = head.trim_end().rfind(char::is_whitespace)?;
    let before: Vec<&str> = head.get(..start)?.split_whitespace().collect();
    let statement =
        before.iter().any(|word| matches!(*word, "new" | "return" | "throw" | "else" | "await" | "=" | "case"));
    if statement { None } else { text.get(start + 1..) }
}

fn c_function(text: &str) -> Option<&str> {
    let open = text.find('(')?;
    let head = text.get(..open)?.trim_end();
    let ends_statement = text.trim_end().ends_with(';');
    let name_start =
        head.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':' | '~'))).map_or(0, |at| at + 1);
    let (return_type, name) = (head.get(..name_start)?.trim(), head.get(name_start..)?);
    let name = name.rsplit("::").next()?.trim_start_matches('~');
    let statement = ["return", "else", "if", "while", "for", "switch", "typedef", "#define", "case"]
        .iter()
        .any(|word| text.starts_with(word));
    (is_name(name) && !return_type.is_empty() && !return_type.contains('=') && !ends_statement && !statement)
        .then_some(name)
}

fn shell_function(text: &str) -> Option<(&'static str, &str)> {
    if let Some(rest) = text.strip_prefix("function ") {
        return named("function", rest.trim_start());
    }
    if let Some((name, _)) = text.split_once("()") {
        return is_name(name.trim()).then_some(("function", name.trim()));
    }
    let text = text.strip_prefix("export ").or_else(|| text.strip_prefix("readonly ")).unwrap_or(text);
    let (name, _) = text.split_once('=')?;
    is_name(name).then_some(("variable", name))
}

fn make_target(line: &str) -> Option<(&'static str, &str)> {
    let (name, rest) = line.split_once(':')?;
    let plain = !name.is_empty()
        && !name.starts_with(['\t', ' ', '.', '#', '$'])
        && !rest.starts_with('=')
        && !name.contains(['=', ' ', '%']);
    plain.then_some(("target", name))
}

fn sql_object(text: &str) -> Option<(&'static str, &str)> {
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("create ")?;
    for (word, kind) in [
        ("table ", "table"),
        ("view ", "view"),
        ("function ", "function"),
        ("procedure ", "procedure"),
        ("index ", "index"),
        ("trigger ", "trigger"),
        ("type ", "type"),
    ] {
        if let Some(at) = rest.find(word).filter(|at| *at < 24) {
            let start = "create ".len() + at + word.len();
            let name = text.get(start..)?.trim_start();
            let name =
                name.strip_prefix("if not exists ").or_else(|| name.strip_prefix("IF NOT EXISTS ")).unwrap_or(name);
            let end = name.find(|c: char| c.is_whitespace() || matches!(c, '(' | ';')).unwrap_or(name.len());
            return Some((kind, name.get(..end)?.trim_matches(['"', '`'])));
        }
    }
    None
}

fn documentation_at(language: Language, lines: &[&str], index: usize) -> Option<String> {
    if language == Language::Python {
        // The signature may go on over several lines, up to its colon.
        let rest = lines.get(index..)?;
        if !rest.first().is_some_and(|line| line.contains('(') || line.trim_end().ends_with(':')) {
            return None;
        }
        let end = rest.iter().take(12).position(|line| line.trim_end().ends_with(':'))?;
        let inside = rest.get(end + 1)?.trim().trim_start_matches('r');
        let inside = inside.strip_prefix("\"\"\"").or_else(|| inside.strip_prefix("'''"))?;
        return sentence(inside.trim_end_matches("\"\"\"").trim_end_matches("'''"));
    }
    let mut above = Vec::new();
    for line in lines.get(..index)?.iter().rev() {
        let line = line.trim();
        // Attributes and decorators stand between documentation and definition.
        if (line.starts_with("#[") || line.starts_with('@')) && above.is_empty() {
            continue;
        }
        let comment = language.line_comments().iter().find_map(|prefix| line.strip_prefix(prefix));
        let block = (line.starts_with('*') || line.starts_with("/**") || line.starts_with("/*"))
            .then(|| line.trim_start_matches(['/', '*']).trim_end_matches("*/"));
        match comment.or(block) {
            Some(text) if !text.starts_with('!') => {
                above.push(text.trim_start_matches('/').trim().trim_end_matches("*/").trim())
            }
            _ => break,
        }
        if above.len() > 60 {
            break;
        }
    }
    above.reverse();
    let text = above
        .into_iter()
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    sentence(&text)
}

/// The first sentence.
fn sentence(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    let sentence = text.get(..end)?;
    let sentence = match sentence.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    };
    sentence.chars().any(char::is_alphanumeric).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: Language, text: &str) -> Vec<(&'static str, String)> {
        items_of(language, text).into_iter().map(|item| (item.kind, item.name)).collect()
    }

    #[test]
    fn definitions_are_found_in_common_languages() {
        type Case = (Language, &'static str, &'static [(&'static str, &'static str)]);
        let cases: &[Case] = &[
            (
                Language::Rust,
                "pub(crate) async fn go() {}\nconst fn f() {}\npub const X: u8 = 1;\nstruct S;\nimpl S {\n    fn m(&self) {}\n}\nmacro_rules! mac {\nlet fn_x = 1;\n// fn no() {}\npub(in crate::a) enum E {}\nunsafe extern \"C\" fn c() {}",
                &[
                    ("function", "go"),
                    ("function", "f"),
                    ("constant", "X"),
                    ("struct", "S"),
                    ("function", "m"),
                    ("macro", "mac"),
                    ("enum", "E"),
                    ("function", "c"),
                ],
            ),
            (
                Language::Python,
                "import os\nX = 1\nclass A:\n    async def f(self):\n        y = 2\nif x == 1:\n    pass\n",
                &[("variable", "X"), ("class", "A"), ("function", "f")],
            ),
            (
                Language::TypeScript,
                "export default async function f() {\nexport const g = () => {\ninterface I {\n  method(a: string): void {\n  if (x) {\nexport abstract class C {\nconst enum E {",
                &[
                    ("function", "f"),
                    ("constant", "g"),
                    ("interface", "I"),
                    ("method", "method"),
                    ("class", "C"),
                    ("enum", "E"),
                ],
            ),
            (
                Language::Go,
                "func (s *Server) Run() error {\nfunc main() {\ntype T struct {",
                &[("function", "Run"), ("function", "main"), ("type", "T")],
            ),
            (
                Language::C,
                "static int add(int a, int b)\n{\nint x = f(1);\nvoid declared(void);\n#define MAX 1\nstruct point {\n  return f(x);",
                &[("function", "add"), ("macro", "MAX"), ("struct", "point")],
            ),
            (
                Language::Java,
                "public class A {\n    private static int f(int x) {\n        return g(x);\n        for (int i : xs) {",
                &[("class", "A"), ("method", "f")],
            ),
            (
                Language::Shell,
                "go() {\nfunction stop {\nNAME=x\n",
                &[("function", "go"), ("function", "stop"), ("variable", "NAME")],
            ),
            (Language::Make, "build: a b\n\techo hi\nX := 1\n.PHONY: test\n", &[("target", "build")]),
            (Language::Ruby, "class A\n  def self.go?\n", &[("class", "A"), ("method", "go")]),
        ];
        for (language, text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect();
            assert_eq!(names(*language, text), expected, "{language:?}");
        }
    }

    #[test]
    fn what_stands_above_a_definition_explains_it() {
        let items = items_of(Language::Rust, "/// Adds. Really.\n#[inline]\nfn add() {}\n");
        assert_eq!(items[0].documentation.as_deref(), Some("Adds."));
        let items = items_of(Language::Python, "def add(a,\n        b):\n    \"\"\"Adds.\"\"\"\n");
        assert_eq!(items[0].documentation.as_deref(), Some("Adds."));
        let items = items_of(Language::JavaScript, "/**\n * Adds.\n */\nfunction add() {}\n");
        assert_eq!(items[0].documentation.as_deref(), Some("Adds."));
    }

    #[test]
    fn any_text_can_be_looked_through() {
        for text in ["pub(", "fn", "def ", "func (", "function .", "::", "=", "create table", "🦀 fn 🦀()", "pub(in "]
        {
            for language in super::super::TRAITS.iter().map(|traits| traits.language) {
                let _ = items_of(language, text);
            }
        }
    }
}
