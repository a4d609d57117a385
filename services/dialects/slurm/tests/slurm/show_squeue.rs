//! `squeue`.

use crate::support::{ago, assert_lines, clock, component, detailed, records, run, running, view};
use muster_schemas::{job::Holds, views::JobView};
use muster_slurm::{
    job_id::StepName,
    moment::TimeFormat,
    show::{
        Clock,
        data::Asker,
        record::JobRecord,
        squeue::{self, Format, LONG_FORMAT, Listing, START_FORMAT, START_SORT, STEP_FORMAT, States},
        step::StepRecord,
    },
    words::{State, waiting_reason},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn list(records: Vec<JobRecord>, listing: &Listing) -> String {
    squeue::list(records, listing, &clock()).unwrap_or_else(|error| panic!("{error}"))
}

fn letters(format: &str) -> Listing {
    Listing { format: Format::Letters(format.to_owned()), no_header: true, ..Listing::default() }
}

/// The running job 93 of the worked examples, with three components.
fn job_93() -> Vec<JobRecord> {
    let job = running(
        "93",
        18 * 60 + 18,
        &["nid00001", "nid00011", "nid00021"],
        json!({
            "name": "bash", "owner": "adam", "components": 3
        }),
    );
    let component = json!({ "queue": "debug", "account": "test" });
    let spec = json!({ "name": "bash", "components": [component, component, component] });
    let parts = [("nid00001", 0, "0", 1), ("nid00011", 1, "0", 1), ("nid00021", 2, "0", 1)];
    detailed(job, spec, json!([run(&parts)]))
}

fn waiting(reason: Value, members: Value) -> JobView {
    let mut all = json!({ "reason": reason });
    let (Value::Object(all_members), Value::Object(more)) = (&mut all, members) else { panic!("objects") };
    all_members.extend(more);
    view(all)
}

fn reason(code: &str, text: &str) -> Value {
    json!({ "code": code, "text": text, "job": null })
}

/// SL-E-11: `SLURM_TIME_FORMAT`
#[test]
fn points_in_time_are_written_as_the_reader_wants_them() {
    let job = records([running("7", 1, &["n1"], json!({}))]);
    let shown = |format: &str| {
        let clock = Clock { format: TimeFormat::from_variable(Some(format)), ..clock() };
        squeue::list(job.clone(), &letters("%S %V"), &clock).expect("a list")
    };
    assert_eq!(shown("standard"), "2026-11-20T08:19:59 2026-11-20T08:19:00\n");
    assert_eq!(shown("%H.%M"), "08.19 08.19\n");
    assert_eq!(shown("relative"), "08:19:59 08:19:00\n");
}

/// EX-04, SL-I-05, SL-C-23
#[test]
fn components_are_listed_as_leader_and_offset_with_the_nodes_of_each() {
    assert_lines(&list(job_93(), &Listing::default()), include_str!("golden/squeue-93.txt"));
}

/// EX-04, SL-M-02
#[test]
fn a_component_that_was_cancelled_alone_is_not_listed_any_more() {
    let cancelled = json!({ "outcome": "cancelled", "exit_status": null, "detail": null });
    let over = json!({ "nodes": ["n2"], "state": "finished", "outcome": cancelled, "ended": ago(2) });
    let stands = [json!({ "nodes": ["n1"] }), over, json!({ "nodes": ["n3"] })].map(component);
    let job = |more: Value| {
        let mut members = json!({ "components": 3, "by_component": stands });
        let (Value::Object(all), Value::Object(more)) = (&mut members, more) else { panic!("objects") };
        all.extend(more);
        running("93", 9, &["n1", "n3"], members)
    };
    let jobs = records([job(json!({}))]);
    assert_eq!((jobs[1].state, jobs[1].ended), (State::Cancelled, Some(ago(2))));
    assert_eq!(list(jobs, &letters("%i %t %N")), "93+0 R n1\n93+2 R n3\n");
    // Its end stays when the others end.
    let completed = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
    let over = job(json!({ "state": "finished", "outcome": completed, "ended": ago(1) }));
    let states: Vec<State> = records([over]).iter().map(|record| record.state).collect();
    assert_eq!(states, [State::Completed, State::Cancelled, State::Completed]);
}

/// SL-M-02
#[test]
fn a_component_that_is_being_ended_is_completing() {
    let stands = [json!({ "nodes": ["n1"] }), json!({ "nodes": ["n2"], "state": "finishing" })].map(component);
    let job = running("93", 9, &["n1", "n2"], json!({ "components": 2, "by_component": stands }));
    assert_eq!(list(records([job]), &letters("%i %t %N")), "93+0 R n1\n93+1 CG n2\n");
}

/// SL-M-04, SL-M-11
#[test]
fn a_component_that_is_held_alone_is_told_apart_from_the_others() {
    let waits = |holds: Value| component(json!({ "state": "held", "holds": holds }));
    let stands = [waits(json!({})), waits(json!({ "user": true })), waits(json!({ "operator": true }))];
    let held = json!({ "id": "5", "state": "held", "components": 3, "holds": { "user": true, "operator": true },
        "by_component": stands });
    let listed = list(records([waiting(reason("held", "held"), held)]), &letters("%i %t %r %Q"));
    assert_eq!(listed, "5+0 PD None 1000\n5+1 PD JobHeldUser 0\n5+2 PD JobHeldAdmin 0\n");
}

/// EX-05
#[test]
fn held_components_show_who_holds_them() {
    let held = json!({ "id": "5", "state": "held", "components": 3, "holds": { "user": true } });
    let job = waiting(reason("held", "held by user"), held);
    let listed = list(records([job]), &letters("%i %t %r"));
    assert_eq!(listed, "5+0 PD JobHeldUser\n5+1 PD JobHeldUser\n5+2 PD JobHeldUser\n");
}

/// EX-07
#[test]
fn each_component_shows_its_own_account() {
    let waits = |account: &str| component(json!({ "account": account, "state": "queued", "walltime_seconds": 3600 }));
    let stands = ["test", "test", "abc"].map(waits);
    let job = view(json!({ "id": "123", "components": 3, "by_component": stands }));
    // It is shown as it was changed, not as it was submitted.
    let spec = json!({ "components": [{ "account": "old" }, { "account": "old" }, { "account": "old" }] });
    let listed = list(detailed(job, spec, json!([])), &letters("%i %a %l"));
    assert_eq!(listed, "123+0 test 1:00:00\n123+1 test 1:00:00\n123+2 abc 1:00:00\n");
}

/// EX-19, SL-C-17
#[test]
fn waiting_tasks_of_an_array_share_a_line_and_others_have_their_own() {
    let array = json!({ "total": 5, "remaining": "3-5", "waiting": 3, "running": 2, "finished": {}, "max_running": 2 });
    let rest = waiting(reason("array_limit", "as many as may"), json!({ "id": "43", "array": array }));
    let jobs = || {
        let tasks = [("43_1", "n1"), ("43_2", "n2")].map(|(id, node)| running(id, 5, &[node], json!({})));
        records([rest.clone()].into_iter().chain(tasks))
    };
    let listed = list(jobs(), &letters("%i %t %R"));
    assert_eq!(listed, "43_[3-5%2] PD (JobArrayTaskLimit)\n43_1 R n1\n43_2 R n2\n");
    let by_task = list(jobs(), &Listing { is_by_task: true, ..letters("%i %F %K") });
    assert_eq!(by_task, "43_3 43 3\n43_4 43 4\n43_5 43 5\n43_1 43 1\n43_2 43 2\n");
}

/// SL-C-18: the hold of some tasks of an array is not the reason why the others wait.
#[test]
fn tasks_of_an_array_that_are_held_singly_have_lines_of_their_own() {
    let none = json!({ "user": false, "operator": false, "system": false });
    let held = |indices: &str, by: &str| {
        let mut holds = none.clone();
        holds[by] = json!(true);
        json!({ "indices": indices, "holds": holds })
    };
    let array = |remaining: &str| {
        json!({
            "total": 5, "remaining": remaining, "waiting": 5, "running": 0, "finished": {}, "numbered": "1-5",
            "held": [held("2,4", "user"), held("5", "operator")]
        })
    };
    let job = |remaining: &str| {
        records([waiting(reason("resources", ""), json!({ "id": "43", "number": 43, "array": array(remaining) }))])
    };
    let listed = list(job("1-5"), &Listing { sort: "i".to_owned(), ..letters("%i %A %t %r %Q") });
    let expected = "43_2 44 PD JobHeldUser 0\n43_4 46 PD JobHeldUser 0\n43_5 47 PD JobHeldAdmin 0\n";
    let others = "43_[1,3] 43 PD Resources ";
    assert!(listed.contains(expected) && listed.contains(others) && listed.lines().count() == 4, "{listed}");
    let by_task = list(job("1-5"), &Listing { is_by_task: true, sort: "i".to_owned(), ..letters("%i %r") });
    let expected = "43_1 Resources\n43_2 JobHeldUser\n43_3 Resources\n43_4 JobHeldUser\n43_5 JobHeldAdmin\n";
    assert_eq!(by_task, expected);
}

/// SL-C-19: a dependency that is met after a delay is not a begin time.
#[test]
fn a_delay_behind_the_start_of_another_job_is_a_dependency() {
    let until = |begin: muster_schemas::Timestamp| reason("begin_time", &format!("not before {begin}"));
    let word = |members: Value| list(records([waiting(until(ago(-60)), members)]), &letters("%r"));
    assert_eq!(word(json!({})), "Dependency\n");
    assert_eq!(word(json!({ "begin": ago(60) })), "Dependency\n");
    assert_eq!(word(json!({ "begin": ago(-60) })), "BeginTime\n");
}

/// SL-I-03, SL-I-09, SL-I-02.
#[test]
fn ids_of_a_job_with_components_are_columns() {
    let names = Listing {
        format: Format::Names("HetJobId:6,PackJobOffset:4,hetjobidset:8,jobid:4".to_owned()),
        ..Listing::default()
    };
    let five = list(records([view(json!({ "id": "123", "components": 5 }))]), &names);
    assert_eq!(five.lines().nth(5), Some("123   4   123-127 127 "));
    let plain = list(records([view(json!({}))]), &names);
    assert_eq!(plain.lines().nth(1), Some("N/A   N/A N/A     7   "));
    let headers =
        Listing { format: Format::Names("HetJobId,HetJobOffset,HetJobIdSet".to_owned()), ..Listing::default() };
    let header = list(Vec::new(), &headers);
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["HET_JOB_ID", "HET_JOB_OFFSET", "HET_JOB_ID_SET"]);
}

