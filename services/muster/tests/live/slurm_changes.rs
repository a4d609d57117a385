//! Slurm's commands that change components, held jobs and waiting jobs, and the changes they refuse.

use crate::{
    slurm::Site,
    slurm_steps::reference,
    system::{Output, System},
};

/// SL-M-07, SL-S-02, SL-C-36, SL-C-37
#[test]
fn each_component_keeps_what_an_update_of_the_leader_does_not_name() {
    let site = reference();
    let first = "-H --priority=1000 -J one -n1 -L ansys:1 -t 10";
    let line = format!("sbatch --parsable {first} : -J two -n4 -C knl -t 20 --wrap 'sleep 1000'");
    let job = site.ok(&line).trim().to_owned();
    let listed = |format: &str| site.ok(&format!("squeue -h -j {job} -o '{format}'"));
    site.ok(&format!("scontrol update jobid={job} minmemorynode=500 nice=7"));
    site.ok(&format!("scontrol update jobid={job} timelimit+=5"));
    assert_eq!(
        listed("%i %j %C %f %W %m %l"),
        format!("{job}+0 one 1 (null) ansys:1 500M 15:00\n{job}+1 two 4 knl (null) 500M 25:00\n")
    );
    site.ok(&format!("scontrol update jobid={job}+1 name=three"));
    assert_eq!(listed("%j"), "one\nthree\n");
    assert_eq!(listed("%Q"), "0\n0\n", "it is held");
    site.ok(&format!("scontrol release {job}"));
    site.system.wait_until("it runs", || listed("%t") == "R\nR\n");
    assert_eq!(listed("%Q %C"), "993 1\n993 4\n");
    assert!(listed("%N").lines().nth(1).is_some_and(|node| node >= "nid00008"), "{}", listed("%N"));
    site.ok(&format!("scontrol update jobid={job} name=all"));
    assert_eq!(listed("%j"), "all\nall\n");
    let late = format!("Job is no longer pending execution for job {job}\n");
    site.ok(&format!("scontrol hold {job}"));
    assert_eq!(listed("%t %r %Q"), "R None 0\nR None 0\n", "it counts when the job is put back");
    site.ok(&format!("scontrol release {job}"));
    assert_eq!(listed("%Q"), "993\n993\n");
    assert_eq!(site.fails(&format!("scontrol release {job}")), (1, late));
    site.ok(&format!("scontrol update jobid={job}+1 name=last && scancel -n last"));
    site.system.wait_until("only the leader is left", || listed("%i %j") == format!("{job}+0 all\n"));
    site.ok(&format!("scancel {job}"));
    site.is_over(&job);
    let over = format!("Job/step already completing or completed for job {job}\n");
    assert_eq!(site.fails(&format!("scontrol hold {job}")), (1, over));
}

/// SL-C-03: even if the partition has a default time.
#[test]
fn a_job_can_have_no_time_limit() {
    let site = reference();
    let job = site.ok("sbatch --parsable -t UNLIMITED --wrap 'sleep 1000'").trim().to_owned();
    site.system.wait_for_state(&job, "running");
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%l %L'"));
    assert_eq!(listed(), "UNLIMITED UNLIMITED\n");
    let shown = site.ok(&format!("scontrol -o show job {job}"));
    assert!(shown.contains(" TimeLimit=UNLIMITED ") && shown.contains(" EndTime=Unknown "), "{shown}");
    site.ok(&format!("scontrol update jobid={job} timelimit=10"));
    assert!(listed().starts_with("10:00 "), "{}", listed());
    site.ok(&format!("scontrol update jobid={job} timelimit=UNLIMITED"));
    assert_eq!(listed(), "UNLIMITED UNLIMITED\n");
    site.ok(&format!("scancel {job}"));
}

