//! Steps: components, layout, exit.

use super::submissions::{now, parse};
use muster_schemas::job::ExitStatus;
use muster_slurm::{
    environment::{ComponentFacts, defaults},
    options::{Command, values::Distribution},
    request::{Settings, step_parts},
    select::SchedulerParameters,
    steps::{
        GroupWish, MultiProgError, NodeWish, Part, Place, ProgramFile, RankError, Room, StepError, TaskEnd, World,
        appends_output, arbitrary, distribute, end_lines, exit_status, het_groups, label, layout_text, on_fewer_nodes,
        out_of_memory_line, parts, pick_nodes, step_size, waiting_lines,
    },
};
use proptest::{collection::vec, prelude::*};

/// The parts of `srun LINE` in a job with this many components.
fn parts_of(line: &str, components: u32) -> Result<Vec<Part>, StepError> {
    parts_with(line, components, SchedulerParameters::default())
}

fn parts_with(line: &str, components: u32, site: SchedulerParameters) -> Result<Vec<Part>, StepError> {
    let line = parse(Command::Srun, line);
    let groups: Vec<GroupWish<'_>> = line.groups.iter().map(GroupWish::of).collect();
    parts(&groups, components, site)
}

fn mapping(line: &str, components: u32) -> Vec<(u32, usize, String)> {
    parts_of(line, components)
        .unwrap()
        .into_iter()
        .map(|part| (part.component, part.group, part.words.join(" ")))
        .collect()
}

fn told(line: &str, components: u32) -> String {
    parts_of(line, components).unwrap_err().to_string()
}

/// SL-R-02.
#[test]
fn a_het_group_is_a_list_of_offsets_and_ranges() {
    assert_eq!(het_groups("2").unwrap().into_iter().collect::<Vec<_>>(), [2]);
    assert_eq!(het_groups("0,4").unwrap().into_iter().collect::<Vec<_>>(), [0, 4]);
    assert_eq!(het_groups("1,3-5").unwrap().into_iter().collect::<Vec<_>>(), [1, 3, 4, 5]);
    assert_eq!(mapping("--pack-group=1 a", 2), [(1, 0, "a".into())]);
}

/// SL-R-01: the first component, unless told otherwise.
#[test]
fn a_step_runs_on_the_first_component_by_default() {
    assert_eq!(mapping("hostname", 3), [(0, 0, "hostname".into())]);
}

/// SL-R-03.
#[test]
fn groups_map_to_components() {
    assert_eq!(mapping("a : b", 3), [(0, 0, "a".into()), (1, 1, "b".into())]);
    let expected = [(0, 0, "a".into()), (1, 1, "b x".into()), (2, 0, "a".into())];
    assert_eq!(mapping("--het-group=0,2 a : --het-group=1 b x", 3), expected);
}

/// SL-R-04, EX-16.
#[test]
fn a_group_without_program_uses_the_next_one() {
    let expected = [(0, 0, "printenv SLURMD_NODENAME".into()), (1, 1, "printenv SLURMD_NODENAME".into())];
    assert_eq!(mapping("--label -n2 : -n1 printenv SLURMD_NODENAME", 2), expected);
    assert_eq!(told("-n2 a : -n1", 2), "srun: fatal: No command given to execute.");
}

/// SL-R-05, EX-10, D-6.
#[test]
fn a_component_that_does_not_exist_is_refused() {
    assert_eq!(
        told("hostname : date : id", 2),
        "srun: error: Attempt to run a job step with het group value of 2, but the job allocation has maximum value of 1"
    );
    assert_eq!(
        told("--het-group=5 a", 2),
        "srun: error: Requested het-group offset exceeds highest hetjob index (5 > 1)"
    );
    assert_eq!(
        told("--het-group=0-3 a", 3),
        "srun: error: Attempt to run a job step with het group value of 3, but the job allocation has maximum value of 2"
    );
    for wrong in ["x", "1-", "3-1", "", "1,,2", "0-99999999"] {
        assert_eq!(
            told(&format!("--het-group={wrong} a"), 2),
            format!("srun: error: Invalid --het-group value: {wrong}")
        );
    }
}

/// SL-R-06, SL-R-18, SL-L-08.
#[test]
fn a_component_takes_part_once() {
    let duplicate = "srun: fatal: Duplicate het groups in single srun not supported";
    assert_eq!(told("--het-group=0 a : --het-group=0,1 b", 2), duplicate);
    assert_eq!(told("--het-group=1,1 a", 2), duplicate);
    assert_eq!(told("--het-group=1 a : b", 2), duplicate);
}

