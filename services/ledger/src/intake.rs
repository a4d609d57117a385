//! Messages from the bus: they are decoded, and the kind of their sender is checked, before the decide loop sees them.

use crate::{
    contents::Contents,
    fence::{Fence, FenceError, patiently},
    handle::EngineHandle,
    queries::Queries,
    work::refusal,
};
use muster_bus::{BusError, Message, Request, RequestStream, SharedBus, Subscription};
use muster_schemas::{
    codec::CodecError,
    command::{CommandEnvelope, Query, QueryAnswer, Refusal, RefusalCode},
    content::{ContentAnswer, ContentRequest},
    event::Actor,
    filter_order::RunnerHeartbeat,
    node::Heartbeat,
    subjects,
};
use serde::Serialize;
use std::sync::Arc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The number of requests taken from the bus at a time.
const AT_A_TIME: usize = 256;

/// Which actors may use a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Users,
    Planner,
    Notifiers,
    Nodes,
    Runners,
}

impl Door {
    fn lets_in(self, actor: &Actor, subject: &str) -> bool {
        match (self, actor) {
            (Self::Users, Actor::User(_)) | (Self::Planner, Actor::Planner) | (Self::Notifiers, Actor::Notifier) => {
                true
            }
            (Self::Nodes, Actor::Executor(node)) => subjects::command_node(node) == subject,
            (Self::Runners, Actor::Runner(name)) => subjects::command_runner(name) == subject,
            _ => false,
        }
    }
}

/// Serves all subjects of the ledger until `shutdown`. Once this returns, requests reach it. Whoever waits for the
/// answer of an earlier ledger then learns that this one answers.
///
/// A ledger that leads no longer, and does not know it yet, may be listening still. So no request is shared with others:
/// what only that one got would wait there.
///
/// # Errors
/// If the bus does not let it serve them.
pub(crate) async fn start(
    bus: &SharedBus,
    fence: &Fence,
    engine: &EngineHandle,
    queries: &Arc<Queries>,
    contents: &Arc<Contents>,
    shutdown: &CancellationToken,
) -> Result<TaskTracker, BusError> {
    let tasks = TaskTracker::new();
    let doors = [
        (subjects::COMMAND_USER.to_owned(), Door::Users),
        (subjects::COMMAND_PLANNER.to_owned(), Door::Planner),
        (subjects::COMMAND_NOTIFIER.to_owned(), Door::Notifiers),
        ("muster.command.node.*".to_owned(), Door::Nodes),
        ("muster.command.runner.*".to_owned(), Door::Runners),
    ];
    for (pattern, door) in doors {
        let requests = bus.serve_all(&pattern).await?;
        let engine = engine.clone();
        tasks.spawn(serve(requests, shutdown.clone(), move |request| command(&engine, door, request)));
    }
    let requests = bus.serve_all("muster.command.heartbeat.*").await?;
    let heart = engine.clone();
    tasks.spawn(serve(requests, shutdown.clone(), move |request| heartbeat(&heart, request)));
    let requests = bus.serve_all("muster.command.runner-heartbeat.*").await?;
    let heart = engine.clone();
    tasks.spawn(serve(requests, shutdown.clone(), move |request| runner_heartbeat(&heart, request)));
    let requests = bus.serve_all("muster.command.content.*").await?;
    let (heart, contents) = (engine.clone(), Arc::clone(contents));
    // The envelope of a part takes some bytes as well.
    let max_bytes = bus.max_payload_bytes() / 2;
    tasks.spawn(serve(requests, shutdown.clone(), move |request| content(&heart, &contents, max_bytes, request)));
    let requests = bus.serve_all(subjects::QUERY).await?;
    let all = Arc::clone(queries);
    tasks.spawn(serve(requests, shutdown.clone(), move |request| query(&all, request)));
    let requests = bus.serve_all(subjects::HEAD).await?;
    let queries = Arc::clone(queries);
    tasks.spawn(serve(requests, shutdown.clone(), move |request| {
        // Whatever the message says: senders on this subject may learn nothing else.
        Arc::clone(&queries).answer(Query::Head, move |answer| reply(request, &answer));
    }));
    tasks.spawn(tell_that_it_answers(Arc::clone(bus), fence.epoch(), shutdown.clone()));
    if fence.is_of_several() {
        let others = bus.subscribe(subjects::REIGN).await?;
        let (fence, shutdown) = (fence.clone(), shutdown.clone());
        tasks.spawn(async move {
            shutdown.run_until_cancelled(heed_later_reigns(others, fence)).await;
        });
    }
    tasks.close();
    Ok(tasks)
}

/// Says that this ledger answers, now and whenever requests may have been lost because the bus was interrupted.
async fn tell_that_it_answers(bus: SharedBus, epoch: u64, shutdown: CancellationToken) {
    let mut interruptions = bus.interruptions();
    let message = match Message::encode(&epoch) {
        Ok(message) => message,
        Err(error) => return tracing::error!(%error, "callers are not told that this ledger answers"),
    };
    let telling = async {
        loop {
            let told = patiently("telling that this ledger answers", || bus.publish(subjects::REIGN, message.clone()));
            if let Err(error) = told.await {
                return tracing::warn!(%error, "callers are not told that this ledger answers; they ask again later");
            }
            if interruptions.changed().await.is_err() {
                return;
            }
        }
    };
    shutdown.run_until_cancelled(telling).await;
}

