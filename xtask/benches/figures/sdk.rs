//! What a program pays for a session before its first request.

use std::fs;
use std::path::Path;

use pi_coding_agent::agent_session::AgentSession;
use pi_coding_agent::host::Host;
use pi_coding_agent::sdk::{SessionOptions, create_agent_session};
use xtask::Error;
use xtask::measure::{median, process_cpu};
use xtask::row::{Goal, Row};

use crate::{Finding, Size};

const SKILLS: usize = 200;

pub(crate) fn run(size: Size) -> Result<Vec<Finding>, Error> {
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(async { Ok::<_, Error>([create(folder.path(), size).await?, reload(size).await?]) })?;
    Ok(rows.map(Finding::Row).into())
}

/// Surroundings with a key, so that a model is chosen, and nothing else.
fn host(folder: &Path) -> Result<Host, Error> {
    let cwd = folder.join("work");
    fs::create_dir_all(&cwd)?;
    Ok(Host {
        cwd,
        home: None,
        agent_dir: folder.join("agent"),
        temp_dir: folder.to_owned(),
        variables: [("ANTHROPIC_API_KEY".into(), "key".into())].into(),
    })
}

/// A session of the usual options: a new record, the built-in tools, a model that has a key.
async fn session(folder: &Path) -> Result<AgentSession, Error> {
    let session = create_agent_session(SessionOptions::default().host(host(folder)?)).await?;
    if session.model().is_none() {
        return Err("no model was chosen".into());
    }
    Ok(session)
}

async fn create(folder: &Path, size: Size) -> Result<Row, Error> {
    // The first one is not counted: it decodes the part of the catalog that all of them use.
    session(folder).await?.dispose().await?;
    let mut times = Vec::new();
    for _ in 0..size.pick(40, 200) {
        let start = process_cpu();
        let session = session(folder).await?;
        times.push((process_cpu() - start).as_secs_f64() * 1e3);
        session.dispose().await?;
    }
    Ok(Row::new("sdk.create_session", median(times), "CPU-ms").goal(Goal::Value(5.0)))
}

async fn reload(size: Size) -> Result<Row, Error> {
    let folder = tempfile::tempdir()?;
    for number in 0..SKILLS {
        let skill = folder.path().join(format!("agent/skills/skill-{number}"));
        fs::create_dir_all(&skill)?;
        let text =
            format!("---\nname: skill-{number}\ndescription: Does thing {number}.\n---\n\n{}\n", "step\n".repeat(200));
        fs::write(skill.join("SKILL.md"), text)?;
    }
    let session = session(folder.path()).await?;
    if session.resources().skills.len() != SKILLS {
        return Err("not all skills were loaded".into());
    }
    let mut times = Vec::new();
    for _ in 0..size.pick(20, 100) {
        let start = process_cpu();
        session.reload_resources().await;
        times.push((process_cpu() - start).as_secs_f64() * 1e3);
    }
    session.dispose().await?;
    Ok(Row::new("sdk.reload_200_skills", median(times), "CPU-ms").goal(Goal::Value(50.0)))
}