/// SL-R-06, SL-R-18: a site may allow several groups on one component.
#[test]
fn a_component_takes_part_more_than_once_where_the_site_says_so() {
    let site = SchedulerParameters { repeat_het_groups: true, ..SchedulerParameters::default() };
    let mapping = |line| -> Vec<(u32, usize)> {
        parts_with(line, 2, site).unwrap().iter().map(|part| (part.component, part.group)).collect()
    };
    assert_eq!(mapping("--het-group=0,1 a : --het-group=0 b"), [(0, 0), (0, 1), (1, 0)]);
    assert_eq!(mapping("--het-group=1 a : --het-group=1 b"), [(1, 0), (1, 1)]);
    assert_eq!(parts_with("--het-group=1,1 a", 2, site), Err(StepError::Duplicate));
    let neither = SchedulerParameters { disable_hetjob_steps: true, ..site };
    assert!(parts_with("--het-group=1 a : --het-group=1 b", 2, neither).is_ok());
    assert_eq!(parts_with("--het-group=0,1 a : --het-group=1 b", 2, neither), Err(StepError::Disabled));
}

/// SL-R-11.
#[test]
fn steps_over_several_components_can_be_switched_off() {
    let site = SchedulerParameters { disable_hetjob_steps: true, ..SchedulerParameters::default() };
    assert_eq!(parts_with("a : b", 2, site), Err(StepError::Disabled));
    assert!(parts_with("--het-group=1 a", 2, site).is_ok());
}

/// SL-R-15.
#[test]
fn a_file_of_programs_is_for_one_component() {
    let refused = "srun: fatal: --multi-prog option not supported with multiple het groups";
    assert_eq!(told("--multi-prog --het-group=0,1 file", 2), refused);
    assert!(parts_of("--multi-prog file", 2).is_ok());
}

/// SL-R-17: in a plain allocation each group is a part on nodes of its own.
#[test]
fn groups_in_a_plain_allocation_share_its_component() {
    assert_eq!(mapping("-N1 -n2 a : -N1 -n1 b", 1), [(0, 0, "a".into()), (0, 1, "b".into())]);
}

fn rooms(places: &[u32]) -> Vec<Room> {
    places.iter().enumerate().map(|(at, places)| Room { node: format!("nid{:05}", at + 1), places: *places }).collect()
}

fn layout(distribution: Distribution, places: &[u32], tasks: u32) -> Vec<Vec<u32>> {
    distribute(distribution, &rooms(places), tasks, false, 9).unwrap()
}

/// EX-03, SL-R-12, SL-O-04: cyclic and block, in each component separately; global ranks (SL-R-09).
#[test]
fn tasks_are_dealt_out_in_each_component() {
    let nodes = |first: usize| vec![format!("nid{:05}", first), format!("nid{:05}", first + 1)];
    let world = |distribution| {
        let part = |first| (nodes(first), layout(distribution, &[2, 2], 4));
        let world = World::join(&[part(1), part(3)]);
        world.tasks.iter().map(|task| format!("{}{}", label(task.rank, 8), world.nodes[task.node])).collect::<Vec<_>>()
    };
    assert_eq!(
        world(Distribution::Cyclic),
        [
            "0: nid00001",
            "1: nid00002",
            "2: nid00001",
            "3: nid00002",
            "4: nid00003",
            "5: nid00004",
            "6: nid00003",
            "7: nid00004"
        ]
    );
    assert_eq!(
        world(Distribution::Block),
        [
            "0: nid00001",
            "1: nid00001",
            "2: nid00002",
            "3: nid00002",
            "4: nid00003",
            "5: nid00003",
            "6: nid00004",
            "7: nid00004"
        ]
    );
    assert_eq!(layout(Distribution::Cyclic, &[3, 1], 4), [vec![0, 2, 3], vec![1]]);
}

