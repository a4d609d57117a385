//! HTTP/1.1, as much as is needed: one request at a time on a persistent connection.

use crate::{
    error::{ClientError, describe},
    tls,
};
use flate2::read::GzDecoder;
use muster_names::{socket_addresses, unknown_host};
use muster_schemas::{
    CommandId,
    codec::MAX_BODY_BYTES,
    views::{ErrorBody, ErrorCode},
};
use std::{
    fmt,
    io::{self, BufRead as _, BufReader, Read, Write},
    net::{IpAddr, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

/// The most bytes of an answer's head that are read.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// The most bytes of an answer that arrives compressed: the largest value, and room for what is around it.
const MAX_UNPACKED_BYTES: usize = MAX_BODY_BYTES + (1 << 10);
/// Headers of an answer.
const MAX_HEADERS: usize = 64;
/// Bytes that are read at once of what is not taken as a whole. The least that does: they are set to zero first.
const BUFFER_BYTES: usize = 4 << 10;
/// The first byte of the answer of a gateway that speaks TLS to a client that does not.
const TLS_ALERT: u8 = 0x15;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Its Unix socket. The kernel tells the gateway who calls.
    Unix(PathBuf),
    /// A TCP address, with the token that identifies the caller.
    Tcp {
        /// `HOST:PORT`.
        address: String,
        /// Sent as bearer token.
        token: Option<String>,
        /// Whether the connection is encrypted, and how the gateway proves its identity.
        tls: Option<Tls>,
    },
}

/// How the gateway proves its identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file with the certificates, in PEM, of the authorities that may vouch for it; `None` for those that this host
    /// trusts.
    pub authority: Option<PathBuf>,
}

/// The text is not the address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a gateway such as https://host:7457, http://host:7457 or unix:/path/muster.sock")]
pub struct EndpointError(String);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError(text.chars().take(200).collect());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(error()) } else { Ok(Self::Unix(path.into())) };
        }
        let (address, tls, port) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(address), _) => (address, Some(Tls::default()), 443),
            (None, Some(address)) => (address, None, 80),
            (None, None) => return Err(error()),
        };
        let address = address.trim_end_matches('/');
        let bad = |c: char| c.is_whitespace() || c.is_control() || "/?#@".contains(c);
        if address.is_empty() || address.contains(bad) {
            return Err(error());
        }
        // A colon inside the brackets of an IPv6 address is not a port.
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { address.to_owned() } else { format!("{address}:{port}") };
        Ok(Self::Tcp { address, token: None, tls })
    }
}

impl Endpoint {
    /// The same endpoint with a token; a Unix socket needs none.
    pub fn with_token(self, new: Option<String>) -> Self {
        match self {
            Self::Tcp { address, token, tls } => Self::Tcp { address, token: new.or(token), tls },
            unix @ Self::Unix(_) => unix,
        }
    }

    /// The same endpoint, whose certificate is checked against the authority in a file; ignored without TLS.
    pub fn with_authority(self, authority: Option<PathBuf>) -> Self {
        match self {
            Self::Tcp { address, token, tls: Some(_) } => Self::Tcp { address, token, tls: Some(Tls { authority }) },
            other => other,
        }
    }

    /// Whether a token would be sent to another host in clear text.
    pub fn sends_token_in_clear(&self) -> bool {
        matches!(self, Self::Tcp { address, token: Some(_), tls: None } if !is_loopback(address))
    }

