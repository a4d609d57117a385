//! What `qstat` prints about jobs.

use crate::support::{NOW, ago, detail, golden, now, running, sources, view};
use jiff::tz::TimeZone;
use muster_pbs::{
    flavour::Flavour::{self, PbsPro, Torque},
    show::{
        Alternate, Header, List, Sources, Status, Units, alternate, dsv, job_state, json, list, list_of_views,
        of_detail, of_task, of_view, printed, text, xml,
    },
};
use muster_schemas::{JobId, views::JobView};
use proptest::prelude::*;
use serde_json::json;

fn finished(members: serde_json::Value) -> JobView {
    let mut job = running("9", 600, &["n1"]);
    job.state = muster_schemas::job::JobState::Finished;
    job.ended = Some(ago(10));
    job.outcome = Some(serde_json::from_value(members).unwrap());
    job
}

fn array() -> JobView {
    view(json!({
        "id": "12", "name": "sweep", "array": {
            "total": 10, "remaining": "4-9", "waiting": 6, "running": 1, "finished": { "completed": 3 },
            "max_running": 2
        }
    }))
}

/// The jobs of the lists.
fn jobs(flavour: Flavour) -> Vec<Status> {
    let sources = sources(flavour);
    let long = view(json!({
        "id": "1234567", "name": "a-name-that-is-longer-than-its-column", "owner": "longusername0123456789",
        "queue": "queue-with-a-long-name", "holds": { "user": true }, "state": "held"
    }));
    let blank = view(json!({ "id": "8", "name": "two words", "predicted_start": ago(-7_200) }));
    vec![
        of_view(&view(json!({})), &sources),
        of_detail(
            &detail(
                running("11", 125, &["n1.example.org", "n2.example.org"]),
                "-l select=2:ncpus=2:mem=512mb,walltime=1:00:00",
            ),
            &sources,
        ),
        of_detail(
            &detail(view(json!({ "id": "13", "cores": 8, "node_count": 2 })), "-l nodes=2:ppn=4,mem=20gb,cput=30:00"),
            &sources,
        ),
        of_view(&long, &sources),
        of_view(&blank, &sources),
        of_view(&array(), &sources),
        of_view(&finished(json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null })), &sources),
    ]
}

#[test]
fn the_list_of_pbs_pro() {
    let layout = List::default();
    golden("pbspro-list.txt", &list(&jobs(PbsPro), &layout));
    golden("pbspro-list-wide.txt", &list(&jobs(PbsPro), &List { wide: true, comment: Some("going down"), ..layout }));
    golden("pbspro-list-percent.txt", &list(&jobs(PbsPro), &List { percent: true, ..layout }));
    assert_eq!(list(&[], &layout), "");
}

#[test]
fn the_list_of_torque() {
    golden("torque-list.txt", &list(&jobs(Torque), &List { flavour: Torque, ..List::default() }));
}

/// Parsl splits lines at blanks and takes the fifth word as the state.
#[test]
fn the_columns_of_the_list_are_single_words() {
    for flavour in [PbsPro, Torque] {
        let printed = list(&jobs(flavour), &List { flavour, ..List::default() });
        for line in printed.lines().skip(2) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words.len(), 6, "{line}");
            assert!(words[4].len() == 1 && "QHWRSEBFC".contains(words[4]), "{line}");
        }
    }
}

fn layout(flavour: Flavour, now: &jiff::Zoned) -> Alternate<'_> {
    Alternate {
        flavour,
        server: "pbs1",
        comment: None,
        nodes: false,
        comments: false,
        one_line: false,
        wide: false,
        estimates: false,
        units: Units::AsGiven,
        now,
    }
}

#[test]
fn the_alternate_lists() {
    let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
    let (pro, torque) = (layout(PbsPro, &now), layout(Torque, &now));
    let print = |name: &str, layout: &Alternate<'_>| golden(name, &alternate(&jobs(layout.flavour), layout));
    print("pbspro-a.txt", &pro);
    print("pbspro-ans.txt", &Alternate { nodes: true, comments: true, ..pro.clone() });
    print("pbspro-an1.txt", &Alternate { nodes: true, one_line: true, ..pro.clone() });
    print("pbspro-aw.txt", &Alternate { wide: true, comment: Some("going down"), ..pro.clone() });
    print("pbspro-t.txt", &Alternate { estimates: true, ..pro.clone() });
    print("pbspro-ag.txt", &Alternate { units: Units::Gigabytes, ..pro.clone() });
    print("torque-a.txt", &torque);
    print("torque-an.txt", &Alternate { nodes: true, comments: true, ..torque.clone() });
    print("torque-an1.txt", &Alternate { nodes: true, one_line: true, ..torque.clone() });
    assert_eq!(alternate(&[], &pro), "");
    let _ = self::now();
}

