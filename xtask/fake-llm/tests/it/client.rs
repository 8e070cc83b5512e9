//! A blocking HTTP client that shows every chunk as it came.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fake_llm::Server;
use serde_json::{Value, json};

/// A connection to a server.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// What came back.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) chunks: Vec<String>,
    /// How the body ended: `Ok` when in order.
    pub(crate) end: io::Result<()>,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        self.chunks.concat()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub(crate) fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send(path, &body.to_string());
        self.receive()
    }

    pub(crate) fn send(&mut self, path: &str, body: &str) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             anthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all((head + body).as_bytes()).unwrap();
    }

    pub(crate) fn receive(&mut self) -> Response {
        let start = self.line().unwrap();
        let status = start.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().unwrap();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut response = Response { status, headers, chunks: Vec::new(), end: Ok(()) };
        response.end = self.body(&mut response);
        response
    }

    fn body(&mut self, response: &mut Response) -> io::Result<()> {
        if let Some(length) = response.header("content-length") {
            let mut body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body)?;
            response.chunks.push(String::from_utf8(body).unwrap());
            return Ok(());
        }
        if response.header("transfer-encoding").is_none() {
            let mut body = String::new();
            self.stream.read_to_string(&mut body)?;
            response.chunks.push(body);
            return Ok(());
        }
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(());
            }
            chunk.truncate(size);
            response.chunks.push(String::from_utf8_lossy(&chunk).into_owned());
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// A request of one user message on the OpenAI wire.
pub(crate) fn chat(text: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
}

/// A request of one user message on the Anthropic wire.
pub(crate) fn message(text: &str) -> Value {
    json!({"model": "m", "stream": true, "max_tokens": 10, "messages": [{"role": "user", "content": text}]})
}
