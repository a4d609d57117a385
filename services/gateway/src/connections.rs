//! Serves the connections that a socket accepts, each for as long as it behaves.
//!
//! A connection is counted before anything is read from it. It has a limited time to agree on keys if it is encrypted,
//! for the head of a request, and to receive each piece of an answer; one that waits for an answer or follows a stream
//! may do so indefinitely.

use crate::{
    budgets::{Account, Admission, Budgets, HeldBytes, Holdings},
    caller::Peer,
    error::ApiError,
    metrics::Metrics,
    tls::Certificate,
};
use axum::{
    Router,
    body::{Body, HttpBody},
    extract::{ConnectInfo, Request},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use hyper::{
    body::{Frame, Incoming, SizeHint},
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    sync::Semaphore,
    time::{Instant, Sleep},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The most bytes in the head of a request: an address can hold the ids of some thousand jobs.
const MAX_HEAD_BYTES: usize = 96 << 10;
/// The most bytes of a request that a connection reads ahead.
const MAX_BUFFER_BYTES: usize = 128 << 10;
/// How much of a large answer is written at a time.
const SLICE_BYTES: usize = 64 << 10;
/// How long a caller may receive nothing of an answer; long enough to look at a page for a while.
const WRITE_STALL: Duration = Duration::from_secs(300);
/// Smaller answers do not count in their caller's budget.
const SMALL_ANSWER_BYTES: u64 = 64 << 10;
/// The most bytes read of a request that was refused early, so that the caller finds the answer rather than a broken
/// pipe.
const DRAINED_BYTES: usize = 1 << 20;
/// The longest time for that.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// The pause after a connection that could not be accepted for lack of something, such as open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everything needed to serve connections.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) budgets: Budgets,
    pub(crate) metrics: Arc<Metrics>,
    /// How long a connection may take for the head of a request, including the time before it.
    pub(crate) head_time: Duration,
    pub(crate) shutdown: CancellationToken,
    /// The open connections.
    pub(crate) tracker: TaskTracker,
    /// Taken while a refused connection is told why.
    pub(crate) turned_away: Arc<Semaphore>,
}

/// How many refused connections are told the reason at a time.
pub(crate) const TURNED_AWAY: usize = 64;

/// Something that accepts connections.
pub(crate) trait Accept {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection and its peer.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Io, Peer)>> + Send;
}

impl Serving {
    /// Accepts connections until the gateway stops. With a certificate they are encrypted.
    pub(crate) async fn accept_all(&self, mut listener: impl Accept, certificate: Option<Arc<Certificate>>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.shutdown.cancelled() => return,
            };
            match accepted {
                Ok((io, peer)) => self.begin(io, peer, certificate.as_ref().map(|known| known.acceptor())),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection in the background, or refuses it.
    fn begin<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        io: I,
        peer: Peer,
        acceptor: Option<TlsAcceptor>,
    ) {
        match (self.budgets.admit(Account::from(peer)), acceptor) {
            (Ok(admission), None) => drop(self.tracker.spawn(self.clone().serve(io, peer, admission))),
            (Ok(admission), Some(acceptor)) => {
                let agreed = agree(acceptor, io, self.head_time);
                let (serving, shutdown) = (self.clone(), self.shutdown.clone());
                self.tracker.spawn(async move {
                    if let Some(Some(io)) = shutdown.run_until_cancelled(agreed).await {
                        serving.serve(io, peer, admission).await;
                    }
                });
            }
            // To agree on keys only to refuse would cost more than to serve; they just see their connection end.
            (Err(_), Some(_)) => self.metrics.refused_connections.add(1, &[]),
            (Err(error), None) => {
                self.metrics.refused_connections.add(1, &[]);
                // If too many are being told, the rest just see their connection end.
                if let Ok(turn) = self.turned_away.clone().try_acquire_owned() {
                    self.tracker.spawn(async move {
                        turn_away(io, error).await;
                        drop(turn);
                    });
                }
            }
        }
    }

