//! Connections: as many as are allowed, none for ever, and an end in good order.
//!
//! HTTP/1.1 alone: programs and proxies speak it, and a connection then has one request at a time, which bounds what waits
//! for the writer. A client has a limited time to send its headers and another to send its body; who takes its answers
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
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::service::http::{App, AppState};

/// After this a connection is asked to end, and then has the time that a client is given.
const AGE_MAX: Duration = Duration::from_secs(600);

/// The most bytes of a request's line and headers.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// How connections are treated.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The most at a time; others wait to be accepted.
    pub connections: u32,
    /// How long requests in flight may take to end after the service is asked to.
    pub grace: Duration,
}

/// Accepts connections until `end`, then waits for requests in flight.
pub async fn serve(
    listener: TcpListener,
    state: AppState,
    terms: Terms,
    end: impl Future<Output = ()>,
) {
    let app = App::new(state);
    let places = Arc::new(Semaphore::new(terms.connections as usize));
    let (stop, stopping) = watch::channel(false);
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut end => break,
        };
        if let Some((stream, place)) = accepted {
            let visit = Visit {
                app: app.clone(),
                stopping: stopping.clone(),
            };
            tokio::spawn(visit.serve(stream, place));
        }
    }
    drop(listener);
    let _ = stop.send(true);
    // All places are free once every connection has ended.
    if tokio::time::timeout(terms.grace, places.acquire_many(terms.connections))
        .await
        .is_err()
    {
        tracing::warn!(
            "requests were still in flight after {} seconds",
            terms.grace.as_secs_f64()
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

/// One connection and what it needs.
struct Visit {
    app: App,
    stopping: watch::Receiver<bool>,
}

impl Visit {
    async fn serve(mut self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let _ = stream.set_nodelay(true);
        self.app.state.metrics.connections.inc();
        self.talk(stream).await;
        self.app.state.metrics.connections.dec();
        drop(place);
    }

    async fn talk(&mut self, stream: TcpStream) {
        let (app, timeout) = (&self.app, self.app.state.timeout);
        let (asked, unread) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
        let service = hyper::service::service_fn(|request: Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            // The connection has one request at a time.
            unread.store(!request.body().is_end_stream(), Ordering::Relaxed);
            let watched = request.map(|body| {
                Body::new(Watched {
                    body,
                    unread: Arc::clone(&unread),
                })
            });
            let unread = &unread;
            async move {
                let mut answer = app.answer(watched).await;
                if unread.load(Ordering::Relaxed) {
                    answer
                        .headers_mut()
                        .insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let talk = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut talk = pin!(talk);
        tokio::select! {
            ended = &mut talk => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke off");
                }
                return;
            }
            _ = self.stopping.wait_for(|stopping| *stopping) => {
                // Who has asked for nothing yet is not waited for.
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

/// A request's body, and whether some of it is unread. What is not read ends the connection, and the client is told so: it
/// would else send its next request into a closed one.
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
