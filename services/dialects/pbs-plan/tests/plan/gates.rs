//! The gates of the presets, with their codes.

use crate::support::{dry, file, job, lines, preset, queue};
use muster_pbs_policy::preset::Preset;

/// Tuesday 2026-03-10, 12:00 UTC, in seconds since 1970.
const NOON: i64 = 1_773_144_000;
const DAY: &str = "ENFORCE_PRIME_TIME true\nPRIME_TIME_START 8:00:00\nPRIME_TIME_END 16:00:00\n";

fn submitted(id: &str, more: &str, cpus: &str, walltime: &str) -> String {
    job(id, "submit", id, more, &[("ncpus", cpus), ("walltime", walltime)])
}

fn running(id: &str, queue: &str, cpus: &str, walltime: &str) -> String {
    let more = format!(r#""started": {NOON},"#);
    let request = [("ncpus", cpus), ("walltime", walltime)];
    job(id, queue, "run", &more, &request).replace("\"state\": \"Q\"", "\"state\": \"R\"")
}

/// A dry run of `sgi_origin` with one batch queue of 16 nodes.
fn sgi(config: &str, members: &str, of_queue: &str, jobs: &[String]) -> String {
    let tables = preset(
        Preset::SgiOrigin,
        &format!(
            "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nSPECIAL_QUEUE special\nDEDICATED_QUEUES ded\n\
             SORT_BY_PAST_USAGE false\n{config}"
        ),
    );
    let capacity = if of_queue.contains("resources_max") { "" } else { r#""resources_max": {"ncpus": 32},"# };
    let batch = queue("batch", &format!("{capacity}{of_queue}"));
    let queues = [queue("submit", ""), queue("special", ""), batch, queue("ded", ""), queue("other", "")];
    lines(&tables, &file(&format!(r#""now": {NOON}, "tz": "UTC"{members}"#), &queues, jobs))
}

/// PBS-P-05: jobs that fit no queue, or exceed the limit of their size, are rejected at once.
#[test]
fn what_is_too_large_is_rejected() {
    let jobs = [
        submitted("large", "", "34", "0:10:00"),
        submitted("fits", "", "32", "0:10:00"),
        submitted("late", "", "8", "2:00:01"),
        submitted("small", "", "8", "2:00:00"),
        submitted("wide", "", "10", "1:00:01"),
    ];
    let config = "SMALL_JOB_MAX 4\nWALLT_LIMIT_SMALL_JOB 2:00:00\nWALLT_LIMIT_LARGE_JOB 1:00:00\n";
    assert_eq!(
        sgi(config, "", "", &jobs),
        "large SIZE_REJECTED, wide SIZE_REJECTED, late SIZE_REJECTED, fits START -> batch, small NO_NODES"
    );
}

/// PBS-P-05, PBS-P-06: special jobs are not rejected; one that is larger than every queue finds none. A stopped queue
/// takes none, and neither does a disabled one.
#[test]
fn without_a_queue_a_job_waits() {
    let special = submitted("vast", "", "34", "0:10:00").replace("\"submit\"", "\"special\"");
    assert_eq!(sgi("", "", "", &[special]), "vast NO_QUEUE_FITS");
    let tables = preset(Preset::SgiOrigin, "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\n");
    let stopped = queue("batch", "").replace("\"started\": true", "\"started\": false");
    let queues = [queue("submit", ""), stopped, queue("other", "")];
    let jobs = [submitted("one", "", "2", "0:10:00"), job("lost", "other", "ann", "", &[])];
    let state = file(&format!(r#""now": {NOON}, "tz": "UTC""#), &queues, &jobs);
    assert_eq!(lines(&tables, &state), "one NO_QUEUE_FITS, - lost QUEUE_IGNORED");
    let queues = [queue("submit", ""), queue("batch", r#""enabled": false,"#)];
    let state = file(&format!(r#""now": {NOON}, "tz": "UTC""#), &queues, &[submitted("one", "", "2", "0:10:00")]);
    assert_eq!(lines(&tables, &state), "one NO_QUEUE_FITS");
}

/// PBS-P-10: the part of a job in prime time is limited; special jobs are exempt.
#[test]
fn time_in_prime_is_limited() {
    let special = submitted("special", "", "2", "4:00:00").replace("\"submit\"", "\"special\"");
    let jobs = [
        special,
        submitted("half", "", "8", "0:30:00"),
        submitted("more", "", "8", "0:30:01"),
        submitted("small", "", "2", "0:05:01"),
        submitted("smaller", "", "2", "0:05:00"),
    ];
    let config = format!(
        "{DAY}PRIME_TIME_WALLT_LIMIT 0:30:00\nPRIME_TIME_SMALL_NODE_LIMIT 1\nPRIME_TIME_SMALL_WALLT_LIMIT 0:05:00\n\
         BACKFILL_MODE none\n"
    );
    assert_eq!(
        sgi(&config, "", "", &jobs),
        "special START -> batch, smaller START -> batch, small PRIME_LIMIT, half START -> batch, more PRIME_LIMIT"
    );
}

/// PBS-P-11: nothing reaches the start of non-prime time.
#[test]
fn nothing_runs_on_into_non_prime_time() {
    let jobs = [submitted("in", "", "2", "3:59:59"), submitted("out", "", "2", "4:00:00")];
    let config = format!("{DAY}NONPRIME_DRAIN_SYS true\nBACKFILL_MODE none\n");
    assert_eq!(sgi(&config, "", "", &jobs), "in START -> batch, out NONPRIME_DRAIN");
    let with_run: Vec<String> = jobs.into_iter().chain([running("r1", "batch", "2", "5:00:00")]).collect();
    assert_eq!(sgi(&config, "", "", &with_run), "in START -> batch, out START -> batch");
}

/// PBS-P-11: the rules of prime time end early for an idle queue, and stay lifted until non-prime time has begun.
#[test]
fn the_rules_of_prime_time_end_early_for_an_idle_queue() {
    let jobs = [submitted("out", "", "2", "4:00:00"), submitted("next", "", "2", "5:00:00")];
    let config = |back: &str| {
        format!(
            "{DAY}NONPRIME_DRAIN_SYS true\nNP_DRAIN_BACKTIME {back}\nNP_DRAIN_IDLETIME 0:05:00\nBACKFILL_MODE none\n"
        )
    };
    let idle = |seconds: i64| format!(r#""idle_since": {},"#, NOON - seconds);
    let both = "out START -> batch, next START -> batch";
    let none = "out NONPRIME_DRAIN, next NONPRIME_DRAIN";
    assert_eq!(sgi(&config("4:00:00"), "", &idle(301), &jobs), both);
    assert_eq!(sgi(&config("4:00:00"), "", &idle(300), &jobs), none, "not idle for longer than that");
    assert_eq!(sgi(&config("3:59:59"), "", &idle(301), &jobs), none, "too early");
    assert_eq!(sgi(&config("4:00:00"), "", "", &jobs), none, "it is not known to be idle");
    let lifted = format!(r#""prime_lifted_until": {},"#, NOON + 4 * 3600);
    let busy: Vec<String> = jobs.iter().cloned().chain([running("r1", "batch", "2", "1:00:00")]).collect();
    assert_eq!(sgi(&config("4:00:00"), "", &lifted, &busy), both, "it was lifted before");
}

/// PBS-P-12: small jobs leave no fragments; those that waited long are exempt.
#[test]
fn fragments_are_left_to_large_jobs() {
    let long_ago = format!(r#""etime": {},"#, NOON - 7200);
    let jobs = [
        submitted("short", "", "4", "0:59:59"),
        submitted("long", "", "4", "1:00:00"),
        submitted("waited", &long_ago, "4", "1:00:00"),
        running("r1", "batch", "2", "1:00:00"),
    ];
    let run = |config: &str| {
        sgi(&format!("MAX_QUEUED_TIME 1:00:00\nBACKFILL_MODE none\n{config}"), "", r#""max_running": 5,"#, &jobs)
    };
    assert_eq!(run(""), "waited START -> batch, short START -> batch, long FRAGMENT");
    let free = "waited START -> batch, short START -> batch, long START -> batch";
    assert_eq!(run("AVOID_FRAGMENTATION False\n"), free);
}

fn host(more: &str) -> String {
    format!(r#", "nodes": [{{"name": "origin1", "ts": true, "ncpus": 16, "idle_cpus": 0{more}}}]"#)
}

/// PBS-P-13: the load of a host, and its jobs.
#[test]
fn loads_keep_jobs_waiting() {
    let jobs = [submitted("one", "", "2", "0:10:00"), submitted("two", "", "2", "0:20:00")];
    let run = |config: &str, more: &str| sgi(&format!("BACKFILL_MODE none\n{config}"), &host(more), "", &jobs);
    let both = "one START -> batch, two START -> batch";
    assert_eq!(run("", r#", "loadave": 10.0"#), both);
    assert_eq!(run("", r#", "loadave": 13.0"#), "one START -> batch, two LOAD", "the first one adds its processors");
    assert_eq!(run("", r#", "loadave": 17.0"#), "one LOAD, two LOAD");
    assert_eq!(run("MIN_JOBS 1\n", r#", "loadave": 17.0"#), "one START -> batch, two LOAD");
    assert_eq!(run("MAX_JOBS 1\n", r#", "loadave": 0.0"#), "one START -> batch, two MAX_JOBS");
    assert_eq!(run("HIGH_SYSTIME 30\n", r#", "loadave": 13.0, "systime": 30"#), "one LOAD, two LOAD");
    assert_eq!(
        run("HIGH_SYSTIME 30\n", r#", "loadave": 1.0, "systime": 30"#),
        both,
        "below the band nothing else counts"
    );
    let many = [submitted("one", "", "10", "0:10:00"), submitted("two", "", "8", "0:20:00")];
    let full = sgi("BACKFILL_MODE none\n", &host(r#", "loadave": 0.0"#), "", &many);
    assert_eq!(full, "one START -> batch, two NO_NODES", "the host has 8 nodes");
}

/// PBS-P-14: outages are windows of the host, or of the system; a job that ends just at the border waits.
#[test]
fn outages_of_hosts() {
    let jobs = [
        submitted("before", "", "2", "0:59:59"),
        submitted("at", "", "2", "1:00:00"),
        job("ded", "ded", "ann", "", &[("walltime", "0:59:59")]),
    ];
    let config =
        "ENFORCE_DEDICATED_TIME true\nDEDICATED_TIME_COMMAND /outages\nSYSTEM_NAME cluster\nBACKFILL_MODE none\n";
    let answer = |text: &str| format!(r#"{}, "outages": {{"cluster": {text}}}"#, host(""));
    let later = answer(r#""cluster 03/10/2026 13:00-14:00 03/10/2026 new disks\n  and more\n""#);
    assert_eq!(sgi(config, &later, "", &jobs), "before START -> batch, at CROSSES_DEDICATED, - ded DEDICATED_TIME");
    let current = answer(r#""CLUSTER.site 03/10/2026 11:00-13:00 03/10/2026 new disks""#);
    assert_eq!(sgi(config, &current, "", &jobs), "before DEDICATED_TIME, at DEDICATED_TIME, ded START");
    let other = answer(r#""elsewhere 03/10/2026 11:00-13:00 03/10/2026 new disks""#);
    let all = "before START -> batch, at START -> batch, - ded DEDICATED_TIME";
    assert_eq!(sgi(config, &other, "", &jobs), all);
    for failed in ["null", r#""cluster soon""#] {
        let found = sgi(config, &answer(failed), "", &jobs);
        assert_eq!(found, "before DEDICATED_TIME, at DEDICATED_TIME, - ded DEDICATED_TIME", "{failed}");
    }
    assert_eq!(sgi("BACKFILL_MODE none\n", &later, "", &jobs), all, "they are not enforced");
}

/// PBS-P-03: the limits on running jobs, and allocations of groups.
#[test]
fn users_and_groups_have_limits() {
    let of = |id: &str| job(id, "submit", "ann", r#""group": "g","#, &[("ncpus", "2"), ("walltime", "0:10:00")]);
    let jobs = [of("one"), of("two")];
    assert_eq!(sgi("MAX_USER_RUN_JOBS 1\n", "", "", &jobs), "one START -> batch, two SERVER_USER_LIMIT");
    assert_eq!(sgi("", "", r#""max_running": 1,"#, &jobs), "one START -> batch, two QUEUE_JOB_LIMIT");
    let [one, two] = jobs.clone();
    let three = submitted("three", "", "2", "9:00:00");
    let found = sgi("MAX_USER_RUN_JOBS 1\n", "", r#""resources_max": {"ncpus": 4},"#, &[one, two, three]);
    assert_eq!(found, "one START -> batch, two SERVER_USER_LIMIT, three START -> batch", "room is held for nobody");
    let allocations = |used| format!(r#", "allocations": {{"g": {{"allocated": 100, "used": {used}}}}}"#);
    let over = "one OVER_ALLOCATION, two OVER_ALLOCATION";
    assert_eq!(sgi("ENFORCE_ALLOCATION true\n", &allocations(101), "", &jobs), over);
    let both = "one START -> batch, two START -> batch";
    assert_eq!(sgi("ENFORCE_ALLOCATION true\n", &allocations(100), "", &jobs), both);
    assert_eq!(sgi("", &allocations(101), "", &jobs), both);
}

/// PBS-P-05: queues that are planned in place come after the list.
#[test]
fn external_queues_are_planned_in_place() {
    let tables = preset(Preset::SgiOrigin, "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nEXTERNAL_QUEUES ext\n");
    let queues = [queue("submit", ""), queue("batch", ""), queue("ext", r#""resources_max": {"ncpus": 4},"#)];
    let jobs = [
        job("x1", "ext", "ann", "", &[("ncpus", "4"), ("walltime", "1:00:00")]),
        job("x2", "ext", "ann", "", &[("ncpus", "6"), ("walltime", "1:00:00")]),
        submitted("one", "", "2", "2:00:00"),
    ];
    let state = file(&format!(r#""now": {NOON}, "tz": "UTC""#), &queues, &jobs);
    assert_eq!(lines(&tables, &state), "one START -> batch, x2 NO_QUEUE_FITS, x1 START");
}

/// PBS-P-15: jobs that are found queued in a batch queue at the first cycle.
#[test]
fn stranded_jobs_go_back_or_start_again() {
    let stranded = job("lost", "batch", "ann", r#""origin": "submit","#, &[("ncpus", "2"), ("walltime", "1:00:00")]);
    let run = |action: &str, first: bool| {
        sgi(
            &format!("SCHED_RESTART_ACTION {action}\nMAX_USER_RUN_JOBS 0\n"),
            &format!(r#", "first_cycle": {first}"#),
            "",
            std::slice::from_ref(&stranded),
        )
    };
    assert_eq!(run("NONE", true), "- lost QUEUE_IGNORED");
    assert_eq!(run("RESUBMIT", true), "lost SERVER_USER_LIMIT");
    assert_eq!(run("RERUN", true), "lost START");
    assert_eq!(run("RERUN", false), "- lost QUEUE_IGNORED");
}

/// PBS-P-22: memory is never oversold, processors are within the load, and a job that does not fit is passed over.
#[test]
fn multitask_never_oversells_memory() {
    let config = |more: &str| {
        let text =
            "BATCH_QUEUES night,late\nINTERACTIVE_QUEUES day\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 8:00:00\n";
        preset(Preset::Multitask, &format!("{text}PRIME_TIME_END {more}"))
    };
    let of = |id: &str, queue: &str, mem: &str| job(id, queue, "ann", "", &[("mem", mem), ("ncpus", "64")]);
    let jobs = [
        of("l1", "late", "1gb"),
        of("n1", "night", "3gb"),
        of("n2", "night", "2gb"),
        of("n3", "night", "1gb"),
        of("d1", "day", "5gb"),
        of("d2", "day", "4gb"),
    ];
    let queues = ["day", "night", "late"].map(|name| queue(name, ""));
    let node = r#""nodes": [{"name": "smp", "ts": true, "ncpus": 8, "physmem": "4gb", "loadave": 0.5}]"#;
    let state = file(&format!(r#""now": {NOON}, "tz": "UTC", {node}"#), &queues, &jobs);
    let ignored = |jobs: [&str; 4]| jobs.map(|job| format!(", - {job} QUEUE_IGNORED")).concat();
    assert_eq!(
        lines(&config("16:00:00"), &state),
        format!("d1 NO_MEMORY, d2 START{}", ignored(["n1", "n2", "n3", "l1"]))
    );
    let night = lines(&config("10:00:00\nMIN_JOBS 9\n"), &state);
    assert_eq!(night, "n1 START, n2 NO_MEMORY, n3 START, l1 NO_MEMORY, - d1 QUEUE_IGNORED, - d2 QUEUE_IGNORED");
    let high = lines(&config("10:00:00\n"), &state);
    assert!(high.starts_with("n1 START, n2 LOAD, n3 LOAD"), "64 processors are a load: {high}");
}

/// PBS-P-21: special jobs and those that waited long gain a reservation; background jobs never do.
#[test]
fn background_jobs_are_promised_nothing() {
    let tables = preset(
        Preset::CrayT3e,
        "SUBMIT_QUEUE submit\nBACKGROUND_QUEUE_NAME back\nBATCH_QUEUES batch\nMAX_QUEUED_TIME 0:00:01\n",
    );
    let queues = [queue("submit", ""), queue("back", ""), queue("batch", r#""resources_max": {"ncpus": 8},"#)];
    let early = format!(r#""etime": {},"#, NOON - 100);
    let run = |id: &str, from: &str| {
        let jobs = [
            running("r1", "batch", "6", "1:00:00"),
            submitted(id, &early, "4", "1:00:00").replace("\"submit\"", &format!("\"{from}\"")),
        ];
        let state = file(&format!(r#""now": {NOON}, "tz": "UTC""#), &queues, &jobs);
        dry(&tables, &state).reservations
    };
    assert_eq!(run("one", "back"), []);
    assert_eq!(run("one", "submit"), [("one".into(), "batch".into(), NOON + 3600)]);
}

/// PBS-P-03: FAKE_MACHINE_MULT multiplies the capacity.
#[test]
fn a_fake_machine_is_larger() {
    let jobs = [submitted("one", "", "64", "1:00:00")];
    assert_eq!(sgi("", "", "", &jobs), "one SIZE_REJECTED");
    assert_eq!(sgi("FAKE_MACHINE_MULT 2\n", "", "", &jobs), "one START -> batch");
}

/// PBS-P-18: jobs get nodes of a host that declares them, which no running job has.
#[test]
fn jobs_get_nodes_by_their_numbers() {
    let declared = r#", "nodes": [{"name": "origin1", "ts": true, "ncpus": 20, "node_count": 10, "loadave": 0}]"#;
    let has =
        |mask: &str| running("r1", "batch", "4", "1:00:00").replacen('{', &format!("{{\"nodemask\": \"{mask}\", "), 1);
    let jobs = |run: String| [run, submitted("three", "", "6", "1:00:00"), submitted("two", "", "4", "1:00:00")];
    let config = "MAX_JOBS 9\n";
    assert_eq!(
        sgi(config, declared, "", &jobs(has("2-3"))),
        "three origin1:4-6 START -> batch, two origin1:0-1 START -> batch"
    );
    let unknown = running("r1", "batch", "4", "1:00:00");
    let both = "three START -> batch, two START -> batch";
    assert_eq!(sgi(config, declared, "", &jobs(unknown)), both, "nobody knows which nodes r1 has");
}

/// PBS-P-06: special jobs skip the drain, and neither the limit of users nor outages. PBS-P-14: the outage of a host. PBS-P-03: MAX_DEDICATED_JOBS.
#[test]
fn what_special_jobs_skip_and_what_not() {
    let special = || [submitted("s", "", "2", "5:00:00").replace("\"submit\"", "\"special\"")];
    assert_eq!(
        sgi(&format!("{DAY}NONPRIME_DRAIN_SYS true\nBACKFILL_MODE none\n"), "", "", &special()),
        "s START -> batch"
    );
    assert_eq!(sgi("MAX_USER_RUN_JOBS 0\n", "", "", &special()), "s SERVER_USER_LIMIT");
    let outages = "ENFORCE_DEDICATED_TIME true\nDEDICATED_TIME_COMMAND /outages\nBACKFILL_MODE none\n";
    let of_host =
        format!(r#"{}, "outages": {{"origin1": "origin1 03/10/2026 11:00-13:00 03/10/2026 disks"}}"#, host(""));
    assert_eq!(sgi(outages, &of_host, "", &special()), "s DEDICATED_TIME");
    let ded = ["d1", "d2"].map(|id| job(id, "ded", "ann", "", &[("walltime", "0:10:00")]));
    assert_eq!(sgi(&format!("{outages}MAX_DEDICATED_JOBS 1\n"), &of_host, "", &ded), "d1 START, d2 QUEUE_JOB_LIMIT");
}
