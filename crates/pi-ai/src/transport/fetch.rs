//! Small requests beside those to models: for tokens and the credentials of roles.

use std::time::Duration;

use reqwest::{Method, Request, Url, header::HeaderMap};

use super::{Transport, failure::Target};
use crate::error::{ErrorKind, ProviderError};

/// How long such a request may take altogether.
const LIMIT: Duration = Duration::from_secs(15);

/// The most that is read of an answer.
const MOST_BYTES: usize = 256 * 1024;

/// A small request. Its headers may hold what must not be logged.
pub(crate) struct Fetch {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<String>,
}

impl Transport {
    /// Sends a small request, over the same clients and proxies as all others, and gives the body of a good answer.
    pub(crate) async fn fetch(&self, fetch: Fetch) -> Result<Vec<u8>, ProviderError> {
        let url = Url::parse(&fetch.url).map_err(|error| {
            ProviderError::new(ErrorKind::Auth, format!("The address of a credential service is no URL: {error}."))
        })?;
        let target = Target::new(&url, self.shared.clients.proxy_for(&url));
        let client = self.shared.clients.get(&url, Some(LIMIT)).await?;
        let mut request = Request::new(fetch.method, url);
        *request.headers_mut() = fetch.headers;
        *request.body_mut() = fetch.body.map(Into::into);
        let answer = async {
            let mut response = client.execute(request).await.map_err(|error| target.unreachable(error, Some(LIMIT)))?;
            let status = response.status();
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await.map_err(|error| target.broken(error))? {
                body.extend_from_slice(&piece[..piece.len().min(MOST_BYTES - body.len())]);
            }
            Ok::<_, ProviderError>((status, body))
        };
        let (status, body) = tokio::time::timeout(LIMIT, answer).await.map_err(|_| {
            ProviderError::new(ErrorKind::Timeout, format!("{} gave no credentials within 15 s.", target.origin))
        })??;
        match status.is_success() {
            true => Ok(body),
            false => {
                let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
                let message = format!("{} gave no credentials (status {status}): {said}", target.origin);
                Err(ProviderError::new(ErrorKind::Auth, message))
            }
        }
    }
}