/// SL-R-12: all forms.
#[test]
fn every_distribution_places_its_tasks() {
    assert_eq!(layout(Distribution::Block, &[2, 2, 2], 4), [vec![0, 1], vec![2], vec![3]]);
    assert_eq!(layout(Distribution::Cyclic, &[2, 2, 2], 4), [vec![0, 3], vec![1], vec![2]]);
    assert_eq!(layout(Distribution::Plane(2), &[4, 4], 7), [vec![0, 1, 4, 5], vec![2, 3, 6]]);
    let hosts = ["nid00002", "nid00001", "nid00002"].map(str::to_owned);
    assert_eq!(arbitrary(&rooms(&[2, 2]), &hosts, false, 9).unwrap(), [vec![1], vec![0, 2]]);
    assert_eq!(arbitrary(&rooms(&[1, 1]), &hosts, false, 9).unwrap_err(), StepError::MoreProcessors { job: 9 });
    assert_eq!(arbitrary(&rooms(&[1, 1]), &hosts, true, 9).unwrap(), [vec![1], vec![0, 2]]);
    let foreign = arbitrary(&rooms(&[2]), &hosts, false, 9).unwrap_err();
    assert_eq!(
        foreign.to_string(),
        "srun: error: Unable to create step for job 9: Requested node configuration is not available"
    );
    let parse = Distribution::parse;
    assert_eq!(parse("cyclic:block,NoPack"), Some(Distribution::Cyclic));
    assert_eq!(parse("plane=4:*:fcyclic"), Some(Distribution::Plane(4)));
    assert_eq!([parse("plane=0"), parse("block:odd"), parse("block:*:*:*"), parse("")], [None; 4]);
}

/// SL-R-22.
#[test]
fn a_step_that_does_not_fit_is_refused() {
    let refused = distribute(Distribution::Block, &rooms(&[2, 2]), 5, false, 9).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "srun: error: Unable to create step for job 9: More processors requested than permitted"
    );
    let over = distribute(Distribution::Block, &rooms(&[2, 2]), 5, true, 9).unwrap();
    assert_eq!(over, [vec![0, 1, 2], vec![3, 4]]);
    let warning = on_fewer_nodes(2, 1).1.unwrap();
    assert_eq!(warning, "srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1");
    assert_eq!(on_fewer_nodes(2, 2), (2, None));
}

fn component(tasks: &[u64]) -> ComponentFacts {
    let nodes = (1..=tasks.len()).map(|node| format!("n{node}")).collect();
    ComponentFacts { nodes, tasks: tasks.to_vec(), ..ComponentFacts::default() }
}

/// The options of each part of `srun LINE`, with variables.
fn step_settings(line: &str, components: u32, variables: &[(&str, &str)]) -> Vec<Settings> {
    let parts = parts_of(line, components).unwrap();
    let lookup = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let several = components > 1;
    let environment = |component: u32| defaults(Command::Srun, several.then_some(component), lookup);
    step_parts(&parse(Command::Srun, line), &parts, environment, &now()).unwrap()
}

/// SL-R-13, SL-R-22.
#[test]
fn a_step_takes_the_size_of_its_component() {
    let size = |line: &str| step_size(&step_settings(line, 1, &[])[0], &component(&[1, 1]));
    assert_eq!(size("x"), Ok((2, 2)));
    assert_eq!(size("-n5 x"), Ok((2, 5)));
    assert_eq!(size("-N1 x"), Ok((1, 1)));
    assert_eq!(size("-N1-3 -n2 x"), Ok((2, 2)));
    assert_eq!(size("--ntasks-per-node=3 x"), Ok((2, 6)));
    assert_eq!(size("-N3 x").unwrap_err().to_string(), "srun: error: Only allocated 2 nodes asked for 3");
}

/// SL-R-17: each group on its own nodes.
#[test]
fn the_groups_of_a_plain_allocation_have_different_nodes() {
    let nodes = ["nid00001", "nid00002"].map(str::to_owned);
    let wish = |count: usize, name: &str| {
        let named = Some(name.to_owned()).filter(|name| !name.is_empty()).into_iter().collect();
        NodeWish { count, named, ..NodeWish::default() }
    };
    let picked = |wishes: &[NodeWish]| pick_nodes(&nodes, wishes, 9);
    let named = |name: &str| vec![name.to_owned()];
    assert_eq!(picked(&[wish(1, ""), wish(1, "")]).unwrap(), [named("nid00001"), named("nid00002")]);
    assert_eq!(picked(&[wish(1, ""), wish(1, "nid00001")]).unwrap(), [named("nid00002"), named("nid00001")]);
    let overlap = picked(&[wish(1, "nid00001"), wish(1, "nid00001")]).unwrap_err().to_string();
    assert!(overlap.contains("overlaps with excluded nid00001"), "{overlap}");
    let too_many = picked(&[wish(1, ""), wish(2, "")]).unwrap_err().to_string();
    assert_eq!(
        too_many,
        "srun: error: Allocation failure of 2 nodes: job size of 2, already allocated 1 nodes to previous components."
    );
    let taken = picked(&[wish(1, "nid00001"), wish(2, "nid00002")]).unwrap_err();
    assert_eq!(taken, StepError::NodesTaken { asked: 2, allocated: 2, taken: 1 });
    assert_eq!(picked(&[wish(3, "")]).unwrap_err(), StepError::MoreNodes { allocated: 2, asked: 3 });
    let behind = picked(&[wish(1, ""), NodeWish { relative: 1, ..wish(2, "") }]).unwrap_err();
    assert_eq!(behind, StepError::MoreNodes { allocated: 1, asked: 2 }, "it may have one, whoever else takes part");
    assert!(picked(&[wish(1, "zzz")]).is_err());
    let last = NodeWish { relative: 1, ..wish(1, "") };
    assert_eq!(picked(&[last]).unwrap(), [named("nid00002")]);
    let not_first = NodeWish { excluded: named("nid00001"), ..wish(1, "") };
    assert_eq!(picked(&[not_first]).unwrap(), [named("nid00002")]);
}

