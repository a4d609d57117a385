//! The answers of this dialect to the services' questions.

use crate::{
    NAME,
    environment::{self, of_launch},
    job_id::PbsJobId,
    notes,
};
use jiff::Zoned;
use muster_dialect::{Dialect, Ending, Host, Variables, login};
use muster_schemas::{event::StopReason, node::LaunchOrder, notify::NotifyItem};
use nix::sys::resource::Resource;

/// PBS as services see it.
#[derive(Clone, Copy, Debug)]
pub struct Pbs;

impl Dialect for Pbs {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Those of the job, and those of a login if it was submitted without its submitter's environment.
    fn variables(&self, order: &LaunchOrder, host: &Host<'_>) -> Variables {
        let is_login_wanted = order.environment.get(environment::LOADS_LOGIN).is_some_and(|value| value == "1");
        let mut variables = if is_login_wanted { login::variables(order, host) } else { Variables::default() };
        variables.set.extend(of_launch(order));
        variables
    }

    fn node_file(&self, order: &LaunchOrder) -> Option<(&'static str, String)> {
        Some(("PBS_NODEFILE", environment::node_file(order)))
    }

    fn soft_limits(&self, order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
        environment::soft_limits(order)
    }

    fn end_note(&self, order: &LaunchOrder, ending: Ending, _at: &Zoned) -> Option<String> {
        match ending {
            Ending::Walltime | Ending::Ordered(StopReason::Walltime) => order.walltime_seconds.map(notes::walltime),
            Ending::Ordered(_) => None,
        }
    }

    /// `PBS JOB 123`. The name of the server is not known here.
    fn mail_subject(&self, item: &NotifyItem) -> Option<String> {
        Some(format!("PBS JOB {}", PbsJobId::of(item.job, item.task_outcomes.is_some(), "")))
    }
}
