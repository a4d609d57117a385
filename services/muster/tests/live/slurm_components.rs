//! Jobs with several components: how they start, end, are managed and accounted for.

use crate::{slurm::Site, slurm_steps::nothing_runs};

fn submit(site: &Site, line: &str) -> u64 {
    site.ok(line).trim().parse().expect("a number")
}

/// SL-I-12, SL-I-13, SL-S-26, SL-A-01
#[test]
fn components_wait_start_and_end_together() {
    let site = Site::start();
    let job = submit(&site, "sbatch --parsable -H -n1 : -n1 : -n1 --wrap 'sleep 0.2; exit 3'");
    assert_eq!(site.ok(&format!("squeue -h -j {job} -o %T")), "PENDING\n".repeat(3));
    site.ok(&format!("scontrol release {job}"));
    site.is_over(&job.to_string());
    let listed = site.ok(&format!("sacct -X -n -P -j {job} -o JobID,State,ExitCode"));
    let expected: String = (0..3).map(|offset| format!("{job}+{offset}|FAILED|3:0\n")).collect();
    assert_eq!(listed, expected);
    let shown = site.ok(&format!("scontrol -o show job {job}"));
    assert_eq!(
        shown.lines().filter(|line| line.contains(" JobState=FAILED ") && line.contains(" ExitCode=3:0 ")).count(),
        3
    );
    let starts = site.ok(&format!("sacct -X -n -P -j {job} -o Start,End | sort -u"));
    assert!(starts.lines().count() == 1 && !starts.contains("Unknown"), "{starts}");
    // One record each for the submission, the resources of all, the start, and the end.
    let events = site.system.ok(&["events", "--json", "--from", "1"]);
    for kind in ["job.submitted", "job.allocated", "job.started", "job.finished"] {
        let of_kind = events.lines().filter(|line| line.contains(&format!("\"muster.{kind}.v1\"")));
        assert_eq!(of_kind.count(), 1, "{kind}\n{events}");
    }
    // The command of `salloc` ends its job in the same way.
    assert_eq!(site.run("salloc -Q -n1 : -n1 sh -c 'exit 4'").status, 4);
    let other = job + 3;
    nothing_runs(&site);
    let listed = site.ok(&format!("sacct -X -n -P -j {other} -o JobID,State,ExitCode"));
    assert_eq!(listed, format!("{other}+0|FAILED|4:0\n{other}+1|FAILED|4:0\n"));
    // Accounting knows the place of each component.
    let told: serde_json::Value = serde_json::from_str(&site.ok(&format!("sacct -X --json -j {job}"))).expect("JSON");
    let places = told["jobs"].as_array().into_iter().flatten();
    let places: Vec<_> = places.map(|one| (&one["job_id"], &one["het"]["job_id"], &one["het"]["job_offset"])).collect();
    let numbers = |value: &serde_json::Value| value.as_u64().or_else(|| value["number"].as_u64());
    let places: Vec<_> = places.into_iter().map(|(own, leader, offset)| [own, leader, offset].map(numbers)).collect();
    assert_eq!(places, [0, 1, 2].map(|offset| [Some(job + offset), Some(job), Some(offset)]));
}

