//! Telling the ledger how busy the node is, for policies that choose nodes by their load.

use muster_bus::LedgerClient;
use muster_schemas::{
    command::Command,
    event::{Actor, TraceContext},
};
use std::{
    io::{self, ErrorKind},
    path::PathBuf,
    time::Duration,
};
use tokio::time::MissedTickBehavior;

/// A file with a load is shorter.
const MOST_BYTES: usize = 4096;
/// No machine is busier, in processes.
const MOST_LOAD: f64 = 1e9;

/// Reports for as long as it is awaited. A load that cannot be read or told is left out: the next one is newer.
pub async fn tell(ledger: LedgerClient, node: String, file: PathBuf, every: Duration) {
    let mut due = tokio::time::interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_told = false;
    loop {
        due.tick().await;
        let load_millionths = match read(&file).await {
            Ok(load) => load,
            Err(error) => {
                if !is_told {
                    tracing::warn!(node, file = %file.display(), %error, "the load of the node cannot be read");
                }
                is_told = true;
                continue;
            }
        };
        is_told = false;
        let command = Command::NodeLoadMeasured { load_millionths };
        if let Err(error) = ledger.command(Actor::Executor(node.clone()), TraceContext::default(), command).await {
            tracing::debug!(node, %error, "the load of the node has not reached the ledger");
        }
    }
}

async fn read(file: &PathBuf) -> io::Result<u64> {
    use tokio::io::AsyncReadExt as _;
    let mut text = String::new();
    let file = tokio::fs::File::open(file).await?;
    file.take(MOST_BYTES as u64).read_to_string(&mut text).await?;
    let why = "expected a load such as 0.25 as the first word";
    millionths(&text).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, why))
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
}
