//! PBS's commands on a live system.

use crate::{
    slurm::Site,
    system::{Output, System},
};

pub const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "workq"

[[queues]]
name = "workq"

[[queues]]
name = "short"
"#;

/// A site with a queue `workq`, as new servers of PBS have it.
pub fn site() -> Site {
    Site::with(CONFIGURATION)
}

/// A script with directives runs with PBS's variables, in its owner's home folder unless it says otherwise, and its
/// output goes to files with PBS's names beside the place of submission. Lines for other schedulers are told.
#[test]
fn a_script_runs_with_its_variables_and_its_output_is_where_pbs_puts_it() {
    let site = site();
    let script = "#!/bin/sh\n#PBS -N first\n#PBS -l select=2:ncpus=2:mpiprocs=2,walltime=0:10:00 -l place=scatter\n\
                  #SBATCH -N 4\nenv | grep ^PBS_\necho nodes: $(sort $PBS_NODEFILE | uniq -c)\necho bad >&2\nexit 3\n";
    site.system.write("job.sh", script);
    let Output { status, stdout, stderr } = site.run("qsub -W block=true -v COLOUR=red job.sh");
    assert_eq!((status, stdout.as_str()), (3, "1.alpha\n"), "{stderr}");
    assert!(stderr.contains("qsub: line 4: #SBATCH lines are options of sbatch and are ignored here"), "{stderr}");
    let said = site.system.read("first.o1");
    for line in [
        "PBS_JOBID=1.alpha",
        "PBS_JOBNAME=first",
        "PBS_QUEUE=workq",
        "PBS_ENVIRONMENT=PBS_BATCH",
        "PBS_NUM_NODES=2",
        "PBS_NP=4",
        "nodes: 2 node1 2 node2",
    ] {
        assert!(said.lines().any(|known| known == line), "{line} is missing:\n{said}");
    }
    let directory = format!("PBS_O_WORKDIR={}", site.system.path("").display());
    assert!(said.contains(directory.trim_end_matches('/')), "{said}");
    assert_eq!(site.system.read("first.e1"), "bad\n");
}

/// PBS-L-01, PBS-L-02: `qmgr` makes nodes of the lines that are printed for a file `nodes`.
#[test]
fn qmgr_makes_the_nodes_of_a_file() {
    let site = site();
    site.system.write("nodes", "ts1:ts np=4\nfast7 big np=2\n");
    let printed =
        site.system.ok(&["pbs", "nodes", "--memory", "2gb", &site.system.path("nodes").display().to_string()]);
    site.system.write("lines", &printed);
    site.ok("qmgr < lines");
    let shown = site.ok("pbsnodes fast7");
    for line in ["resources_available.ncpus = 2", "resources_available.mem = 2097152kb"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(shown.contains("big") && site.ok("pbsnodes ts1").contains("ncpus = 4"), "{shown}");
}

/// Queues and servers that are not there have a message and a status of their own, and a long option that asks for help does nothing
/// else.
#[test]
fn names_that_are_not_there_are_told() {
    let site = site();
    assert_eq!(site.ok("echo sleep 60 | qsub -h"), "1.alpha\n");
    for (line, status, text) in [
        ("qmove nowhere 1", 170, "qmove: Unknown queue nowhere"),
        ("qmove short@elsewhere 1", 153, "qmove: Unknown Host elsewhere"),
        ("qstat nowhere", 170, "qstat: Unknown queue nowhere"),
        ("qdel 1 --help", 2, "--help"),
        ("qsub -W depend=afterok:1.elsewhere -- /bin/true", 153, "qsub: Unknown Host elsewhere"),
        ("qalter -W depend=afterok:1.elsewhere 1", 153, "qalter: Unknown Host elsewhere"),
    ] {
        let (failed, stderr) = site.fails(line);
        assert_eq!(failed, status, "{line}: {stderr}");
        assert!(stderr.contains(text), "{line}: {stderr}");
    }
    assert!(site.ok("qdel --help 1").starts_with("qdel: "));
    assert_eq!(site.ok("qstat short"), "", "it is there, and empty");
    assert!(site.ok("qstat -f 1").contains("queue = workq"));
    assert_eq!(
        site.ok("qsub -W depend=afterany:1.alpha.example.org -- /bin/true"),
        "2.alpha\n",
        "it may be named in full"
    );
}

/// `qstat` lists jobs in their states; those that are over only if it is asked for them.
#[test]
fn jobs_are_listed_held_released_and_deleted() {
    let site = site();
    assert_eq!(site.ok("echo sleep 60 | qsub -N sleeper -l ncpus=1"), "1.alpha\n");
    assert_eq!(site.ok("echo sleep 60 | qsub -h -q short -p 7"), "2.alpha\n");
    let state = |job: &str| {
        let full = site.ok(&format!("qstat -f {job}"));
        let line = full.lines().find_map(|line| line.trim().strip_prefix("job_state = "));
        line.unwrap_or_default().to_owned()
    };
    site.system.wait_until("the first runs", || state("1.alpha") == "R");
    assert_eq!(state("2"), "H");
    let listed = site.ok("qstat");
    let rows: Vec<Vec<&str>> = listed.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["1.alpha", "sleeper", "root"], "{listed}");
    assert_eq!((rows[0][4], rows[0][5], rows[1][4], rows[1][5]), ("R", "workq", "H", "short"), "{listed}");
    assert_eq!(site.ok("qselect -s H -q short -p .gt.6"), "2.alpha\n");
    site.ok("qalter -p 9 -N renamed -l walltime=0:05:00 2.alpha");
    let full = site.ok("qstat -f 2");
    for line in ["Job_Name = renamed", "Priority = 9", "Resource_List.walltime = 00:05:00"] {
        assert!(full.lines().any(|known| known.trim() == line), "{line}: {full}");
    }
    site.ok("qrls 2.alpha");
    site.system.wait_until("the second runs", || state("2") == "R");
    assert!(site.ok("qstat -f -F dsv 1").starts_with("Job Id: 1.alpha|"));
    assert!(site.ok("qstat -an1 1").contains("node"));
    assert!(site.ok("qstat -q").contains("workq"));
    assert_eq!(site.ok("qstat -u nobody"), "");
    site.system.wait_until("it takes signals", || site.run("qsig -s STOP 2 && qsig -s CONT 2").status == 0);
    site.ok("qdel 1 2.alpha");
    site.system.wait_until("both are gone", || site.ok("qstat").is_empty());
    let (status, error) = site.fails("qstat 1");
    assert_eq!(
        (status, error.as_str()),
        (35, "qstat: 1.alpha Job has finished, use -x or -H to obtain historical job information\n")
    );
    assert!(site.ok("qstat -x 1").lines().count() == 3);
    let (status, error) = site.fails("qdel 77");
    assert_eq!((status, error.as_str()), (153, "qdel: Unknown Job Id 77.alpha\n"));
    let queues = site.ok("qstat -Q");
    assert!(queues.lines().any(|line| line.starts_with("workq ")) && queues.contains("short "), "{queues}");
    assert!(site.ok("qstat -B").lines().nth(2).is_some_and(|line| line.starts_with("alpha ")), "there is a server");
    assert!(site.ok("qstat -f -F json -x 1").contains("\"1.alpha\""));
}

