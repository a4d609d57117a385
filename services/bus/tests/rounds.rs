//! The stream of rounds on three real NATS servers, which are killed and paused.

mod common;

use bytes::Bytes;
use common::{DEADLINE, soon};
use muster_bus::{
    NatsConfig, NatsRounds,
    rounds::{Next, Outcome, Position, RoundHeader, RoundKind, RoundMessage, Rounds as _},
    testing::{NatsCluster, NatsServer, until},
};
use muster_schemas::{ids::Sequence, subjects::ROUNDS_STREAM};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::spawn_blocking;

/// The pause before the same append again.
const AGAIN: Duration = Duration::from_millis(20);

async fn connect(cluster: &NatsCluster) -> NatsRounds {
    soon("connecting", NatsRounds::connect(&cluster.config())).await.expect("the servers are new enough")
}

/// A round of one record with this number.
fn round(epoch: u64, number: u64, body: Vec<u8>) -> RoundMessage {
    let of_number = |number: u64| {
        let mut hash = [epoch as u8; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash.rotate_left(4);
        hash
    };
    let header = RoundHeader {
        cluster: [7; 16],
        ledger: format!("head{epoch}"),
        epoch,
        kind: RoundKind::Round,
        first: Sequence(number),
        last: Sequence(number),
        before: of_number(number - 1),
        after: of_number(number),
        feature_level: 8,
    };
    RoundMessage { header, body: Bytes::from(body) }
}

fn renewal(epoch: u64, next: u64) -> RoundMessage {
    let round = round(epoch, next, Vec::new());
    let header =
        RoundHeader { kind: RoundKind::Renewal, last: Sequence(next - 1), after: round.header.before, ..round.header };
    RoundMessage { header, body: Bytes::new() }
}

/// Asks by the same write, and by nothing else, until it is known what became of it.
fn settled(rounds: &mut NatsRounds, after: Position, message: &RoundMessage) -> Outcome {
    let begun = Instant::now();
    loop {
        match rounds.append(after, message) {
            Outcome::Unknown(why) if begun.elapsed() > DEADLINE => panic!("nobody knows what became of it: {why}"),
            Outcome::Unknown(_) => std::thread::sleep(AGAIN),
            known => return known,
        }
    }
}

/// The end of the stream, once it can be asked.
fn end(rounds: &mut NatsRounds) -> Position {
    loop {
        match rounds.info() {
            Ok(info) => return info.last,
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}

/// The next message, however often the stream cannot be read.
fn next(rounds: &mut NatsRounds, after: Position) -> Next {
    loop {
        match rounds.next(after, Duration::from_millis(50)) {
            Next::Unreachable(_) => std::thread::sleep(AGAIN),
            found => return found,
        }
    }
}

/// Told to others when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A ledger that appends round after round until it is told to stop.
struct Writer {
    stop: Stop,
    standing: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<Vec<(Position, RoundMessage)>>,
}

impl Writer {
    fn begin(mut rounds: NatsRounds) -> Self {
        let (stop, standing) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_over, count) = (stop.clone(), standing.clone());
        let task = spawn_blocking(move || {
            let mut appended = Vec::new();
            let mut after = end(&mut rounds);
            for number in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let message = round(1, number, vec![number as u8; 4096]);
                match settled(&mut rounds, after, &message) {
                    Outcome::Stands(place) => after = place,
                    other => panic!("round {number} after {after}: {other:?}"),
                }
                appended.push((after, message));
                count.store(number, Ordering::Relaxed);
            }
            appended
        });
        Self { stop: Stop(stop), standing, task }
    }

    /// Waits until this many more rounds stand than now.
    async fn goes_on(&self, rounds: u64) {
        let wanted = self.standing.load(Ordering::Relaxed) + rounds;
        until("more rounds", || {
            (self.task.is_finished() || self.standing.load(Ordering::Relaxed) >= wanted).then_some(())
        })
        .await;
        assert!(!self.task.is_finished(), "the writer has failed");
    }

    async fn end(self) -> Vec<(Position, RoundMessage)> {
        drop(self.stop);
        soon("the last round", self.task).await.expect("the writer has not failed")
    }
}

/// M-BUS-4: whatever happens to the server that leads the stream, each acknowledged round stands in it once and
/// in order, and a writer that does not know of the last one is beaten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_doubled_when_the_leader_of_the_stream_dies() {
    let mut cluster = NatsCluster::start().await;
    let writer = Writer::begin(connect(&cluster).await);
    writer.goes_on(20).await;

    let leader = cluster.leader_of(ROUNDS_STREAM).await;
    cluster.servers[leader].kill();
    writer.goes_on(20).await;
    cluster.servers[leader].restart();
    writer.goes_on(20).await;

    let leader = cluster.leader_of(ROUNDS_STREAM).await;
    cluster.servers[leader].pause();
    writer.goes_on(20).await;
    cluster.servers[leader].resume();
    writer.goes_on(20).await;

    let follower = (cluster.leader_of(ROUNDS_STREAM).await + 1) % 3;
    cluster.servers[follower].kill();
    writer.goes_on(20).await;
    cluster.servers[follower].restart();

    let mut second = connect(&cluster).await;
    spawn_blocking(move || {
        for after in [Position(0), Position(10)] {
            let outcome = settled(&mut second, after, &round(2, 1, vec![2]));
            assert!(matches!(outcome, Outcome::Beaten { last } if last > Position(60)), "{outcome:?}");
        }
    })
    .await
    .expect("the second writer is beaten");

    let appended = writer.end().await;
    let mut reader = connect(&cluster).await;
    spawn_blocking(move || {
        let mut after = Position(0);
        for (place, message) in appended {
            assert_eq!(next(&mut reader, after), Next::Message(place, message));
            after = place;
        }
        assert_eq!(next(&mut reader, after), Next::Nothing);
    })
    .await
    .expect("all rounds are there");
}

