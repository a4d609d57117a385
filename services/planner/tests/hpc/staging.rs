//! Staging and plans.

use crate::{
    driver::queued,
    world::{World, cores},
};
use muster_schemas::{
    filter::FilterExit,
    job::{ComponentStaging, WaitReason},
};

const OK: FilterExit = FilterExit::Code(0);

fn staging(creates: &[&str], uses: &[&str]) -> ComponentStaging {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let directives = vec!["#DW line".into()];
    ComponentStaging { directives, creates: names(creates), uses: names(uses), ..ComponentStaging::default() }
}

/// SL-B-08: a job with files still to be staged in is not planned and delays nobody; it starts once all are there. The
/// world checks that nothing is proposed that the ledger refuses.
#[test]
fn what_is_still_to_be_staged_in_is_not_planned() {
    let mut world = World::new(1, queued());
    world.set_staging();
    let uses = world.submit_staged(&cores(2, 2), staging(&[], &["alpha"]), vec![(1, OK)]);
    let other = world.submit(&cores(2, 2));
    world.to(10);
    assert!(world.is_running(other));
    assert_eq!(world.reason(uses), Some(WaitReason::BufferMissing("alpha".into())));
    let makes = world.submit_staged(&cores(2, 2), staging(&["alpha"], &[]), vec![(5, OK)]);
    world.to(12);
    assert_eq!(world.reason(makes), Some(WaitReason::StagingIn(0)));
    assert_eq!(world.reason(uses), Some(WaitReason::BufferMissing("alpha".into())));
    world.to(299);
    assert_eq!(world.state().buffers().len(), 1);
    world.to(300);
    assert!(world.is_running(uses) && !world.is_running(makes), "it has waited longer");
    world.to(600);
    assert!(world.is_running(makes));
    assert_eq!(world.chain(uses).map(|chain| chain.spec.kind), Some(muster_schemas::filter::FilterKind::StageOut));
    world.to(601);
    assert!(world.chain(uses).is_none());
}

/// SL-B-08: during the staging others go first, even later ones.
#[test]
fn others_start_while_files_are_brought_in() {
    let mut world = World::new(1, queued());
    world.set_staging();
    let staged = world.submit_staged(&cores(2, 2), staging(&[], &[]), vec![(30, OK)]);
    world.to(1);
    let other = world.submit(&cores(2, 2));
    world.to(20);
    assert!(world.is_running(other) && !world.is_running(staged));
    world.to(300);
    assert!(!world.is_running(staged), "the other began at 1 s");
    world.to(301);
    assert!(world.is_running(staged));
}
