//! Facts about programming languages: names, extensions, comments, and how definitions look.

mod documentation;
mod items;
pub(super) mod toml;

pub(super) use documentation::{file_documentation, first_paragraph};
pub(super) use items::{Item, definition_of, items_of};

/// A language that the guide knows some facts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Go,
    C,
    Cpp,
    CSharp,
    Java,
    Kotlin,
    Scala,
    Swift,
    Ruby,
    Php,
    Shell,
    Lua,
    Elixir,
    Haskell,
    Zig,
    Perl,
    Sql,
    Css,
    Html,
    Markdown,
    Toml,
    Json,
    Yaml,
    Make,
    Docker,
}

struct Traits {
    language: Language,
    name: &'static str,
    /// Further names that people use.
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    line_comment: &'static [&'static str],
    /// Whether files of it are a program's code, as opposed to text and data.
    is_code: bool,
}

const fn code(
    language: Language,
    name: &'static str,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    line_comment: &'static [&'static str],
) -> Traits {
    Traits { language, name, aliases, extensions, line_comment, is_code: true }
}

const fn data(
    language: Language,
    name: &'static str,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    line_comment: &'static [&'static str],
) -> Traits {
    Traits { language, name, aliases, extensions, line_comment, is_code: false }
}

const TRAITS: [Traits; 29] = [
    code(Language::Rust, "Rust", &["rs"], &["rs"], &["//"]),
    code(Language::Python, "Python", &["py"], &["py", "pyi", "pyw"], &["#"]),
    code(Language::JavaScript, "JavaScript", &["js", "node"], &["js", "mjs", "cjs", "jsx"], &["//"]),
    code(Language::TypeScript, "TypeScript", &["ts"], &["ts", "tsx", "mts", "cts"], &["//"]),
    code(Language::Go, "Go", &["golang"], &["go"], &["//"]),
    code(Language::C, "C", &[], &["c", "h"], &["//"]),
    code(Language::Cpp, "C++", &["cpp", "cxx"], &["cpp", "cc", "cxx", "hpp", "hh", "hxx"], &["//"]),
    code(Language::CSharp, "C#", &["csharp"], &["cs"], &["//"]),
    code(Language::Java, "Java", &[], &["java"], &["//"]),
    code(Language::Kotlin, "Kotlin", &["kt"], &["kt", "kts"], &["//"]),
    code(Language::Scala, "Scala", &[], &["scala", "sc"], &["//"]),
    code(Language::Swift, "Swift", &[], &["swift"], &["//"]),
    code(Language::Ruby, "Ruby", &["rb"], &["rb", "rake"], &["#"]),
    code(Language::Php, "PHP", &[], &["php"], &["//", "#"]),
    code(Language::Shell, "Shell", &["bash", "sh"], &["sh", "bash", "zsh", "fish"], &["#"]),
    code(Language::Lua, "Lua", &[], &["lua"], &["--"]),
    code(Language::Elixir, "Elixir", &[], &["ex", "exs"], &["#"]),
    code(Language::Haskell, "Haskell", &[], &["hs"], &["--"]),
    code(Language::Zig, "Zig", &[], &["zig"], &["//"]),
    code(Language::Perl, "Perl", &[], &["pl", "pm"], &["#"]),
    code(Language::Sql, "SQL", &[], &["sql"], &["--"]),
    code(Language::Css, "CSS", &["scss", "sass"], &["css", "scss", "less"], &["//"]),
    code(Language::Html, "HTML", &[], &["html", "htm", "vue", "svelte"], &[]),
    data(Language::Markdown, "Markdown", &["md"], &["md", "markdown", "mdx"], &[]),
    data(Language::Toml, "TOML", &[], &["toml"], &["#"]),
    data(Language::Json, "JSON", &[], &["json", "jsonc", "json5"], &["//"]),
    data(Language::Yaml, "YAML", &["yml"], &["yaml", "yml"], &["#"]),
    data(Language::Make, "Make", &["makefile"], &["mk"], &["#"]),
    data(Language::Docker, "Dockerfile", &[], &["dockerfile"], &["#"]),
];

impl Language {
    fn traits(self) -> &'static Traits {
        // The table has every language.
        TRAITS.iter().find(|traits| traits.language == self).unwrap_or(&TRAITS[0])
    }

    /// The language of a file, by its name.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.to_ascii_lowercase().as_str() {
            "makefile" | "gnumakefile" => return Some(Self::Make),
            "dockerfile" | "containerfile" => return Some(Self::Docker),
            "rakefile" | "gemfile" => return Some(Self::Ruby),
            _ => {}
        }
        Self::of_extension(name.rsplit_once('.')?.1)
    }

    pub(super) fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.to_ascii_lowercase();
        TRAITS.iter().find(|traits| traits.extensions.contains(&extension.as_str())).map(|traits| traits.language)
    }

    /// The language that people call by a name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        TRAITS
            .iter()
            .find(|traits| traits.name.to_lowercase() == name || traits.aliases.contains(&name.as_str()))
            .map(|traits| traits.language)
    }

    pub(super) fn name(self) -> &'static str {
        self.traits().name
    }

    pub(super) fn extensions(self) -> &'static [&'static str] {
        self.traits().extensions
    }

    pub(super) fn line_comments(self) -> &'static [&'static str] {
        self.traits().line_comment
    }

    pub(super) fn is_code(self) -> bool {
        self.traits().is_code
    }
}
