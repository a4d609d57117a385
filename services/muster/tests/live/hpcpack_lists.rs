//! A new cluster on which nobody has set a scheduling mode: jobs of the HPC Pack dialect beside Slurm jobs.

use crate::{
    filters,
    hpcpack::{shown, submit},
    slurm::Site,
    system::{Output, System},
};

/// A list of this many tasks; task N runs until the file `NAME-N` exists.
fn list(site: &Site, name: &str, attributes: &str, tasks: u32) -> String {
    let line = format!("until [ -e {name}-* ]; do sleep 0.01; done");
    let sweep = format!("<Task Type='ParametricSweep' StartValue='1' EndValue='{tasks}' CommandLine='{line}'/>");
    let file = format!("{name}.xml");
    site.system.write(&file, &format!("<Job Name='{name}' {attributes}><Tasks>{sweep}</Tasks></Job>"));
    submit(&site.system, &[&format!("/jobfile:{file}")])
}

fn end_tasks(site: &Site, name: &str, tasks: std::ops::RangeInclusive<u32>) {
    tasks.for_each(|task| site.system.write(&format!("{name}-{task}"), ""));
}

/// A batch job of this many tasks, which runs until the file with its name exists.
fn batch(site: &Site, name: &str, tasks: u32, minutes: u32) -> String {
    let script = format!("until [ -e {name} ]; do sleep 0.01; done");
    site.ok(&format!("sbatch --parsable -J {name} -n{tasks} -t{minutes} --wrap '{script}'")).trim().to_owned()
}

fn wait_for(system: &System, job: &str, field: &str, part: &str) {
    system.wait_until(&format!("{field} of job {job} has {part}"), || shown(system, job, field).contains(part));
}

/// The promised start of a waiting job.
fn promised(system: &System, job: &str) -> String {
    let reason = || system.json(&["job", "show", job, "--json"])["job"]["reason"].clone();
    system.wait_until(&format!("job {job} is promised a start"), || reason()["code"] == "reserved");
    reason()["text"].as_str().unwrap_or_default().to_owned()
}

/// Waits until a job submitted later has been planned and has run.
fn let_it_plan(site: &Site) {
    let small = site.ok("sbatch --parsable -n1 -t1 --wrap true");
    site.is_over(small.trim());
}

fn verify(system: &System) {
    let decisions = system.json(&["replay", "--verify", "--json"])["decisions"].clone();
    assert_eq!(decisions["differing"], 0, "{decisions}");
}

/// HPC-S-01, HPC-S-09, HPC-S-10, HPC-C-09
#[test]
fn on_a_new_cluster_lists_grow_and_shrink_and_no_promise_of_a_slurm_job_moves() {
    let site = Site::start();
    let system = &site.system;
    let (large, small) = (batch(&site, "large", 10, 10), batch(&site, "small", 2, 10));
    [&large, &small].into_iter().for_each(|job| system.wait_for_state(job, "running"));
    let grower = list(&site, "grower", "MinCores='1' MaxCores='8' RunTime='30'", 8);
    wait_for(system, &grower, "Resource Request", "4 of 1-8 cores");
    let waiting = batch(&site, "waiting", 12, 5);
    let start = promised(system, &waiting);
    system.write("small", "");
    site.is_over(&small);
    let_it_plan(&site);
    assert_eq!(shown(system, &grower, "Resource Request"), "4 of 1-8 cores", "the two cores are promised to another");
    assert!(promised(system, &waiting) <= start, "it is promised no later start than {start}");
    system.write("large", "");
    system.wait_for_state(&waiting, "running");
    assert_eq!(shown(system, &grower, "Tasks"), "4 Queued, 4 Running");
    system.write("waiting", "");
    wait_for(system, &grower, "Tasks", "8 Running");
    assert_eq!(shown(system, &grower, "Resource Request"), "8 of 1-8 cores");
    end_tasks(&site, "grower", 1..=6);
    wait_for(system, &grower, "Resource Request", "2 of 1-8 cores");
    end_tasks(&site, "grower", 7..=8);
    wait_for(system, &grower, "State", "Finished");
    assert_eq!(shown(system, &grower, "Tasks"), "8 Finished");
    verify(system);
}

