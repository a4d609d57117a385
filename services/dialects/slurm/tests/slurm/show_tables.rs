//! `sdiag` and the tables of `sacctmgr`.

use crate::support::{ago, assert_lines, clock};
use muster_schemas::{
    Sequence,
    accounts::{
        AccountSettings, AccountSpec, AssociationKey, AssociationSpec, Bounds, ClassSpec, JobBounds, UseLimits,
        UserSpec,
    },
    cluster::ClusterSettings,
    plan::ComponentMode,
    views::{AccountsPage, BackfillPassView, OutcomeWord, PlannerCycles, Statistics},
};
use muster_slurm::{
    show::{
        columns::ListStyle,
        sacctmgr::{self, Account, AsData as _, Cluster, Listed as _, User},
        sdiag::{Diagnosis, Passes, sdiag},
    },
    words::State,
};
use serde_json::{Value, json};

/// SL-P-06
#[test]
fn the_mode_of_the_last_backfill_pass_and_how_many_there_were_are_told() {
    let diagnosis = Diagnosis {
        since: Some(ago(3600)),
        submitted: 9,
        started: 7,
        states: [(State::Pending, 2), (State::Running, 1)].into(),
        ended: [(State::Completed, 4), (State::Cancelled, 1), (State::Timeout, 1)].into(),
        main: Passes {
            count: 4,
            last_micros: 10,
            max_micros: 30,
            total_micros: 80,
            last_depth: 2,
            ..Passes::default()
        },
        backfill: Passes { count: 3, last: Some(ago(30)), queue_length: 2, ..Passes::default() },
        backfilled: 5,
        backfilled_components: 3,
        backfill_mode: Some(2),
    };
    assert_lines(&sdiag(&diagnosis, &clock()), include_str!("golden/sdiag.txt"));
}

/// Two accounts, one below the other, and a user.
pub(crate) fn page() -> AccountsPage {
    let account = |name: &str, parent: Option<&str>| AccountSpec {
        name: name.to_owned(),
        description: name.to_owned(),
        organisation: "org".to_owned(),
        parent: parent.map(str::to_owned),
        ..AccountSpec::default()
    };
    let of = |account: &str, user: Option<&str>| AssociationKey {
        account: account.to_owned(),
        user: user.map(str::to_owned),
        queue: None,
    };
    let limits = UseLimits {
        each_user: Bounds { running_jobs: Some(2), ..Bounds::default() },
        together: Bounds { cores: Some(8), nodes: Some(4), memory_bytes: Some(10 << 30), ..Bounds::default() },
        each_job: JobBounds { walltime_seconds: Some(3600), ..JobBounds::default() },
        ..UseLimits::default()
    };
    AccountsPage {
        settings: AccountSettings::default(),
        accounts: vec![account("science", None), account("test", Some("science"))],
        users: vec![UserSpec { name: "ann".to_owned(), default_account: "test".to_owned() }],
        associations: vec![
            AssociationSpec {
                of: of("science", None),
                classes: vec!["high".to_owned(), "normal".to_owned()],
                ..AssociationSpec::default()
            },
            AssociationSpec { of: of("test", None), ..AssociationSpec::default() },
            AssociationSpec { of: of("test", Some("ann")), limits: limits.clone(), ..AssociationSpec::default() },
        ],
        classes: vec![ClassSpec {
            name: "high".to_owned(),
            priority: 50,
            limits,
            refuses_hopeless: true,
            ..ClassSpec::default()
        }],
        used: Vec::new(),
        sequence: Sequence(1),
        time: ago(0),
    }
}

/// SL-L-02
#[test]
fn limits_of_users_in_accounts_are_a_table() {
    let rows = sacctmgr::associations(&page(), "alpha");
    let bars = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let format = "cluster,account,user,parentn,maxjobs,maxs,maxw,grptres,qos";
    let listed = sacctmgr::list(&rows, format, &bars, false, &clock()).unwrap();
    assert_lines(
        &listed,
        "Cluster|Account|User|ParentName|MaxJobs|MaxSubmit|MaxWall|GrpTRES|QOS\n\
         alpha|root||||||\u{7c}normal\n\
         alpha|root|root|||||\u{7c}normal\n\
         alpha|science||root||||\u{7c}high,normal\n\
         alpha|test||science||||\u{7c}high,normal\n\
         alpha|test|ann||2||01:00:00|cpu=8,mem=10G,node=4|high,normal\n",
    );
    assert!(sacctmgr::list(&rows, "nope", &bars, false, &clock()).is_err());
}