/// Jobs run again, are held and moved while they wait, and are deleted task by task and all together.
#[test]
fn jobs_run_again_move_and_are_deleted_together() {
    let site = site();
    let has = |job: &str, line: &str| site.ok(&format!("qstat -f {job}")).lines().any(|known| known.trim() == line);
    let runs = || std::fs::read_to_string(site.system.path("runs")).unwrap_or_default();
    site.ok("echo 'cd $PBS_O_WORKDIR; echo run >> runs; sleep 600' | qsub -l ncpus=1");
    site.system.wait_until("it runs", || runs() == "run\n");
    site.ok("qrerun 1");
    site.system.wait_until("it runs again", || runs() == "run\nrun\n");
    site.ok("qstop short");
    site.ok("echo sleep 600 | qsub -q short -l ncpus=1");
    site.system.wait_until("it waits for its queue", || has("2", "job_state = Q"));
    site.ok("qhold 2");
    assert!(has("2", "job_state = H"));
    site.ok("qrls 2");
    assert!(has("2", "job_state = Q"));
    site.ok("qmove workq 2");
    assert!(has("2", "queue = workq"));
    site.system.wait_until("it runs in its new queue", || has("2", "job_state = R"));
    site.ok("echo true | qsub -h -N many -J 1-3");
    site.ok("qdel -t 2 '3[]'");
    site.ok("qrls '3[]'");
    site.system.wait_until("the other tasks have run", || {
        [1, 3].iter().all(|index| site.system.path(&format!("many.o3.{index}")).exists())
    });
    assert!(!site.system.path("many.o3.2").exists());
    site.ok("qdel all");
    site.system.wait_until("all are gone", || site.ok("qstat").is_empty());
}

/// What `qsub` is asked for takes effect: dependencies, the umask, the whole environment, accounts, silence, a time of its own, a
/// prefix of directives, and arrays as TORQUE has them. A job that may not run again does not.
#[test]
fn options_of_submissions_take_effect() {
    let site = site();
    let has = |job: &str, text: &str| site.ok(&format!("qstat -f {job}")).contains(text);
    site.ok("echo true | qsub -h");
    let script = "cd $PBS_O_WORKDIR; umask > told; echo $COLOUR >> told";
    let line = "COLOUR=red qsub -z -W depend=afterok:1,umask=027 -A phys -V";
    assert_eq!(site.ok(&format!("echo '{script}' | {line}")), "", "it is silent");
    assert!(has("2", "job_state = H") && has("2", "Account_Name = phys") && has("2", "depend = afterok:1"));
    site.ok("qrls 1");
    site.system.wait_until("both are over", || site.ok("qstat").is_empty());
    assert_eq!(site.system.read("told"), "0027\nred\n");
    assert_eq!(site.ok("echo true | qsub -a 203012312359"), "3.alpha\n");
    assert!(has("3", "job_state = W"));
    assert_eq!(site.ok("echo sleep 600 | qsub -r n -l ncpus=1"), "4.alpha\n");
    site.system.wait_until("it runs", || has("4", "job_state = R"));
    assert_eq!(site.fails("qrerun 4"), (168, "qrerun: Job not rerunable 4.alpha\n".to_owned()));
    assert!(has("4", "job_state = R"));
    site.system.write("job.sh", "#X -N prefixed\ntrue\n");
    assert_eq!(site.ok("qsub -h -C '#X' job.sh"), "5.alpha\n");
    assert!(has("5", "Job_Name = prefixed"));
    assert_eq!(site.ok("echo 'echo $PBS_ARRAYID' | qsub -t 0-1 -N many -W block=true"), "6[].alpha\n");
    assert_eq!([0, 1].map(|index| site.system.read(&format!("many.o6.{index}"))), ["0\n", "1\n"]);
}

/// `qdel` gives a job the time of `kill_delay` after SIGTERM; by force, or with no delay, it is killed at once.
#[test]
fn jobs_are_deleted_by_force() {
    let site = site();
    site.ok("qmgr -c 'set server kill_delay = 600'");
    let script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done";
    for (number, line) in [(1, "qdel -W force"), (2, "qdel -p"), (3, "qdel -W delay=0")] {
        assert_eq!(site.ok(&format!("echo \"{script}\" | qsub -N deaf -l ncpus=1 -j oe")), format!("{number}.alpha\n"));
        let said = || std::fs::read_to_string(site.system.path(&format!("deaf.o{number}"))).unwrap_or_default();
        site.system.wait_until("it runs", || said().contains("ready"));
        site.ok(&format!("qdel {number}"));
        site.system.wait_until("it has SIGTERM", || said().contains("told"));
        assert!(site.ok(&format!("qstat {number}")).contains(" E "), "it has time left");
        site.ok(&format!("{line} {number}"));
        site.system.wait_until("it is over", || site.run(&format!("qstat {number}")).status == 35);
    }
    site.ok("qsub -h -- true");
    site.ok("qdel -m 'not today' 4");
    assert!(site.system.ok(&["events", "--kind", "job.message", "--json"]).contains("not today"));
    assert_eq!(site.fails("qdel -W 86401 4").0, 1);
}

