//! What extensions show the user while prompts are answered one after another: notices, and nothing to answer.

use async_trait::async_trait;
use pi_ai::CancellationToken;

use super::output::say;
use crate::extensions::{ExtensionUi, Mode, NoticeLevel, UiAnswer, UiQuestion, UiUpdate};

/// Notices go to standard error, so that the answer stays what standard output has.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneShotUi(pub(super) Mode);

#[async_trait]
impl ExtensionUi for OneShotUi {
    async fn ask(&self, _question: UiQuestion, _signal: CancellationToken) -> Option<UiAnswer> {
        None
    }

    fn show(&self, update: UiUpdate) {
        if let UiUpdate::Notify { message, level } = update {
            match level {
                NoticeLevel::Info => say(&message),
                NoticeLevel::Warning => say(&format!("Warning: {message}")),
                NoticeLevel::Error => say(&format!("Error: {message}")),
            }
        }
    }

    fn has_user(&self) -> bool {
        false
    }

    fn mode(&self) -> Mode {
        self.0
    }
}
