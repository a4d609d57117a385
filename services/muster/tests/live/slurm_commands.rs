//! Slurm's commands about jobs that are not submitted, and changes by operators, on the reference cluster of the
//! dialect's specification.

use crate::{
    slurm::Site,
    slurm_steps::reference,
    system::{Output, System},
};
use muster_client::{Client, Endpoint};
use muster_schemas::{
    CommandId,
    job::{Component, JobSpec, Launch, Program},
};

/// The user who runs the test.
fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current());
    user.ok().flatten().expect("the user has a name").name
}

/// Runs a command that succeeds, and returns its standard error.
fn told(site: &Site, line: &str) -> String {
    let Output { status, stdout, stderr } = site.run(line);
    assert_eq!((status, stdout.as_str()), (0, ""), "{line}\n{stderr}");
    stderr
}

/// The moment of a line `... to start at <T> using ...`, and the line without it.
fn taken_apart(line: &str) -> (String, String) {
    let (before, rest) = line.split_once(" to start at ").expect("it tells when");
    let (time, after) = rest.split_once(' ').expect("it tells what");
    assert!(time.len() == 19 && time.starts_with("20"), "{time}");
    (time.to_owned(), format!("{before} to start at <T> {after}"))
}

/// SL-C-10, SL-S-24
#[test]
fn a_test_tells_when_and_where_a_job_would_start_and_submits_nothing() {
    let site = reference();
    let shown = |line: &str| taken_apart(&told(&site, line)).1;
    assert_eq!(
        shown("sbatch --test-only --wrap true"),
        "sbatch: Job 1 to start at <T> using 1 processors on nodes nid00001 in partition debug\n"
    );
    assert_eq!(
        shown("sbatch --test-only -p p2 -w nid00003 -n2 : -N2 -n4 --ntasks-per-node=2 --wrap true"),
        "sbatch: Job 1 to start at <T> using 6 processors on nid[00001-00003]\n"
    );
    assert_eq!(
        shown("srun --test-only -N2 -C knl"),
        "srun: Job 1 to start at <T> using 2 processors on nodes nid[00008-00009] in partition debug\n"
    );
    let impossible = "allocation failure: Requested node configuration is not available\n";
    assert_eq!(site.fails("sbatch --test-only -C 'knl&gamma' --wrap true"), (1, impossible.to_owned()));
    let unknown = "sbatch: error: invalid partition specified: nope\n\
                   allocation failure: Invalid partition name specified\n";
    assert_eq!(site.fails("sbatch --test-only -p nope --wrap true"), (1, unknown.to_owned()));
    assert_eq!(site.ok("squeue -h -t all"), "");
    assert_eq!(site.ok("sbatch --parsable -t 10 -N12 --exclusive --wrap 'sleep 1000'"), "1\n");
    site.system.wait_for_state("1", "running");
    let begun = site.ok("squeue -h -j 1 -o %e");
    let (start, line) = taken_apart(&told(&site, "sbatch --test-only -n3 --wrap true"));
    let moment = |text: &str| text.trim().parse::<jiff::civil::DateTime>().expect("a time");
    let behind = (moment(&start) - moment(&begun)).get_seconds();
    assert!((-1..=60).contains(&behind), "behind the job that has all nodes: {start}, {begun}");
    assert!(line.starts_with("sbatch: Job 2 ") && line.contains(" using 3 processors on nodes nid00001 "), "{line}");
    // With a list of partitions, the one that starts the job first.
    site.ok("scancel 1");
    site.is_over("1");
    site.ok("sbatch -p p2 -N5 --exclusive -t 10 --wrap 'sleep 1000'");
    site.system.wait_for_state("2", "running");
    let job = site.ok("sbatch --parsable -p p2,debug --wrap 'sleep 1000'");
    assert_eq!(site.ok(&format!("squeue -h -j {} -o %P", job.trim())), "debug\n");
}

/// SL-C-09
#[test]
fn every_kind_of_job_that_cannot_be_is_rejected_in_its_words() {
    let site = reference();
    for (options, before, text) in [
        ("-p nope", "invalid partition specified: nope", "Invalid partition name specified"),
        ("--reservation=nope", "", "Requested reservation is invalid"),
        ("-C nope", "", "Invalid feature specification"),
        ("-C 'knl&nope'", "", "Invalid feature specification"),
        ("-C 'knl&gamma'", "", "Requested node configuration is not available"),
        ("-L nope", "", "Invalid license specification"),
        ("-L ansys:5", "", "Invalid license specification"),
        ("-w zzz", "", "Invalid node name specified"),
        ("-N13", "", "Node count specification invalid"),
        ("--mem=99999", "Memory specification can not be satisfied", "Requested node configuration is not available"),
        ("-d afterok:99999", "", "Job dependency problem"),
        ("-a 5-1", "", "Invalid job array specification"),
        ("-x nope", "", "Invalid node name specified"),
        ("-N1 -n5", "", "Requested node configuration is not available"),
        ("-n2 -N1 -c3", "", "Requested node configuration is not available"),
        ("--ntasks-per-node=5", "", "Requested node configuration is not available"),
        (
            "-N1 -n2 --mem-per-cpu=3000",
            "Memory specification can not be satisfied",
            "Requested node configuration is not available",
        ),
    ] {
        let preamble = if before.is_empty() { String::new() } else { format!("sbatch: error: {before}\n") };
        let expected = format!("{preamble}sbatch: error: Batch job submission failed: {text}\n");
        assert_eq!(site.fails(&format!("sbatch {options} --wrap true")), (1, expected), "{options}");
    }
    assert_eq!(site.ok("squeue -h -t all"), "");
}