/// SL-C-23
#[test]
fn the_long_listing_has_a_date_and_limits() {
    let jobs = records([
        running("7", 6, &["nid00002", "nid00003"], json!({ "walltime_seconds": null })),
        waiting(reason("resources", "not enough free: cores"), json!({ "id": "8" })),
    ]);
    let listing = Listing { format: Format::Letters(LONG_FORMAT.to_owned()), is_dated: true, ..Listing::default() };
    assert_lines(&list(jobs, &listing), include_str!("golden/squeue-long.txt"));
}

/// SL-P-12, SL-C-23
#[test]
fn expected_starts_have_a_line_for_each_component() {
    let expected = json!({ "id": "5", "components": 2, "predicted_start": ago(-7200) });
    let jobs = records([
        waiting(reason("resources", "not enough free: cores"), expected),
        view(json!({ "id": "9" })),
        running("7", 6, &["n"], json!({})),
    ]);
    let mut listing = Listing { format: Format::Letters(START_FORMAT.to_owned()), ..Listing::default() };
    listing.sort = START_SORT.to_owned();
    listing.filter.states = States::These(vec![State::Pending]);
    assert_lines(&list(jobs, &listing), include_str!("golden/squeue-start.txt"));
}

/// SL-P-12, EX-14
#[test]
fn components_have_expected_starts_and_nodes_of_their_own() {
    let component_on = |start: i64, node: &str| {
        component(json!({ "state": "queued", "nodes": [], "expected_start": ago(-start), "planned_nodes": [node] }))
    };
    let stands = [component_on(0, "nid00010"), component_on(7200, "nid00008"), component_on(7200, "nid00009")];
    let members = json!({ "id": "5", "components": 3, "predicted_start": ago(-60), "by_component": stands });
    let job = waiting(reason("reserved", "expected to start at 2026-11-20T10:20:00Z"), members);
    let mut listing = Listing { format: Format::Letters(START_FORMAT.to_owned()), ..Listing::default() };
    listing.sort = START_SORT.to_owned();
    assert_lines(&list(records([job.clone()]), &listing), include_str!("golden/squeue-start-components.txt"));
    let starts = list(records([job]), &letters("%i %S %Y"));
    assert_eq!(
        starts,
        "5+0 2026-11-20T08:20:00 nid00010\n5+1 2026-11-20T10:20:00 nid00008\n5+2 2026-11-20T10:20:00 nid00009\n"
    );
}

