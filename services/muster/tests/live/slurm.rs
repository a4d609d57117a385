//! The Slurm dialect on a live system, through the commands that people type, by links on PATH.

use crate::system::{Output, System};
use std::process::{Child, Command, Stdio};

/// A system with four nodes, and the links.
pub struct Site {
    pub system: System,
}

impl Site {
    pub fn start() -> Self {
        let system = System::start(4);
        system.ok(&["install-commands", "bin"]);
        Self { system }
    }

    /// A site with these lines in the configuration.
    pub fn with(configuration: &str) -> Self {
        Self::on(System::stopped(), configuration)
    }

    /// A site on a stopped system, with these lines in the configuration.
    pub fn on(mut system: System, configuration: &str) -> Self {
        system.write("site.toml", configuration);
        let config = system.path("site.toml").display().to_string();
        system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
        system.ok(&["install-commands", "bin"]);
        Self { system }
    }

    /// A command line for a shell, in the system's folder and for this system.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.system.path(""))
            .env("PATH", format!("{}:/usr/bin:/bin", self.system.path("bin").display()))
            .env("MUSTER_DATA", self.system.path("data"))
            .env("TZ", "UTC")
            .env_remove("MUSTER_SERVER")
            .stdin(Stdio::null());
        command
    }

    /// Starts a command line in the background.
    pub fn spawn(&self, line: &str) -> Child {
        let line = format!("exec {line}");
        self.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("there is a shell")
    }

    pub fn run(&self, line: &str) -> Output {
        let output = self.command(line).output().expect("there is a shell");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output { status: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub fn ok(&self, line: &str) -> String {
        let Output { status, stdout, stderr } = self.run(line);
        assert_eq!(status, 0, "{line}\n{stdout}{stderr}\n{}", self.system.log());
        stdout
    }

    pub fn fails(&self, line: &str) -> (i32, String) {
        let Output { status, stderr, .. } = self.run(line);
        (status, stderr)
    }

    pub fn is_over(&self, job: &str) {
        self.system.wait_until(&format!("job {job} is over"), || self.ok(&format!("squeue -h -j {job}")).is_empty());
    }
}

/// SL-A-02: jobs that have left memory are listed from the log: those submitted in the wanted time, with the tasks of arrays,
/// and those that were unfinished when it began.
#[test]
fn jobs_that_have_left_memory_are_listed_by_time() {
    let configuration = "[cluster]\nname = \"alpha\"\ndefault_queue = \"default\"\n\
                         finished_job_retention_seconds = 1\n[[queues]]\nname = \"default\"\n";
    let site = Site::with(configuration);
    let remembered = |job: &str| {
        let finished = site.system.json(&["jobs", "--state", "finished", "--json"]);
        finished["jobs"].as_array().is_some_and(|jobs| jobs.iter().any(|known| known["id"] == job))
    };
    let forget = |job: &str| {
        site.system.wait_until(&format!("job {job} has left memory"), || {
            site.ok("sbatch -W -J later --wrap true");
            !remembered(job)
        });
    };
    assert_eq!(site.run("sbatch -W --wrap 'exit 3'").status, 3);
    site.ok("sbatch -W -a 0-1 --wrap true");
    let long = site.ok("sbatch --parsable --wrap 'while [ ! -e end ]; do sleep 0.1; done'");
    ["1", "2_0", "2_1"].into_iter().for_each(forget);
    let from = site.ok("date +%FT%T").trim().to_owned();
    site.system.write("end", "");
    site.is_over(long.trim());
    forget(long.trim());
    let listed = site.ok("sacct -n -P -X -S now-1hour -o JobID,State,ExitCode");
    let all = format!("1|FAILED|3:0\n2_0|COMPLETED|0:0\n2_1|COMPLETED|0:0\n{}|COMPLETED|0:0\n", long.trim());
    assert!(listed.starts_with(&all), "{listed}");
    let listed = site.ok(&format!("sacct -n -P -X -S {from} -o JobID"));
    assert_eq!(listed.lines().next(), Some(long.trim()), "{listed}");
    // States are those that jobs had in that time.
    let listed = site.ok(&format!("sacct -n -P -X -S {from} -E now -s R -o JobID"));
    assert_eq!(listed.lines().next(), Some(long.trim()), "{listed}");
    assert_eq!(site.ok(&format!("sacct -n -P -X -S now-1hour -E {from} -s F -o JobID")), "1\n");
}

/// SL-C-06, SL-C-08, SL-C-11, SL-C-14, SL-E-08
#[test]
fn a_script_is_submitted_runs_with_its_variables_and_its_status_is_waited_for() {
    let site = Site::start();
    site.system.write("job.sh", "#!/bin/sh\n#SBATCH -J named -N 1 -n 2\nenv | grep ^SLURM\necho $1\nexit 3\n");
    let Output { status, stdout, .. } = site.run("sbatch -W job.sh hello");
    assert_eq!((status, stdout.as_str()), (3, "Submitted batch job 1\n"));
    let said = site.system.read("slurm-1.out");
    for line in [
        "SLURM_JOB_ID=1",
        "SLURM_JOBID=1",
        "SLURM_JOB_NAME=named",
        "SLURM_JOB_NODELIST=node1",
        "SLURM_JOB_NUM_NODES=1",
        "SLURM_JOB_CPUS_PER_NODE=2",
        "SLURM_NTASKS=2",
        "SLURM_PROCID=0",
        "SLURMD_NODENAME=node1",
        "hello",
    ] {
        assert!(said.lines().any(|known| known == line), "{line} is missing:\n{said}");
    }
    assert_eq!(site.ok("sbatch --parsable --wrap true"), "2\n");
    site.is_over("2");
    assert_eq!(
        site.ok("sacct -n -P -X -j 1,2 -o JobID,JobName,State,ExitCode"),
        "1|named|FAILED|3:0\n2|wrap|COMPLETED|0:0\n"
    );
}

/// SL-C-01, SL-C-02, SL-C-09, SL-E-11, SL-S-11, SL-S-13
#[test]
fn what_cannot_be_is_refused_in_slurm_s_words_and_nothing_is_submitted() {
    let site = Site::start();
    assert_eq!(
        site.fails("sbatch -p nope --wrap true"),
        (
            1,
            "sbatch: error: invalid partition specified: nope\n\
             sbatch: error: Batch job submission failed: Invalid partition name specified\n"
                .to_owned()
        )
    );
    assert_eq!(site.fails("SLURM_EXIT_ERROR=77 sbatch -p nope --wrap true").0, 77);
    let (status, told) = site.fails("sbatch --bogus --wrap true");
    assert_eq!((status, told.lines().next()), (255, Some("sbatch: unrecognized option '--bogus'")));
    let (status, told) = site.fails("sbatch -a 1-2 -n1 : -n1 --wrap true");
    assert_eq!(
        (status, told.as_str()),
        (1, "sbatch: error: Batch job submission failed: Invalid job array specification\n")
    );
    assert_eq!(site.fails("sbatch nofile.sh"), (1, "sbatch: error: Unable to open file nofile.sh\n".to_owned()));
    assert_eq!(site.ok("squeue -h -t all"), "");
    assert!(site.ok("squeue --version").starts_with("slurm "));
}

/// EX-05, SL-M-03, SL-I-05, SL-I-06
#[test]
fn a_component_of_a_waiting_job_is_not_cancelled_alone() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -t1 -H -n1 : -n1 : -n1 --wrap hostname").trim().parse().unwrap();
    let refusal = |id: &str| {
        format!(
            "scancel: error: Kill job error on job id {id}: \
             Operation not permitted on individual component of heterogeneous job\n"
        )
    };
    let part = format!("{job}+1");
    assert_eq!(site.fails(&format!("scancel {part}")), (60, refusal(&part)));
    let own = (job + 1).to_string();
    assert_eq!(site.fails(&format!("scancel {own}")), (60, refusal(&own)));
    let expected: String = (0..3).map(|offset| format!("{job}+{offset} PD JobHeldUser\n")).collect();
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o '%i %t %r' | sort")), expected);
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
}

