//! The place of jobs with several components in the order.

use crate::{backfill_passes, pass, reference_cluster, some, together};
use muster_schemas::{
    JobId,
    policy::{ComponentPriority, ComponentStart, Components},
};

/// The order in which two jobs start that both need all nodes: one whose components have the priorities 9 and 2,
/// then one with 5.
fn order(priority: ComponentPriority) -> Vec<u64> {
    order_with(priority, 5)
}

/// The same, with this priority of the second job.
fn order_with(priority: ComponentPriority, of_plain: i64) -> Vec<u64> {
    order_of([9, 2], priority, of_plain)
}

/// The same, with these priorities of the components.
fn order_of(components: [i64; 2], priority: ComponentPriority, of_plain: i64) -> Vec<u64> {
    let mut policy = backfill_passes();
    policy.backfill.components = Components { start: ComponentStart::AnyPass, priority, ..Components::default() };
    let mut world = reference_cluster(&policy);
    let mut several = together([some(6, "default", 10), some(6, "default", 10)]);
    several.components[0].priority = Some(components[0]);
    several.components[1].priority = Some(components[1]);
    world.submit(several);
    let mut plain = some(12, "default", 10);
    plain.components[0].priority = Some(of_plain);
    world.submit(plain);
    let mut started = Vec::new();
    while let [job] = pass(&mut world).0[..] {
        started.push(job.number);
        world.wait(600);
        world.end(job);
    }
    started
}

/// SL-P-14
#[test]
fn the_policy_says_which_priority_a_job_of_several_components_has() {
    let (several, plain) = (JobId::job(1).number, JobId::job(3).number);
    assert_eq!(order(ComponentPriority::First), [several, plain]);
    assert_eq!(order(ComponentPriority::Max), [several, plain]);
    assert_eq!(order(ComponentPriority::Avg), [several, plain], "5, and it came first");
    assert_eq!(order_with(ComponentPriority::Avg, 6), [plain, several], "5 are less");
    assert_eq!(order(ComponentPriority::Min), [plain, several]);
    assert_eq!(order_of([2, 9], ComponentPriority::First, 5), [plain, several]);
    assert_eq!(order_of([2, 9], ComponentPriority::Max, 5), [several, plain], "9 is that of its second component");
}
