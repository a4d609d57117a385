//! Greedy callers: endless connections, bodies that never come, requests that are too large.

use crate::system::{System, TOKEN, job};
use flate2::read::GzDecoder;
use muster_client::{Client, Endpoint};
use muster_schemas::{
    CommandId,
    job::JobSpec,
    views::{JobView, JobsPage, ReasonWord},
};
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    time::Duration,
};

/// Longer than anything awaited here; a connection that stays open longer is never ended.
const PATIENCE: Duration = Duration::from_secs(20);

fn unix(socket: &std::path::Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn tcp(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Everything until the gateway ends the connection.
fn until_end(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {}
        Err(error) => panic!("the gateway keeps the connection: {error}; {:?}", String::from_utf8_lossy(&text)),
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// F7: a connection without a token that sends no complete head is ended, and until then the number from one
/// address is limited.
#[test]
fn connections_without_end_shut_nobody_out() {
    let system = System::start();
    let gateway = system.gateway_with(|config| {
        (config.max_connections, config.max_connections_per_caller) = (Some(32), Some(4));
        config.head_seconds = 3;
    });
    let mut halves: Vec<TcpStream> = (0..4).map(|_| tcp(gateway.tcp)).collect();
    for half in &mut halves {
        half.write_all(b"GET /v1/jobs HTTP/1.1\r\nhost: x\r\nauthor").unwrap();
    }
    let refused = until_end(&mut tcp(gateway.tcp));
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("connection: close"), "{refused:?}");
    assert!(refused.contains("you have 4 connections"), "{refused}");
    let mut local = Client::new(Endpoint::Unix(gateway.socket.clone()));
    local.submit(CommandId::new_now(), &[job("beside-them")]).unwrap();
    for half in &mut halves {
        until_end(half);
    }
    let remote = Endpoint::Tcp { address: gateway.tcp.to_string(), token: Some(TOKEN.to_owned()), tls: None };
    Client::new(remote).jobs(&Default::default()).unwrap();
    system.stop(Some(gateway.service));
}

/// F7: so is an idle connection, but not one that follows events.
#[test]
fn who_follows_events_is_not_idle() {
    let system = System::start();
    let gateway = system.gateway_with(|config| config.head_seconds = 1);
    let mut events = unix(&gateway.socket);
    events.write_all(b"GET /v1/events?kind=job.submitted HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut idle = unix(&gateway.socket);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let answers = until_end(&mut idle);
    assert!(answers.starts_with("HTTP/1.1 200") && !answers.contains("connection: close"), "{answers}");
    until_end(&mut unix(&gateway.socket));
    Client::new(Endpoint::Unix(gateway.socket.clone())).submit(CommandId::new_now(), &[job("followed")]).unwrap();
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.contains("event: muster.job.submitted") {
        let read = events.read(&mut buffer).unwrap_or_else(|error| panic!("{error}; {text}"));
        assert!(read > 0, "the stream has ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    system.stop(Some(gateway.service));
}

/// F6: a body announced as too large is refused before any of it is read, and the connection with it (F21).
#[test]
fn what_is_announced_too_large_is_refused_unread() {
    let system = System::start();
    let mut caller = unix(&system.socket());
    caller.write_all(b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 70000000\r\n\r\n{").unwrap();
    let answer = until_end(&mut caller);
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("connection: close"), "{answer:?}");
    assert!(answer.contains("the body is larger than 1048576 bytes"), "{answer}");
}

/// F21: a refusal before the body is read ends the connection and says so, whatever the reason.
#[test]
fn early_refusals_say_that_they_end_the_connection() {
    let system = System::start();
    let body = "x".repeat(100_000);
    for head in ["POST /v1/nowhere HTTP/1.1", "DELETE /v1/jobs HTTP/1.1", "POST /v1/jobs/actions/cancel?x=1 HTTP/1.1"] {
        let mut caller = unix(&system.socket());
        write!(caller, "{head}\r\nhost: x\r\ncontent-length: {}\r\nidempotency-key: \r\n\r\n{body}", body.len())
            .unwrap();
        let answer = until_end(&mut caller);
        assert!(answer.starts_with("HTTP/1.1 4") && answer.contains("connection: close"), "{head}: {answer:?}");
    }
    // A request that is read to its end keeps it.
    let mut caller = unix(&system.socket());
    caller.write_all(b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n{").unwrap();
    let mut buffer = [0; 4096];
    let read = caller.read(&mut buffer).unwrap();
    let answer = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("connection: close"), "{answer}");
}

/// Announces a body, and waits until the gateway has room for it and asks for it, or refuses it.
fn announce(mut caller: impl Read + Write, bytes: usize, token: &str) -> (impl Read + Write, String) {
    let head = "POST /v1/jobs HTTP/1.1\r\nhost: x\r\nexpect: 100-continue";
    write!(caller, "{head}\r\nauthorization: Bearer {token}\r\ncontent-length: {bytes}\r\n\r\n").unwrap();
    let mut answer = [0; 4096];
    let read = caller.read(&mut answer).unwrap();
    (caller, String::from_utf8_lossy(&answer[..read]).into_owned())
}

/// F6: unfinished bodies of a caller take no more than his share, and leave room for small requests.
#[test]
fn unfinished_bodies_take_no_more_than_a_part() {
    let system = System::start();
    let gateway = system.gateway_with(|config| {
        (config.max_body_bytes, config.max_bytes_in_flight_per_caller) = (8 << 20, 9 << 20);
        config.body_seconds = 600;
    });
    let announce = |bytes: usize| announce(unix(&gateway.socket), bytes, TOKEN);
    let (large, asked) = announce(8 << 20);
    assert!(asked.starts_with("HTTP/1.1 100 "), "{asked}");
    let (small, asked) = announce(600_000);
    assert!(asked.starts_with("HTTP/1.1 100 "), "{asked}");
    let (mut refused, answer) = announce(600_000);
    let answer = answer + &until_end(&mut refused);
    assert!(answer.contains("your requests take") && answer.contains("connection: close"), "{answer}");
    Client::new(Endpoint::Unix(gateway.socket.clone())).submit(CommandId::new_now(), &[job("small")]).unwrap();
    drop((large, small));
    system.stop(Some(gateway.service));
}

/// F6: a body that does not arrive ends its request in time.
#[test]
fn unfinished_bodies_end_in_time() {
    let system = System::start();
    let gateway = system.gateway_with(|config| {
        config.max_body_bytes = 8 << 20;
        config.body_seconds = 1;
    });
    let (mut large, asked) = announce(unix(&gateway.socket), 8 << 20, TOKEN);
    assert!(asked.starts_with("HTTP/1.1 100 "), "{asked}");
    large.write_all(b"{").unwrap();
    let answer = until_end(&mut large);
    assert!(answer.contains("the body has not come in time: 1 bytes"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    system.stop(Some(gateway.service));
}

/// Follows all events from the first.
fn follow(gateway: std::net::SocketAddr) -> TcpStream {
    let mut follower = tcp(gateway);
    let head = format!("GET /v1/events?from=1 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    follower.write_all(head.as_bytes()).unwrap();
    follower
}

/// Unread events of followers count among their caller's bytes until the followers are gone; other readers miss
/// nothing, then and later.
#[test]
fn events_that_nobody_reads_count() {
    let system = System::start();
    let mut client = system.client();
    for _ in 0..20 {
        client.submit(CommandId::new_now(), &vec![small("many"); 500]).unwrap();
    }
    let gateway = system.gateway_with(|config| {
        (config.max_body_bytes, config.max_bytes_in_flight_per_caller) = (1 << 20, 1 << 20);
    });
    // The gateway accepts a body while the followers leave room for it.
    let wait_for = |wanted: &str| {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let (_, answer) = announce(tcp(gateway.tcp), 900_000, TOKEN);
            if answer.contains(wanted) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "no {wanted:?}, but {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let followers: Vec<TcpStream> = (0..12).map(|_| follow(gateway.tcp)).collect();
    wait_for("your requests take");
    drop(followers);
    wait_for("HTTP/1.1 100 ");
    let last = client.submit(CommandId::new_now(), &[small("last")]).unwrap().sequence;
    let mut text = String::new();
    let mut follower = std::io::BufReader::new(follow(gateway.tcp));
    let mut sequences = Vec::new();
    while sequences.last() != Some(&last.0) {
        text.clear();
        assert!(std::io::BufRead::read_line(&mut follower, &mut text).unwrap() > 0, "the stream has ended");
        sequences.extend(text.strip_prefix("id: ").map(|id| id.trim().parse::<u64>().unwrap()));
    }
    assert!(sequences.iter().copied().eq(1..=last.0), "each event once, in order");
    drop(follower);
    system.stop(Some(gateway.service));
}

/// The number of a caller's connections that follow events is limited.
#[test]
fn too_many_followers_are_refused_early() {
    let system = System::start();
    let gateway = system.gateway_with(|config| {
        (config.max_connections, config.max_connections_per_caller) = (Some(256), Some(128));
    });
    let status = |follower: &mut TcpStream| {
        let mut answer = [0; 512];
        let read = follower.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    };
    let mut followers: Vec<TcpStream> = (0..64).map(|_| follow(gateway.tcp)).collect();
    assert!(followers.iter_mut().all(|follower| status(follower).starts_with("HTTP/1.1 200 ")));
    let refused = status(&mut follow(gateway.tcp));
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("64 connections of yours follow events"), "{refused}");
    drop(followers);
    system.stop(Some(gateway.service));
}

/// An address that is not valid text is refused like any other.
#[test]
fn addresses_that_are_no_text_are_refused_as_json() {
    let system = System::start();
    for address in ["/v1/jobs/%ff", "/v1/nodes/%ff", "/v1/jobs/1/steps/%c3%28/wait"] {
        let answer = system.get(address);
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("content-type: application/json"), "{answer}");
        let error: serde_json::Value = serde_json::from_str(body_of(&answer)).unwrap();
        assert_eq!(error["code"], "malformed", "{error}");
    }
}

/// F12, F13: a key that was used for another command is refused as such, whatever both commands are.
#[test]
fn a_key_of_another_command_is_refused_and_says_so() {
    let system = System::start();
    let post = |path: &str, body: &str| {
        let length = body.len();
        let head = "host: x\r\nconnection: close\r\nidempotency-key: nightly";
        system.raw(&format!("POST {path} HTTP/1.1\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}"))
    };
    let cancel = r#"{"jobs":{"matching":{"user":"nobody-at-all"}}}"#;
    let first = post("/v1/jobs/actions/cancel", cancel);
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    let others = [
        ("/v1/nodes/actions/drain", r#"{"nodes":["node1"],"reason":"broken"}"#),
        ("/v1/jobs/7/steps/launch", r#"{"groups":[{"programs":[{"argv":["true"]}]}]}"#),
        ("/v1/jobs/actions/cancel", r#"{"jobs":{"ids":["7"]}}"#),
    ];
    for (path, body) in others {
        let answer = post(path, body);
        assert!(
            answer.starts_with("HTTP/1.1 409") && answer.contains("used for another one before"),
            "{path}: {answer}"
        );
    }
    assert_eq!(body_of(&post("/v1/jobs/actions/cancel", cancel)), body_of(&first));
}

fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("an answer has a head").1
}

/// Lists of many waiting jobs without a planner take linear time, are complete and in order, and delay no submission.
/// The job at the head of the order is found once for all of them: a search for each pair of jobs would take minutes.
#[test]
fn a_list_of_very_many_jobs_holds_up_nobody() {
    const JOBS: usize = 20_000;
    let system = System::start();
    let mut client = system.client();
    let jobs: Vec<_> = (0..1_000).map(|number| small(&format!("job-{number}"))).collect();
    for _ in 0..JOBS / jobs.len() {
        client.submit(CommandId::new_now(), &jobs).unwrap();
    }
    let readers: Vec<_> = (0..4).map(|_| system.client()).collect();
    let readers: Vec<_> =
        readers.into_iter().map(|mut client| std::thread::spawn(move || client.jobs(&Default::default()))).collect();
    while !readers.iter().all(std::thread::JoinHandle::is_finished) {
        client.submit(CommandId::new_now(), &[small("beside")]).unwrap();
    }
    for reader in readers {
        let page = reader.join().unwrap().unwrap();
        assert!(page.jobs.len() >= JOBS);
        assert!(page.jobs.is_sorted_by(|one, next| one.id < next.id), "none is there twice");
        let behind = |job: &JobView| job.reason.as_ref().is_some_and(|reason| reason.code == ReasonWord::BehindJob);
        assert!(page.jobs[1..].iter().all(behind), "the first is ahead of all others");
    }
    let (head, raw) = system.raw_bytes("/v1/jobs/all", "accept-encoding: identity");
    assert!(!head.contains("content-encoding"), "{head}");
    let page: JobsPage = muster_schemas::codec::decode(&raw).unwrap();
    assert_eq!(page.jobs, client.jobs(&Default::default()).unwrap().jobs, "both kinds of lists say the same");
    for (path, plain) in
        [("/v1/jobs/all", raw), ("/v1/jobs?limit=1000", system.raw_bytes("/v1/jobs?limit=1000", "x: y").1)]
    {
        let (head, packed) = system.raw_bytes(path, "accept-encoding: br, gzip");
        assert!(head.contains("content-encoding: gzip") && packed.len() < plain.len() / 4, "{} {head}", packed.len());
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
    }
    assert_eq!(client.all_jobs(None, None, false).unwrap().jobs, page.jobs);
}

/// A small job, for lists of very many.
fn small(name: &str) -> JobSpec {
    JobSpec { environment: Default::default(), notifications: Vec::new(), ..job(name) }
}
