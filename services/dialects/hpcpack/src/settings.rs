//! The settings of `cluscfg`: names, ranges, defaults (HPC-C-08, C-09).

use crate::{
    description::{values::Value as _, words::words},
    hold,
    template::check_path,
};
use muster_schemas::policy::words;
use std::{collections::BTreeSet, fmt, ops::RangeInclusive};

words! {
    /// How jobs get resources (HPC-S-01).
    #[derive(Default)]
    SchedulingMode {
        /// In queue order, each as much as possible (HPC-S-02).
        #[default]
        Queued,
        /// Each its minimum first (HPC-S-06).
        Balanced,
    }
}

words! {
    /// How jobs of higher priority take resources from others (HPC-S-12).
    #[derive(Default)]
    PreemptionType {
        /// Not at all.
        None,
        /// As tasks end.
        #[default]
        Graceful,
        /// At once.
        Immediate,
    }
}

words! {
    /// How much more of the additional resources higher bands get (HPC-S-07).
    #[derive(Default)]
    PriorityBias {
        /// All bands get the same.
        NoBias,
        /// Twice as much per band.
        #[default]
        MediumBias,
        /// Ten times as much per band.
        HighBias,
    }
}

words! {
    /// Which jobs may start while a filter's verdict is outstanding (HPC-F-82, F-83).
    #[derive(Default)]
    ActivationOrdering {
        /// No job of equal or lower priority value.
        #[default]
        Strict,
        /// Any, on other resources.
        Relaxed,
    }
}

/// The value of a setting as text, and back.
trait Setting: Sized {
    fn set(text: &str) -> Result<Self, String>;
    fn show(&self) -> String;
}

impl Setting for i64 {
    fn set(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected a whole number".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! settings_by_value {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn set(text: &str) -> Result<Self, String> {
                Self::read(text).map_err(|refusal| refusal.text)
            }

            fn show(&self) -> String {
                self.write()
            }
        }
    )*};
}
settings_by_value!(bool, SchedulingMode, PreemptionType, PriorityBias, ActivationOrdering);

impl Setting for u32 {
    fn set(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "expected a whole number of seconds".to_owned())
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// The path of a program; an empty text removes the program.
impl Setting for Option<String> {
    fn set(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(None);
        }
        check_path(text).map_err(|refusal| refusal.text)?;
        Ok(Some(text.to_owned()))
    }

    fn show(&self) -> String {
        self.clone().unwrap_or_default()
    }
}

/// The range of a setting, as checked and shown.
struct Range {
    numbers: Option<RangeInclusive<i64>>,
    shown: &'static str,
}

const fn words_of(shown: &'static str) -> Range {
    Range { numbers: None, shown }
}

const fn numbers(numbers: RangeInclusive<i64>, shown: &'static str) -> Range {
    Range { numbers: Some(numbers), shown }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident, $field:ident: $type:ty = $default:expr, $range:expr;)*) => {
        /// Every setting of this dialect, with its value.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings { $($(#[$doc])* pub $field: $type,)* }

        /// The names of the settings, in the order of the list.
        pub const NAMES: &[&str] = &[$(stringify!($name),)*];

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Settings {
            /// Every setting with its value, default and range (HPC-C-08).
            pub fn list(&self) -> Vec<Row> {
                let default = Self::default();
                vec![$(Row {
                    name: stringify!($name),
                    value: self.$field.show(),
                    default: default.$field.show(),
                    range: $range.shown,
                },)*]
            }

            /// Sets one of the settings in [`NAMES`].
            fn set_one(&mut self, name: &str, text: &str) -> Result<(), String> {
                match name {
                    $(stringify!($name) => {
                        let value = <$type>::set(text)?;
                        check_range(text, $range.numbers)?;
                        self.$field = value;
                    })*
                    _ => return Err("no such setting".to_owned()),
                }
                Ok(())
            }
        }

        fn range_of(name: &str) -> &'static str {
            match name {
                $(stringify!($name) => $range.shown,)*
                _ => "",
            }
        }
    };
}