/// SL-C-37: a priority of 0 holds a job.
#[test]
fn a_job_without_priority_is_held_until_it_is_released() {
    let site = reference();
    let job = site.ok("sbatch --parsable --priority=1000 --begin=now+1hour --wrap true").trim().to_owned();
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%t %r %Q'"));
    site.ok(&format!("scontrol update jobid={job} priority=0"));
    assert_eq!(listed(), "PD JobHeldUser 0\n");
    let held = format!("Job is in held state, pending scheduler release for job {job}\n");
    assert_eq!(site.fails(&format!("scontrol update jobid={job} priority=5")), (1, held));
    site.ok(&format!("scontrol update jobid={job} hold=no"));
    assert_eq!(listed(), "PD BeginTime 1000\n");
    site.ok(&format!("scontrol update jobid={job} hold=1"));
    assert_eq!(listed(), "PD JobHeldUser 0\n");
    site.ok(&format!("scontrol release {job}"));
    assert_eq!(listed(), "PD BeginTime 1000\n");
    let once = site.ok("sbatch --parsable --no-requeue --wrap 'sleep 1000'").trim().to_owned();
    site.system.wait_for_state(&once, "running");
    let disabled = format!("Requested operation is presently disabled for job {once}\n");
    assert_eq!(site.fails(&format!("scontrol requeue {once}")), (1, disabled));
    // Of several, those that wait can be left out.
    let again = site.ok("sbatch --parsable --requeue --wrap 'sleep 1000'").trim().to_owned();
    site.system.wait_for_state(&again, "running");
    for named in [&job, &again] {
        site.ok(&format!("scontrol requeuehold incomplete {named}"));
    }
    let reason = || site.ok(&format!("squeue -h -j {again} -o '%t %r'"));
    site.system.wait_until("it is back and held", || reason().starts_with("RH JobHeld"));
    assert_eq!(listed(), "PD BeginTime 1000\n");
    site.ok(&format!("scancel {again}"));
    let array = site.ok("sbatch --parsable -H -a 1-3%1 --wrap true").trim().to_owned();
    site.ok(&format!("scontrol update jobid={array} arraytaskthrottle=0"));
    assert_eq!(site.ok(&format!("squeue -h -j {array} -o %i")), format!("{array}_[1-3]\n"));
}

/// SL-C-30, SL-C-31
#[test]
fn the_signal_that_kills_ends_jobs_and_others_do_not_reach_those_that_wait() {
    let site = reference();
    let runs = site.ok("sbatch --parsable --wrap 'sleep 1000'").trim().to_owned();
    let waits = site.ok("sbatch --parsable -H --wrap true").trim().to_owned();
    site.system.wait_for_state(&runs, "running");
    let pending = format!("scancel: error: Kill job error on job id {waits}: Job is pending execution\n");
    assert_eq!(site.fails(&format!("scancel -s USR1 {waits}")), (1, pending));
    site.ok(&format!("scancel -s KILL {waits} {runs}"));
    site.is_over(&waits);
    site.is_over(&runs);
    let uid = nix::unistd::Uid::current();
    let states = site.ok(&format!("sacct -X -n -P -o State -j {waits},{runs}"));
    assert_eq!(states, format!("CANCELLED by {uid}\n").repeat(2));
    let array = site.ok("sbatch --parsable -a 1-2%1 --wrap 'sleep 1000'").trim().to_owned();
    let first = format!("{array}_1");
    site.system.wait_for_state(&first, "running");
    site.ok(&format!("scancel -s USR1 {array}"));
    let pending = format!("scancel: error: Kill job error on job id {array}_2: Job is pending execution\n");
    assert_eq!(site.fails(&format!("scancel -s USR1 {array}_2")), (1, pending));
    site.ok(&format!("scancel -s KILL {array}"));
    site.is_over(&array);
}