/// HPC-S-01, HPC-S-12, HPC-S-13: lists make way for lists, gracefully. A Slurm job neither makes way nor makes others
/// do so, and resources given up do not go to a job that waits behind.
#[test]
fn on_a_new_cluster_lists_make_way_for_lists_and_for_nobody_else() {
    let site = Site::start();
    let system = &site.system;
    let beside = batch(&site, "beside", 4, 60);
    system.wait_for_state(&beside, "running");
    let low = list(&site, "low", "MinCores='1' MaxCores='12' Priority='BelowNormal'", 14);
    wait_for(system, &low, "Tasks", "12 Running");
    let short = batch(&site, "short", 1, 1);
    system.ok(&["job", "modify", "--priority", "3500", &short]);
    let_it_wait(system, &short);
    assert_eq!(shown(system, &low, "Resource Request"), "12 of 1-12 cores", "nobody makes way for a Slurm job");
    system.ok(&["job", "modify", "--priority", "0", &short]);
    let high = list(&site, "high", "MinCores='3' MaxCores='3' Priority='Highest'", 3);
    system.wait_until("the list of lower priority gives up what is needed", || {
        system.ok(&["job", "view", &low, "/history"]).contains("job.preempted")
    });
    assert_eq!(shown(system, &low, "Tasks"), "2 Queued, 12 Running", "tasks end by themselves");
    end_tasks(&site, "low", 10..=12);
    wait_for(system, &high, "Tasks", "3 Running");
    assert_eq!(shown(system, &low, "Tasks"), "2 Queued, 9 Running, 3 Finished", "no task starts on what is given up");
    assert_eq!((system.state(&beside), system.state(&short)), ("running".into(), "queued".into()));
    end_tasks(&site, "high", 1..=3);
    wait_for(system, &high, "State", "Finished");
    end_tasks(&site, "low", 1..=9);
    end_tasks(&site, "low", 13..=14);
    wait_for(system, &low, "State", "Finished");
    assert_eq!(shown(system, &low, "Tasks"), "14 Finished");
    assert_eq!(system.state(&beside), "running");
    system.write("short", "");
    site.is_over(&short);
    verify(system);
}

/// Waits until the planner has looked at a job and the job waits.
fn let_it_wait(system: &System, job: &str) {
    system.wait_until(&format!("job {job} was looked at"), || {
        let code = system.json(&["job", "show", job, "--json"])["job"]["reason"]["code"].clone();
        ["reserved", "resources"].iter().any(|known| code == *known)
    });
}

/// HPC-S-01, HPC-C-09: a parameter does what its name says, the values shown are those in force, and a mode
/// is set by name.
#[test]
fn a_parameter_changes_no_other_and_no_mode() {
    let system = System::start(1);
    let listed = || system.ok(&["cluscfg", "listparams"]);
    let line = |name: &str| listed().lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let told = |name: &str, part: &str| assert!(line(name).contains(part), "{}", line(name));
    let before = listed();
    told("SchedulingMode", "(not set: the policy decides; jobs with tasks grow, shrink and make way as in Queued)");
    told("BackfillLookAhead", "no effect: without a SchedulingMode the policy backfills");
    told("PreemptionType", "Graceful (between jobs with tasks)");
    told("PriorityBias", "no effect: it is for Balanced mode");
    system.ok(&["cluscfg", "setparams", "NodeReleaseTaskTimeout=11"]);
    let changed: Vec<(String, String)> = before
        .lines()
        .zip(listed().lines())
        .filter(|(before, after)| before.split_whitespace().ne(after.split_whitespace()))
        .map(|(before, after)| (before.to_owned(), after.to_owned()))
        .collect();
    let [(_, after)] = &changed[..] else { panic!("{changed:?}") };
    assert!(after.starts_with("NodeReleaseTaskTimeout") && after.contains("11"), "{after}");
    let warned = system.run(&["cluscfg", "setparams", "GrowByPreemptionEnabled=true"]);
    let Output { status, stderr, .. } = warned;
    assert!(
        status == 0 && stderr.contains("GrowByPreemptionEnabled has no effect: it needs a SchedulingMode"),
        "{stderr}"
    );
    system.ok(&["cluscfg", "setparams", "PreemptionType=Immediate"]);
    told("PreemptionType", "Immediate (between jobs with tasks)");
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Queued"]);
    assert!(!line("SchedulingMode").contains("not set") && !line("PreemptionType").contains("between"));
    told("GrowByPreemptionEnabled", "true (not for jobs with an activation filter)");
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Balanced"]);
    told("PreemptionType", "no effect: in Balanced mode PreemptionBalancedMode counts");
    assert!(!line("PriorityBias").contains("no effect"), "{}", line("PriorityBias"));
}

/// HPC-S-14, HPC-S-11: a job with an activation filter does not grow by preemption, and its view says so.
#[test]
fn a_job_that_does_not_grow_by_preemption_says_so() {
    let system = filters::system();
    let pass = filters::program(&system, "pass", "#!/bin/sh\nexit 0\n");
    system.ok(&["jobtemplate", "new", "T"]);
    system.ok(&["jobtemplate", "add-filter", "T", "pass", "/kind:activation", &format!("/path:{pass}")]);
    system.write("two.xml", "<Job MinCores='1' MaxCores='2'><Tasks><Task CommandLine='sleep 600'/></Tasks></Job>");
    let [filtered, other] = ["/jobtemplate:T", "/jobtemplate:Default"].map(|template| {
        let job = submit(&system, &["/jobfile:two.xml", template]);
        wait_for(&system, &job, "State", "Running");
        job
    });
    assert_eq!(shown(&system, &filtered, "Growth"), "", "it is not set");
    system.ok(&["cluscfg", "setparams", "SchedulingMode=Queued", "GrowByPreemptionEnabled=true"]);
    assert_eq!(shown(&system, &filtered, "Growth"), "not by preemption, as it has an activation filter");
    assert_eq!(shown(&system, &other, "Growth"), "");
}
