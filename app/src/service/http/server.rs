//! Connections: a limited number, for a limited time, and ended in good order.
//!
//! HTTP/1.1 alone: programs and proxies speak it, and a connection then has one request at a time, which bounds what waits
//! for the writer. A client has a limited time to send its headers, its body, and to take its answer.
//!
//! ```text
//! places     --connections of them      all requests
//! beyond     as many, for one head      503, but for /health, /ready and requests with a valid key,
//! reserve                               of which 32 at a time are served
//! ```
//!
//! Every connection is accepted at once: one that waited in the kernel's queue would look to its client like a service that
//! is gone, and health checks would wait with it.

use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONNECTION};
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::service::counts::Shed;
use crate::service::http::error::ApiError;
use crate::service::http::problems::MEDIA_TYPE;
use crate::service::http::stream::Timed;
use crate::service::http::{App, AppState};

/// After this a connection is asked to end, and then has as long as a client may take for a request. Ten minutes: long enough that
/// connecting anew costs nothing, short enough that a client which takes its answers slowly does not keep its place.
const AGE_MAX: Duration = Duration::from_secs(600);

/// The most bytes of a request's line and headers. Cookies and proxies add some; 64 KiB is far more than they do.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How long a connection beyond the limit may take to send the head of its request: it comes from nearby, or can come again.
const BEYOND_HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// How many of their requests are served at a time. A health check and some requests with keys: more would only be a higher
/// limit. Taken once a head has said who asks, so that silent strangers take none.
const RESERVE: usize = 32;

/// How long what a client still sends is read after its last answer: a connection closed over unread bytes is reset, and the
/// client then sees an error of the network instead of the answer.
const LINGER: Duration = Duration::from_secs(1);

/// What a server may open at most beside the store: connections of every kind.
pub fn sockets_max(rules: ConnectionRules) -> u64 {
    2 * u64::from(rules.connections)
}

/// How many connections there may be, and how they end.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRules {
    /// The most at a time; others are answered 503, except for the reserve.
    pub connections: u32,
    /// How long requests in flight may take to end after the service is asked to.
    pub grace: Duration,
}

/// The places there are, and what a connection gets.
struct Places {
    ordinary: Arc<Semaphore>,
    beyond: Arc<Semaphore>,
    reserve: Arc<Semaphore>,
}

/// What a connection is accepted for.
enum ConnectionPlace {
    Ordinary(OwnedSemaphorePermit),
    Beyond(OwnedSemaphorePermit),
}

impl Places {
    fn new(rules: ConnectionRules) -> Self {
        let places = |number| Arc::new(Semaphore::new(number));
        Self {
            ordinary: places(rules.connections as usize),
            // As many again are heard. Those beyond them are told and dropped, and may not hear it: each costs an open file.
            beyond: places(rules.connections as usize),
            reserve: places(RESERVE),
        }
    }

    /// The best place that is free.
    fn take(&self) -> Option<ConnectionPlace> {
        let free = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned().ok();
        free(&self.ordinary)
            .map(ConnectionPlace::Ordinary)
            .or_else(|| free(&self.beyond).map(ConnectionPlace::Beyond))
    }

    /// Waits for requests in flight, as long as the rules allow.
    async fn wait_for_all(&self, rules: ConnectionRules) {
        let ended = async {
            // All places are free once every connection has ended. Others beyond the limit have no request to lose.
            let _ = self.ordinary.acquire_many(rules.connections).await;
            let _ = self.reserve.acquire_many(RESERVE as u32).await;
        };
        if tokio::time::timeout(rules.grace, ended).await.is_err() {
            tracing::warn!(
                "requests were still in flight after {} seconds",
                rules.grace.as_secs_f64()
            );
        }
    }
}

/// Accepts connections until `end`, then waits for requests in flight.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    rules: ConnectionRules,
    end: impl Future<Output = ()>,
) {
    let app = App::new(state);
    let places = Places::new(rules);
    let (stop, stopping) = watch::channel(false);
    let mut end = pin!(end);
    loop {
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            () = &mut end => break,
        };
        let connection = Connection {
            app: app.clone(),
            stopping: stopping.clone(),
            reserve: Arc::clone(&places.reserve),
        };
        match stream.map(|stream| (stream, places.take())) {
            Some((stream, Some(place))) => drop(tokio::spawn(connection.serve(stream, place))),
            Some((stream, None)) => {
                app.state.service.counts.shed(Shed::Dropped);
                let _ = stream
                    .into_std()
                    .and_then(|mut stream| stream.write_all(TOLD_OFF.as_bytes()));
            }
            None => {}
        }
    }
    // This comes first: a load balancer is to notice, and go elsewhere.
    drop(listener);
    let _ = stop.send(true);
    places.wait_for_all(rules).await;
}