/// SL-M-01, SL-M-09, SL-M-10
#[test]
fn what_is_done_to_the_leader_is_done_to_all_components() {
    let site = Site::start();
    let script = "trap : USR1; srun -l --het-group=0,1 sh -c 'trap \"echo heard\" USR1; echo ready; while :; do sleep 0.1; done' & wait; wait";
    site.system.write("traps.sh", &format!("#!/bin/sh\n{script}\n"));
    let job = submit(&site, "sbatch --parsable -n1 : -n1 traps.sh");
    let listed = || site.ok(&format!("squeue -h -j {job} -o '%i %t'"));
    let all = |word: &str| format!("{job}+0 {word}\n{job}+1 {word}\n");
    site.system.wait_until("it runs", || listed() == all("R"));

    // Single components are refused in Slurm's words, and nothing changes.
    let own = (job + 1).to_string();
    let (first, second) = (format!("{job}+0"), format!("{job}+1"));
    for id in [&own, &first, &second] {
        for verb in ["suspend", "resume"] {
            let text = format!("Operation not permitted on individual component of heterogeneous job for job {id}\n");
            assert_eq!(site.fails(&format!("scontrol {verb} {id}")), (1, text), "{verb}");
        }
        let text = format!("Job not heterogeneous job leader for job {id}\n");
        assert_eq!(site.fails(&format!("scontrol requeue {id}")), (1, text));
        assert_eq!(listed(), all("R"));
    }
    site.ok(&format!("scontrol suspend {job}"));
    site.system.wait_until("all of it is suspended", || listed() == all("S"));
    for id in [format!("{job}"), format!("{job}+1")] {
        let shown = site.ok(&format!("scontrol show job {id}"));
        assert!(shown.contains(" SuspendTime=20") && !shown.contains(" SuspendTime=None "), "{shown}");
    }
    site.ok(&format!("scontrol resume {job}"));
    site.system.wait_until("all of it goes on", || listed() == all("R"));

    // A signal to the leader reaches the tasks of every component, by either of its names.
    let says =
        |rank: u32, word: &str| site.system.read(&format!("slurm-{job}.out")).contains(&format!("{rank}: {word}\n"));
    site.system.wait_until("both tasks have their traps", || says(0, "ready") && says(1, "ready"));
    site.system.wait_until("both tasks have heard it", || {
        site.ok(&format!("scancel -s USR1 {job}"));
        says(0, "heard") && says(1, "heard")
    });
    site.ok(&format!("scontrol requeue {job}"));
    site.system.wait_until("all of it waits", || listed() == all("PD"));
    assert_eq!(
        site.fails(&format!("scontrol requeue {job}")),
        (1, format!("Job is pending execution for job {job}\n"))
    );
    site.ok(&format!("scontrol update jobid={job} starttime=now"));
    site.system.wait_until("it runs again", || listed() == all("R"));
    assert!(site.ok(&format!("scontrol -o show job {job}")).lines().all(|line| line.contains(" Restarts=1 ")));
    site.ok(&format!("scancel {first}"));
    site.is_over(&job.to_string());
    let uid = nix::unistd::Uid::current();
    let states = site.ok(&format!("sacct -X -n -P -o State -j {job}"));
    assert_eq!(states, format!("CANCELLED by {uid}\n").repeat(2));
}

/// SL-M-17
#[test]
fn filters_of_scancel_are_held_against_each_component() {
    let site = Site::with("[[queues]]\nname = \"default\"\n[[queues]]\nname = \"p2\"\n");
    let listed = |job: u64| site.ok(&format!("squeue -h -j {job} -o '%i %t'"));
    let runs =
        |job: u64, offsets: &[u64]| offsets.iter().map(|offset| format!("{job}+{offset} R\n")).collect::<String>();
    let line = "sbatch --parsable -J pair -A first -n1 : -p p2 -A second -n1 --wrap 'sleep 1000'";
    // While the job waits, a filter that matches only another component leaves it alone.
    let waits = submit(&site, &line.replace("-J pair", "-J pair -H"));
    site.ok("scancel -p p2");
    site.ok("scancel -A second");
    site.ok("scancel -t PENDING -p p2");
    assert_eq!(listed(waits), format!("{waits}+0 PD\n{waits}+1 PD\n"));
    // A filter that matches the leader applies to the whole job.
    site.ok("scancel -t PENDING -A first");
    site.is_over(&waits.to_string());
    for filter in ["-p p2", "-A second"] {
        let job = submit(&site, line);
        site.system.wait_until("both run", || listed(job) == runs(job, &[0, 1]));
        let told = site.fails("scancel -v -R none -p p2");
        assert_eq!(
            told,
            (0, "No active jobs match ALL job filters, including: partition=p2, reservation=none\n".to_owned())
        );
        site.ok(&format!("scancel {filter}"));
        site.system.wait_until("the second has ended", || listed(job) == runs(job, &[0]));
        site.ok(&format!("scancel {filter}"));
        assert_eq!(listed(job), runs(job, &[0]));
        site.ok("scancel -p default");
        site.is_over(&job.to_string());
    }
    for filter in ["-u $(id -un)", "-n pair", "-A first", "-t RUNNING", "--me", "-q normal"] {
        let job = submit(&site, line);
        site.system.wait_until("both run", || listed(job) == runs(job, &[0, 1]));
        site.ok(&format!("scancel {filter}"));
        site.is_over(&job.to_string());
    }
    let job = submit(&site, line);
    site.system.wait_until("both run", || listed(job) == runs(job, &[0, 1]));
    let node = site.ok(&format!("squeue -h -j {job}+1 -o %N"));
    site.ok(&format!("scancel -w {}", node.trim()));
    site.system.wait_until("the one on that node has ended", || listed(job) == runs(job, &[0]));
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
}

