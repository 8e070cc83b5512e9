use std::time::{Duration, Instant};

use fake_llm::{Answer, End, Framing, Outcome, Reply, Script, Server, Wire};

use crate::client::{Client, chat};

const PATH: &str = "/v1/chat/completions";

fn server(reply: impl Into<Reply>) -> Server {
    Server::start(Script::new(Wire::OpenAiCompletions).reply(reply).otherwise("done"))
}

#[test]
fn one_connection_carries_many_requests() {
    let server = server("one");
    let mut client = Client::connect(&server);
    client.post(PATH, &chat("a"));
    client.post(PATH, &chat("b"));
    Client::connect(&server).post(PATH, &chat("c"));
    let seen: Vec<(usize, usize)> =
        server.requests().iter().map(|request| (request.index, request.connection)).collect();
    assert_eq!(seen, [(0, 0), (1, 0), (2, 1)]);
}

#[test]
fn a_stream_can_break_off_with_a_close_or_a_reset() {
    for end in [End::Close, End::Reset] {
        let server = server(Reply::from("Hello").cut_after_events(2).end(end));
        let response = Client::connect(&server).post(PATH, &chat("hi"));
        assert_eq!(response.text().matches("data: ").count(), 2);
        let error = response.end.unwrap_err();
        let reset = error.kind() == std::io::ErrorKind::ConnectionReset;
        assert_eq!(reset, end == End::Reset, "{error}");
    }
}

#[test]
fn a_length_can_promise_more_than_comes() {
    let server = server(Reply::raw(200, "text/plain", "abcdef").framing(Framing::ContentLength).cut_after_bytes(3));
    let response = Client::connect(&server).post(PATH, &chat("hi"));
    assert_eq!(response.header("content-length"), Some("6"));
    assert!(response.end.is_err());
}

#[test]
fn a_body_without_length_lasts_until_the_close() {
    let server = server(Reply::from("Hello").framing(Framing::UntilClose));
    let response = Client::connect(&server).post(PATH, &chat("hi"));
    assert!(response.text().ends_with("[DONE]\n\n"));
}

#[test]
fn the_server_notices_that_the_client_left_an_open_stream() {
    let server = server(Reply::from(Answer::new().text("Hello")).end(End::StayOpen));
    let mut client = Client::connect(&server);
    client.send(PATH, &chat("hi").to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.request(0));
    drop(client);
    assert_eq!(runtime.block_on(server.finished(0)).outcome, Outcome::ClientLeft);
}

#[test]
fn the_first_byte_can_be_late() {
    let pause = Duration::from_millis(30);
    let server = server(Reply::from("Hello").delay(pause));
    let start = Instant::now();
    let response = Client::connect(&server).post(PATH, &chat("hi"));
    assert!(response.end.is_ok());
    assert!(start.elapsed() >= pause);
}

#[test]
fn dropping_the_server_ends_open_streams() {
    let server = server(Reply::from("Hello").end(End::StayOpen));
    let mut client = Client::connect(&server);
    client.send(PATH, &chat("hi").to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.request(0));
    drop(server);
    assert!(client.receive().end.is_err());
}