/// `qdel -W delay=N` gives a job its own time after SIGTERM, whatever `kill_delay` says; a second one can only shorten it.
#[test]
fn a_deletion_has_its_own_delay() {
    let site = site();
    site.ok("qmgr -c 'set server kill_delay = 600'");
    let script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done";
    for (number, delay) in [(1, "delay=1"), (2, "2")] {
        site.ok(&format!("echo \"{script}\" | qsub -N deaf -l ncpus=1 -j oe"));
        let said = || std::fs::read_to_string(site.system.path(&format!("deaf.o{number}"))).unwrap_or_default();
        site.system.wait_until("it runs", || said().contains("ready"));
        site.ok(&format!("qdel -W {delay} {number}"));
        site.system.wait_until("it has SIGTERM", || said().contains("told"));
        site.system.wait_until("it is killed", || site.run(&format!("qstat {number}")).status == 35);
    }
    let asked = site.system.ok(&["events", "--kind", "job.stopping", "--json"]);
    let seconds: Vec<bool> =
        asked.lines().zip([1, 2]).map(|(line, n)| line.contains(&format!("\"grace_seconds\":{n}"))).collect();
    assert_eq!(seconds, [true, true], "{asked}");
}

/// Arrays have PBS's identifiers and variables, and a file for each task.
#[test]
fn arrays_run_with_their_index() {
    let site = site();
    assert_eq!(site.ok("echo 'echo $PBS_ARRAY_INDEX $PBS_JOBID' | qsub -N many -J 1-3 -W block=true"), "1[].alpha\n");
    for index in 1..=3 {
        assert_eq!(site.system.read(&format!("many.o1.{index}")), format!("{index} 1[{index}].alpha\n"));
    }
    // Of a range those are deleted that are not over; if all are, that is told.
    assert_eq!(site.ok("qsub -J 1-3 -- /bin/sh -c '[ $PBS_ARRAY_INDEX = 2 ] || sleep 600'"), "4[].alpha\n");
    site.system.wait_until("one is over", || site.run("qstat '4[2]'").status == 35);
    site.ok("qdel '4[1-3]'");
    site.system.wait_until("all are over", || site.run("qstat '4[]'").status == 35);
    let (status, error) = site.fails("qdel '4[1-3]'");
    assert!(status == 168 && error.contains("Request invalid for state of job 4[1-3].alpha"), "{error}");
}

/// What is not understood is refused by name, and nothing is submitted.
#[test]
fn what_is_not_understood_is_refused_by_name() {
    let site = site();
    site.system.write("job.sh", "#PBS -l select=1:ncpus=many\ntrue\n");
    for (line, status, text) in [
        ("qsub job.sh", 2, "illegal -l value: `ncpus=many`"),
        ("qsub -q nope -- true", 1, "nope"),
        ("qsub -l bogus=1 -- true", 1, "bogus"),
        ("qsub nothere.sh", 1, "qsub: script file: nothere.sh: "),
        ("qsub --bogus", 2, "unrecognized option '--bogus'"),
        ("qsub -I", 1, "qsub: standard input and output must be a terminal for interactive job submission"),
        ("pbsdsh", 2, "a program is missing"),
        ("qrun 1 -Z", 2, "invalid option -- 'Z'"),
    ] {
        let (exit, error) = site.fails(line);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(exit, status, "{line}: {error}");
    }
    assert_eq!(site.ok("qstat"), "");
}

/// PBS-Q-10: a site says what `nodes=N` asks for and which resources are only kept, users have defaults of their own, and the
/// server that they name must be this one.
#[test]
fn sites_and_users_have_defaults() {
    let settings = "nodes_are_whole = false\nkept_resources = [\"filesystems\"]\n";
    let site = Site::on(System::stopped(), &format!("{CONFIGURATION}\n[pbs]\n{settings}"));
    site.system.write("shell", "#!/bin/sh\necho by the shell\nexec sh \"$@\"\n");
    site.ok("chmod 755 shell");
    site.ok("echo 'sleep 600' | qsub -l nodes=1 -l filesystems=home");
    // The node is not the job's alone.
    site.ok("echo 'sleep 600' | qsub -l nodes=node1");
    site.ok("echo 'sleep 600' | qsub -l nodes=node1");
    site.system.wait_until("all run", || site.ok("qselect -s R").lines().count() == 3);
    assert!(site.ok("qstat -f 1").contains("Resource_List.filesystems = home"));
    let line = "echo 'echo of the script' | PBS_SHELL=$PWD/shell PBS_QSUB_ARGS='-N named -q short' qsub -W block=true";
    assert_eq!(site.ok(line), "4.alpha\n");
    assert_eq!(site.system.read("named.o4"), "by the shell\nof the script\n");
    assert!(site.ok("qstat -xf 4").contains("queue = short"));
    assert!(site.ok("PBS_DEFAULT=alpha:15001 qstat 1").contains("1.alpha"));
    let (status, error) = site.fails("PBS_DEFAULT=beta qstat");
    assert_eq!((status, error.as_str()), (153, "qstat: PBS_DEFAULT: Unknown Host beta\n"));
}

/// PBS-Q-08, PBS-Q-10: `qsub` asks for what server and queue have as defaults, where a job asks for nothing itself.
#[test]
fn jobs_have_the_defaults_of_server_and_queue() {
    let site = site();
    site.ok("qmgr -c 'set server resources_default.nodes = 1, resources_default.walltime = 1:00:00'");
    site.ok("qmgr -c 'set queue workq resources_default.mem = 1gb, resources_default.walltime = 0:20:00'");
    site.ok("echo true | qsub -h");
    site.ok("echo true | qsub -h -q short");
    site.ok("echo true | qsub -h -l walltime=60,ncpus=2");
    let asked = |job: &str| -> Vec<String> {
        let full = site.ok(&format!("qstat -f {job}"));
        let lines = full.lines().filter_map(|line| line.trim().strip_prefix("Resource_List."));
        lines.map(str::to_owned).collect()
    };
    let has = |job: &str, lines: &[&str]| {
        let asked = asked(job);
        assert!(lines.iter().all(|line| asked.iter().any(|asked| asked == line)), "{job}: {asked:?}");
        asked
    };
    has("1", &["nodes = 1", "mem = 1gb", "walltime = 00:20:00"]);
    has("2", &["nodes = 1", "walltime = 01:00:00"]);
    let third = has("3", &["ncpus = 2", "mem = 1gb", "walltime = 00:01:00"]);
    assert!(!third.iter().any(|line| line.starts_with("nodes = ")), "{third:?}");
    let printed = site.ok("qmgr -c 'print server'");
    for line in ["set server resources_default.nodes = 1\n", "set queue workq resources_default.mem = 1gb\n"] {
        assert!(printed.contains(line), "{printed}");
    }
}