/// SL-L-02
#[test]
fn accounts_users_classes_and_clusters_have_their_usual_columns() {
    let (columns, page) = (ListStyle::Columns, page());
    let settings = ClusterSettings { operators: vec!["ann".to_owned()], ..ClusterSettings::default() };
    let listed = sacctmgr::list(&sacctmgr::users(&page, &settings), User::USUAL, &columns, false, &clock()).unwrap();
    assert_lines(
        &listed,
        "      User   Def Acct     Admin\n---------- ---------- ---------\n       ann       test  Operator\n      root       root Administ+\n",
    );
    let listed = sacctmgr::list(&sacctmgr::accounts(&page), Account::USUAL, &columns, false, &clock()).unwrap();
    assert_lines(
        &listed,
        "   Account                Descr                  Org\n---------- -------------------- --------------------\n      \
         root default root account                 root\n   science              science                  org\n      \
         test                 test                  org\n",
    );
    let format = "name%8,prio,flags,grpt,grpj,maxw,maxjobsperuser,maxsubmitpu";
    let listed = sacctmgr::list(&sacctmgr::classes(&page), format, &columns, true, &clock()).unwrap();
    assert_lines(
        &listed,
        "  normal          0\n    high         50          DenyOnLimit cpu=8,mem=10+            01:00:00         2\n",
    );
    let cluster = Cluster { name: "alpha".to_owned(), host: "head".to_owned(), port: 6817 };
    let listed = sacctmgr::list(&[cluster], "cluster,controlh,controlp", &columns, true, &clock()).unwrap();
    assert_eq!(listed, "     alpha            head         6817 \n");
}

/// SL-P-06: a gateway's counts in the terms of `sdiag`.
#[test]
fn a_gateway_s_counts_are_what_sdiag_tells() {
    let statistics = Statistics {
        since: ago(60),
        submitted: 9,
        started: 7,
        backfilled: 2,
        backfilled_components: 3,
        ended: [
            (OutcomeWord::Completed, 3),
            (OutcomeWord::Cancelled, 1),
            (OutcomeWord::Failed, 2),
            (OutcomeWord::TimedOut, 1),
        ]
        .into(),
        plans: 20,
        last_plan: Some(ago(5)),
        last_plan_jobs: 4,
        waiting: 2,
        active: 1,
        cycles: Some(PlannerCycles { count: 30, total_micros: 600, last_micros: 10, longest_micros: 90 }),
        backfill_pass: None,
    };
    let text = sdiag(&Diagnosis::of(&statistics), &clock());
    for line in [
        "Jobs submitted: 9",
        "Jobs started:   7",
        "Jobs completed: 3",
        "Jobs canceled:  1",
        "Jobs failed:    3",
        "Jobs pending:   2",
        "Jobs running:   1",
        "\tTotal cycles: 30",
        "\tMean cycle: 20",
        "\tMax cycle: 90",
        "\tTotal backfilled jobs (since last slurm start): 2",
        "\tTotal backfilled heterogeneous job components: 3",
    ] {
        assert!(text.lines().any(|known| known == line), "{line:?} is missing:\n{text}");
    }
    let pass = BackfillPassView { number: 6, at: ago(7), mode: ComponentMode::Together };
    let by_passes = Diagnosis::of(&Statistics { backfill_pass: Some(pass), ..statistics.clone() });
    assert_eq!((by_passes.backfill_mode, by_passes.backfill.count, by_passes.main.count), (Some(2), 6, 30));
    assert_eq!(by_passes.backfill.last, Some(ago(7)));
    let without = Diagnosis::of(&Statistics { cycles: None, ..statistics });
    assert_eq!((without.main.count, without.main.max_micros), (20, 0), "plans are counted, nobody timed them");
}

/// SL-L-02: `withassoc` shows users and accounts once for each of their associations.
#[test]
fn users_and_accounts_are_shown_with_their_associations() {
    let (page, settings) = (page(), ClusterSettings::default());
    let associations = sacctmgr::associations(&page, "alpha");
    let bars = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let users = sacctmgr::with_associations(sacctmgr::users(&page, &settings), &associations);
    let format = "user,cluster,account,maxjobs,maxsubmitjobsperuser,qos";
    let listed = sacctmgr::list(&users, format, &bars, true, &clock()).unwrap();
    assert_lines(&listed, "ann|alpha|test|2||high,normal\nroot|alpha|root|||normal\n");
    let accounts = sacctmgr::with_associations(sacctmgr::accounts(&page), &associations);
    let listed = sacctmgr::list(&accounts, "account,user,parentn", &bars, true, &clock()).unwrap();
    assert_lines(&listed, "root||\nroot|root|\nscience||root\ntest||science\ntest|ann|\n");
    let alone = sacctmgr::users(&page, &settings);
    let listed = sacctmgr::list(&alone, format, &bars, true, &clock()).unwrap();
    assert_lines(&listed, "ann|||||\nroot|||||\n");
    let usual = format!("{}{}", User::USUAL, User::WITH_ASSOCIATIONS);
    assert!(sacctmgr::list(&users, &usual, &bars, true, &clock()).is_ok());
}