/// SL-C-23
#[test]
fn steps_are_listed_under_their_job() {
    let job = records([running("7", 6, &["nid00002", "nid00003"], json!({}))]).remove(0);
    let mut batch = StepRecord::of_job(&job, StepName::Batch, "batch");
    batch.nodes.truncate(1);
    let steps = vec![StepRecord::of_job(&job, StepName::Number(0), "app.sh"), batch];
    let listing = Listing { format: Format::Letters(STEP_FORMAT.to_owned()), ..Listing::default() };
    let listed = squeue::list_steps(steps, &listing, &clock()).unwrap();
    assert_lines(&listed, include_str!("golden/squeue-steps.txt"));
}

/// SL-C-25
#[test]
fn finished_jobs_are_listed_only_if_their_states_are_asked_for() {
    let ended = json!({ "outcome": "failed", "exit_status": { "code": 3 }, "detail": null });
    let jobs = || {
        let failed = view(json!({ "id": "6", "state": "finished", "started": ago(9), "ended": ago(2), "runs": 1,
            "outcome": ended }));
        records([failed, view(json!({}))])
    };
    let with = |states: States| {
        let mut listing = letters("%i %T %R");
        listing.filter.states = states;
        list(jobs(), &listing)
    };
    assert_eq!(with(States::Unfinished), "7 PENDING (None)\n");
    assert_eq!(with(States::All), "7 PENDING (None)\n6 FAILED (NonZeroExitCode)\n");
    assert_eq!(with(States::These(vec![State::Failed])), "6 FAILED (NonZeroExitCode)\n");
}

