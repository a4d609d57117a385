//! The options of a preset as its file has them.

use super::{
    kinds::QueueName,
    options::{Kind, OPTIONS},
    settings::PresetConfig,
};
use crate::values;

/// Shown for an option without a value.
const UNSET: &str = "-";

/// The options that the preset reads, each with its value in the form of the file.
pub fn options(config: &PresetConfig) -> Vec<(&'static str, String)> {
    // The places of values are functions that can change them, so they get a copy.
    let mut config = config.clone();
    let read = OPTIONS.iter().filter(|option| option.readers.contains(&config.preset)).collect::<Vec<_>>();
    read.into_iter().filter_map(|option| Some((option.name, shown(option.kind, &mut config)?))).collect()
}

/// The value of an option; `None` if it has no effect.
fn shown(kind: Kind, config: &mut PresetConfig) -> Option<String> {
    Some(match kind {
        Kind::Boolean(field) => field(config).to_string(),
        Kind::Integer(field, ..) => field(config).to_string(),
        Kind::Ratio(field) => field(config).to_string(),
        Kind::Time(field) | Kind::Clock(field) => values::show_seconds(*field(config)),
        Kind::Path(field) | Kind::Host(field) | Kind::Text(field) => or_unset(field(config).clone()),
        Kind::Queue(field) => or_unset(field(config).as_ref().map(QueueName::to_string)),
        Kind::Queues(field) => {
            let queues = field(config).iter().map(QueueName::to_string).collect::<Vec<_>>();
            or_unset(Some(queues.join(",")).filter(|queues| !queues.is_empty()))
        }
        Kind::Enforced(field) => field(config).to_string(),
        Kind::Size(field) => format!("{}kb", field(config)),
        Kind::Variance => config.target_load_variance.to_string(),
        Kind::RestartAction => config.restart_action.name().to_owned(),
        Kind::BackfillMode => config.backfill_mode.name().to_owned(),
        Kind::NoEffect => return None,
    })
}

fn or_unset(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNSET.to_owned())
}
