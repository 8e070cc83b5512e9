//! `pi --list-models`: a table of the models that have a key.

use pi_ai::{Model, ThinkingLevel};

/// The table, or a sentence when there is nothing to show. `search` picks models whose provider, id or name has all
/// of its words.
pub fn table<'a>(models: impl IntoIterator<Item = &'a Model>, search: &str) -> String {
    let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
    let mut rows = vec![["provider", "model", "context", "max-out", "thinking", "images"].map(str::to_owned)];
    let mut found: Vec<&Model> = models.into_iter().filter(|model| has_all(model, &words)).collect();
    found.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
    rows.extend(found.into_iter().map(row));
    if rows.len() == 1 {
        return match words.is_empty() {
            true => "No model has a key. Set one of a provider, for example ANTHROPIC_API_KEY or OPENAI_API_KEY, or \
                     describe a local server in models.json.\n"
                .to_owned(),
            false => format!("No model with a key matches `{search}`.\n"),
        };
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn has_all(model: &Model, words: &[String]) -> bool {
    let text = format!("{}/{} {}", model.provider, model.id, model.name).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

fn row(model: &Model) -> [String; 6] {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let thinks = model.thinking_levels().any(|level| level != ThinkingLevel::Off);
    [
        model.provider.to_string(),
        model.id.to_string(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes_no(thinks),
        yes_no(model.reads_images()),
    ]
}

/// 200000 → `200K`, 1048576 → `1.0M`.
fn tokens(count: u64) -> String {
    match count {
        0 => "?".to_owned(),
        1..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}K", (count as f64 / 1_000.0).round()),
        _ => {
            let millions = format!("{:.1}", count as f64 / 1_000_000.0);
            format!("{}M", millions.strip_suffix(".0").unwrap_or(&millions))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(provider: &str, id: &str) -> Model {
        Model {
            provider: provider.into(),
            id: id.into(),
            context_window: 200_000,
            max_tokens: 1_000_000,
            ..Model::default()
        }
    }

    #[test]
    fn models_are_listed_by_provider_and_found_by_words() {
        let models = [model("openai", "gpt-x"), model("anthropic", "claude-y")];
        let all = table(&models, "");
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("anthropic  claude-y  200K     1M"), "{all}");
        assert_eq!(table(&models, "GPT open").lines().count(), 2);
        assert!(table(&models, "llama").contains("llama"));
    }

    #[test]
    fn without_a_key_the_table_says_how_to_set_one() {
        assert!(table([], "").contains("ANTHROPIC_API_KEY"));
    }
}