/// The state as one letter, for the words of the job model.
#[test]
fn states_have_letters() {
    let state = |members: serde_json::Value, flavour: Flavour| job_state(&view(members), flavour);
    for (members, pro, torque) in [
        (json!({}), 'Q', 'Q'),
        (json!({ "state": "held", "holds": { "user": true } }), 'H', 'H'),
        (json!({ "state": "held", "reason": { "code": "begin_time", "text": "", "job": null } }), 'W', 'W'),
        (json!({ "state": "held", "reason": { "code": "dependency", "text": "", "job": "3" } }), 'H', 'H'),
        (json!({ "state": "held", "reason": { "code": "queue_stopped", "text": "", "job": null } }), 'Q', 'Q'),
        (json!({ "state": "launching" }), 'R', 'R'),
        (json!({ "state": "suspended" }), 'S', 'S'),
        (json!({ "state": "finishing" }), 'E', 'E'),
        (json!({ "state": "finished" }), 'F', 'C'),
        (json!({ "state": "finished", "id": "7_3" }), 'X', 'C'),
    ] {
        assert_eq!((state(members.clone(), PbsPro), state(members.clone(), Torque)), (pro, torque), "{members}");
    }
    assert_eq!((job_state(&array(), PbsPro), job_state(&array(), Torque)), ('B', 'R'));
}

/// PBS-G-05, PBS-G-08
#[test]
fn the_substate_says_how_far_the_files_of_a_job_are() {
    let sources = sources(PbsPro);
    let begin = json!({ "code": "begin_time", "text": "not before noon", "job": null });
    let finished = json!({ "outcome": "completed", "exit_status": { "code": 0 }, "detail": null });
    for (stage, has_before, members, substate, letter) in [
        ("wanted", true, json!({}), "11", 'Q'),
        ("wanted", false, json!({}), "10", 'Q'),
        ("ahead", true, json!({ "state": "held" }), "14", 'Q'),
        ("here", true, json!({}), "16", 'Q'),
        ("coming", true, json!({ "state": "launching" }), "15", 'R'),
        ("here", true, json!({ "state": "running" }), "42", 'R'),
        ("failed", true, json!({ "state": "held", "reason": begin }), "37", 'W'),
        ("leaving", false, json!({ "state": "finished", "outcome": finished }), "51", 'F'),
        ("over", false, json!({ "state": "finished", "outcome": finished }), "92", 'F'),
    ] {
        let mut members = members;
        members["copies"] = json!({ "stage": stage, "has_before": has_before });
        let job = view(members);
        let status = of_view(&job, &sources);
        assert_eq!((status.get("substate"), job_state(&job, PbsPro)), (Some(substate), letter), "{stage}");
    }
}

#[test]
fn a_job_is_printed_with_or_without_its_attributes() {
    let status = of_view(&view(json!({ "name": "a\nb" })), &sources(PbsPro));
    let text = printed(&status, &TimeZone::UTC, true);
    assert!(text.contains("Substate:\t0xa (10)\n") && text.contains("\nJob_Name = a"), "{text}");
    assert!(!text.contains("a\nb"), "a name breaks no line: {text}");
    assert!(!printed(&status, &TimeZone::UTC, false).contains("Job_Name"));
}

fn full() -> Vec<(&'static str, muster_schemas::views::JobDetail)> {
    let run = running("11", 125, &["n1.example.org", "n2.example.org"]);
    let line = "-N test -l select=2:ncpus=2:mem=512mb,walltime=1:00:00 -m ae -M ann@example.org -A phys \
                -v 'LIST=\"a,b\"' -j oe -W depend=afterany:5,umask=022";
    vec![("running", detail(run, line)), ("array", detail(array(), "-J 0-9"))]
}

