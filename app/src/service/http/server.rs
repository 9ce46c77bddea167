//! Connections: a limited number, for a limited time, and ended in good order.
//!
//! HTTP/1.1 alone: programs and proxies speak it, and a connection then has one request at a time, which bounds what waits
//! for the writer. A client has a limited time to send its headers and another to send its body; one that takes its answers
//! slowly is cut off when the connection has reached its age.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::response::Response;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::service::http::{App, AppState};

/// After this a connection is asked to end, and then has as long as a client may take for a request. Ten minutes: long enough that
/// connecting anew costs nothing, short enough that a client which takes its answers slowly does not keep its place.
const AGE_MAX: Duration = Duration::from_secs(600);

/// The most bytes of a request's line and headers. Cookies and proxies add some; 64 KiB is far more than they do.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How many connections there may be, and how they end.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionRules {
    /// The most at a time; others wait to be accepted.
    pub connections: u32,
    /// How long requests in flight may take to end after the service is asked to.
    pub grace: Duration,
}

/// Accepts connections until `end`, then waits for requests in flight.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    rules: ConnectionRules,
    end: impl Future<Output = ()>,
) {
    let app = App::new(state);
    // A place is taken before a connection is accepted, so that those beyond the limit wait in the
    // kernel's queue and cost no memory.
    let places = Arc::new(Semaphore::new(rules.connections as usize));
    let (stop, stopping) = watch::channel(false);
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut end => break,
        };
        if let Some((stream, place)) = accepted {
            let connection = Connection {
                app: app.clone(),
                stopping: stopping.clone(),
            };
            tokio::spawn(connection.serve(stream, place));
        }
    }
    // This comes first: a load balancer is to notice, and go elsewhere.
    drop(listener);
    let _ = stop.send(true);
    wait_for_all(&places, rules).await;
}

/// Waits for requests in flight, as long as the rules allow.
async fn wait_for_all(places: &Semaphore, rules: ConnectionRules) {
    // All places are free once every connection has ended.
    let ended = places.acquire_many(rules.connections);
    if tokio::time::timeout(rules.grace, ended).await.is_err() {
        tracing::warn!(
            "requests were still in flight after {} seconds",
            rules.grace.as_secs_f64()
        );
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
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
}

impl Connection {
    async fn serve(mut self, stream: TcpStream, place: OwnedSemaphorePermit) {
        // Answers are written whole: waiting to fill a packet would only add 40 ms to some of them.
        let _ = stream.set_nodelay(true);
        self.app.state.metrics.connections.inc();
        self.talk(stream).await;
        self.app.state.metrics.connections.dec();
        drop(place);
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
            .serve_connection(TokioIo::new(stream), service);
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