/// SL-R-14.
#[test]
fn labels_are_as_wide_as_the_largest_rank() {
    assert_eq!((label(0, 11), label(10, 11)), (" 0: ".to_owned(), "10: ".to_owned()));
    assert_eq!((label(0, 10), label(0, 1), label(0, 0)), ("0: ".to_owned(), "0: ".to_owned(), "0: ".to_owned()));
}

/// SL-R-16.
#[test]
fn output_is_appended_in_steps_over_several_components() {
    assert!(appends_output(None, 2) && !appends_output(None, 1));
    assert!(!appends_output(Some(false), 2) && appends_output(Some(true), 1));
}

/// SL-R-08.
#[test]
fn a_step_that_waits_says_so() {
    assert_eq!(
        waiting_lines(7),
        [
            "srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)",
            "srun: Step created for job 7"
        ]
    );
}

fn end(node: &str, rank: u32, status: ExitStatus) -> TaskEnd {
    TaskEnd { node: node.into(), rank, status }
}

/// SL-R-23.
#[test]
fn the_ends_of_tasks_are_told_and_merged() {
    use ExitStatus::{Code, Signal};
    let ends = [
        end("nid00001", 0, Code(3)),
        end("nid00001", 1, Code(3)),
        end("nid00001", 2, Code(3)),
        end("nid00001", 4, Code(0)),
        end("nid00002", 5, Code(3)),
        end("nid00002", 6, Signal(9)),
    ];
    assert_eq!(
        end_lines(&ends, &[]),
        [
            "srun: error: nid00001: tasks 0-2: Exited with exit code 3",
            "srun: error: nid00002: task 5: Exited with exit code 3",
            "srun: error: nid00002: task 6: Killed",
        ]
    );
    assert_eq!(exit_status(&ends), ExitStatus::Signal(9));
    assert_eq!(exit_status(&ends[..3]), ExitStatus::Code(3));
    assert_eq!(exit_status(&[]), ExitStatus::Code(0));
}

/// SL-R-23: a node's message about memory concerns its tasks that were killed.
#[test]
fn tasks_that_were_killed_for_memory_are_told_as_such() {
    use ExitStatus::{Code, Signal};
    let ends = [
        end("nid00001", 0, Signal(9)),
        end("nid00001", 1, Code(137)),
        end("nid00001", 2, Code(3)),
        end("nid00002", 3, Signal(9)),
        end("nid00003", 4, Code(1)),
    ];
    assert_eq!(
        end_lines(&ends, &["nid00001", "nid00003"]),
        [
            "srun: error: nid00001: tasks 0-1: Out Of Memory",
            "srun: error: nid00001: task 2: Exited with exit code 3",
            "srun: error: nid00002: task 3: Killed",
            "srun: error: nid00003: task 4: Exited with exit code 1",
        ]
    );
    assert_eq!(exit_status(&ends), Signal(9));
    let detected = |events: &str| {
        format!("slurmstepd: error: Detected {events} in StepId=7.0. Some of the step tasks have been OOM Killed.")
    };
    assert_eq!(out_of_memory_line("7.0", "nid00001", &ends), detected("2 oom_kill events"));
    assert_eq!(out_of_memory_line("7.0", "nid00002", &ends), detected("1 oom_kill event"));
    // Only a child was killed, and the task has another status.
    assert_eq!(out_of_memory_line("7.0", "nid00003", &ends), detected("1 oom_kill event"));
}