/// SL-C-31, SL-C-34: jobs that a user may not touch do not keep his command from his own jobs, and nothing is made up
/// about jobs that he may not see.
#[test]
fn jobs_of_others_do_not_stand_in_the_way() {
    let system = System::start_for_others();
    let submit = ["slurm", "sbatch", "--parsable", "-J", "build", "-H", "--wrap", "true"];
    let theirs = system.ok(&submit).trim().to_owned();
    let Output { status, stdout, stderr } = system.run_as_nobody(&submit);
    assert_eq!(status, 0, "{stderr}");
    let own = stdout.trim().to_owned();
    let shown = system.run_as_nobody(&["slurm", "scontrol", "-o", "show", "job", &theirs]).stdout;
    assert!(shown.contains(" BatchFlag=1 ") && shown.contains(" StdOut=(null)"), "{shown}");
    let script = ["slurm", "scontrol", "write", "batch_script", &theirs, "-"];
    let denied = "job script retrieval failed: Access/permission denied\n";
    assert_eq!(system.run_as_nobody(&script).stderr, denied);
    let Output { status, stderr, .. } = system.run_as_nobody(&["slurm", "scancel", "-n", "build"]);
    let denied = format!("scancel: error: Kill job error on job id {theirs}: Access/permission denied\n");
    assert_eq!((status, stderr), (1, denied));
    assert_eq!(system.ok(&["slurm", "squeue", "-h", "-n", "build", "-o", "%i"]), format!("{theirs}\n"));
    assert_eq!(system.ok(&["slurm", "sacct", "-X", "-n", "-P", "-o", "JobID", "-j", &own]), format!("{own}\n"));
}

/// SL-C-30, SL-M-17: a signal to another user's job is refused, even if no step or script is there to get it.
#[test]
fn a_signal_to_the_job_of_another_is_refused_whatever_runs_of_it() {
    let system = System::start_nodes_for_others(2);
    let submit = |words: &[&str]| {
        let line = [&["slurm", "sbatch", "--parsable"], words].concat();
        system.ok(&line).trim().to_owned()
    };
    let plain = submit(&["--wrap", "sleep 1000"]);
    let array = submit(&["-a", "1-2", "--wrap", "sleep 1000"]);
    let several = submit(&["-n1", ":", "-n1", "--wrap", "sleep 1000"]);
    let tasks = [1, 2].map(|index| format!("{array}_{index}"));
    for job in [&plain, &tasks[0], &tasks[1], &several] {
        system.wait_for_state(job, "running");
    }
    let component = format!("{several}+1");
    for (options, named) in [
        (vec!["-s", "CONT"], &plain),
        (vec!["-s", "CONT"], &array),
        (vec!["-s", "CONT"], &tasks[0]),
        (vec!["-s", "CONT"], &several),
        (vec!["-s", "CONT"], &component),
        (vec!["-b", "-s", "CONT"], &plain),
        (vec!["-b", "-s", "CONT"], &component),
        (vec!["-f", "-s", "CONT"], &plain),
        (vec!["-f", "-s", "CONT"], &component),
    ] {
        let line = [&["slurm", "scancel"], options.as_slice(), &[named.as_str()]].concat();
        let Output { status, stderr, .. } = system.run_as_nobody(&line);
        assert_eq!(status, 1, "{line:?}: {stderr}");
        let denied = |line: &str| {
            line.starts_with("scancel: error: Kill job error on job id ")
                && line.ends_with(": Access/permission denied")
        };
        assert!(!stderr.is_empty() && stderr.lines().all(denied), "{line:?}: {stderr}");
        // Its owner is not told anything either if there is no step.
        assert_eq!(system.run(&line).stderr, "", "{line:?}");
    }
}

