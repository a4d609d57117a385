//! The presets of PBS's schedulers in force on a live system (PBS-P-01).

use crate::{
    slurm::Site,
    system::{Output, System},
};

/// A cluster with these queues that follows a preset.
fn site(preset: &str, queues: &[&str], files: &[(&str, &str)]) -> Site {
    let system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    files.iter().for_each(|(name, text)| system.write(&format!("sched_priv/{name}"), text));
    let folder = system.path("sched_priv").display().to_string();
    let queues: String = queues.iter().map(|name| format!("[[queues]]\nname = \"{name}\"\n")).collect();
    let cluster = format!("[cluster]\nname = \"alpha\"\ndefault_queue = \"submit\"\n{queues}");
    let site = Site::on(system, &format!("{cluster}[pbs]\npolicy_folder = \"{folder}\"\npreset = \"{preset}\"\n"));
    is_in_force(&site, preset);
    site
}

fn is_in_force(site: &Site, preset: &str) {
    let name = || site.system.json(&["config", "show", "--policy", "--json"])["name"].to_string();
    site.system.wait_until("the preset is in force", || name() == format!("\"PBS {preset}\""));
}

/// Has the limits that qmgr has set become limits of the policy.
fn make_again(site: &Site, preset: &str) {
    site.system.ok(&["pbs", "load", "--preset", preset, &site.system.path("sched_priv").display().to_string()]);
}

fn submit(site: &Site, words: &str) -> String {
    site.ok(&format!("echo sleep 600 | qsub {words}")).trim().to_owned()
}

fn attribute(site: &Site, job: &str, name: &str) -> String {
    let full = site.run(&format!("qstat -xf {job}")).stdout;
    let line = full.lines().find_map(|line| line.trim().strip_prefix(&format!("{name} = ")).map(str::to_owned));
    line.unwrap_or_default()
}

/// Waits until a job runs in a queue.
fn runs_in(site: &Site, job: &str, queue: &str) {
    let is_there = || attribute(site, job, "job_state") == "R" && attribute(site, job, "queue") == queue;
    site.system.wait_until(&format!("{job} runs in {queue}"), is_there);
}

/// Waits until a job waits for a reason.
fn waits_for(site: &Site, job: &str, words: &str) {
    let number = job.split('.').next().unwrap_or_default().to_owned();
    let is_told = |line: &str| line.split_whitespace().next() == Some(&number) && line.contains(words);
    let told = || site.system.ok(&["jobs"]).lines().any(is_told);
    site.system.wait_until(&format!("{job} waits: {words}"), told);
    assert_eq!(attribute(site, job, "job_state"), "Q");
}

/// Every plan of the log is made again from the state that was seen, with the same starts.
fn is_repeatable(site: &Site) {
    let Output { status, stdout, stderr } = site.system.run(&["replay", "--verify"]);
    assert_eq!(status, 0, "{stdout}{stderr}");
}

const SGI: &str = "SUBMIT_QUEUE submit\nBATCH_QUEUES small,large\nNODE_CPUS 1\nNODE_MEM 1gb\nMIN_JOBS 100\n\
                   AVOID_FRAGMENTATION False\nBACKFILL_MODE static\n";

/// PBS-P-05, PBS-P-16, PBS-P-17, PBS-P-23: under `sgi_origin` a job starts in the first batch queue that takes it; the first
/// that cannot start is promised a place, which only jobs that are over by then pass, also after a restart. What a live
/// system does not follow is said.
#[test]
fn sgi_origin_moves_jobs_into_queues_and_keeps_promises() {
    let mut site = site("sgi_origin", &["submit", "small", "large"], &[("config", SGI)]);
    site.ok("qmgr -c 'set queue small resources_max.ncpus = 2, resources_max.walltime = 1:00:00'");
    site.ok("qmgr -c 'set queue large resources_max.ncpus = 16'");
    make_again(&site, "sgi_origin");
    let first = submit(&site, "-l select=3:ncpus=4 -l walltime=1:00:00");
    runs_in(&site, &first, "large");
    let wide = submit(&site, "-l select=4:ncpus=4 -l walltime=2:00:00");
    waits_for(&site, &wide, "reservation");
    let late = submit(&site, "-l ncpus=2 -l walltime=3:00:00");
    let short = submit(&site, "-l ncpus=2 -l walltime=0:30:00");
    runs_in(&site, &short, "small");
    waits_for(&site, &late, "");
    // A cycle before all nodes are back could give the holder's place to the later job.
    site.ok("qmgr -c 'set server scheduling = false'");
    site.system.stop();
    let config = site.system.path("site.toml").display().to_string();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    is_in_force(&site, "sgi_origin");
    let is_up = |node: &serde_json::Value| node["state"] == "up";
    let are_up =
        || site.system.json(&["nodes", "--json"])["nodes"].as_array().is_some_and(|nodes| nodes.iter().all(is_up));
    site.system.wait_until("all nodes are back", are_up);
    site.ok("qmgr -c 'set server scheduling = true'");
    site.ok(&format!("qdel {first} {short}"));
    runs_in(&site, &wide, "large");
    assert_eq!(attribute(&site, &late, "job_state"), "Q");
    site.ok(&format!("qdel {wide}"));
    runs_in(&site, &late, "large");
    is_repeatable(&site);
    site.system.write("sched_priv/config", &format!("{SGI}SORTED_JOB_DUMPFILE /tmp/dump\n"));
    let folder = site.system.path("sched_priv").display().to_string();
    let Output { status, stderr, .. } = site.system.run(&["pbs", "load", "--preset", "sgi_origin", &folder]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("config: SORTED_JOB_DUMPFILE: has no effect"), "{stderr}");
}