/// Ends the reign of a ledger that has been replaced and cannot learn it from the stream: its refusals would come before the
/// answers of its successor.
async fn heed_later_reigns(mut others: Subscription, fence: Fence) {
    while let Some(told) = others.next().await {
        if told.message.decode::<u64>().is_ok_and(|epoch| epoch > fence.epoch()) {
            return fence.lose(FenceError::AnotherWrites);
        }
    }
}

async fn serve(mut requests: RequestStream, shutdown: CancellationToken, handle: impl Fn(Request)) {
    let mut arrived = Vec::with_capacity(AT_A_TIME);
    while let Some(1..) = shutdown.run_until_cancelled(requests.next_many(&mut arrived, AT_A_TIME)).await {
        arrived.drain(..).for_each(&handle);
    }
}

fn command(engine: &EngineHandle, door: Door, request: Request) {
    let envelope: CommandEnvelope = match request.message.decode() {
        Ok(envelope) => envelope,
        Err(error) => {
            let message = format!("the command cannot be understood: {error}");
            return reply(request, &refusal(engine.sequence(), RefusalCode::Invalid, message));
        }
    };
    if !door.lets_in(&envelope.actor, &request.subject) {
        let message = format!("`{}` does not take commands of this actor", request.subject);
        return reply(request, &refusal(engine.sequence(), RefusalCode::PermissionDenied, message));
    }
    engine.command(Box::new(envelope), Box::new(move |answer| reply(request, &answer)));
}

fn heartbeat(engine: &EngineHandle, request: Request) {
    match request.message.decode::<Heartbeat>() {
        Ok(heartbeat) if subjects::heartbeat(&heartbeat.node) == request.subject => {
            engine.heartbeat(heartbeat, Box::new(move |briefing| reply(request, &briefing)));
        }
        Ok(heartbeat) => tracing::warn!(node = heartbeat.node, "a heartbeat on another node's subject"),
        Err(error) => not_understood(request, &error),
    }
}

fn content(engine: &EngineHandle, contents: &Contents, max_bytes: usize, request: Request) {
    match request.message.decode::<ContentRequest>() {
        Ok(asked) if subjects::content(&asked.node) == request.subject => {
            let answer = match engine.objection() {
                None => contents.answer(&asked, max_bytes),
                Some(refusal) => ContentAnswer::Refused(refusal),
            };
            reply(request, &answer);
        }
        Ok(asked) => tracing::warn!(node = asked.node, "a node asks on another node's subject"),
        Err(error) => not_understood(request, &error),
    }
}

fn runner_heartbeat(engine: &EngineHandle, request: Request) {
    match request.message.decode::<RunnerHeartbeat>() {
        Ok(heartbeat) if subjects::runner_heartbeat(&heartbeat.runner) == request.subject => {
            engine.runner_beat(heartbeat, Box::new(move |briefing| reply(request, &briefing)));
        }
        Ok(heartbeat) => tracing::warn!(runner = heartbeat.runner, "a sign of life on another runner's subject"),
        Err(error) => not_understood(request, &error),
    }
}

/// A sender of another version gets an answer that it cannot read: that tells it why it is not heard.
fn not_understood(request: Request, error: &CodecError) {
    tracing::warn!(%error, subject = request.subject, "a message cannot be understood");
    if matches!(error, CodecError::UnknownVersion { .. }) {
        reply(request, &Refusal::new(RefusalCode::Invalid, error.to_string()));
    }
}

fn query(queries: &Arc<Queries>, request: Request) {
    match request.message.decode::<Query>() {
        Ok(query) => Arc::clone(queries).answer(query, move |answer| reply(request, &answer)),
        Err(error) => {
            let message = format!("the query cannot be understood: {error}");
            reply(request, &QueryAnswer::Refused(Refusal::new(RefusalCode::Invalid, message)));
        }
    }
}

fn reply<T: Serialize>(request: Request, answer: &T) {
    match Message::encode(answer) {
        Ok(message) => request.reply(message),
        Err(error) => tracing::error!(%error, subject = request.subject, "an answer cannot be sent"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::event::Owner;

    /// PBS-C-08: nobody else comes through the door of the planner, nor the planner through another one.
    #[test]
    fn each_door_lets_in_its_own() {
        let user = Actor::User(Owner { user: "ann".into(), uid: 1000, gid: 1000 });
        let node = Actor::Executor("n1".into());
        assert!(Door::Users.lets_in(&user, subjects::COMMAND_USER));
        assert!(Door::Nodes.lets_in(&node, &subjects::command_node("n1")));
        assert!(!Door::Nodes.lets_in(&node, &subjects::command_node("n2")));
        let runner = Actor::Runner("r1".into());
        assert!(Door::Runners.lets_in(&runner, &subjects::command_runner("r1")));
        assert!(!Door::Runners.lets_in(&runner, &subjects::command_runner("r2")));
        assert!(!Door::Runners.lets_in(&node, &subjects::command_runner("n1")));
        assert!(!Door::Users.lets_in(&Actor::Ledger, subjects::COMMAND_USER));
        assert!(Door::Planner.lets_in(&Actor::Planner, subjects::COMMAND_PLANNER));
        for other in [&user, &node, &runner, &Actor::Notifier, &Actor::Ledger] {
            assert!(!Door::Planner.lets_in(other, subjects::COMMAND_PLANNER), "{other:?}");
        }
        assert!(!Door::Users.lets_in(&Actor::Planner, subjects::COMMAND_USER));
        assert!(!Door::Notifiers.lets_in(&node, subjects::COMMAND_NOTIFIER));
    }
}
