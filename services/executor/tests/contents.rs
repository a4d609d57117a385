//! Orders with parts named by their hash: missing contents are fetched once, and nothing starts without them.

mod common;

use common::*;
use muster_executor::ContainmentMode;
use muster_schemas::{
    PartId, RunId, codec,
    content::{ContentHash, Missing},
    event::{EndCause, StopReason},
    job::Program,
    node::{LaunchOrder, NodeOrder, OrderNode, ShortOrder},
};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

fn content<T: Serialize>(value: &T) -> (ContentHash, Vec<u8>) {
    let bytes = codec::encode(value).unwrap();
    (ContentHash::of(&bytes), bytes)
}

/// An environment of several parts.
fn environment() -> BTreeMap<String, String> {
    let mut variables: BTreeMap<_, _> = (0..40).map(|at| (format!("LONG_{at}"), "x".repeat(60))).collect();
    variables.insert("PATH".into(), "/usr/bin:/bin".into());
    variables.insert("BOTH".into(), "of the job".into());
    variables
}

/// The order without its environment, script and nodes; and these contents.
fn shortened(mut order: LaunchOrder) -> (NodeOrder, Vec<(ContentHash, Vec<u8>)>) {
    let environment = content(&environment());
    order.environment = [("BOTH".to_owned(), "of the order".to_owned())].into();
    let Program::Script { text, .. } = &mut order.launch.program else { panic!("it has a script") };
    let script = content(&std::mem::take(text));
    let nodes: Vec<OrderNode> = Arc::unwrap_or_clone(std::mem::take(&mut order.nodes));
    let nodes = content(&nodes);
    let missing = Missing { environment: Some(environment.0), script: Some(script.0), nodes: Some(nodes.0) };
    let order = order.into();
    (NodeOrder::ByHash(Box::new(ShortOrder { order, missing })), vec![environment, script, nodes])
}

fn knows(node: &Node, contents: &[(ContentHash, Vec<u8>)]) {
    node.notes.lock().unwrap().contents.extend(contents.iter().cloned());
}

fn asked(node: &Node, hash: ContentHash) -> usize {
    node.notes.lock().unwrap().asked.iter().filter(|(asked, _)| *asked == hash).count()
}

async fn has_asked(node: &Node, hash: ContentHash) {
    until("a question for the content", || (asked(node, hash) > 0).then_some(())).await;
}

fn said(node: &Node, run: u64) -> String {
    node.read(&format!("out-{run}"))
}

const SCRIPT: &str = "echo $BOTH $LONG_39 $MUSTER_NODELIST";

/// Large contents are fetched in parts, once, and kept for later orders; values in the order itself take precedence.
#[tokio::test(flavor = "multi_thread")]
async fn contents_are_fetched_once() {
    let mut node = Node::start(ContainmentMode::Process).await;
    let (order, contents) = shortened(node.script(1, SCRIPT));
    knows(&node, &contents);
    node.order(order).await;
    assert_eq!(node.ended(1).await.status, code(0));
    let line = format!("of the order {} {NODE}\n", "x".repeat(60));
    assert_eq!(said(&node, 1), line);
    let parts: Vec<usize> = contents.iter().map(|(_, bytes)| bytes.len().div_ceil(PART_BYTES)).collect();
    assert_eq!(contents.iter().map(|(hash, _)| asked(&node, *hash)).collect::<Vec<_>>(), parts);
    assert!(parts[0] > 1);

    // Many at the same time, for another job with the same contents.
    for run in 2..6 {
        node.order(shortened(node.script(run, SCRIPT)).0).await;
    }
    for run in 2..6 {
        assert_eq!(node.ended(run).await.status, code(0));
        assert_eq!(said(&node, run), line);
    }
    assert_eq!(contents.iter().map(|(hash, _)| asked(&node, *hash)).collect::<Vec<_>>(), parts, "they are kept");
    node.stop_executor().await;
}

/// A launch whose content is refused, or arrives with another hash, is dropped: nothing starts, and no end is reported.
/// It runs when the order comes again.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_without_its_contents_is_dropped_and_can_be_ordered_again() {
    let mut node = Node::start(ContainmentMode::Process).await;
    let (order, contents) = shortened(node.script(1, SCRIPT));
    let (script, right) = contents[1].clone();
    knows(&node, &contents[..1]);
    node.order(order.clone()).await;
    has_asked(&node, script).await;
    // Other bytes, which would decode without error.
    let (_, wrong) = content(&"#!/bin/sh\necho wrong\n");
    knows(&node, &[(script, wrong), contents[2].clone()]);
    let before = asked(&node, script);
    until("another question", || {
        let mut notes = node.notes.lock().unwrap();
        notes.orders = vec![order.clone()];
        let count = notes.asked.iter().filter(|(asked, _)| *asked == script).count();
        (count > before).then_some(())
    })
    .await;
    assert_eq!(node.ends_told(1), 0);
    assert_eq!(said(&node, 1), "");
    knows(&node, &[(script, right)]);
    let ended = until("the end of the run", || {
        let mut notes = node.notes.lock().unwrap();
        notes.orders = vec![order.clone()];
        drop(notes);
        (node.ends_told(1) > 0).then_some(())
    });
    ended.await;
    assert_eq!(node.ended(1).await.status, code(0));
    assert_eq!(said(&node, 1).lines().count(), 1, "it ran once");
    node.stop_executor().await;
}

/// A run that is stopped while its contents are fetched never starts, whatever comes later.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_is_stopped_while_its_contents_are_fetched_never_starts() {
    let mut node = Node::start(ContainmentMode::Process).await;
    node.notes.lock().unwrap().silent_about_contents = true;
    let (order, contents) = shortened(node.script(1, SCRIPT));
    node.order(order.clone()).await;
    has_asked(&node, contents[0].0).await;
    node.stop(1, StopReason::Cancelled, 1).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.started, exit.cause), (None, EndCause::Killed));
    knows(&node, &contents);
    node.notes.lock().unwrap().silent_about_contents = false;
    // The contents arrive now, and nobody wants them. A later run shows that everything before it was done.
    has_asked(&node, contents[2].0).await;
    node.order(order).await;
    let (next, more) = shortened(node.script(2, SCRIPT));
    knows(&node, &more);
    node.order(next).await;
    assert_eq!(node.ended(2).await.status, code(0));
    assert_eq!(said(&node, 1), "");
    assert_eq!(node.ends_told(1), 1);
    node.stop_executor().await;
}

/// A run that is forgotten while its contents are fetched does not start, and leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_is_forgotten_while_its_contents_are_fetched_leaves_nothing() {
    let mut node = Node::start(ContainmentMode::Process).await;
    node.notes.lock().unwrap().silent_about_contents = true;
    let (order, contents) = shortened(node.script(1, SCRIPT));
    node.order(order).await;
    has_asked(&node, contents[0].0).await;
    node.order(NodeOrder::Forget { part: PartId::new(RunId(1), 0) }).await;
    // Orders are obeyed one after the other: once this has run, the other one is forgotten.
    assert_eq!(node.run(node.script(3, "exit 0")).await.status, code(0));
    knows(&node, &contents);
    node.notes.lock().unwrap().silent_about_contents = false;
    // The contents arrive now, and nobody wants them.
    has_asked(&node, contents[2].0).await;
    let (next, more) = shortened(node.script(2, SCRIPT));
    knows(&node, &more);
    node.order(next).await;
    assert_eq!(node.ended(2).await.status, code(0));
    assert_eq!((said(&node, 1), node.ends_told(1)), (String::new(), 0));
    node.stop_executor().await;
}
