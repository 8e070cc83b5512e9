//! Draws a screen as SVG.

use std::fmt::Write as _;

use super::screen::{Line, Span, Weight};

const CHARACTER_WIDTH: f64 = 8.4;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 18;
const TITLE_HEIGHT: usize = 36;

/// The sixteen terminal colours on a dark ground.
const COLORS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#6e7681", "#ffa198",
    "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];
const GROUND: &str = "#0d1117";
const FRAME: &str = "#30363d";
const TEXT: &str = "#e6edf3";
const DIM: &str = "#8b949e";

/// A window with these lines in it.
pub(crate) fn draw(lines: &[Line], columns: usize) -> String {
    let width = (columns as f64 * CHARACTER_WIDTH).ceil() as usize + 2 * MARGIN;
    let height = TITLE_HEIGHT + lines.len() * LINE_HEIGHT + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"A terminal in which pi answers a question\">\n\
         <style>text {{ font: 14px ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace; \
         white-space: pre; fill: {TEXT} }}</style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{GROUND}\" stroke=\"{FRAME}\"/>\n",
        width - 1,
        height - 1,
    );
    for (index, color) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(svg, "<circle cx=\"{}\" cy=\"18\" r=\"6\" fill=\"{color}\"/>", MARGIN + 4 + index * 20);
    }
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.spans.is_empty()) {
        let y = TITLE_HEIGHT + index * LINE_HEIGHT + 14;
        let spans: String = line.spans.iter().map(span).collect();
        let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{spans}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

fn span(span: &Span) -> String {
    let text = escaped(&span.text);
    let weight = if span.style.weight == Weight::Bold { " font-weight=\"bold\"" } else { "" };
    let color = match (span.style.color, span.style.weight) {
        (Some(color), _) => COLORS.get(usize::from(color)).copied(),
        (None, Weight::Dim) => Some(DIM),
        (None, _) => None,
    };
    match color {
        Some(color) => format!("<tspan fill=\"{color}\"{weight}>{text}</tspan>"),
        None if weight.is_empty() => text,
        None => format!("<tspan{weight}>{text}</tspan>"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::screen;
    use super::*;

    #[test]
    fn what_the_program_wrote_cannot_break_the_picture() {
        let svg = draw(&screen::lines("a < b & \x1b[31m</svg>\x1b[0m", 40), 40);
        assert!(svg.contains("a &lt; b &amp; <tspan fill=\"#ff7b72\">&lt;/svg&gt;</tspan></text>"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn the_window_is_as_high_as_its_lines() {
        let heights = ["a", "a\nb\nc"].map(|text| draw(&screen::lines(text, 10), 10));
        assert!(heights[0].contains("height=\"74\""), "{}", heights[0]);
        assert!(heights[1].contains("height=\"114\""), "{}", heights[1]);
    }
}
