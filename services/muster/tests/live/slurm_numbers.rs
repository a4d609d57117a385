//! Numbers of jobs, components and tasks of arrays, as Slurm's users see them.

use crate::{
    slurm::Site,
    slurm_steps::{nothing_runs, reference, reference_cluster, reference_from, unindented},
};

/// EX-19, SL-C-17, SL-C-18, SL-E-10
#[test]
fn each_task_of_an_array_has_a_number_of_its_own() {
    let site = reference_from(43);
    let said = "env | grep -e ^SLURM_JOB_ID= -e ^SLURM_ARRAY | sort";
    site.system.write("arr.sh", &format!("#!/bin/sh\n{said}\nsleep 1000\n"));
    assert_eq!(site.ok("sbatch -a 1-5%2 -t1 arr.sh"), "Submitted batch job 43\n");
    let listed = || site.ok("squeue -h -j 43 -o '%i %t %R' | sort");
    let running = "43_1 R nid00001\n43_2 R nid00001\n";
    let expected = format!("{running}43_[3-5%2] PD (JobArrayTaskLimit)\n");
    site.system.wait_until("two tasks run", || listed() == expected);
    let ids = site.ok("squeue -h -r -o '%i %A %F %K' | sort");
    assert_eq!(ids, "43_1 43 43 1\n43_2 44 43 2\n43_3 45 43 3\n43_4 46 43 4\n43_5 47 43 5\n");
    assert_eq!(site.ok("squeue -h -j 44 -o '%i %A %t'"), "43_2 44 R\n");
    assert_eq!(site.ok("squeue -h -j 46 -o '%i %A %t'"), "43_4 46 PD\n");
    assert_eq!(site.fails("squeue -j 48").0, 1);
    let shown = |id: &str| site.ok(&format!("scontrol -o show job {id}"));
    assert!(shown("44").starts_with("JobId=44 ArrayJobId=43 ArrayTaskId=2 JobName=arr.sh "), "{}", shown("44"));
    assert!(shown("43_2").starts_with("JobId=44 ArrayJobId=43 ArrayTaskId=2 "), "{}", shown("43_2"));
    assert!(shown("47").starts_with("JobId=47 ArrayJobId=43 ArrayTaskId=5 "), "{}", shown("47"));
    let rest = "JobId=43 ArrayJobId=43 ArrayTaskId=3-5 ArrayTaskThrottle=2 JobName=arr.sh ";
    assert!(shown("43").contains(rest), "{}", shown("43"));
    assert!(site.ok("scontrol write batch_script 44 -").contains("sleep 1000"));

    // An action on a number applies to the task.
    site.ok("scontrol hold 46");
    assert_eq!(site.ok("squeue -h -r -j 46 -o '%i %t %r'"), "43_4 PD JobHeldUser\n");
    site.ok("scontrol release 46");
    assert_eq!(site.ok("sbatch --parsable -d afterok:44 --wrap true"), "48\n");
    assert!(shown("48").contains(" Dependency=afterok:43_2(unfulfilled) "), "{}", shown("48"));
    site.ok("scancel 47");
    site.ok("scancel '43_[3-4]'");
    assert_eq!(listed(), running);
    let environment = |index: u32, own: u32| {
        unindented(&format!(
            "SLURM_ARRAY_JOB_ID=43
             SLURM_ARRAY_TASK_COUNT=5
             SLURM_ARRAY_TASK_ID={index}
             SLURM_ARRAY_TASK_MAX=5
             SLURM_ARRAY_TASK_MIN=1
             SLURM_ARRAY_TASK_STEP=1
             SLURM_JOB_ID={own}"
        ))
    };
    site.system.wait_until("both have said it", || {
        site.system.read("slurm-43_1.out") == environment(1, 43)
            && site.system.read("slurm-43_2.out") == environment(2, 44)
    });
    let accounted = site.ok("sacct -n -P -j 43 -o JobID,JobIDRaw");
    assert_eq!(accounted, "43_1|43\n43_1.batch|43.batch\n43_2|44\n43_2.batch|44.batch\n43_[3-5%2]|43\n");
    assert_eq!(site.ok("sacct -n -P -j 44 -o JobID,JobIDRaw"), "43_2|44\n43_2.batch|44.batch\n");
    assert_eq!(site.system.json(&["job", "show", "44", "--json"])["job"]["id"], "43_2");
    site.ok("scancel 44");
    site.system.wait_until("the second has ended", || listed() == "43_1 R nid00001\n");
    let last = site.system.read("slurm-43_2.out");
    assert!(last.contains("slurmstepd: error: *** JOB 44 ON nid00001 CANCELLED AT "), "{last}");
    site.ok("scancel 43");
    site.is_over("43");
    site.ok("scancel 48");

    // Files are named by it, and steps inside a task find their job by it.
    site.ok("sbatch -W -a 7,9 -o own-%j.%A.%a --wrap 'srun printenv SLURM_JOB_ID'");
    assert_eq!(site.system.read("own-49.49.7"), "49\n");
    assert_eq!(site.system.read("own-50.49.9"), "50\n");
    assert_eq!(site.ok("sacct -n -P -j 50 -o JobID,JobIDRaw | grep '[.]0'"), "49_9.0|50.0\n");

    // An array that is cancelled is told by its number.
    assert_eq!(site.ok("sbatch --parsable -H -a 1-3 --wrap true"), "51\n");
    let told = site.run("scancel -v 51").stderr;
    assert!(told.lines().any(|line| line == "scancel: Terminating job 51"), "{told}");
}

