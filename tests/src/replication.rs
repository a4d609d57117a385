//! Several ledgers on a model of the stream of rounds, in one thread, under a seeded scheduler.
//!
//! The ledgers are the production code: decide loop, log in RocksDB, what follows and what claims. The stream is a model
//! that keeps JetStream's promises and has its faults: acknowledgements get lost, appends are stored later than they are
//! given up, reads are old, elections take four to nine seconds, renewals vanish, old messages are dropped. Ledgers stop,
//! pause, lose the stream, hand over, and come back with an old copy of their data. If it is asked to, the stream breaks its promises
//! too: it loses its end, or everything, or goes another way.
//!
//! After every step it checks that the stream has one line of reigns, that nothing of a reign follows its end, that every ledger's log is a prefix of it, that
//! nothing is answered before it stands in both or while its fate is unknown, that whoever names the end of the log names
//! the real one, and that no command gets two answers. At the end the faults stop: all ledgers then have the same log, with
//! every acknowledged command in it once.

mod hosts;
mod stream;
mod terms;
mod truth;

pub use stream::{BrokenPromise, Sabotage};
pub use terms::{Failure, Options, Report};

use hosts::Hosts;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use stream::{Shared, Stream};
use terms::{BEGIN, SECOND};

/// Runs the simulation with a seed.
///
/// # Errors
/// The first rule that was broken.
pub fn run(seed: u64, options: Options) -> Result<Report, Failure> {
    let mut random = SmallRng::seed_from_u64(seed);
    let stream = Stream::new(BEGIN, SmallRng::seed_from_u64(random.random()), options.sabotage);
    let shared = Shared::new(stream);
    let failure = |at_micros, what| Failure { seed, at_micros, what };
    let mut hosts =
        Hosts::new(&shared, SmallRng::seed_from_u64(random.random()), options).map_err(|what| failure(0, what))?;
    let troubled_until = BEGIN.plus_micros(options.troubled_seconds * SECOND);
    let breaks_at = BEGIN.plus_micros(options.troubled_seconds * SECOND / 2);
    let mut now = BEGIN;
    let mut broken = options.broken;
    while now < troubled_until {
        now = now.plus_micros(random.random_range(1_000..25_000));
        if let Some(promise) = broken.filter(|_| now >= breaks_at) {
            hosts.note_broken(shared.with(|stream| stream.break_promise(promise, now)));
            broken = None;
        }
        hosts.trouble(now);
        hosts.step(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    }
    hosts.calm_down(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    // Longer than a lease lasts; and, if the stream does not end where it did, than the doubts of a leader and of a claim.
    let calm_seconds = if options.broken.is_some() { 80 } else { 12 };
    let end = now.plus_micros(calm_seconds * SECOND);
    while now < end {
        now = now.plus_micros(random.random_range(5_000..40_000));
        hosts.step(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    }
    hosts.check_end().map_err(|what| failure(now.micros_since(BEGIN), what))
}
