//! A copy of the whole store, as one file to download, while it is served.
//!
//! ```text
//! thread: copy into a private temporary file ─► check it ─► open it and remove its name ─► 64 KiB ─► one waiting ─► socket
//! ```
//!
//! The file has no name while it is sent: when the last byte is, or the client hangs up, or the process ends, nothing is left.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use maud::html;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::{heading, health};
use crate::calendar::{now, utc};
use crate::hex;
use crate::service::http::AppState;
use crate::service::http::download::Pages;
use crate::service::http::error::ApiError;
use crate::service::http::keys::require_admin_of_all;
use crate::service::http::pages::errors::PageError;
use crate::service::http::pages::{Guest, page, parts};
use crate::service::http::readers::{PAGES_NICE, give_way};
use crate::store::{Location, copy};

/// How much is read and sent at a time.
const CHUNK: usize = 64 << 10;

pub async fn show(State(app): State<AppState>, guest: Guest) -> Result<Html<String>, PageError> {
    require_admin_of_all(&guest.0)?;
    let size = app.read(|store| store.size()).await?;
    let content = html! {
        (heading("Backup", "/admin/backup"))
        p {
            "One SQLite file with everything that is stored at this moment, whatever the store is kept in: "
            "experiments, decisions, outcomes, logs, API keys. The service goes on meanwhile. The store takes about "
            (health::bytes(size)) "."
        }
        (parts::alert(
            "Keep it secret: it contains the keys of all experiments.",
            "Whoever reads it can predict the decisions of those that run. API keys and sessions are in it as hashes alone; the secrets and addresses of webhooks as they are.",
        ))
        // By POST, so that no link or prefetch takes one.
        form.inline method="post" action="/admin/backup" { button { "Download a copy" } }
        p.small { "It is copied and checked first: with millions of outcomes the download begins after some seconds." }
        h2 { "To restore it" }
        ol {
            li { "Stop every server of the store." }
            li { "Put the file in its place, or anywhere else: " code { "debora serve --store copy.db" } "." }
            li {
                "What was decided and told after the copy is gone. Clients that have seen more are refused (409 "
                code { "behind" } "), and experiments that lost something acknowledged are paused by servers that remember it."
            }
        }
        p {
            "A copy is the same store: never serve it beside the original. On the server's machine "
            code { "debora backup copy.db" } " does the same."
        }
    };
    Ok(page("Backup", Some(&guest), &content))
}

pub async fn take(State(app): State<AppState>, guest: Guest) -> Result<Response, PageError> {
    require_admin_of_all(&guest.0)?;
    // One at a time, until it is sent: each takes as much room on the disk as the store.
    let place = app.backups.clone().try_acquire_owned().map_err(|_| {
        ApiError::busy("another backup is being taken or downloaded; wait until it is done")
    })?;
    let (sender, chunks) = channel(1);
    let (opened, answer) = oneshot::channel();
    let location = app.service.location.clone();
    // A thread of its own: it blocks, for as long as the client takes to read.
    std::thread::spawn(move || {
        give_way(PAGES_NICE);
        match copied(&location) {
            Ok((file, size)) => {
                if opened.send(Ok(size)).is_ok() {
                    send(file, size, place, &sender);
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        }
    });
    let lost = || anyhow::anyhow!("the thread that copies has ended");
    let size = answer.await.unwrap_or_else(|_| Err(lost()));
    let size = size.map_err(|error| failed(&error))?;
    tracing::info!(actor = &*guest.0.name, size, "a backup is downloaded");
    Ok(download(size, chunks))
}

fn download(size: u64, chunks: Receiver<Bytes>) -> Response {
    let time = utc(now()).replace([' ', ':'], "-");
    let name = format!("attachment; filename=\"debora-{time}.db\"");
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("application/vnd.sqlite3"),
        ),
        (
            CONTENT_DISPOSITION,
            HeaderValue::from_str(&name).expect("times are plain characters"),
        ),
        // With it a browser knows a file that broke off for what it is.
        (CONTENT_LENGTH, HeaderValue::from(size)),
    ];
    (headers, Body::new(Pages(chunks))).into_response()
}

fn failed(error: &anyhow::Error) -> ApiError {
    let folder = std::env::temp_dir();
    let message = format!(
        "the copy could not be made in {}: {error:#}; make room there, start the server with TMPDIR set to a folder that has room, or \
         run `debora backup` on the server's machine",
        folder.display()
    );
    ApiError {
        cause: Some(format!("{error:#}").into()),
        ..ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "backup", message)
    }
}

/// A copy under a name that nobody guesses, which ends with this.
struct Nameless(PathBuf);

impl Drop for Nameless {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The copy, open and without a name, and its size.
fn copied(location: &Location) -> Result<(File, u64)> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .context("the operating system's random number generator failed")?;
    // Not in the store's own folder: a copy that fills its disk would stop the service.
    let name = format!(
        "debora-backup-{}-{}.db",
        std::process::id(),
        hex::encode(&random)
    );
    let path = Nameless(std::env::temp_dir().join(name));
    copy::to_file(location, &path.0)?;
    let file = File::open(&path.0)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// Sends it, until its end or that of the connection.
fn send(mut file: File, size: u64, place: OwnedSemaphorePermit, sender: &Sender<Bytes>) {
    let mut place = Some(place);
    let mut left = size;
    let mut chunk = vec![0; CHUNK];
    // A file that cannot be read to its end breaks the download off, which its length tells.
    while let Ok(count @ 1..) = file.read(&mut chunk) {
        left = left.saturating_sub(count as u64);
        // Before the last of it is sent: this thread gives way, and whoever has all of it is not to find it still being sent.
        if left == 0 {
            place.take();
        }
        let sent = sender.blocking_send(Bytes::copy_from_slice(&chunk[..count]));
        if sent.is_err() {
            return;
        }
    }
}
