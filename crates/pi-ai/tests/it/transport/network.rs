//! The way to the server: proxies, certificates, and no way at all.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use pi_ai::{
    ErrorKind, StreamOptions,
    models::Models,
    options::{Limit, Timeouts},
    transport::Transport,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::{Answer, Setup, chat, finish, models_with, provider, question};

/// A port that nobody listens on.
fn dead_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

async fn ask(models: &Models) -> Answer {
    let model = models.find("local", "m").unwrap();
    finish(models.ask(&model, question(), StreamOptions::default())).await
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_every_cause() {
    let address = dead_port();
    let (models, _) = models_with([], &format!("http://user:sk-secret@{address}/v1?key=sk-secret"));
    let answer = ask(&models).await;
    let said = answer.said();
    assert_eq!(answer.error().kind(), ErrorKind::Network);
    assert!(said.contains(&format!("http://{address}")) && said.contains("onnection refused"), "{said}");
    assert!(!said.contains("sk-secret") && !format!("{:?}", answer.error()).contains("sk-secret"), "{said}");
    assert!(pi_ai::recovery::is_retryable_assistant_error(&answer.message), "{said}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_told() {
    let (models, _) = models_with([], "http://no-such-host.invalid/v1");
    let answer = ask(&models).await;
    assert!(answer.said().contains("no-such-host.invalid could not be reached"), "{}", answer.said());
}

#[tokio::test]
async fn a_proxy_is_used_and_exceptions_go_around_it() {
    let setup = Setup::new(chat().otherwise("direct"));
    let base_url = setup.server.base_url();
    let dead = format!("http://user:sk-secret@{}", dead_port());
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let (models, _) = models_with([(name, &dead)], &base_url);
        let answer = ask(&models).await;
        let said = answer.said();
        assert!(said.contains("went through the proxy http://127.0.0.1") && said.contains("NO_PROXY"), "{said}");
        assert!(!said.contains("sk-secret"), "{said}");
        for without in ["127.0.0.1", "localhost", "*", "127.0.0.0/8"] {
            let (models, _) = models_with([(name, &dead), ("no_proxy", without)], &base_url);
            assert_eq!(ask(&models).await.message.text(), "direct", "{without}");
        }
    }
    let (models, _) = models_with([("HTTPS_PROXY", &dead)], &base_url);
    assert_eq!(ask(&models).await.message.text(), "direct", "a proxy for another scheme");
    let (models, _) = models_with([("HTTPS_PROXY", "ftp://x")], &base_url);
    assert!(ask(&models).await.said().contains("HTTPS_PROXY"));
}

#[tokio::test]
async fn a_request_goes_through_the_proxy_with_its_credentials() {
    // The server plays the proxy: it gets the whole URL as target.
    let setup = Setup::new(chat().otherwise_with(|_| fake_llm::Reply::from("via proxy")));
    let proxy = format!("http://user:pass@{}", setup.server.address());
    let (models, _) = models_with([("HTTP_PROXY", &proxy)], "http://models.example.com/v1");
    ask(&models).await;
    setup.server.take_violations();
    let request = setup.server.request(0).await;
    assert_eq!(request.target(), "http://models.example.com/v1/chat/completions");
    assert_eq!(request.header("proxy-authorization"), Some("Basic dXNlcjpwYXNz"));
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_given_up() {
    // Packets to this network go nowhere.
    let (models, model) = models_with([], "http://192.0.2.1:81/v1");
    let timeouts = Timeouts { connect: Limit::After(Duration::from_millis(100)), ..Timeouts::default() };
    let answer = finish(models.ask(&model, question(), StreamOptions { timeouts, ..StreamOptions::default() })).await;
    // Some networks refuse at once.
    assert!(answer.error().kind().is_transient() && answer.said().contains("http://192.0.2.1:81"), "{}", answer.said());
}

fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

/// A server that answers each connection over TLS with one completion, with a certificate of an authority that nobody
/// knows.
fn tls_server() -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(tls_file("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let config = config.clone();
            thread::spawn(move || serve_one(socket.unwrap(), config));
        }
    });
    address
}

/// A client that hangs up is no concern of the server.
fn serve_one(socket: TcpStream, config: Arc<rustls::ServerConfig>) -> Option<()> {
    let connection = rustls::ServerConnection::new(config).ok()?;
    let mut stream = rustls::StreamOwned::new(connection, socket);
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let event = r#"{"choices":[{"index":0,"delta":{"content":"secret"},"finish_reason":"stop"}]}"#;
    let body = format!("data: {event}\n\ndata: [DONE]\n\n");
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok()?;
    stream.flush().ok()
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_with_the_cause_and_a_hint() {
    let (models, _) = models_with([], &format!("https://{}/v1", tls_server()));
    let answer = ask(&models).await;
    let said = answer.said();
    assert!(said.contains("UnknownIssuer") && said.contains("SSL_CERT_FILE"), "{said}");
    assert!(!answer.error().kind().is_transient(), "it is the same the next time");
    let mut depth = 0;
    let mut source = std::error::Error::source(answer.error());
    while let Some(error) = source {
        depth += 1;
        source = error.source();
    }
    assert!(depth >= 2, "the whole chain is kept: {depth}");
}

#[tokio::test]
async fn an_authority_that_is_named_is_trusted() {
    let base_url = format!("https://{}/v1", tls_server());
    let file = tls_file("ca.pem");
    for name in ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
        let (models, _) = models_with([(name, file.to_str().unwrap())], &base_url);
        assert_eq!(ask(&models).await.message.text(), "secret");
    }
    let transport = Transport::builder().root_file(&file).build();
    let models = Models::builder().transport(transport).provider(provider(&base_url)).build();
    assert_eq!(ask(&models).await.message.text(), "secret");
}

#[tokio::test]
async fn a_file_of_authorities_that_cannot_be_used_is_named_only_when_it_is_needed() {
    let setup = Setup::new(chat().otherwise("plain"));
    for file in ["/nowhere/ca.pem", tls_file("server.key").to_str().unwrap()] {
        let (models, _) = models_with([("SSL_CERT_FILE", file)], "https://127.0.0.1:9/v1");
        let answer = ask(&models).await;
        assert!(answer.said().contains(file), "{}", answer.said());
        let (models, _) = models_with([("SSL_CERT_FILE", file)], &setup.server.base_url());
        assert_eq!(ask(&models).await.message.text(), "plain");
    }
}

#[tokio::test]
async fn the_systems_authorities_are_trusted_beside_the_built_in_ones_when_asked_for() {
    let (models, _) = models_with([("NODE_USE_SYSTEM_CA", "1")], &format!("https://{}/v1", tls_server()));
    assert!(ask(&models).await.said().contains("UnknownIssuer"));
}

#[tokio::test]
async fn a_client_of_ones_own_is_used_as_it_is() {
    let setup = Setup::new(chat().otherwise("hello"));
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        )
        .default_headers([(reqwest::header::ORIGIN, "mine".parse().unwrap())].into_iter().collect())
        .build()
        .unwrap();
    let models = Models::builder()
        .transport(Transport::with_client(client))
        .provider(provider(&setup.server.base_url()))
        .build();
    assert_eq!(ask(&models).await.message.text(), "hello");
    assert_eq!(setup.server.request(0).await.header("origin"), Some("mine"));
}
