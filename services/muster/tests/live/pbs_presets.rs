//! The presets of PBS's schedulers in force on a live system (PBS-P-01).

use crate::{
    slurm::Site,
    system::{Output, System},
};
use nix::sys::signal::Signal;

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
    site.system.stop();
    let config = site.system.path("site.toml").display().to_string();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    is_in_force(&site, "sgi_origin");
    site.ok(&format!("qdel {first} {short}"));
    runs_in(&site, &wide, "large");
    assert_eq!(attribute(&site, &late, "job_state"), "Q");
    site.ok(&format!("qdel {wide}"));
    runs_in(&site, &late, "large");
    is_repeatable(&site);
    site.system.write(
        "sched_priv/config",
        &format!("{SGI}ENFORCE_DEDICATED_TIME True\nDEDICATED_TIME_COMMAND /bin/true\nTEST_ONLY True\n"),
    );
    let folder = site.system.path("sched_priv").display().to_string();
    let Output { status, stdout, .. } = site.system.run(&["pbs", "load", "--preset", "sgi_origin", &folder]);
    assert_eq!(status, 2, "{stdout}");
    assert!(stdout.contains("config: ENFORCE_DEDICATED_TIME: ") && stdout.contains("config: TEST_ONLY: "), "{stdout}");
}

/// PBS-P-19, PBS-P-20, PBS-P-23: under `ibm_sp` jobs get whole nodes; a small one goes ahead if it does not delay the first.
#[test]
fn ibm_sp_gives_whole_nodes_and_backfills() {
    let config = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\n";
    let site = site("ibm_sp", &["submit", "batch"], &[("config", config)]);
    let first = submit(&site, "-l nodes=3 -l walltime=1:00:00");
    runs_in(&site, &first, "batch");
    let wide = submit(&site, "-l nodes=4 -l walltime=0:40:00");
    waits_for(&site, &wide, "reservation");
    let late = submit(&site, "-l nodes=1 -l walltime=3:00:00");
    let short = submit(&site, "-l nodes=1 -l walltime=0:50:00");
    runs_in(&site, &short, "batch");
    waits_for(&site, &late, "");
    site.ok(&format!("qdel {first} {short}"));
    runs_in(&site, &wide, "batch");
    assert_eq!(attribute(&site, &late, "job_state"), "Q");
    is_repeatable(&site);
    let folder = site.system.path("sched_priv").display().to_string();
    let checked = site.system.ok(&["pbs", "check", "--preset", "ibm_sp", &folder]);
    assert!(checked.contains("reconstruction"), "{checked}");
}

/// PBS-P-21: under `cray_t3e` jobs of all queues start in the batch queue, those of the special queue first and those of the
/// background queue last, although they came in the opposite order.
#[test]
fn cray_t3e_orders_by_classes() {
    let config = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nSPECIAL_QUEUE special\nBACKGROUND_QUEUE_NAME background\n\
                  MIN_JOBS 100\nAVOID_FRAGMENTATION False\n";
    let queues = ["submit", "special", "background", "batch"];
    let site = site("cray_t3e", &queues, &[("config", config)]);
    let blocker = submit(&site, "-l select=4:ncpus=4 -l walltime=1:00:00");
    runs_in(&site, &blocker, "batch");
    let wants = "-l select=4:ncpus=4 -l walltime=1:00:00";
    // Otherwise the first of them is promised the nodes before the others are there.
    site.ok("qmgr -c 'set server scheduling = false'");
    let background = submit(&site, &format!("-q background {wants}"));
    let normal = submit(&site, wants);
    let special = submit(&site, &format!("-q special {wants}"));
    site.ok("qmgr -c 'set server scheduling = true'");
    waits_for(&site, &special, "reservation");
    for (over, next, waits) in
        [(&blocker, &special, vec![&normal, &background]), (&special, &normal, vec![&background])]
    {
        site.ok(&format!("qdel {over}"));
        runs_in(&site, next, "batch");
        waits.into_iter().for_each(|job| assert_eq!(attribute(&site, job, "job_state"), "Q"));
    }
    site.ok(&format!("qdel {normal}"));
    runs_in(&site, &background, "batch");
    is_repeatable(&site);
}

/// PBS-P-22, PBS-P-23: under `multitask` jobs start in their own queues, those of the batch queues outside prime time, in order
/// of arrival, and memory is never oversold.
#[test]
fn multitask_starts_jobs_of_the_queues_of_the_hours() {
    let config = |batch: &str, interactive: &str| {
        format!("BATCH_QUEUES {batch}\nINTERACTIVE_QUEUES {interactive}\nMIN_JOBS 100\nENFORCE_PRIME_TIME False\n")
    };
    let site = site("multitask", &["submit", "batch", "inter"], &[("config", &config("batch", "inter"))]);
    let interactive = submit(&site, "-q inter -l ncpus=1 -l walltime=0:10:00");
    let first = submit(&site, "-q batch -l select=4:ncpus=1:mem=3gb -l walltime=0:10:00");
    let second = submit(&site, "-q batch -l select=1:ncpus=1:mem=3gb -l walltime=0:10:00");
    let small = submit(&site, "-q batch -l select=1:ncpus=1:mem=512mb -l walltime=0:10:00");
    runs_in(&site, &first, "batch");
    runs_in(&site, &small, "batch");
    assert_eq!(attribute(&site, &second, "job_state"), "Q");
    assert_eq!(attribute(&site, &interactive, "job_state"), "Q");
    site.ok(&format!("qdel {first}"));
    runs_in(&site, &second, "batch");
    site.system.write("sched_priv/config", &config("inter", "batch"));
    site.system.signal(Signal::SIGHUP);
    runs_in(&site, &interactive, "inter");
    is_repeatable(&site);
}