/// EX-04, EX-06, SL-M-01, SL-M-02, SL-M-04, SL-A-06
#[test]
fn a_component_of_a_running_job_is_cancelled_alone_and_its_node_is_free() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -n1 : -n1 : -n1 --wrap 'sleep 1000'").trim().parse().unwrap();
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%i %t' | sort"));
    let runs = |offsets: &[u64]| offsets.iter().map(|offset| format!("{job}+{offset} R\n")).collect::<String>();
    site.system.wait_until("all components run", || listed() == runs(&[0, 1, 2]));
    assert_eq!(site.ok("sinfo -h -t idle -o %D"), "1\n");
    site.ok(&format!("scancel {job}+1"));
    site.system.wait_until("one has ended", || listed() == runs(&[0, 2]));
    assert_eq!(site.ok("sinfo -h -t idle -o %D"), "2\n");
    let uid = nix::unistd::Uid::current();
    let accounted = site.ok(&format!("sacct -X -n -P -o JobID,State,NNodes -j {job}"));
    let expected = format!("{job}+0|RUNNING|1\n{job}+1|CANCELLED by {uid}|1\n{job}+2|RUNNING|1\n");
    assert_eq!(accounted, expected);
    let shown = site.ok(&format!("scontrol -o show job {job}+1"));
    assert!(shown.contains(" JobState=CANCELLED "), "{shown}");
    // Parts that have ended are silent; the number of a component names that component.
    assert_eq!(site.fails(&format!("scancel {job}+1")), (0, String::new()));
    site.ok(&format!("scancel {}", job + 2));
    site.system.wait_until("another has ended", || listed() == runs(&[0]));
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
    assert_eq!(site.ok("sinfo -h -t idle -o %D"), "4\n");
    let states = site.ok(&format!("sacct -X -n -P -o State -j {job}"));
    assert_eq!(states, format!("CANCELLED by {uid}\n").repeat(3));
}

