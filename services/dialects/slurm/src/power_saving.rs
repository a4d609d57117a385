//! The words about power saving of `slurm.conf`, as the section `[energy]` of muster's configuration.

use std::fmt::Write as _;

/// What nodes may take to wake and to fall asleep where the file does not say it, in seconds.
const RESUME_TIMEOUT_SECONDS: u32 = 60;
const SUSPEND_TIMEOUT_SECONDS: u32 = 30;
/// Nodes that are woken and put to sleep in a minute where the file does not say it.
const RESUME_RATE: u32 = 300;
const SUSPEND_RATE: u32 = 60;
/// The most nodes in a period; as many stand for a rate without limit.
const MOST_NODES: u32 = 10_000;
const MOST_SECONDS: u32 = 604_800;

/// A section, and what it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerSaving {
    /// The lines of `[energy]`; empty if the file saves no power.
    pub section: String,
    /// The rest, to be done by hand, each with its line.
    pub warnings: Vec<String>,
}

/// A setting, with its line from 1.
#[derive(Clone, Copy)]
struct Setting<'t> {
    line: usize,
    key: &'t str,
    value: &'t str,
}

impl Setting<'_> {
    fn warning(self, file: &str, what: &str) -> String {
        format!("{file}, line {}: {}: {what}", self.line, self.key)
    }

    /// A number of seconds or of nodes. `INFINITE` and negative numbers are none.
    fn number(self, file: &str, warnings: &mut Vec<String>) -> Option<u32> {
        let value = self.value;
        if value.starts_with('-') || value.eq_ignore_ascii_case("infinite") {
            return None;
        }
        let number = value.parse().ok();
        if number.is_none() {
            warnings.push(self.warning(file, "is no number, and was left out"));
        }
        number
    }
}

/// Reads a `slurm.conf`. `file` is its name in warnings. Lines about anything else say nothing here.
pub fn energy(text: &str, file: &str) -> PowerSaving {
    let settings: Vec<Setting<'_>> = (1..).zip(text.lines()).flat_map(|(line, text)| words(line, text)).collect();
    let last = |key: &str| settings.iter().rev().find(|one| one.key.eq_ignore_ascii_case(key)).copied();
    let mut warnings = Vec::new();
    for setting in &settings {
        warnings.extend(by_hand(setting.key).map(|what| setting.warning(file, what)));
    }
    let mut number = |key: &str, otherwise: u32| match last(key) {
        Some(setting) => setting.number(file, &mut warnings),
        None => Some(otherwise),
    };
    let idle = last("SuspendTime").and_then(|_| number("SuspendTime", 0));
    let resume = number("ResumeTimeout", RESUME_TIMEOUT_SECONDS).unwrap_or(MOST_SECONDS).clamp(1, MOST_SECONDS);
    let suspend = number("SuspendTimeout", SUSPEND_TIMEOUT_SECONDS).unwrap_or(MOST_SECONDS).clamp(1, MOST_SECONDS);
    let rates = [("ResumeRate", RESUME_RATE), ("SuspendRate", SUSPEND_RATE)];
    let rates = rates.map(|(key, otherwise)| number(key, otherwise).filter(|rate| *rate > 0).unwrap_or(MOST_NODES));
    let programs = [("sleep_program", "SuspendProgram"), ("wake_program", "ResumeProgram")];
    let programs = programs.map(|(name, key)| (name, last(key).map(|setting| setting.value)));
    let mut saving = PowerSaving { section: String::new(), warnings };
    if programs.iter().all(|(_, program)| program.is_none()) {
        return saving;
    }
    let mut line = |text: String| {
        let _ = writeln!(saving.section, "{text}");
    };
    line("[energy]".to_owned());
    line("# Slurm's programs take a list of nodes as an argument; muster gives names on standard input.".to_owned());
    for (name, program) in programs {
        if let Some(program) = program {
            line(format!("{name} = [\"/bin/sh\", \"-c\", \"exec \\\"$0\\\" \\\"$(paste -sd, -)\\\"\", {program:?}]"));
        }
    }
    if let Some(account) = last("SlurmUser").map(|setting| setting.value).filter(|name| *name != "root") {
        line(format!("account = {account:?}"));
    }
    match idle {
        Some(seconds) => line(format!("idle_seconds = {}", seconds.clamp(1, MOST_SECONDS))),
        None => {
            saving.warnings.push(format!(
                "{file}: SuspendTime is not set or is INFINITE, so Slurm puts no node to sleep: sleep_program was left out"
            ));
            saving.section = without(&saving.section, "sleep_program");
        }
    }
    let mut line = |text: String| {
        let _ = writeln!(saving.section, "{text}");
    };
    line(format!("wake_up_seconds = {resume}"));
    line(format!("wake_timeouts = [\"1:{resume}\"]"));
    line(format!("sleep_timeout_seconds = {suspend}"));
    line(format!("nodes_at_once = {}", rates[0].min(rates[1]).min(MOST_NODES)));
    line("pause_seconds = 60".to_owned());
    saving
}