/// Numbers of jobs from this one on.
fn number_from(site: &Site, first: u64) {
    nothing_runs(site);
    site.system.write("cluster.toml", &reference_cluster(first));
    site.system.ok(&["config", "apply", "cluster.toml"]);
}

/// EX-08, EX-09, EX-11, with their own numbers; SL-I-01, SL-I-04, SL-S-16, SL-E-02, SL-R-07, SL-A-02, SL-A-03, SL-A-04
#[test]
fn a_site_says_where_numbers_begin() {
    let site = reference_from(123);
    assert_eq!(site.ok("sbatch -H -n1 : -n1 : -n1 : -n1 : -n1 --wrap true"), "Submitted batch job 123\n");
    let ids = site.ok("squeue -h -j 123 -O JobId:8,HetJobId:8,HetJobOffset:4,HetJobIdSet | sort");
    let line = |offset: u64| format!("{:<8}{:<8}{offset:<4}{:<20}\n", 123 + offset, 123, "123-127");
    assert_eq!(ids, (0..5).map(line).collect::<String>());
    site.ok("scancel 123");

    number_from(&site, 1721);
    let steps = "srun --het-group=0,1 true && srun --het-group=0 true && srun --het-group=0,1 true";
    let told = site.run(&format!("salloc -n1 : -n2 sh -c '{steps}'"));
    assert!(told.status == 0 && told.stderr.contains("salloc: Granted job allocation 1721\n"), "{}", told.stderr);
    assert_eq!(
        site.ok("sacct -n -P -j 1721 -o JobID,JobIDRaw"),
        unindented(
            "1721+0|1721
             1721+0.0|1721.0
             1721+0.1|1721.1
             1721+0.2|1721.2
             1721+1|1722
             1721+1.0|1722.0
             1721+1.2|1722.2"
        )
    );

    number_from(&site, 11741);
    let told = site.run(
        "salloc -N1 : -N2 sh -c '
            env | grep SLURM | sort > variables
            srun --het-group=1 printenv SLURM_JOB_ID
            srun --het-group=0 printenv SLURM_JOB_ID
            srun --het-group=1 printenv SLURM_JOB_ID_HET_GROUP_1
            srun --het-group=0 printenv SLURM_JOB_ID_HET_GROUP_0'",
    );
    assert_eq!((told.status, told.stdout.as_str()), (0, "11741\n11741\n11741\n11742\n11742\n11741\n"));
    let lines = unindented(
        "salloc: Pending job allocation 11741
         salloc: job 11741 queued and waiting for resources
         salloc: job 11741 has been allocated resources
         salloc: Granted job allocation 11741
         salloc: Relinquishing job allocation 11741",
    );
    assert_eq!(told.stderr, lines);
    let variables = site.system.read("variables");
    for line in [
        "SLURM_HET_SIZE=2",
        "SLURM_JOB_ID=11741",
        "SLURM_JOB_ID_HET_GROUP_0=11741",
        "SLURM_JOB_ID_HET_GROUP_1=11742",
        "SLURM_JOB_NODELIST_HET_GROUP_0=nid00001",
        "SLURM_JOB_NODELIST_HET_GROUP_1=nid[00002-00003]",
        "SLURM_JOB_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NODES_HET_GROUP_1=2",
        "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NUM_NODES_HET_GROUP_1=2",
    ] {
        assert!(variables.lines().any(|known| known == line), "{line} is missing:\n{variables}");
    }

    number_from(&site, 67767);
    site.ok("salloc -Q -J foo -A test -n1 -c2 : -n1 -c4 true");
    nothing_runs(&site);
    let head = "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n\
                ------------ ---------- ---------- ---------- ---------- ---------- -------- \n";
    let first = "67767+0             foo      debug       test          2  COMPLETED      0:0 \n";
    let second = "67767+1             foo      debug       test          4  COMPLETED      0:0 \n";
    for (named, lines) in [
        ("67767", [first, second].concat()),
        ("67767+1", second.to_owned()),
        ("67768", second.to_owned()),
        ("67767 --whole-hetjob=no", first.to_owned()),
        ("67767+1 --whole-hetjob=yes", [first, second].concat()),
    ] {
        assert_eq!(site.ok(&format!("sacct -j {named}")), format!("{head}{lines}"), "{named}");
    }
    assert_eq!(site.ok("sbatch --parsable -W -J foo -A test -n1 -c2 : -n1 -c4 --wrap true"), "67769\n");
    let steps = site.ok("sacct -n -P -j 67769 -o JobID");
    assert_eq!(steps, "67769+0\n67769+0.batch\n67769+1\n");

    // Jobs of muster's own commands are numbered in the same sequence.
    assert_eq!(site.system.submit(&["--", "true"]), "67771");
    let shown = site.ok("scontrol show config");
    for (name, value) in [("FirstJobId", "67767"), ("NEXT_JOB_ID", "67772")] {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert_eq!(line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value.trim()), Some(value), "{shown}");
    }
}