/// Puts a file `config` in force.
fn put(site: &Site, preset: &str, config: &str) {
    site.system.write("sched_priv/config", config);
    make_again(site, preset);
}

const PLAIN: &str = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nMIN_JOBS 100\nAVOID_FRAGMENTATION False\n";

/// PBS-P-14: while the outages of the system are not known, or there is one, nothing starts; that they are not known is an event.
/// The program that tells them is not root, and is not asked if others can change it.
#[test]
fn outages_that_a_program_prints_keep_jobs_waiting() {
    let site = site("sgi_origin", &["submit", "batch"], &[("config", PLAIN)]);
    let command = site.system.path("outages");
    site.system.write("outages", &format!("#!/bin/sh\ntest $(id -u) != 0 && exec cat {}.$1\n", command.display()));
    site.ok("chmod 755 . outages");
    let enforced = format!(
        "{PLAIN}BACKFILL_MODE none\nENFORCE_DEDICATED_TIME True\nDEDICATED_TIME_COMMAND {}\nSYSTEM_NAME Site.example.org\n",
        command.display()
    );
    put(&site, "sgi_origin", &enforced);
    let job = submit(&site, "-l ncpus=1 -l walltime=1:00:00");
    waits_for(&site, &job, "word of the outages of its machine");
    let events = site.system.ok(&["events", "--kind", "policy.refused", "--json"]);
    let (line, others) = events.split_once('\n').expect("an event");
    assert!(
        line.contains("DEDICATED_TIME_COMMAND: the outages of site are not known, and nothing starts there"),
        "{line}"
    );
    assert_eq!(others, "", "it is told once");
    site.system.write("outages.site", "site 01/01/2020 00:00-12:00 12/31/2199 power\n  and cooling\n");
    make_again(&site, "sgi_origin");
    waits_for(&site, &job, "the end of an outage");
    site.system.write("outages.site", "other 01/01/2020 00:00-12:00 12/31/2199 elsewhere\n");
    make_again(&site, "sgi_origin");
    runs_in(&site, &job, "batch");
    site.ok("chmod 777 sched_priv");
    make_again(&site, "sgi_origin");
    let other = submit(&site, "-l ncpus=1 -l walltime=1:00:00");
    waits_for(&site, &other, "word of the outages of its machine");
    is_repeatable(&site);
}

/// PBS-P-03, PBS-P-15: a group above its allocation starts nothing, and neither does anybody under `TEST_ONLY`. At the first
/// cycle jobs that wait in a batch queue go back to the queue of submissions.
#[test]
fn allocations_tests_and_the_first_cycle() {
    let mut site = site("sgi_origin", &["submit", "batch"], &[("config", PLAIN)]);
    put(&site, "sgi_origin", &format!("{PLAIN}TEST_ONLY True\n"));
    let job = submit(&site, "-l ncpus=1 -l walltime=1:00:00");
    waits_for(&site, &job, "TEST_ONLY");
    let group = site.ok("id -gn").trim().to_owned();
    let used = |hours: u32| site.system.write("acct/current", &format!("{group} {hours}\n"));
    site.ok("mkdir acct");
    site.system.write("acct/allocations", &format!("# node hours\n{group} 100\n"));
    used(101);
    let folder = site.system.path("acct").display().to_string();
    let allocated = format!("{PLAIN}ENFORCE_ALLOCATION True\nSCHED_ACCT_DIR {folder}\n");
    put(&site, "sgi_origin", &allocated);
    waits_for(&site, &job, "the allocation of its group");
    used(100);
    make_again(&site, "sgi_origin");
    runs_in(&site, &job, "batch");

    site.ok("qmgr -c 'set server scheduling = false'");
    let stranded = submit(&site, "-q batch -l ncpus=1 -l walltime=1:00:00");
    assert_eq!(attribute(&site, &stranded, "queue"), "batch");
    site.system.write("sched_priv/config", &format!("{PLAIN}SCHED_RESTART_ACTION RESUBMIT\n"));
    site.system.stop();
    let config = site.system.path("site.toml").display().to_string();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    site.system.wait_until("it is back", || attribute(&site, &stranded, "queue") == "submit");
    assert_eq!(attribute(&site, &stranded, "job_state"), "Q");
    site.system.write("sched_priv/config", &format!("{PLAIN}SCHED_RESTART_ACTION RERUN\n"));
    site.ok(&format!("qmove batch {stranded}"));
    site.system.stop();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    // Although scheduling is off, as by `qrun`.
    runs_in(&site, &stranded, "batch");
    is_repeatable(&site);
}

