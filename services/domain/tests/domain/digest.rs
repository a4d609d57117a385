//! The digest of a state: the same on every machine, and different for different states.

use crate::support::*;
use muster_domain::State;
use muster_schemas::{JobId, event::Record, job::DependencyKind, resources::IndexSet};

fn some_history() -> Cluster {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(2, 2));
    cluster.submit("bob", array(IndexSet::from_range(3, 9), Some(2)));
    cluster.submit("ada", after(DependencyKind::Succeeded, first));
    cluster.start(first, &["node1", "node3"], 2);
    cluster.run_through(JobId::task(2, 5), 3);
    cluster
}

fn folded(log: &[Record]) -> State {
    let mut state = State::new();
    log.iter().for_each(|record| state.apply(record).unwrap());
    state
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checkpoints contain digests, so the digest of a state must not change between releases: an older log would no longer
/// verify (M-DOM-2).
#[test]
fn the_digest_of_a_known_history_stays() {
    let digest = folded(&some_history().log).digest();
    assert_eq!(hex(digest), "f93153431638f26373914eb129ce363c4eb4a2627bef44e3e493f90848e57472");
}

#[test]
fn every_record_changes_the_digest() {
    let cluster = some_history();
    let mut state = State::new();
    let mut digests = std::collections::BTreeSet::from([state.digest()]);
    for record in &cluster.log {
        state.apply(record).unwrap();
        assert!(digests.insert(state.digest()), "record {} left the digest as it was", record.sequence);
    }
}

#[test]
fn a_damaged_snapshot_is_never_taken_for_a_state() {
    let bytes = some_history().state.to_snapshot_bytes().expect("a small state");
    for cut in [0, 1, 9, 10, bytes.len() / 2, bytes.len() - 1] {
        assert!(State::from_snapshot_bytes(&bytes[..cut]).is_err(), "cut to {cut} bytes");
    }
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(State::from_snapshot_bytes(&damaged).is_err(), "a bit of byte {at} flipped");
    }
}
