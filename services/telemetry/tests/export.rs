//! Export over OTLP to a collector that is running, and to one that is not.

use muster_telemetry::{Identity, TelemetryConfig, init, metrics};
use std::{
    io::{BufReader, Write as _},
    net::TcpListener,
    sync::mpsc,
    time::Duration,
};

const DEADLINE: Duration = Duration::from_secs(30);

/// Accepts every request; sends the path and the body of each.
fn start_collector() -> (u16, mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some(request) = read_request(&mut reader) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    if sender.send(request).is_err() || reader.get_mut().write_all(answer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (port, received)
}

fn read_request(reader: &mut impl std::io::BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim_end().to_ascii_lowercase().split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn config(port: u16) -> TelemetryConfig {
    TelemetryConfig { otlp_endpoint: Some(format!("http://127.0.0.1:{port}/")), ..TelemetryConfig::default() }
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

// Inside an async runtime, as in the services: the exporter's client must work there.
#[tokio::test]
async fn spans_and_metrics_reach_the_collector_at_the_latest_when_telemetry_ends() {
    let (port, received) = start_collector();
    let identity =
        Identity { node: Some("node7".into()), cluster: Some("alpha".into()), ..Identity::of("muster-test") };
    let guard = init(&identity, &config(port)).expect("started");
    tracing::debug_span!(target: "muster_test", "a_span_to_export").in_scope(|| {});
    metrics::counter("muster_exported_total", "Counts.").add(7, &[]);
    drop(guard);
    let (mut spans, mut counts) = (false, false);
    while !(spans && counts) {
        let (path, body) = received.recv_timeout(DEADLINE).expect("exports in time");
        // Two nodes, or two of a kind on a host, must not write the same series (D8).
        let instance = format!("/node7/{}", std::process::id());
        let said = ["service.instance.id", &instance, "host.name", "muster.node", "muster.cluster", "alpha"];
        for part in said {
            assert!(contains(&body, part), "{path} does not say {part}");
        }
        spans |= path == "/v1/traces" && contains(&body, "a_span_to_export") && contains(&body, "muster-test");
        counts |= path == "/v1/metrics" && contains(&body, "muster_exported_total");
    }
}

#[tokio::test]
async fn a_collector_that_is_away_holds_nothing_up() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("bound").port()
    };
    let guard = init(&Identity::of("muster-test"), &config(port)).expect("an absent collector is no error");
    tracing::debug_span!(target: "muster_test", "lost").in_scope(|| {});
    drop(guard);
}
