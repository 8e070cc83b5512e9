//! Making sessions as the command line says.

use std::sync::Arc;

use pi_ai::models::Models;

use super::{
    arguments::{Arguments, OutputMode, ToolDefaults},
    extensions,
    model_choice::{Answerer, choose_model},
    one_shot::OneShotUi,
    output::say,
    resources,
};
use crate::{
    agent_session::AgentSession,
    extensions::{FlagValues, Mode, stdio::StdioExtension},
    guide::GuideModel,
    host::Host,
    resources::SettingsManager,
    sdk::{SessionOptions, SessionStart, create_agent_session},
    session::SessionManager,
    tool_selection::{ToolBase, ToolList, ToolSelection},
};

/// What keeps a session from being made.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Makes sessions as the command line says: the first one, and those that commands of extensions put in its place.
pub(super) struct SessionMaker {
    pub(super) arguments: Arguments,
    pub(super) host: Host,
    pub(super) models: Models,
    pub(super) flags: FlagValues,
}

/// What is known of a session's folder already.
pub(super) struct Brought {
    pub(super) settings: Arc<SettingsManager>,
    pub(super) extensions: Vec<Arc<StdioExtension>>,
}

impl SessionMaker {
    /// What a session is made with, in the folder that its record says: relative paths never change their meaning
    /// unseen.
    pub(super) async fn options(
        &self,
        manager: &SessionManager,
        known: Option<Brought>,
        notices: &mut Vec<String>,
    ) -> Result<SessionOptions, Failure> {
        let arguments = &self.arguments;
        let host = Host { cwd: manager.cwd().to_owned(), ..self.host.clone() };
        let locations = host.locations();
        let Brought { settings, extensions } = match known {
            Some(known) => known,
            None => {
                let place = extensions::Place::new(arguments, &host, &locations);
                let settings = resources::settings_for(&place, notices).await;
                let extensions = place.load(&settings, notices)?;
                Brought { settings, extensions }
            }
        };
        let loader = resources::load(arguments, locations, &settings, notices).await;
        let loader = loader.map_err(|problem| problem.to_string())?;
        let context = manager.context();
        let chosen_model = choose_model(arguments, &self.models, &settings.settings(), &context, notices).await?;
        let mut options = SessionOptions::default()
            .host(host)
            .trust(settings.project_trust())
            .settings(settings.clone())
            .resource_loader(loader)
            .scoped_models(chosen_model.scope)
            .tool_selection(tool_selection(arguments, &settings)?)
            .flag_values(self.flags.clone())
            .ui(OneShotUi(match arguments.mode {
                Some(OutputMode::Json) => Mode::Json,
                _ => Mode::Print,
            }));
        for extension in extensions {
            options = options.extension(extension);
        }
        options = match chosen_model.answerer {
            Answerer::Model { model, level } => {
                let options = options.models(self.models.clone()).model(model);
                match level {
                    Some(level) => options.thinking_level(level),
                    None => options,
                }
            }
            Answerer::Guide => {
                notices.push(GuideModel::NOTICE.to_owned());
                options.stream_fn(GuideModel::default()).stand_in_model(GuideModel::model())
            }
        };
        Ok(match arguments.sandbox {
            Some(network) => options.sandbox(network),
            None => options,
        })
    }

    /// Makes a session with what was prepared for it, or prepares it.
    pub(super) async fn make(
        &self,
        prepared: Option<SessionOptions>,
        manager: SessionManager,
        start: SessionStart,
    ) -> Result<AgentSession, Failure> {
        let options = match prepared {
            Some(options) => options,
            None => {
                let mut notices = Vec::new();
                let options = self.options(&manager, None, &mut notices).await?;
                // Those of this folder were said when the program began.
                if manager.cwd() != self.host.cwd {
                    notices.iter().for_each(|notice| say(notice));
                }
                options
            }
        };
        Ok(create_agent_session(options.session_manager(manager).session_start(start)).await?)
    }
}

fn tool_selection(arguments: &Arguments, settings: &SettingsManager) -> Result<ToolSelection, Failure> {
    let default_tools = settings.settings().default_tools.as_deref().map(ToolList::parse).transpose()?;
    Ok(ToolSelection {
        default_tools: default_tools.into_iter().collect(),
        only: arguments.tools.as_deref().map(ToolList::parse).transpose()?,
        base: match arguments.tool_defaults {
            ToolDefaults::Usual => ToolBase::Usual,
            ToolDefaults::NoBuiltins => ToolBase::NoBuiltins,
            ToolDefaults::None => ToolBase::Nothing,
        },
        exclude: arguments.exclude_tools.clone(),
    })
}
