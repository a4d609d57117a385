//! What a script that `sbatch` submitted has at the end of its output if it was ended (SL-C-30).

use super::variables::is_of_slurm;
use jiff::tz::TimeZone;
use muster_executor::Ending;
use muster_schemas::{event::StopReason, node::LaunchOrder, time::Timestamp};
use muster_slurm::messages::{EndCause, end_note};

/// The line; `None` if the job is not one of Slurm's, or ended for another reason.
pub fn note(order: &LaunchOrder, ending: Ending, at: Timestamp) -> Option<String> {
    if !is_of_slurm(order) {
        return None;
    }
    let cause = match ending {
        Ending::Walltime | Ending::Ordered(StopReason::Walltime) => EndCause::TimeLimit,
        Ending::Ordered(StopReason::Cancelled | StopReason::CancelledAtOnce) => EndCause::Cancelled,
        Ending::Ordered(StopReason::Requeued) => EndCause::Requeue,
        Ending::Ordered(StopReason::Preempted) => EndCause::Preemption,
        Ending::Ordered(StopReason::NodeLost) => EndCause::NodeFailure,
        Ending::Ordered(_) => return None,
    };
    let node = order.nodes.get(order.node_index as usize)?;
    Some(end_note(&format!("JOB {}", order.number()), &node.name, at, &TimeZone::system(), cause))
}
