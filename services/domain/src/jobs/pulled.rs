//! Jobs for nodes whose agent asks for its orders (OAR-K-05): each runs on one such node, without steps or shells.

use crate::validate::{invalid, number, shown};
use muster_schemas::{
    agent::is_sum,
    command::Refusal,
    job::{Component, JobSpec, Program, StageIn},
    resources::{Alternative, Request},
};

/// The largest archive of staged files: 1 TiB.
const MAX_ARCHIVE_BYTES: u64 = 1 << 40;

/// Whether a job asks for such a node.
pub(crate) fn is_pulled(alternatives: &[Alternative]) -> bool {
    alternatives.iter().flat_map(|one| &one.requests).any(Request::asks_for_pull)
}

/// Checks what such a job asks for.
pub(crate) fn job(spec: &JobSpec) -> Result<(), Refusal> {
    spec.components.iter().filter_map(|one| one.launch.stage_in.as_ref()).try_for_each(stage_in)?;
    if !spec.components.iter().any(|component| is_pulled(&component.alternatives)) {
        return Ok(());
    }
    if spec.components.len() > 1 {
        return invalid("components: a job for a node whose agent pulls has only one".into());
    }
    if !spec.copies.is_empty() {
        return invalid("copies: files of a job for a node whose agent pulls come by launch.stage_in".into());
    }
    spec.components.iter().try_for_each(component)
}

fn component(component: &Component) -> Result<(), Refusal> {
    if component.launch.program == Program::None {
        return invalid("launch.program: a job for a node whose agent pulls has a command, and no shell".into());
    }
    if component.launch.container.is_some() || component.launch.stdin.is_some() {
        return invalid(
            "launch: a job for a node whose agent pulls has neither a container nor a file as its input".into(),
        );
    }
    Ok(())
}

fn stage_in(archive: &StageIn) -> Result<(), Refusal> {
    if !is_sum(&archive.sum) {
        return invalid(format!("launch.stage_in.sum: `{}` is not a BLAKE3 hash", shown(&archive.sum)));
    }
    number("launch.stage_in.bytes", archive.bytes, 1, MAX_ARCHIVE_BYTES)
}
