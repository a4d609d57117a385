//! Batch jobs as Slurm's users see them: record, variables, files, mail, messages, end; and terminals.

use crate::{
    slurm::Site,
    slurm_steps::{nothing_runs, reference},
    system::Output,
};
use muster_client::{Client, Endpoint};
use muster_schemas::{CommandId, JobId};
use nix::{
    pty::{Winsize, openpty},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

/// The keys of a record, line by line.
fn names(record: &str) -> Vec<Vec<&str>> {
    record
        .lines()
        .map(|line| line.split_whitespace().filter_map(|pair| Some(pair.split_once('=')?.0)).collect())
        .filter(|names: &Vec<&str>| !names.is_empty())
        .collect()
}

/// EX-01, SL-I-10, SL-I-11, SL-C-34
#[test]
fn a_job_with_components_is_shown_as_in_the_worked_example() {
    let site = reference();
    site.system.write(
        "new.sh",
        "#!/bin/bash\n\
         #SBATCH -J foo --cpus-per-task=2 --mem-per-cpu=16 --ntasks=1 -t 5\n\
         #SBATCH hetjob\n\
         #SBATCH --cpus-per-task=1 --mem-per-cpu=10 --ntasks=4 --ntasks-per-node=2\n\
         sleep 1000\n",
    );
    assert_eq!(site.ok("sbatch new.sh"), "Submitted batch job 1\n");
    site.system.wait_for_state("1", "running");
    assert_eq!(
        site.ok("squeue -h -o '%i %P %j %t %D %R'"),
        "1+0 debug foo R 1 nid00001\n1+1 debug foo R 2 nid[00002-00003]\n"
    );
    let shown = site.ok("scontrol show job 1+1");
    let lines = [
        "JobId HetJobId HetJobOffset JobName",
        "HetJobIdSet",
        "UserId GroupId MCS_label",
        "Priority Nice Account QOS",
        "JobState Reason Dependency",
        "Requeue Restarts BatchFlag Reboot ExitCode",
        "RunTime TimeLimit TimeMin",
        "SubmitTime EligibleTime",
        "AccrueTime",
        "StartTime EndTime Deadline",
        "SuspendTime SecsPreSuspend LastSchedEval Scheduler",
        "Partition AllocNode:Sid",
        "ReqNodeList ExcNodeList",
        "NodeList",
        "BatchHost",
        "NumNodes NumCPUs NumTasks CPUs/Task ReqB:S:C:T",
        "TRES",
        "Socks/Node NtasksPerN:B:S:C CoreSpec",
        "MinCPUsNode MinMemoryCPU MinTmpDiskNode",
        "Features DelayBoot",
        "OverSubscribe Contiguous Licenses Network",
        "Command",
        "WorkDir",
        "StdErr",
        "StdIn",
        "StdOut",
    ];
    let expected: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    assert_eq!(names(&shown), expected, "{shown}");
    for pair in [
        "JobId=2 HetJobId=1 HetJobOffset=1 JobName=foo",
        "HetJobIdSet=1-2",
        "MCS_label=N/A",
        "JobState=RUNNING Reason=None Dependency=(null)",
        "Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0",
        "TimeLimit=00:05:00 TimeMin=N/A",
        "Deadline=N/A",
        "SuspendTime=None SecsPreSuspend=0",
        "Scheduler=Backfill",
        "Partition=debug",
        "ReqNodeList=(null) ExcNodeList=(null)",
        "NodeList=nid[00002-00003]",
        "BatchHost=nid00002",
        "NumNodes=2 NumCPUs=4 NumTasks=4 CPUs/Task=1 ReqB:S:C:T=0:0:*:*",
        "TRES=cpu=4,mem=40M,node=2,billing=4",
        "Socks/Node=* NtasksPerN:B:S:C=2:0:*:* CoreSpec=*",
        "MinCPUsNode=2 MinMemoryCPU=10M MinTmpDiskNode=0",
        "Features=(null) DelayBoot=00:00:00",
        "OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)",
        "StdIn=/dev/null",
    ] {
        assert!(shown.contains(pair), "{pair} is missing:\n{shown}");
    }
    assert!(shown.lines().any(|line| line.starts_with("   StdOut=/") && line.ends_with("/slurm-2.out")), "{shown}");
    let all = site.ok("scontrol show job 1");
    assert!(all.contains("\n\nJobId=2 HetJobId=1 HetJobOffset=1 "), "{all}");
    assert_eq!(site.fails("scontrol show job 1+9"), (1, "Job 1+9 not found\n".to_owned()));
    site.ok("scancel 1");
    site.is_over("1");
    assert_eq!(site.ok("ls slurm-*.out"), "slurm-1.out\n");
}

/// EX-18: SL-O-01, SL-O-02
#[test]
fn options_are_carried_to_the_next_component_as_in_the_worked_example() {
    let site = reference();
    site.ok(
        "sbatch -H -A abc --comment=cmt -J nm -t 17 --mem=100 -p p2 -C gamma -n2 -c2 --nice=7 -x nid00002 -o oo.%j \
             -m cyclic --mail-type=ALL -L ansys --no-requeue : -n1 --wrap date",
    );
    let shown = site.ok("scontrol -o show job 1+1");
    for pair in [
        "Account=abc",
        "Comment=cmt",
        "JobName=nm",
        "TimeLimit=00:17:00",
        "MinMemoryNode=100M",
        "Nice=7",
        "ExcNodeList=nid00002",
        "Requeue=0",
        "Partition=debug",
        "Features=(null)",
        "NumTasks=1",
        "CPUs/Task=1",
        "Licenses=(null)",
    ] {
        assert!(shown.contains(&format!(" {pair} ")), "{pair} is missing:\n{shown}");
    }
    assert!(shown.contains("/oo.2") && !shown.contains("MailType"), "{shown}");
    let first = site.ok("scontrol -o show job 1+0");
    assert!(first.contains(" Partition=p2 ") && first.contains(" Features=gamma "), "{first}");
    site.ok("scancel 1");
}

/// SL-E-08
#[test]
fn a_plain_batch_job_has_all_its_variables() {
    let site = reference();
    site.system.write("job.sh", "#!/bin/sh\nenv | grep -E '^(SLURM|TMPDIR=)' | sort\necho pid=$$\n");
    site.ok(
        "env -u TMPDIR sbatch -W -N2 -n4 -c2 --ntasks-per-node=2 --mem=100 -m cyclic -L ansys:2 -J named -A abc job.sh",
    );
    let said = site.system.read("slurm-1.out");
    let value = |name: &str| {
        let found = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("{name} is missing:\n{said}")).to_owned()
    };
    for (name, expected) in [
        ("SLURM_JOB_ID", "1"),
        ("SLURM_JOBID", "1"),
        ("SLURM_JOB_NAME", "named"),
        ("SLURM_JOB_ACCOUNT", "abc"),
        ("SLURM_JOB_QOS", "normal"),
        ("SLURM_JOB_PARTITION", "debug"),
        ("SLURM_JOB_NODELIST", "nid[00001-00002]"),
        ("SLURM_NODELIST", "nid[00001-00002]"),
        ("SLURM_JOB_NUM_NODES", "2"),
        ("SLURM_NNODES", "2"),
        ("SLURM_JOB_CPUS_PER_NODE", "4(x2)"),
        ("SLURM_CPUS_ON_NODE", "4"),
        ("SLURM_TASKS_PER_NODE", "2(x2)"),
        ("SLURM_CLUSTER_NAME", "alpha"),
        ("SLURM_PROCID", "0"),
        ("SLURM_LOCALID", "0"),
        ("SLURM_NODEID", "0"),
        ("SLURM_GTIDS", "0"),
        ("SLURM_PRIO_PROCESS", "0"),
        ("SLURMD_NODENAME", "nid00001"),
        ("SLURM_NTASKS", "4"),
        ("SLURM_NPROCS", "4"),
        ("SLURM_CPUS_PER_TASK", "2"),
        ("SLURM_NTASKS_PER_NODE", "2"),
        ("SLURM_MEM_PER_NODE", "100"),
        ("SLURM_DISTRIBUTION", "cyclic"),
        ("SLURM_JOB_LICENSES", "ansys:2"),
        ("TMPDIR", "/tmp"),
    ] {
        assert_eq!(value(name), expected, "{name}\n{said}");
    }
    let user = site.ok("id -un; id -u; id -g");
    let of_user = [value("SLURM_JOB_USER"), value("SLURM_JOB_UID"), value("SLURM_JOB_GID")];
    assert_eq!(user.lines().collect::<Vec<_>>(), of_user);
    assert_eq!(format!("{}\n", value("SLURM_SUBMIT_HOST")), site.ok("uname -n"));
    assert_eq!(format!("{}\n", value("SLURM_SUBMIT_DIR")), site.ok("pwd -P"));
    assert_eq!(value("SLURM_TASK_PID"), value("pid"));
    let [start, end] =
        ["SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME"].map(|name| value(name).parse::<u64>().expect(name));
    assert_eq!(end - start, 1800);
    for absent in ["SLURM_RESTART_COUNT", "SLURM_HET_SIZE", "SLURM_ARRAY_JOB_ID", "SLURM_JOB_RESERVATION"] {
        assert!(!said.contains(absent), "{absent}\n{said}");
    }
}