/// SL-C-28, SL-C-38, EX-20, EX-21
#[test]
fn nodes_are_down_until_they_are_resumed_and_who_took_them_down_is_shown() {
    let site = reference();
    let again = site.ok("sbatch --parsable -w nid00006 --wrap 'sleep 1000'").trim().to_owned();
    let once = site.ok("sbatch --parsable --no-requeue -w nid00006 --wrap 'sleep 1000'").trim().to_owned();
    let mixed = site.ok("sbatch --parsable -w nid00001 --wrap 'sleep 1000'").trim().to_owned();
    let full = site.ok("sbatch --parsable -w nid00002 -n4 --wrap 'sleep 1000'").trim().to_owned();
    for job in [&again, &once, &mixed, &full] {
        site.system.wait_for_state(job, "running");
    }
    let denied = "You must specify a reason when DOWNING or DRAINING a node. Request denied\n";
    assert_eq!(site.fails("scontrol update nodename=nid00006 state=down"), (1, denied.to_owned()));
    let invalid = "slurm_update error: Invalid node state specified\n";
    assert_eq!(site.fails("scontrol update nodename=nid00012 state=resume"), (1, invalid.to_owned()));
    site.ok("scontrol update nodename=nid[00003-00004] state=drain reason='bad disk'");
    site.ok("scontrol update nodename=nid00006 state=down reason=dead");
    site.system.wait_for_state(&once, "finished");
    assert_eq!(site.ok(&format!("sacct -X -n -P -o State -j {once}")), "NODE_FAIL\n");
    let note = site.system.read(&format!("slurm-{once}.out"));
    assert!(note.contains(" ON nid00006 CANCELLED AT ") && note.contains(" DUE TO NODE FAILURE"), "{note}");
    site.system.wait_for_state(&again, "queued");
    let rows = |partition: &str, limit: &str, rows: &[(u32, &str, &str)]| -> String {
        rows.iter()
            .map(|(count, state, nodes)| format!("{partition:<9}    up {limit:>10} {count:>6} {state:>6} {nodes}\n"))
            .collect()
    };
    let expected = format!(
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n{}{}",
        rows(
            "debug*",
            "infinite",
            &[
                (2, "drain", "nid[00003-00004]"),
                (1, "mix", "nid00001"),
                (1, "alloc", "nid00002"),
                (7, "idle", "nid[00005,00007-00012]"),
                (1, "down", "nid00006"),
            ]
        ),
        rows(
            "p2",
            "1:00:00",
            &[
                (2, "drain", "nid[00003-00004]"),
                (1, "mix", "nid00001"),
                (1, "alloc", "nid00002"),
                (1, "idle", "nid00005")
            ]
        )
    );
    assert_eq!(site.ok("sinfo"), expected);
    let summary = "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n\
                   debug*       up   infinite         2/7/3/12 nid[00001-00012]\n\
                   p2           up    1:00:00          2/1/2/5 nid[00001-00005]\n";
    assert_eq!(site.ok("sinfo -s"), summary);
    let reasons: Vec<Vec<String>> = site
        .ok("sinfo -h -R -o '%E|%u|%H|%N'")
        .lines()
        .map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    let told: Vec<(&str, &str, &str)> =
        reasons.iter().map(|cells| (cells[0].as_str(), cells[1].as_str(), cells[3].as_str())).collect();
    let me = user();
    assert_eq!(told, [("bad disk", me.as_str(), "nid[00003-00004]"), ("dead", me.as_str(), "nid00006")]);
    assert!(reasons.iter().all(|cells| cells[2].starts_with("20") && cells[2].len() == 19), "{reasons:?}");
    let shown = site.ok("scontrol show node nid00006");
    assert!(shown.starts_with("NodeName=nid00006 Arch=x86_64 CoresPerSocket=4\n"), "{shown}");
    assert!(
        shown.contains("State=DOWN ThreadsPerCore=1 ") && shown.contains(&format!("Reason=dead [{me}@20")),
        "{shown}"
    );
    site.ok("scontrol update nodename=nid[00003-00004,00006] state=resume");
    assert_eq!(site.ok("sinfo -h -t down,drain -o %N"), "");
    site.system.wait_for_state(&again, "running");
    assert!(site.ok(&format!("scontrol -o show job {again}")).contains(" Restarts=1 "));
}

