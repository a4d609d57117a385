//! Orders of several ledgers, of which one leads.

mod common;

use common::{Node, until};
use muster_executor::ContainmentMode;
use muster_schemas::{
    PartId, RunId,
    event::{EndCause, StopReason},
    node::NodeOrder,
};

fn stop(run: u64) -> NodeOrder {
    NodeOrder::Stop { part: PartId::new(RunId(run), 0), reason: StopReason::NodeLost, grace_seconds: 0 }
}

impl Node {
    /// Waits until the ledger has had this many more signs of life, by greetings or heartbeats.
    async fn is_heard(&self, times: usize) {
        let heard = || {
            let notes = self.notes.lock().unwrap();
            notes.heartbeats as usize + notes.commands.len()
        };
        let wanted = heard() + times;
        until("signs of life", || (heard() >= wanted).then_some(())).await;
    }
}

/// M-EXE-7: a ledger that was paused while another took its place orders the end of a run, by an order and by the answer
/// to a sign of life; the run continues, also when the executor has been restarted meanwhile. Programs of earlier versions
/// and a ledger alone send epoch 0, and are obeyed by nodes that know no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_leads_no_longer_ends_no_run() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    nix::unistd::mkfifo(&node.work("go"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    node.launch(node.script(1, "read line < go; echo $line")).await;
    node.started(1).await;

    node.notes.lock().unwrap().epoch = 2;
    // A newer epoch comes with an answer, and with an order.
    node.is_heard(2).await;
    node.order_in(3, NodeOrder::Tell { part: PartId::new(RunId(1), 0), text: "told".into() }).await;
    until("the epoch in the spool", || {
        (std::fs::read_to_string(node.spool().join("epoch")).ok()? == "3\n").then_some(())
    })
    .await;
    node.stop_executor().await;
    {
        // Now the ledger of epoch 2 answers again.
        let mut notes = node.notes.lock().unwrap();
        notes.orders = vec![stop(1)];
    }
    let answered = {
        // It is not ready as long as no ledger answers that leads.
        let notes = node.notes.clone();
        async move {
            until("an answer with the order", || notes.lock().unwrap().orders.is_empty().then_some(())).await;
            notes.lock().unwrap().epoch = 3;
        }
    };
    tokio::join!(node.start_executor(), answered);
    node.order_in(2, stop(1)).await;
    node.is_heard(2).await;
    std::fs::write(node.work("go"), "done\n").unwrap();
    let exit = node.ended(1).await;
    assert_eq!(exit.cause, EndCause::Itself);
    assert_eq!(node.read("out-1").lines().next_back(), Some("done"));
}