/// Submits a job and returns its number.
fn submit(site: &Site, line: &str) -> u64 {
    site.ok(&format!("sbatch --parsable {line}")).trim().parse().expect("a number")
}

/// Waits until the components of a job have these states, such as `0 R,1 R`.
fn stands(site: &Site, job: u64, wanted: &str) {
    let wanted: String = wanted.split(',').map(|part| format!("{job}+{part}\n")).collect();
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%i %t' | sort"));
    site.system.wait_until("its components stand so", || listed() == wanted);
}

/// SL-M-17, SL-C-31: a filter beside a number is checked against each component; matching nothing is no failure.
#[test]
fn filters_beside_a_number_choose_among_its_components() {
    let site = reference();
    let line = "-p p2 -n1 : -p debug -n1 --wrap 'sleep 1000'";
    let waits = submit(&site, &format!("-H {line}"));
    let nothing = |partition: &str, id: &str| {
        let told = format!("No active jobs match ALL job filters, including: partition={partition}\n");
        assert_eq!(site.fails(&format!("scancel -p {partition} {id}")), (0, String::new()), "{id}");
        assert_eq!(site.fails(&format!("scancel -v -p {partition} {id}")), (0, told), "{id}");
    };
    nothing("debug", &waits.to_string());
    stands(&site, waits, "0 PD,1 PD");
    site.ok(&format!("scancel -p p2 {waits}"));
    site.is_over(&waits.to_string());
    nothing("p2", &waits.to_string());
    nothing("debug", "88888");

    let job = submit(&site, line);
    stands(&site, job, "0 R,1 R");
    nothing("p2", &(job + 1).to_string());
    nothing("debug", &format!("{job}+0"));
    let told = site.fails(&format!("scancel -v -p debug {job}"));
    assert_eq!(told, (0, format!("scancel: Terminating job {job}+1\n")));
    stands(&site, job, "0 R");
    nothing("debug", &job.to_string());
    site.ok(&format!("scancel -p p2 {job}"));
    site.is_over(&job.to_string());

    // For an array, the tasks that match.
    let array = submit(&site, "-a 1-4%2 --wrap 'sleep 1000'");
    let listed = || site.ok(&format!("squeue -h -r -j {array} -o '%K %t' | sort"));
    site.system.wait_until("two tasks run", || listed() == "1 R\n2 R\n3 PD\n4 PD\n");
    site.ok(&format!("scancel -t PENDING {array}"));
    assert_eq!(listed(), "1 R\n2 R\n");
    site.ok(&format!("scancel {array}"));
}

