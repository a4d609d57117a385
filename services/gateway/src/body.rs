//! Bodies of requests: JSON, with limits that apply before memory is allocated for the content.

use crate::{
    app::App,
    budgets::{Admission, Holding, Holdings, LARGE_BODY_BYTES},
    error::ApiError,
};
use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequest, Request},
};
use muster_schemas::{step_io::MAX_WRITE_BYTES, views::ErrorCode};
use serde::de::DeserializeOwned;
use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};
use tokio::time::Instant;

/// The maximum nesting of objects and lists.
const MAX_DEPTH: u32 = 64;
/// The most objects and lists in a body: 100,000 jobs with every key written out have 3,000,000. A few bytes of JSON
/// can stand for a large value in memory, so the number of bytes alone is no limit.
const MAX_CONTAINERS: u32 = 4_000_000;
/// The most values in lists and objects.
const MAX_VALUES: u32 = 16_000_000;
/// The least average speed of a body, not counting the time that it may stand still.
const LEAST_BYTES_PER_SECOND: u64 = 64 << 10;
/// The least step in which room for a body of unknown length grows; a larger one grows by a quarter, so that it is not
/// moved often.
const ROOM_STEP_BYTES: u64 = 256 << 10;

/// The body of a request as a value.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let bytes = read(request, app, app.config.max_body_bytes).await?;
        if bytes.len() as u64 <= LARGE_BODY_BYTES {
            return parse(&bytes).map(Self);
        }
        let stopping = || ApiError::unavailable("the gateway is stopping");
        let turn = app.large_parsings.clone().acquire_owned().await.map_err(|_| stopping())?;
        // Parsing takes long, and other requests must continue.
        let parsed = tokio::task::spawn_blocking(move || {
            let value = parse(&bytes);
            drop(turn);
            value
        });
        parsed.await.unwrap_or_else(|_| Err(stopping())).map(Self)
    }
}

/// The body of a request as bytes, at most [`MAX_WRITE_BYTES`].
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<App> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        read(request, app, MAX_WRITE_BYTES).await.map(Self)
    }
}

/// Reads the body of a request. If the request states its length, a body that is too large is refused before any of it
/// is read. Its part of the caller's budget is held until the request is answered.
async fn read(request: Request, app: &App, max_bytes: usize) -> Result<Bytes, ApiError> {
    let patience = Duration::from_secs(u64::from(app.config.body_seconds));
    let unknown = || ApiError::unavailable("the caller is unknown");
    let admission = request.extensions().get::<Arc<Admission>>().cloned().ok_or_else(unknown)?;
    let holdings = request.extensions().get::<Holdings>().cloned().ok_or_else(unknown)?;
    let mut room = Room { admission, holdings, max_bytes: max_bytes as u64, bytes: 0, has_turn: false };
    let body = request.into_body();
    room.make(body.size_hint().lower(), patience).await?;
    read_into(&mut room, body, patience).await.map(Bytes::from)
}

/// The room for a body in its caller's budget.
struct Room {
    admission: Arc<Admission>,
    holdings: Holdings,
    max_bytes: u64,
    bytes: u64,
    has_turn: bool,
}

