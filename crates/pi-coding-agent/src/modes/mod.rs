//! Consumers of a session's events: what a person or a program gets to see.

pub mod json;
pub mod jsonl;
pub mod print;
