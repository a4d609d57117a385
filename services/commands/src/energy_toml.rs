//! `[energy]` of a configuration file: nodes that sleep while nothing runs on them.

use muster_schemas::{
    energy::{EnergySettings, KeepAwake, NodeWatts, WakeTimeout},
    resources::PropertyValue,
};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// The section as it is written. What it does not name has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EnergyEntry {
    sleep_program: Vec<String>,
    wake_program: Vec<String>,
    account: Option<String>,
    idle_seconds: Option<u32>,
    sleep_seconds: Option<u32>,
    wake_up_seconds: Option<u32>,
    wake_timeouts: Vec<String>,
    sleep_timeout_seconds: Option<u32>,
    program_timeout_seconds: Option<u32>,
    nodes_at_once: Option<u32>,
    pause_seconds: Option<u32>,
    keep_awake: Vec<String>,
    watts_busy: Option<u32>,
    watts_idle: Option<u32>,
    watts_asleep: Option<u32>,
    watts_waking: Option<u32>,
}

impl EnergyEntry {
    /// The settings that the section describes.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn settings(&self) -> Result<EnergySettings, String> {
        let usual = EnergySettings::default();
        let place = |name: &str, at: usize, mistake: String| format!("energy.{name}[{at}]: {mistake}");
        let steps = self.wake_timeouts.iter().enumerate();
        let steps = steps.map(|(at, text)| step(text).map_err(|mistake| place("wake_timeouts", at, mistake)));
        let groups = self.keep_awake.iter().enumerate();
        let groups = groups.map(|(at, text)| group(text).map_err(|mistake| place("keep_awake", at, mistake)));
        let watts = [self.watts_busy, self.watts_idle, self.watts_asleep, self.watts_waking];
        let [busy, idle, asleep, waking] = watts.map(Option::unwrap_or_default);
        Ok(EnergySettings {
            sleep_program: self.sleep_program.clone(),
            wake_program: self.wake_program.clone(),
            account: self.account.clone().unwrap_or(usual.account),
            idle_seconds: self.idle_seconds.unwrap_or(usual.idle_seconds),
            sleep_seconds: self.sleep_seconds.unwrap_or(usual.sleep_seconds),
            wake_up_seconds: self.wake_up_seconds.unwrap_or(usual.wake_up_seconds),
            wake_timeouts: steps.collect::<Result<_, _>>()?,
            sleep_timeout_seconds: self.sleep_timeout_seconds.unwrap_or(usual.sleep_timeout_seconds),
            program_timeout_seconds: self.program_timeout_seconds.unwrap_or(usual.program_timeout_seconds),
            nodes_at_once: self.nodes_at_once.unwrap_or(usual.nodes_at_once),
            pause_seconds: self.pause_seconds.unwrap_or(usual.pause_seconds),
            keep_awake: groups.collect::<Result<_, _>>()?,
            watts: watts.iter().any(Option::is_some).then_some(NodeWatts { busy, idle, asleep, waking }),
        })
    }
}

/// Reads `11:1000`: from 11 nodes on, 1,000 seconds.
fn step(text: &str) -> Result<WakeTimeout, String> {
    let pair = text.split_once(':').and_then(|(nodes, seconds)| Some((nodes.parse().ok()?, seconds.parse().ok()?)));
    let (nodes, seconds) = pair.ok_or_else(|| format!("expected NODES:SECONDS, found `{text}`"))?;
    Ok(WakeTimeout { nodes, seconds })
}

/// Reads `2`, or `gpu=true,rack=r1:2`: two nodes with these properties.
fn group(text: &str) -> Result<KeepAwake, String> {
    let wrong = || format!("expected PROPERTY=VALUE,...:NODES or a number of nodes, found `{text}`");
    let (wanted, nodes) = text.rsplit_once(':').unwrap_or(("", text));
    let nodes = nodes.parse().map_err(|_| wrong())?;
    let pair = |pair: &str| -> Result<(String, PropertyValue), String> {
        let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let number = || value.parse().map(PropertyValue::Number).ok();
        let value = match value {
            "true" => PropertyValue::Flag(true),
            "false" => PropertyValue::Flag(false),
            _ => number().unwrap_or_else(|| PropertyValue::Text(value.to_owned())),
        };
        Ok((name.to_owned(), value))
    };
    let properties: BTreeMap<String, PropertyValue> =
        wanted.split(',').filter(|pair| !pair.is_empty()).map(pair).collect::<Result<_, String>>()?;
    Ok(KeepAwake { properties, nodes })
}