#[test]
fn all_attributes() {
    for flavour in [PbsPro, Torque] {
        for (name, detail) in full() {
            let status = of_detail(&detail, &sources(flavour));
            golden(&format!("{flavour}-f-{name}.txt"), &text(&[status], &TimeZone::UTC, false));
        }
    }
    let status = of_detail(&full().remove(0).1, &sources(PbsPro));
    let wide = text(one(&status), &TimeZone::UTC, true);
    assert!(wide.lines().all(|line| !line.starts_with('\t')), "{wide}");
    golden("pbspro-dsv.txt", &dsv(&[status], &TimeZone::UTC, "|"));
    let torque: Vec<Status> = full().iter().map(|(_, detail)| of_detail(detail, &sources(Torque))).collect();
    golden("torque.xml", &xml(&torque));
}

#[test]
fn json_is_laid_out_as_the_original() {
    let header = Header { now: ago(0), version: "2026.1", server: "pbs1" };
    let all: Vec<Status> = full().iter().map(|(_, detail)| of_detail(detail, &sources(PbsPro))).collect();
    let printed = json(&all, &TimeZone::UTC, &header);
    golden("pbspro.json", &printed);
    let parsed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(parsed["timestamp"], NOW);
    let job = &parsed["Jobs"]["11.pbs1.example.org"];
    // What PSI/J and Parsl read.
    assert_eq!((&job["job_state"], job["comment"].is_string()), (&json!("R"), true));
    assert_eq!(job["Variable_List"]["LIST"], "a,b");
    assert_eq!(job["Resource_List"]["ncpus"], 4);
    for (name, value) in
        [("42", json!(42)), ("-1.5", json!(-1.5)), ("007", json!("007")), ("1e5", json!("1e5")), ("-", json!("-"))]
    {
        let status = of_view(&view(json!({ "name": name })), &sources(PbsPro));
        let parsed: serde_json::Value = serde_json::from_str(&json(one(&status), &TimeZone::UTC, &header)).unwrap();
        assert_eq!(parsed["Jobs"]["7.pbs1.example.org"]["Job_Name"], value, "a number if it is one");
    }
    let empty = json(&[], &TimeZone::UTC, &header);
    assert_eq!(
        empty,
        format!("{{\n    \"timestamp\":{NOW},\n    \"pbs_version\":\"2026.1\",\n    \"pbs_server\":\"pbs1\"\n}}\n")
    );
}

/// PSI/J takes 265 for a cancelled job, and any other status but 0 for a failed one.
#[test]
fn a_job_that_is_over_has_an_exit_status() {
    let status = |outcome: &str, exit: serde_json::Value, flavour: Flavour| -> String {
        let job = finished(json!({ "outcome": outcome, "exit_status": exit, "detail": null }));
        let status = of_view(&job, &sources(flavour));
        let name = if flavour == PbsPro { "Exit_status" } else { "exit_status" };
        status.get(name).unwrap_or("none").to_owned()
    };
    for (outcome, exit, pro, torque) in [
        ("completed", json!({ "code": 0 }), "0", "0"),
        ("failed", json!({ "code": 3 }), "3", "3"),
        ("failed", json!({ "signal": 9 }), "265", "265"),
        ("cancelled", json!(null), "265", "271"),
        ("timed_out", json!(null), "-29", "-11"),
        ("launch_failed", json!(null), "-1", "-1"),
        ("dependency_never_met", json!(null), "265", "271"),
    ] {
        assert_eq!((status(outcome, exit.clone(), PbsPro), status(outcome, exit, Torque)), (pro.into(), torque.into()));
    }
}

/// PBS-L-06: the comment names the nodes and the time of the start. PBS-P-15: that of a waiting job stands for its time.
#[test]
fn the_comment_of_a_job_says_what_became_of_it() {
    let comment = |job: &JobView| of_view(job, &sources(PbsPro)).get("comment").unwrap().to_owned();
    assert_eq!(comment(&running("11", 125, &["n1", "n2"])), "Job run at Fri Nov 20 at 08:17 on (n1+n2)");
    let waits = view(json!({ "reason": { "code": "resources", "text": "not enough free: cores", "job": null } }));
    assert_eq!(comment(&waits), "Not Running: not enough free: cores");
    let with = |until| {
        let told = json!({ "text": "the limit of ann", "until": until });
        comment(&JobView { comment: serde_json::from_value(told).unwrap(), ..waits.clone() })
    };
    assert_eq!(with(ago(-1)), "Not Running: the limit of ann");
    assert_eq!(with(ago(0)), "Not Running: not enough free: cores");
    let failed =
        json!({ "stage": "failed", "last": { "bytes": null, "milliseconds": 3, "failure": "/d/in: No such file" } });
    let failed = JobView { copies: serde_json::from_value(failed).unwrap(), ..waits.clone() };
    assert_eq!(comment(&failed), "Not Running: not enough free: cores: /d/in: No such file");
    let over = finished(json!({ "outcome": "cancelled", "exit_status": null, "detail": null }));
    assert_eq!(comment(&over), "Job run at Fri Nov 20 at 08:10 on (n1) and was deleted");
}