/// SL-A-10
#[test]
fn accounting_from_a_replay_of_the_log_is_what_it_was() {
    let mut site = Site::start();
    let job = submit(&site, "sbatch --parsable -W -J one --wrap true");
    // Ended jobs are listed at once.
    assert_eq!(site.ok(&format!("sacct -X -n -P -j {job} -o State")), "COMPLETED\n");
    site.run("sbatch -W -n1 : -n1 --wrap 'srun --het-group=0,1 true; exit 3'");
    site.run("sbatch -W -a 1-3 --wrap 'exit $SLURM_ARRAY_TASK_ID'");
    let several = submit(&site, "sbatch --parsable -n1 : -n1 : -n1 --wrap 'sleep 1000'");
    let listed = |job: u64| site.ok(&format!("squeue -h -j {job} -o %t"));
    site.system.wait_until("it runs", || listed(several) == "R\n".repeat(3));
    site.ok(&format!("scancel {several}+1"));
    site.system.wait_until("one component has ended", || listed(several) == "R\n".repeat(2));
    site.ok(&format!("scontrol requeue {several}"));
    site.system.wait_until("it waits", || listed(several) == "PD\n".repeat(3));
    site.ok(&format!("scancel {several}"));
    site.is_over(&several.to_string());
    let rest = submit(&site, "sbatch --parsable -H -a 1-9:2 --wrap true");
    site.ok(&format!("scancel {rest}_3"));
    submit(&site, "sbatch --parsable -H -A other -n1 : -n1 --wrap true");
    nothing_of_these_runs(&site);
    let before = accounting(&site);
    assert!(before[0].lines().count() > 15, "{}", before[0]);
    site.system.stop();
    // Without snapshots the whole state comes from the log. A log this short usually has none.
    let _ = std::fs::remove_dir_all(site.system.path("data/ledger/snapshots"));
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G"]);
    assert_eq!(accounting(&site), before);
}

/// The lists of `sacct` for everything, in several forms.
fn accounting(site: &Site) -> [String; 4] {
    let fields = "JobID%30,JobIDRaw,JobName,Partition,Account,AllocCPUS,NNodes,NodeList,State%30,ExitCode,Submit,Eligible,\
                  Start,End,Elapsed,Timelimit,User,UID,GID,Priority,QOS,NTasks,TotalCPU,MaxRSS,WorkDir,SubmitLine%80";
    ["", "-D", "-X -P", "--json"].map(|options| site.ok(&format!("sacct -S 2000-01-01 {options} -o {fields}")))
}

/// Waits until only held jobs are left.
fn nothing_of_these_runs(site: &Site) {
    site.system.wait_until("nothing runs", || site.ok("squeue -h -t R,CG,CF").is_empty());
}

/// SL-P-01, SL-P-06, SL-P-15: if the policy says so, only passes of backfill start them, at their interval, and `sdiag`
/// shows the last pass and what passes have started.
#[test]
fn passes_of_backfill_start_components_and_are_told() {
    let site = Site::start();
    assert!(site.ok("sdiag").contains("\tLast cycle mode: N/A\n"));
    let policy = "version = 1\n[backfill]\nmode = \"easy\"\n[backfill.components]\nstart = \"backfill_pass\"\ninterval_seconds = 1\n";
    site.system.write("passes.toml", policy);
    site.system.ok(&["config", "apply", "--policy", "passes.toml"]);
    let holder = submit(&site, "sbatch --parsable -N4 --exclusive --wrap 'until [ -e go ]; do sleep 0.02; done'");
    let job = submit(&site, "sbatch --parsable -N2 -n2 : -N2 -n2 --wrap true");
    let number = |name: &str| -> Option<u64> {
        let text = site.ok("sdiag");
        let (_, backfill) = text.split_once("Backfilling stats").expect("its section");
        backfill.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().parse().ok())
    };
    for mode in [1, 2] {
        site.system.wait_until(&format!("a pass in mode {mode}"), || number("Last cycle mode:") == Some(mode));
    }
    assert!(number("Total cycles:") >= Some(2));
    site.ok("touch go");
    for job in [holder, job] {
        site.is_over(&job.to_string());
    }
    assert_eq!(site.ok(&format!("sacct -X -n -P -j {job} -o State")), "COMPLETED\n".repeat(2));
    let backfilled =
        ["Total backfilled jobs (since last slurm start):", "Total backfilled heterogeneous job components:"];
    assert_eq!(backfilled.map(number), [Some(1), Some(2)], "the other one has started in its turn");
}