/// SL-M-14: `sattach --layout`.
#[test]
fn the_layout_of_a_step_lists_ranks_by_node() {
    let nodes = [("n1".to_owned(), [0, 2].into_iter().collect()), ("n2".to_owned(), [1].into_iter().collect())];
    assert_eq!(
        layout_text(&nodes),
        "Job step layout:\n\t3 tasks, 2 nodes (n[1-2])\n\n\tNode 0 (n1), 2 task(s): 0 2 \n\tNode 1 (n2), 1 task(s): 1 \n"
    );
}

/// SL-R-24.
#[test]
fn a_file_gives_each_rank_its_program() {
    let file = "# comment\n0 master --ranks=%t\n1-2,4 worker %t \"of %o\"\n* other %o\n";
    let programs = ProgramFile::parse(file).unwrap().programs(6).unwrap();
    let lines: Vec<String> = programs.iter().map(|words| words.join("|")).collect();
    assert_eq!(lines, ["master|--ranks=0", "worker|1|of 0", "worker|2|of 1", "other|0", "worker|4|of 2", "other|1"]);
    let refused = |text: &str| ProgramFile::parse(text).unwrap_err();
    assert_eq!(refused("x a\n"), MultiProgError::Ranks { line: 1, text: "x".into() });
    assert_eq!(refused("0\n"), MultiProgError::NoProgram { line: 1 });
    assert_eq!(refused("0 'a\n"), MultiProgError::Quote { line: 1 });
}

fn tasks_of(text: &str, asked: Option<u32>) -> Result<u32, RankError> {
    ProgramFile::parse(text).unwrap().tasks(asked)
}

/// SL-R-24: each task has one record, and each record a task.
#[test]
fn each_task_has_one_record() {
    assert_eq!(tasks_of("# 9 none\n\n0 a\n1-2,3 b\n", Some(4)), Ok(4));
    assert_eq!(tasks_of("5 a\n", Some(2)), Err(RankError::Beyond { line: 1, rank: 5 }));
    assert_eq!(tasks_of("0 a\n1-4 a\n", Some(2)), Err(RankError::Beyond { line: 2, rank: 4 }));
    assert_eq!(tasks_of("0 a\n\n0 b\n", Some(1)), Err(RankError::Duplicate { line: 3, rank: 0 }));
    assert_eq!(tasks_of("3 a\n0-4 b\n", None), Err(RankError::Duplicate { line: 2, rank: 3 }));
    assert_eq!(tasks_of("0,0 a\n", Some(1)), Err(RankError::Duplicate { line: 1, rank: 0 }));
    assert_eq!(tasks_of("0 a\n2 b\n", Some(3)), Err(RankError::NoRecord { rank: 1 }));
    assert_eq!(tasks_of("0 a\n* b\n", Some(3)), Ok(3));
    assert_eq!(tasks_of("", Some(1)), Err(RankError::NoRecord { rank: 0 }));
    assert_eq!(ProgramFile::parse("0 a\n").unwrap().programs(2), Err(RankError::NoRecord { rank: 1 }));
}

/// SL-R-24: without a number of tasks there are as many as the file has ranks for.
#[test]
fn a_file_tells_how_many_tasks_there_are() {
    assert_eq!(tasks_of("0 a\n1-3 b\n", None), Ok(4));
    assert_eq!(tasks_of("0-1 a\n* b\n", None), Ok(2));
    assert_eq!(tasks_of("* a\n", None), Ok(1));
    assert_eq!(tasks_of("2 a\n", None), Err(RankError::NoRecord { rank: 0 }));
    assert_eq!(tasks_of("0-4294967295 a\n", None), Ok(u32::MAX));
}

/// SL-R-24: a backslash at the end of a line continues it, and the numbers of lines stay those of the file.
#[test]
fn lines_of_a_file_are_continued() {
    let programs = ProgramFile::parse("0 a \\\n b \\\n c\n1 d\\").unwrap().programs(2).unwrap();
    assert_eq!(programs, [vec!["a", "b", "c"], vec!["d"]]);
    assert_eq!(tasks_of("0 a \\\n1 b\n0 c\n", None), Err(RankError::Duplicate { line: 3, rank: 0 }));
}

