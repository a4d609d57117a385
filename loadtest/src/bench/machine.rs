//! What the machine itself can do, so that figures of several machines can be held against each other.

use super::{
    Bench,
    figure::{Figure, Target, quantile},
    running::bare_rate,
};
use anyhow::Result;
use std::{
    fs::File,
    hint::black_box,
    io::Write as _,
    os::unix::fs::FileExt as _,
    time::{Duration, Instant},
};

/// How often a block is synced.
const SYNCS: usize = 200;
/// The block, as long as the smallest commit is on disk.
const BLOCK: [u8; 4096] = [7; 4096];
/// Programs that are started.
const PROGRAMS: usize = 1_000;
/// Steps of the fixed loop, each of which waits for the one before.
const STEPS: u64 = 100_000_000;
/// How often the loop runs; the middle one counts.
const ROUNDS: usize = 3;

/// The limits of this machine: its disk, its starts of programs, one core.
pub fn machine(bench: &Bench) -> Result<Vec<Figure>> {
    let mut syncs = syncs(bench)?;
    let figure = |measure: &str, value, unit| Figure { measure: measure.to_owned(), value, unit, target: Target::None };
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(vec![
        figure("this machine: 4 KiB written and synced, p50", millis(quantile(&mut syncs, 0.5)), "ms"),
        figure("this machine: 4 KiB written and synced, p99", millis(quantile(&mut syncs, 0.99)), "ms"),
        figure("this machine: bare fork, exec and wait, all cores", bare_rate(PROGRAMS)?, "programs/s"),
        figure("this machine: a fixed loop, one core", millis(quantile(&mut loops(), 0.5)), "ms"),
    ])
}

/// How long each of several appended blocks takes to be on the disk under the data folders.
fn syncs(bench: &Bench) -> Result<Vec<Duration>> {
    let folder = bench.folder()?;
    let mut file = File::create(folder.path().join("synced"))?;
    // The room is there before, as RocksDB's is: only the data and its length are written.
    file.write_all(&[0; BLOCK.len() * SYNCS])?;
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS);
    for number in 0..SYNCS {
        let begin = Instant::now();
        file.write_all_at(&BLOCK, (number * BLOCK.len()) as u64)?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

/// A chain of multiplications (xorshift*), which no compiler shortens.
fn loops() -> Vec<Duration> {
    let once = |_| {
        let begin = Instant::now();
        let mut value = black_box(88_172_645_463_325_252_u64);
        for _ in 0..STEPS {
            value ^= value >> 12;
            value ^= value << 25;
            value ^= value >> 27;
            value = value.wrapping_mul(2_685_821_657_736_338_717);
        }
        black_box(value);
        begin.elapsed()
    };
    (0..ROUNDS).map(once).collect()
}