/// SL-L-02: changes of accounts come from the log.
#[test]
fn changes_of_accounts_are_transactions() {
    let change =
        serde_json::json!({ "user": { "before": null, "after": { "name": "ann", "default_account": "test" } } });
    let event = serde_json::json!({ "time": ago(5), "actor": "user:root", "data": { "changes": [change] } });
    let rows = sacctmgr::transactions(&event.to_string());
    let bars = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let listed = sacctmgr::list(&rows, "time,action,actor,where", &bars, true, &clock()).unwrap();
    assert_eq!(listed, "2026-11-20T08:19:55|Add Users|root|ann\n");
    assert!(sacctmgr::transactions("{}").is_empty());
}

/// SL-A-11, SL-L-02: accounts, users, associations, QOS and clusters as data for programs, in Slurm's shape.
#[test]
fn accounts_are_shown_as_data_too() {
    let page = page();
    let with = sacctmgr::associations(&page, "alpha");
    let accounts: Vec<Value> = sacctmgr::accounts(&page).iter().map(|row| row.data(&with)).collect();
    let root = accounts.iter().find(|row| row["name"] == "root").expect("the root account");
    assert_eq!(root["associations"].as_array().map(Vec::len), Some(2), "the account, and root in it");
    assert_eq!(sacctmgr::accounts(&page)[0].data(&[])["associations"], json!([]), "only if they are asked for");
    let users: Vec<Value> =
        sacctmgr::users(&page, &ClusterSettings::default()).iter().map(|row| row.data(&[])).collect();
    let root = users.iter().find(|row| row["name"] == "root").expect("the user root");
    assert_eq!(root["administrator_level"], json!(["Administrator"]));
    let limits = UseLimits {
        each_job: JobBounds { walltime_seconds: Some(7200), ..JobBounds::default() },
        together: Bounds { cores: Some(8), memory_bytes: Some(3 << 20), ..Bounds::default() },
        ..UseLimits::default()
    };
    let class = ClassSpec { name: "long".into(), priority: 7, cancels_preempted: true, limits, ..ClassSpec::default() };
    let data = sacctmgr::Qos(class).data(&[]);
    assert_eq!((&data["name"], &data["priority"]["number"]), (&json!("long"), &json!(7)));
    assert_eq!(data["limits"]["max"]["wall_clock"]["per"]["job"]["number"], json!(120));
    let total =
        json!([{ "type": "cpu", "name": "", "id": 1, "count": 8 }, { "type": "mem", "name": "", "id": 2, "count": 3 }]);
    assert_eq!((&data["limits"]["max"]["tres"]["total"], &data["preempt"]["mode"]), (&total, &json!(["CANCEL"])));
    let association = with.iter().find(|one| one.spec.of.user.is_none()).expect("an account").data(&[]);
    assert_eq!((&association["cluster"], &association["user"]), (&json!("alpha"), &json!("")));
    assert_eq!(association["max"]["jobs"]["active"], json!({ "set": false, "infinite": true, "number": 0 }));
    let cluster = Cluster { name: "alpha".into(), host: "h".into(), port: 6817 }.data(&[]);
    assert_eq!(cluster["controller"], json!({ "host": "h", "port": 6817 }));
    assert_eq!((sacctmgr::TRES[0].data(&[])["type"].clone(), sacctmgr::Tres::LIST), (json!("cpu"), "TRES"));
}

/// SL-L-02: `tree` indents accounts below those above them, and users below their accounts.
#[test]
fn a_tree_indents_accounts() {
    let page = page();
    let mut rows = sacctmgr::associations(&page, "alpha");
    sacctmgr::indent(&mut rows, &page);
    let style = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let shown = sacctmgr::list(&rows, "account,user", &style, true, &clock()).expect("known columns");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(&lines[..2], ["root|", " root|root"]);
    for account in &page.accounts {
        let depth = 1 + usize::from(account.parent.is_some());
        let line = format!("{:depth$}{}|", "", account.name);
        assert!(lines.contains(&line.as_str()), "{line}: {lines:?}");
    }
}
