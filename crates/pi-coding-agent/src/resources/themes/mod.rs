//! Themes: colours by token, from JSON files of a user or a project.

mod builtin;
mod color;
mod tokens;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

pub use color::ThemeColor;
pub use tokens::{Slot, ThemeToken};

use super::{Diagnostic, Loaded, document};
use crate::regular_file;

/// The name of the theme that follows the terminal's own colours; no file can have it.
pub const SYSTEM_THEME: &str = "system";

/// The background that a theme is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Appearance {
    /// Dark.
    Dark,
    /// Light.
    Light,
}

/// A theme: a colour for every token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// The background that it says it is made for.
    pub appearance: Option<Appearance>,
    colors: BTreeMap<ThemeToken, ThemeColor>,
    /// Colours of an exported page.
    pub export: ExportColors,
    /// Its file. `None`: it is built in.
    pub source: Option<PathBuf>,
}

/// Colours of an exported page, as the theme writes them with variables replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportColors {
    /// Behind the page.
    pub page: Option<ThemeColor>,
    /// Behind messages.
    pub card: Option<ThemeColor>,
    /// Behind notices.
    pub info: Option<ThemeColor>,
}

impl Theme {
    /// The built-in dark theme.
    pub fn dark() -> Self {
        builtin::dark()
    }

    /// The built-in light theme.
    pub fn light() -> Self {
        builtin::light()
    }

    /// The colour of a token.
    pub fn color(&self, token: ThemeToken) -> ThemeColor {
        self.colors.get(&token).copied().unwrap_or(ThemeColor::TerminalDefault)
    }
}

pub(crate) fn theme_files(folder: &Path) -> Vec<PathBuf> {
    super::files_in(folder, "json")
}

/// Loads the theme files directly in a folder, sorted by name. Blocks.
pub fn load_themes_from_dir(folder: &Path) -> Loaded<Theme> {
    let mut loaded = Loaded::default();
    for file in theme_files(folder) {
        let one = load_theme(&file);
        loaded.items.extend(one.items);
        loaded.diagnostics.extend(one.diagnostics);
    }
    loaded
}

/// Reads one theme. A theme with any mistake is not loaded, and every mistake is reported with its line.
pub(crate) fn load_theme(file: &Path) -> Loaded<Theme> {
    let warn = |message: String| Diagnostic::warning(message).in_file(file);
    let text = match regular_file::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return Loaded::problem(warn(format!("the theme cannot be read: {error}"))),
    };
    let json = match document::parse(&text) {
        Ok(json) => json,
        Err(problem) => {
            return Loaded::problem(
                warn(format!("the theme is not loaded: {}", problem.message)).on_line(problem.line),
            );
        }
    };
    let mut reader = Reader { json: &json, mistakes: Vec::new() };
    let theme = reader.theme(file);
    if reader.mistakes.is_empty() {
        return Loaded { items: vec![theme], diagnostics: Vec::new() };
    }
    let diagnostic = |mistake: &Mistake| {
        let path: Vec<&str> = mistake.path.iter().map(String::as_str).collect();
        // A key that is missing has no line; the object that should hold it has one.
        let line = document::line_of(&text, &path).or_else(|| document::line_of(&text, path.get(..1)?)).unwrap_or(1);
        warn(format!("the theme is not loaded: {}", mistake.message)).on_line(line)
    };
    Loaded { items: Vec::new(), diagnostics: reader.mistakes.iter().map(diagnostic).collect() }
}

struct Mistake {
    path: Vec<String>,
    message: String,
}