/// SL-C-25
#[test]
fn filters_are_met_all_together() {
    let jobs = || {
        records([
            running("1", 5, &["n1", "n2"], json!({ "owner": "ann", "name": "a" })),
            running("2", 5, &["n3"], json!({ "owner": "ann", "queue": "p2" })),
            running("3", 5, &["n1"], json!({ "owner": "bob", "account": "abc", "reservation": "r1" })),
        ])
    };
    let with = |change: &dyn Fn(&mut squeue::Filter)| {
        let mut listing = letters("%A");
        change(&mut listing.filter);
        list(jobs(), &listing).replace('\n', "")
    };
    assert_eq!(with(&|filter| filter.users.extend(["ann".to_owned()])), "12");
    assert_eq!(with(&|filter| filter.partitions.extend(["p2".to_owned(), "p3".to_owned()])), "2");
    assert_eq!(with(&|filter| filter.nodes.extend(["n1".to_owned()])), "13");
    assert_eq!(with(&|filter| filter.accounts.extend(["abc".to_owned()])), "3");
    assert_eq!(with(&|filter| filter.reservations.extend(["r1".to_owned()])), "3");
    assert_eq!(with(&|filter| filter.names.extend(["a".to_owned()])), "1");
    let of_ann_on_n1 = with(&|filter| {
        filter.users.extend(["ann".to_owned()]);
        filter.nodes.extend(["n1".to_owned()]);
    });
    assert_eq!(of_ann_on_n1, "1");
    assert_eq!(with(&|filter| filter.users.extend(["0".to_owned()])), "132", "a user's number is as good as the name");
}

