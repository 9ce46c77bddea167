//! `GET /v1/experiments/{id}/log/download`: the whole log as one file, page after page, however long it is.
//!
//! ```text
//! store ─► page (read lane) ─► one page waiting ─► socket
//! ```
//!
//! Three pages are in memory at most: one that is read, one that waits, one that is sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::log::{ERROR_LINE, LINES_MAX};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::Id;
use crate::service::http::log::{WrittenPage, page_of};
use crate::store::Role;

/// How often a page is asked for while others read. Each time waits for a second, and a file that is half sent cannot be asked
/// for again from its middle.
const ATTEMPTS: u32 = 60;

/// The whole log, as one file
///
/// Role read; what it shows is what the pages of `/log` show, in order. `debora audit` takes the file. If the store fails in the
/// middle, the file ends with a line of type `error`, and no audit takes it for a log.
#[utoipa::path(get, path = "/v1/experiments/{id}/log/download", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The log", body = String, content_type = "application/x-ndjson")))]
pub async fn download(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, ApiError> {
    caller.require_for(Role::Read, &id)?;
    // The first page before the answer begins: what is wrong by then can still be told by a status.
    let first = page_of(&app, &caller, &id, None, LINES_MAX).await?;
    let name = format!("attachment; filename=\"{id}.jsonl\"");
    let name = HeaderValue::from_str(&name).map_err(ApiError::store)?;
    let (sender, pages) = channel(1);
    tokio::spawn(send_pages(app, caller, id, first, sender));
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-ndjson"),
        ),
        (CONTENT_DISPOSITION, name),
    ];
    Ok((headers, Body::new(Pages(pages))).into_response())
}

/// Sends page after page, until the last, an error, or the end of the connection.
async fn send_pages(
    app: AppState,
    caller: Caller,
    id: String,
    first: WrittenPage,
    sender: Sender<Bytes>,
) {
    let mut page = first;
    // Sending fails once nobody takes the pages: then nothing more is read.
    while sender.send(page.lines.into()).await.is_ok() {
        let Some(after) = page.next else { return };
        page = match patiently(&app, &caller, &id, after).await {
            Ok(page) => page,
            Err(error) => {
                let _ = sender.send(error_line(error)).await;
                return;
            }
        };
    }
}

/// The next page, waiting longer for its turn than a request does that can be repeated.
async fn patiently(
    app: &AppState,
    caller: &Caller,
    id: &str,
    after: String,
) -> Result<WrittenPage, ApiError> {
    for _ in 1..ATTEMPTS {
        match page_of(app, caller, id, Some(after.clone()), LINES_MAX).await {
            Err(error) if error.code == "busy" => {}
            page => return page,
        }
    }
    page_of(app, caller, id, Some(after), LINES_MAX).await
}

/// The last line of a log that cannot be read to its end.
fn error_line(error: ApiError) -> Bytes {
    let message = json!(error.message);
    // Made for what it does on the way: it writes the detail to the server's log.
    let _ = error.into_response();
    format!("{ERROR_LINE}\"message\":{message}}}\n").into()
}

/// Pages as a body.
pub struct Pages(pub Receiver<Bytes>);

impl hyper::body::Body for Pages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let page = self.0.poll_recv(context);
        page.map(|page| page.map(|lines| Ok(Frame::data(lines))))
    }
}