/// M-BUS-4: of two writers at one place one succeeds; asking again by the same write tells each what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_place_has_one_message() {
    let cluster = NatsCluster::start().await;
    let (mut first, mut second) = (connect(&cluster).await, connect(&cluster).await);
    spawn_blocking(move || {
        let start = end(&mut first);
        assert_eq!(start, Position(0));
        let (mine, other) = (round(1, 1, vec![1]), round(2, 1, vec![2]));
        assert_eq!(settled(&mut first, start, &mine), Outcome::Stands(Position(1)));
        assert_eq!(settled(&mut second, start, &other), Outcome::Beaten { last: Position(1) });
        // Again, as after an answer that was lost; also when others have followed.
        assert_eq!(settled(&mut first, start, &mine), Outcome::Stands(Position(1)));
        assert_eq!(settled(&mut second, Position(1), &other), Outcome::Stands(Position(2)));
        assert_eq!(settled(&mut first, start, &mine), Outcome::Stands(Position(1)));
        // A place that the stream has not reached.
        assert!(matches!(first.append(Position(7), &mine), Outcome::Unknown(_)));

        // As large as a round may be, with as many answers.
        let large = round(2, 2, vec![3; 7 << 20]);
        assert_eq!(settled(&mut second, Position(2), &large), Outcome::Stands(Position(3)));
        assert_eq!(next(&mut first, Position(2)), Next::Message(Position(3), large));

        // Renewals vanish. What follows them is found, and what comes too late is still beaten.
        assert_eq!(settled(&mut second, Position(3), &renewal(2, 3)), Outcome::Stands(Position(4)));
        assert_eq!(settled(&mut second, Position(4), &renewal(2, 3)), Outcome::Stands(Position(5)));
        let last = round(2, 3, vec![4]);
        assert_eq!(settled(&mut second, Position(5), &last), Outcome::Stands(Position(6)));
        while next(&mut first, Position(3)) != Next::Message(Position(6), last.clone()) {
            std::thread::sleep(AGAIN);
        }
        let late = round(1, 2, vec![5]);
        assert_eq!(settled(&mut first, Position(3), &late), Outcome::Beaten { last: Position(6) });
    })
    .await
    .expect("the outcomes are as they have to be");
}

/// M-BUS-4: a stream that was made again is told from the one that it replaces, and nothing follows its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_made_anew_is_another_one() {
    let cluster = NatsCluster::start().await;
    let mut writer = connect(&cluster).await;
    let (mut writer, before) = spawn_blocking(move || {
        assert_eq!(end(&mut writer), Position(0));
        assert_eq!(settled(&mut writer, Position(0), &round(1, 1, vec![1])), Outcome::Stands(Position(1)));
        let before = writer.info().expect("it can be asked");
        (writer, before)
    })
    .await
    .expect("a stream with a round");
    let all = async_nats::jetstream::new(cluster.client().await);
    all.delete_stream(ROUNDS_STREAM).await.expect("it is deleted");
    spawn_blocking(move || {
        let mut asked = || loop {
            match writer.info() {
                Ok(info) => return info,
                Err(_) => std::thread::sleep(AGAIN),
            }
        };
        let after = asked();
        assert!(after.created > before.created);
        assert_eq!((after.first, after.last), (Position(1), Position(0)));
        let outcome = writer.append(Position(1), &round(1, 2, vec![2]));
        assert!(!matches!(outcome, Outcome::Stands(_)), "{outcome:?}");
    })
    .await
    .expect("it is another stream");
}

/// M-BUS-5: servers that nobody has told to sync every write order no rounds, and the error says what they lack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_may_lose_writes_are_refused() {
    let server = NatsServer::start();
    let config = NatsConfig { url: server.url(), ..NatsConfig::default() };
    let mut rounds = soon("connecting", NatsRounds::connect(&config)).await.expect("the server is new enough");
    let told = spawn_blocking(move || rounds.info()).await.expect("an answer");
    let told = told.expect_err("one server is not enough");
    for remedy in ["three NATS servers", "server_tags: [\"sync:always\"]", "sync_interval: always"] {
        assert!(told.contains(remedy), "{told}");
    }
}

/// M-LOG-21: the lead of the stream goes to another server than the one of the ledger's own host, and stays where it is if it is
/// elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lead_of_the_stream_moves_to_another_host() {
    let cluster = NatsCluster::start().await;
    let writer = Writer::begin(connect(&cluster).await);
    writer.goes_on(20).await;
    let rounds = connect(&cluster).await;
    let before = cluster.leader_of(ROUNDS_STREAM).await;
    let next = spawn_blocking(move || {
        let mut keepers = rounds.keepers().expect("there are several");
        let elsewhere = format!("s{}", (before + 1) % 3);
        assert_eq!(keepers.lead_elsewhere(&elsewhere), Ok(None));
        keepers.lead_elsewhere(&format!("s{before}"))
    });
    let next = next.await.expect("no panic").expect("it can be asked").expect("another one is to lead");
    let begun = std::time::Instant::now();
    while format!("s{}", cluster.leader_of(ROUNDS_STREAM).await) != next {
        assert!(begun.elapsed() < DEADLINE, "{next} does not lead");
    }
    writer.goes_on(20).await;
    writer.end().await;
}