/// SL-C-25
#[test]
fn jobs_are_ordered_by_partition_state_and_priority_and_then_by_number() {
    let jobs = || {
        records([
            view(json!({ "id": "4", "priority": 5 })),
            view(json!({ "id": "3", "priority": 5 })),
            view(json!({ "id": "2", "priority": 9 })),
            running("1", 5, &["n"], json!({})),
            view(json!({ "id": "5", "queue": "a" })),
        ])
    };
    let order = |sort: &str| list(jobs(), &Listing { sort: sort.to_owned(), ..letters("%A") }).replace('\n', "");
    assert_eq!(order(squeue::DEFAULT_SORT), "52341");
    assert_eq!(order("i"), "12345");
    assert_eq!(order("-i"), "54321");
    assert_eq!(order("-t,i"), "12345");
    let error = squeue::list(jobs(), &Listing { sort: "!".to_owned(), ..Listing::default() }, &clock());
    assert_eq!(error.unwrap_err().to_string(), "Invalid sort specification: !");
}

/// SL-C-25: `-L` takes names of licences, whatever number of them the job asks for.
#[test]
fn jobs_are_chosen_by_the_licences_that_they_ask_for() {
    let spec = json!({ "components": [{}], "attributes": { "slurm.0.licenses": "matlab,ansys:2" } });
    let job = detailed(view(json!({})), spec, json!([])).remove(0);
    let takes = |name: &str| squeue::Filter { licences: [name.to_owned()].into(), ..Default::default() }.takes(&job);
    assert_eq!(["matlab", "ansys", "ansys:2", "other"].map(takes), [true, true, false, false]);
}

/// SL-C-25: among equal tasks of an array those that started come first, in the order of their index.
#[test]
fn tasks_that_have_not_started_come_behind_those_that_have() {
    let array = json!({ "total": 5, "remaining": "3-5", "waiting": 3, "running": 2, "finished": {} });
    let jobs = records([
        view(json!({ "id": "43", "array": array })),
        running("43_2", 9, &["n1"], json!({})),
        running("43_1", 9, &["n1"], json!({})),
    ]);
    let listed = list(jobs, &Listing { sort: "i".to_owned(), ..letters("%i") });
    assert_eq!(listed, "43_1\n43_2\n43_[3-5]\n");
}

