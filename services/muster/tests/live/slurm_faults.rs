//! Faults around steps, and what is passed to steps from where they are launched.

use crate::{
    slurm::Site,
    slurm_steps::{reference, sorted},
    system::{Output, System},
};
use std::io::{BufRead as _, BufReader};

/// An allocation of two nodes with four tasks: job 1.
fn allocated() -> Site {
    let site = reference();
    site.ok("salloc --no-shell -N2 -n4 --ntasks-per-node=2");
    site
}

fn in_job(site: &Site, line: &str) -> Output {
    site.run(&format!("export SLURM_JOB_ID=1; {line}"))
}

/// SL-R-26: a step does not outlive a command that can no longer attend to it, and leaves its resources to the next.
#[test]
fn nothing_that_srun_has_launched_outlives_its_error() {
    let site = allocated();
    let says_for_ever = "sh -c 'while :; do echo x; sleep 0.01; done'";
    for (line, status) in [
        (format!("srun {says_for_ever} | head -2 >/dev/null; exit ${{PIPESTATUS[0]}}"), 141),
        ("srun -i /nosuch cat".to_owned(), 1),
        ("srun -o /nodir/x sleep 100".to_owned(), 1),
        (format!("srun {says_for_ever} >/dev/full"), 1),
    ] {
        let said = in_job(&site, &format!("bash -c {}", quoted(&line)));
        assert_eq!(said.status, status, "{line}: {}", said.stderr);
        site.system.wait_until(&format!("the step of `{line}` is over"), || site.ok("squeue -s -h").is_empty());
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The connection to the gateway does not take descriptors that the caller has closed.
#[test]
fn closed_standard_streams_are_like_empty_ones() {
    let site = allocated();
    let Output { status, stdout, stderr } = in_job(&site, "srun -n1 -N1 cat <&-");
    assert_eq!((status, stdout.as_str()), (0, ""), "{stderr}");
    let request = r"printf 'GET /v1/nodes HTTP/1.1\r\nhost: x\r\n\r\n'";
    let said = in_job(&site, &format!("srun -n1 -N1 sh -c {} >&-", quoted(request)));
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
}

/// SL-R-23: a failure to print messages does not affect the outcome of the work.
#[test]
fn an_error_stream_that_takes_nothing_does_not_end_a_command() {
    let site = allocated();
    for (line, status) in [
        ("srun -n1 -N1 sh -c 'echo x; exit 3' 2>/dev/full", 3),
        ("scancel -v 1 2>/dev/full", 0),
        ("scontrol show job 999 2>/dev/full", 1),
        ("sbatch --nosuch 2>/dev/full", 255),
    ] {
        assert_eq!(in_job(&site, line).status, status, "{line}");
    }
}

/// SL-R-14: even without labels lines stay whole, however their tasks write them.
#[test]
fn tasks_that_write_in_blocks_do_not_cut_lines_of_each_other() {
    let site = reference();
    let cut = "sort | uniq -c | awk '$1 != 4' | wc -l";
    assert_eq!(site.ok(&format!("srun -n4 seq 1 30000 | {cut}")).trim(), "0");
    assert_eq!(site.ok(&format!("srun -n4 -o several seq 1 30000 && cat several | {cut}")).trim(), "0");
    assert_eq!(site.ok("srun -n2 printf no-end"), "no-endno-end", "no byte is added");
}

/// SL-R-14: with eleven tasks on eight CPUs.
#[test]
fn labels_are_right_aligned_to_the_largest_rank() {
    let site = allocated();
    let said = in_job(&site, "srun -l -n11 -O echo x");
    let lines: Vec<String> = (0..11).map(|rank| format!("{rank:>2}: x\n")).collect();
    let mut shown: Vec<&str> = said.stdout.split_inclusive('\n').collect();
    shown.sort_unstable();
    assert_eq!(shown, lines, "{}", said.stderr);
}

/// SL-R-23: the highest status counts, and equal ends are one line for each node.
#[test]
fn ends_are_told_by_node_and_the_highest_status_counts() {
    let site = allocated();
    let Output { status, stderr, .. } = in_job(&site, "srun sh -c 'exit $((SLURM_PROCID * 2))'");
    assert_eq!(status, 6);
    let expected = [
        "srun: error: nid00001: task 1: Exited with exit code 2",
        "srun: error: nid00002: task 2: Exited with exit code 4",
        "srun: error: nid00002: task 3: Exited with exit code 6",
    ];
    assert_eq!(sorted(&stderr), expected);
    let Output { status, stderr, .. } = in_job(&site, "srun sh -c '[ $SLURM_PROCID = 0 ] && exit 5; kill -9 $$'");
    assert_eq!(status, 137);
    let expected = [
        "srun: error: nid00001: task 0: Exited with exit code 5",
        "srun: error: nid00001: task 1: Killed",
        "srun: error: nid00002: tasks 2-3: Killed",
    ];
    assert_eq!(sorted(&stderr), expected);
}

/// SL-C-30: the termination of the tasks alone does not tell the reason.
#[test]
fn a_step_that_has_used_up_its_time_says_so() {
    let site = allocated();
    let Output { status, stderr, .. } = in_job(&site, "srun -n1 -N1 -t 0:01 sleep 100");
    assert_eq!(status, 143);
    let (first, second) = stderr.split_once('\n').expect("two lines");
    assert!(first.starts_with("slurmstepd: error: *** STEP 1.0 ON nid00001 CANCELLED AT "), "{stderr}");
    assert!(first.ends_with(" DUE TO TIME LIMIT ***"), "{stderr}");
    assert_eq!(second, "srun: error: nid00001: task 0: Terminated\n");
}

/// SL-C-30: the same for a step that somebody ended, or whose job was ended.
#[test]
fn a_step_that_was_cancelled_says_so() {
    let site = allocated();
    for (wish, number) in [("scancel 1.0", 0), ("scancel 1", 1)] {
        let line = format!("srun -n1 -N1 sh -c '{wish} & exec sleep 100'");
        let Output { status, stderr, .. } = in_job(&site, &line);
        assert_eq!(status, 143, "{stderr}");
        let note =
            stderr.lines().find(|line| line.contains("***")).unwrap_or_else(|| panic!("no line tells why: {stderr}"));
        let start = format!("slurmstepd: error: *** STEP 1.{number} ON nid00001 CANCELLED AT 20");
        assert!(note.starts_with(&start) && note.ends_with(" ***") && !note.contains("DUE"), "{stderr}");
        assert!(stderr.ends_with("srun: error: nid00001: task 0: Terminated\n"), "{stderr}");
    }
}

/// SL-R-23, SL-A-09: the kernel reports why it killed a task. That does not count for a later step that fails.
#[test]
fn a_step_that_has_used_too_much_memory_says_so() {
    let site = reference();
    if !site.system.log().contains("memory limits: cgroup") {
        return muster_surroundings::skipped("this machine has no control group that limits memory");
    }
    site.ok("salloc --no-shell -n1 --mem=60");
    // `tail` buffers a line without end; the limit keeps it from doing so for ever.
    let Output { status, stderr, .. } = in_job(&site, "ulimit -v 1000000; srun -t 1 tail /dev/zero");
    assert_eq!(status, 137, "{stderr}");
    let expected = [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.",
        "srun: error: nid00001: task 0: Out Of Memory",
    ];
    assert_eq!(sorted(&stderr), expected);
    assert_eq!(in_job(&site, "srun sh -c 'exit 3'").status, 3);
    assert_eq!(
        site.ok("sacct -n -P -j 1 -o JobID,State,ExitCode | grep '[.]'"),
        "1.0|OUT_OF_MEMORY|0:125\n1.1|FAILED|3:0\n"
    );
}

/// SL-R-08: no task starts before all parts are granted.
#[test]
fn a_step_over_components_starts_as_a_whole() {
    let site = reference();
    site.ok("salloc --no-shell -n1 : -n1");
    let mut holder = site.spawn("srun --jobid=1 --het-group=1 sh -c 'echo held; until [ -e go ]; do sleep 0.02; done'");
    let mut held = String::new();
    BufReader::new(holder.stdout.as_mut().expect("it is piped")).read_line(&mut held).expect("it is text");
    assert_eq!(held, "held\n");
    let mut waiting = site.spawn("srun --jobid=1 --het-group=0,1 sh -c 'echo > started.$SLURM_PROCID'");
    let mut told = BufReader::new(waiting.stderr.take().expect("it is piped")).lines();
    let line = told.next().expect("it says that it waits").expect("it is text");
    assert_eq!(line, "srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)");
    assert_eq!(site.run("ls started.*").stdout, "", "a part has begun");
    site.ok("touch go");
    assert!(waiting.wait().expect("it ends").success());
    assert_eq!(told.next().expect("a line").expect("text"), "srun: Step created for job 1");
    assert_eq!(site.ok("ls started.*"), "started.0\nstarted.1\n");
    assert!(holder.wait().expect("it ends").success());
}

/// SL-E-07, SL-E-04: a step on another component does not see the sizes of the script's component.
#[test]
fn a_step_on_one_component_sees_the_sizes_of_that_component() {
    let site = reference();
    let script = "#!/bin/sh\n#SBATCH -n2 --ntasks-per-node=2 -c2 --mem-per-cpu=10\n#SBATCH hetjob\n#SBATCH -n1\n\
        env > script\nsrun --het-group=1 env > step\nsrun --het-group=1 --export=ALL,SLURM_CPUS_PER_TASK=7 env > given\n";
    site.system.write("job.sh", script);
    site.ok("sbatch -W job.sh");
    let of = |file: &str, name: &str| site.run(&format!("sed -n 's/^{name}=//p' {file}")).stdout;
    for (name, own) in [("SLURM_CPUS_PER_TASK", "2\n"), ("SLURM_MEM_PER_CPU", "10\n"), ("SLURM_NTASKS_PER_NODE", "2\n")]
    {
        assert_eq!(of("script", name), own);
        assert_eq!(of("step", name), "", "{name}");
    }
    assert_eq!((of("script", "SLURM_NTASKS"), of("step", "SLURM_NTASKS")), ("2\n".into(), "1\n".into()));
    assert_eq!(of("script", "SLURM_JOB_NODELIST"), "nid00001\n");
    assert_eq!(of("step", "SLURM_JOB_NODELIST"), "nid00002\n");
    assert_eq!(of("given", "SLURM_CPUS_PER_TASK"), "7\n", "what is asked for by name is given");
}

/// SL-R-25: the streams of a task belong to its user, who may open them by name.
#[test]
fn streams_of_tasks_belong_to_their_user() {
    let system = System::start_for_others();
    let line =
        "read word; echo $word > /dev/stdout; echo to error > /dev/stderr; head -c0 < /dev/stdin && echo is open";
    let said = system.run_as_nobody(&["slurm", "srun", "-D", "/", "sh", "-c", line]);
    assert_eq!(said.stderr, "to error\n");
    assert_eq!((said.status, said.stdout.as_str()), (0, "\nis open\n"));
}

/// SL-C-13: a job has the time that is left until its deadline, and each partition of a list must exist.
#[test]
fn a_job_with_a_deadline_has_the_time_that_is_left() {
    let site = reference();
    for line in ["-p p2", "--time-min 5 -t 20", "-n1 --time-min 5 -t 20 : -n1"] {
        let job = site.ok(&format!("sbatch --parsable -W --deadline now+10minutes -o none {line} --wrap true"));
        let told = site.ok(&format!("sacct -X -n -P -j {}+0,{} -o TimelimitRaw,State", job.trim(), job.trim()));
        let first = told.lines().next().and_then(|line| line.split_once('|')).expect("a line");
        assert!(first.0.parse::<u32>().is_ok_and(|minutes| (9..=10).contains(&minutes)), "{line}: {told}");
        assert_eq!(first.1, "COMPLETED", "{line}");
    }
    for (line, name) in [("-p debug,DUMMY", "DUMMY"), ("-p DUMMY,p2", "DUMMY"), ("-p debug : -p nope", "nope")] {
        let unknown = format!(
            "sbatch: error: invalid partition specified: {name}\n\
             sbatch: error: Batch job submission failed: Invalid partition name specified\n"
        );
        assert_eq!(site.fails(&format!("sbatch {line} --wrap true")), (1, unknown), "{line}");
    }
    let (status, told) = site.fails("sbatch --mem 5000 --wrap true");
    assert!(status == 1 && told.contains("emory"), "no node has as much: {told}");
}

/// SL-C-31: a cancelled job that is still ending cannot be cancelled again, and no confirmation is asked for.
#[test]
fn what_is_cancelled_already_is_over_for_scancel() {
    let site = Site::start();
    site.ok("sbatch --wrap \"trap '' TERM; touch begun; while :; do sleep 0.1; done\"");
    site.system.wait_until("the job has begun", || site.system.path("begun").exists());
    site.ok("scancel 1");
    site.system.wait_until("it is ending", || site.ok("squeue -h -j 1 -o %t") == "CG\n");
    let again = site.run("echo y | scancel --interactive 1");
    let told = "scancel: error: Kill job error on job id 1: Invalid job id specified\n";
    assert_eq!((again.status, again.stdout.as_str(), again.stderr.as_str()), (1, "", told));
}

/// SL-E-13: soft limits, as selected by `--propagate`.
#[test]
fn soft_limits_are_carried_to_jobs_and_steps() {
    let site = reference();
    let limited = |line: &str| site.ok(&format!("ulimit -S -n 345; ulimit -S -c 0; {line}"));
    limited(
        "sbatch -W -o batch --wrap 'ulimit -S -n; ulimit -S -c; ulimit -S -n 234; srun -n1 sh -c \"ulimit -S -n\"'",
    );
    assert_eq!(site.ok("cat batch"), "345\n0\n234\n");
    assert_eq!(limited("srun -n1 sh -c 'ulimit -S -n'"), "345\n");
    let usual = limited("srun -n1 --propagate=NONE sh -c 'ulimit -S -n'");
    assert_ne!(usual, "345\n");
    assert_eq!(limited("srun -n1 --propagate=core sh -c 'ulimit -S -n'"), usual);
    assert_eq!(limited("srun -n1 --propagate=CORE,NOFILE sh -c 'ulimit -S -n'"), "345\n");
    // Limits above those of the node are not granted.
    let hard: u64 = site.ok("ulimit -H -n").trim().parse().expect("a number");
    let low = site.ok(&format!("ulimit -S -n {hard}; srun -n1 sh -c 'ulimit -H -n'"));
    assert!(low.trim().parse::<u64>().is_ok_and(|low| low <= hard), "{low}");
}

/// SL-E-11: the exit statuses for errors, and `--immediate` with a time.
#[test]
fn exit_statuses_for_errors_are_chosen_by_variables() {
    let site = allocated();
    for line in ["srun --jobid=abc true", "srun --multi-prog /nosuch", "salloc -p nosuch true", "srun -p nosuch true"] {
        assert_eq!(site.run(&format!("export SLURM_EXIT_ERROR=77; {line}")).status, 77, "{line}");
    }
    assert_eq!(in_job(&site, "export SLURM_EXIT_ERROR=77; srun -o /nodir/x true").status, 77);
    let mut holder = site.spawn("srun --jobid=1 sh -c 'echo held; until [ -e go ]; do sleep 0.02; done'");
    let mut held = String::new();
    BufReader::new(holder.stdout.as_mut().expect("it is piped")).read_line(&mut held).expect("it is text");
    let busy = "srun: error: Unable to create step for job 1: Requested nodes are busy\n";
    let said = in_job(&site, "export SLURM_EXIT_IMMEDIATE=42 SLURM_EXIT_ERROR=77; srun -I true");
    assert_eq!((said.status, said.stderr.as_str()), (42, busy));
    let waiting = site.spawn("srun --jobid=1 -n1 -N1 --immediate=60 echo had");
    site.ok("touch go");
    let waited = waiting.wait_with_output().expect("it ends");
    assert_eq!((waited.status.code(), waited.stdout.as_slice()), (Some(0), b"had\n".as_slice()));
    assert!(holder.wait().expect("it ends").success());
}

/// SL-R-21: without a local terminal there is no remote one.
#[test]
fn a_terminal_is_asked_for_where_there_is_none() {
    let site = allocated();
    let said = in_job(&site, "printf abc | srun -n1 -N1 --pty cat");
    assert_eq!((said.status, said.stdout.as_str()), (0, "abc"));
    assert_eq!(
        said.stderr,
        "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n\
         srun: error: Not using a pseudo-terminal, disregarding --pty option\n"
    );
}

/// SL-M-12, SL-M-13: a destination that is a folder, one that looks like an option, and one relative to the working directory.
#[test]
fn copies_find_their_place() {
    let site = allocated();
    site.system.write("text", "words\n");
    site.ok("mkdir folder");
    for destination in ["folder", "folder/"] {
        assert_eq!(in_job(&site, &format!("sbcast -f text $PWD/{destination}")).status, 0, "{destination}");
        assert_eq!(site.ok("ls folder; cat folder/text; rm folder/text"), "text\nwords\n", "{destination}");
    }
    let said = in_job(&site, "touch folder/text; sbcast text folder");
    assert!(said.status == 1 && said.stderr.contains("File exists"), "{}", said.stderr);
    assert_eq!(in_job(&site, "sbcast text -- -y").status, 0);
    assert_eq!(site.ok("cat ./-y; ls -a | grep -c sbcast || true"), "words\n0\n");
    site.system.write("program", "#!/bin/sh\necho ran $0\n");
    let said = in_job(&site, "chmod +x program; srun -n1 -N1 --bcast=copied ./program");
    assert!(said.status == 0 && said.stdout.ends_with("/copied\n"), "{}{}", said.stdout, said.stderr);
}

/// SL-C-21: the command of an allocation may launch steps if a token is needed; what runs in the job does not get it.
#[test]
fn the_command_of_an_allocation_keeps_the_token() {
    let site = reference();
    assert_eq!(site.ok("MUSTER_TOKEN=secret salloc -Q -n1 printenv MUSTER_TOKEN"), "secret\n");
    assert_eq!(site.run("MUSTER_TOKEN=secret srun -n1 printenv MUSTER_TOKEN").stdout, "");
}