struct Reader<'j> {
    json: &'j Map<String, Value>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn theme(&mut self, file: &Path) -> Theme {
        for key in self.json.keys() {
            if !matches!(key.as_str(), "$schema" | "name" | "appearance" | "vars" | "colors" | "export") {
                self.wrong(&[key], format!("`{key}` is not a part of a theme"));
            }
        }
        Theme {
            name: self.name(),
            appearance: self.appearance(),
            colors: self.colors(),
            export: self.export(),
            source: Some(file.to_owned()),
        }
    }

    fn wrong(&mut self, path: &[&str], message: String) {
        self.mistakes.push(Mistake { path: path.iter().map(|key| (*key).to_owned()).collect(), message });
    }

    fn name(&mut self) -> String {
        let name = self.json.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            self.wrong(&["name"], "it needs a `name`, a text".into());
        } else if name.contains('/') {
            self.wrong(&["name"], format!("the name `{name}` has a slash, which settings use for a light/dark pair"));
        } else if name == SYSTEM_THEME {
            self.wrong(&["name"], format!("the name `{SYSTEM_THEME}` is taken by the built-in theme"));
        }
        name.to_owned()
    }

    fn appearance(&mut self) -> Option<Appearance> {
        match self.json.get("appearance")? {
            Value::String(word) if word == "dark" => Some(Appearance::Dark),
            Value::String(word) if word == "light" => Some(Appearance::Light),
            other => {
                self.wrong(&["appearance"], format!("`appearance` is \"dark\" or \"light\", not {other}"));
                None
            }
        }
    }

    fn colors(&mut self) -> BTreeMap<ThemeToken, ThemeColor> {
        let json = self.json;
        let Some(given) = json.get("colors").and_then(Value::as_object) else {
            self.wrong(&["colors"], "it needs `colors`, an object".into());
            return BTreeMap::new();
        };
        let mut colors = BTreeMap::new();
        for (name, value) in given {
            match ThemeToken::from_name(name) {
                Some(token) => drop(self.color(&["colors", name], value).map(|color| colors.insert(token, color))),
                None => self.wrong(&["colors", name], format!("there is no colour called `{name}`")),
            }
        }
        let missing: Vec<&str> = ThemeToken::ALL
            .iter()
            .filter(|token| token.fallback().is_none() && !given.contains_key(token.as_str()))
            .map(|token| token.as_str())
            .collect();
        if !missing.is_empty() {
            self.wrong(&["colors"], format!("these colours are missing: {}", missing.join(", ")));
        }
        for token in ThemeToken::ALL {
            if let Some(color) = token.fallback().and_then(|other| colors.get(&other).copied()) {
                colors.entry(*token).or_insert(color);
            }
        }
        colors
    }

    fn export(&mut self) -> ExportColors {
        let json = self.json;
        let mut export = ExportColors::default();
        match json.get("export") {
            None => {}
            Some(Value::Object(given)) => {
                for (name, value) in given {
                    let color = self.color(&["export", name], value);
                    match name.as_str() {
                        "pageBg" => export.page = color,
                        "cardBg" => export.card = color,
                        "infoBg" => export.info = color,
                        _ => self.wrong(&["export", name], format!("`export` has no colour called `{name}`")),
                    }
                }
            }
            Some(_) => self.wrong(&["export"], "`export` is an object".into()),
        }
        export
    }

    /// A colour, or a variable that leads to one.
    fn color(&mut self, path: &[&str], value: &Value) -> Option<ThemeColor> {
        let json = self.json;
        let variables = json.get("vars").and_then(Value::as_object);
        let mut value = value;
        let mut visited: Vec<&str> = Vec::new();
        loop {
            match value {
                Value::Number(number) => {
                    let index = number.as_u64().and_then(|number| u8::try_from(number).ok());
                    if index.is_none() {
                        self.wrong(path, format!("{number} is no colour of the terminal: they go from 0 to 255"));
                    }
                    return index.map(ThemeColor::Indexed);
                }
                Value::String(text) => {
                    if let Some(color) = ThemeColor::parse(text) {
                        return Some(color);
                    }
                    if visited.contains(&text.as_str()) {
                        self.wrong(path, format!("the variable `{text}` leads back to itself"));
                        return None;
                    }
                    let Some(next) = variables.and_then(|variables| variables.get(text)) else {
                        self.wrong(
                            path,
                            format!(
                                "`{text}` is neither a colour (#rrggbb, oklch(…), okhsl(…), 0 to 255, \"\" for the terminal's \
                                 own) nor a variable"
                            ),
                        );
                        return None;
                    };
                    visited.push(text);
                    value = next;
                }
                other => {
                    self.wrong(path, format!("{other} is no colour"));
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn colors() -> Map<String, Value> {
        let required = ThemeToken::ALL.iter().filter(|token| token.fallback().is_none());
        required.map(|token| (token.as_str().to_owned(), json!("#102030"))).collect()
    }

    fn load(theme: Value) -> Loaded<Theme> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.json");
        fs::write(&file, serde_json::to_string_pretty(&theme).unwrap()).unwrap();
        load_theme(&file)
    }

    #[test]
    fn variables_chain_and_what_is_left_out_falls_back() {
        let mut colors = colors();
        colors["muted"] = json!("a");
        colors["text"] = json!(7);
        let loaded = load(
            json!({"name": "t", "appearance": "light", "vars": {"a": "b", "b": "#fff"}, "colors": colors, "export": {"pageBg": "b"}}),
        );
        assert_eq!(loaded.diagnostics, []);
        let theme = &loaded.items[0];
        assert_eq!(theme.color(ThemeToken::ScrollbarTrack), ThemeColor::Rgb(255, 255, 255));
        assert_eq!(theme.color(ThemeToken::ScrollbarThumb), ThemeColor::Indexed(7));
        assert_eq!(
            (theme.appearance, theme.export.page),
            (Some(Appearance::Light), Some(ThemeColor::Rgb(255, 255, 255)))
        );
    }

    #[test]
    fn every_mistake_is_reported_on_its_line() {
        let mut colors = colors();
        colors.remove("accent");
        colors.insert("sparkle".into(), json!("#fff"));
        colors["border"] = json!("loop");
        colors["error"] = json!(300);
        let loaded = load(json!({"name": "a/b", "vars": {"loop": "loop"}, "colors": colors, "extra": 1}));
        assert!(loaded.items.is_empty());
        let text = loaded.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        for part in ["slash", "sparkle", "missing: accent", "leads back", "300", "`extra`"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(loaded.diagnostics.iter().all(|problem| problem.line.is_some()));
    }

    #[test]
    fn the_built_in_themes_have_every_colour() {
        for theme in [Theme::dark(), Theme::light()] {
            assert_eq!(theme.colors.len(), ThemeToken::ALL.len(), "{}", theme.name);
        }
    }
}