/// SL-C-12, SL-C-13, SL-O-01
#[test]
fn files_name_nodes_and_variables_and_jobs_are_their_submitter_s() {
    let site = reference();
    site.system.write("hosts", "nid00007 # the last of its kind\n");
    site.system.write("variables", "FROM_FILE=here\nFROM_BOTH=file\n");
    let shows = "echo $SLURM_JOB_NODELIST $FROM_FILE $FROM_BOTH";
    site.ok(&format!("FROM_BOTH=caller sbatch -W -F hosts --export-file=variables --wrap '{shows}'"));
    assert_eq!(site.system.read("slurm-1.out"), "nid00007 here caller\n");
    let invalid = "sbatch: error: Invalid --nodefile node file\n";
    assert_eq!(site.fails("sbatch -F nowhere --wrap true"), (255, invalid.to_owned()));
    let (status, told) = site.fails("sbatch --export-file=nowhere --wrap true");
    assert!(status == 1 && told.starts_with("sbatch: error: Could not load nowhere: "), "{told}");
    let refused = "sbatch: error: Batch job submission failed: --uid: jobs are submitted for their submitter's own user and \
                   group only\n";
    assert_eq!(site.fails("sbatch --uid=daemon --wrap true"), (1, refused.to_owned()));
    assert_eq!(site.ok("sbatch --parsable --uid=$(id -un) --gid=$(id -g) --wrap true"), "2\n");
    let impossible = "sbatch: error: Batch job submission failed: Requested node configuration is not available\n";
    assert_eq!(site.fails("sbatch --mincpus=5 --wrap true"), (1, impossible.to_owned()));
}

/// SL-C-26, SL-C-28, SL-C-33
#[test]
fn lists_tell_what_is_not_there_and_what_is_reserved() {
    let site = reference();
    assert_eq!(site.fails("squeue -w zzz"), (1, "squeue: error: Invalid node name zzz\n".to_owned()));
    assert_eq!(site.ok("squeue -h -w nid00001 -p nope"), "");
    let unknown = "slurm_load_jobs error: Invalid job id specified\n";
    assert_eq!(site.fails("squeue -j 99"), (1, unknown.to_owned()));
    assert_eq!(site.fails("squeue -j abc"), (1, "squeue: error: Invalid job id: abc\n".to_owned()));
    assert!(site.fails("squeue -t FOO").1.starts_with("squeue: error: Invalid job state specified: FOO\n"));
    assert!(site.ok("scontrol ping").ends_with(" is UP\n"));
    let Output { status, stdout, .. } = site.run("MUSTER_DATA=/nowhere scontrol ping");
    assert!(status == 1 && stdout.ends_with(" is DOWN\n"), "{stdout}");
    site.ok("scontrol create reservation reservationname=r1 starttime=now duration=10 nodes=nid00012 users=$(id -un)");
    site.system.wait_until("it has begun", || site.ok("sinfo -h -p debug -t resv -o %N") == "nid00012\n");
}

/// SL-C-17, SL-C-38: tasks that have not started are changed and released alone; the others stay as they are.
#[test]
fn waiting_tasks_of_an_array_are_changed_and_released_alone() {
    let site = Site::start();
    site.ok("sbatch -H -a 1-5 -t 10 -o /dev/null --wrap 'echo > ran.$SLURM_ARRAY_TASK_ID'");
    site.ok("scontrol update jobid=1_2 timelimit=3");
    site.ok("scontrol update jobid=1_[4-5] timelimit=4 partition=default");
    let list = || site.ok("squeue -h -j 1 -o '%i %t %l' | sort");
    assert_eq!(list(), "1_2 PD 3:00\n1_4 PD 4:00\n1_5 PD 4:00\n1_[1,3] PD 10:00\n");
    assert!(site.ok("scontrol show job 1_2").contains(" TimeLimit=00:03:00 "));
    let (status, told) = site.fails("scontrol update jobid=1_3 comment=own");
    assert_eq!(status, 1, "{told}");
    site.ok("scontrol release 1_3");
    site.system.wait_until("task 3 has run", || site.system.path("ran.3").exists());
    site.system.wait_until("task 3 is over", || {
        list() == "1_1 PD 10:00\n1_2 PD 3:00\n1_4 PD 4:00\n1_5 PD 4:00\n"
            || list() == "1_2 PD 3:00\n1_4 PD 4:00\n1_5 PD 4:00\n1_[1] PD 10:00\n"
    });
    assert!(!site.system.path("ran.1").exists());
    site.ok("scancel 1_5");
    site.ok("scontrol release 1");
    site.is_over("1");
    let states = site.ok("sacct -nPX -j 1 -o jobid,state,timelimit | sort");
    assert_eq!(
        states,
        "1_1|COMPLETED|00:10:00\n1_2|COMPLETED|00:03:00\n1_3|COMPLETED|00:10:00\n1_4|COMPLETED|00:04:00\n1_5|CANCELLED by 0|00:04:00\n"
    );
    assert!(site.system.path("ran.4").exists() && !site.system.path("ran.5").exists());
}