/// A site that imitates TORQUE has its names, and a server's name of its own.
#[test]
fn a_site_can_imitate_torque() {
    let site =
        Site::on(System::stopped(), &format!("{CONFIGURATION}\n[pbs]\nflavour = \"torque\"\nserver = \"head.site\"\n"));
    assert_eq!(site.ok("echo 'cat $PBS_NODEFILE' | qsub -N t -l nodes=2:ppn=2 -W block=true"), "1.head.site\n");
    assert_eq!(site.system.read("t.o1").lines().count(), 4);
    let listed = site.ok("qstat");
    assert!(
        listed.starts_with("Job ID                    Name             User            Time Use S Queue\n"),
        "{listed}"
    );
    assert!(listed.contains(" C workq"), "jobs that are over are listed: {listed}");
    assert!(site.ok("qstat -x 1").contains("<Job_Id>1.head.site</Job_Id>"));
}

/// PBS-C-15: the policy files of a scheduler are checked without a system; all errors of all files are listed.
#[test]
fn policy_files_are_checked() {
    let site = Site::start();
    std::fs::create_dir(site.system.path("sched_priv")).expect("the folder is new");
    site.system.write("sched_priv/sched_config", "by_queue: maybe\nsort_by: sortest_job_first\n");
    site.system.write("sched_priv/holidays", "YEAR 1998\nweekday 0400 2460\n");
    let output = site.system.run(&["pbs", "check", "sched_priv"]);
    assert_eq!(output.status, 2, "{}{}", output.stdout, output.stderr);
    for line in ["sched_config:1: ", "sched_config:2: ", "holidays:2: ", "3 errors"] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
    assert!(output.stdout.contains("shortest_job_first"), "the nearest word is suggested: {}", output.stdout);
    site.system.write("sched_priv/sched_config", "by_queue: true\n");
    site.system.write("sched_priv/holidays", "YEAR 1998\nweekday 0400 1130\n");
    assert!(site.system.ok(&["pbs", "check", "sched_priv"]).contains("the policy can be put in force"));
}