/// SL-E-03, SL-E-08, SL-E-09: the CPUs of the job on each node, which can be more than its tasks need; even in a job
/// submitted from within another.
#[test]
fn a_script_is_told_the_cpus_of_every_node() {
    let site = Site::start();
    let told = |options: &str, name: &str| {
        site.ok(&format!("sbatch -W -o told {options} --wrap 'printenv {name}'"));
        site.system.read("told")
    };
    assert_eq!(told("-N3 --exclusive -n3", "SLURM_JOB_CPUS_PER_NODE"), "4(x3)\n");
    assert_eq!(told("-N2 -n3", "SLURM_JOB_CPUS_PER_NODE SLURM_TASKS_PER_NODE"), "2,1\n2,1\n");
    let names = "SLURM_JOB_CPUS_PER_NODE SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0 SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1";
    assert_eq!(told("-N2 --exclusive : -N2 -n3", names), "4(x2)\n4(x2)\n2,1\n");
    let inner = "sbatch -W -N1 -n2 -o inner --wrap \"printenv SLURM_JOB_CPUS_PER_NODE\"";
    site.ok(&format!("sbatch -W -N2 --exclusive --wrap '{inner}'"));
    assert_eq!(site.system.read("inner"), "2\n");
}

/// SL-E-08, SL-C-14, SL-C-37
#[test]
fn a_script_that_runs_again_knows_how_often_it_did_and_has_files_of_its_own() {
    let site = reference();
    site.ok(
        "sbatch -J 'a b' -o 'o%r.%5j.%x.%N.%n.%t.%s.%u.%q.%%' --wrap 'echo count=$SLURM_RESTART_COUNT; sleep 1000'",
    );
    let user = site.ok("id -un");
    let said =
        |restarts: u32| site.system.read(&format!("o{restarts}.00001.a b.nid00001.0.0.batch.{}.%q.%", user.trim()));
    site.system.wait_until("it runs", || said(0) == "count=\n");
    site.ok("scontrol requeue 1");
    site.system.wait_until("it waits", || site.ok("squeue -h -j 1 -o '%t %r'") == "PD BeginTime\n");
    site.ok("scontrol update jobid=1 starttime=now");
    site.system.wait_until("it runs again", || said(1) == "count=1\n");
    site.ok("scancel 1");
    site.is_over("1");
    // A backslash turns all patterns off; an array has its numbers, in any width.
    site.ok("sbatch -W -o 'back\\%j' --wrap 'echo plain'");
    assert_eq!(site.system.read("back%j"), "plain\n");
    site.ok("sbatch -W -a 13 -o 'of%A.%3a.%b' -e none --wrap 'echo task; echo lost >&2'");
    assert_eq!(site.system.read("of3.013.3"), "task\n");
}