/// A running job gives nodes back: a step there ends, the nodes are free for others, and the script goes on with the
/// variables of its new size.
#[test]
fn a_running_job_becomes_smaller_and_its_nodes_are_for_others() {
    let site = Site::start();
    site.system.write(
        "job.sh",
        "#!/bin/sh\n\
         #SBATCH -N3 -n3\n\
         srun -n3 sh -c 'echo x >> started; sleep 1000' &\n\
         step=$!\n\
         while [ ! -e go ]; do sleep 0.05; done\n\
         scontrol update jobid=$SLURM_JOB_ID NumNodes=2 || exit 7\n\
         wait $step; echo step ended with $?\n\
         . ./slurm_job_${SLURM_JOB_ID}_resize.sh\n\
         echo has $SLURM_NNODES $SLURM_JOB_NODELIST $SLURM_NTASKS\n\
         srun -N2 -n2 sh -c 'echo on $SLURMD_NODENAME'\n\
         while [ ! -e end ]; do sleep 0.05; done\n",
    );
    let job = site.ok("sbatch --parsable job.sh").trim().to_owned();
    let started = || site.system.path("started").exists() && site.system.read("started").lines().count() == 3;
    site.system.wait_until("the step runs everywhere", started);
    let larger = format!("scontrol update jobid={job} NumNodes=4");
    let told = format!(
        "Node count specification invalid for job {job}\njob {job} has 3 nodes and cannot grow to 4: a running job can only \
         become smaller\n"
    );
    assert_eq!(site.fails(&larger), (1, told));
    let stranger = site.fails(&format!("scontrol update jobid={job} NodeList=node[1,4]"));
    assert!(stranger.0 == 1 && stranger.1.contains("`node4` is not a node of job"), "{stranger:?}");
    site.system.write("go", "");
    // Another job gets the node while the first one runs.
    assert_eq!(site.ok("srun -N1 -w node3 sh -c 'echo on $SLURMD_NODENAME'"), "on node3\n");
    let size = || site.ok(&format!("squeue -h -j {job} -o '%t %D %N'"));
    site.system.wait_until("the job is smaller", || size() == "R 2 node[1-2]\n");
    let said = || site.system.read(&format!("slurm-{job}.out"));
    site.system.wait_until("the script goes on", || said().matches("on node").count() == 2);
    let said = said();
    assert!(said.contains("has 2 node[1-2]\n") && said.contains("step ended with "), "{said}");
    assert!(!said.contains("step ended with 0"), "{said}");
    assert!(said.contains(&format!("  For bash or sh shells:  . ./slurm_job_{job}_resize.sh\n")), "{said}");
    // From outside of the job, by name, without files.
    assert_eq!(site.ok(&format!("scontrol update jobid={job} NodeList=node1")), "");
    assert_eq!(site.ok("srun -N1 -w node2 sh -c 'echo on $SLURMD_NODENAME'"), "on node2\n");
    site.system.write("end", "");
    site.is_over(&job);
    assert_eq!(site.ok(&format!("sacct -n -X -P -j {job} -o State,NNodes,NodeList")), "COMPLETED|1|node1\n");
}