    fn host(&self) -> &str {
        match self {
            Self::Unix(_) => "localhost",
            Self::Tcp { address, .. } => address,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { address, tls: None, .. } => write!(f, "http://{address}"),
            Self::Tcp { address, tls: Some(_), .. } => write!(f, "https://{address}"),
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: Vec<u8>,
    /// Whether the connection can be reused.
    pub(crate) keep_alive: bool,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<tls::Stream>),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(buffer),
            Self::Tcp(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(bytes),
            Self::Tcp(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(_) | Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// How the body of an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

struct Head {
    status: u16,
    framing: Framing,
    /// Whether the body is compressed by gzip.
    is_gzip: bool,
    keep_alive: bool,
}

/// A connection to a gateway.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: BufReader<Socket>,
}

impl Connection {
    pub(crate) fn open(endpoint: &Endpoint) -> Result<Self, ClientError> {
        let unreachable =
            |error: io::Error| ClientError::Unreachable { endpoint: endpoint.to_string(), reason: describe(&error) };
        let socket = match endpoint {
            Endpoint::Unix(path) => Socket::Unix(UnixStream::connect(path).map_err(unreachable)?),
            Endpoint::Tcp { address, tls, .. } => {
                let socket = connect_tcp(address).map_err(unreachable)?;
                match tls {
                    None => Socket::Tcp(socket),
                    Some(Tls { authority }) => {
                        socket.set_read_timeout(Some(CONNECT_TIMEOUT)).map_err(unreachable)?;
                        Socket::Tls(Box::new(tls::connect(socket, address, authority.as_deref())?))
                    }
                }
            }
        };
        Ok(Self { socket: BufReader::with_capacity(BUFFER_BYTES, socket) })
    }

    /// The timeout for reads; `None` waits for ever.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        let result = match self.socket.get_ref() {
            Socket::Unix(socket) => socket.set_read_timeout(timeout),
            Socket::Tcp(socket) => socket.set_read_timeout(timeout),
            Socket::Tls(stream) => stream.sock.set_read_timeout(timeout),
        };
        result.map_err(lost)
    }

    /// Sends a request.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        id: Option<CommandId>,
        endpoint: &Endpoint,
    ) -> Result<(), ClientError> {
        let mut request = Vec::with_capacity(256 + body.len().min(64 << 10));
        // Writing to memory cannot fail.
        let _ = write!(request, "{method} {path} HTTP/1.1\r\nhost: {}\r\n", endpoint.host());
        if let Endpoint::Tcp { token: Some(token), .. } = endpoint {
            let _ = write!(request, "authorization: Bearer {token}\r\n");
        }
        if let Some(id) = id {
            let _ = write!(request, "idempotency-key: {id}\r\n");
        }
        if method == "GET" {
            request.extend_from_slice(b"accept-encoding: gzip\r\n");
        } else {
            let _ = write!(request, "content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        request.extend_from_slice(b"\r\n");
        // A small body is sent with its head in one call.
        let socket = self.socket.get_mut();
        let written = if body.len() <= 64 << 10 {
            request.extend_from_slice(body);
            socket.write_all(&request)
        } else {
            socket.write_all(&request).and_then(|()| socket.write_all(body))
        };
        let written = written.and_then(|()| socket.flush());
        match written {
            // The gateway may refuse a body as too large before it has read all of it: read its answer.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(lost),
        }
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        id: Option<CommandId>,
        endpoint: &Endpoint,
    ) -> Result<Response, ClientError> {
        self.send(method, path, body, id, endpoint)?;
        self.response()
    }

    fn response(&mut self) -> Result<Response, ClientError> {
        let head = self.read_head()?;
        let mut body = Vec::new();
        match head.framing {
            Framing::Length(length) => {
                let read = (&mut self.socket).take(length).read_to_end(&mut body).map_err(lost)?;
                if (read as u64) < length {
                    return Err(cut_short());
                }
            }
            Framing::Chunked => while self.read_chunk(&mut body)? {},
            Framing::UntilClose => {
                self.socket.read_to_end(&mut body).map_err(lost)?;
            }
        }
        if head.is_gzip {
            body = unpacked(&body, MAX_UNPACKED_BYTES)?;
        }
        Ok(Response { status: head.status, body, keep_alive: head.keep_alive && head.framing != Framing::UntilClose })
    }

    /// Reads the head of the answer and returns its body as a stream. An unsuccessful answer is an error.
    pub(crate) fn into_stream(mut self) -> Result<BodyStream, ClientError> {
        let mut head = self.read_head()?;
        while head.status < 200 {
            head = self.read_head()?;
        }
        if head.status >= 300 || head.framing != Framing::Chunked {
            let mut body = Vec::new();
            match head.framing {
                Framing::Chunked => while self.read_chunk(&mut body)? {},
                Framing::Length(length) => {
                    (&mut self.socket).take(length).read_to_end(&mut body).map_err(lost)?;
                }
                Framing::UntilClose => {
                    self.socket.read_to_end(&mut body).map_err(lost)?;
                }
            }
            accepted(Response { status: head.status, body, keep_alive: false })?;
            return Err(ClientError::Protocol("the gateway's answer is not a stream".to_owned()));
        }
        Ok(BodyStream { connection: self, buffer: Vec::new(), taken: 0, ended: false })
    }

    fn read_head(&mut self) -> Result<Head, ClientError> {
        let mut bytes = Vec::with_capacity(512);
        loop {
            let line = bytes.len();
            let read = self.read_line_into(&mut bytes)?;
            if read == 0 {
                return Err(cut_short());
            }
            if bytes[0] == TLS_ALERT {
                return Err(ClientError::Protocol(
                    "the gateway speaks TLS: its address begins with https://".to_owned(),
                ));
            }
            if matches!(&bytes[line..], b"\r\n" | b"\n") && line > 0 {
                break;
            }
            if bytes.len() > MAX_HEAD_BYTES {
                return Err(ClientError::Protocol("the head of the answer is too large".to_owned()));
            }
        }
        parse_head(&bytes)
    }

    fn read_line_into(&mut self, bytes: &mut Vec<u8>) -> Result<usize, ClientError> {
        (&mut self.socket).take(MAX_HEAD_BYTES as u64).read_until(b'\n', bytes).map_err(lost)
    }

    /// Appends the next chunk; false after the last one.
    fn read_chunk(&mut self, body: &mut Vec<u8>) -> Result<bool, ClientError> {
        let mut line = Vec::with_capacity(16);
        self.read_line_into(&mut line)?;
        let size = chunk_size(line.strip_suffix(b"\n").ok_or_else(cut_short)?)
            .ok_or_else(|| ClientError::Protocol("a chunk of the answer has no size".to_owned()))?;
        let read = (&mut self.socket).take(size).read_to_end(body).map_err(lost)?;
        if (read as u64) < size {
            return Err(cut_short());
        }
        line.clear();
        self.read_line_into(&mut line)?;
        Ok(size > 0)
    }
}

/// The body of an answer as it arrives.
#[derive(Debug)]
pub(crate) struct BodyStream {
    connection: Connection,
    buffer: Vec<u8>,
    taken: usize,
    ended: bool,
}

impl BodyStream {
    /// The timeout for a line.
    pub(crate) fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<(), ClientError> {
        self.connection.set_timeout(timeout)
    }

    /// The next line, without its line end; `None` after the last one.
    pub(crate) fn read_line(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            let rest = &self.buffer[self.taken..];
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&rest[..length]).into_owned();
                self.taken += length + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.taken);
            self.taken = 0;
            if self.ended {
                return Ok(None);
            }
            self.ended = !self.connection.read_chunk(&mut self.buffer)?;
        }
    }
}

