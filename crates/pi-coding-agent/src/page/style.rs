//! The page's style sheet: what is fixed, and the theme's colours.

use std::fmt::Write as _;

use crate::resources::{Appearance, Slot, Theme, ThemeColor, ThemeToken};

const LAYOUT: &str = "\
*{box-sizing:border-box}\
body{margin:0;font:15px/1.5 system-ui,sans-serif;display:flex}\
nav{width:22rem;max-height:100vh;position:sticky;top:0;overflow:auto;padding:1rem;font-size:.85rem;flex:none}\
nav ol{list-style:none;margin:0;padding:0}nav li{margin:.2rem 0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}\
nav .deep{padding-left:1rem}\
main{flex:1;min-width:0;max-width:60rem;padding:1rem 1.5rem}\
a{color:inherit}h1{font-size:1.4rem;margin:.2rem 0}h2{font-size:1rem;margin:0}\
article,section.facts{border-radius:.5rem;padding:.6rem .9rem;margin:.6rem 0;overflow-wrap:anywhere}\
article header{display:flex;gap:.6rem;font-size:.8rem;align-items:baseline}article header time{margin-left:auto}\
.label{border:1px solid;border-radius:.3rem;padding:0 .3rem}\
.note{font-size:.85rem;margin:.4rem 0}\
pre{margin:.4rem 0;white-space:pre-wrap;font:inherit}\
pre.code,pre.styled,pre.output{font:.85rem/1.45 ui-monospace,monospace}\
img{max-width:100%}summary{cursor:pointer}dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;margin:.4rem 0}dd{margin:0}\
.bold{font-weight:bold}.italic{font-style:italic}.underline{text-decoration:underline}.strike{text-decoration:line-through}\
@media(max-width:60rem){body{display:block}nav{position:static;width:auto;max-height:none}}\
";

/// The style sheet. It holds nothing but our own words and numbers.
pub(super) fn sheet(theme: &Theme) -> String {
    let (text, page) = match theme.appearance {
        Some(Appearance::Light) => ("#1f2328", "#ffffff"),
        _ => ("#d7dae0", "#16181d"),
    };
    let mut css = String::from(LAYOUT);
    let color = |token: ThemeToken| hex(theme.color(token));
    let text = color(ThemeToken::Text).unwrap_or_else(|| text.to_owned());
    let page = theme.export.page.and_then(hex).unwrap_or_else(|| page.to_owned());
    let card = theme.export.card.and_then(hex).or_else(|| color(ThemeToken::UserMessageBg));
    let info = theme.export.info.and_then(hex).or_else(|| color(ThemeToken::CustomMessageBg));
    let _ = write!(css, "body{{color:{text};background:{page}}}");
    for (selector, background) in [
        ("article.user", card.clone()),
        ("article.summary,section.facts", info),
        ("article.custom", color(ThemeToken::CustomMessageBg)),
        ("article.result,article.bash", color(ThemeToken::ToolSuccessBg)),
        ("article.failed", color(ThemeToken::ToolErrorBg)),
    ] {
        if let Some(background) = background {
            let _ = write!(css, "{selector}{{background:{background}}}");
        }
    }
    for (selector, token) in [
        (".note,time,.dim,nav", ThemeToken::Muted),
        ("pre.thinking", ThemeToken::ThinkingText),
        (".error", ThemeToken::Error),
        (".label", ThemeToken::Accent),
    ] {
        if let Some(color) = color(token) {
            let _ = write!(css, "{selector}{{color:{color}}}");
        }
    }
    for token in ThemeToken::ALL {
        let Some(color) = color(*token) else { continue };
        let name = token.as_str();
        let _ = match token.slot() {
            Slot::Foreground => write!(css, ".t-{name}{{color:{color}}}.b-{name}{{background:{color}}}"),
            Slot::Background => write!(css, ".b-{name},.t-{name}{{background:{color}}}"),
        };
    }
    css
}

/// A colour as style sheets write it. `None`: the terminal's own, which a page does not have.
fn hex(color: ThemeColor) -> Option<String> {
    let (red, green, blue) = match color {
        ThemeColor::TerminalDefault => return None,
        ThemeColor::Rgb(red, green, blue) => (red, green, blue),
        ThemeColor::Indexed(index) => indexed(index),
    };
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

/// One of the 256 colours of xterm: sixteen names, a cube of six steps each, and greys.
fn indexed(index: u8) -> (u8, u8, u8) {
    const NAMED: [(u8, u8, u8); 16] = [
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
        (127, 127, 127),
        (255, 0, 0),
        (0, 255, 0),
        (255, 255, 0),
        (92, 92, 255),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
    ];
    if let Some(named) = NAMED.get(usize::from(index)) {
        return *named;
    }
    match index.checked_sub(232) {
        Some(grey) => {
            let grey = 8 + 10 * grey;
            (grey, grey, grey)
        }
        None => {
            let index = index - 16;
            let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            (step(index / 36), step(index / 6 % 6), step(index % 6))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminals_colours_have_their_numbers() {
        assert_eq!(hex(ThemeColor::Indexed(196)).as_deref(), Some("#ff0000"));
        assert_eq!(hex(ThemeColor::Indexed(255)).as_deref(), Some("#eeeeee"));
        assert_eq!(hex(ThemeColor::Indexed(16)).as_deref(), Some("#000000"));
        assert_eq!(hex(ThemeColor::TerminalDefault), None);
    }

    #[test]
    fn a_style_sheet_needs_nothing_from_elsewhere() {
        for theme in [Theme::dark(), Theme::light()] {
            let css = sheet(&theme);
            assert!(!css.contains("url(") && !css.contains("@import") && !css.contains('<'), "{css}");
            assert!(css.contains(".t-accent{color:#"), "{css}");
        }
    }
}