/// SL-C-33, SL-C-36, SL-C-38
#[test]
fn reservations_are_created_changed_and_deleted_and_jobs_move_into_them() {
    let site = reference();
    let me = user();
    let create =
        format!("scontrol create reservation reservationname=r1 starttime=now duration=10 nodes=nid00012 users={me}");
    assert_eq!(site.ok(&create), "Reservation created: r1\n");
    let twice = "Error creating the reservation: Duplicate reservation name\n";
    assert_eq!(site.fails(&create), (1, twice.to_owned()));
    let unnamed =
        format!("scontrol create reservation starttime=now+1hour duration=5 nodecnt=2 users={me} flags=ignore_jobs");
    assert_eq!(site.ok(&unnamed), format!("Reservation created: {me}_1\n"));
    let shown = site.ok("scontrol -o show reservation r1");
    assert!(shown.starts_with("ReservationName=r1 StartTime=20") && shown.contains(" Duration=00:10:00 "), "{shown}");
    assert!(shown.contains(" Nodes=nid00012 ") && shown.contains(&format!(" Users={me} ")), "{shown}");
    assert_eq!(site.ok("scontrol update reservationname=r1 duration=20 nodes+=nid00011"), "Reservation updated.\n");
    let shown = site.ok("scontrol -o show reservation r1");
    assert!(shown.contains(" Duration=00:20:00 ") && shown.contains(" Nodes=nid[00011-00012] "), "{shown}");
    let job = site.ok("sbatch --parsable -H -t 5 --wrap 'sleep 1000'").trim().to_owned();
    site.ok(&format!("scontrol update jobid={job} reservationname=r1"));
    site.ok(&format!("scontrol release {job}"));
    site.system.wait_for_state(&job, "running");
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o '%N %v'")), "nid00011 r1\n");
    let busy = format!("scontrol create reservation starttime=now duration=5 nodes=nid00011 users={me}");
    site.ok("scontrol delete reservation=r1");
    assert_eq!(site.fails(&busy), (1, "Error creating the reservation: Requested nodes are busy\n".to_owned()));
    // By count there are too few free nodes as well, and with the feature of those that are busy.
    let by_count = format!("scontrol create reservation starttime=now duration=5 users={me}");
    for few in ["nodecnt=12", "nodecnt=5 features=knl"] {
        let refused = "Error creating the reservation: Requested nodes are busy\n".to_owned();
        assert_eq!(site.fails(&format!("{by_count} {few}")), (1, refused), "{few}");
    }
    site.ok(&format!("{by_count} reservationname=r2 nodecnt=5 features=knl flags=ignore_jobs"));
    site.system.wait_until("it has its nodes", || {
        site.ok("scontrol -o show reservation r2").contains(" Nodes=nid[00008-00012] ")
    });
    let overlaps = "Error creating the reservation: Requested reservation overlaps with another reservation\n";
    let more = format!("{busy} flags=ignore_jobs");
    assert_eq!(site.fails(&more), (1, overlaps.to_owned()));
    site.ok(&format!("{more},overlap reservationname=r3"));
    assert!(site.ok("scontrol -o show reservation r3").contains(" Flags=OVERLAP,IGNORE_JOBS,SPEC_NODES "));
    // A node of two reservations is for the jobs of the one that overlaps.
    let kept = site.ok("sbatch --parsable --reservation=r2 -w nid00011 -t 1 --wrap 'sleep 1000'").trim().to_owned();
    let of_kept = |format: &str| site.ok(&format!("squeue -h -j {kept} -o '{format}'"));
    site.system.wait_until("it was planned", || of_kept("%r") != "None\n");
    assert_eq!(site.ok("srun --reservation=r3 -t 1 sh -c 'echo $SLURMD_NODENAME'"), "nid00011\n");
    assert_eq!(of_kept("%t"), "PD\n");
    site.ok("scontrol delete reservation=r3");
    site.system.wait_until("it runs", || of_kept("%t %N") == "R nid00011\n");
    site.ok(&format!("scancel {kept}"));
    site.is_over(&kept);
    site.ok("scontrol delete reservation=r2");
    site.ok(&format!("{busy} reservationname=r1 flags=maint,ignore_jobs,daily"));
    let flags = || {
        let shown = site.ok("scontrol -o show reservation r1");
        shown.split_whitespace().find_map(|pair| pair.strip_prefix("Flags=").map(str::to_owned)).unwrap_or_default()
    };
    assert_eq!(flags(), "MAINT,IGNORE_JOBS,DAILY,SPEC_NODES");
    site.system.wait_until("it has begun", || site.ok("sinfo -h -n nid00011 -p debug -o %t") == "maint\n");
    site.ok("scontrol update reservationname=r1 flags-=daily,maint");
    assert_eq!(flags(), "IGNORE_JOBS,SPEC_NODES");
    let data: serde_json::Value =
        serde_json::from_str(&site.ok("scontrol --json show reservation")).expect("a document");
    assert_eq!(data["reservations"].as_array().map(Vec::len), Some(2), "{data}");
    assert_eq!(site.ok("scontrol delete reservation=r1"), "");
    let gone = "delete_reservation reservationname=r1: Requested reservation is invalid\n";
    assert_eq!(site.fails("scontrol delete reservationname=r1"), (1, gone.to_owned()));
    let gone = "Error updating the reservation: Requested reservation is invalid\n";
    assert_eq!(site.fails("scontrol update reservationname=r1 duration=5"), (1, gone.to_owned()));
    // One with the flag MAGNETIC has jobs that do not name it, and only those that it admits; FLEX lets them outlast it.
    let magnetic = "scontrol create reservation reservationname=pull starttime=now duration=10 nodes=nid00012";
    site.ok(&format!("{magnetic} users={me} flags=magnetic,ignore_jobs"));
    assert_eq!(site.ok("srun -w nid00012 -t 1 sh -c 'echo $SLURMD_NODENAME'"), "nid00012\n");
    let long = site.ok("sbatch --parsable -w nid00012 -t 60 --wrap true").trim().to_owned();
    let state = || site.ok(&format!("squeue -h -j {long} -t all -o %T"));
    site.system.wait_until("it was planned", || site.ok(&format!("squeue -h -j {long} -o %r")) != "None\n");
    assert_eq!(state(), "PENDING\n", "it would outlast the reservation");
    site.ok("scontrol update reservationname=pull flags+=flex");
    site.system.wait_until("it ran", || state() == "COMPLETED\n");
    site.ok("scontrol delete reservation=pull");
    // One that nobody uses ends before its time, and begins again if it repeats.
    let unused = |name: &str, flags: &str| {
        site.ok(&format!(
            "scontrol create reservation reservationname={name} starttime=now duration=10 nodes=nid00012 users={me} \
             flags=overlap,purge_comp=00:00:01{flags}"
        ));
    };
    let start = || {
        let shown = site.ok("scontrol -o show reservation unused");
        let start = shown.split_whitespace().find_map(|pair| pair.strip_prefix("StartTime="));
        start.and_then(|start| start.parse::<jiff::civil::DateTime>().ok()).expect("it has a start")
    };
    unused("once", "");
    site.system.wait_until("it is gone", || !site.ok("scontrol show reservation").contains("ReservationName=once "));
    let before = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).datetime();
    unused("unused", ",daily");
    site.system.wait_until("its next time is tomorrow", || start().duration_since(before).as_hours() > 20);
}