/// SL-P-07: if the policy allows it, components share nodes when they do not fit otherwise, each with its own
/// cores, tasks and end.
#[test]
fn components_share_nodes_where_the_site_lets_them() {
    let site = Site::start();
    site.system
        .write("share.toml", "version = 1\n[backfill]\nmode = \"easy\"\n[backfill.components]\nshare_nodes = true\n");
    site.system.ok(&["config", "apply", "--policy", "share.toml"]);
    // Six components of two CPUs on four nodes of four.
    let six = ["-n1 -c2"; 6].join(" : ");
    let task = "$SLURM_JOB_ID on $SLURMD_NODENAME $SLURM_NODEID has $SLURM_CPUS_ON_NODE of $SLURM_NNODES";
    site.system.write(
        "six.sh",
        &format!(
            "#!/bin/sh\nsrun -l --het-group=0-5 sh -c 'echo {task}'\nfor n in 0 1 2 3 4 5; do eval \"echo own $n \
             \\$SLURM_JOB_NODELIST_HET_GROUP_$n\"; done\nsrun --het-group=0-5 sleep 30 & \necho ready; wait; echo over\n"
        ),
    );
    let job = submit(&site, &format!("sbatch --parsable {six} six.sh"));
    let output = || site.system.read(&format!("slurm-{job}.out"));
    site.system.wait_until("the first step is over", || output().contains("ready"));
    let place = |n: u64| {
        let node = site.ok(&format!("squeue -h -j {job}+{n} -o %N"));
        assert!(output().contains(&format!("own {n} {node}")), "{}", output());
        node.trim().to_owned()
    };
    let places: Vec<String> = (0..6).map(place).collect();
    let nodes: std::collections::BTreeSet<&String> = places.iter().collect();
    assert_eq!(nodes.len(), 3, "two have room on each: {places:?}");
    for (n, node) in places.iter().enumerate() {
        let index = places.iter().position(|known| known == node).map(|at| {
            let before: std::collections::BTreeSet<&String> = places[..at].iter().collect();
            before.len()
        });
        let line = format!("{n}: {job} on {node} {} has 2 of 3", index.unwrap_or_default());
        assert!(output().contains(&line), "{line}\n{}", output());
    }
    assert_eq!(site.ok("sinfo -h -o %C"), "12/4/0/16\n");

    // The end of one component leaves the others alone, even on its own node.
    let last = places.len() - 1;
    let neighbour = places.iter().position(|node| *node == places[last]).expect("it is its own");
    assert_ne!(neighbour, last, "its node has another component: {places:?}");
    site.ok(&format!("scancel {job}+{last}"));
    let listed = |n: usize| site.ok(&format!("squeue -h -j {job}+{n} -o %t"));
    site.system.wait_until("it is over", || listed(last).is_empty());
    assert_eq!((listed(neighbour), site.ok("sinfo -h -o %C")), ("R\n".into(), "10/6/0/16\n".into()));
    site.ok(&format!("scancel {job}"));
    site.is_over(&job.to_string());
    assert_eq!(site.ok("sinfo -h -o %C"), "0/16/0/16\n");
    let steps = site.ok(&format!("sacct -n -P -j {job} -o JobID,State | grep '\\.0|'"));
    assert_eq!(steps.lines().filter(|line| line.ends_with("|COMPLETED")).count(), 6, "{steps}");

    // A component that wants a node exclusively does not share it.
    let whole =
        submit(&site, &format!("sbatch --parsable --exclusive -n1 : {} --wrap 'sleep 30'", ["-n1"; 3].join(" : ")));
    site.system.wait_until("it runs", || site.ok(&format!("squeue -h -j {whole}+0 -o %t")) == "R\n");
    let own = site.ok(&format!("squeue -h -j {whole}+0 -o %N"));
    let others = site.ok(&format!("squeue -h -j {whole} -o '%i %N' | grep -v '+0 '"));
    assert!(!others.contains(own.trim()), "{own}{others}");
    site.ok(&format!("scancel {whole}"));
}

/// SL-P-07: allocations, copies, input and lists support nodes that components share.
#[test]
fn clients_of_components_that_share_nodes() {
    let site = Site::start();
    site.system
        .write("share.toml", "version = 1\n[backfill]\nmode = \"easy\"\n[backfill.components]\nshare_nodes = true\n");
    site.system.ok(&["config", "apply", "--policy", "share.toml"]);
    let six = ["-n1 -c2"; 6].join(" : ");
    site.system.write("words", "seven\n");
    let script =
        "sbcast words copied.%N\ncat copied.* | sort -u\nsrun --het-group=0-5 sh -c 'echo got $(cat)' | sort -u\n";
    site.system.write("clients.sh", script);
    let told = site.ok(&format!("echo words | salloc -Q {six} sh clients.sh"));
    assert_eq!(told, "seven\ngot words\n");
    let jobs = site.system.json(&["jobs", "--all", "--json"]);
    let (nodes, count) = (&jobs["jobs"][0]["nodes"], &jobs["jobs"][0]["node_count"]);
    assert_eq!((nodes, count), (&serde_json::json!(["node1", "node2", "node3"]), &serde_json::json!(3)), "{jobs}");
    nothing_runs(&site);
}
