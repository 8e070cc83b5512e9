//! Explains a file: `cargo run -p example-code-explainer -- FILE [MODEL]`.
//!
//! It uses the keys of the environment (and of pi's own files); without a model named, the preferred one that has a
//! key.

use std::{error::Error, process::ExitCode};

use example_code_explainer::{Explanation, TIME_LIMIT, explain, explainer};
use pi_ai::models::{ModelChoice, Models};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which file? Usage: example-code-explainer FILE [MODEL]")?;
    let code = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let models = Models::from_env();
    let model = match arguments.next() {
        Some(model) => models.select(&ModelChoice { model, ..ModelChoice::default() }).await?.model,
        None => models.default_model().await?.ok_or("no model can be used: set the key of a provider")?,
    };
    let agent = explainer(models, model);
    match explain(&agent, &code, TIME_LIMIT).await? {
        Explanation::Complete(text) => println!("{text}"),
        Explanation::CutShort(text) => {
            println!("{text} …");
            eprintln!("(the time was over after {} seconds)", TIME_LIMIT.as_secs());
        }
    }
    Ok(())
}