/// SL-C-38: an idle node takes the place of one that is drained, and nodes of a reservation that stays ahead have short jobs.
#[test]
fn reservations_replace_their_nodes_or_stay_ahead() {
    let site = reference();
    let me = user();
    let make = |name: &str, more: &str| {
        site.ok(&format!("scontrol create reservation reservationname={name} duration=10 users={me} {more}"));
    };
    make("two", "starttime=now+2hours nodecnt=2");
    let nodes = || {
        let shown = site.ok("scontrol -o show reservation two");
        let list = shown.split_whitespace().find_map(|pair| pair.strip_prefix("Nodes=")).unwrap_or_default().to_owned();
        site.ok(&format!("scontrol show hostnames '{list}'")).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    site.system.wait_until("it has its nodes", || nodes().len() == 2);
    let before = nodes();
    site.ok(&format!("scontrol update nodename={} state=drain reason=fan", before[0]));
    site.system.wait_until("it has another one", || !nodes().contains(&before[0]));
    let after = nodes();
    assert!(after.len() == 2 && after.contains(&before[1]), "{before:?} {after:?}");
    let node = "nid00012";
    make("short", &format!("starttime=now+10minutes nodes={node} flags=time_float,overlap"));
    assert!(site.ok("scontrol -o show reservation short").contains(" Flags=OVERLAP,SPEC_NODES,TIME_FLOAT "));
    assert_eq!(site.ok(&format!("srun -w {node} -t 5 sh -c 'echo $SLURMD_NODENAME'")), format!("{node}\n"));
    let long = site.ok(&format!("sbatch --parsable -w {node} -t 20 --wrap true")).trim().to_owned();
    site.system.wait_until("it was planned", || site.ok(&format!("squeue -h -j {long} -o %r")) != "None\n");
    assert_eq!(site.ok(&format!("squeue -h -j {long} -o %t")), "PD\n", "it is longer than the reservation is ahead");
    site.ok("scontrol delete reservation=short");
    site.system.wait_until("it ran", || site.ok(&format!("squeue -h -j {long} -t all -o %T")) == "COMPLETED\n");
}

/// SL-C-13, SL-C-33, SL-C-36
#[test]
fn waiting_jobs_are_changed_in_all_that_they_ask_for_and_put_first() {
    let site = reference();
    let job = site.ok("sbatch --parsable -H --comment=old -n1 --wrap 'sleep 1000'").trim().to_owned();
    let update = |pairs: &str| site.ok(&format!("scontrol update jobid={job} {pairs}"));
    update("comment=new nice=7 deadline=now+1day features=knl numtasks=2 requeue=0 wckey=k");
    let shown = site.ok(&format!("scontrol -o show job {job}"));
    for pair in ["Comment=new", "Nice=7", "Features=knl", "NumTasks=2", "Requeue=0", "WCKey=k", "Priority=0"] {
        assert!(shown.contains(&format!(" {pair} ")) || shown.contains(&format!(" {pair}\n")), "{pair}:\n{shown}");
    }
    assert!(!shown.contains(" Deadline=N/A "), "{shown}");
    let nowhere = format!("Requested reservation is invalid for job {job}\n");
    assert_eq!(site.fails(&format!("scontrol update jobid={job} reservationname=nope")), (1, nowhere));
    let unsupported = "Update of this parameter is not supported: foo=bar\nRequest aborted\n";
    assert_eq!(site.fails(&format!("scontrol update jobid={job} foo=bar")), (1, unsupported.to_owned()));
    update("comment= wckey=");
    let shown = site.ok(&format!("scontrol -o show job {job}"));
    assert!(!shown.contains("Comment=new") && !shown.contains("WCKey=k"), "{shown}");
    let (first, second) = ("sbatch --parsable -H --wrap true", "sbatch --parsable -H --nice=5 --wrap true");
    let (first, second) = (site.ok(first).trim().to_owned(), site.ok(second).trim().to_owned());
    let order = || site.ok("squeue -h -S=-p -o '%A %Q'");
    let priority = |job: &str| -> i64 {
        let all = site.system.json(&["job", "show", "--json", job]);
        all["job"]["priority"].as_i64().expect("a number")
    };
    assert_eq!(priority(&second), priority(&first) - 5, "{}", order());
    site.ok(&format!("scontrol top {second}"));
    assert!(priority(&second) > priority(&first) && priority(&second) > priority(&job), "{}", order());
    let unknown = "Invalid job id specified for job 99\n";
    assert_eq!(site.fails("scontrol top 99"), (1, unknown.to_owned()));
}

/// SL-C-33, SL-M-01, SL-M-08, SL-M-09
#[test]
fn of_a_running_job_the_leader_stands_for_all_components() {
    let site = reference();
    let job: u64 = site.ok("sbatch --parsable -t 10 -n1 : -n1 --wrap 'sleep 1000'").trim().parse().unwrap();
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%i %t %l' | sort"));
    let all = |state: &str, limit: &str| format!("{job}+0 {state} {limit}\n{job}+1 {state} {limit}\n");
    site.system.wait_until("both run", || listed() == all("R", "10:00"));
    for id in [format!("{job}+0"), format!("{job}+1"), (job + 1).to_string()] {
        let alone = format!("Operation not permitted on individual component of heterogeneous job for job {id}\n");
        assert_eq!(site.fails(&format!("scontrol suspend {id}")), (1, alone.clone()));
        assert_eq!(site.fails(&format!("scontrol resume {id}")), (1, alone));
        let follower = format!("Job not heterogeneous job leader for job {id}\n");
        assert_eq!(site.fails(&format!("scontrol requeue {id}")), (1, follower));
    }
    let late = format!("Job is no longer pending execution for job {job}+1\n");
    assert_eq!(site.fails(&format!("scontrol update jobid={job}+1 account=abc")), (1, late));
    site.ok(&format!("scontrol update jobid={job} timelimit=5"));
    assert_eq!(listed(), all("R", "5:00"));
    site.ok(&format!("scontrol suspend {job}"));
    site.system.wait_until("both are stopped", || listed() == all("S", "5:00"));
    site.ok(&format!("scontrol resume {job}"));
    site.system.wait_until("both run again", || listed() == all("R", "5:00"));
    site.ok(&format!("scontrol notify {job} save your work"));
    let said = || site.system.read(&format!("slurm-{job}.out"));
    site.system.wait_until("the job is told", || said() == "slurmstepd: error: save your work\n");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
    let over = "job notify failure: Job/step already completing or completed\n";
    assert_eq!(site.fails(&format!("scontrol notify {job} hello")), (1, over.to_owned()));
    assert_eq!(
        site.fails("scontrol notify 99 hello"),
        (1, "job notify failure: Invalid job id specified\n".to_owned())
    );
}

/// SL-C-37: a waiting job can be neither suspended nor resumed.
#[test]
fn a_job_that_waits_is_not_suspended() {
    let site = Site::start();
    for line in ["sbatch --parsable -H --wrap true", "sbatch --parsable -H -n1 : -n1 --wrap true"] {
        let job = site.ok(line).trim().to_owned();
        let pending = format!("Job is pending execution for job {job}\n");
        for action in ["suspend", "resume"] {
            assert_eq!(site.fails(&format!("scontrol {action} {job}")), (1, pending.clone()));
        }
    }
}

/// SL-C-37: others can use the CPUs of a suspended job, and it resumes when it has them back; nobody gets in between.
#[test]
fn cpus_of_a_suspended_job_are_for_others_until_it_goes_on() {
    let site = reference();
    let submit = |options: &str, script: &str| {
        let line = format!("sbatch --parsable -p p2 -w nid00001 {options} --wrap '{script}'");
        site.ok(&line).trim().to_owned()
    };
    let listed = |job: &str| site.ok(&format!("squeue -h -j {job} -o '%t %C'"));
    let is = |job: &str, shown: &str| site.system.wait_until(&format!("job {job} is {shown}"), || listed(job) == shown);
    let long = submit("-n4 -t 10", "sleep 1000");
    is(&long, "R 4\n");
    let urgent = submit("-n4 -t 10", "while [ ! -e go ]; do sleep 0.05; done");
    is(&urgent, "PD 4\n");
    site.ok(&format!("scontrol suspend {long}"));
    is(&urgent, "R 4\n");
    is(&long, "S 4\n");
    site.ok(&format!("scontrol resume {long}"));
    let told = || site.system.ok(&["job", "events", &long]);
    site.system.wait_until("it is to go on", || told().contains("waits for its cores and then continues"));
    let late = submit("-n1 -t 1", "sleep 1000");
    is(&late, "PD 1\n");
    is(&long, "S 4\n");
    site.system.write("go", "");
    site.is_over(&urgent);
    is(&long, "R 4\n");
    is(&late, "PD 1\n");
    site.ok(&format!("scancel {long}"));
    is(&late, "R 1\n");
}

/// SL-B-06: without a name the script of a component goes into its own file, and does not overwrite the leader's.
#[test]
fn scripts_are_written_into_files_with_the_numbers_of_their_components() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -H -n1 : -n1 : -n1 --wrap true").trim().parse().expect("a number");
    let [second, third] = [job + 1, job + 2];
    for (id, own) in [(format!("{job}"), job), (format!("{job}+1"), second), (format!("{third}"), third)] {
        let told = format!("batch script for job {own} written to slurm-{own}.sh\n");
        assert_eq!(site.ok(&format!("scontrol write batch_script {id}")), told);
        assert!(std::fs::remove_file(site.system.path(&format!("slurm-{own}.sh"))).is_ok(), "{id}");
    }
}