/// PBS-C-04: jobs that wait for their time are counted as waiting, not as held.
#[test]
fn jobs_that_wait_for_their_time_are_counted_as_waiting() {
    let site = site();
    site.ok("echo true | qsub -a $(date -d '+2 hours' +%m%d%H%M)");
    site.ok("echo true | qsub -h -a $(date -d '+2 hours' +%m%d%H%M)");
    site.ok("echo true | qsub -h");
    let row = |text: &str| {
        let last = text.lines().last().unwrap_or_default();
        last.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // All, then those queued, running, held and waiting.
    assert_eq!(row(&site.ok("qstat -Q workq"))[2..9], ["3", "yes", "yes", "0", "0", "2", "1"]);
    assert_eq!(row(&site.ok("qstat -B"))[2..7], ["3", "0", "0", "2", "1"]);
    assert!(site.ok("qstat -Qf workq").contains("Queued:0 Held:2 Waiting:1 Running:0"));
}

/// `max_queued` counts each task of an array, of a queue and of the server.
#[test]
fn tasks_count_towards_what_queues_take() {
    let site = site();
    site.ok("qmgr -c 'set queue short max_queued = [o:PBS_ALL=4]'");
    let (_, error) = site.fails("qsub -h -q short -J 0-4 -- /bin/true");
    assert!(error.contains("takes at most 4 jobs at a time"), "{error}");
    site.ok("qsub -h -q short -J 0-3 -- /bin/true");
    let (_, error) = site.fails("qsub -h -q short -- /bin/true");
    assert!(error.contains("takes at most 4 jobs at a time"), "{error}");
    site.ok("qmgr -c 'set server max_queued = [o:PBS_ALL=6]'");
    let (_, error) = site.fails("qsub -h -J 0-2 -- /bin/true");
    assert!(error.contains("the cluster takes at most 6 jobs at a time"), "{error}");
    site.ok("qsub -h -J 0-1 -- /bin/true");
    site.ok("qdel '1[0-1]'");
    site.ok("qsub -h -q short -J 0-1 -- /bin/true");
}

/// A limit that only policies of PBS follow is told to have no effect under another one.
#[test]
fn limits_without_effect_are_told() {
    let site = site();
    let said = |line: &str| site.run(&format!("qmgr -c '{line}'")).stderr;
    let warning = said("set server max_running = 3");
    assert!(
        warning.contains("max_running: holds only under policies of PBS, and the policy in force is `"),
        "{warning}"
    );
    assert_eq!(said("set queue workq max_running = 3"), "", "this one holds always");
    site.system.write("sched_config", "by_queue: true\n");
    let folder = site.system.path("").display().to_string();
    site.system.ok(&["pbs", "load", &folder]);
    assert_eq!(said("set server max_user_run = 3"), "");
}

/// PBS-C-09, PBS-Q-02: as long as a job waits `qalter` changes the files of its output, and until its end its mails. A group that its user
/// is in can be asked for, and no other one.
#[test]
fn output_files_change_as_long_as_a_job_waits() {
    let site = site();
    let script = "echo out; echo err >&2; id -gn";
    let group = site.ok("id -gn").trim().to_owned();
    assert_eq!(site.ok(&format!("echo '{script}' | qsub -h -e errors -W group_list={group}")), "1.alpha\n");
    site.ok("qalter -o first.txt -m e 1 && qalter -o 'second file.txt' -j oe -M nobody@example.org 1");
    let full = site.ok("qstat -f -w 1");
    let path = site.system.path("second file.txt").display().to_string();
    for line in ["Join_Path = oe", "Mail_Points = e", "Mail_Users = nobody@example.org", "Rerunable = True"] {
        assert!(full.lines().any(|known| known.trim() == line), "{line}: {full}");
    }
    site.ok("qalter -r n 1");
    assert!(site.ok("qstat -f 1").contains("Rerunable = False") && site.fails("qrerun 1").1.contains("not rerunable"));
    let output = full.lines().find_map(|line| line.trim().strip_prefix("Output_Path = ")).unwrap_or_default();
    assert!(output.ends_with(&path), "{output}");
    site.ok("qalter -m n 1 && qrls 1");
    site.system.wait_until("it is over", || site.ok("qstat").is_empty());
    assert_eq!(site.system.read("second file.txt"), format!("out\nerr\n{group}\n"));
    let (status, error) = site.fails("echo true | qsub -W group_list=no-such-group-here");
    assert!(status != 0 && error.contains("is not in this group"), "{error}");
    let (status, error) = site.fails("qalter -o third.txt 1");
    assert!(status != 0 && error.contains("1.alpha"), "{error}");
}

/// PBS-X-01: a program is checked, and each mistake is told with its line and column.
#[test]
fn scheduling_programs_are_checked() {
    let site = Site::start();
    site.system.write("good.basl", "sched_main() { print(1); }\n");
    assert_eq!(site.system.ok(&["basl", "check", "good.basl"]), "good.basl: the program can be put in force\n");
    site.system.write("bad.basl", "Int n;\nsched_main() { m = 1; }\n");
    let output = site.system.run(&["basl", "check", "bad.basl"]);
    assert_eq!(output.status, 2, "{}{}", output.stdout, output.stderr);
    assert!(
        output.stdout.starts_with("bad.basl:2: column 16: ") && output.stdout.contains("(token 'm')"),
        "{}",
        output.stdout
    );
}

/// Nodes are shown with their states and jobs, taken out of service with a comment, and put back.
#[test]
fn nodes_are_shown_taken_out_of_service_and_put_back() {
    let site = Site::with(CONFIGURATION);
    assert_eq!(site.ok("qsub -N all -l select=1:ncpus=4:mem=1gb -- sleep 600"), "1.alpha\n");
    let jobs = "     jobs = 1.alpha/0, 1.alpha/1, 1.alpha/2, 1.alpha/3\n";
    site.system.wait_until("the job is on a node", || site.ok("pbsnodes -a").contains(jobs));
    let all = site.ok("pbsnodes -a");
    for line in ["node1", "     state = job-busy", "     resources_assigned.ncpus = 4", "node4", "     state = free"] {
        assert!(all.lines().any(|known| known == line), "{line}: {all}");
    }
    let json: serde_json::Value = serde_json::from_str(&site.ok("pbsnodes -a -F json")).expect("JSON");
    let nodes = json["nodes"].as_object().expect("nodes");
    let busy: Vec<&str> =
        nodes.iter().filter(|(_, node)| node["jobs"][0] == "1.alpha").map(|(name, _)| name.as_str()).collect();
    assert_eq!((nodes.len(), busy.len()), (4, 1), "{json}");
    let table = site.ok("pbsnodes -aSj");
    assert!(table.lines().any(|line| line.starts_with(busy[0]) && line.contains(" 0/4 ")), "{table}");

    site.ok("pbsnodes -o -C 'bad disk' node2 node3");
    let listed = "node2                offline bad disk\nnode3                offline bad disk\n";
    assert_eq!(site.ok("pbsnodes -l"), listed);
    site.ok("pbsnodes -C 'new disk' node2");
    assert!(site.ok("pbsnodes node2").contains("     comment = new disk\n"));
    let (status, error) = site.fails("pbsnodes -C text node4");
    assert_eq!(status, 1);
    assert!(error.starts_with("Error marking node node4 - a comment is kept only while"), "{error}");
    let (status, error) = site.fails("pbsnodes -o nope node4");
    assert_eq!((status, error.as_str()), (1, "Error marking node nope - Unknown node\n"));
    assert!(site.ok("pbsnodes -l").contains("node4 "), "the others are marked all the same");
    site.ok("pbsnodes -r node2 node3 node4");
    assert_eq!(site.ok("pbsnodes -l"), "");
    let (status, error) = site.fails("pbsnodes -v nope");
    assert_eq!((status, error.as_str()), (1, "Node: nope,  Error: Unknown node\n"));
    assert_eq!(site.fails("pbsnodes").0, 1);
}

/// Queues are switched: whether jobs can be submitted to them, and whether their jobs are started.
#[test]
fn queues_are_switched_on_and_off() {
    let site = Site::with(CONFIGURATION);
    let row = |queue: &str| {
        let listed = site.ok("qstat -Q");
        let row = listed.lines().find(|line| line.starts_with(queue)).expect("the queue").to_owned();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()[3..5].join(" ")
    };
    site.ok("qdisable short");
    assert_eq!((row("short"), row("workq")), ("no yes".to_owned(), "yes yes".to_owned()));
    site.ok("qenable short@alpha && qstop short @alpha");
    assert_eq!((row("short"), row("workq")), ("yes no".to_owned(), "yes no".to_owned()));
    assert_eq!(site.ok("qsub -q short -- sleep 600"), "1.alpha\n");
    let state = || site.ok("qselect -s R");
    site.system.wait_until("the job waits for its queue", || site.ok("qstat -f 1").contains("job_state = Q"));
    assert_eq!(state(), "");
    site.ok("qstart short");
    site.system.wait_until("the job runs", || state() == "1.alpha\n");
    let (status, error) = site.fails("qstart nope workq a@b@c");
    assert_eq!(status, 1, "the last failure counts");
    assert_eq!(error, "qstart: Unknown queue nope\nqstart: illegally formed destination: a@b@c\n");
    assert_eq!(row("workq"), "yes yes", "the others are switched all the same");
    assert_eq!(site.fails("qstop workq@elsewhere"), (2, "qstop: Unknown Host elsewhere\n".to_owned()));
}

/// What `qmgr` prints makes the same again; queues, nodes and the server change by its commands.
#[test]
fn qmgr_changes_the_server_its_queues_and_its_nodes() {
    let site = Site::with(CONFIGURATION);
    let commands = "# a queue\ncreate queue long queue_type=execution\nset queue long \\\n  enabled=true, started=true\n\
                    set queue long resources_max.walltime = 10:00:00, max_run = [u:PBS_GENERIC=2], Priority = 5\n\
                    set queue long acl_users = root, acl_hosts = node1\nset server operators += ann@*\n\
                    set node node1 resources_available.fast = True\nactive queue long\nset queue Priority -= 1\nlist queue long enabled, Priority\nquit\nbad\n";
    site.system.write("commands", commands);
    assert_eq!(site.ok("qmgr < commands"), "Queue long\n\tPriority = 4\n\tenabled = True\n\n");
    let printed = site.ok("qmgr -c 'print queue long'");
    for line in ["set queue long resources_max.walltime = 10:00:00", "set queue long max_user_run = 2"] {
        assert!(printed.lines().any(|known| known == line), "{line}: {printed}");
    }
    let whole = site.ok("qmgr -c 'p s'");
    assert!(
        whole.contains("set server operators = ann@*\n") && whole.contains(&printed[printed.find("create").unwrap()..])
    );
    // Jobs see it.
    assert_eq!(site.ok("qsub -q long -l select=1:ncpus=1:fast=true -- sleep 600"), "1.alpha\n");
    site.system.wait_until("the job runs on the node", || site.ok("qstat -f 1").contains("exec_host = node1/0"));
    assert_eq!(site.system.json(&["job", "show", "1", "--json"])["job"]["walltime_seconds"], 36_000);
    assert!(site.fails("qmgr -c 'delete queue long'").1.contains("nothing was changed"), "it has a job");
    site.ok("qdel 1");
    site.system.wait_until("the job is gone", || site.ok("qstat").is_empty());
    site.ok("qmgr -c 'delete queue long'");
    assert!(!site.ok("qmgr -c 'print server'").contains("long"));
    site.system.write("long", &printed);
    site.ok("qmgr < long");
    assert_eq!(site.ok("qmgr -c 'print queue long'"), printed);
    assert_eq!(site.ok("qmgr -c 'print server'"), whole);
    // What is taken away is gone, and nothing else.
    site.ok("qmgr -c 'unset queue long max_user_run, resources_max.walltime'");
    let less = site.ok("qmgr -c 'print queue long'");
    assert!(
        !less.contains("max_user_run") && !less.contains("walltime") && less.contains("acl_users = root"),
        "{less}"
    );
    assert!(site.ok("qmgr -c 'print server'").contains("operators = ann@*"));

    site.ok("qmgr -c \"set node node2 state = offline, comment = 'bad disk'\"");
    assert_eq!(site.ok("pbsnodes -l"), "node2                offline bad disk\n");
    assert!(site.ok("qmgr -c 'list node node2'").contains("\tstate = offline\n"));
    site.ok("qmgr -c 'set node node2 state -= offline'");
    assert_eq!(site.ok("pbsnodes -l"), "");

    for (line, status, text) in [
        (
            "qmgr -c 'set queue long checkpoint_min = 3'",
            2,
            "qmgr: obj=long svr=default: checkpoint_min: is not supported: queues have no such setting here; nothing was \
             changed\n",
        ),
        ("qmgr -c 'set queue nope enabled = 1'", 2, "qmgr: obj=nope svr=default: Unknown queue; nothing was changed\n"),
        ("qmgr -c 'set queue enabled = 1'", 2, "qmgr: the command names no object, and none is active\n"),
        ("qmgr -c 'list queue a@elsewhere'", 2, "qmgr: obj=a@elsewhere svr=default: Unknown Host elsewhere\n"),
        ("qmgr -c 'mak queue a'", 1, "qmgr: line 1: character 1: `mak`: expected create, delete, set, unset, list, "),
        (
            "qmgr -c 'set server default_queue = nope'",
            2,
            "qmgr: default_queue: queue `nope` does not exist; nothing was ",
        ),
        ("qmgr -z -c 'delete queue workq'", 2, ""),
        ("qmgr -x", 1, "qmgr: invalid option -- 'x'\nusage: qmgr"),
    ] {
        let (exit, error) = site.fails(line);
        assert!(
            exit == status && error.starts_with(text) && error.is_empty() == text.is_empty(),
            "{line}: {exit} {error}"
        );
    }
    let before = site.ok("qmgr -c 'print server'");
    site.ok("qmgr -n -c 'delete queue long'");
    site.system.write("failing", "set queue nope enabled = True\nset server kill_delay = 77\n");
    assert_eq!(site.run("qmgr -a < failing").status, 2);
    assert_eq!(site.ok("qmgr -c 'print server'"), before, "only read, or ended before it");
    let Output { status, stdout, .. } = site.run("qmgr -e < failing");
    assert_eq!((status, stdout.lines().count()), (2, 2), "{stdout}");
    assert!(site.ok("qmgr -c 'list server kill_delay'").contains("kill_delay = 77"));
}

/// Who is no administrator changes nothing, and is told so; to a queue that is switched off he submits nothing.
#[test]
fn qmgr_is_for_administrators() {
    let system = System::start_for_others();
    let refused = |line: &[&str]| {
        let Output { status, stderr, .. } = system.run_as_nobody(line);
        assert!(stderr.contains("Unauthorized Request"), "{line:?}: {stderr}");
        status
    };
    assert_eq!(refused(&["pbs", "qmgr", "-c", "set server kill_delay = 3"]), 2);
    assert_eq!(refused(&["pbs", "qstop", "default"]), 2);
    assert_eq!(refused(&["pbs", "pbsnodes", "-o", "node1"]), 1);
    assert_eq!(system.run_as_nobody(&["pbs", "qmgr", "-c", "list server"]).status, 0);
    assert!(system.ok(&["pbs", "pbsnodes", "-l"]).is_empty());
    system.ok(&["pbs", "qdisable", "default"]);
    let Output { status, stderr, .. } = system.run_as_nobody(&["pbs", "qsub", "--", "true"]);
    assert!(status == 1 && stderr.contains("queue `default` takes no jobs"), "{stderr}");
}

/// Jobs are traced in the log, get messages, and exchange their places where priorities can say so.
#[test]
fn jobs_are_traced_told_and_put_in_order() {
    let site = Site::with(CONFIGURATION);
    assert_eq!(site.ok("qsub -N talk -- sleep 600"), "1.alpha\n");
    site.system.wait_until("it runs and takes messages", || site.run("qmsg 'hello there' 1").status == 0);
    site.system.wait_until("the message is there", || site.system.read("talk.e1").contains("hello there"));
    let (status, error) = site.fails("qmsg -O text 1");
    assert_eq!(status, 1);
    assert!(error.starts_with("qmsg: -O is not supported: ") && error.ends_with("nothing was sent\n"), "{error}");

    let trace = site.ok("tracejob 1");
    let mut lines = trace.lines();
    assert_eq!([lines.next(), lines.next(), lines.next()], [Some(""), Some("Job: 1.alpha"), Some("")], "{trace}");
    let letters: Vec<&str> = lines.map(|line| &line[21..22]).collect();
    for letter in ["S", "L", "M"] {
        assert!(letters.contains(&letter), "{letter}: {trace}");
    }
    assert!(trace.contains("  S    something was said to job 1\n"), "{trace}");
    assert!(!site.ok("tracejob -m -n 2 1").contains("  M    "));
    assert_eq!(site.fails("tracejob 77"), (153, "tracejob: Unknown Job Id 77\n".to_owned()));

    site.ok("qsub -h -- true && qsub -h -- true && qsub -h -q short -- true");
    site.ok("qorder 2 3");
    let priority = |job: u32| {
        let full = site.ok(&format!("qstat -f {job}"));
        full.lines().find_map(|line| line.trim().strip_prefix("Priority = ")).and_then(|text| text.parse::<i64>().ok())
    };
    assert!(priority(3) > priority(2), "{:?} {:?}", priority(3), priority(2));
    site.ok("qalter -p 0 2 3 && qsub -h -- true && qsub -h -- true");
    let (status, error) = site.fails("qorder 3 5");
    assert_eq!(status, 1);
    assert!(
        error.starts_with("qorder: to exchange these jobs is not supported: other jobs have the same priority"),
        "{error}"
    );
    assert_eq!((priority(3), priority(5)), (Some(0), Some(0)), "nothing was changed");
    assert_eq!(site.fails("qorder 3 4").0, 168, "they are in different queues");
    assert_eq!(site.fails("qorder 1 3").0, 168, "it runs");
    assert_eq!(site.fails("qrun 1").0, 168);
}

/// PBS-C-09
#[test]
fn an_operator_starts_jobs_whatever_their_queue_says() {
    let site = Site::with(CONFIGURATION);
    let state = |job: &str| {
        let full = site.ok(&format!("qstat -f {job}"));
        full.lines().find_map(|line| line.trim().strip_prefix("job_state = ").map(str::to_owned)).unwrap_or_default()
    };
    site.ok("qstop short");
    assert_eq!(site.ok("qsub -q short -- sleep 600"), "1.alpha\n");
    let place = site.system.path("where").display().to_string();
    site.ok(&format!("qsub -q short -- sh -c 'echo $MUSTER_NODELIST > {place}; sleep 600'"));
    site.ok("qsub -q short -l nodes=4 -- true && qsub -h -q short -- true");
    assert_eq!(state("1"), "Q", "its queue is stopped");
    site.ok("qrun 1");
    site.system.wait_until("it runs", || state("1") == "R");
    let (status, error) = site.fails("qrun 1");
    assert_eq!((status, error.as_str()), (168, "qrun: Request invalid for state of job 1.alpha\n"));
    site.ok("qrun -H node3 2");
    site.system
        .wait_until("it runs there", || site.system.path("where").exists() && site.system.read("where") == "node3\n");
    // Nodes in use are not free for it, and a hold is no matter of queues.
    let (status, error) = site.fails("qrun 3");
    assert!(status != 0 && error.contains("cannot be started"), "{error}");
    let (status, error) = site.fails("qrun 4");
    assert!(status != 0 && error.contains("held by user"), "{error}");
    assert!(site.fails("qrun -H nonode 3").1.contains("nonode"));
    assert_eq!((state("3"), state("4")), ("Q".to_owned(), "H".to_owned()));
}

/// Tasks of arrays have numbers of their own, which PBS's users never see: one that they name is that of no job.
#[test]
fn the_number_of_a_task_names_no_job() {
    let site = Site::with(CONFIGURATION);
    assert_eq!(site.ok("qsub -J 0-2 -- sleep 600"), "1[].alpha\n");
    let running = || {
        let listed = site.ok("qstat -t '1[]'");
        listed.lines().filter(|line| line.split_whitespace().nth(4) == Some("R")).count()
    };
    site.system.wait_until("its tasks run", || running() == 3);
    for command in
        ["qdel 2", "qalter -l walltime=1:00 2", "qhold 2", "qsig -s STOP 2", "qstat 2", "printjob 2", "tracejob 2"]
    {
        let (status, error) = site.fails(command);
        assert!(status != 0 && error.contains("Unknown Job Id 2"), "{command}: {status} {error}");
    }
    assert_eq!(running(), 3, "nothing happened to them");
}

/// PBS-C-03, PBS-C-04, PBS-C-05
#[test]
fn the_planner_is_switched_off_and_on() {
    let mut site = Site::with(CONFIGURATION);
    let word = |site: &Site| {
        let listed = site.ok("qstat -B");
        listed.split_whitespace().last().unwrap_or_default().to_owned()
    };
    assert_eq!(word(&site), "Active");
    site.ok("qmgr -c 'set server max_running = 7'");
    let most = site.ok("qstat -B").lines().last().and_then(|line| line.split_whitespace().nth(1).map(str::to_owned));
    assert_eq!(most.as_deref(), Some("7"));
    site.ok("qsub -- sleep 600");
    site.system.wait_until("it runs", || site.ok("qselect -s R") == "1.alpha\n");
    site.ok("qmgr -c 'set server scheduling = false'");
    assert_eq!(word(&site), "Idle");
    assert!(site.ok("qmgr -c 'print server'").contains("set server scheduling = False"));
    // Running jobs run on, and submissions are accepted.
    assert_eq!(site.ok("qsub -- sleep 600"), "2.alpha\n");
    let config = site.system.path("site.toml").display().to_string();
    site.system.stop();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    assert_eq!(word(&site), "Idle", "it is as it was when the system stopped");
    let reason = site.system.json(&["job", "show", "2", "--json"])["job"]["reason"]["code"].clone();
    assert_eq!((reason.as_str(), site.ok("qselect -s Q").as_str()), (Some("planner_off"), "2.alpha\n"));
    site.system.wait_until("the first one still runs", || site.ok("qselect -s R") == "1.alpha\n");
    site.ok("qmgr -c 'set server scheduling = true'");
    site.system.wait_until("both run", || site.ok("qselect -s R") == "1.alpha\n2.alpha\n");
    assert_eq!(word(&site), "Active");
    // A word at the start overrides what was set, and that is on record.
    let mut started_with = |given: &str| {
        site.system.stop();
        let options = ["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config, "-a", given];
        site.system.restart(&options);
        word(&site)
    };
    assert_eq!(started_with("f"), "Idle");
    assert_eq!(started_with("T"), "Active");
    let switched = site.system.ok(&["events", "--kind", "cluster.settings_changed", "--json"]);
    assert!(switched.lines().last().is_some_and(|line| line.contains("\"is_idle\":false")), "{switched}");
}

/// A job shows what is kept of it, and runs a program on all of its nodes.
#[test]
fn jobs_are_printed_and_spread_programs_over_their_nodes() {
    let site = Site::with(CONFIGURATION);
    let tool = site.system.path("bin/pbsdsh").display().to_string();
    let script = format!(
        "#PBS -l select=3:ncpus=1 -l place=scatter\n{tool} sh -c 'echo all $PBS_VNODENUM \"$1\"' sh 'a  b' | sort\n\
         {tool} -n 1 sh -c 'echo one $PBS_VNODENUM; exit 5'\necho status $?\n{tool} -s -c 2 sh -c 'echo first $PBS_VNODENUM'\n"
    );
    site.system.write("spread.sh", &script);
    let Output { status, stderr, .. } = site.run("qsub -N spread -W block=true spread.sh");
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(
        site.system.read("spread.o1"),
        "all 0 a  b\nall 1 a  b\nall 2 a  b\none 1\nstatus 5\nfirst 0\nfirst 1\n",
        "{}",
        site.system.read("spread.e1")
    );
    let (status, error) = site.fails("pbsdsh true");
    assert!(status != 0 && error.contains("outside of a job"), "{error}");
    let printed = site.ok("printjob 1");
    assert!(printed.contains("Jobid:\t1.alpha\n") && printed.contains("Job_Name = spread\n"), "{printed}");
    assert!(!site.ok("printjob -a 1").contains("Job_Name"));
    assert_eq!(site.fails("printjob 77").0, 153);
}

/// An interactive job is a shell at the terminal, on the first node of the job and with its variables.
#[test]
fn an_interactive_job_is_a_shell_at_the_terminal() {
    let site = Site::with(CONFIGURATION);
    site.system.write("say", "tty; echo $PBS_ENVIRONMENT in $PBS_JOBID on $(wc -l < $PBS_NODEFILE); exit 3\n");
    let say = site.system.path("say").display().to_string();
    let line = format!("qsub -I -N inter -l select=2:ncpus=1 -l place=scatter -- sh {say}");
    let Output { status, stdout, stderr } = site.run(&format!("script -qec \"{line}\" /dev/null"));
    assert_eq!(status, 0, "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().map(str::trim_end).collect();
    for line in [
        "qsub: waiting for job 1.alpha to start",
        "qsub: job 1.alpha ready",
        "PBS_INTERACTIVE in 1.alpha on 2",
        "qsub: job 1.alpha completed",
    ] {
        assert!(lines.contains(&line), "{line}: {stdout}");
    }
    assert!(stdout.contains("/dev/pts/"), "{stdout}");
    site.system.wait_until("its resources are given back", || site.ok("qstat").is_empty());
    assert!(site.ok("qstat -fx 1").contains("Exit_status = 3"));
    // Without a command it is a shell, which reads the terminal.
    let typed = "echo 'echo $((6*7)) is it; exit 4' | script -qec 'qsub -I -S /bin/sh' /dev/null";
    let Output { status, stdout, .. } = site.run(typed);
    assert_eq!(status, 0, "{stdout}");
    assert!(stdout.contains("42 is it"), "{stdout}");
    assert!(site.ok("qstat -fx 2").contains("Exit_status = 4"));
}

/// A route queue passes jobs on to the first destination that takes them; one that has to wait goes on when there is room, and
/// one that no queue can take is refused. What `print server` shows makes the same queues.
#[test]
fn a_route_queue_passes_jobs_on() {
    let site = site();
    for command in [
        "create queue route queue_type = Route, route_destinations = \"small,wide\", enabled = True, started = True",
        "create queue small resources_max.ncpus = 1, max_queued = [o:PBS_ALL=1], enabled = True, started = True",
        "create queue wide resources_min.nodect = 2, enabled = True, started = True",
        "set server default_queue = route",
    ] {
        site.ok(&format!("qmgr -c '{command}'"));
    }
    let printed = site.ok("qmgr -c 'print server'");
    site.ok("qmgr -c 'set server default_queue = workq'");
    site.ok("qmgr -c 'delete queue route,small,wide'");
    site.system.write(
        "queues",
        &printed
            .lines()
            .filter(|line| !line.contains("queue workq"))
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    );
    site.run("qmgr < queues");
    assert_eq!(site.ok("qmgr -c 'print server'"), printed);

    let submit = |words: &str| site.ok(&format!("echo sleep 600 | qsub {words}")).trim().to_owned();
    let attribute = |job: &str, name: &str| {
        let full = site.run(&format!("qstat -xf {job}")).stdout;
        let line = full.lines().find_map(|line| line.trim().strip_prefix(&format!("{name} = ")).map(str::to_owned));
        line.unwrap_or_default()
    };
    let runs_in = |job: &str, queue: &str| {
        let is_there = || attribute(job, "job_state") == "R" && attribute(job, "queue") == queue;
        site.system.wait_until(&format!("{job} runs in {queue}"), is_there);
    };
    let (first, wide) = (submit("-l ncpus=1"), submit("-l select=2:ncpus=1 -l place=scatter"));
    assert_eq!((attribute(&first, "queue"), attribute(&wide, "queue")), ("small".into(), "wide".into()));
    let second = submit("-l ncpus=1");
    runs_in(&first, "small");
    runs_in(&wide, "wide");
    assert_eq!((attribute(&second, "job_state"), attribute(&second, "queue")), ("Q".into(), "route".into()));
    let Output { status, stderr, .. } = site.run(&format!("qrun {second}"));
    assert!(status != 0 && stderr.contains("passed it on"), "{stderr}");
    let Output { status, stderr, .. } = site.run("echo true | qsub -l ncpus=2");
    assert!(status != 0 && stderr.contains("wide: nodes: 1 is less than"), "{stderr}");
    for line in ["set queue route queue_type = Route", "set queue route route_destinations += wide"] {
        assert!(printed.lines().any(|known| known == line), "{line}: {printed}");
    }
    assert!(site.ok("qstat -Q route").lines().any(|line| line.split_whitespace().last() == Some("Rou*")));
    site.ok(&format!("qdel {first}"));
    runs_in(&second, "small");
    let traced = site.ok(&format!("tracejob {second}"));
    assert!(traced.contains("was changed: queue"), "{traced}");
    assert_eq!(site.system.run(&["replay", "--verify"]).status, 0);
}