/// SL-C-27, SL-C-39, SL-I-14
#[test]
fn every_reason_to_wait_has_a_word() {
    let word = |code: &str, text: &str| {
        let view: muster_schemas::views::ReasonView = serde_json::from_value(reason(code, text)).unwrap();
        waiting_reason(Some(&view), Holds::default(), None).into_owned()
    };
    for (code, text, wanted) in [
        ("not_planned_yet", "", "None"),
        ("begin_time", "", "BeginTime"),
        ("dependency", "", "Dependency"),
        ("dependency_never_met", "", "DependencyNeverSatisfied"),
        ("queue_stopped", "", "PartitionDown"),
        ("array_limit", "", "JobArrayTaskLimit"),
        ("resources", "not enough free: cores", "Resources"),
        ("resources", "not enough free: licences", "Licenses"),
        ("behind_job", "", "Priority"),
        ("would_delay", "", "Priority"),
        ("never_fits", "", "PartitionConfig"),
        ("reservation_gone", "", "ReservationDeleted"),
        ("reservation_not_begun", "", "Reservation"),
        ("nodes_unavailable", "nodes not available: nid00003", "ReqNodeNotAvail, UnavailableNodes:nid00003"),
        ("limit", "limit reached: 2 running jobs of ada", "AssocMaxJobsLimit"),
        ("limit", "limit reached: 2 running jobs of account abc", "AssocGrpJobsLimit"),
        ("limit", "limit reached: 9 cores of account abc", "AssocGrpCpuLimit"),
        ("limit", "limit reached: 9 cores", "QOSGrpCpuLimit"),
        ("limit", "limit reached: QOSMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit"),
        ("external_planner", "my own words", "my_own_words"),
    ] {
        assert_eq!(word(code, text), wanted, "{code} {text}");
    }
    let operator = Holds { operator: true, ..Holds::default() };
    assert_eq!(waiting_reason(None, operator, None), "JobHeldAdmin");
    let both = Holds { user: true, system: true, ..Holds::default() };
    assert_eq!(
        waiting_reason(None, both, None),
        "JobHeldAdmin",
        "an administrator's hold weighs more than the owner's"
    );
}

/// SL-C-23, SL-P-12
#[test]
fn a_running_job_tells_its_times() {
    let job = || records([running("7", 60, &["n1"], json!({ "walltime_seconds": 300 }))]);
    let listed = list(job(), &letters("%M %l %L %S %e %V"));
    assert_eq!(listed, "1:00 5:00 4:00 2026-11-20T08:19:00 2026-11-20T08:24:00 2026-11-20T08:19:00\n");
    let mut suspended = job();
    suspended[0].state = State::Suspended;
    suspended[0].suspended_since = Some(ago(20));
    assert_eq!(list(suspended, &letters("%M")), "0:40\n");
}

/// SL-C-27
#[test]
fn json_lists_the_same_jobs() {
    let command = ["squeue", "--json"].map(str::to_owned);
    let asker = Asker { command: &command, user: "ann", group: "staff", cluster: "alpha", release: "22.05.8" };
    let object = squeue::document(&job_93(), &asker, ago(0));
    let number = |number: u64| json!({ "set": true, "infinite": false, "number": number });
    assert_eq!(object["errors"], json!([]));
    assert_eq!(object["jobs"][1]["het_job_id"], number(93));
    assert_eq!(object["jobs"][1]["het_job_offset"], number(1));
    assert_eq!(
        (&object["jobs"][0]["user_name"], &object["jobs"][0]["job_state"]),
        (&json!("adam"), &json!(["RUNNING"]))
    );
    assert_eq!(object["jobs"][2]["nodes"], "nid00021");
}