/// SL-C-40
#[test]
fn jobs_of_other_front_ends_are_listed_and_controlled_like_any_other() {
    let site = reference();
    let plain = site.system.submit(&["-A", "abc", "--name", "own", "--", "sleep", "1000"]);
    let text = "#!/bin/sh\nsleep 1000\n".to_owned();
    let launch = Launch { program: Program::Script { text, args: Vec::new() }, ..Launch::default() };
    let spec = JobSpec {
        name: "other".into(),
        components: vec![Component { launch, ..Component::default() }, Component::default()],
        working_directory: site.system.path("").display().to_string(),
        ..JobSpec::default()
    };
    let mut client = Client::new(Endpoint::Unix(site.system.path("data/muster.sock")));
    let job = client.submit(CommandId::new_now(), &[spec]).expect("accepted").jobs[0].number;
    let listed = || site.ok("squeue -h -o '%i %j %a %t' | sort");
    let lines = |rest: &str| format!("{plain} own abc R\n{job}+0 other (null) R\n{rest}");
    site.system.wait_until("all run", || listed() == lines(&format!("{job}+1 other (null) R\n")));
    site.ok(&format!("scancel {job}+1"));
    site.system.wait_until("one component has ended", || listed() == lines(""));
    assert_eq!(
        site.ok(&format!("sacct -X -n -P -j {job} -o JobID,JobName | sort")),
        format!("{job}+0|other\n{job}+1|other\n")
    );
    site.ok(&format!("scontrol requeuehold {job}"));
    let held = format!("{plain} own abc R\n{job}+0 other (null) RH\n{job}+1 other (null) RH\n");
    site.system.wait_until("it is held", || listed() == held);
    site.ok(&format!("scontrol update jobid={job} comment=ours"));
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o %k")), "ours\nours\n");
    site.ok(&format!("scancel {plain} {job}"));
    site.is_over(&plain);
    site.is_over(&job.to_string());
}

