//! Where a job runs or ran, and the names of its output files.

use crate::{flavour::Flavour, value::show_kilobytes};
use muster_schemas::{
    ids::JobId,
    output,
    views::{JobDetail, RunNodeView, RunView},
};

/// `exec_host`: `n1/0*2+n2/0*2` in PBS Pro, `n1/0-1+n2/0-1` in TORQUE.
pub(super) fn exec_host(run: &RunView, flavour: Flavour) -> String {
    let one = |node: &RunNodeView| match flavour {
        Flavour::PbsPro if node.cores.len() <= 1 => format!("{}/0", node.node),
        Flavour::PbsPro => format!("{}/0*{}", node.node, node.cores.len()),
        Flavour::Torque => format!("{}/{}", node.node, node.cores),
    };
    run.nodes.iter().map(one).collect::<Vec<_>>().join("+")
}

/// `exec_vnode`: `(n1:ncpus=2:mem=4194304kb)+(n2:ncpus=2)`.
pub(super) fn exec_vnode(run: &RunView) -> String {
    let one = |node: &RunNodeView| {
        let memory = (node.memory_bytes > 0).then(|| format!(":mem={}", show_kilobytes(node.memory_bytes)));
        let gpus = (!node.gpus.is_empty()).then(|| format!(":ngpus={}", node.gpus.len()));
        let more = format!("{}{}", memory.unwrap_or_default(), gpus.unwrap_or_default());
        format!("({}:ncpus={}{more})", node.node, node.cores.len())
    };
    run.nodes.iter().map(one).collect::<Vec<_>>().join("+")
}

/// An output file, as `host:path`. In the name of an array's file the index stays open.
pub(super) fn output_path(detail: &JobDetail, pattern: Option<&str>, host: &str) -> String {
    let job = &detail.job;
    let is_array = job.array.is_some();
    let own = job.own_number().to_string();
    let node = job.nodes.first().cloned().unwrap_or_default();
    let meaning = |letter: char| match letter {
        'a' if is_array => Some("^array_index^".to_owned()),
        'J' => Some(own.clone()),
        'N' => Some(node.clone()),
        't' | 'n' => Some("0".to_owned()),
        letter => output::of_job(letter, job.id, &job.name, &job.owner),
    };
    let default = output::default_pattern(JobId { index: job.id.index.or(is_array.then_some(0)), ..job.id });
    let path = output::expand(pattern.unwrap_or(default), meaning);
    let path = match path.starts_with('/') {
        true => path,
        false => format!("{}/{path}", detail.spec.working_directory.trim_end_matches('/')),
    };
    if host.is_empty() { path } else { format!("{host}:{path}") }
}