    /// Serves a connection until it ends.
    async fn serve<I: AsyncRead + AsyncWrite + Unpin>(self, io: I, peer: Peer, admission: Arc<Admission>) {
        self.metrics.connections.add(1, &[]);
        let was_refused = Arc::new(AtomicBool::new(false));
        let router = TowerToHyperService::new(self.router);
        let service = service_fn(|request| {
            Box::pin(answer(router.clone(), request, peer, admission.clone(), was_refused.clone()))
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_time)
            .max_header_size(MAX_HEAD_BYTES)
            .max_buf_size(MAX_BUFFER_BYTES)
            .serve_connection(TokioIo::new(Patient::new(io)), service);
        let mut is_stopping = false;
        let served = loop {
            tokio::select! {
                served = poll_fn(|context| connection.poll_without_shutdown(context)) => break served,
                () = self.shutdown.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended");
        }
        let io = connection.into_parts().io.into_inner();
        end(io, was_refused.load(Ordering::Relaxed)).await;
        self.metrics.connections.add(-1, &[]);
    }
}

/// Agrees on keys with a caller, within the time for the head of a request. The connection counts meanwhile.
async fn agree<I: AsyncRead + AsyncWrite + Unpin>(
    acceptor: TlsAcceptor,
    io: I,
    head_time: Duration,
) -> Option<tokio_rustls::server::TlsStream<I>> {
    match tokio::time::timeout(head_time, acceptor.accept(io)).await {
        Ok(Ok(io)) => Some(io),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection was not encrypted");
            None
        }
        Err(_) => None,
    }
}

/// Whether an error concerns a single connection, which ended before it was accepted.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Ends a connection. The rest of a refused request is read for a moment: closing a socket with unread data takes the
/// answer away from a caller who has not read it yet.
async fn end(mut io: impl AsyncRead + AsyncWrite + Unpin, drains: bool) {
    let _ = io.shutdown().await;
    if !drains {
        return;
    }
    let drain = async {
        let (mut buffer, mut left) = ([0; 8 << 10], DRAINED_BYTES);
        while let Ok(read @ 1..) = io.read(&mut buffer).await
            && left > read
        {
            left -= read;
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, drain).await;
}

/// Reports why a connection is refused.
async fn turn_away(mut io: impl AsyncRead + AsyncWrite + Unpin, error: ApiError) {
    let body = serde_json::to_string(&error.0).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {} Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        error.0.code.status(),
        body.len(),
    );
    let told = tokio::time::timeout(DRAIN_TIME, io.write_all(answer.as_bytes())).await;
    if matches!(told, Ok(Ok(()))) {
        end(io, true).await;
    }
}

/// Answers one request.
async fn answer(
    router: TowerToHyperService<Router>,
    request: hyper::Request<Incoming>,
    peer: Peer,
    admission: Arc<Admission>,
    was_refused: Arc<AtomicBool>,
) -> Result<Response, Infallible> {
    let (tracked, is_read) = Tracked::new(request.body().is_end_stream());
    let mut request: Request = request.map(|body| Body::new(tracked.around(body)));
    request.extensions_mut().insert(ConnectInfo(peer));
    request.extensions_mut().insert(admission.clone());
    let holdings = Holdings::default();
    request.extensions_mut().insert(holdings.clone());
    let mut response = match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    drop(holdings);
    if !is_read.load(Ordering::Relaxed) {
        // The rest of the body is still on its way, and would be taken for the next request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        was_refused.store(true, Ordering::Relaxed);
    }
    Ok(count(response, &admission))
}

/// Counts a large answer in its caller's budget, until it is sent.
fn count(response: Response, admission: &Admission) -> Response {
    let Some(length) = response.body().size_hint().exact().filter(|length| *length > SMALL_ANSWER_BYTES) else {
        return response;
    };
    match admission.hold_answer(length) {
        Ok(held) => response.map(|body| Body::new(Large::new(body, held))),
        Err(error) => error.into_response(),
    }
}

/// A large body: it counts while it is sent, and is sent in slices, between which the thread serves others. A caller who
/// reads as fast as the gateway writes would otherwise keep the thread for all of it.
struct Large {
    body: Body,
    /// The rest of the present frame.
    rest: Bytes,
    gives_way: bool,
    _held: HeldBytes,
}

impl Large {
    fn new(body: Body, held: HeldBytes) -> Self {
        Self { body, rest: Bytes::new(), gives_way: false, _held: held }
    }
}

impl HttpBody for Large {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if std::mem::take(&mut self.gives_way) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        self.gives_way = true;
        let bytes = self.rest.len().min(SLICE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

/// Notes whether the body of a request is read to its end.
struct Tracked<B> {
    body: B,
    is_read: Arc<AtomicBool>,
}

impl Tracked<()> {
    fn new(is_empty: bool) -> (Self, Arc<AtomicBool>) {
        let is_read = Arc::new(AtomicBool::new(is_empty));
        (Self { body: (), is_read: is_read.clone() }, is_read)
    }

    fn around<B>(self, body: B) -> Tracked<B> {
        Tracked { body, is_read: self.is_read }
    }
}

impl<B: HttpBody + Unpin> HttpBody for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose other end must receive written data within [`WRITE_STALL`].
struct Patient<I> {
    io: I,
    /// When to give up; `None` while no data waits to be received.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<I> Patient<I> {
    const fn new(io: I) -> Self {
        Self { io, stalled: None }
    }

    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + WRITE_STALL)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Patient<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Patient<I> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, bytes);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(context);
        self.judge(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Config,
        budgets::{Account, Budgets},
    };
    use std::{sync::atomic::AtomicU32, task::Wake};

    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A caller who takes all at once does not keep the thread: after each slice others have their turn.
    #[test]
    fn a_large_answer_gives_way_after_each_slice() {
        let budgets = Budgets::new(&Config::default());
        let admission = budgets.admit(Account::User(4_000_002)).unwrap();
        let bytes: Vec<u8> = (0..3 * SLICE_BYTES + 7).map(|at| at as u8).collect();
        let held = admission.hold_answer(bytes.len() as u64).unwrap();
        let mut large = Large::new(Body::from(bytes.clone()), held);
        let woken = Arc::new(Woken(AtomicU32::new(0)));
        let waker = woken.clone().into();
        let mut context = Context::from_waker(&waker);
        let (mut got, mut frames, mut pauses) = (Vec::new(), 0, 0);
        while !large.is_end_stream() {
            assert_eq!(large.size_hint().exact(), Some((bytes.len() - got.len()) as u64));
            match Pin::new(&mut large).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap();
                    assert!(data.len() <= SLICE_BYTES);
                    got.extend_from_slice(&data);
                    frames += 1;
                }
                Poll::Ready(end) => panic!("{end:?}"),
                Poll::Pending => pauses += 1,
            }
        }
        assert!(got == bytes);
        assert_eq!((frames, pauses, woken.0.load(Ordering::Relaxed)), (4, 3, 3), "each pause is followed by a turn");
    }
}