fn connect_tcp(address: &str) -> io::Result<TcpStream> {
    let mut last = unknown_host();
    for candidate in socket_addresses(address)? {
        match TcpStream::connect_timeout(&candidate, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads a head, which ends with an empty line.
fn parse_head(bytes: &[u8]) -> Result<Head, ClientError> {
    let malformed = || ClientError::Protocol("the answer is not HTTP".to_owned());
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    if !response.parse(bytes).is_ok_and(|parsed| parsed.is_complete()) {
        return Err(malformed());
    }
    let status = response.code.filter(|status| *status >= 100).ok_or_else(malformed)?;
    let mut head =
        Head { status, framing: Framing::UntilClose, is_gzip: false, keep_alive: response.version == Some(1) };
    for httparse::Header { name, value } in response.headers {
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case("content-length") {
            head.framing = Framing::Length(number(value, 10).ok_or_else(malformed)?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
            head.framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-encoding") {
            head.is_gzip = value.eq_ignore_ascii_case(b"gzip");
        } else if name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case(b"close") {
            head.keep_alive = false;
        }
    }
    if status < 200 || status == 204 || status == 304 {
        head.framing = Framing::Length(0);
    }
    Ok(head)
}

/// What was compressed by gzip, if it has `most` bytes at most: few bytes can stand for any number.
fn unpacked(gzip: &[u8], most: usize) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(gzip).take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| ClientError::Protocol(format!("the answer cannot be unpacked: {error}")))?;
    if bytes.len() > most {
        return Err(ClientError::Protocol(format!("the answer has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The size of a chunk in bytes, from the line before it. Extensions in that line are ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?;
    number(size.trim_ascii(), 16)
}

/// A number written with digits only.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, radix).ok()
}

/// Whether an address belongs to this host, so that nobody else can read what is sent there.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn lost(error: io::Error) -> ClientError {
    ClientError::AnswerLost(describe(&error))
}

fn cut_short() -> ClientError {
    ClientError::AnswerLost("the gateway closed the connection".to_owned())
}

/// The body of an answer, or the error that it reports.
pub(crate) fn accepted(response: Response) -> Result<Vec<u8>, ClientError> {
    if (200..300).contains(&response.status) {
        return Ok(response.body);
    }
    let body = serde_json::from_slice(&response.body).unwrap_or_else(|_| ErrorBody {
        code: if response.status == 404 { ErrorCode::NotFound } else { ErrorCode::Unavailable },
        message: format!("the gateway answered with HTTP status {}", response.status),
    });
    Err(ClientError::Refused(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_or_refused() {
        let tcp = |address: &str| Ok(Endpoint::Tcp { address: address.into(), token: None, tls: None });
        let tls = |address: &str| Ok(Endpoint::Tcp { address: address.into(), token: None, tls: Some(Tls::default()) });
        assert_eq!("https://host:7457/".parse(), tls("host:7457"));
        assert_eq!("https://[::1]".parse(), tls("[::1]:443"));
        assert_eq!("http://host:7457/".parse(), tcp("host:7457"));
        assert_eq!("http://host".parse(), tcp("host:80"));
        assert_eq!("http://[::1]:8".parse(), tcp("[::1]:8"));
        assert_eq!("unix:/a/b".parse(), Ok(Endpoint::Unix("/a/b".into())));
        assert_eq!("unix:///a/b".parse(), Ok(Endpoint::Unix("/a/b".into())));
        for bad in ["", "host", "https://", "ftp://host", "http://", "http://a/b", "http://a b", "unix:", "http://u@h"]
        {
            assert!(bad.parse::<Endpoint>().is_err(), "`{bad}`");
        }
    }

    #[test]
    fn a_token_goes_in_clear_only_within_a_host() {
        let clear = |text: &str, token: Option<&str>| {
            let endpoint: Endpoint = text.parse().unwrap();
            endpoint.with_token(token.map(str::to_owned)).sends_token_in_clear()
        };
        for local in ["http://localhost:1", "http://127.0.0.1:1", "http://127.9.0.1", "http://[::1]:1", "unix:/a"] {
            assert!(!clear(local, Some("secret")), "{local}");
        }
        for remote in ["http://head:1", "http://10.0.0.1:1", "http://[fd00::1]:1", "http://localhost.example.org:1"] {
            assert!(clear(remote, Some("secret")), "{remote}");
            assert!(!clear(remote, None), "{remote}");
        }
        assert!(!clear("https://head:1", Some("secret")));
    }

    #[test]
    fn a_compressed_answer_is_unpacked_within_its_bound() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&[7; 10_000]).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(unpacked(&packed, 10_000).unwrap(), [7; 10_000]);
        assert!(matches!(unpacked(&packed, 9_999), Err(ClientError::Protocol(_))));
        for bad in [&packed[..packed.len() - 1], b"not gzip", b""] {
            assert!(matches!(unpacked(bad, 10_000), Err(ClientError::Protocol(_))));
        }
        let head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP\r\n\r\n").unwrap();
        assert!(head.is_gzip);
        assert!(!parse_head(b"HTTP/1.1 200 OK\r\n\r\n").unwrap().is_gzip);
    }

    #[test]
    fn heads_say_how_the_body_ends() {
        let head = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").unwrap();
        assert_eq!((head.status, head.framing, head.keep_alive), (200, Framing::Length(5), true));
        let head = parse_head(b"HTTP/1.1 404 No\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n").unwrap();
        assert_eq!((head.status, head.framing, head.keep_alive), (404, Framing::Chunked, false));
        let head = parse_head(b"HTTP/1.0 200\ncontent-LENGTH:  7 \n\nnot: seen").unwrap();
        assert_eq!((head.status, head.framing, head.keep_alive), (200, Framing::Length(7), false));
        for bad in [
            "SSH-2.0",
            "HTTP/1.1 2000 OK",
            "HTTP/1.1 20",
            "HTTP/1.1 000 OK",
            "HTTP/1.x 200 OK",
            "HTTP/1.1 200 OK\r\ncontent-length: -1",
            "HTTP/1.1 200 OK\r\ncontent-length: +1",
            "HTTP/1.1 200 OK\r\ncontent-length : 1",
            "HTTP/1.1 200 OK\r\na: b\r\n c: d",
            "HTTP/1.1 200 OK\r\nno header",
        ] {
            assert!(parse_head(format!("{bad}\r\n\r\n").as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn chunks_say_how_large_they_are() {
        for (line, size) in [("0", Some(0)), ("1aF\r", Some(0x1af)), ("5 ; name=value", Some(5))] {
            assert_eq!(chunk_size(line.as_bytes()), size, "{line}");
        }
        for bad in ["", "\r", "x", "-1", "+1", "1 1", ";a", "10000000000000000"] {
            assert_eq!(chunk_size(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes: Vec<u8>) {
            let _ = (parse_head(&bytes), chunk_size(&bytes));
            let _ = parse_head(&[b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes, b"\r\n\r\n"].concat());
        }

        #[test]
        fn no_text_is_taken_for_an_endpoint_that_cannot_be_shown(text: String) {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                assert!(!endpoint.to_string().is_empty());
            }
        }
    }
}
