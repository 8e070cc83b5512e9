//! The command line of `pi`.

pub mod arguments;
mod extensions;
pub mod flags;
pub mod help;
pub mod initial_message;
pub mod list_models;
mod model_choice;
mod one_shot;
mod output;
mod resources;
mod run;
pub mod session_choice;
mod session_maker;
mod sessions;
mod signals;
pub mod stdin;

pub use run::main;