/// The settings of a line. Lines of nodes and partitions have several.
fn words(line: usize, text: &str) -> impl Iterator<Item = Setting<'_>> {
    let text = text.split('#').next().unwrap_or_default();
    // A value with blanks is quoted only in parts that say nothing about power.
    text.split_whitespace().filter_map(move |word| {
        let (key, value) = word.split_once('=')?;
        Some(Setting { line, key, value: value.trim_matches('"') })
    })
}

/// What an operator has to do for a setting that no key of the section stands for.
fn by_hand(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    Some(match key.as_str() {
        "suspendexcnodes" => {
            "give these nodes `properties = { sleeps = false }`; a number of nodes to keep is a line of keep_awake"
        }
        "suspendexcparts" => "give the nodes of these partitions `properties = { sleeps = false }`",
        "suspendexcstates" => {
            "drained nodes and those without report are never put to sleep; other states have no effect"
        }
        "resumefailprogram" => {
            "a node that does not wake is an event `node.power_failed` and lost; `strigger --down` runs a program"
        }
        "suspendrate" | "resumerate" => "one limit holds for both ways: the smaller one",
        "powersaveinterval" | "powersavemininterval" => "has no effect: orders are decided at each event",
        "powerdownonidle" => "has no effect: a node sleeps when it was idle for idle_seconds",
        "reconfigflags" | "powerparameters" | "powerplugin" => "has no effect on nodes that sleep",
        _ => return None,
    })
}

/// Lines without the one that sets a key.
fn without(section: &str, key: &str) -> String {
    section.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONF: &str = "ClusterName=alpha\nSlurmUser=slurm\nSuspendProgram=/usr/sbin/suspend  # comment\nResumeProgram=/usr/sbin/resume\n\
                        SuspendTime=600\nresumetimeout=300\nSuspendRate=20\nSuspendExcNodes=login[1-2]\n\
                        PartitionName=long Nodes=ALL PowerDownOnIdle=YES\n";

    /// Each word of Slurm's power saving is a setting, or is named with its line.
    #[test]
    fn words_become_settings_or_are_named() {
        let saving = energy(CONF, "slurm.conf");
        assert_eq!(
            saving.section,
            "[energy]\n# Slurm's programs take a list of nodes as an argument; muster gives names on standard input.\n\
             sleep_program = [\"/bin/sh\", \"-c\", \"exec \\\"$0\\\" \\\"$(paste -sd, -)\\\"\", \"/usr/sbin/suspend\"]\n\
             wake_program = [\"/bin/sh\", \"-c\", \"exec \\\"$0\\\" \\\"$(paste -sd, -)\\\"\", \"/usr/sbin/resume\"]\n\
             account = \"slurm\"\nidle_seconds = 600\nwake_up_seconds = 300\nwake_timeouts = [\"1:300\"]\n\
             sleep_timeout_seconds = 30\nnodes_at_once = 20\npause_seconds = 60\n"
        );
        let places: Vec<&str> = saving.warnings.iter().filter_map(|text| text.split(": ").nth(1)).collect();
        assert_eq!(places, ["SuspendRate", "SuspendExcNodes", "PowerDownOnIdle"], "{:?}", saving.warnings);
        assert!(saving.warnings[1].starts_with("slurm.conf, line 8: "));
    }

    #[test]
    fn a_site_that_saves_no_power_has_no_section() {
        assert_eq!(energy("ClusterName=alpha\nNodeName=n[1-4] CPUs=8\n", "slurm.conf"), PowerSaving::default());
        let never = energy(&CONF.replace("SuspendTime=600", "SuspendTime=INFINITE"), "slurm.conf");
        assert!(!never.section.contains("sleep_program") && never.section.contains("wake_program"));
        assert!(never.warnings.iter().any(|text| text.contains("SuspendTime is not set")), "{:?}", never.warnings);
        let wrong = energy(&CONF.replace("=300", "=soon"), "slurm.conf");
        assert!(wrong.warnings.iter().any(|text| text.contains("resumetimeout: is no number")), "{:?}", wrong.warnings);
    }
}
