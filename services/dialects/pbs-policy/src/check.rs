//! Checks all policy files together (PBS-C-14).

use crate::{
    dedicated::DedicatedTime,
    findings::{Finding, Findings},
    holidays::{self, Holidays},
    lines::{self, MOST_BYTES, MOST_LINES, Source, Word},
    mode::Mode,
    nodes::{self, Node},
    preset::{self, Preset, PresetConfig},
    sched_config::{self, SchedConfig},
    shares::{self, Shares},
};
use jiff::{Timestamp, tz::TimeZone};
use sha2::{Digest, Sha256};

const SCHED_CONFIG: &str = "sched_config";
const RESOURCE_GROUP: &str = "resource_group";
const RESOURCES_GROUP: &str = "resources_group";
const HOLIDAYS: &str = "holidays";
const DEDICATED_TIME: &str = "dedicated_time";
const CONFIG: &str = "config";
const NODES: &str = "nodes";

/// The names of all policy files, in the order in which they are checked. All others in the folder are left alone.
/// `resources_group` is another name of `resource_group`. `nodes`, which PBS keeps in `server_priv`, is read if it is
/// there.
pub const FILES: [&str; 7] = [SCHED_CONFIG, RESOURCE_GROUP, RESOURCES_GROUP, HOLIDAYS, DEDICATED_TIME, CONFIG, NODES];

/// The tables of all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// `sched_config`.
    pub sched_config: SchedConfig,
    /// `resource_group`.
    pub shares: Shares,
    /// `holidays`.
    pub holidays: Holidays,
    /// `dedicated_time`.
    pub dedicated_time: DedicatedTime,
    /// `config`, if a preset is in force.
    pub preset: Option<PresetConfig>,
    /// `nodes`; `None` if there is no such file.
    pub nodes: Option<Vec<Node>>,
}

/// The checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The name of the file.
    pub file: String,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The tables; `None` if there is any error in any file, so nothing can be put in force.
    pub policy: Option<Policy>,
    /// All errors, in the order of files and lines.
    pub errors: Vec<Finding>,
    /// All warnings, in the order of files and lines.
    pub warnings: Vec<Finding>,
    /// The checksums of all files that are there, in the order of [`FILES`].
    pub digests: Vec<FileDigest>,
}

impl Checked {
    /// The exit status of the check: 0, or 2 if there are errors (PBS-C-15).
    pub const fn exit_status(&self) -> u8 {
        if self.errors.is_empty() { 0 } else { 2 }
    }
}

impl Policy {
    /// The mode at a time, which selects the options of a cycle that starts then (PBS-F-14).
    pub fn mode(&self, now: Timestamp, zone: &TimeZone) -> Mode {
        self.holidays.mode(now, zone, self.sched_config.holidays_stale)
    }

    /// When the next cycle is due because the mode changes, or a window of dedicated time begins or ends (PBS-T-08).
    /// `None` if there is no such time within 400 days.
    pub fn next_change(&self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mode = self.holidays.next_change(now, zone, self.sched_config.holidays_stale).map(|(time, _)| time);
        let window = self.dedicated_time.windows(zone).next_change(now);
        mode.into_iter().chain(window).min()
    }
}

/// Reads all policy files together. `preset` is the one that reads `config`; fifo reads none.
pub fn check(sources: &[Source], preset: Option<Preset>) -> Checked {
    let mut checker = Checker { sources, errors: Vec::new(), warnings: Vec::new() };
    let sched_config = checker.sched_config(preset.is_some());
    let policy = Policy {
        shares: checker.shares(sched_config.unknown_shares),
        sched_config,
        holidays: checker.holidays(),
        dedicated_time: checker.dedicated_time(),
        preset: checker.preset(preset),
        nodes: checker.nodes(),
    };
    let Checker { errors, warnings, .. } = checker;
    let policy = errors.is_empty().then_some(policy);
    Checked { policy, errors, warnings, digests: digests(sources) }
}

