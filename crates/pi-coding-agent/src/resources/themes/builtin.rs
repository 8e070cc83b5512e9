//! The two themes that are always there.

use super::{Appearance, Theme, ThemeColor, ThemeToken};

/// A palette out of which a theme's colours are taken.
struct Palette {
    text: u32,
    soft: u32,
    faint: u32,
    line: u32,
    strong_line: u32,
    accent: u32,
    blue: u32,
    green: u32,
    red: u32,
    yellow: u32,
    cyan: u32,
    person: u32,
    selected: u32,
    found: u32,
    note: u32,
    pending: u32,
    good: u32,
    bad: u32,
    levels: [u32; 7],
}

const DARK: Palette = Palette {
    text: 0xd8dee6,
    soft: 0x9aa5b1,
    faint: 0x6c7783,
    line: 0x5d83a8,
    strong_line: 0xb48ee0,
    accent: 0xb79af0,
    blue: 0x7ab8f0,
    green: 0x8fcf8a,
    red: 0xf08a86,
    yellow: 0xe3c06b,
    cyan: 0x74cfd0,
    person: 0x24313f,
    selected: 0x2c3e50,
    found: 0x4d4318,
    note: 0x35294a,
    pending: 0x2a2f36,
    good: 0x203a2c,
    bad: 0x472a2b,
    levels: [0x59636e, 0x5f7a90, 0x5f93b8, 0x7f95d8, 0xa98ae0, 0xd87fb8, 0xf0806f],
};

const LIGHT: Palette = Palette {
    text: 0x2a3037,
    soft: 0x5c6670,
    faint: 0x86909a,
    line: 0x4f7fb0,
    strong_line: 0x8a55c4,
    accent: 0x7440b8,
    blue: 0x1d62b0,
    green: 0x2b7a34,
    red: 0xb8322f,
    yellow: 0x8c6500,
    cyan: 0x157a80,
    person: 0xe3edf6,
    selected: 0xd5e4f2,
    found: 0xf4e6b0,
    note: 0xeee4f8,
    pending: 0xebeef1,
    good: 0xe0f2e3,
    bad: 0xfae4e2,
    levels: [0xb4bcc4, 0x93aabd, 0x6d9bc4, 0x6a80cc, 0x8a63c8, 0xbd5596, 0xd0543f],
};

pub(super) fn dark() -> Theme {
    from_palette("dark", Appearance::Dark, &DARK)
}

pub(super) fn light() -> Theme {
    from_palette("light", Appearance::Light, &LIGHT)
}

fn from_palette(name: &str, appearance: Appearance, palette: &Palette) -> Theme {
    let color = |token: &ThemeToken| (*token, rgb(color_of(*token, palette)));
    Theme {
        name: name.to_owned(),
        appearance: Some(appearance),
        colors: ThemeToken::ALL.iter().map(color).collect(),
        export: Default::default(),
        source: None,
    }
}

fn rgb(value: u32) -> ThemeColor {
    let [_, red, green, blue] = value.to_be_bytes();
    ThemeColor::Rgb(red, green, blue)
}

fn color_of(token: ThemeToken, p: &Palette) -> u32 {
    use ThemeToken as T;
    match token {
        T::Accent | T::CustomMessageLabel | T::MdCode | T::MdListBullet | T::SyntaxType => p.accent,
        T::Border => p.line,
        T::BorderAccent => p.strong_line,
        T::BorderMuted | T::Dim | T::ScrollbarTrack => p.faint,
        T::Success | T::MdCodeBlock | T::ToolDiffAdded | T::SyntaxString | T::BashMode => p.green,
        T::Error | T::ToolDiffRemoved => p.red,
        T::Warning | T::MdHeading | T::SyntaxFunction => p.yellow,
        T::Text | T::UserMessageText | T::ToolTitle | T::SearchMatchText => p.text,
        T::MdLink | T::SyntaxKeyword => p.blue,
        T::SyntaxVariable | T::SyntaxNumber => p.cyan,
        T::SelectedBg => p.selected,
        T::SearchMatchBg => p.found,
        T::UserMessageBg => p.person,
        T::CustomMessageBg => p.note,
        T::ToolPendingBg => p.pending,
        T::ToolSuccessBg => p.good,
        T::ToolErrorBg => p.bad,
        T::ThinkingOff => p.levels[0],
        T::ThinkingMinimal => p.levels[1],
        T::ThinkingLow => p.levels[2],
        T::ThinkingMedium => p.levels[3],
        T::ThinkingHigh => p.levels[4],
        T::ThinkingXhigh => p.levels[5],
        T::ThinkingMax => p.levels[6],
        T::Muted
        | T::ThinkingText
        | T::ScrollbarThumb
        | T::CustomMessageText
        | T::ToolOutput
        | T::MdLinkUrl
        | T::MdCodeBlockBorder
        | T::MdQuote
        | T::MdQuoteBorder
        | T::MdHr
        | T::ToolDiffContext
        | T::SyntaxComment
        | T::SyntaxOperator
        | T::SyntaxPunctuation => p.soft,
    }
}
