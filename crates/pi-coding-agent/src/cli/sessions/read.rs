//! The commands that only read.

use serde::Serialize;

use super::{Failure, Place, blocking, words};
use crate::{
    compaction::{ContextUsage, context_usage},
    sdk,
    session::{EntryId, ListOptions, SessionError, SessionFacts, SessionManager, SessionStats, commands, write_time},
};

impl Place {
    pub(super) async fn list(&self, request: &words::Request) -> Result<u8, Failure> {
        let mut sessions = self.sessions(request.has(&words::ALL)).await?;
        sessions.truncate(request.limit()?.unwrap_or(usize::MAX));
        if request.has(&words::JSON) {
            for session in &sessions {
                self.write_json(&Listed::of(session))?;
            }
        } else {
            self.show_text(&commands::list_text(&sessions, self.environment.clock.now()));
        }
        Ok(0)
    }

    #[cfg(feature = "search")]
    async fn sessions(&self, everywhere: bool) -> Result<Vec<SessionFacts>, SessionError> {
        let options = ListOptions::default();
        match everywhere {
            true => crate::session::indexed_sessions(self.folder.everywhere(), options, &self.environment).await,
            false => self.folder.indexed_sessions(options, &self.environment).await,
        }
    }

    #[cfg(not(feature = "search"))]
    async fn sessions(&self, everywhere: bool) -> Result<Vec<SessionFacts>, SessionError> {
        let options = ListOptions::default();
        match everywhere {
            true => crate::session::all_sessions(self.folder.everywhere(), options, &self.environment).await,
            false => self.folder.sessions(options, &self.environment).await,
        }
    }

    #[cfg(feature = "search")]
    pub(super) async fn search(&self, request: &words::Request) -> Result<u8, Failure> {
        /// As many as a person looks through.
        const USUAL_LIMIT: usize = 20;
        let (query, limit) = (request.words.join(" "), request.limit()?.unwrap_or(USUAL_LIMIT));
        let (options, environment) = (ListOptions::default(), &self.environment);
        let hits = match request.has(&words::ALL) {
            true => {
                let folder = self.folder.everywhere();
                crate::session::search_sessions(folder, &query, limit, options, environment).await?
            }
            false => self.folder.search(&query, limit, options, environment).await?,
        };
        if request.has(&words::JSON) {
            for hit in &hits {
                let excerpt = Some(&*hit.excerpt);
                self.write_json(&Listed { excerpt, ..Listed::of(&hit.session) })?;
            }
        } else {
            self.show_text(&commands::hits_text(&hits, self.environment.clock.now()));
        }
        Ok(0)
    }

    #[cfg(not(feature = "search"))]
    pub(super) async fn search(&self, _request: &words::Request) -> Result<u8, Failure> {
        Err("this pi was built without the feature `search`, so sessions cannot be searched; \
             `pi sessions list` lists them"
            .into())
    }

    pub(super) async fn show(&self, request: &words::Request) -> Result<u8, Failure> {
        let path = self.file(request.words.first()).await?;
        let session = self.open(&path).await?;
        go_to(&session, request).await?;
        let is_full = request.has(&words::FULL);
        let text = blocking(move || {
            session.with(|session| if is_full { session.to_markdown() } else { commands::outline_text(session) })
        });
        let text = text.await??;
        if !is_full {
            self.show_text(&format!("{}\n", path.display()));
        }
        self.show_text(&text);
        Ok(0)
    }

    pub(super) async fn stats(&self, request: &words::Request) -> Result<u8, Failure> {
        let path = self.file(request.words.first()).await?;
        let session = self.open(&path).await?;
        let context = self.context_usage(&session);
        let reading = session.clone();
        let stats = blocking(move || reading.with(|session| session.stats())).await??;
        if request.has(&words::JSON) {
            let totals =
                Totals { path: path.to_string_lossy().into_owned(), id: session.id().to_string(), stats, context };
            self.write_json(&totals)?;
        } else {
            self.show_text(&format!("{}\n{}", path.display(), commands::stats_text(&stats)));
            if let Some(ContextUsage { tokens, context_window, percent }) = context {
                let tokens = tokens.map_or_else(|| "not known".to_owned(), |tokens| tokens.to_string());
                let percent = percent.map(|percent| format!(" ({percent:.0} %)")).unwrap_or_default();
                self.show_text(&format!("{:<18}{tokens:>14} of {context_window}{percent}\n", "context"));
            }
        }
        Ok(0)
    }

    /// How full the context is, when the session's model is one that we know.
    fn context_usage(&self, session: &SessionManager) -> Option<ContextUsage> {
        let choice = session.context().model?;
        let model = sdk::models_of(&self.host).find(&choice.provider, &choice.model_id)?;
        session.with(|session| context_usage(session.projection(), model.context_window))
    }
}

/// Makes the session end where `--at` says.
pub(super) async fn go_to(session: &SessionManager, request: &words::Request) -> Result<(), SessionError> {
    match request.value(&words::AT) {
        Some(entry) => session.branch(&EntryId::from(entry)).await,
        None => Ok(()),
    }
}

/// A session in a list for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    path: std::borrow::Cow<'a, str>,
    id: &'a str,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    modified: String,
    message_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excerpt: Option<&'a str>,
}

impl<'a> Listed<'a> {
    fn of(session: &'a SessionFacts) -> Self {
        Self {
            path: session.path.to_string_lossy(),
            id: &session.id,
            cwd: &session.cwd,
            name: session.name.as_deref(),
            parent_session_path: session.parent_session.as_deref(),
            created: session.created.map(write_time),
            modified: write_time(session.modified),
            message_count: session.messages,
            first_message: session.first_message.as_deref(),
            excerpt: None,
        }
    }
}

/// Totals for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    path: String,
    id: String,
    #[serde(flatten)]
    stats: SessionStats,
    #[serde(rename = "contextUsage", skip_serializing_if = "Option::is_none")]
    context: Option<ContextUsage>,
}