/// SL-M-07, SL-R-10: a component of a running job gives nodes back, and later steps see its new size.
#[test]
fn a_component_becomes_smaller_and_its_steps_see_it() {
    let site = Site::start();
    site.system.write(
        "job.sh",
        "#!/bin/sh\n\
         #SBATCH -N1 -n1\n\
         #SBATCH hetjob\n\
         #SBATCH -N3 -n3\n\
         while [ ! -e go ]; do sleep 0.05; done\n\
         srun --het-group=1 -N2 -n2 sh -c 'echo on $SLURMD_NODENAME'\n\
         srun --het-group=0,1 -N1 -n1 sh -c 'echo with $SLURMD_NODENAME'\n\
         while [ ! -e end ]; do sleep 0.05; done\n",
    );
    let job = site.ok("sbatch --parsable job.sh").trim().to_owned();
    site.system.wait_for_state(&job, "running");
    let (status, told) = site.fails(&format!("scontrol update jobid={job} NumNodes=1"));
    assert_eq!((status, told.contains("it must be said which one gives up nodes")), (1, true), "{told}");
    let (status, told) = site.fails(&format!("scontrol update jobid={job}+1 NumNodes=4"));
    assert_eq!((status, told.contains("has 3 nodes and cannot grow to 4")), (1, true), "{told}");
    assert_eq!(site.ok(&format!("scontrol update jobid={job}+1 NumNodes=2")), "");
    assert_eq!(site.ok("srun -N1 -w node4 sh -c 'echo on $SLURMD_NODENAME'"), "on node4\n");
    let size = || site.ok(&format!("squeue -h -j {job} -o '%i %t %D %N'"));
    let smaller = format!("{job}+0 R 1 node1\n{job}+1 R 2 node[2-3]\n");
    site.system.wait_until("the component is smaller", || size() == smaller);
    site.system.write("go", "");
    let said = || site.system.read(&format!("slurm-{job}.out"));
    site.system.wait_until("the script continues", || said().matches("with node").count() == 2);
    let said = said();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["on node2", "on node3", "with node1", "with node2"]);
    site.system.write("end", "");
    site.is_over(&job);
}

/// SL-C-38: a running step gets another time limit; nodes out of service get another reason.
#[test]
fn steps_get_other_time_limits_and_nodes_other_reasons() {
    let site = reference();
    let job = site.ok("sbatch --parsable -n1 -t 30 --wrap 'srun -t 20 sleep 1000'").trim().to_owned();
    let limit = || {
        let shown = site.run(&format!("scontrol -o show step {job}.0")).stdout;
        shown.split_whitespace().find_map(|pair| pair.strip_prefix("TimeLimit=").map(str::to_owned)).unwrap_or_default()
    };
    site.system.wait_until("the step runs", || limit() == "00:20:00");
    site.ok(&format!("scontrol update stepid={job}.0 timelimit=5"));
    assert_eq!(limit(), "00:05:00");
    site.ok(&format!("scontrol update stepid={job}.0 timelimit=+7"));
    assert_eq!(limit(), "00:12:00");
    let data: serde_json::Value =
        serde_json::from_str(&site.ok(&format!("scontrol --json show step {job}.0"))).expect("a document");
    assert_eq!(data["steps"][0]["time"]["limit"]["number"], 12, "{data}");
    let unknown = "slurm_update error: Invalid job id specified\n";
    assert_eq!(site.fails(&format!("scontrol update stepid={job}.7 timelimit=5")), (1, unknown.to_owned()));
    site.ok(&format!("scancel {job}"));
    site.ok("scontrol update nodename=nid00003 state=drain reason=disk");
    site.ok("scontrol update nodename=nid00004 state=down reason=power");
    site.ok("scontrol update nodename=nid[00003-00004] reason=checked");
    assert_eq!(site.ok("sinfo -h -R -o '%E %N %t' | sort"), "checked nid00003 drain\nchecked nid00004 down\n");
    let (status, told) = site.fails("scontrol update nodename=nid00005 reason=checked");
    assert!(status == 1 && told.contains("nid00005 is not out of service"), "{told}");
}
