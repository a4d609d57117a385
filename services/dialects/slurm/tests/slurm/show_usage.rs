//! `sstat`, `seff` and `sreport`: command lines and tables.

use crate::support::{NOW, ago, assert_lines, clock, detailed, records, running, view};
use muster_schemas::{
    job::Usage,
    time::Timestamp,
    usage::{UsageAmounts, UsageRow},
};
use muster_slurm::{
    job_id::StepName,
    queries::{
        Failure, Request, Surroundings,
        sreport::{self as line, Report, Resource, Sreport, Unit},
        sstat as stat_line,
    },
    show::{
        columns::ListStyle,
        record::JobRecord,
        sacct::Row,
        seff::seff,
        sreport::{Cluster, sizes, sreport},
        sstat::{PIDS, USUAL, sstat},
        step::StepRecord,
    },
    size::Units,
    words::ExitCode,
};
use serde_json::json;
use std::sync::Arc;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn parse(text: &str) -> Result<Request<Sreport>, Failure> {
    let now = ago(0).to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    let around = Surroundings { variable: &|_| None, user: "ann", knows_user: &|_| true, is_root: false, now };
    line::parse(&words(text), &around)
}

fn asked(text: &str) -> Sreport {
    match parse(text) {
        Ok(Request::Run(command)) => command,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn reports_are_named_as_in_slurm() {
    for (text, report) in [
        ("cluster utilization", Report::Utilization),
        ("clu util", Report::Utilization),
        ("cluster AccountUtilizationByUser", Report::AccountsByUser),
        ("cluster userutilizationbyaccount", Report::UsersByAccount),
        ("user top", Report::TopUsers),
        ("job sizesbyaccount", Report::Sizes),
    ] {
        assert_eq!(asked(text).report, report, "{text}");
    }
    let refused = |text: &str| parse(text).expect_err(text).lines.join("\n");
    assert!(refused("cluster").starts_with("too few arguments"));
    assert!(refused("cluster nope").starts_with("Not valid report nope, of cluster: known are cluster Utilization, "));
    assert!(refused("cluster utilization nope=1").starts_with(" Unknown condition: nope=1"));
    assert_eq!(refused("cluster util start=nope"), "sreport: error: Invalid time specification (pos=0): nope");
    assert_eq!(refused("-t days cluster util"), "sreport: error: unknown time format days");
    assert!(refused("-T energy cluster util").starts_with("sreport: fatal: No valid TRES given: energy "));
}

/// The default is yesterday; times are whole hours, and what has not come yet is left out.
#[test]
fn a_report_is_about_whole_hours() {
    let span = |text: &str| {
        let command = asked(&format!("cluster util {text}"));
        let show = |time: Timestamp| time.to_jiff().strftime("%d %H:%M:%S").to_string();
        format!("{} - {}", show(command.from), show(command.to))
    };
    // Now is the 20th, 08:20.
    assert_eq!(span(""), "19 00:00:00 - 20 00:00:00");
    assert_eq!(span("start=2026-11-18T10:59:59 end=11/19/26"), "18 10:00:00 - 19 00:00:00");
    assert_eq!(span("start=11/20/26 end=2027-01-01"), "20 00:00:00 - 20 09:00:00");
    assert_eq!(span("start=2026-11-19T05:00 end=2026-11-19T02:00"), "19 05:00:00 - 19 06:00:00");
    assert_eq!(span("end=2026-11-19T10:00"), "19 00:00:00 - 19 10:00:00");
}

#[test]
fn conditions_and_units_are_read() {
    let command =
        asked("-t hourper -P -n -T cpu,gres/gpu user top topcount=3 group users=ann,bob acc=bio format=login,used");
    assert_eq!((command.unit, command.top, command.groups, command.no_header), (Unit::HoursPercent, 3, true, true));
    assert_eq!(command.resources, Some(vec![Resource::Cpu, Resource::Gpu]));
    assert_eq!((command.users.len(), command.accounts.len()), (2, 1));
    assert_eq!(command.format.as_deref(), Some("login,used"));
    let units =
        ["sec", "min", "hours", "per", "secper", "minper"].map(|word| asked(&format!("-t {word} clu util")).unit);
    let all = [Unit::Seconds, Unit::Minutes, Unit::Hours, Unit::Percent, Unit::SecondsPercent, Unit::MinutesPercent];
    assert_eq!(units, all);
}

fn used(user: &str, account: Option<&str>, hours: u128) -> UsageRow {
    UsageRow {
        user: Some(user.to_owned()),
        account: account.map(str::to_owned),
        amounts: UsageAmounts {
            used_core_micros: hours * 3_600_000_000,
            used_gpu_micros: hours * 36_000_000,
            ..UsageAmounts::default()
        },
        ..UsageRow::default()
    }
}

fn report(text: &str) -> String {
    let rows =
        [used("ann", Some("bio"), 24), used("bob", Some("bio"), 6), used("ann", Some("phy"), 2), used("eve", None, 10)];
    let cluster = Cluster { name: "alpha".to_owned(), cpus: 4, gpus: 1 };
    sreport(&asked(text), &rows, &cluster, &clock()).expect("a report")
}

#[test]
fn the_utilization_of_the_cluster_is_told() {
    let rule = "-".repeat(80);
    let wanted = format!(
        "{rule}\nCluster Utilization 2026-11-19T00:00:00 - 2026-11-19T23:59:59\nUsage reported in CPU Minutes\n{rule}\n  \
         Cluster    Allocated       Down  PLND Down         Idle   Planned     Reported\n\
         --------- ------------ ---------- ---------- ------------ --------- ------------\n    \
         alpha         2520          0          0         3240         0         5760\n"
    );
    assert_lines(&report("cluster utilization"), &wanted);
    let percent = "Cluster|TRES Name|Allocated|Down|PLND Down|Idle|Planned|Reported\n\
                   alpha|cpu|43.75%|0.00%|0.00%|56.25%|0.00%|100.00%\nalpha|gres/gpu|1.75%|0.00%|0.00%|98.25%|0.00%|100.00%\n";
    let found = report("-P -t percent -T cpu,gres/gpu cluster utilization");
    assert!(found.ends_with(percent) && found.contains("Usage reported in Percentage of Total\n"), "{found}");
    let of_today = report("-n -P -t hours cluster util start=11/20/26 end=now format=cluster,count,allocated,reported");
    assert_eq!(of_today, "alpha|4|42|32\n", "whole hours, and none that has not come");
}

#[test]
fn accounts_and_users_have_their_lines() {
    let by_account = "root||42(43.75%)\n|eve|10(10.42%)\nbio||30(31.25%)\nbio|ann|24(25.00%)\nbio|bob|6(6.25%)\n\
                      phy||2(2.08%)\nphy|ann|2(2.08%)\n";
    assert_eq!(report("-nP -t hourper cluster accountutilizationbyuser format=account,login,used"), by_account);
    let of_ann = "bio||24\nbio|ann|24\nphy||2\nphy|ann|2\n";
    assert_eq!(report("-nP -t hours cluster accountutilizationbyuser user=ann format=account,login,used"), of_ann);
    let by_user = "ann|bio|1440\neve||600\nbob|bio|360\nann|phy|120\n";
    assert_eq!(report("-nP cluster userutilizationbyaccount format=login,account,used"), by_user);
    assert_eq!(report("-nP user top topcount=2 format=login,account,used"), "ann|bio|1440\neve||600\n");
    let grouped = report("-nP user top group topcount=1 format=login,account,used");
    assert_eq!(grouped, "ann|bio,phy|1560\n");
    let table = report("user top topcount=1");
    assert!(table.contains("Top 1 Users 2026-11-19T00:00:00 - 2026-11-19T23:59:59 (86400 secs)\n"), "{table}");
    let header = "  Cluster     Login     Proper Name         Account       Used   Energy \n";
    assert!(table.contains(header), "{table}");
}

#[test]
fn jobs_are_grouped_by_their_sizes() {
    let of = |id: &str, account: &str, cores: u64, hours: i64| {
        // It ran until the 20th, 02:00.
        let ended = ago(6 * 3600 + 1200);
        let started = Timestamp(ended.0 - hours * 3_600_000_000);
        let outcome = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
        json!({ "id": id, "account": account, "cores": cores, "state": "finished", "outcome": outcome, "started": started,
            "ended": ended, "run": 1, "runs": 1 })
    };
    let jobs: Vec<JobRecord> =
        records([of("1", "bio", 4, 4), of("2", "bio", 64, 3), of("3", "phy", 2000, 1)].map(view));
    let cluster = Cluster { name: "alpha".to_owned(), cpus: 4096, gpus: 0 };
    let found = sizes(&asked("-t hours -P job sizesbyaccount"), &jobs, &cluster, &clock());
    // Two hours of the first and one of the second were yesterday, none of the third.
    let table = "Cluster|Account|0-49 CPUs|50-249 CPUs|250-499 CPUs|500-999 CPUs|>= 1000 CPUs|% of cluster\n\
                 alpha|bio|8|64|0|0|0|100.00%\n";
    assert!(found.ends_with(table) && found.contains("\nTime reported in Hours\n"), "{found}");
    let columns = sizes(&asked("-t hours job sizes start=now-1day end=now"), &jobs, &cluster, &clock());
    assert!(columns.contains("  Cluster   Account     0-49 CPUs   50-249 CPUs"), "{columns}");
    assert!(
        columns.contains("    alpha       phy             0             0             0             0          2000")
    );
}

fn step(step: StepName, cpu_seconds: u64, bytes: u64) -> StepRecord {
    let job = records([running("5", 100, &["node1", "node2"], json!({ "cores": 4, "tasks": 4 }))]).remove(0);
    let mut step = StepRecord::of_job(&job, step, "hello");
    (step.usage.cpu_time_micros, step.usage.peak_memory_bytes) = (cpu_seconds * 1_000_000, bytes);
    step
}

#[test]
fn running_steps_show_what_is_known_of_them() {
    let steps = [step(StepName::Number(0), 0, 0), step(StepName::Number(1), 40, 8 << 20)];
    let style = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let table = |format: &str| sstat(&steps, format, &style, true, &clock());
    let found = table("jobid,ntasks,nodelist,avecpu,averss,maxrss,pids").expect("a table");
    assert_eq!(found, "5.0|4|node[1-2]||||\n5.1|4|node[1-2]|00:00:10|2048K||\n");
    assert!(table(USUAL).is_ok() && table(PIDS).is_ok() && table("nope").is_err());
}

#[test]
fn the_line_of_sstat_needs_a_job() {
    let asked = |text: &str| stat_line::parse(&words(text));
    let refused = asked("-a").expect_err("a refusal");
    assert_eq!(
        (refused.lines, refused.code),
        (vec!["sstat: error: You didn't give me any jobs to stat.".to_owned()], 1)
    );
    let Ok(Request::Run(command)) = asked("-a -P -n -j 5,6.batch -o jobid 7") else { panic!("a command") };
    assert_eq!((command.ids.len(), command.all_steps, command.no_header), (3, true, true));
    let Ok(Request::Run(pids)) = asked("-i 5") else { panic!("a command") };
    assert_eq!(pids.format, PIDS);
}

fn rows(members: serde_json::Value, memory: Option<u64>) -> (Row, Row) {
    let memory = memory.map(|megabytes| json!({ "bytes": megabytes << 20, "per": "node" }));
    let component = json!({ "alternatives": [{ "requests": [{ "memory": memory }] }] });
    let job = detailed(view(members), json!({ "components": [component], "attributes": {} }), json!([])).remove(0);
    let job = Arc::new(job);
    let row = |step: Option<StepRecord>, usage| Row {
        job: Arc::clone(&job),
        step,
        usage,
        derived_exit: ExitCode::default(),
        cancelled_by: None,
        cluster: "alpha".into(),
        failed_node: None,
        flags: Default::default(),
        association: None,
        units: Units::default(),
    };
    let usage = Usage { cpu_time_micros: 600_000_000, peak_memory_bytes: 300 << 20, ..Usage::default() };
    (row(None, Usage::default()), row(Some(step(StepName::Batch, 600, 300 << 20)), usage))
}

/// The text is that of the script that comes with Slurm.
#[test]
fn the_efficiency_of_a_job_is_told() {
    let ended = json!({
        "id": "12", "owner": "ann", "state": "finished", "cores": 4, "node_count": 2, "run": 1, "runs": 1,
        "outcome": { "outcome": "completed", "exit_status": { "code": 0 }, "detail": null },
        "started": Timestamp::from_unix_seconds(NOW - 900), "ended": Timestamp::from_unix_seconds(NOW - 300)
    });
    let (job, step) = rows(ended, Some(400));
    let wanted = "Job ID: 12\nCluster: alpha\nUser/Group: ann/root\nState: COMPLETED (exit code 0)\nNodes: 2\n\
                  Cores per node: 2\nCPU Utilized: 00:10:00\nCPU Efficiency: 25.00% of 00:40:00 core-walltime\n\
                  Job Wall-clock time: 00:10:00\nMemory Utilized: 300.00 MB\n\
                  Memory Efficiency: 37.50% of 800.00 MB (400.00 MB/node)\n";
    assert_eq!(seff(&job, &[step], &clock()), wanted);
    let (waiting, _) = rows(json!({ "id": "13", "owner": "ann" }), None);
    let wanted = "Job ID: 13\nCluster: alpha\nUser/Group: ann/root\nState: PENDING\nCores: 1\n\
                  Efficiency not available for jobs in the PENDING state.\n";
    assert_eq!(seff(&waiting, &[], &clock()), wanted);
    let started =
        json!({ "id": "14", "state": "running", "started": ago(90_000), "nodes": ["node1"], "run": 1, "runs": 1 });
    let (runs, _) = rows(started, None);
    let text = seff(&runs, &[], &clock());
    assert!(text.contains("CPU Efficiency: 0.00% of 1-01:00:00 core-walltime\n"), "{text}");
    assert!(
        text.contains("Memory Utilized: 0.00 MB\nMemory Efficiency: 0.00% of 0.00 MB (0.00 MB/node)\nWARNING: "),
        "{text}"
    );
    assert_eq!(stat_line::seff(&words("12 13")), Ok(Request::Usage));
}
