//! Extensions take part in sessions.

mod acceptance;
mod actions;
mod boundaries;
mod composition;
mod faults;
mod lifecycle;
mod provider;
mod stdio;
mod support;