/// EX-06, SL-M-05
#[test]
fn with_whole_hetjob_the_number_of_a_component_stands_for_the_job() {
    let site = Site::with("[slurm]\nscheduler_parameters = \"whole_hetjob\"\n");
    let submit = || -> u64 { site.ok("sbatch --parsable -n1 : -n1 --wrap 'sleep 1000'").trim().parse().unwrap() };
    let job = submit();
    let listed = |job: u64| site.ok(&format!("squeue -h -j {job} -o '%i %t' | sort"));
    site.system.wait_until("both run", || listed(job) == format!("{job}+0 R\n{job}+1 R\n"));
    site.ok(&format!("scancel {job}+1"));
    site.system.wait_until("one has ended", || listed(job) == format!("{job}+0 R\n"));
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
    let job = submit();
    site.system.wait_until("both run", || listed(job) == format!("{job}+0 R\n{job}+1 R\n"));
    site.ok(&format!("scancel {}", job + 1));
    site.is_over(&job.to_string());
    assert!(site.ok("scontrol show config").contains("SchedulerParameters"));
}

/// EX-07, SL-M-07, SL-M-08, SL-C-19, SL-C-20
#[test]
fn components_are_changed_alone_and_dependencies_are_on_whole_jobs() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -H -A test -t 5 -n1 : -n1 : -n1 --wrap true").trim().parse().unwrap();
    site.ok(&format!("scontrol update jobid={job}+2 account=abc"));
    site.ok(&format!("scontrol update jobid={job} timelimit=60"));
    let listed = site.ok(&format!("squeue -h -j {job} -o '%i %a %l' | sort"));
    assert_eq!(listed, format!("{job}+0 test 1:00:00\n{job}+1 test 1:00:00\n{job}+2 abc 1:00:00\n"));
    let unknown = (1, format!("Invalid job id specified for job {job}+9\n"));
    assert_eq!(site.fails(&format!("scontrol update jobid={job}+9 account=abc")), unknown);
    let next = site.ok(&format!("sbatch --parsable -d afterok:{} --wrap true", job + 2)).trim().to_owned();
    let shown = site.ok(&format!("scontrol -o show job {next}"));
    assert!(shown.contains(&format!(" Dependency=afterok:{job}(unfulfilled) ")), "{shown}");
    let refused = "sbatch: error: Batch job submission failed: Job dependency problem\n";
    for unknown in ["afterok:99999", "afternotok:99999", "afterany:99998,afterok:99999"] {
        assert_eq!(site.fails(&format!("sbatch -d {unknown} --wrap true")), (1, refused.to_owned()), "{unknown}");
    }
    // SL-C-20: it is over, whatever its outcome.
    site.ok("sbatch -W -d afterany:99999,after:99998 --wrap true && srun -d 99997 true");
    site.ok(&format!("scancel {next} {job}"));
}