/// PBS-P-01, PBS-T-07, PBS-C-07: `qmgr` says which preset the files are for, in which zone their hours are, and how often cycles begin.
#[test]
fn the_server_names_preset_and_zone() {
    let system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    system.write("sched_priv/config", PLAIN);
    let folder = system.path("sched_priv").display().to_string();
    let queues = "[[queues]]\nname = \"submit\"\n[[queues]]\nname = \"batch\"\n";
    let cluster = format!("[cluster]\nname = \"alpha\"\ndefault_queue = \"submit\"\n{queues}");
    let site = Site::on(system, &format!("{cluster}[pbs]\npolicy_folder = \"{folder}\"\n"));
    is_in_force(&site, "fifo");
    site.ok("qmgr -c 'set server scheduler_policy = cray_t3e, timezone = Asia/Tokyo, schedule_iteration = 300'");
    let Output { status, stderr, .. } = site.system.run(&["pbs", "load", &folder]);
    assert_eq!(status, 0, "{stderr}");
    is_in_force(&site, "cray_t3e");
    // PBS-P-21: past usage is counted for the priority, and owners take no turns.
    let owners = &site.system.json(&["config", "show", "--policy", "--json"])["turns"]["routes"]["owners"];
    assert_eq!((&owners["only_counts"], &owners["charge"]), (&true.into(), &10.into()), "{owners}");
    assert!(site.ok("qstat -Bf").contains("schedule_iteration = 300"));
    // From 08:00 in Tokyo, which is 23:00 of the day before in UTC.
    let hours =
        "ENFORCE_PRIME_TIME True\nPRIME_TIME_START 08:00:00\nPRIME_TIME_END 18:00:00\nPRIME_TIME_WALLT_LIMIT 1:00:00\n";
    site.system.write("sched_priv/config", &format!("{PLAIN}{hours}"));
    site.system.write("sched_priv/holidays", "YEAR 2026\n");
    site.system.ok(&["pbs", "load", &folder]);
    let policy = site.system.json(&["config", "show", "--policy", "--json"]);
    let until = policy["turns"]["other_hours"]["periods"][1]["until"].to_string();
    assert!(until.contains("T23:00:00"), "{policy}");
}

/// PBS-P-13: jobs wait while the system of their machine takes too much of its time, as its node measures it.
#[test]
fn system_time_keeps_jobs_waiting() {
    let system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    let preset = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch@node1\nAVOID_FRAGMENTATION False\nHIGH_SYSTIME 50\nTARGET_LOAD_PCT 20\n";
    system.write("sched_priv/config", preset);
    system.write("load", "0.25 1.00 1.00 1/80 11206\n");
    let times = |system: &System, all: u64, of_system: u64| {
        system.write("stat.new", &format!("cpu {} 0 {of_system} 0 0 0 0 0\n", all - of_system));
        std::fs::rename(system.path("stat.new"), system.path("stat")).expect("there is room");
    };
    times(&system, 1000, 0);
    let (folder, load, stat) = (system.path("sched_priv"), system.path("load"), system.path("stat"));
    let site = Site::on(
        system,
        &format!(
            "[cluster]\nname = \"alpha\"\ndefault_queue = \"submit\"\n[[queues]]\nname = \"submit\"\n[[queues]]\nname = \"batch\"\n\
             [pbs]\npolicy_folder = \"{}\"\npreset = \"sgi_origin\"\n\
             [executor]\nload_interval_seconds = 1\nload_file = \"{}\"\nstat_file = \"{}\"\n",
            folder.display(),
            load.display(),
            stat.display()
        ),
    );
    is_in_force(&site, "sgi_origin");
    // Time passes in the file when the test says so: each measurement sees the same part of the system.
    let passed = std::cell::Cell::new((1000, 0));
    let pass = |of_system: u64| {
        let (all, system) = passed.get();
        passed.set((all + 100, system + of_system));
        times(&site.system, all + 100, system + of_system);
    };
    let waits = || site.system.ok(&["jobs", "--json"]).contains("a lower load of its machine");
    let measured = || site.system.ok(&["events", "--kind", "node.load_measured", "--json"]);
    site.system.wait_until("nine tenths are the system's", || {
        pass(90);
        measured().contains("\"system_percent\":90")
    });
    let job = submit(&site, "-l ncpus=1 -l walltime=1:00:00");
    site.system.wait_until("the job waits", || {
        pass(90);
        waits()
    });
    site.system.wait_until("the job runs", || {
        pass(10);
        attribute(&site, &job, "job_state") == "R"
    });
}
