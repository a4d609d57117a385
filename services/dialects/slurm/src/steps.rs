//! Steps: their components, the layout of their tasks, and the messages of `srun` at the end (SL-R).

mod binding;
mod ends;
mod gpus;
mod groups;
mod launch;
mod layout;
mod mpi;
mod multi_prog;
mod plan;
mod prolog;
mod streams;

use crate::hostlist;
pub use binding::{binding, binding_help, binding_variables};
pub use ends::{TaskEnd, end_lines, exit_status, out_of_memory_line, worst};
pub use groups::{GroupWish, Part, StepError, het_groups, parts};
pub use launch::{Launcher, allocation_lines, launch_lines, nodes_of_ranks, programs_by_node};
pub use layout::{
    NodeWish, Place, Room, World, arbitrary, distribute, group_size, on_fewer_nodes, pick_nodes, step_size,
};
pub use mpi::{DEFAULT_MPI, mpi_list, process_management};
pub use multi_prog::{MultiProgError, ProgramFile, RankError};
use muster_schemas::resources::IndexSet;
pub use plan::{PlanError, PlannedPart, StepPlan, plan};
pub use streams::{Fed, Input, Shown, Streams};

/// The prefix of each line of a task's output with `--label`: the rank, right-aligned to the width of the largest one
/// (SL-R-14).
pub fn label(rank: u32, tasks: u32) -> String {
    let width = tasks.saturating_sub(1).to_string().len();
    format!("{rank:>width$}: ")
}

/// The output of `sattach --layout`: the nodes of a step and the ranks of the tasks on each.
pub fn layout_text(nodes: &[(String, IndexSet)]) -> String {
    let tasks: u64 = nodes.iter().map(|(_, ranks)| ranks.len()).sum();
    let names: Vec<String> = nodes.iter().map(|(node, _)| node.clone()).collect();
    let mut text =
        format!("Job step layout:\n\t{tasks} tasks, {} nodes ({})\n\n", nodes.len(), hostlist::compress(&names));
    for (place, (node, ranks)) in nodes.iter().enumerate() {
        let shown: String = ranks.iter().map(|rank| format!("{rank} ")).collect();
        text.push_str(&format!("\tNode {place} ({node}), {} task(s): {shown}\n", ranks.len()));
    }
    text
}

/// Whether to append to output files: as `--open-mode` says, else in steps over several components (SL-R-16).
pub fn appends_output(open_mode: Option<bool>, components: usize) -> bool {
    open_mode.unwrap_or(components > 1)
}

/// The messages of `srun` when the resources of a step are in use, and when it finally has them (SL-R-08).
pub fn waiting_lines(job: u64) -> [String; 2] {
    [
        format!("srun: Job {job} step creation temporarily disabled, retrying (Requested nodes are busy)"),
        format!("srun: Step created for job {job}"),
    ]
}
