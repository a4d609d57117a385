//! Telling the ledger how busy the node is, for policies that choose nodes by their load, and what its runs have used, for
//! policies that charge it (PBS-FS-05).

use crate::containment::{Containment, Hierarchies};
use muster_bus::LedgerClient;
use muster_schemas::{
    PartId,
    command::Command,
    event::{Actor, TraceContext},
    node::PartUse,
};
use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::MissedTickBehavior;

/// A file with a load is shorter.
const MOST_BYTES: usize = 4096;
/// No machine is busier, in processes.
const MOST_LOAD: f64 = 1e9;

/// What tells how busy a node is.
pub struct Files {
    /// Its first word is the load.
    pub load: PathBuf,
    /// Its first line has the times of the processors.
    pub times: PathBuf,
}

/// The processor time that the runs of a node have used so far: where runs have groups, these tell it.
fn used(hierarchies: &Hierarchies) -> Vec<PartUse> {
    let of_part = |part: PartId| {
        let cpu = Containment::existing(hierarchies, part).accounts().cpu?;
        Some(PartUse { part, cpu_seconds: cpu.total_micros / 1_000_000 })
    };
    hierarchies.parts_with_groups().into_iter().filter_map(of_part).collect()
}

/// Reports for as long as it is awaited. A load that cannot be read or told is left out: the next one is newer.
pub async fn tell(ledger: LedgerClient, node: String, files: Files, hierarchies: Hierarchies, every: Duration) {
    let mut due = tokio::time::interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_told = false;
    let mut before: Option<Times> = None;
    loop {
        due.tick().await;
        // System time is not known where there is no such file; most policies need none.
        let times = first_bytes(&files.times).await.ok().and_then(|text| Times::read(&text));
        let system_percent = before.zip(times).and_then(|(before, now)| now.system_percent_since(before));
        before = times;
        let load_millionths = match load(&files.load).await {
            Ok(load) => load,
            Err(error) => {
                if !is_told {
                    tracing::warn!(node, file = %files.load.display(), %error, "the load of the node cannot be read");
                }
                is_told = true;
                continue;
            }
        };
        is_told = false;
        let asked = hierarchies.clone();
        let used = tokio::task::spawn_blocking(move || used(&asked)).await.unwrap_or_default();
        let command = Command::NodeLoadMeasured { load_millionths, system_percent, used };
        if let Err(error) = ledger.command(Actor::Executor(node.clone()), TraceContext::default(), command).await {
            tracing::debug!(node, %error, "the load of the node has not reached the ledger");
        }
    }
}

async fn load(file: &Path) -> io::Result<u64> {
    let why = "expected a load such as 0.25 as the first word";
    millionths(&first_bytes(file).await?).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, why))
}

async fn first_bytes(file: &Path) -> io::Result<String> {
    use tokio::io::AsyncReadExt as _;
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(file).await?;
    file.take(MOST_BYTES as u64).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// How long the processors have been busy since the node's start, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    all: u64,
    system: u64,
}

impl Times {
    /// From a text such as `/proc/stat`. Its first line is `cpu` and the ticks of user, nice, system, idle, iowait, irq, softirq and
    /// steal; what guests use is part of user and nice. Interrupts are the system's, too.
    fn read(text: &str) -> Option<Self> {
        let words = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let kinds: Vec<u64> = words.map_while(|word| word.parse().ok()).take(8).collect();
        if kinds.len() < 4 {
            return None;
        }
        let at = |kind: usize| kinds.get(kind).copied().unwrap_or(0);
        let all = kinds.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(Self { all, system: at(2).saturating_add(at(5)).saturating_add(at(6)) })
    }

    /// The system's part of the time between two readings, in whole percent; `None` if no time has passed.
    fn system_percent_since(self, before: Self) -> Option<u32> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let system = self.system.checked_sub(before.system)?.min(all);
        u32::try_from(u128::from(system) * 100 / u128::from(all)).ok()
    }
}

/// The load in a file such as `/proc/loadavg`: its first word.
fn millionths(text: &str) -> Option<u64> {
    let word = text.split_ascii_whitespace().next()?;
    // Neither words such as `inf` nor signs.
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let load = word.parse::<f64>().ok().filter(|load| is_plain && *load <= MOST_LOAD)?;
    Some((load * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_load() {
        let load = |text| millionths(text);
        assert_eq!(load("0.20 0.18 0.12 1/80 11206\n"), Some(200_000));
        assert_eq!([load("64"), load("0.00 x"), load("12.345678")], [Some(64_000_000), Some(0), Some(12_345_678)]);
        for text in ["", " \n", "-1", "+1", "inf", "NaN", "1e3", "1,5", "9999999999", "0x1"] {
            assert_eq!(load(text), None, "{text:?}");
        }
    }

    /// PBS-P-13
    #[test]
    fn the_part_of_the_system_is_that_of_the_time_between_two_readings() {
        let read = Times::read;
        let before = read("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4\n").expect("times");
        let after = read("cpu  130 0 90 900 50 10 20 0 99 0\n").expect("times");
        assert_eq!(after.system_percent_since(before), Some(35), "70 of 200 ticks");
        assert_eq!([after.system_percent_since(after), before.system_percent_since(after)], [None, None]);
        assert_eq!(read("cpu 1 2 3 4"), Some(Times { all: 10, system: 3 }));
        for text in ["", "cpu", "cpu 1 2 3", "cpu0 1 2 3 4", "intr 1 2 3 4 5", "cpu a b c d"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
