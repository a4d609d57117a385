//! The policy files of a PBS scheduler in force on a live system.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A site that follows the folder `sched_priv`, with these files in it.
fn site(files: &[(&str, &str)]) -> Site {
    let system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    files.iter().for_each(|(name, text)| system.write(&format!("sched_priv/{name}"), text));
    let folder = system.path("sched_priv").display().to_string();
    Site::on(system, &format!("{QUEUES}\n[pbs]\npolicy_folder = \"{folder}\"\n"))
}

const QUEUES: &str = r#"
[cluster]
name = "alpha"
default_queue = "workq"

[[queues]]
name = "workq"

[[queues]]
name = "fast"
priority = 5
makes_way = { by = "requeue" }
"#;

fn policy(site: &Site) -> Value {
    let text = site.system.ok(&["config", "show", "--policy", "--json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn reload(site: &Site, text: &str) {
    site.system.write("sched_priv/sched_config", text);
    site.system.signal(Signal::SIGHUP);
}

/// The numbers of jobs in the order of their starts.
fn starts(site: &Site) -> Vec<String> {
    let events = site.system.ok(&["events", "--kind", "job.started", "--json"]);
    events.lines().map(started).collect()
}

/// The job of a line of events.
fn started(line: &str) -> String {
    let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    event["data"]["job"].to_string()
}

/// PBS-C-14: broken files put nothing in force and keep everything from starting as long as none was; good ones are in force
/// with their hashes; later ones with mistakes leave the policy as it is. Each is an event.
#[test]
fn files_are_put_in_force_together_or_not_at_all() {
    let site = site(&[("sched_config", "by_queue: maybe\n"), ("holidays", "YEAR 1998\nweekday 0400 2460\n")]);
    let name = |site: &Site| policy(site)["name"].as_str().unwrap_or_default().to_owned();
    site.system.wait_until("nothing is in force", || name(&site) == "none (2 errors)");
    assert!(site.ok("qstat -Bf").contains("comment = policy: none (2 errors)\n"));
    let row = site.ok("qstat -B");
    assert!(row.contains(" Active     policy: none (2 errors)\n"), "{row}");
    let job = site.ok("echo true | qsub");
    let waits = || site.system.ok(&["jobs", "--json"]);
    site.system.wait_until("the job waits for a policy", || waits().contains("the policy files of PBS have 2 errors"));
    let refused = site.system.ok(&["events", "--kind", "policy.refused", "--json"]);
    assert!(refused.contains("sched_config:1: column 11: expected true or false (token 'maybe')"), "{refused}");
    assert!(refused.contains("holidays:2: "), "{refused}");

    site.system.write("sched_priv/holidays", "YEAR 1998\nweekday 0400 2300\n");
    reload(&site, "by_queue: true\n");
    site.system.wait_until("the files are in force", || name(&site) == "PBS fifo");
    assert!(!site.ok("qstat -Bf").contains("policy"));
    let vain = "queue `fast`: `makes_way` has no effect under a policy of PBS";
    site.system.wait_until("what has no effect is told", || site.system.log().contains(vain));
    // PBS-T-05: once a day, in the log of the process and on record.
    let old = "holidays: the file is for 1998, and it is ";
    site.system.wait_until("it is told", || site.system.log().contains(old));
    let warned = site.system.ok(&["events", "--kind", "policy.warned", "--json"]);
    assert!(warned.lines().count() == 1 && warned.contains(old) && warned.contains("\"PBS fifo\""), "{warned}");
    site.system.wait_until("the job is over", || site.run(&format!("qstat {job}")).status == 35);
    let sources = policy(&site)["sources"].clone();
    assert_eq!(sources[0]["name"], "sched_config");
    let sum = site.ok("sha256sum < sched_priv/sched_config");
    assert_eq!(sources[0]["sha256"].as_str(), sum.split_whitespace().next());

    reload(&site, "by_queue: true\nsort_by: sortest_job_first\n");
    let count = || site.system.ok(&["events", "--kind", "policy.refused", "--json"]).lines().count();
    site.system.wait_until("the second mistake is on record", || count() == 2);
    assert_eq!(policy(&site)["sources"], sources, "the policy in force stays");
    let folder = site.system.path("sched_priv").display().to_string();
    let Output { status, stdout, .. } = site.system.run(&["pbs", "load", &folder]);
    assert_eq!(status, 2);
    assert!(stdout.contains("sched_config:2: column 10: no such sort; is 'shortest_job_first' meant?"), "{stdout}");
    let job = site.ok("echo true | qsub");
    site.system.wait_until("jobs still start", || site.run(&format!("qstat {job}")).status == 35);
}

/// PBS-P-01: the policy that a folder makes is one for simulations and what-if too, which keep its order.
#[test]
fn a_policy_of_files_is_simulated_and_replayed() {
    let site = site(&[("sched_config", "sort_by: short_walltime_first\n"), ("holidays", "YEAR 2026\n")]);
    site.system.wait_until("in force", || policy(&site)["name"] == "PBS fifo");
    let all = "-l select=4:ncpus=4 -l walltime";
    site.ok(&format!("echo 'until [ -e $PBS_O_WORKDIR/go ]; do sleep 0.05; done' | qsub {all}=1:00:00"));
    site.system.wait_until("it runs", || starts(&site) == ["\"1\""]);
    for walltime in ["2:00:00", "0:10:00"] {
        site.ok(&format!("echo sleep 2 | qsub {all}={walltime}"));
    }
    site.system.write("go", "");
    site.system.wait_until("all are over", || site.ok("qstat").is_empty());
    assert_eq!(starts(&site), ["1", "3", "2"].map(|job| format!("\"{job}\"")));

    site.system.write("policy.toml", &site.system.ok(&["config", "show", "--policy"]));
    let again = site.system.json(&["whatif", "--policy", "policy.toml", "--json"]);
    assert_eq!((&again["jobs"], &again["later"], &again["earlier"]), (&3.into(), &0.into(), &0.into()), "{again}");
    let other = site.system.json(&["whatif", "--policy", "fcfs", "--json"]);
    assert_eq!(other["gained"][0]["job"], "2", "{other}");

    let job = |number: u8, submit: u8, requested: u16| {
        format!("{number} {submit} -1 10 1 -1 -1 1 {requested} -1 1 1 1 -1 1 -1 -1 -1\n")
    };
    site.system
        .write("trace.swf", &["; MaxProcs: 1\n".to_owned(), job(1, 0, 100), job(2, 1, 300), job(3, 2, 50)].concat());
    let rows = site.system.ok(&["simulate", "trace.swf", "--policy", "policy.toml", "--out", "-"]);
    let start_of = |number: &str| {
        let row = rows.lines().find(|row| row.starts_with(&format!("{number},"))).unwrap_or_else(|| panic!("{rows}"));
        row.split(',').nth(2).unwrap_or_default().to_owned()
    };
    assert_eq!(["1", "2", "3"].map(start_of), ["0", "20", "10"]);
}

/// PBS-S-01, PBS-Q-02: jobs start in the order of the files, whatever dialect they were submitted in, and are held by limits
/// that qmgr sets.
#[test]
fn jobs_start_in_the_order_of_the_files_and_within_the_limits_of_qmgr() {
    let site =
        site(&[("sched_config", "sort_by: shortest_job_first all\nround_robin: false all\nby_queue: true all\n")]);
    site.ok("qstop workq fast");
    site.ok("echo true | qsub -l cput=2:00:00");
    site.ok("echo true | qsub -l cput=0:10:00");
    site.ok("sbatch --wrap true");
    site.ok("echo true | qsub -q fast -l cput=9:00:00");
    site.ok("echo true | qsub -l cput=0:30:00");
    site.ok("qmgr -c 'set server max_running = 1'");
    site.system.ok(&["pbs", "load", &site.system.path("sched_priv").display().to_string()]);
    let limits = policy(&site)["limits"].clone();
    assert_eq!(limits[0]["max_running_jobs"], 1, "{limits}");
    site.ok("qstart fast workq");
    site.system.wait_until("all are over", || starts(&site).len() == 5);
    // The queue with the higher priority first; a job without a value last.
    assert_eq!(starts(&site), ["4", "2", "5", "1", "3"].map(|job| format!("\"{job}\"")));
    let printed = site.ok("qmgr -c 'print server'");
    assert!(printed.contains("set server max_running = 1"), "{printed}");
}

/// PBS-FS-05: what users have used is in the log, so it decides after a restart as well.
#[test]
fn who_has_used_less_goes_first_also_after_a_restart() {
    let mut system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    let files = "fair_share: true all\nmuster_fair_share_charge: ncpus*walltime\nby_queue: false all\n";
    system.write("sched_priv/sched_config", files);
    let folder = system.path("sched_priv").display().to_string();
    let options = system.configure_for_others(1, &format!("[pbs]\npolicy_folder = \"{folder}\"\n"));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    system.restart(&options);
    let name = |system: &System| system.json(&["config", "show", "--policy", "--json"])["name"].to_string();
    system.wait_until("the files are in force", || name(&system) == "\"PBS fifo\"");
    let used = system.submit(&["-c", "4", "--", "sleep", "2"]);
    system.wait_for_state(&used, "finished");
    system.ok(&["pbs", "qstop", "default"]);
    let of_root = system.submit(&["-c", "4", "--", "true"]);
    let Output { status, stdout, stderr } = system.run_as_nobody(&["submit", "--parsable", "-c", "4", "--", "true"]);
    assert_eq!(status, 0, "{stderr}");
    let of_nobody = stdout.trim().to_owned();
    system.stop();
    system.restart(&options);
    system.ok(&["pbs", "qstart", "default"]);
    system.wait_for_state(&of_root, "finished");
    system.wait_for_state(&of_nobody, "finished");
    // The order of allocations: what nobody may do in the folder of the test does not matter.
    let events = system.ok(&["events", "--kind", "job.allocated", "--json"]);
    let started: Vec<String> = events.lines().map(started).collect();
    assert_eq!(started, [used, of_nobody, of_root].map(|job| format!("\"{job}\"")), "{events}");
}

/// PBS-L-01, PBS-L-03, PBS-L-08: nodes measure their load, a job waits while it is high, and starts on a timeshared node once it
/// is low; other commands show it.
#[test]
fn the_load_of_nodes_chooses_where_a_job_runs() {
    let system = System::stopped();
    std::fs::create_dir(system.path("sched_priv")).expect("there is room");
    system.write("sched_priv/sched_config", "load_balancing: true\n");
    system.write("sched_priv/nodes", "node2:ts np=4\nnode9:ts\n");
    system.write("load", "5.50 1.00 1.00 1/80 11206\n");
    let (folder, file) = (system.path("sched_priv"), system.path("load"));
    let executor = format!("[executor]\nload_interval_seconds = 1\nload_file = \"{}\"\n", file.display());
    let site = Site::on(system, &format!("{QUEUES}\n{executor}[pbs]\npolicy_folder = \"{}\"\n", folder.display()));
    site.system.wait_until("the policy is in force", || policy(&site)["name"] == "PBS fifo");
    site.system.wait_until("the load is known", || site.ok("sinfo -h -N -n node2 -O CPUsLoad").trim() == "5.50");
    assert!(site.ok("scontrol show node node2").contains("CPULoad=5.50"));
    let job = site.ok("echo sleep 60 | qsub");
    let waits = || site.system.ok(&["jobs", "--json"]);
    site.system.wait_until("the job waits", || waits().contains("a node with a low load and room for it"));
    site.system.write("load", "0.25 1.00 1.00 1/80 11206\n");
    let placed = || site.run(&format!("qstat -f {job}")).stdout.contains("exec_host = node2/0");
    site.system.wait_until("the job runs on the timeshared node", placed);
    let other = site.ok("echo sleep 60 | qsub -l nodes=node3");
    let placed = || site.run(&format!("qstat -f {other}")).stdout.contains("exec_host = node3/0");
    site.system.wait_until("a job that names a node runs there", placed);
}

/// PBS-C-11: each cycle of the policy that starts jobs or has something new to say is on record with its number, its reasons, the
/// mode and the number of starts; numbers go up, and there is no cycle while scheduling is off.
#[test]
fn cycles_are_on_record() {
    let site = site(&[("sched_config", "by_queue: true\n")]);
    let name = |site: &Site| policy(site)["name"].as_str().unwrap_or_default().to_owned();
    site.system.wait_until("the files are in force", || name(&site) == "PBS fifo");
    let cycles = || -> Vec<Value> {
        let events = site.system.ok(&["events", "--kind", "plan.made", "--json"]);
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let all = events.lines().map(|line| read(line)["data"]["cycle"].clone());
        all.filter(|cycle| cycle.is_object()).collect()
    };
    site.ok("qmgr -c 'set server scheduling = false'");
    let before = cycles().len();
    site.ok("echo sleep 600 | qsub -l ncpus=1");
    site.ok("echo sleep 600 | qsub -l ncpus=1");
    assert_eq!(cycles().len(), before);
    site.ok("qmgr -c 'set server scheduling = true'");
    site.system.wait_until("both are started", || cycles().iter().any(|cycle| cycle["started"] == 2));
    let all = cycles();
    let of_both = all.iter().find(|cycle| cycle["started"] == 2).expect("it was there");
    assert_eq!(of_both["policy"], "PBS fifo");
    assert_eq!((of_both["is_prime"].as_bool(), of_both["is_dedicated"].as_bool()), (Some(true), Some(false)));
    let reasons = of_both["reasons"].to_string();
    assert!(reasons.contains("SCH_SCHEDULE_CMD"), "{reasons}");
    site.ok("echo sleep 600 | qsub -l ncpus=1");
    site.system.wait_until("the third is started", || cycles().iter().any(|cycle| cycle["started"] == 1));
    // The cycle after it starts nothing and has nothing to say, so it leaves only its number (PBS-C-02).
    site.ok("echo sleep 600 | qsub -l ncpus=1");
    let of_single_starts = || cycles().into_iter().filter(|cycle| cycle["started"] == 1).collect::<Vec<_>>();
    site.system.wait_until("the fourth is started", || of_single_starts().len() == 2);
    let singles = of_single_starts();
    let [third, fourth] = [&singles[0], &singles[1]].map(|cycle| cycle["number"].as_u64().expect("a number"));
    let was_quiet = fourth >= third + 2;
    assert!(was_quiet || singles[1]["reasons"].to_string().contains("SCH_SCHEDULE_RECYC"), "{singles:?}");
    assert!(
        cycles()
            .iter()
            .all(|cycle| cycle["started"] != 0 || cycle["reasons"] != serde_json::json!(["SCH_SCHEDULE_RECYC"]))
    );
    let numbers: Vec<u64> = cycles().iter().filter_map(|cycle| cycle["number"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

/// PBS-C-11: a cycle tells that it is not prime time, although no option depends on that, and that it is dedicated time.
#[test]
fn cycles_tell_their_hours() {
    let holidays = "YEAR 2026\nweekday none all\nsaturday none all\nsunday none all\n";
    let dedicated = "01/01/2020 00:00 12/31/2199 00:00\n";
    let files = [("sched_config", "dedicated_prefix: fast\n"), ("holidays", holidays), ("dedicated_time", dedicated)];
    let site = site(&files);
    site.system.wait_until("the files are in force", || policy(&site)["name"] == "PBS fifo");
    site.ok("echo true | qsub -q fast -l walltime=1:00");
    let is_started = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let cycle = &event["data"]["cycle"];
        cycle["started"] == 1 && cycle["is_prime"] == false && cycle["is_dedicated"] == true
    };
    let cycles = || site.system.ok(&["events", "--kind", "plan.made", "--json"]);
    site.system.wait_until("the cycle is on record", || cycles().lines().any(is_started));
}

/// PBS-FS-09: what users have used is published again and again, and after a crash it is what it was before.
#[test]
fn usage_is_published() {
    let mut site = site(&[("sched_config", "fair_share: true\nsync_time: 0:00:01\n")]);
    let snapshots = |site: &Site| -> Vec<Value> {
        let events = site.system.ok(&["events", "--kind", "plan.made", "--json"]);
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let all = events.lines().map(|line| read(line)["data"]["cycle"]["usage"].clone());
        all.filter(Value::is_array).collect()
    };
    let burn = "i=0; while [ $i -lt 4000000 ]; do i=$((i+1)); done";
    site.ok(&format!("echo '{burn}' | qsub -W block=true"));
    let of_root = |site: &Site| {
        let last = snapshots(site).pop().unwrap_or_default();
        let entry = last.as_array().into_iter().flatten().find(|entry| entry["user"] == "root").cloned();
        entry.and_then(|entry| entry["usage"].as_u64())
    };
    site.system.wait_until("what root has used is published", || of_root(&site).is_some_and(|usage| usage > 1));
    let before = of_root(&site);
    let count = snapshots(&site).len();
    site.system.wait_until("it is published again and again", || snapshots(&site).len() > count + 2);
    site.system.signal(Signal::SIGKILL);
    site.system.stop();
    let config = site.system.path("site.toml").display().to_string();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    let count = snapshots(&site).len();
    site.system.wait_until("it is published after the crash", || snapshots(&site).len() > count);
    assert_eq!(of_root(&site), before);
}

/// PBS-Q-02: `qmgr` limits the running jobs of a single user, in a queue and everywhere, of a group and of a project.
#[test]
fn running_jobs_of_a_single_user_are_limited() {
    let site = site(&[("sched_config", "by_queue: true\n")]);
    site.ok("qmgr -c 'set queue workq max_run = [u:root=1]'");
    site.ok("qmgr -c 'set server max_run = \"[u:root=2],[u:ann=1]\"'");
    let folder = site.system.path("sched_priv").display().to_string();
    site.system.ok(&["pbs", "load", &folder]);
    let submit = |words: &str| site.ok(&format!("echo sleep 600 | qsub -l ncpus=1 {words}")).trim().to_owned();
    let [first, second] = [submit(""), submit("")];
    let [third, fourth] = [submit("-q fast"), submit("-q fast")];
    let state = |job: &str| {
        let full = site.run(&format!("qstat -xf {job}")).stdout;
        let line = full.lines().find_map(|line| line.trim().strip_prefix("job_state = ").map(str::to_owned));
        line.unwrap_or_default()
    };
    let waits = |job: &str| {
        let number = job.split('.').next().unwrap_or_default().to_owned();
        let is_told = |line: &str| line.split_whitespace().next() == Some(&number) && line.contains("limit reached");
        site.system.ok(&["jobs"]).lines().any(is_told)
    };
    site.system.wait_until("two run", || [&first, &third].iter().all(|job| state(job) == "R"));
    site.system.wait_until("two wait for a limit", || [&second, &fourth].iter().all(|job| waits(job)));
    site.ok(&format!("qdel {third}"));
    site.system.wait_until("the other one of its queue runs", || state(&fourth) == "R");
    assert_eq!(state(&second), "Q");
    site.ok(&format!("qdel {first}"));
    site.system.wait_until("the last one runs", || state(&second) == "R");
    // Single groups have limits as well.
    let group = site.ok("id -gn").trim().to_owned();
    site.ok("qmgr -c 'unset server max_run'");
    site.ok(&format!("qmgr -c 'set server max_run = [g:{group}=2]'"));
    site.system.ok(&["pbs", "load", &folder]);
    let third = submit("-q fast");
    site.system.wait_until("it waits for the limit of its group", || waits(&third));
    site.ok(&format!("qdel {second}"));
    site.system.wait_until("it runs", || state(&third) == "R");
    // So have projects, whatever account a job has beside its project.
    site.ok("qmgr -c 'set server max_run = [p:ice=1]'");
    site.system.ok(&["pbs", "load", &folder]);
    let [one, two] = [submit("-P ice -q fast"), submit("-P ice -A phys -q fast")];
    site.system.wait_until("one runs", || state(&one) == "R");
    site.system.wait_until("the other waits for the limit of its project", || waits(&two));
    site.ok(&format!("qdel {one}"));
    site.system.wait_until("it runs, too", || state(&two) == "R");
}

/// PBS-Q-02: a limit that `qmgr` sets holds at once, without a signal and without a pause.
#[test]
fn limits_of_qmgr_hold_at_once() {
    let site = site(&[("sched_config", "by_queue: true\n")]);
    site.system.wait_until("in force", || policy(&site)["name"] == "PBS fifo");
    let limits = || policy(&site)["limits"].to_string();
    for most in [3, 2, 1] {
        let began = std::time::Instant::now();
        site.ok(&format!("qmgr -c 'set server max_user_run = {most}'"));
        let wanted = format!("\"max_running_jobs\":{most}");
        site.system.wait_until("the limit holds", || limits().contains(&wanted));
        let took = began.elapsed();
        assert!(
            took < std::time::Duration::from_secs(20),
            "{took:?}: the policy is made again each minute without that"
        );
    }
    let submit = || site.ok("echo sleep 600 | qsub -l ncpus=1");
    let first = submit();
    site.system.wait_until("it runs", || site.ok("qselect -s R") == first);
    let second = submit();
    site.system.wait_until("the other one waits", || site.ok(&format!("qstat -f {second}")).contains("limit reached"));
    site.ok("qmgr -c 'unset server max_user_run'");
    site.system.wait_until("both run", || site.ok("qselect -s R").lines().count() == 2);
}

/// PBS-Q-02: limits on groups count the group that `-W group_list` names.
#[test]
fn the_group_that_a_job_names_counts() {
    let site = site(&[("sched_config", "by_queue: true\n")]);
    site.system.wait_until("in force", || policy(&site)["name"] == "PBS fifo");
    if site.ok("id -u") != "0\n" {
        eprintln!("left out: only root can belong to another group than its own");
        return;
    }
    site.ok("qmgr -c 'set server max_run = [g:root=0]'");
    site.system.wait_until("the limit is in force", || policy(&site)["limits"].to_string().contains("group"));
    let submit = |words: &str| site.ok(&format!("setpriv --regid nogroup --groups 0 qsub {words} -- sleep 600"));
    let job = submit("-W group_list=root");
    site.system.wait_until("it waits", || site.ok(&format!("qstat -f {job}")).contains("limit reached"));
    let free = submit("");
    site.system.wait_until("that of another group runs", || site.ok("qselect -s R") == free);
}