/// SL-C-30, SL-C-37, SL-E-08
#[test]
fn an_ended_script_says_so_and_one_that_is_put_back_waits_two_minutes() {
    let site = Site::start();
    let job = site.ok("sbatch --parsable --wrap 'trap \"echo got it\" USR1; while :; do sleep 0.1; done'");
    let job = job.trim();
    site.system.wait_for_state(job, "running");
    let said = || site.system.read(&format!("slurm-{job}.out"));
    site.system.wait_until("the script has heard it", || {
        site.ok(&format!("scancel -b -s USR1 {job}"));
        said().contains("got it\n")
    });
    site.ok(&format!("scontrol requeue {job}"));
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%t %r'"));
    site.system.wait_until("it waits", || listed() == "PD BeginTime\n");
    assert!(said().ends_with(" DUE TO JOB REQUEUE ***\n"), "{}", said());
    site.ok(&format!("scontrol update jobid={job} starttime=now"));
    site.system.wait_for_state(job, "running");
    assert!(site.ok(&format!("scontrol -o show job {job}")).contains(" Restarts=1 "));
    site.ok(&format!("scontrol hold {job}"));
    assert_eq!(listed(), "R None\n");
    site.ok(&format!("scontrol requeue {job}"));
    site.system.wait_until("it is held", || listed().ends_with(" JobHeldUser\n"));
    site.ok(&format!("scontrol release {job}"));
    site.ok(&format!("scontrol update jobid={job} starttime=now"));
    site.system.wait_for_state(job, "running");
    site.ok(&format!("scancel {job}"));
    site.is_over(job);
    let last = said();
    let last = last.lines().last().unwrap_or_default();
    let start = format!("slurmstepd: error: *** JOB {job} ON node1 CANCELLED AT 20");
    assert!(last.starts_with(&start) && last.ends_with(" ***") && !last.contains("DUE"), "{last}");
}

/// SL-M-04, SL-M-11
#[test]
fn components_are_held_and_released_alone() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -H -n1 : -n1 --wrap 'sleep 1000'").trim().parse().unwrap();
    let listed = || site.ok(&format!("squeue -h -S i -j {job} -o '%t %r'"));
    assert_eq!(listed(), "PD JobHeldUser\nPD JobHeldUser\n");
    site.ok(&format!("scontrol release {job}+0"));
    assert_eq!(listed(), "PD None\nPD JobHeldUser\n");
    site.ok(&format!("scontrol hold {job}"));
    site.ok(&format!("scontrol release {}", job + 1));
    assert_eq!(listed(), "PD JobHeldUser\nPD None\n");
    site.ok(&format!("scontrol hold {job}+1"));
    site.ok(&format!("scontrol release {job}"));
    site.system.wait_until("it runs", || listed() == "R None\nR None\n");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
}

/// SL-C-31, SL-C-26, SL-C-33, SL-C-34, SL-C-37
#[test]
fn jobs_are_held_released_shown_and_cancelled() {
    let site = Site::start();
    let job = site.ok("sbatch --parsable -H --wrap 'sleep 1000'").trim().to_owned();
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o '%t %r'")), "PD JobHeldUser\n");
    site.ok(&format!("scontrol release {job}"));
    site.system.wait_for_state(&job, "running");
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o '%t %R'")), "R node1\n");
    let shown = site.ok(&format!("scontrol -o show job {job}"));
    assert!(shown.starts_with(&format!("JobId={job} JobName=wrap ")), "{shown}");
    assert!(shown.contains(" JobState=RUNNING Reason=None "), "{shown}");
    assert_eq!(site.ok("scontrol show hostnames 'nid[00001-00002]'"), "nid00001\nnid00002\n");
    assert!(site.ok("scontrol ping").ends_with(" is UP\n"));
    let script = site.ok(&format!("scontrol write batch_script {job} -"));
    assert!(script.starts_with("#!/bin/sh\n") && script.contains("sleep 1000"), "{script}");
    site.ok(&format!("scancel {job}"));
    site.is_over(&job);
    assert_eq!(site.fails(&format!("scancel {job}")), (0, String::new()));
    assert_eq!(
        site.fails("scontrol show job 99999"),
        (1, "slurm_load_jobs error: Invalid job id specified\n".to_owned())
    );
    assert_eq!(site.fails("squeue -j 99999"), (1, "slurm_load_jobs error: Invalid job id specified\n".to_owned()));
}