/// SL-C-30: the time limit.
#[test]
fn a_script_that_reaches_its_time_limit_says_so() {
    let site = Site::with("[[queues]]\nname = \"short\"\ndefault_walltime_seconds = 2\n");
    site.ok("sbatch -p short --wrap 'sleep 1000'");
    site.is_over("1");
    let said = site.system.read("slurm-1.out");
    let last = said.lines().last().unwrap_or_default();
    let start = "slurmstepd: error: *** JOB 1 ON node1 CANCELLED AT 20";
    assert!(last.starts_with(start) && last.ends_with(" DUE TO TIME LIMIT ***"), "{said}");
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o State,ExitCode"), "TIMEOUT|0:0\n");
}

/// SL-C-13: `--signal` is for steps, or with `B:` for the batch script.
#[test]
fn a_signal_ahead_of_the_time_limit_is_for_steps_or_for_the_script() {
    let site = Site::with("[[queues]]\nname = \"short\"\ndefault_walltime_seconds = 6\n");
    let loops = "while :; do sleep 0.05; done";
    site.system.write(
        "ahead.sh",
        &format!(
            "#!/bin/sh\ntrap 'echo script' USR1\n\
             srun sh -c 'trap \"echo step; exit 0\" USR1; {loops}' &\n{loops}\n"
        ),
    );
    site.ok("sbatch -p short --signal=USR1@3 ahead.sh && sbatch -p short --signal=B:USR1@3 ahead.sh");
    site.is_over("1");
    site.is_over("2");
    let said = |job: u32| {
        let said = site.system.read(&format!("slurm-{job}.out"));
        said.lines().filter(|line| matches!(*line, "step" | "script")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said(1), ["step"]);
    assert!(said(2).contains(&"script".to_owned()), "{:?}", said(2));
}

/// SL-C-30: with `-b` a signal is for the script alone, otherwise for the steps.
#[test]
fn a_signal_is_for_the_script_the_steps_or_both() {
    let site = Site::start();
    let tells = |who: &str, then: &str| {
        format!("trap 'echo {who} heard' USR1; echo {who} ready; {then}while :; do sleep 0.05; done")
    };
    site.system.write("child.sh", &format!("#!/bin/sh\n{}\n", tells("child", "")));
    site.system.write("step.sh", &format!("#!/bin/sh\n{}\n", tells("step", "")));
    site.system.write("job.sh", &format!("#!/bin/sh\n{}\n", tells("script", "sh child.sh & srun sh step.sh & ")));
    let heard = |options: &str, expected: &[&str]| {
        let job = site.ok("sbatch --parsable job.sh").trim().to_owned();
        let said = || site.system.read(&format!("slurm-{job}.out"));
        site.system.wait_until("all are ready", || said().matches("ready").count() == 3);
        site.ok(&format!("scancel -s USR1 {options} {job}"));
        site.system.wait_until(&format!("{expected:?} heard it: {options}"), || {
            expected.iter().all(|who| said().contains(&format!("{who} heard")))
        });
        site.ok(&format!("scancel {job}"));
        site.is_over(&job);
        assert_eq!(said().matches("heard").count(), expected.len(), "{options}: {}", said());
    };
    heard("-b", &["script"]);
    heard("", &["step"]);
}

/// A job whose processes were sent SIGSTOP is stopped, keeps its CPUs, and runs again after SIGCONT. Accounting has no such
/// state.
#[test]
fn a_job_that_was_stopped_by_a_signal_is_shown_as_stopped() {
    let site = Site::start();
    site.system
        .write("job.sh", "#!/bin/sh\n#SBATCH -n1\nsrun sh -c 'while :; do date +%s%N > tick; sleep 0.05; done'\n");
    let job = site.ok("sbatch --parsable job.sh").trim().to_owned();
    site.system.wait_until("the step runs", || site.system.path("tick").exists());
    let state = || site.ok(&format!("squeue -h -j {job} -o '%t %T'"));
    let cpus = || site.ok("sinfo -h -n node1 -o %C");
    let (at_first, running) = (cpus(), state());
    assert_eq!(running, "R RUNNING\n");
    site.ok(&format!("scancel -s STOP {job}"));
    assert_eq!(state(), "ST STOPPED\n");
    assert!(site.ok(&format!("scontrol show job {job}")).contains("JobState=STOPPED "));
    assert_eq!(
        site.ok(&format!("squeue -h -t R -j {job} -o %i")),
        format!("{job}\n"),
        "its state is still a kind of running"
    );
    assert_eq!((cpus(), site.ok(&format!("sacct -n -X -P -j {job} -o State"))), (at_first, "RUNNING\n".to_owned()));
    let tick = || site.system.read("tick");
    // Its processes really stand still: what they write does not change while another program runs.
    site.system.wait_until("it stands still", || {
        let before = tick();
        site.ok("srun -n1 sleep 0.3");
        tick() == before
    });
    let before = tick();
    site.ok(&format!("scancel -s CONT {job}"));
    assert_eq!(state(), "R RUNNING\n");
    site.system.wait_until("it goes on", || tick() != before);
    site.ok(&format!("scancel -b -s STOP {job}"));
    assert_eq!(state(), "ST STOPPED\n", "the script alone was sent it");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job);
}