/// The next connection.
async fn accept(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            // Most often there are too many open files, which takes a moment to pass.
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// What one connection needs.
struct Connection {
    app: App,
    stopping: watch::Receiver<bool>,
    reserve: Arc<Semaphore>,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, place: ConnectionPlace) {
        // Answers are written whole: waiting to fill a packet would only add 40 ms to some of them.
        let _ = stream.set_nodelay(true);
        let connections = self.app.state.metrics.connections.clone();
        connections.inc();
        match place {
            ConnectionPlace::Ordinary(_place) => self.talk(stream).await,
            ConnectionPlace::Beyond(_place) => self.talk_once(stream).await,
        }
        connections.dec();
    }

    async fn talk(&mut self, stream: TcpStream) {
        let app = &self.app;
        let timeout = app.state.timeout;
        let asked = AtomicBool::new(false);
        // Shared by all requests: the connection has one at a time.
        let unread = Arc::new(AtomicBool::new(false));
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            answer(app, request, Arc::clone(&unread))
        });
        let talk = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(Timed::new(stream, timeout)), service);
        let mut talk = pin!(talk);
        tokio::select! {
            ended = &mut talk => {
                // Clients break off for reasons of their own: nobody has to be woken for it.
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke off");
                }
                return;
            }
            _ = self.stopping.wait_for(|stopping| *stopping) => {
                // A connection without a request so far has nothing to lose, and may stay silent.
                if !asked.load(Ordering::Relaxed) {
                    return;
                }
            }
            () = tokio::time::sleep(AGE_MAX) => {}
        }
        talk.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(timeout, talk).await;
    }

    /// Looks at one request, and serves it if it is one of those that the reserve is for.
    async fn talk_once(&self, stream: TcpStream) {
        let app = &self.app;
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            reserved(app, &self.reserve, request)
        });
        let talk = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(BEYOND_HEAD_TIMEOUT)
            // One request: the next belongs behind those who have waited for a place.
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(Timed::new(stream, app.state.timeout)), service);
        match talk.without_shutdown().await {
            Ok(parts) => linger(parts.io.into_inner().into_inner()).await,
            Err(error) => tracing::debug!(%error, "a connection broke off"),
        }
    }
}

/// Answers a request on a connection beyond the limit.
async fn reserved(
    app: &App,
    reserve: &Semaphore,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let state = &app.state;
    let entitled =
        is_watching(request.uri().path()) || state.access.has_key(state, request.headers()).await;
    if let Some(_place) = entitled.then(|| reserve.try_acquire().ok()).flatten() {
        return Ok(app.answer(request.map(Body::new)).await);
    }
    state.service.counts.shed(Shed::Connections);
    let mut refused = crowded().into_response();
    refused
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(refused)
}

/// Whether this is asked by those who watch over the service, who need an answer most when it is crowded.
fn is_watching(path: &str) -> bool {
    ["/health", "/ready"].contains(&path)
}

fn crowded() -> ApiError {
    ApiError::busy("all connections are taken; repeat the request later, or raise --connections")
}

/// What a connection is told that has no place.
static TOLD_OFF: LazyLock<String> = LazyLock::new(|| {
    let body = serde_json::to_string(&crowded()).unwrap_or_default();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {MEDIA_TYPE}\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
});

/// Ends a connection so that its last answer arrives.
async fn linger(mut stream: TcpStream) {
    let rest = async {
        let _ = stream.shutdown().await;
        let mut dropped = [0; 4096];
        while stream.read(&mut dropped).await.is_ok_and(|read| read > 0) {}
    };
    let _ = tokio::time::timeout(LINGER, rest).await;
}

/// Answers a request, and ends the connection if some of its body was not read.
async fn answer(
    app: &App,
    request: Request<Incoming>,
    unread: Arc<AtomicBool>,
) -> Result<Response, Infallible> {
    unread.store(!request.body().is_end_stream(), Ordering::Relaxed);
    let watched = request.map(|body| {
        Body::new(Watched {
            body,
            unread: Arc::clone(&unread),
        })
    });
    let mut answer = app.answer(watched).await;
    // What was not read would be taken for the next request, so hyper ends the connection. The
    // client has to be told, or it sends its next request into a closed one.
    if unread.load(Ordering::Relaxed) {
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}

/// A request's body, and whether some of it is unread.
struct Watched {
    body: Incoming,
    unread: Arc<AtomicBool>,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if self.body.is_end_stream() || matches!(polled, Poll::Ready(None)) {
            self.unread.store(false, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
