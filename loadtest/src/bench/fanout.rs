//! How long an event takes to reach its subscribers.

use super::{
    Bench,
    figure::{Figure, quantile},
};
use crate::{
    api::{self, PublicEvent},
    http::{Connection, EventStream},
    system::System,
};
use anyhow::{Context as _, Result};
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures::StreamExt as _;
use muster_bus::testing::NatsServer;
use muster_schemas::Timestamp;
use std::{collections::BTreeMap, time::Duration};
use tokio::task::JoinSet;

/// Subscribers, each with its own connection.
const SUBSCRIBERS: usize = 1_000;
/// Events.
const EVENTS: usize = 100;
/// The time between two events.
const PAUSE: Duration = Duration::from_millis(50);
/// The measured events: only their id is read, which a search can find.
const KIND: &str = "job.submitted";

/// The id of an event and when it arrived.
type Arrival = (u64, Timestamp);

/// The time from the ledger's time stamp in an event to its arrival at each subscriber.
pub async fn fanout(bench: &Bench) -> Result<Vec<Figure>> {
    Ok(vec![over_http(bench).await.context("over HTTP")?, over_nats(bench).await.context("over NATS")?])
}

async fn over_http(bench: &Bench) -> Result<Figure> {
    let running = bench.start(1, 1)?;
    let mut connection = running.system.connect().await?;
    api::drain_all_nodes(&mut connection, 1).await?;
    let path = api::events_from_now(&mut connection, KIND).await?;
    let events = bench.count(EVENTS);
    let mut subscribers = JoinSet::new();
    for _ in 0..SUBSCRIBERS {
        let stream = running.system.connect().await?.events(&path).await?;
        subscribers.spawn(listen_over_http(stream, events));
    }
    let times = measure(&running.system, &mut connection, subscribers, events).await?;
    running.system.stop()?;
    Ok(figure("HTTP", times))
}

/// Ledger and gateway on a NATS server, which carries the events to the subscribers. Jobs wait for a node that never
/// reports.
async fn over_nats(bench: &Bench) -> Result<Figure> {
    let server = NatsServer::start();
    let folder = bench.folder()?;
    let config = folder.path().join("muster.toml");
    let node = "[[nodes]]\nname = \"node1\"\ncores = 1\nmemory = \"1G\"\n";
    std::fs::write(&config, format!("[bus]\nurl = \"{}\"\n{node}", server.url()))?;
    let system = System::serve(&bench.muster, &["ledger", "gateway"], &config, &folder.path().join("data"))?;
    let mut connection = system.connect().await?;
    let events = bench.count(EVENTS);
    let mut subscribers = JoinSet::new();
    for _ in 0..SUBSCRIBERS {
        let client = async_nats::connect(server.url()).await?;
        let subscription = client.subscribe(format!("muster.events.{KIND}.*")).await?;
        // Any answer, even that nobody is there, means that the server has the subscription.
        drop(client.request("muster.nobody", Bytes::new()).await);
        subscribers.spawn(listen_over_nats(client, subscription, events));
    }
    let times = measure(&system, &mut connection, subscribers, events).await?;
    system.stop()?;
    Ok(figure("NATS", times))
}

fn figure(way: &str, mut times: Vec<Duration>) -> Figure {
    let measure = format!("event to a subscriber over {way}, p99 of {SUBSCRIBERS} subscribers");
    Figure::time(measure, quantile(&mut times, 0.99), 20.0)
}

/// Makes the events while subscribers listen, and returns how long each event took to each of them.
async fn measure(
    system: &System,
    connection: &mut Connection,
    mut subscribers: JoinSet<Result<Vec<Arrival>>>,
    events: usize,
) -> Result<Vec<Duration>> {
    let path = api::events_from_now(connection, KIND).await?;
    let witness = tokio::spawn(witness(system.connect().await?.events(&path).await?, events));
    submit_slowly(connection, events).await?;
    let written = witness.await??;
    let mut times = Vec::with_capacity(SUBSCRIBERS * events);
    while let Some(arrivals) = subscribers.join_next().await {
        times.extend(delays(&written, &arrivals??)?);
    }
    Ok(times)
}

/// Submits jobs that only wait, one event each, with pauses between them.
async fn submit_slowly(connection: &mut Connection, events: usize) -> Result<()> {
    let body = api::submission(vec![api::command_job("fanout", &["/bin/true"])])?;
    for _ in 0..events {
        tokio::time::sleep(PAUSE).await;
        api::submit_body(connection, body.clone()).await?;
    }
    Ok(())
}

/// A subscriber: notes when each event arrives, and does nothing else that would hold up the others.
async fn listen_over_http(mut stream: EventStream, events: usize) -> Result<Vec<Arrival>> {
    let mut arrivals = Vec::with_capacity(events);
    while arrivals.len() < events {
        let data = stream.next().await?.context("the stream of events has ended")?;
        arrivals.extend(id_of(&data).map(|id| (id, Timestamp::now())));
    }
    Ok(arrivals)
}

/// The same over NATS. The client lives as long as its subscription.
async fn listen_over_nats(_client: Client, mut subscription: Subscriber, events: usize) -> Result<Vec<Arrival>> {
    let mut arrivals = Vec::with_capacity(events);
    while arrivals.len() < events {
        let message = subscription.next().await.context("the subscription has ended")?;
        arrivals.extend(id_of(&message.payload).map(|id| (id, Timestamp::now())));
    }
    Ok(arrivals)
}

/// The subscriber that reads the events: when the ledger wrote each of them.
async fn witness(mut stream: EventStream, events: usize) -> Result<BTreeMap<u64, Timestamp>> {
    let mut written = BTreeMap::new();
    while written.len() < events {
        let data = stream.next().await?.context("the stream of events has ended")?;
        if let Some(id) = id_of(&data) {
            let event: PublicEvent = serde_json::from_slice(&data)?;
            written.insert(id, event.time);
        }
    }
    Ok(written)
}

fn delays(written: &BTreeMap<u64, Timestamp>, arrivals: &[Arrival]) -> Result<Vec<Duration>> {
    let delay = |(id, arrived): &Arrival| {
        let written = written.get(id).with_context(|| format!("event {id} was not written"))?;
        Ok(Duration::from_micros(arrived.micros_since(*written).max(0).unsigned_abs()))
    };
    arrivals.iter().map(delay).collect()
}

/// The id of an event, found by a search: parsing JSON a thousand times for each event would be measured too.
fn id_of(event: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"id\":\"";
    let place = event.windows(KEY.len()).position(|window| window == KEY)?;
    let digits = event[place + KEY.len()..].split(|byte| *byte == b'"').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_event_is_found() {
        assert_eq!(id_of(br#"{"specversion":"1.0","id":"42","type":"muster.job.submitted.v1"}"#), Some(42));
        assert_eq!(id_of(b"{}"), None);
    }
}
