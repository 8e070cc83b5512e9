//! Print mode: one answer on standard output, and an exit code that says how it went.

use pi_ai::{AssistantBlock, AssistantMessage, Message, StopReason};

/// What a finished run prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// For standard output: each text block with a line break behind it.
    pub stdout: String,
    /// For standard error.
    pub stderr: Option<String>,
    /// For the shell.
    pub exit: Exit,
}

/// How a run ended, for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0.
    Success,
    /// 1.
    Failure,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
        }
    }
}

/// Decides what to print from the last message of the transcript. Only an assistant's message has something to say;
/// text that came before a failure is printed too.
pub fn printed(last: Option<&Message>) -> Printed {
    let Some(Message::Assistant(answer)) = last else {
        return Printed { stdout: String::new(), stderr: None, exit: Exit::Success };
    };
    let mut stdout = String::new();
    for text in answer.content.iter().filter_map(AssistantBlock::as_text) {
        stdout.push_str(text);
        stdout.push('\n');
    }
    let (stderr, exit) = match answer.stop_reason {
        StopReason::Error | StopReason::Aborted => (Some(failure(answer)), Exit::Failure),
        StopReason::Length => {
            let warning = "Warning: the answer was cut off at the model's token limit.";
            (Some(warning.to_owned()), Exit::Failure)
        }
        _ => (None, Exit::Success),
    };
    Printed { stdout, stderr, exit }
}

fn failure(answer: &AssistantMessage) -> String {
    match &answer.error_message {
        Some(message) => message.clone(),
        None => format!("The request to {}/{} failed without a message.", answer.provider, answer.model),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, stop_reason: StopReason, error: Option<&str>) -> Message {
        AssistantMessage {
            content: vec![AssistantBlock::thinking("hm"), AssistantBlock::text(text)],
            stop_reason,
            error_message: error.map(str::to_owned),
            ..AssistantMessage::default()
        }
        .into()
    }

    #[test]
    fn an_answer_is_printed_without_its_reasoning() {
        let printed = printed(Some(&answer("hello", StopReason::Stop, None)));
        assert_eq!((printed.stdout.as_str(), printed.stderr, printed.exit.code()), ("hello\n", None, 0));
    }

    #[test]
    fn a_failure_keeps_the_partial_text_and_fails_the_command() {
        let printed = printed(Some(&answer("part", StopReason::Error, Some("HTTP 500"))));
        assert_eq!(printed.stdout, "part\n");
        assert_eq!((printed.stderr.as_deref(), printed.exit.code()), (Some("HTTP 500"), 1));
    }

    #[test]
    fn a_cut_off_answer_is_printed_with_a_warning() {
        let printed = printed(Some(&answer("part", StopReason::Length, None)));
        assert_eq!((printed.stdout.as_str(), printed.exit.code()), ("part\n", 1));
        assert!(printed.stderr.is_some());
    }

    #[test]
    fn a_transcript_that_ends_with_a_question_prints_nothing() {
        assert_eq!(printed(Some(&Message::user("hi"))).stdout, "");
        assert_eq!(printed(None).exit.code(), 0);
    }
}
