//! `sdiag` and the tables of `sacctmgr`.

use crate::support::{ago, assert_lines, clock};
use muster_slurm::{
    show::{
        columns::ListStyle,
        sacctmgr::{self, Account, Association, Cluster, Limits, Qos, User},
        sdiag::{Diagnosis, Passes, sdiag},
    },
    words::State,
};

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

/// SL-L-02
#[test]
fn limits_of_users_in_accounts_are_a_table() {
    let limits = Limits { jobs: Some(2), walltime_seconds: Some(3600), ..Limits::default() };
    let row = Association {
        cluster: "alpha".to_owned(),
        account: "test".to_owned(),
        user: "ann".to_owned(),
        classes: vec!["normal".to_owned(), "high".to_owned()],
        limits,
        ..Association::default()
    };
    let bars = ListStyle::Separated { by: "|".to_owned(), ends: false };
    let listed = sacctmgr::list(
        std::slice::from_ref(&row),
        Some("cluster,account,user,maxjobs,maxsubmit,maxwall,qos"),
        &bars,
        false,
        &clock(),
    );
    assert_eq!(
        listed.as_deref(),
        Ok("Cluster|Account|User|MaxJobs|MaxSubmit|MaxWall|QOS\nalpha|test|ann|2||01:00:00|normal,high\n")
    );
    assert!(sacctmgr::list(&[row], Some("nope"), &bars, false, &clock()).is_err());
}

/// SL-L-02
#[test]
fn accounts_users_classes_and_clusters_have_their_usual_columns() {
    let columns = ListStyle::Columns;
    let user = User { name: "ann".to_owned(), default_account: "test".to_owned(), admin: "None" };
    let listed = sacctmgr::list(&[user], None, &columns, false, &clock()).unwrap();
    assert_lines(
        &listed,
        "      User   Def Acct     Admin\n---------- ---------- ---------\n       ann       test      None\n",
    );
    let account = Account { name: "test".to_owned(), ..Account::default() };
    let listed = sacctmgr::list(&[account], None, &columns, false, &clock()).unwrap();
    assert_eq!(listed.lines().next(), Some("   Account                Descr                  Org "));
    let qos = Qos { name: "normal".to_owned(), ..Qos::default() };
    let listed = sacctmgr::list(&[qos], Some("Name,Priority"), &columns, true, &clock()).unwrap();
    assert_eq!(listed, "    normal          0 \n");
    let cluster = Cluster { name: "alpha".to_owned(), host: "head".to_owned(), port: 6817 };
    let listed = sacctmgr::list(&[cluster], None, &columns, true, &clock()).unwrap();
    assert_eq!(listed, "     alpha            head         6817 \n");
}
