//! Orders to copy files.

use crate::{copies::CopyStage, jobs::Job, orders::OrderSeed, state::State};
use muster_schemas::{
    JobId, NodeId, Sequence,
    copies::{CopyDirection, CopyOrder},
    node::NodeOrder,
};

/// The order to copy the files of a job, if a node is to copy some.
pub(crate) fn begin(state: &State, id: JobId) -> Option<(NodeId, OrderSeed)> {
    let (node, copy, _) = state.job(id)?.copying()?;
    Some((node, OrderSeed::Copy { job: id, copy }))
}

/// The order to end a copying that a job which is over does not need.
pub(crate) fn drop(state: &State, id: JobId) -> Option<(NodeId, OrderSeed)> {
    match state.job(id)?.copies.as_ref()?.stage {
        CopyStage::Dropped { node, copy } => Some((node, OrderSeed::StopCopy { job: id, copy })),
        _ => None,
    }
}

/// The orders to copy files that a node may have missed.
pub(crate) fn missed(state: &State, node: NodeId) -> Vec<OrderSeed> {
    let busy = state.index.copying.get(&node).into_iter().flatten();
    busy.filter_map(|id| begin(state, *id)).map(|(_, order)| order).collect()
}

/// The order itself; `None` if nobody waits for this copying any more.
pub(crate) fn order(state: &State, id: JobId, copy: Sequence) -> Option<NodeOrder> {
    let job: &Job = state.job(id)?;
    let (_, _, direction) = job.copying().filter(|(_, number, _)| *number == copy)?;
    let settings = state.staging_settings();
    Some(NodeOrder::Copy(Box::new(CopyOrder {
        job: id,
        copy,
        run: job.run(),
        owner: (*job.owner).clone(),
        direction,
        files: job.file_copies()?.of(direction).to_vec(),
        limit_seconds: match direction {
            CopyDirection::In => settings.stage_in_timeout_seconds,
            CopyDirection::Out => settings.stage_out_timeout_seconds,
        },
        limit_bytes: settings.copy_limit_bytes,
    })))
}