/// SL-M-12: a component that was ended alone does not keep a file from the others.
#[test]
fn a_file_is_copied_to_the_components_that_go_on() {
    let site = reference();
    let script = "until [ -e go ]; do sleep 0.1; done; sbcast file in.%N && echo copied; sleep 1000";
    site.system.write("file", "text\n");
    let job = submit(&site, &format!("-o out -n1 : -n1 : -n1 --wrap '{script}'"));
    stands(&site, job, "0 R,1 R,2 R");
    site.ok(&format!("scancel {job}+1"));
    stands(&site, job, "0 R,2 R");
    site.ok(&format!("sbcast --jobid={job} file from.%N"));
    assert_eq!(site.ok("ls from.*"), "from.nid00001\nfrom.nid00003\n");
    let (status, told) = site.fails(&format!("sbcast --jobid={job}+1 file alone.%N"));
    assert!(status == 1 && told.contains("Invalid job id specified"), "{status} {told}");
    site.system.write("go", "");
    site.system.wait_until("the script has copied it", || site.system.read("out") == "copied\n");
    assert_eq!(site.ok("ls in.*"), "in.nid00001\nin.nid00003\n");
    site.ok(&format!("scancel {job}"));
}

/// SL-C-30, SL-M-15: one component's part of a step is signalled and ended, and then no longer listed.
#[test]
fn the_part_of_a_step_in_a_component_is_ended_alone() {
    let site = reference();
    let task = "#!/bin/sh\ntrap 'echo heard' USR1\necho begun\nwhile :; do sleep 0.1; done\n";
    site.system.write("task.sh", task);
    site.ok("chmod 755 task.sh");
    for own_number in [false, true] {
        let job = submit(&site, "-o out.%j -n1 : -n1 --wrap 'srun -l --het-group=0,1 ./task.sh'");
        let part = if own_number { format!("{}.0", job + 1) } else { format!("{job}+1.0") };
        let said = || site.system.read(&format!("out.{job}"));
        site.system.wait_until("both run", || ["0: begun", "1: begun"].iter().all(|line| said().contains(line)));
        site.ok(&format!("scancel -s USR1 {part}"));
        site.system.wait_until("the second has heard it", || said().contains("1: heard"));
        let listed = || site.ok(&format!("squeue -h -s -j {job} -o %i"));
        assert_eq!(listed(), format!("{job}+0.0\n{job}+1.0\n"));
        let told = site.fails(&format!("scancel -v {part}"));
        assert_eq!(told, (0, format!("scancel: Terminating step {part}\n")));
        site.system.wait_until("its tasks are over", || listed() == format!("{job}+0.0\n"));
        let accounted = site.ok(&format!("sacct -n -P -j {job} -o JobID,State | grep '[.]0|'"));
        assert_eq!(accounted, format!("{job}+0.0|RUNNING\n{job}+1.0|CANCELLED\n"));
        assert!(!said().contains("0: heard"), "{}", said());
        stands(&site, job, "0 R,1 R");
        site.ok(&format!("scancel {job}"));
        site.is_over(&job.to_string());
    }
}
