//! Talk about the guide itself.

use super::Rule;
use crate::guide::intent::*;

pub(super) const RULES: &[Rule] = &[
    Rule {
        patterns: &[
            "help",
            "?",
            "what|which * can|could|do you do|help|offer|understand|know|answer *",
            "how do|can|does|should you|i|one work|help|use|ask you|this|it|pi *",
            "who|what are|is you|pi|guide|this *",
            "what are your|the capabilities|abilities|skills|commands|features *",
            "are you a|an|really? *",
            "help|commands|usage *",
        ],
        make: |_, said| (said.tokens.len() <= 10).then_some(Intent::Help),
    },
    Rule {
        patterns: &["there|pi|guide|all|everyone|again"],
        make: |_, said| {
            let greets = ["hi", "hello", "hey"].iter().any(|word| said.text.to_lowercase().starts_with(word));
            greets.then_some(Intent::Greet)
        },
    },
    Rule {
        patterns: &[
            "hello|hi|hey|moin|servus|greetings|howdy|yo there|pi|guide|all|everyone|again?",
            "good morning|evening|afternoon|day *",
        ],
        make: |_, _| Some(Intent::Greet),
    },
    Rule {
        patterns: &[
            "thanks|thank|thx|cheers|bravo *",
            "great|good|nice|perfect|cool|ok|okay|fine|super|excellent|wonderful|awesome job|work|one|answer?",
            "bye|goodbye|ciao|quit|exit *",
        ],
        make: |_, said| (said.tokens.len() <= 6).then_some(Intent::Thanks),
    },
];
