//! Metrics over HTTP, for roles without a gateway in their process: one path, one connection at a time, little time for
//! each, so that a client that holds it open costs others a moment and this process nothing.

use crate::metrics;
use anyhow::Context as _;
use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

/// The longest time to read a request and write its answer.
const CONNECTION_TIME: Duration = Duration::from_secs(2);
/// The most bytes of a request for metrics.
const MAX_HEAD_BYTES: usize = 8192;

/// Listens from now on, on a separate thread.
pub(crate) fn start(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).with_context(|| format!("metrics cannot be shown at {address}"))?;
    let bound = listener.local_addr()?;
    std::thread::Builder::new().name("muster-metrics".into()).spawn(move || {
        for connection in listener.incoming() {
            match connection {
                Ok(connection) => drop(serve(connection)),
                // For example, no file is free: that may get better, or not.
                Err(_) => std::thread::sleep(CONNECTION_TIME),
            }
        }
    })?;
    Ok(bound)
}

fn serve(mut connection: TcpStream) -> io::Result<()> {
    let deadline = Instant::now() + CONNECTION_TIME;
    connection.set_write_timeout(Some(CONNECTION_TIME))?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MAX_HEAD_BYTES {
            return Ok(());
        }
        connection.set_read_timeout(Some(left))?;
        let mut part = [0; 1024];
        match connection.read(&mut part)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let (status, body) = answer(&head);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The status and the text for a request.
fn answer(head: &[u8]) -> (&'static str, String) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", metrics::render_prometheus()),
        (Some(b"GET"), _) => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut connection = TcpStream::connect(address).expect("it listens");
        connection.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Prometheus can read every role, even one without a gateway (D8); a client that only holds the connection is cut
    /// off.
    #[test]
    fn metrics_are_read_over_http() {
        let address = start(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port is free");
        metrics::counter("muster_listened_total", "Counts.").add(2, &[]);
        let idle = TcpStream::connect(address).expect("it listens");
        let answer = ask(address, "GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("muster_listened_total 2"), "{answer}");
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        drop(idle);
    }
}