/// SL-M-15
#[test]
fn a_cancelled_component_loses_its_tasks_of_a_step_and_the_others_go_on() {
    let site = reference();
    site.ok("salloc --no-shell -n1 : -n1");
    let loops = "echo ready; while :; do echo on $SLURM_PROCID > on.$SLURM_PROCID; sleep 0.05; done";
    let mut step = site.spawn(&format!("srun --jobid=1 --het-group=0,1 sh -c '{loops}'"));
    let mut output = BufReader::new(step.stdout.take().expect("it is piped")).lines();
    for _ in 0..2 {
        assert_eq!(output.next().expect("a line").expect("text"), "ready");
    }
    site.ok("scancel 1+1");
    // If the first has appeared twice, the other has appeared too if it lives.
    let other_lives =
        "rm -f on.1; for i in 1 2; do rm -f on.0; until [ -e on.0 ]; do sleep 0.02; done; done; [ -e on.1 ]";
    site.system.wait_until("only the other task goes on", || site.run(other_lives).status != 0);
    assert_eq!(site.ok("squeue -h -s -o %i"), "1+0.0\n");
    let steps = site.ok("sacct -n -P -j 1 -o JobID,State");
    assert!(steps.contains("1+0.0|RUNNING\n") && steps.contains("1+1.0|CANCELLED"), "{steps}");
    site.ok("scancel 1");
    let ended = step.wait_with_output().expect("it ends");
    assert_ne!(ended.status.code(), Some(0));
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(told.contains("srun: error: nid00002: task 1: "), "{told}");
}