/// SL-P-06, SL-C-01
#[test]
fn the_scheduler_is_diagnosed() {
    let site = reference();
    site.ok("sbatch -W --wrap true");
    site.fails("sbatch -W --wrap false");
    site.ok("sbatch -H --wrap true");
    let number = |text: &str, name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_else(|| panic!("{name}:\n{text}"))
    };
    let text = site.ok("sdiag");
    for (name, count) in [
        ("Jobs submitted:", 3),
        ("Jobs started:", 2),
        ("Jobs completed:", 1),
        ("Jobs failed:", 1),
        ("Jobs pending:", 1),
        ("Jobs running:", 0),
    ] {
        assert_eq!(number(&text, name), count, "{name}\n{text}");
    }
    assert!(
        number(&text, "Total cycles:") >= 2 && number(&text, "Max cycle:") >= number(&text, "Last cycle:"),
        "{text}"
    );
    assert!(site.ok("sdiag -V").starts_with("slurm "));
    let data: serde_json::Value = serde_json::from_str(&site.ok("sdiag --json")).expect("a document");
    let counts =
        ["jobs_submitted", "jobs_started", "jobs_failed", "jobs_pending"].map(|name| &data["statistics"][name]);
    assert_eq!(counts, [3, 2, 1, 1], "{data}");
}

/// Two clusters that know each other, with this many nodes each; the links and the commands belong to the first.
fn two(nodes: u32) -> (Site, System) {
    let (mut one, mut other) = (System::stopped(), System::stopped());
    let config = |name: &str, peer: &str, address: &System| {
        let address = address.path("data").display().to_string();
        format!("[cluster]\nname = \"{name}\"\n[slurm]\nclusters = [\"{peer}={address}\"]\n")
    };
    one.write("site.toml", &config("one", "other", &other));
    other.write("site.toml", &config("other", "one", &one));
    let nodes = nodes.to_string();
    for system in [&mut one, &mut other] {
        let file = system.path("site.toml").display().to_string();
        system.restart(&["--nodes", &nodes, "--cpus", "4", "--memory", "4G", "--config", &file]);
    }
    one.ok(&["install-commands", "bin"]);
    (Site { system: one }, other)
}

/// SL-S-19, SL-P-11
#[test]
fn a_job_goes_as_a_whole_to_the_cluster_that_starts_it_first() {
    let (site, other) = two(2);
    assert_eq!(site.ok("sbatch -M one,other --wrap 'sleep 1000'"), "Submitted batch job 1 on cluster one\n");
    site.ok("sbatch -t 10 -N2 --exclusive --wrap 'sleep 1000'");
    // Each component alone has room on either cluster; both together only on the other one.
    let job = "sbatch -t 5 --clusters=one,other --exclusive : --exclusive --wrap 'sleep 1000'";
    assert_eq!(site.ok(job), "Submitted batch job 1 on cluster other\n");
    assert_eq!(site.ok("sbatch --parsable -M other -H --wrap true"), "3;other\n");
    let listed = site.ok("squeue -M other,one -o '%i %T' -t all");
    let expected = "CLUSTER: other\nJOBID STATE\n";
    assert!(listed.starts_with(expected) && listed.contains("\n\nCLUSTER: one\nJOBID STATE\n"), "{listed}");
    other.wait_for_state("1", "running");
    assert_eq!(site.ok("squeue -M other -h -o '%i %t' | sort"), "1+0 R\n1+1 R\n3 PD\n");
    assert_eq!(site.ok("sinfo -M other -h -o %D"), "2\n");
    assert_eq!(site.ok("SLURM_CLUSTERS=other scontrol -o show job 3").matches("JobId=3 ").count(), 1);
    assert_eq!(site.ok("sacct -M other -X -n -P -o JobID,State -j 3").lines().count(), 1);
    assert_eq!(site.ok("sacct -M one,other -X -P -o JobID -j 1"), "JobID\n1\n1+0\n1+1\n");
    let unknown = "'nope' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see \
                   available clusters.\n";
    for command in ["squeue", "sinfo", "sacct", "scancel", "scontrol"] {
        let words = if command == "scontrol" { " show job 1" } else { "" };
        let failed = site.fails(&format!("{command} -M nope{words}"));
        assert_eq!(failed, (1, format!("{command}: error: {unknown}")));
    }
    assert_eq!(site.fails("sbatch -M nope --wrap true"), (1, format!("sbatch: error: {unknown}")));
    // Commands inside a job or an allocation are about its cluster.
    site.ok("scancel -M other 1 3");
    other.wait_for_state("1", "finished");
    assert_eq!(site.ok("salloc -M other -Q squeue -h -o %i"), "4\n");
    site.ok("sbatch -W -M other -o said --wrap 'squeue -h -o %i'");
    assert_eq!(site.system.read("said"), "5\n");
    // Without the option a job stays where it is submitted, even if the other cluster would suit it better (SL-P-11).
    assert!(site.ok("sbatch -H --exclusive : --exclusive --wrap true").starts_with("Submitted batch job "));
    assert_eq!(other.json(&["jobs", "--json"])["jobs"].as_array().map(Vec::len), Some(0));
}

