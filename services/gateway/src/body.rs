//! Bodies of requests: JSON, with limits that hold before memory is taken for what it says.

use crate::{app::App, error::ApiError};
use axum::{
    body::Bytes,
    extract::{FromRequest, Request, rejection::BytesRejection},
    http::StatusCode,
};
use muster_schemas::views::ErrorCode;
use serde::de::DeserializeOwned;

/// Objects and lists may be nested so deep.
const MAX_DEPTH: u32 = 64;
/// Objects and lists in a body: 100,000 jobs with every key written out have 3,000,000. A few bytes of JSON can stand for
/// a large value in memory, so the number of bytes alone is no limit.
const MAX_CONTAINERS: u32 = 4_000_000;
/// Values in lists and objects.
const MAX_VALUES: u32 = 16_000_000;
/// Larger bodies are parsed one at a time, so that the limits hold for all callers together.
const LARGE_BODY_BYTES: usize = 1 << 20;

/// The body of a request as a value.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, app).await.map_err(|rejection| unread(&rejection, app))?;
        let _turn = match bytes.len() > LARGE_BODY_BYTES {
            true => app.large_bodies.acquire().await.ok(),
            false => None,
        };
        parse(&bytes).map(Self)
    }
}

fn unread(rejection: &BytesRejection, app: &App) -> ApiError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let message = format!("the body is larger than {} bytes", app.config.max_body_bytes);
        return ApiError::new(ErrorCode::TooLarge, message);
    }
    ApiError::malformed(format!("the body cannot be read: {rejection}"))
}

/// The value that JSON stands for. Errors name the path of what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ApiError> {
    check_size(json)?;
    match serde_json::from_slice(json) {
        Ok(value) => Ok(value),
        Err(error) => Err(explain::<T>(json, &error)),
    }
}

/// Parses again, slower, to find where the fault is.
fn explain<T: DeserializeOwned>(json: &[u8], plain: &serde_json::Error) -> ApiError {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let message = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) if error.path().iter().next().is_some() => format!("{}: {}", error.path(), error.inner()),
        _ => plain.to_string(),
    };
    ApiError::malformed(message)
}

/// Refuses JSON that is nested too deep or has too many values, without looking at what it says.
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

/// Goes on behind the closing quote.
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