/// SL-R-21: as with scripts that start commands in a terminal of their own.
#[test]
fn a_terminal_that_has_no_size_is_one_too() {
    let site = reference();
    let terminal = openpty(None, None).expect("a terminal");
    let stream = || terminal.slave.try_clone().expect("a stream");
    let mut command = site.command("exec srun --pty sh -c '[ -t 0 ] && [ -t 1 ] && [ -t 2 ]'");
    let mut step = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("there is a shell");
    assert_eq!(step.wait().expect("it ends").code(), Some(0));
}

/// SL-R-21: `--pty`
#[test]
fn a_step_has_a_terminal_where_it_asks_for_one() {
    let site = reference();
    let size = Winsize { ws_row: 33, ws_col: 77, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).expect("a terminal");
    let stream = || terminal.slave.try_clone().expect("a stream");
    let resized = "until [ \"$(stty size)\" = \"44 99\" ]; do sleep 0.02; done; echo resized";
    let asks = format!("tty && stty size; echo ready; {resized}; read word; echo got $word; exit 7");
    let mut command = site.command(&format!("exec srun --pty sh -c '{asks}'"));
    let mut step = command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("there is a shell");
    let window = stream();
    drop((command, terminal.slave));
    let mut master = std::fs::File::from(terminal.master);
    let mut said = String::new();
    let mut read_until = |master: &mut std::fs::File, wanted: &str| {
        let mut chunk = [0; 512];
        while !said.contains(wanted) {
            let count = master.read(&mut chunk).unwrap_or(0);
            assert!(count > 0, "`{wanted}` did not come: {said}");
            said.push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
        said.clone()
    };
    let told = read_until(&mut master, "ready\r\n");
    assert!(told.contains("/dev/pts/") && told.contains("33 77\r\n"), "{told}");
    // A window of another size: nobody but the owner of a terminal tells a program of it, and here that is the test.
    let mut sized = std::process::Command::new("stty");
    let sized = sized.args(["rows", "44", "cols", "99"]).stdin(window).status();
    assert!(sized.expect("there is stty").success());
    kill(Pid::from_raw(i32::try_from(step.id()).expect("a process")), Signal::SIGWINCH).expect("it runs");
    read_until(&mut master, "resized\r\n");
    master.write_all(b"word\r").expect("it reads");
    read_until(&mut master, "got word\r\n");
    assert_eq!(step.wait().expect("it ends").code(), Some(7));
    // Without it there is none.
    nothing_runs(&site);
    let Output { status, stdout, .. } = site.run("srun tty");
    assert_eq!((status, stdout.as_str()), (1, "not a tty\n"));
}

/// SL-C-21: the command of `salloc` gets its signals itself, and the usual signals that end a shell are no failure.
#[test]
fn the_command_of_salloc_gets_its_signals() {
    let site = reference();
    for (signal, status) in [("TERM", 1), ("USR1", 1), ("HUP", 0), ("INT", 0), ("QUIT", 0), ("KILL", 0)] {
        let ended = site.run(&format!("salloc -Q -n1 sh -c 'kill -{signal} $$; echo lives'"));
        assert_eq!((ended.status, ended.stdout.as_str()), (status, ""), "SIG{signal}");
    }
}

/// SL-C-21: the allocation of a dead client ends with its lease.
#[test]
fn a_killed_salloc_loses_its_allocation_when_its_lease_is_over() {
    let site = reference();
    let mut holds = site.spawn("salloc sleep 1000");
    site.system.wait_until("it runs", || site.ok("squeue -h -o '%i %t'") == "1 R\n");
    let kept = || site.system.ok(&["events", "--job", "1", "--json"]).contains("\"seconds\":60");
    site.system.wait_until("it said that it lives", kept);
    kill(Pid::from_raw(i32::try_from(holds.id()).expect("a process")), Signal::SIGKILL).expect("it runs");
    holds.wait().expect("it ends");
    assert_eq!(site.ok("squeue -h -o '%i %t'"), "1 R\n", "nobody has noticed yet");
    // To save the rest of the minute: nobody renews the lease any more, so it ends after twice the shortest time.
    let mut client = Client::new(Endpoint::Unix(site.system.path("data/muster.sock")));
    client.keep_job(CommandId::new_now(), JobId::job(1), Some(10)).expect("it is kept");
    nothing_runs(&site);
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o State").trim(), "CANCELLED");
}

/// The time of the kernel and of the programs themselves are told apart, for a step and for its job.
#[test]
fn system_and_user_time_are_told_apart() {
    let site = Site::start();
    // Each byte is a call of the kernel.
    site.ok("sbatch -W -o out --wrap 'srun dd if=/dev/zero of=/dev/null bs=1 count=300000'");
    let micros = |text: &str| -> u64 {
        let (minutes, seconds) = text.split_once(':').expect("minutes and seconds");
        let seconds: f64 = seconds.parse().expect("seconds with a fraction");
        minutes.parse::<u64>().expect("minutes") * 60_000_000 + (seconds * 1e6).round() as u64
    };
    for line in ["1", "1.0"] {
        let shown = site.ok(&format!("sacct -n -P -j {line} -o SystemCPU,UserCPU,TotalCPU"));
        let times: Vec<u64> = shown.lines().next().expect("a line").split('|').map(micros).collect();
        let [system, user, total] = times[..] else { panic!("{shown}") };
        assert!(system > 0, "{shown}");
        // Each of them is cut to milliseconds.
        assert!((system + user).abs_diff(total) <= 2_000, "{shown}");
    }
}