/// SL-C-13, SL-C-36: only operators raise a priority, even at submission. A priority given by others is
/// ignored, as in Slurm.
#[test]
fn only_operators_put_their_jobs_before_others() {
    let system = System::start_for_others();
    let submit = |option: &'static str| ["slurm", "sbatch", "--parsable", "-H", option, "--wrap", "true"];
    let priority = |job: &str| system.json(&["job", "show", "--json", job.trim()])["job"]["priority"].clone();
    let usual = priority(&system.ok(&submit("-n1")));
    assert_eq!(priority(&system.ok(&submit("--priority=5000"))), 5000);
    assert_eq!(priority(&system.ok(&submit("--nice=-7"))).as_i64(), usual.as_i64().map(|usual| usual + 7));
    let theirs = |option: &'static str| {
        let Output { status, stdout, stderr } = system.run_as_nobody(&submit(option));
        assert_eq!(status, 0, "{stderr}");
        stdout.trim().to_owned()
    };
    assert_eq!(priority(&theirs("--priority=5000")), usual);
    assert_eq!(priority(&theirs("--nice=7")).as_i64(), usual.as_i64().map(|usual| usual - 7));
    let Output { status, stderr, .. } = system.run_as_nobody(&submit("--nice=-7"));
    let invalid = "sbatch: error: Batch job submission failed: Invalid --nice value\n";
    assert_eq!((status, stderr.as_str()), (1, invalid));
    let waits = ["slurm", "sbatch", "--parsable", "--priority=0", "--wrap", "true"];
    let held = system.run_as_nobody(&waits).stdout.trim().to_owned();
    assert_eq!(system.ok(&["slurm", "squeue", "-h", "-j", &held, "-o", "%r"]), "JobHeldUser\n");
    let job = theirs("-n1");
    let raise = ["slurm", "scontrol", "update", &format!("jobid={job}"), "nice=-7"];
    let Output { status, stderr, .. } = system.run_as_nobody(&raise);
    assert_eq!((status, stderr), (1, format!("Access/permission denied for job {job}\n")));
}

/// SL-C-37: the owner cannot release an operator's hold, and is told so.
#[test]
fn the_hold_of_an_operator_is_not_released_by_the_owner() {
    let system = System::start_for_others();
    let submit = ["slurm", "sbatch", "--parsable", "--begin=now+1hour", "--wrap", "true"];
    let job = system.run_as_nobody(&submit).stdout.trim().to_owned();
    let reason = || system.ok(&["slurm", "squeue", "-h", "-j", &job, "-o", "%r"]);
    let own = |verb: &str| {
        let Output { status, stderr, .. } = system.run_as_nobody(&["slurm", "scontrol", verb, &job]);
        (status, stderr)
    };
    assert_eq!((own("hold"), reason()), ((0, String::new()), "JobHeldUser\n".to_owned()));
    assert_eq!((own("release"), reason()), ((0, String::new()), "BeginTime\n".to_owned()));
    system.ok(&["slurm", "scontrol", "hold", &job]);
    let denied = format!("Access/permission denied for job {job}\n");
    assert_eq!((own("release"), reason()), ((1, denied.clone()), "JobHeldAdmin\n".to_owned()));
    let update = ["slurm", "scontrol", "update", &format!("jobid={job}"), "hold=0"];
    assert_eq!(system.run_as_nobody(&update).stderr, denied);
    assert_eq!(reason(), "JobHeldAdmin\n");
    system.ok(&["slurm", "scontrol", "release", &job]);
    assert_eq!(reason(), "BeginTime\n");
    // Neither can he release a task of an array that is held as a whole.
    let submit = ["slurm", "sbatch", "--parsable", "--begin=now+1hour", "-a", "1-3", "--wrap", "true"];
    let array = system.run_as_nobody(&submit).stdout.trim().to_owned();
    system.ok(&["slurm", "scontrol", "hold", &array]);
    let task = format!("{array}_2");
    let Output { status, stderr, .. } = system.run_as_nobody(&["slurm", "scontrol", "release", &task]);
    assert_eq!((status, stderr), (1, format!("Access/permission denied for job {task}\n")));
    // The owner can release a hold that an operator set as the user.
    system.ok(&["slurm", "scontrol", "uhold", &job]);
    assert_eq!((own("release"), reason()), ((0, String::new()), "BeginTime\n".to_owned()));
}

/// SL-C-18: the hold of one task of an array is not the reason why the others wait.
#[test]
fn tasks_that_are_held_singly_say_so_and_the_others_do_not() {
    let site = Site::start();
    let array = site.ok("sbatch --parsable -a 1-4%1 --wrap 'sleep 1000'").trim().to_owned();
    let listed = || site.ok(&format!("squeue -h -j {array} -o '%i %r' | sort"));
    site.system.wait_for_state(&format!("{array}_1"), "running");
    site.ok(&format!("scontrol hold {array}_3"));
    let held = format!("{array}_1 None\n{array}_3 JobHeldUser\n{array}_[2,4%1] JobArrayTaskLimit\n");
    assert_eq!(listed(), held);
    let shown = site.ok(&format!("scontrol -o show job {array}_3"));
    assert!(shown.contains(" JobState=PENDING Reason=JobHeldUser ") && shown.contains(" Priority=0 "), "{shown}");
    site.ok(&format!("scontrol release {array}_3"));
    assert_eq!(listed(), format!("{array}_1 None\n{array}_[2-4%1] JobArrayTaskLimit\n"));
    // Its own number works too, and it is cancelled alone.
    let own = site.ok(&format!("squeue -h -r -j {array}_3 -o %A")).trim().to_owned();
    site.ok(&format!("scontrol hold {own}"));
    assert_eq!(listed(), held);
    site.ok(&format!("scancel {array}_3"));
    assert_eq!(listed(), format!("{array}_1 None\n{array}_[2,4%1] JobArrayTaskLimit\n"));
    site.ok(&format!("scancel {array}"));
    site.is_over(&array);
}

