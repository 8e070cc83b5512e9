//! Going through models and thinking levels.

use std::sync::Arc;

use pi_ai::{Model, ThinkingLevel, faux::FauxProvider};
use pi_coding_agent::{
    agent_session::{Direction, ScopedModel},
    resources::SettingsManager,
    sdk::create_agent_session,
    session::SessionManager,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::Place;

fn model(id: &str) -> Arc<Model> {
    Arc::new(Model { id: id.into(), reasoning: true, ..(*FauxProvider::model()).clone() })
}

#[tokio::test]
async fn models_of_the_scope_follow_each_other_with_their_levels() {
    let place = Place::new();
    let level = Some(ThinkingLevel::Low);
    let scope = [model("a").into(), ScopedModel { model: model("b"), level }, model("c").into()];
    let settings = SettingsManager::in_memory(json!({"defaultThinkingLevel": "high"}));
    let options = place.options(&FauxProvider::new([])).model(model("a")).scoped_models(scope);
    let options = options.settings(settings).session_manager(SessionManager::in_memory());
    let session = create_agent_session(options).await.unwrap();
    let mut seen = Vec::new();
    for direction in [Direction::Forward, Direction::Forward, Direction::Forward, Direction::Backward] {
        let model = session.cycle_model(direction).await.unwrap().unwrap();
        seen.push((model.id.to_string(), session.thinking_level()));
    }
    let expected = [("b", ThinkingLevel::Low), ("c", ThinkingLevel::High), ("a", ThinkingLevel::High)];
    assert_eq!(seen[..3], expected.map(|(id, level)| (id.to_owned(), level)));
    assert_eq!(seen[3].0, "c");
    // Each choice is recorded.
    assert_eq!(session.session_manager().context().model.unwrap().model_id, *"c");
    session.set_scoped_models([model("c").into()]);
    assert_eq!(session.cycle_model(Direction::Forward).await.unwrap(), None);
    session.dispose().await.unwrap();
}

#[tokio::test]
async fn levels_follow_each_other_and_begin_anew() {
    let place = Place::new();
    let options = place.options(&FauxProvider::new([])).model(model("a")).thinking_level(ThinkingLevel::Off);
    let session = create_agent_session(options.session_manager(SessionManager::in_memory())).await.unwrap();
    let levels = session.available_thinking_levels();
    for level in levels.iter().skip(1).chain(&levels[..1]) {
        assert_eq!(session.cycle_thinking_level().await.unwrap(), Some(*level));
    }
    session.set_model(Arc::new(Model { reasoning: false, ..(*model("dull")).clone() })).await.unwrap();
    assert_eq!(session.cycle_thinking_level().await.unwrap(), None);
    assert_eq!(session.available_thinking_levels(), [ThinkingLevel::Off]);
    session.dispose().await.unwrap();
}