settings! {
    /// The submission filter of all jobs (HPC-F-02).
    SubmissionFilterProgram, submission_filter_program: Option<String> = None, words_of("an absolute path, or empty");
    /// The activation filter of all jobs (HPC-F-02).
    ActivationFilterProgram, activation_filter_program: Option<String> = None, words_of("an absolute path, or empty");
    /// How long a submission filter may take, in seconds (HPC-F-05).
    SubmissionFilterTimeout, submission_filter_timeout_seconds: u32 = 15, numbers(1..=120, "1..120");
    /// How long an activation filter may take, in seconds (HPC-F-05).
    ActivationFilterTimeout, activation_filter_timeout_seconds: u32 = 15, numbers(1..=120, "1..120");
    /// How long after a verdict a filter is not called again, in seconds (HPC-F-34).
    FilterRetryInterval, filter_retry_interval_seconds: u32 = 10, numbers(1..=3600, "1..3600");
    /// Which jobs may start while a verdict is outstanding (HPC-F-82, F-83).
    ActivationOrdering, activation_ordering: ActivationOrdering = ActivationOrdering::Strict, words_of("Strict, Relaxed");
    /// How long a hold by verdict 3 lasts if the filter gives no time, in seconds (HPC-H-02).
    DefaultHoldDuration, default_hold_duration_seconds: u32 = 900, numbers(hold::DEFAULT_DURATION_RANGE, "60..604800");
    /// How many jobs after the waiting top job are considered for backfill; negative is all, 0 none (HPC-B-01).
    BackfillLookAhead, backfill_look_ahead: i64 = 1000, words_of("a whole number; negative: the whole queue, 0: off");
    /// How jobs get resources (HPC-S-01).
    SchedulingMode, scheduling_mode: SchedulingMode = SchedulingMode::Queued, words_of("Queued, Balanced");
    /// Preemption in Queued mode (HPC-S-12).
    PreemptionType, preemption_type: PreemptionType = PreemptionType::Graceful, words_of("None, Graceful, Immediate");
    /// Preemption in Balanced mode (HPC-S-14).
    PreemptionBalancedMode, preemption_balanced_mode: PreemptionType = PreemptionType::Immediate,
        words_of("None, Graceful, Immediate");
    /// How additional resources are shared (HPC-S-07).
    PriorityBias, priority_bias: PriorityBias = PriorityBias::MediumBias, words_of("NoBias, MediumBias, HighBias");
    /// How often Balanced mode rebalances, in seconds (HPC-S-08).
    ReBalancingInterval, rebalancing_interval_seconds: u32 = 10, numbers(1..=3600, "1..3600");
    /// How long node release tasks may take, in seconds (HPC-J-12).
    NodeReleaseTaskTimeout, node_release_task_timeout_seconds: u32 = 10, numbers(1..=3600, "1..3600");
    /// Whether running jobs grow (HPC-S-09).
    AutomaticGrowthEnabled, automatic_growth_enabled: bool = true, words_of("true, false");
    /// Whether running jobs shrink (HPC-S-10).
    AutomaticShrinkEnabled, automatic_shrink_enabled: bool = true, words_of("true, false");
    /// Whether running jobs grow by preemption (HPC-S-14).
    GrowByPreemptionEnabled, grow_by_preemption_enabled: bool = false, words_of("true, false");
    /// Whether immediate preemption stops only as many tasks as needed (HPC-S-14).
    TaskImmediatePreemptionEnabled, task_immediate_preemption_enabled: bool = false, words_of("true, false");
}

fn check_range(text: &str, range: Option<RangeInclusive<i64>>) -> Result<(), String> {
    match (range, text.parse::<i64>()) {
        (Some(range), Ok(number)) if !range.contains(&number) => Err("outside its range".to_owned()),
        _ => Ok(()),
    }
}

/// A setting, as `cluscfg listparams` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Its value if nobody sets it.
    pub default: String,
    /// The allowed values.
    pub range: &'static str,
}

/// A setting that is refused. Nothing was changed (HPC-C-08).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BadSetting {
    /// What was given.
    pub given: String,
    /// The error, with the range.
    pub reason: String,
    /// Whether it is no valid assignment of a setting, or clashes with another; otherwise its value is refused
    /// (HPC-C-02).
    pub is_usage: bool,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", words::shorten(&self.given), self.reason)
    }
}

impl Settings {
    /// These settings after assignments `Name=value`; names ignore case, and an empty value removes a filter program.
    /// If any assignment is bad, none is made and each bad one is reported (HPC-C-08).
    ///
    /// # Errors
    /// Every text that is not an assignment, names an unknown setting or one that another names too, or has a value
    /// outside its range.
    pub fn with(&self, assignments: &[impl AsRef<str>]) -> Result<Self, Vec<BadSetting>> {
        let (mut settings, mut bad, mut named) = (self.clone(), Vec::new(), BTreeSet::new());
        for assignment in assignments {
            let assignment = assignment.as_ref();
            let given = || assignment.to_owned();
            let set = named_setting(assignment, &mut named)
                .map_err(|reason| BadSetting { given: given(), reason, is_usage: true })
                .and_then(|(name, text)| {
                    let allowed = |reason| format!("{reason}; allowed: {}", range_of(name));
                    let set = settings.set_one(name, text).map_err(allowed);
                    set.map_err(|reason| BadSetting { given: given(), reason, is_usage: false })
                });
            bad.extend(set.err());
        }
        if bad.is_empty() { Ok(settings) } else { Err(bad) }
    }
}

/// The setting named by an assignment, and its value.
fn named_setting<'a>(
    assignment: &'a str,
    named: &mut BTreeSet<&'static str>,
) -> Result<(&'static str, &'a str), String> {
    let (name, text) = assignment.split_once('=').ok_or_else(|| "expected Name=value".to_owned())?;
    let Some(known) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name.trim())) else {
        let nearest = words::nearest(name.trim(), NAMES.iter().copied());
        let hint = nearest.map(|nearest| format!("; nearest known is {nearest}")).unwrap_or_default();
        return Err(format!("no such setting{hint}"));
    };
    if !named.insert(known) {
        return Err(format!("{known} is set twice"));
    }
    Ok((known, text.trim()))
}