#[test]
fn output_files_are_shown_by_their_names() {
    let path = |detail: &muster_schemas::views::JobDetail, name: &str, flavour: Flavour| {
        of_detail(detail, &sources(flavour)).get(name).unwrap().to_owned()
    };
    let job = detail(view(json!({ "id": "7" })), "-N test -e err -o /dev/null");
    assert_eq!(path(&job, "Error_Path", PbsPro), "login1.example.org:/data/run 1/err");
    assert_eq!(path(&job, "Output_Path", PbsPro), "login1.example.org:/dev/null");
    let joined = detail(view(json!({ "id": "7", "name": "test" })), "-N test -j oe");
    assert_eq!(path(&joined, "Error_Path", Torque), "login1.example.org:/data/run 1/test.o7");
    let task = detail(view(json!({ "id": "7_3", "name": "test" })), "-N test -J 0-3");
    assert_eq!(path(&task, "Output_Path", PbsPro), "login1.example.org:/data/run 1/test.o7.3");
    assert_eq!(
        path(&detail(array(), "-J 0-9"), "Output_Path", PbsPro),
        "login1.example.org:/data/run 1/sweep.o12.^array_index^"
    );
}

#[test]
fn tasks_that_have_not_started_are_listed_one_by_one() {
    let task = of_task(&array(), 5, &sources(PbsPro));
    assert_eq!(
        (task.name.as_str(), task.get("job_state"), task.get("array_index")),
        ("12[5].pbs1.example.org", Some("Q"), Some("5"))
    );
}

fn one(status: &Status) -> &[Status] {
    std::slice::from_ref(status)
}

proptest! {
    #[test]
    fn hostile_names_break_no_table(name in "\\PC{0,40}", owner in "\\PC{0,20}", control in "[\\x00-\\x1f<&>\"]{0,9}") {
        let job = view(json!({ "name": format!("{name}{control}"), "owner": owner, "queue": control }));
        for flavour in [PbsPro, Torque] {
            let status = of_view(&job, &sources(flavour));
            let now = ago(0).to_jiff().to_zoned(TimeZone::UTC);
            let printed = list(one(&status), &List { flavour, ..List::default() });
            prop_assert_eq!(printed.lines().count(), 3, "{}", printed);
            let all = Alternate { nodes: true, comments: true, ..layout(flavour, &now) };
            let _ = (alternate(one(&status), &all), text(one(&status), &TimeZone::UTC, false));
            let header = Header { now: ago(0), version: &name, server: &owner };
            prop_assert!(serde_json::from_str::<serde_json::Value>(&json(one(&status), &TimeZone::UTC, &header)).is_ok());
            prop_assert_eq!(dsv(one(&status), &TimeZone::UTC, "|").lines().count(), 1);
            let printed = xml(&[status]);
            prop_assert!(!printed.contains('\0'));
        }
    }
}

/// The list of very many jobs, which is made from their views, is that of all their attributes.
#[test]
fn views_are_listed_like_jobs_with_all_attributes() {
    for flavour in [PbsPro, Torque] {
        let task = JobView { id: JobId::task(7, 3), ..running("9", 5, &["n1"]) };
        let odd = JobView {
            name: "a name\tof several words".into(),
            owner: "a-user-with-a-long-name".into(),
            ..view(json!({}))
        };
        let views = [view(json!({})), running("11", 125, &["n1", "n2"]), array(), task, odd];
        for server in ["pbs1", "pbs1.example.org", ""] {
            let sources = Sources { server, ..sources(flavour) };
            let whole: Vec<Status> = views.iter().map(|view| of_view(view, &sources)).collect();
            for layout in [List { flavour, ..List::default() }, List { flavour, wide: true, ..List::default() }] {
                let listed = list_of_views(&views, &layout, &sources);
                assert_eq!(listed, list(&whole, &layout));
                assert_eq!(listed.lines().count(), 2 + views.len());
            }
        }
        assert_eq!(list_of_views(&[], &List::default(), &sources(flavour)), "");
    }
}
