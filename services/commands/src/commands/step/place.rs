//! Where the tasks of a step go: nodes are filled in their order, or get equal parts.

use crate::{cli::StepRunOptions, exit::Failure};
use muster_schemas::{
    resources::IndexSet,
    steps::{StepGroup, StepPlace, StepProgram},
    views::{JobDetail, RunNodeView},
};

/// Groups of tasks, one for each component that gets tasks.
pub fn groups(detail: &JobDetail, options: &StepRunOptions) -> Result<Vec<StepGroup>, Failure> {
    let run = detail.runs.iter().rev().find(|run| run.ended.is_none());
    let run = run.ok_or_else(|| Failure::failed(format!("job {} does not run", detail.job.id)))?;
    let counts = counts(&run.nodes, options)?;
    let mut groups: Vec<StepGroup> = Vec::new();
    let mut next = 0;
    for (node, count) in run.nodes.iter().zip(counts).filter(|(_, count)| *count > 0) {
        let ranks = IndexSet::from_range(next, next + count - 1);
        next += count;
        let place = StepPlace { node: node.node.clone(), ranks: ranks.clone(), cores: None };
        match groups.last_mut().filter(|group| group.component == node.component) {
            Some(group) => {
                group.places.push(place);
                group.programs[0].ranks = group.programs[0].ranks.union(&ranks);
            }
            None => groups.push(StepGroup {
                component: node.component,
                places: vec![place],
                cpus_per_task: options.cpus_per_task,
                binding: options.bind.binding(),
                programs: vec![StepProgram { ranks, argv: options.words.clone() }],
                gpus: options.gpus.wanted(),
                gpu_binding: options.gpus.binding(),
                container: options.container.clone(),
                ..StepGroup::default()
            }),
        }
    }
    Ok(groups)
}

/// How many tasks go to each node.
fn counts(nodes: &[RunNodeView], options: &StepRunOptions) -> Result<Vec<u32>, Failure> {
    let room = |node: &RunNodeView| u32::try_from(node.cores.len()).unwrap_or(u32::MAX) / options.cpus_per_task;
    if let Some(wanted) = options.nodes {
        if wanted as usize > nodes.len() {
            return Err(Failure::failed(format!("{wanted} nodes are wanted, the job has {}", nodes.len())));
        }
        let tasks = options.ntasks.unwrap_or(wanted);
        if tasks < wanted {
            return Err(Failure::failed(format!("{tasks} tasks cannot be on {wanted} nodes")));
        }
        let (each, more) = (tasks / wanted, tasks % wanted);
        return Ok((0..wanted).map(|at| each + u32::from(at < more)).collect());
    }
    let mut left = options.ntasks.unwrap_or_else(|| nodes.iter().map(room).sum());
    let counts: Vec<u32> = nodes
        .iter()
        .map(|node| {
            let here = room(node).min(left);
            left -= here;
            here
        })
        .collect();
    match (left, counts.iter().sum::<u32>()) {
        (0, 1..) => Ok(counts),
        (_, most) => {
            Err(Failure::failed(format!("the job has room for {most} tasks of {} cores", options.cpus_per_task)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: StepRunOptions,
    }

    fn options(line: &str) -> StepRunOptions {
        Line::try_parse_from(format!("run {line} 1 -- true").split_whitespace())
            .unwrap_or_else(|e| panic!("{e}"))
            .options
    }

    fn nodes(cores: &[u32]) -> Vec<RunNodeView> {
        let node = |(at, cores): (usize, &u32)| RunNodeView {
            node: format!("n{at}"),
            component: 0,
            cores: IndexSet::first_n(*cores),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
            exit: None,
        };
        cores.iter().enumerate().map(node).collect()
    }

    #[test]
    fn nodes_are_filled_in_order_or_get_equal_parts() {
        let counted = |line: &str, cores: &[u32]| counts(&nodes(cores), &options(line)).map_err(|error| error.message);
        assert_eq!(counted("", &[4, 2]), Ok(vec![4, 2]));
        assert_eq!(counted("-n 5", &[4, 2]), Ok(vec![4, 1]));
        assert_eq!(counted("-n 2 -c 2", &[4, 2]), Ok(vec![2, 0]));
        assert_eq!(counted("-N 2", &[4, 2]), Ok(vec![1, 1]));
        assert_eq!(counted("-N 2 -n 5", &[4, 2]), Ok(vec![3, 2]));
        assert_eq!(counted("-n 7", &[4, 2]), Err("the job has room for 6 tasks of 1 cores".into()));
        assert_eq!(counted("-N 3", &[4, 2]), Err("3 nodes are wanted, the job has 2".into()));
        assert_eq!(counted("-N 2 -n 1", &[4, 2]), Err("1 tasks cannot be on 2 nodes".into()));
    }
}
