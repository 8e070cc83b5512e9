//! Extensions take part in sessions.

mod acceptance;
mod support;