/// Adds the section to a configuration file.
pub(crate) fn write(text: &mut String, settings: &EnergySettings) {
    let EnergySettings {
        sleep_program,
        wake_program,
        account,
        idle_seconds,
        sleep_seconds,
        wake_up_seconds,
        wake_timeouts,
        sleep_timeout_seconds,
        program_timeout_seconds,
        nodes_at_once,
        pause_seconds,
        keep_awake,
        watts,
    } = settings;
    let quote = |text: &String| toml::Value::String(text.clone()).to_string();
    let list = |texts: &[String]| format!("[{}]", texts.iter().map(quote).collect::<Vec<_>>().join(", "));
    let steps: Vec<String> = wake_timeouts.iter().map(|step| format!("{}:{}", step.nodes, step.seconds)).collect();
    let groups: Vec<String> = keep_awake.iter().map(group_text).collect();
    let _ = writeln!(text, "\n[energy]");
    for (key, texts) in [("sleep_program", &sleep_program[..]), ("wake_program", &wake_program[..])] {
        let _ = writeln!(text, "{key} = {}", list(texts));
    }
    let _ = writeln!(text, "account = {}", quote(account));
    let watts = watts.map(|watts| [watts.busy, watts.idle, watts.asleep, watts.waking]);
    let names = ["watts_busy", "watts_idle", "watts_asleep", "watts_waking"];
    let numbers = [
        ("idle_seconds", *idle_seconds),
        ("sleep_seconds", *sleep_seconds),
        ("wake_up_seconds", *wake_up_seconds),
        ("sleep_timeout_seconds", *sleep_timeout_seconds),
        ("program_timeout_seconds", *program_timeout_seconds),
        ("nodes_at_once", *nodes_at_once),
        ("pause_seconds", *pause_seconds),
    ];
    for (key, value) in numbers.into_iter().chain(watts.into_iter().flat_map(|watts| names.into_iter().zip(watts))) {
        let _ = writeln!(text, "{key} = {value}");
    }
    for (key, texts) in [("wake_timeouts", steps), ("keep_awake", groups)] {
        if !texts.is_empty() {
            let _ = writeln!(text, "{key} = {}", list(&texts));
        }
    }
}

fn group_text(group: &KeepAwake) -> String {
    let pairs: Vec<String> = group.properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { group.nodes.to_string() } else { format!("{}:{}", pairs.join(","), group.nodes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-E-06, OAR-E-07
    #[test]
    fn a_section_is_read_as_it_is_written() {
        let text = "sleep_program = [\"/opt/sleep\", \"-q\"]\nwake_timeouts = [\"1:500\", \"11:1000\"]\nkeep_awake = [\"2\", \
                    \"gpu=true,mem=64,rack=r1:1\"]\nwatts_idle = 120\n";
        let settings = toml::from_str::<EnergyEntry>(text).unwrap().settings().unwrap();
        assert_eq!(settings.wake_timeouts[1], WakeTimeout { nodes: 11, seconds: 1000 });
        assert_eq!((settings.keep_awake[0].nodes, settings.keep_awake[0].properties.len()), (2, 0));
        let values = [PropertyValue::Flag(true), PropertyValue::Number(64), PropertyValue::Text("r1".into())];
        assert_eq!(settings.keep_awake[1].properties.values().cloned().collect::<Vec<_>>(), values);
        let mut written = String::new();
        write(&mut written, &settings);
        let again = toml::from_str::<EnergyEntry>(written.trim_start().trim_start_matches("[energy]")).unwrap();
        assert_eq!(again.settings(), Ok(settings));
    }

    /// OAR-E-07: a mistake is told with its place.
    #[test]
    fn mistakes_have_a_place() {
        let mistake = |text: &str| toml::from_str::<EnergyEntry>(text).unwrap().settings().unwrap_err();
        let wrong = mistake("keep_awake = [\"1\", \"gpu:x\"]");
        assert_eq!(
            wrong,
            "energy.keep_awake[1]: expected PROPERTY=VALUE,...:NODES or a number of nodes, found `gpu:x`"
        );
        assert_eq!(mistake("wake_timeouts = [\"5\"]"), "energy.wake_timeouts[0]: expected NODES:SECONDS, found `5`");
    }
}
