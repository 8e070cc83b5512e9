//! The one way to a server: HTTP with timeouts, retry and streaming.

mod host;

pub(crate) use host::is_local_host;
