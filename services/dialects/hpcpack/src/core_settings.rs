//! Translates the settings of `cluscfg` to those of the core and back (HPC-C-09).

use crate::settings::{ActivationOrdering, PreemptionType, PriorityBias, SchedulingMode, Settings};
use muster_schemas::{
    filter::{ActivationOrdering as CoreOrdering, FilterForm, FilterSettings, FilterSpec},
    scheduling::{Preemption, PriorityBias as CoreBias, SchedulingMode as CoreMode, SchedulingSettings},
};

/// The settings in force in the core, with defaults for those it leaves open.
pub fn with_core(filters: &FilterSettings, scheduling: &SchedulingSettings) -> Settings {
    let default = Settings::default();
    let path = |filter: &Option<FilterSpec>| filter.as_ref().map(|filter| filter.path.clone());
    Settings {
        submission_filter_program: path(&filters.submission),
        activation_filter_program: path(&filters.activation),
        submission_filter_timeout_seconds: filters.submission_timeout_seconds,
        activation_filter_timeout_seconds: filters.activation_timeout_seconds,
        filter_retry_interval_seconds: filters.retry_interval_seconds,
        activation_ordering: match filters.ordering {
            CoreOrdering::Strict => ActivationOrdering::Strict,
            CoreOrdering::Relaxed => ActivationOrdering::Relaxed,
        },
        default_hold_duration_seconds: filters.default_hold_seconds,
        backfill_look_ahead: scheduling.backfill_look_ahead.unwrap_or(default.backfill_look_ahead),
        scheduling_mode: match scheduling.mode {
            Some(CoreMode::Balanced) => SchedulingMode::Balanced,
            Some(CoreMode::Queued) | None => SchedulingMode::Queued,
        },
        preemption_type: scheduling.preemption.map_or(default.preemption_type, from_preemption),
        preemption_balanced_mode: scheduling
            .balanced_preemption
            .map_or(default.preemption_balanced_mode, from_preemption),
        priority_bias: match scheduling.bias {
            None => default.priority_bias,
            Some(CoreBias::None) => PriorityBias::NoBias,
            Some(CoreBias::Medium) => PriorityBias::MediumBias,
            Some(CoreBias::High) => PriorityBias::HighBias,
        },
        rebalancing_interval_seconds: scheduling.rebalance_seconds.unwrap_or(default.rebalancing_interval_seconds),
        node_release_task_timeout_seconds: scheduling
            .release_timeout_seconds
            .unwrap_or(default.node_release_task_timeout_seconds),
        automatic_growth_enabled: scheduling.growth.unwrap_or(default.automatic_growth_enabled),
        automatic_shrink_enabled: scheduling.shrink.unwrap_or(default.automatic_shrink_enabled),
        grow_by_preemption_enabled: scheduling.growth_by_preemption.unwrap_or(default.grow_by_preemption_enabled),
        task_immediate_preemption_enabled: scheduling
            .task_preemption
            .unwrap_or(default.task_immediate_preemption_enabled),
    }
}

/// The core's filter settings for these. A new program becomes a filter named after its file and called in the
/// Microsoft way (HPC-F-60); a program already set keeps its filter.
pub fn to_filters(settings: &Settings, before: &FilterSettings) -> FilterSettings {
    FilterSettings {
        submission: filter(&settings.submission_filter_program, &before.submission),
        activation: filter(&settings.activation_filter_program, &before.activation),
        submission_timeout_seconds: settings.submission_filter_timeout_seconds,
        activation_timeout_seconds: settings.activation_filter_timeout_seconds,
        retry_interval_seconds: settings.filter_retry_interval_seconds,
        ordering: match settings.activation_ordering {
            ActivationOrdering::Strict => CoreOrdering::Strict,
            ActivationOrdering::Relaxed => CoreOrdering::Relaxed,
        },
        default_hold_seconds: settings.default_hold_duration_seconds,
    }
}

fn filter(path: &Option<String>, before: &Option<FilterSpec>) -> Option<FilterSpec> {
    let path = path.as_ref()?;
    if let Some(before) = before.as_ref().filter(|before| before.path == *path) {
        return Some(before.clone());
    }
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    Some(FilterSpec { name, path: path.clone(), form: FilterForm::Exec, revert_on_unknown: false })
}