impl Room {
    /// Grows the room to at least this size, or reports why that is impossible.
    async fn make(&mut self, bytes: u64, patience: Duration) -> Result<(), ApiError> {
        if bytes > self.max_bytes {
            let message = format!("the body is larger than {} bytes", self.max_bytes);
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        if bytes > LARGE_BODY_BYTES && !self.has_turn {
            self.holdings.keep(Holding::Turn { _turn: self.admission.large_body(patience).await? });
            self.has_turn = true;
        }
        if bytes > self.bytes {
            self.holdings.keep(Holding::Bytes { _held: self.admission.hold(bytes - self.bytes)? });
            self.bytes = bytes;
        }
        Ok(())
    }
}

/// Reads a body into room that grows with it. It never takes more memory than there is room for.
async fn read_into(room: &mut Room, mut body: Body, patience: Duration) -> Result<Vec<u8>, ApiError> {
    let begun = Instant::now();
    let mut bytes = Vec::with_capacity(usize::try_from(room.bytes).unwrap_or_default());
    loop {
        let earned = Duration::from_secs(bytes.len() as u64 / LEAST_BYTES_PER_SECOND);
        let deadline = (Instant::now() + patience).min(begun + patience * 2 + earned);
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(frame) = tokio::time::timeout_at(deadline, next).await else {
            let seconds = begun.elapsed().as_secs();
            return Err(ApiError::malformed(format!(
                "the body has not come in time: {} bytes in {seconds} s",
                bytes.len()
            )));
        };
        let Some(frame) = frame else { return Ok(bytes) };
        let frame = frame.map_err(|error| ApiError::malformed(format!("the body cannot be read: {error}")))?;
        // Trailers carry nothing.
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() as u64 + data.len() as u64;
        if length > room.bytes {
            let step = room.bytes.saturating_add(ROOM_STEP_BYTES.max(room.bytes / 4)).min(room.max_bytes);
            room.make(step.max(length), patience).await?;
            let counted = usize::try_from(room.bytes).unwrap_or(usize::MAX);
            bytes.reserve_exact(counted.saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
}

/// The value of a JSON text. Errors name the path of the fault.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    check_size(json)?;
    match serde_json::from_slice(json) {
        Ok(value) => Ok(value),
        Err(error) => Err(explain::<T>(json, &error)),
    }
}

/// Parses again, more slowly, to find the fault.
fn explain<T: DeserializeOwned>(json: &[u8], plain: &serde_json::Error) -> ApiError {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let message = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) if error.path().iter().next().is_some() => format!("{}: {}", error.path(), error.inner()),
        _ => plain.to_string(),
    };
    ApiError::malformed(message)
}

/// Refuses JSON that is nested too deep or has too many values, without interpreting it.
fn check_size(json: &[u8]) -> Result<(), ApiError> {
    let (mut depth, mut containers, mut values) = (0u32, 0u32, 0u32);
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => skip_text(&mut rest),
            b'{' | b'[' => {
                depth += 1;
                containers += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > MAX_DEPTH || containers > MAX_CONTAINERS || values > MAX_VALUES {
            break;
        }
    }
    let fault = if depth > MAX_DEPTH {
        format!("nested deeper than {MAX_DEPTH}")
    } else if containers > MAX_CONTAINERS {
        format!("more than {MAX_CONTAINERS} objects and lists")
    } else if values > MAX_VALUES {
        format!("more than {MAX_VALUES} values")
    } else {
        return Ok(());
    };
    Err(ApiError::new(ErrorCode::TooLarge, format!("the JSON has too much in it: {fault}")))
}

/// Skips to after the closing quote.
fn skip_text<'a>(rest: &mut impl Iterator<Item = &'a u8>) {
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => drop(rest.next()),
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config,
        budgets::{Account, Budgets},
    };
    use muster_schemas::views::{SignalRequest, SubmitRequest};

    fn refusal<T: DeserializeOwned>(json: &str) -> ApiError {
        match parse::<T>(json.as_bytes()) {
            Ok(_) => panic!("accepted: {}", &json[..json.len().min(200)]),
            Err(error) => error,
        }
    }

    #[test]
    fn errors_name_the_path() {
        let error = refusal::<SubmitRequest>(r#"{"jobs":[{"name":"a"},{"components":[{"queu":"x"}]}]}"#);
        assert_eq!(error.0.code, ErrorCode::Malformed);
        assert!(error.0.message.starts_with("jobs[1].components[0].queu"), "{}", error.0.message);
        assert!(error.0.message.contains("unknown field `queu`"), "{}", error.0.message);
        let error = refusal::<SignalRequest>(r#"{"jobs":{"ids":["0"]},"signal":9}"#);
        assert!(error.0.message.contains("`0` is not a job id"), "{}", error.0.message);
        let error = refusal::<SignalRequest>("{");
        assert_eq!(error.0.code, ErrorCode::Malformed);
    }

    /// A body of unknown length takes no more memory than counts in its caller's budget.
    #[tokio::test]
    async fn bodies_of_unknown_length_take_the_room_that_is_counted() {
        let budgets = Budgets::new(&Config::default());
        let admission = budgets.admit(Account::User(4_000_001)).unwrap();
        for pieces in [1usize, 9, 40, 130] {
            let holdings = Holdings::default();
            let mut room =
                Room { admission: admission.clone(), holdings, max_bytes: 16 << 20, bytes: 0, has_turn: false };
            let piece = Bytes::from(vec![b'a'; 50_001]);
            let stream = futures::stream::iter((0..pieces).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
            let read = read_into(&mut room, Body::from_stream(stream), Duration::from_secs(20)).await.unwrap();
            assert_eq!(read.len(), pieces * 50_001);
            assert!(read.capacity() as u64 <= room.bytes, "{} bytes in room for {}", read.capacity(), room.bytes);
        }
        assert_eq!(budgets.bytes(), 0);
    }

    #[test]
    fn bombs_are_refused_before_they_are_parsed() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(refusal::<SubmitRequest>(&deep).0.code, ErrorCode::TooLarge);
        let wide = format!(r#"{{"jobs":[{}{{}}]}}"#, "{},".repeat(MAX_CONTAINERS as usize));
        assert_eq!(refusal::<SubmitRequest>(&wide).0.code, ErrorCode::TooLarge);
        let long = format!(r#"{{"jobs":[{}0]}}"#, "0,".repeat(MAX_VALUES as usize + 1));
        assert_eq!(refusal::<SubmitRequest>(&long).0.code, ErrorCode::TooLarge);
    }

    #[test]
    fn brackets_in_text_do_not_count() {
        let text = r#"[{\"\\"#.repeat(100_000);
        let json = format!(r#"{{"jobs":[{{"name":"{text}"}}]}}"#);
        let request: SubmitRequest = parse(json.as_bytes()).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(request.jobs[0].name.len(), 400_000);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = parse::<SubmitRequest>(&bytes);
        }

        #[test]
        fn no_change_of_a_good_body_makes_it_panic(at in 0usize..200, byte: u8) {
            let good = r#"{"jobs":[{"name":"a\"b","components":[{"alternatives":[{"requests":[{"path":[{"level":"node","count":{"range":{"min":1,"max":2}}}]}]}]}],"array":{"indices":"0-9:2"}}]}"#;
            let mut bytes = good.as_bytes().to_vec();
            let length = bytes.len();
            bytes[at % length] = byte;
            let _ = parse::<SubmitRequest>(&bytes);
        }
    }
}
