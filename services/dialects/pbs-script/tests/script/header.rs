//! Schedulers in C, through `ops/examples/pbs_schedule.h`.

use super::support::{TEN, bench, job, node, queue, state};
use muster_pbs_script::{cycle::End, state_site::StateSite, trigger::Command};
use std::{path::Path, process};

/// Starts the first job that is small enough, and says what it was called with.
const PROGRAM: &str = r#"
#include "pbs_schedule.h"
#include <errno.h>

static int limit;

int schedinit(int argc, char *argv[])
{
    fprintf(stderr, "init %d %s\n", argc, argc > 1 ? argv[1] : "-");
    limit = argc > 1 ? atoi(argv[1]) : 0;
    return limit > 0 ? 0 : 1;
}

int schedule(int cmd, int connector)
{
    char *jobs = pbs_stat(connector, "selstat");
    const char *job = NULL;
    char id[64], ncpus[64];
    fprintf(stderr, "schedule %d %d\n", cmd, connector);
    if (!jobs)
        return -1;
    while ((job = pbs_next(jobs, job))) {
        const char *request = pbs_member(job, "request");
        if (pbs_text(pbs_member(job, "id"), id, sizeof id) != 0)
            continue;
        if (request && pbs_text(pbs_member(request, "ncpus"), ncpus, sizeof ncpus) == 0 && atoi(ncpus) > limit) {
            pbs_comment(connector, id, "too \"wide\"");
            continue;
        }
        if (pbs_runjob(connector, id, "node1") == 0)
            break;
        fprintf(stderr, "refused %.14s\n", pbs_refusal());
        break;
    }
    free(jobs);
    return 0;
}
"#;

fn compiled(folder: &Path) -> bool {
    let Ok(found) = process::Command::new("cc").arg("--version").output() else {
        muster_surroundings::skipped("cc is not installed");
        return false;
    };
    assert!(found.status.success());
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../ops/examples");
    let compile = process::Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "scheduler", "scheduler.c", "-I"])
        .arg(headers)
        .current_dir(folder)
        .output()
        .expect("cc can be run");
    assert!(compile.status.success(), "{}", String::from_utf8_lossy(&compile.stderr));
    true
}

/// PBS-X-21: a C program with schedinit and schedule is a scheduler. PBS-C-02: one start each brings the next cycle.
#[test]
fn a_scheduler_in_c_runs() {
    let mut bench = bench("external:./scheduler 4", &[("scheduler.c", PROGRAM)]);
    if !compiled(bench.folder.path()) {
        return;
    }
    let mut evil = job("2", "batch", &[("ncpus", "1")]);
    evil.name = Some("\",\"id\":\"9\"}]{[\\".into());
    evil.request.set("id", "77").expect("a resource");
    let jobs = vec![job("1", "batch", &[("ncpus", "8")]), evil, job("3", "batch", &[("ncpus", "4")])];
    let nodes = vec![node("node1", "free", None)];
    let mut site = StateSite::new(state(vec![queue("batch")], nodes, jobs));
    let first = bench.cycle(TEN, &mut site);
    assert_eq!((first.end.clone(), super::support::started(&first)), (End::Done(None), vec!["2"]));
    assert_eq!(super::support::comments(&first), [("1", "too \"wide\"")]);
    let second = bench.cycle(TEN, &mut site);
    assert_eq!((second.begun.reason, second.started, second.end), (Command::Recyc, 0, End::Done(None)));
    let printed = bench.printed("refused");
    assert_eq!(printed, "init 2 4\nschedule 10 1\nschedule 4 2\nrefused \"NO_RESOURCES\"\n");
    bench.scheduler.quit(TEN);
}

/// PBS-X-21: a scheduler whose schedinit fails is not ready.
#[test]
fn a_scheduler_in_c_can_refuse_to_start() {
    let mut bench = bench("external:./scheduler", &[("scheduler.c", PROGRAM)]);
    if !compiled(bench.folder.path()) {
        return;
    }
    let mut site = StateSite::new(state(vec![queue("batch")], Vec::new(), Vec::new()));
    let End::Failed(what) = bench.cycle(TEN, &mut site).end else { panic!("it runs") };
    assert!(what.starts_with("the program closed its streams: it exited with status 1"), "{what}");
}