/// SL-C-19: each of several dependencies is shown with its state, and a delay after a start is one.
#[test]
fn each_dependency_is_shown_as_it_stands() {
    let site = Site::start();
    let over = site.ok("sbatch --parsable -W --wrap true").trim().to_owned();
    let runs = site.ok("sbatch --parsable --wrap 'sleep 1000'").trim().to_owned();
    site.system.wait_for_state(&runs, "running");
    let waits = |on: &str| {
        let job = site.ok(&format!("sbatch --parsable -d {on} --wrap true")).trim().to_owned();
        let shown = site.ok(&format!("squeue -h -j {job} -o '%r %E'"));
        site.ok(&format!("scancel {job}"));
        shown.trim().to_owned()
    };
    let expected = format!("Dependency after:{runs}+1(unfulfilled)");
    assert_eq!(waits(&format!("after:{runs}+1")), expected);
    let expected = format!("DependencyNeverSatisfied afternotok:{over}(failed),afterany:{runs}(unfulfilled)");
    assert_eq!(waits(&format!("afternotok:{over},afterany:{runs}")), expected);
    let expected = format!("Dependency afterany:{runs}(unfulfilled)");
    assert_eq!(waits(&format!("afterok:{over},afterany:{runs}")), expected);
    site.ok(&format!("scancel {runs}"));
}

/// SL-C-35
#[test]
fn the_configuration_tells_since_when_it_serves() {
    let site = Site::start();
    let shown = site.ok("scontrol show config");
    let line = shown.lines().find_map(|line| line.strip_prefix("BOOT_TIME")).expect("it is shown");
    let (_, since) = line.split_once("= ").expect("a value");
    let since: jiff::civil::DateTime = since.parse().expect("a time");
    let age = (jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).datetime() - since).total(jiff::Unit::Second);
    assert!(age.is_ok_and(|age| (0.0..3600.0).contains(&age)), "{line}");
}

/// A table of jobs: submitted from a file, repeated, disabled, edited, removed.
#[test]
fn a_job_of_a_table_is_repeated_until_its_line_is_gone() {
    let site = Site::start();
    let table = "#SCRON -n1 -J counts\n0 * * * * echo ran >> ran\n\n@yearly true\n";
    site.system.write("table", table);
    let scrontab = |words: &str| format!("HOME=$PWD TZ=CET-1CEST,M3.5.0,M10.5.0/3 scrontab {words}");
    assert_eq!(site.ok(&scrontab("table")), "");
    assert_eq!(site.ok("scrontab -l"), table);
    let listed = || site.ok("squeue -h -o '%i %j %t %r' --sort=i");
    assert_eq!(listed(), "1 counts PD BeginTime\n2 true PD BeginTime\n");
    let ran = || if site.system.path("ran").exists() { site.system.read("ran").lines().count() } else { 0 };
    for round in 1..=2 {
        // Its time comes sooner, so that nobody has to wait for it.
        site.ok("scontrol update jobid=1 starttime=now");
        site.system.wait_until("it runs", || ran() == round);
        site.system.wait_until("it waits again", || listed().starts_with("1 counts PD BeginTime\n"));
    }
    let start = site.ok("scontrol -o show job 1");
    let minutes = start.split_once(" StartTime=").and_then(|(_, rest)| rest.get(13..19));
    assert_eq!(minutes, Some(":00:00"), "{start}");
    let (status, told) = site.fails("scancel 1");
    assert_eq!(status, 1);
    assert!(told.contains("Kill job error on job id 1: Cannot cancel scrontab jobs without --cron flag."), "{told}");
    site.ok("scancel --cron 1");
    assert_eq!(listed(), "2 true PD BeginTime\n");
    let disabled = "#DISABLED: #SCRON -n1 -J counts\n#DISABLED: 0 * * * * echo ran >> ran\n\n@yearly true\n";
    assert_eq!(site.ok("scrontab -l"), disabled);
    // An editor gets the table as it is listed.
    site.system.write(
        "editor.sh",
        "#!/bin/sh\ngrep -v '^#DISABLED' \"$1\" > new && echo '5 4 * * * date' >> new && cp new \"$1\"\n",
    );
    site.ok("chmod +x editor.sh");
    site.ok(&scrontab("-e").replacen("HOME", "VISUAL=./editor.sh HOME", 1));
    assert_eq!(site.ok("scrontab -l"), "\n@yearly true\n5 4 * * * date\n");
    assert_eq!(listed(), "3 true PD BeginTime\n4 date PD BeginTime\n");
    let (status, told) = site.fails("printf '0 0 * * * true\\n0 25 * * * date\\n' | scrontab -");
    assert_eq!((status, told.as_str()), (1, "scrontab: error: -, line 2: `25` is no hour; nothing was changed\n"));
    let (status, told) = site.fails("printf '#SCRON --bogus\\n0 0 * * * true\\n' | scrontab -");
    assert!(status == 1 && told.contains("line 2: ") && told.contains("--bogus"), "{told}");
    assert_eq!(listed(), "3 true PD BeginTime\n4 date PD BeginTime\n");
    site.ok("scrontab -r");
    let user = site.ok("id -un");
    let Output { status, stdout, .. } = site.run("scrontab -l");
    assert_eq!((listed(), status, stdout), (String::new(), 1, format!("no crontab for {user}")));
}