/// SL-R-24: messages about errors in the file.
#[test]
fn faults_of_a_file_are_told_in_slurm_s_words() {
    let said = |fault: RankError| fault.lines("ranks").join("\n");
    let line = "Line 1 of configuration file ranks invalid";
    assert_eq!(said(RankError::Beyond { line: 1, rank: 5 }), format!("Invalid task id, 5 >= ntasks\n{line}"));
    assert_eq!(said(RankError::Duplicate { line: 1, rank: 0 }), format!("Duplicate record for task 0\n{line}"));
    let none = "Configuration file ranks invalid, no record for task id 1";
    assert_eq!(said(RankError::NoRecord { rank: 1 }), none);
}

/// SL-O-07: the groups of a step carry options like those of a job, each over the defaults of its component (SL-R-13).
#[test]
fn groups_of_a_step_carry_options() {
    let variables =
        [("SLURM_NTASKS_HET_GROUP_0", "1"), ("SLURM_NTASKS_HET_GROUP_1", "2"), ("SLURM_DISTRIBUTION", "block")];
    let all = step_settings("--het-group=0,1 -m cyclic -c2 a : --het-group=2 -n9 b", 3, &variables);
    let texts = |name: &str| all.iter().map(|settings| settings.text(name)).collect::<Vec<_>>();
    assert_eq!(texts("ntasks"), [Some("1"), Some("2"), Some("9")]);
    assert_eq!(texts("distribution"), [Some("cyclic"); 3]);
    assert_eq!(texts("cpus-per-task"), [Some("2"), Some("2"), None]);
    let sizes: Vec<_> = all.iter().map(|settings| step_size(settings, &component(&[1, 1])).unwrap()).collect();
    assert_eq!(sizes, [(2, 1), (2, 2), (2, 9)]);
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![Just(Distribution::Block), Just(Distribution::Cyclic), (1u32..5).prop_map(Distribution::Plane)]
}

proptest! {
    /// SL-R-12: every task has one place, no node has more tasks than places, and none is idle if there are enough.
    #[test]
    fn every_task_has_one_place(how in distribution(), places in vec(1u32..6, 1..7), tasks in 1u32..40, over: bool) {
        let Ok(nodes) = distribute(how, &rooms(&places), tasks, over, 1) else {
            prop_assert!(!over && places.iter().sum::<u32>() < tasks);
            return Ok(());
        };
        let mut all: Vec<u32> = nodes.concat();
        prop_assert!(nodes.iter().all(|tasks| tasks.is_sorted()));
        all.sort_unstable();
        prop_assert_eq!(all, (0..tasks).collect::<Vec<_>>());
        for (node, places) in nodes.iter().zip(&places) {
            prop_assert!(over || node.len() <= *places as usize);
            let all_busy = !matches!(how, Distribution::Plane(_)) && tasks as usize >= nodes.len();
            prop_assert!(!all_busy || !node.is_empty());
        }
    }

    /// SL-R-09, SL-E-06: ranks are unique and contiguous, part after part; local numbers count on each node.
    #[test]
    fn ranks_are_one_world(sizes in vec((1usize..4, 1u32..9), 1..5), shared: bool) {
        let parts: Vec<(Vec<String>, Vec<Vec<u32>>)> = sizes
            .iter()
            .enumerate()
            .map(|(part, (nodes, tasks))| {
                let prefix = if shared { 0 } else { part };
                let names = (0..*nodes).map(|node| format!("p{prefix}n{node}")).collect();
                (names, distribute(Distribution::Cyclic, &rooms(&vec![9; *nodes]), *tasks, false, 1).unwrap())
            })
            .collect();
        let world = World::join(&parts);
        prop_assert_eq!(world.tasks.len() as u32, sizes.iter().map(|(_, tasks)| tasks).sum::<u32>());
        prop_assert!(world.tasks.iter().enumerate().all(|(at, task)| task.rank as usize == at));
        prop_assert!(world.tasks.is_sorted_by_key(|task| (task.part, task.in_part)));
        for node in 0..world.nodes.len() {
            let local: Vec<u32> = world.tasks.iter().filter(|task| task.node == node).map(|task: &Place| task.local).collect();
            prop_assert_eq!(local.clone(), (0..local.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn any_file_of_programs_is_read_or_refused(text in "([0-9*,-]{0,5} [a-z%'\\\\]{0,6}\n){0,4}|\\PC{0,20}", tasks in 0u32..9) {
        if let Ok(file) = ProgramFile::parse(&text) {
            let programs = file.programs(tasks).map(|programs| programs.len() as u32);
            prop_assert_eq!(programs, file.tasks(Some(tasks)));
        }
        let _ = het_groups(&text);
    }
}