/// SL-C-28, SL-C-38
#[test]
fn nodes_are_drained_and_resumed() {
    let site = Site::start();
    site.ok("scontrol update nodename=node[3-4] state=drain reason='bad disk'");
    let shown = site.ok("sinfo -h -o '%t %D %N'");
    assert!(shown.contains("drain 2 node[3-4]\n") && shown.contains("idle 2 node[1-2]\n"), "{shown}");
    let text = "You must specify a reason when DOWNING or DRAINING a node. Request denied\n";
    assert_eq!(site.fails("scontrol update nodename=node1 state=drain"), (1, text.to_owned()));
    site.ok("scontrol update nodename=node[3-4] state=resume");
    assert_eq!(site.ok("sinfo -h -o '%t %D'"), "idle 4\n");
}

/// EX-08, SL-A-02, SL-A-03, SL-A-04
#[test]
fn accounting_lists_the_components_that_are_named() {
    let site = Site::start();
    let job: u64 = site.ok("sbatch --parsable -J foo -n1 -c2 : -n1 -c4 --wrap true").trim().parse().unwrap();
    site.is_over(&job.to_string());
    let (first, second) = (format!("{job}+0|foo|2|COMPLETED|0:0\n"), format!("{job}+1|foo|4|COMPLETED|0:0\n"));
    let listed = |what: &str| site.ok(&format!("sacct -X -n -P -o JobID,JobName,AllocCPUS,State,ExitCode -j {what}"));
    assert_eq!(listed(&job.to_string()), format!("{first}{second}"));
    assert_eq!(listed(&format!("{job}+1")), second);
    assert_eq!(listed(&(job + 1).to_string()), second);
    assert_eq!(listed(&format!("{job} --whole-hetjob=no")), first);
    assert_eq!(listed(&format!("{job}+1 --whole-hetjob=yes")), format!("{first}{second}"));
}

/// EX-19, SL-C-17, SL-C-18
#[test]
fn tasks_of_an_array_that_wait_share_a_line_and_are_cancelled_by_index() {
    let site = Site::start();
    site.system.write("arr.sh", "#!/bin/sh\necho $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT\nsleep 1000\n");
    let job = site.ok("sbatch --parsable -a 1-5%2 -t1 arr.sh").trim().to_owned();
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%i %t %r' | sort"));
    let running = format!("{job}_1 R None\n{job}_2 R None\n");
    let expected = format!("{running}{job}_[3-5%2] PD JobArrayTaskLimit\n");
    site.system.wait_until("two tasks run", || listed() == expected);
    site.ok(&format!("scancel {job}_5"));
    site.ok(&format!("scancel '{job}_[3-4]'"));
    assert_eq!(listed(), running);
    site.system.wait_until("both have said it", || {
        let said = |index: u32| site.system.read(&format!("slurm-{job}_{index}.out"));
        said(1) == "1 of 5\n" && said(2) == "2 of 5\n"
    });
    let never_ran = format!("{job}_[3-5%2]");
    assert_eq!(site.ok(&format!("squeue -h -t CA -j {job} -o '%i %t'")), format!("{never_ran} CA\n"));
    let accounted: String = [1, 2].map(|index| format!("{job}_{index}\n{job}_{index}.batch\n")).concat();
    assert_eq!(site.ok(&format!("sacct -n -P -j {job} -o JobID")), format!("{accounted}{never_ran}\n"));
    assert_eq!(
        site.ok(&format!("sacct -n -P -j {job}_4 -o JobID,State,NodeList")),
        format!("{never_ran}|CANCELLED|None assigned\n")
    );
    let told = site.fails("scancel -v --me").1;
    assert_eq!(told, format!("scancel: Terminating job {job}_1\nscancel: Terminating job {job}_2\n"));
    site.is_over(&job);
}

