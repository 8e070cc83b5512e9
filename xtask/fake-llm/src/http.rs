//! Reads HTTP/1.1 requests from a connection.

use std::io;
use std::time::Instant;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::request::Head;

/// The longest head that is read.
const HEAD_LIMIT: usize = 1 << 20;

/// A connection with what has been read of it and not been used.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

/// A request as it was read.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) first_byte_at: Instant,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// The next request; `None` when the client closed the connection between two requests.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<RawRequest>> {
        if self.unread.is_empty() && self.fill().await? == 0 {
            return Ok(None);
        }
        let first_byte_at = Instant::now();
        let head = self.read_until(b"\r\n\r\n").await?;
        let head = parse_head(&head)?;
        if head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = self.read_body(&head).await?;
        Ok(Some(RawRequest { head, body, first_byte_at }))
    }

    /// Returns when the client has closed or reset the connection.
    pub(crate) async fn client_left(&mut self) {
        while self.fill().await.is_ok_and(|read| read > 0) {}
    }

    async fn read_body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        let chunked =
            head.header("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        if !chunked {
            let length = match head.header("content-length") {
                Some(value) => value.parse().map_err(|_| broken("content-length is not a number"))?,
                None => 0,
            };
            return self.read_exactly(length).await;
        }
        let mut body = Vec::new();
        loop {
            let line = self.read_until(b"\r\n").await?;
            let line = String::from_utf8_lossy(&line);
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| broken("a chunk without a size"))?;
            if size == 0 {
                while !self.read_until(b"\r\n").await?.is_empty() {}
                return Ok(body);
            }
            body.extend(self.read_exactly(size).await?);
            if !self.read_until(b"\r\n").await?.is_empty() {
                return Err(broken("a chunk longer than its size"));
            }
        }
    }

    /// The bytes before `end`, which is taken too.
    async fn read_until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memmem::find(&self.unread[searched..], end) {
                let mut taken = self.take(searched + at + end.len());
                taken.truncate(searched + at);
                return Ok(taken);
            }
            if self.unread.len() > HEAD_LIMIT {
                return Err(broken("a head of more than 1 MiB"));
            }
            searched = self.unread.len().saturating_sub(end.len() - 1);
            self.fill_or_fail().await?;
        }
    }

    async fn read_exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < length {
            self.fill_or_fail().await?;
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.unread.split_off(length);
        std::mem::replace(&mut self.unread, rest)
    }

    async fn fill_or_fail(&mut self) -> io::Result<()> {
        match self.fill().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Reads what is there; 0 when the client has closed.
    async fn fill(&mut self) -> io::Result<usize> {
        self.unread.reserve(64 * 1024);
        self.stream.read_buf(&mut self.unread).await
    }
}

fn parse_head(head: &[u8]) -> io::Result<Head> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let mut start = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) = (start.next(), start.next(), start.next(), start.next())
    else {
        return Err(broken("not an HTTP/1.1 request line"));
    };
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| broken("a header without a colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Head { method: method.to_owned(), target: target.to_owned(), headers })
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
