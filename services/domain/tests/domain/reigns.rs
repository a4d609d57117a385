//! The lead among several ledgers.

use crate::support::*;
use muster_schemas::{
    Timestamp,
    command::{Command, RefusalCode},
    event::{Actor, Event},
};

fn hand_over(to: Option<&str>) -> Command {
    Command::HandOver { to: to.map(str::to_owned) }
}

/// M-LOG-19: operators let another ledger lead, if there are others.
#[test]
fn operators_let_another_ledger_lead() {
    let mut cluster = Cluster::new();
    cluster.refused(&root(), hand_over(None), RefusalCode::Conflict, "no others");
    let claim = Event::LedgerLeads { epoch: 1, ledger: "head1".into(), stream_created: Timestamp(1) };
    cluster.append(&Actor::Ledger, vec![claim]);
    cluster.refused(&user("ann"), hand_over(None), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&root(), hand_over(Some("head1")), RefusalCode::Conflict, "leads already");
    cluster.refused(&root(), hand_over(Some("")), RefusalCode::Invalid, "1 to 255");
    cluster.refused(&root(), hand_over(Some("a\nb")), RefusalCode::Invalid, "1 to 255");
    let told = |to: Option<&str>| Event::LedgerHandsOver { ledger: "head1".into(), to: to.map(str::to_owned) };
    assert_eq!(cluster.ok(&root(), hand_over(Some("head2"))), [told(Some("head2"))]);
    assert_eq!(cluster.ok(&root(), hand_over(None)), [told(None)]);
    cluster.assert_replays();
}