/// SL-L-08, SL-L-10: a refusal by a command itself is in the log like a refusal by the system, once, with who, what and
/// why; and nothing else has happened.
#[test]
fn what_a_command_refuses_by_itself_is_in_the_log_once() {
    let site = Site::start();
    let job = site.ok("sbatch --parsable -H -n1 : -n1 --wrap true").trim().to_owned();
    let allocation = "salloc -Q -n1 : -n1";
    let user = format!("user:{}", site.ok("id -un").trim());
    let events = |from: u64| -> Vec<serde_json::Value> {
        let lines = site.system.ok(&["events", "--json", "--from", &from.to_string()]);
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let end = || site.system.json(&["jobs", "--json"])["sequence"].as_u64().expect("a number") + 1;
    let word = |event: &serde_json::Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let told = |line: &str| -> Vec<[String; 3]> {
        let from = end();
        let Output { status, stderr, .. } = site.run(line);
        assert_ne!(status, 0, "{line}: {stderr}");
        let is_one = |event: &&serde_json::Value| event["type"] == "muster.command.refused.v1";
        let new = events(from);
        let is_of_jobs = |event: &serde_json::Value| word(event, "type").starts_with("muster.job.");
        assert!(line.starts_with("salloc") || !new.iter().any(is_of_jobs), "{line}: {new:?}");
        let of = |event: &serde_json::Value| {
            [word(event, "actor"), word(&event["data"], "command"), word(&event["data"], "message")]
        };
        new.iter().filter(is_one).map(of).collect()
    };
    let refuses = |line: &str, what: &str, why: &str| {
        assert_eq!(told(line), [[user.clone(), what.to_owned(), why.to_owned()]], "{line}");
    };
    let failed = "Batch job submission failed";
    refuses("sbatch -a 1-2 -n1 : -n1 --wrap true", "sbatch", &format!("{failed}: Invalid job array specification"));
    refuses(
        "sbatch -n1 : -n1 -L x --wrap true",
        "sbatch",
        &format!("1: license request allowed only on leader job; {failed}: Invalid license specification"),
    );
    refuses("sbatch --mem=lots --wrap true", "sbatch", "Invalid --mem specification");
    let allocates = "invalid partition specified: nope; allocation failure: Invalid partition name specified";
    refuses("sbatch --test-only -p nope --wrap true", "sbatch", allocates);
    let single = "Operation not permitted on individual component of heterogeneous job";
    refuses(&format!("scancel {job}+1"), "scancel", &format!("Kill job error on job id {job}+1: {single}"));
    refuses(&format!("scontrol suspend {job}+1"), "scontrol suspend", &format!("{single} for job {job}+1"));
    refuses(
        &format!("scontrol requeue {job}+1"),
        "scontrol requeue",
        &format!("Job not heterogeneous job leader for job {job}+1"),
    );
    refuses(
        "srun -Z -n1 : -n1 true",
        "srun",
        "Unable to allocate resources: The no-allocate option does not support heterogeneous jobs",
    );
    refuses(
        &format!("sattach {job}+0.0,{job}+1.0"),
        "sattach",
        "Attaching to several components at a time is not supported",
    );
    // In an allocation of two components.
    let inside = |line: &str, why: &str| refuses(&format!("{allocation} {line}"), "srun", why);
    inside("srun --het-group=0 true : --het-group=0 true", "Duplicate het groups in single srun not supported");
    inside("srun --het-group=0,1 --multi-prog ranks", "--multi-prog option not supported with multiple het groups");
    let [[who, what, why]] = &told("salloc -Q -n1 srun -n99 true")[..] else { panic!("not one") };
    assert_eq!((who, what.as_str()), (&user, "srun"));
    assert!(why.ends_with(": More processors requested than permitted"), "{why}");

    // A refusal by the system is recorded once.
    let [[who, what, why]] = &told("sbatch -p nope --wrap true")[..] else { panic!("not one") };
    assert!(who == &user && what == "submit" && why.contains("nope"), "{what}: {why}");
    // Several refusals of one command line are several records.
    let both = told(&format!("scancel {job}+1 {}", job.parse::<u64>().expect("a number") + 1));
    assert_eq!(both.len(), 2, "{both:?}");
    // Nothing was requested, or it is no command line at all.
    for line in ["sbatch --bogus --wrap true", "squeue -j x", "scontrol show job 99", "salloc -Q -n1 false"] {
        assert_eq!(told(line), Vec::<[String; 3]>::new(), "{line}");
    }
    // The job of `salloc` may still be completing.
    let left = format!("{job}+0 PD\n{job}+1 PD\n");
    site.system.wait_until("nothing else is left", || site.ok("squeue -h -o '%i %t' | sort") == left);
}