/// SL-A-11, SL-C-27: the fields that programs read have the names and types of Slurm's `data_parser` since 23.11.
#[test]
fn jobs_as_data_have_the_shape_of_slurms() {
    let command = ["squeue", "--json"].map(str::to_owned);
    let asker = Asker { command: &command, user: "ann", group: "staff", cluster: "alpha", release: "24.05.1" };
    let object = squeue::document(&job_93(), &asker, ago(0));
    let job = &object["jobs"][0];
    let texts = "account admin_comment array_task_string batch_host cluster command comment container \
        current_working_directory dependency excluded_nodes extra features group_name het_job_id_set licenses name network nodes \
        partition qos required_nodes resv_name scheduled_nodes standard_error standard_input standard_output state_description \
        state_reason tres_alloc_str tres_bind tres_freq tres_per_job tres_per_node tres_per_socket tres_per_task tres_req_str \
        user_name wckey";
    for name in texts.split_whitespace() {
        assert!(job[name].is_string(), "{name}: {}", job[name]);
    }
    let numbers = "accrue_time array_job_id array_max_tasks array_task_id cpus cpus_per_task deadline eligible_time end_time \
        het_job_id het_job_offset max_nodes memory_per_cpu memory_per_node minimum_cpus_per_node minimum_tmp_disk_per_node \
        node_count priority start_time submit_time suspend_time tasks tasks_per_node time_limit time_minimum";
    for name in numbers.split_whitespace() {
        let parts = (job[name]["set"].is_boolean(), job[name]["infinite"].is_boolean(), job[name]["number"].is_u64());
        assert_eq!(parts, (true, true, true), "{name}: {}", job[name]);
    }
    for name in ["job_id", "user_id", "group_id", "restart_cnt", "nice"] {
        assert!(job[name].is_i64() || job[name].is_u64(), "{name}: {}", job[name]);
    }
    for name in ["job_state", "flags", "shared", "gres_detail"] {
        assert!(job[name].is_array(), "{name}: {}", job[name]);
    }
    for name in ["batch_flag", "contiguous", "hold", "reboot", "requeue"] {
        assert!(job[name].is_boolean(), "{name}: {}", job[name]);
    }
    assert!(job["exit_code"]["return_code"]["number"].is_u64() && job["exit_code"]["status"].is_array());
    assert!(job["job_resources"]["nodes"]["allocation"].is_array() && job["job_resources"]["cpus"].is_u64());
    let version = &object["meta"]["slurm"]["version"];
    assert_eq!((&version["major"], &version["micro"]), (&json!("24"), &json!("1")));
}

proptest! {
    /// SL-C-25
    #[test]
    fn whatever_jobs_are_ordered_by_the_order_is_that_of_the_values(
        jobs in prop::collection::vec((1u64..50, 1i64..6, "[ab]{0,2}"), 0..20),
        sort in "(-?[jQi],){0,3}",
    ) {
        let job = |(number, priority, name): &(u64, i64, String)| {
            view(json!({ "id": number.to_string(), "priority": priority, "name": name }))
        };
        let listing = Listing { sort: sort.clone(), ..letters("%i %Q %j") };
        let listed = list(records(jobs.iter().map(job)), &listing);
        let mut wanted = jobs.clone();
        wanted.sort_by_key(|(number, ..)| *number);
        // A stable sort by each key, the most significant last.
        for key in sort.split(',').rev().filter(|key| !key.is_empty()) {
            wanted.sort_by(|left, right| {
                let order = match &key[key.len() - 1..] {
                    "j" => left.2.cmp(&right.2),
                    "Q" => left.1.cmp(&right.1),
                    _ => left.0.cmp(&right.0),
                };
                if key.starts_with('-') { order.reverse() } else { order }
            });
        }
        let keys = |row: &(u64, i64, String)| format!("{} {} {}", row.0, row.1, row.2);
        let lines: Vec<String> = listed.lines().map(str::to_owned).collect();
        prop_assert_eq!(lines, wanted.iter().map(keys).collect::<Vec<_>>());
    }
}

/// A job that a signal stopped still runs for a list by states.
#[test]
fn a_job_that_a_signal_stopped_is_stopped_until_another_lets_it_continue() {
    let stopped = |is_stopped: bool| running("7", 1, &["n1"], json!({ "is_stopped": is_stopped }));
    assert_eq!(list(records([stopped(true)]), &letters("%t %T %R")), "ST STOPPED n1\n");
    assert_eq!(list(records([stopped(false)]), &letters("%t %T %R")), "R RUNNING n1\n");
    assert!(State::Stopped.is_in(&[State::Running]) && !State::Running.is_in(&[State::Stopped]));
    assert_eq!(State::Stopped.in_accounting(), State::Running, "accounting knows no such state");
    let parts = [json!({ "nodes": ["n1"] }), json!({ "nodes": ["n2"], "is_stopped": true })].map(component);
    let job = running("9", 1, &["n1", "n2"], json!({ "components": 2, "by_component": parts }));
    assert_eq!(list(records([job]), &letters("%i %t")), "9+0 R\n9+1 ST\n");
}
