//! One request to a provider, from its encoding to its answer, but for the I/O.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    BodyReader, Concession, Concessions, EncodeRequest, HttpRequest, Wire, headers::has_image, phrases, retry,
};
use crate::{
    context::TranscriptContext,
    error::ProviderError,
    model::{InputKind, Model},
    options::{Headers, StreamOptions},
    stream::MessageBuilder,
    time::Timestamp,
};

/// What is sent again, and with what given up, is decided here, so that every transport decides alike: the built-in
/// one, a test, a program's own.
///
/// [Encode](Self::encode), let hooks change the request, [prepare](Self::prepare), send it. When it fails, ask
/// [what next](Self::failed); when the provider answers, [begin](Self::begin) and read the body.
pub struct Exchange {
    wire: Arc<dyn Wire>,
    model: Arc<Model>,
    context: TranscriptContext,
    options: StreamOptions,
    concessions: Concessions,
    diagnostics: Vec<Diagnostic>,
    repetitions: u32,
}

struct Diagnostic {
    concession: Concession,
    message: String,
    status: Option<u16>,
}

/// What to do after a failed attempt.
#[derive(Clone, Debug)]
pub enum Next {
    /// Encode again: something is given up.
    EncodeAgain,
    /// Wait so long and send the same again.
    SendAgainAfter(Duration),
    /// Give up with this.
    Fail(ProviderError),
}

impl Exchange {
    /// A request that was not sent yet.
    pub fn new(wire: Arc<dyn Wire>, model: Arc<Model>, context: TranscriptContext, options: StreamOptions) -> Self {
        let concessions = wire.concessions(&model, &options);
        Self { wire, model, context, options, concessions, diagnostics: Vec::new(), repetitions: 0 }
    }

    fn request(&self) -> EncodeRequest<'_> {
        let Self { model, context, options, concessions, .. } = self;
        EncodeRequest { model, context, options, concessions }
    }

    /// The request, before hooks.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn encode(&self) -> Result<HttpRequest, ProviderError> {
        self.wire.encode(&self.request())
    }

    /// The request as it is sent, after hooks.
    pub fn prepare(&self, http: HttpRequest) -> HttpRequest {
        self.wire.prepare(&self.request(), http)
    }

    /// Headers that go with one attempt only.
    ///
    /// # Errors
    /// When the request cannot be signed.
    pub fn sign(&self, http: &HttpRequest, now: Timestamp) -> Result<Headers, ProviderError> {
        self.wire.sign(&self.request(), http, now)
    }

    /// Decides what comes after a failure before the answer began. `chance` in 0..1 spreads retries.
    pub fn failed(&mut self, sent: &HttpRequest, error: &ProviderError, chance: f64) -> Next {
        let concession = self.wire.concede(&self.request(), sent, error).or_else(|| self.concede_images(error));
        if let Some(concession) = concession
            && self.concessions.add(concession.clone())
        {
            if concession == Concession::NoImages {
                // To every encoder, a model that reads text only.
                Arc::make_mut(&mut self.model).input = vec![InputKind::Text];
            }
            let (message, status) = (error.message().to_owned(), error.status());
            self.diagnostics.push(Diagnostic { concession, message, status });
            return Next::EncodeAgain;
        }
        match retry::delay(error, self.repetitions, &self.options.retry, chance) {
            Ok(delay) => {
                self.repetitions += 1;
                Next::SendAgainAfter(delay)
            }
            Err(error) => Next::Fail(error),
        }
    }

    /// A picture that is refused would be refused with every later request: the conversation would be stuck.
    fn concede_images(&self, refusal: &ProviderError) -> Option<Concession> {
        let is_refused = matches!(refusal.status(), Some(400 | 413 | 415 | 422))
            && self.model.reads_images()
            && phrases::says_image_refused(refusal.message());
        (is_refused && self.context.messages().iter().any(has_image)).then_some(Concession::NoImages)
    }

    /// The model that is asked.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// What the caller wants.
    pub fn options(&self) -> &StreamOptions {
        &self.options
    }

    /// How often the request was sent again after a wait.
    pub fn repetitions(&self) -> u32 {
        self.repetitions
    }

    /// The provider began to answer: gives the reader of its body.
    pub fn begin(&self, sent: &HttpRequest, answer: &mut MessageBuilder) -> BodyReader {
        self.diagnose(answer);
        let framing = self.wire.framing();
        if framing.begins_with_status() {
            answer.start();
        }
        BodyReader::new(framing, self.wire.decoder(&self.request(), sent))
    }

    /// Ends the answer with a failure before it began.
    pub fn fail(&self, error: ProviderError, answer: &mut MessageBuilder) {
        self.diagnose(answer);
        answer.fail(error);
    }

    /// What was given up is told with the answer.
    fn diagnose(&self, answer: &mut MessageBuilder) {
        for Diagnostic { concession, message, status } in &self.diagnostics {
            let timestamp: Value = json!(answer.message().timestamp);
            answer.diagnose(json!({
                "type": concession.diagnostic(),
                "timestamp": timestamp,
                "error": { "message": message },
                "details": { "concession": format!("{concession:?}"), "status": status },
            }));
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("model", &self.model.id)
            .field("concessions", &self.concessions)
            .field("repetitions", &self.repetitions)
            .finish_non_exhaustive()
    }
}