fn digests(sources: &[Source]) -> Vec<FileDigest> {
    let present = FILES.iter().filter_map(|name| find(sources, name));
    present
        .map(|source| {
            let sha256 = Sha256::digest(&source.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            FileDigest { file: source.name.clone(), sha256 }
        })
        .collect()
}

fn find<'s>(sources: &'s [Source], name: &str) -> Option<&'s Source> {
    sources.iter().find(|source| source.name == name)
}

struct Checker<'s> {
    sources: &'s [Source],
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'s> Checker<'s> {
    fn sched_config(&mut self, has_preset: bool) -> SchedConfig {
        self.read(SCHED_CONFIG, |bytes, findings| match bytes {
            Some(bytes) => sched_config::read(bytes, findings),
            None => {
                if !has_preset {
                    findings.about_file("no such file: the policy that PBS ships is in force");
                }
                SchedConfig::shipped()
            }
        })
    }

    fn shares(&mut self, unknown_shares: u32) -> Shares {
        let has_both = find(self.sources, RESOURCE_GROUP).is_some() && find(self.sources, RESOURCES_GROUP).is_some();
        let is_other = !has_both && find(self.sources, RESOURCES_GROUP).is_some();
        let name = if is_other { RESOURCES_GROUP } else { RESOURCE_GROUP };
        let shares = self.read(name, |bytes, findings| match bytes {
            Some(bytes) => shares::read(bytes, unknown_shares, findings),
            None => Shares::new(unknown_shares),
        });
        if has_both {
            self.read(RESOURCES_GROUP, |_, findings| {
                let message = format!("{RESOURCE_GROUP} is there as well: only one of them may be");
                findings.error(Word::of_file(RESOURCES_GROUP), message);
            });
        }
        shares
    }

    fn holidays(&mut self) -> Holidays {
        self.read(HOLIDAYS, |bytes, findings| match bytes {
            Some(bytes) => holidays::read(bytes, findings),
            None => {
                findings.about_file("no such file: it is prime at all times");
                Holidays::default()
            }
        })
    }

    fn dedicated_time(&mut self) -> DedicatedTime {
        self.read(DEDICATED_TIME, |bytes, findings| {
            bytes.map(|bytes| DedicatedTime::read(bytes, findings)).unwrap_or_default()
        })
    }

    fn preset(&mut self, preset: Option<Preset>) -> Option<PresetConfig> {
        self.read(CONFIG, |bytes, findings| {
            if preset.is_none() && bytes.is_some() {
                findings.about_file("is not read: only presets have this file");
            }
            Some(preset::read(bytes.unwrap_or_default(), preset?, findings))
        })
    }

    fn nodes(&mut self) -> Option<Vec<Node>> {
        self.read(NODES, |bytes, findings| bytes.map(|bytes| nodes::read(bytes, findings)))
    }

    /// Reads a file, if it is there, and takes its findings. A file that is too large is read as an empty one.
    fn read<T>(&mut self, name: &str, read: impl FnOnce(Option<&'s [u8]>, &mut Findings) -> T) -> T {
        let mut findings = Findings::new(name);
        let bytes = find(self.sources, name).map(|source| source.bytes.as_slice());
        let bytes = bytes.map(|bytes| if is_small(bytes, &mut findings) { bytes } else { &[] });
        let table = read(bytes, &mut findings);
        let (errors, warnings) = findings.into_sorted();
        self.errors.extend(errors);
        self.warnings.extend(warnings);
        table
    }
}

fn is_small(bytes: &[u8], findings: &mut Findings) -> bool {
    let whole = Word::of_file("");
    if bytes.len() > MOST_BYTES {
        findings.error(whole, format!("the file is larger than {MOST_BYTES} bytes, and is not read"));
        return false;
    }
    if lines::lines(bytes).take(MOST_LINES + 1).count() > MOST_LINES {
        findings.error(whole, format!("the file has more than {MOST_LINES} lines, and is not read"));
        return false;
    }
    true
}