/// The core's scheduling settings with the named ones (in any case) taken from `settings`. All others stay, so that no
/// parameter turns on or changes more than its name says (HPC-C-09).
pub fn to_scheduling(settings: &Settings, names: &[&str], core: &SchedulingSettings) -> SchedulingSettings {
    let mut scheduling = core.clone();
    for name in names {
        set_one(&mut scheduling, name, settings);
    }
    scheduling
}

fn set_one(core: &mut SchedulingSettings, name: &str, settings: &Settings) {
    match plain(name).as_str() {
        "schedulingmode" => {
            core.mode = Some(match settings.scheduling_mode {
                SchedulingMode::Queued => CoreMode::Queued,
                SchedulingMode::Balanced => CoreMode::Balanced,
            });
        }
        "backfilllookahead" => core.backfill_look_ahead = Some(settings.backfill_look_ahead),
        "preemptiontype" => core.preemption = Some(to_preemption(settings.preemption_type)),
        "preemptionbalancedmode" => core.balanced_preemption = Some(to_preemption(settings.preemption_balanced_mode)),
        "prioritybias" => {
            core.bias = Some(match settings.priority_bias {
                PriorityBias::NoBias => CoreBias::None,
                PriorityBias::MediumBias => CoreBias::Medium,
                PriorityBias::HighBias => CoreBias::High,
            });
        }
        "rebalancinginterval" => core.rebalance_seconds = Some(settings.rebalancing_interval_seconds),
        "nodereleasetasktimeout" => core.release_timeout_seconds = Some(settings.node_release_task_timeout_seconds),
        "automaticgrowthenabled" => core.growth = Some(settings.automatic_growth_enabled),
        "automaticshrinkenabled" => core.shrink = Some(settings.automatic_shrink_enabled),
        "growbypreemptionenabled" => core.growth_by_preemption = Some(settings.grow_by_preemption_enabled),
        "taskimmediatepreemptionenabled" => core.task_preemption = Some(settings.task_immediate_preemption_enabled),
        _ => {}
    }
}

fn plain(name: &str) -> String {
    name.trim().to_ascii_lowercase()
}

/// Why a setting (in any case) currently does nothing; `None` if it has an effect.
pub fn no_effect_because(name: &str, scheduling: &SchedulingSettings) -> Option<&'static str> {
    let mode = scheduling.mode;
    let is_balanced = mode == Some(CoreMode::Balanced);
    match plain(name).as_str() {
        "backfilllookahead" if mode.is_none() => Some("without a SchedulingMode the policy backfills"),
        "preemptiontype" if is_balanced => Some("in Balanced mode PreemptionBalancedMode counts"),
        "preemptionbalancedmode" | "prioritybias" | "rebalancinginterval" if !is_balanced => {
            Some("it is for Balanced mode")
        }
        "growbypreemptionenabled" if scheduling.growth_by_preemption == Some(true) => {
            if mode.is_none() {
                Some("it needs a SchedulingMode")
            } else if !scheduling.grows() {
                Some("AutomaticGrowthEnabled is false")
            } else {
                (scheduling.preemption() == Preemption::None).then_some("no job makes way for another")
            }
        }
        "taskimmediatepreemptionenabled" if scheduling.task_preemption == Some(true) => {
            (scheduling.preemption() != Preemption::Immediate).then_some("preemption is not immediate")
        }
        _ => None,
    }
}

/// Where the effect of a setting (in any case) is currently limited to; `None` if it has none or is not limited.
pub fn acts_for(name: &str, scheduling: &SchedulingSettings) -> Option<&'static str> {
    if no_effect_because(name, scheduling).is_some() {
        return None;
    }
    match plain(name).as_str() {
        "preemptiontype" if scheduling.mode.is_none() => Some("between jobs with tasks"),
        "automaticgrowthenabled" if scheduling.mode.is_none() && scheduling.grows() => {
            Some("after everything that starts or is promised")
        }
        "growbypreemptionenabled" if scheduling.growth_by_preemption == Some(true) => {
            Some("not for jobs with an activation filter")
        }
        _ => None,
    }
}

fn from_preemption(preemption: Preemption) -> PreemptionType {
    match preemption {
        Preemption::None => PreemptionType::None,
        Preemption::Graceful => PreemptionType::Graceful,
        Preemption::Immediate => PreemptionType::Immediate,
    }
}

fn to_preemption(preemption: PreemptionType) -> Preemption {
    match preemption {
        PreemptionType::None => Preemption::None,
        PreemptionType::Graceful => Preemption::Graceful,
        PreemptionType::Immediate => Preemption::Immediate,
    }
}
