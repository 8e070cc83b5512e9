//! Three crates that each build on one layer of pi, side by side, and what each of them pays for.
//!
//! `model/` reads transcripts with `pi-ai`, `agent/` runs an agent with `pi-agent-core`, `product/` reviews a folder
//! with `pi-coding-agent`. Each is a crate that names one of ours in its manifest; the tests hold what comes along with
//! it. This program takes their sources in, so that one command shows all three.

#[path = "../agent/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is public in its own crate")]
mod agent;
#[path = "../model/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is public in its own crate")]
mod model;
#[path = "../product/src/lib.rs"]
#[expect(unreachable_pub, dead_code, reason = "it is public in its own crate, and its errors are only printed here")]
mod product;

use std::{error::Error, process::Command};

use agent::calculate;
use model::describe;
use pi_ai::faux::{FauxProvider, FauxReply};
use pi_coding_agent::{sdk::SessionOptions, session::SessionManager};
use product::review;
use serde_json::json;

const LAYERS: [&str; 3] = ["downstream-on-pi-ai", "downstream-on-pi-agent-core", "downstream-on-pi-coding-agent"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", described()?);
    println!("{}", calculated().await?);
    println!("{}", reviewed().await?);
    for layer in LAYERS {
        println!("{layer} builds {} crates", crates_below(layer)?.len());
    }
    Ok(())
}

fn described() -> Result<String, Box<dyn Error>> {
    let transcript = [
        json!({"role": "system", "content": "Be brief.", "timestamp": 1}),
        json!({"role": "user", "content": "Hello", "timestamp": 2}),
    ];
    Ok(describe(&transcript.map(|line| line.to_string()).join("\n"))?)
}

/// The model is a scripted one, so that the example runs anywhere.
async fn calculated() -> Result<String, Box<dyn Error>> {
    let call = FauxReply::tool_call("add", json!({"numbers": [19, 23]}));
    let model = FauxProvider::new([call, FauxReply::text("42")]);
    Ok(calculate(model, FauxProvider::model(), "What is 19 + 23?").await?)
}

async fn reviewed() -> Result<String, Box<dyn Error>> {
    let answer = json!({"answer": {"summary": "Small and tested.", "files": ["src/main.rs"]}});
    let model = FauxProvider::new([FauxReply::tool_call("final_answer", answer)]);
    let options = SessionOptions::default().stream_fn(model).model(FauxProvider::model());
    let review = review(options.session_manager(SessionManager::in_memory())).await;
    let review = review.map_err(|error| format!("{error:?}"))?;
    Ok(format!("{} Another look: {}", review.summary, review.files.join(", ")))
}

/// Every crate that is built for one of the three, itself and our own included.
fn crates_below(package: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args([
        "tree",
        "--offline",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--package",
        package,
    ]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut crates: Vec<String> = text.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    crates.sort();
    crates.dedup();
    Ok(crates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a layer has of these.
    fn found(layer: &str, among: &[&str]) -> Vec<String> {
        crates_below(layer).unwrap().into_iter().filter(|name| among.contains(&name.as_str())).collect()
    }

    const OURS: [&str; 3] = ["pi-agent-core", "pi-ai", "pi-coding-agent"];
    const NETWORK: [&str; 5] = ["hyper", "reqwest", "rustls", "ring", "h2"];
    /// What only the command line, the screen or a feature needs.
    const EXTRAS: [&str; 8] =
        ["clap", "crossterm", "ratatui", "tracing-subscriber", "rusqlite", "image", "grep-searcher", "landlock"];

    #[test]
    fn the_lowest_layer_has_neither_network_nor_agents_nor_a_runtime_for_processes() {
        let layer = "downstream-on-pi-ai";
        assert_eq!(found(layer, &OURS), ["pi-ai"]);
        assert_eq!(found(layer, &NETWORK), [""; 0]);
        assert_eq!(found(layer, &EXTRAS), [""; 0]);
    }

    #[test]
    fn the_agents_layer_has_no_network_and_no_files() {
        let layer = "downstream-on-pi-agent-core";
        assert_eq!(found(layer, &OURS), ["pi-agent-core", "pi-ai"]);
        assert_eq!(found(layer, &NETWORK), [""; 0]);
        assert_eq!(found(layer, &EXTRAS), [""; 0]);
        assert_eq!(found(layer, &["tempfile", "process-wrap"]), [""; 0]);
    }

    #[test]
    fn the_product_as_a_library_has_no_command_line_and_no_screen() {
        let layer = "downstream-on-pi-coding-agent";
        assert_eq!(found(layer, &OURS), OURS);
        assert_eq!(found(layer, &EXTRAS), [""; 0]);
        let [model, agent, product] = LAYERS.map(|layer| crates_below(layer).unwrap().len());
        assert!(model < agent && agent < product, "{model} {agent} {product}");
    }

    #[tokio::test]
    async fn each_layer_does_its_work() {
        assert_eq!(described().unwrap(), "prompt: Be brief.; tools: ; answers: 0");
        assert_eq!(calculated().await.unwrap(), "42");
        assert_eq!(reviewed().await.unwrap(), "Small and tested. Another look: src/main.rs");
    }
}
