//! What a theme colours.

/// Whether a token colours characters or what is behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Characters.
    Foreground,
    /// What is behind them.
    Background,
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $slot:ident $(, falls back to $fallback:ident)?;)+) => {
        /// Something that a theme colours.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ThemeToken { $($(#[$doc])* $variant),+ }

        impl ThemeToken {
            /// Every token, in the order of theme files.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The token's name in theme files.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The token of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }

            /// What it colours.
            pub const fn slot(self) -> Slot {
                match self { $(Self::$variant => Slot::$slot),+ }
            }

            /// The token whose colour it takes when a theme leaves it out. `None`: a theme must have it.
            pub const fn fallback(self) -> Option<Self> {
                match self { $($(Self::$variant => Some(Self::$fallback),)?)+ _ => None }
            }
        }
    };
}

tokens! {
    /// The main accent.
    Accent = "accent", Foreground;
    /// Usual borders.
    Border = "border", Foreground;
    /// Borders that stand out.
    BorderAccent = "borderAccent", Foreground;
    /// Borders that stay back.
    BorderMuted = "borderMuted", Foreground;
    /// Success.
    Success = "success", Foreground;
    /// Errors.
    Error = "error", Foreground;
    /// Warnings.
    Warning = "warning", Foreground;
    /// Text of less weight.
    Muted = "muted", Foreground;
    /// Text of the least weight.
    Dim = "dim", Foreground;
    /// Usual text.
    Text = "text", Foreground;
    /// Reasoning.
    ThinkingText = "thinkingText", Foreground;
    /// The scroll bar's track.
    ScrollbarTrack = "scrollbarTrack", Foreground, falls back to Muted;
    /// The scroll bar's thumb.
    ScrollbarThumb = "scrollbarThumb", Foreground, falls back to Text;
    /// Behind what is selected.
    SelectedBg = "selectedBg", Background;
    /// Behind what a search found.
    SearchMatchBg = "searchMatchBg", Background, falls back to SelectedBg;
    /// What a search found.
    SearchMatchText = "searchMatchText", Foreground, falls back to Text;
    /// Behind a person's message.
    UserMessageBg = "userMessageBg", Background;
    /// A person's message.
    UserMessageText = "userMessageText", Foreground;
    /// Behind an extension's message.
    CustomMessageBg = "customMessageBg", Background;
    /// An extension's message.
    CustomMessageText = "customMessageText", Foreground;
    /// The label of an extension's message.
    CustomMessageLabel = "customMessageLabel", Foreground;
    /// Behind a tool call that runs.
    ToolPendingBg = "toolPendingBg", Background;
    /// Behind a tool call that succeeded.
    ToolSuccessBg = "toolSuccessBg", Background;
    /// Behind a tool call that failed.
    ToolErrorBg = "toolErrorBg", Background;
    /// A tool call's title.
    ToolTitle = "toolTitle", Foreground;
    /// What a tool gave back.
    ToolOutput = "toolOutput", Foreground;
    /// Headings.
    MdHeading = "mdHeading", Foreground;
    /// Links.
    MdLink = "mdLink", Foreground;
    /// Where links lead.
    MdLinkUrl = "mdLinkUrl", Foreground;
    /// Code within a line.
    MdCode = "mdCode", Foreground;
    /// Code blocks.
    MdCodeBlock = "mdCodeBlock", Foreground;
    /// Borders of code blocks.
    MdCodeBlockBorder = "mdCodeBlockBorder", Foreground;
    /// Quotes.
    MdQuote = "mdQuote", Foreground;
    /// Borders of quotes.
    MdQuoteBorder = "mdQuoteBorder", Foreground;
    /// Rules.
    MdHr = "mdHr", Foreground;
    /// Bullets.
    MdListBullet = "mdListBullet", Foreground;
    /// Lines that a change adds.
    ToolDiffAdded = "toolDiffAdded", Foreground;
    /// Lines that a change removes.
    ToolDiffRemoved = "toolDiffRemoved", Foreground;
    /// Lines around a change.
    ToolDiffContext = "toolDiffContext", Foreground;
    /// Comments.
    SyntaxComment = "syntaxComment", Foreground;
    /// Keywords.
    SyntaxKeyword = "syntaxKeyword", Foreground;
    /// Functions.
    SyntaxFunction = "syntaxFunction", Foreground;
    /// Variables.
    SyntaxVariable = "syntaxVariable", Foreground;
    /// Strings.
    SyntaxString = "syntaxString", Foreground;
    /// Numbers.
    SyntaxNumber = "syntaxNumber", Foreground;
    /// Types.
    SyntaxType = "syntaxType", Foreground;
    /// Operators.
    SyntaxOperator = "syntaxOperator", Foreground;
    /// Punctuation.
    SyntaxPunctuation = "syntaxPunctuation", Foreground;
    /// The editor's border without thinking.
    ThinkingOff = "thinkingOff", Foreground;
    /// The editor's border at level minimal.
    ThinkingMinimal = "thinkingMinimal", Foreground;
    /// The editor's border at level low.
    ThinkingLow = "thinkingLow", Foreground;
    /// The editor's border at level medium.
    ThinkingMedium = "thinkingMedium", Foreground;
    /// The editor's border at level high.
    ThinkingHigh = "thinkingHigh", Foreground;
    /// The editor's border at level xhigh.
    ThinkingXhigh = "thinkingXhigh", Foreground;
    /// The editor's border at level max.
    ThinkingMax = "thinkingMax", Foreground, falls back to ThinkingXhigh;
    /// The editor's border while a command is typed.
    BashMode = "bashMode", Foreground;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_six_tokens_of_which_five_may_be_left_out() {
        assert_eq!(ThemeToken::ALL.len(), 56);
        let optional: Vec<_> = ThemeToken::ALL.iter().filter(|token| token.fallback().is_some()).collect();
        assert_eq!(optional.len(), 5);
        for token in ThemeToken::ALL {
            assert_eq!(ThemeToken::from_name(token.as_str()), Some(*token));
            assert!(token.fallback().is_none_or(|other| other.slot() == token.slot() && other.fallback().is_none()));
        }
    }
}
