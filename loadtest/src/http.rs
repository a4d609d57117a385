//! A lean HTTP/1.1 client: one kept connection, one request at a time, no more work than the load needs.

use anyhow::{Context as _, Result, bail};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    header,
};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use tokio::net::{TcpStream, UnixStream};

/// Where the gateway of a system listens.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A Unix socket: the kernel identifies the caller.
    Socket(PathBuf),
    /// Host and port, and the token that identifies the caller.
    Tcp {
        /// `host:port`.
        authority: String,
        /// Sent as bearer token.
        token: Option<String>,
    },
}

/// A kept connection to a gateway.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
    authorization: Option<String>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub async fn open(endpoint: &Endpoint) -> Result<Self> {
        match endpoint {
            Endpoint::Socket(path) => {
                let stream =
                    UnixStream::connect(path).await.with_context(|| format!("no gateway at {}", path.display()))?;
                Self::over(TokioIo::new(stream), "muster".to_owned(), None).await
            }
            Endpoint::Tcp { authority, token } => {
                let stream =
                    TcpStream::connect(authority).await.with_context(|| format!("no gateway at {authority}"))?;
                stream.set_nodelay(true)?;
                let authorization = token.as_ref().map(|token| format!("Bearer {token}"));
                Self::over(TokioIo::new(stream), authority.clone(), authorization).await
            }
        }
    }

    async fn over<T>(stream: T, host: String, authorization: Option<String>) -> Result<Self>
    where
        T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, driver) = http1::handshake(stream).await?;
        // The driver fails when the server goes away; the next request then reports it.
        tokio::spawn(async move { drop(driver.await) });
        Ok(Self { sender, host, authorization })
    }

    /// The JSON answer of a path.
    ///
    /// # Errors
    /// If the connection breaks, or the answer is a refusal or not of the type.
    pub async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let body = self.call(Method::GET, path, Bytes::new()).await?;
        serde_json::from_slice(&body).with_context(|| format!("the answer of GET {path} is not as expected"))
    }

    /// The answer's body of a path.
    ///
    /// # Errors
    /// If the connection breaks or the answer is a refusal.
    pub async fn get_bytes(&mut self, path: &str) -> Result<Bytes> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    /// Reads what a path answers with and drops it; returns how many bytes arrived, compressed as muster's own commands ask
    /// for it.
    ///
    /// # Errors
    /// If the connection breaks or the answer is a refusal.
    pub async fn read_through(&mut self, path: &str) -> Result<usize> {
        let accepted = [(header::ACCEPT_ENCODING, "gzip")];
        let mut body = self.send_with(Method::GET, path, Bytes::new(), &accepted).await?;
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(length)
    }

    /// Posts JSON and returns the body of the answer.
    ///
    /// # Errors
    /// If the connection breaks or the answer is a refusal.
    pub async fn post(&mut self, path: &str, json: Bytes) -> Result<Bytes> {
        self.call(Method::POST, path, json).await
    }

    /// Replaces what is at a path.
    ///
    /// # Errors
    /// Replaces what is at a path.
    pub async fn put(&mut self, path: &str, json: Bytes) -> Result<Bytes> {
        self.call(Method::PUT, path, json).await
    }

    /// Turns the connection into a stream of server-sent events.
    ///
    /// # Errors
    /// If the connection breaks or the answer is a refusal.
    pub async fn events(mut self, path: &str) -> Result<EventStream> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(EventStream { body: response, buffer: BytesMut::new(), _sender: self.sender })
    }

    async fn call(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes> {
        Ok(self.send(method, path, body).await?.collect().await?.to_bytes())
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Incoming> {
        self.send_with(method, path, body, &[]).await
    }

    async fn send_with(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(header::HeaderName, &str)],
    ) -> Result<Incoming> {
        let mut request = Request::builder()
            .method(&method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.sender.ready().await.context("the gateway closed the connection")?;
        let response = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response.into_body());
        }
        let text = response.into_body().collect().await?.to_bytes();
        bail!("{method} {path}: {}", refusal(status, &text));
    }
}

/// The message of a refusal for people, in one line.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|json| json.get("message").and_then(|message| message.as_str().map(str::to_owned)));
    format!("{status}: {}", message.unwrap_or_else(|| text.chars().take(400).collect()))
}

/// A stream of server-sent events.
pub struct EventStream {
    body: Incoming,
    buffer: BytesMut,
    /// Dropping it would end the connection.
    _sender: SendRequest<Full<Bytes>>,
}

impl EventStream {
    /// The data of the next event; comments (signs of life) are skipped. `None` at the end of the stream.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            while let Some(event) = self.take_event() {
                if let Some(data) = data_of(&event) {
                    return Ok(Some(data));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }

    /// The bytes of the first complete event.
    fn take_event(&mut self) -> Option<Bytes> {
        let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
        Some(self.buffer.split_to(end + 2).freeze())
    }
}

/// The first `data:` line. Each event of muster has one: its JSON has no line breaks.
fn data_of(event: &Bytes) -> Option<Bytes> {
    event
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"data:"))
        .map(|data| event.slice_ref(data.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_an_event_is_found_among_its_lines() {
        let event = Bytes::from_static(b"id: 7\nevent: x\ndata: {\"a\":1}\n\n");
        assert_eq!(data_of(&event).as_deref(), Some(&b"{\"a\":1}"[..]));
        assert_eq!(data_of(&Bytes::from_static(b": sign of life\n\n")), None);
    }

    #[test]
    fn a_refusal_is_shown_by_its_message() {
        let json = br#"{"code":"invalid","message":"no such queue"}"#;
        assert_eq!(refusal(StatusCode::BAD_REQUEST, json), "400 Bad Request: no such queue");
        assert_eq!(refusal(StatusCode::BAD_GATEWAY, b"plain"), "502 Bad Gateway: plain");
    }
}
