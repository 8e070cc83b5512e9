//! The floor of the start-up bench: posts a file to a URL with tokio and reqwest and prints the answer, nothing else.
//!
//! `bare_post URL FILE`

use std::error::Error;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bare_post URL FILE".into());
    };
    let body = std::fs::read(file)?;
    let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls).build()?;
    let request = client.post(url).header("content-type", "application/json").body(body);
    let answer = request.send().await?.error_for_status()?.text().await?;
    print!("{answer}");
    Ok(())
}
