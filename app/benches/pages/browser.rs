//! An open page: what it asks for at first, and what it asks for every few seconds.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;

/// How often a live part asks, as `pages/live.rs` tells the browser.
const EVERY: Duration = Duration::from_secs(5);

/// An answer.
pub struct Loaded {
    pub status: u16,
    pub taken: Duration,
    /// Bytes of its body on the way.
    pub bytes: usize,
    /// Its text.
    pub text: String,
}

/// Asks for a page as a browser does. `shown` is the hash of what it shows; empty at first.
pub fn load(address: &str, path: &str, shown: &str) -> Loaded {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\naccept-encoding: gzip\r\nx-shown: {shown}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("a connection");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let taken = begun.elapsed();
    let end = answer
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .expect("a head")
        + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let body = &answer[end..];
    let mut text = String::new();
    if head.contains("content-encoding: gzip") {
        GzDecoder::new(body)
            .read_to_string(&mut text)
            .expect("what was compressed");
    } else {
        text = String::from_utf8_lossy(body).into_owned();
    }
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Loaded {
        status: status.expect("a status"),
        taken,
        bytes: body.len(),
        text,
    }
}

/// The addresses of what a page loads.
pub fn assets(text: &str) -> Vec<String> {
    let links = text.split("=\"/assets/").skip(1);
    links
        .map(|rest| format!("/assets/{}", rest.split('"').next().expect("an end")))
        .collect()
}

/// The hash of what a page shows; empty if it has no live part.
pub fn shown(text: &str) -> &str {
    let rest = text.split("x-shown&quot;:&quot;").nth(1);
    rest.and_then(|rest| rest.split('&').next()).unwrap_or("")
}

/// Keeps a page open until the end: how long each answer took.
pub fn keep_open(address: &str, path: &str, offset: Duration, over: &AtomicBool) -> Vec<Duration> {
    let mut taken = Vec::new();
    let mut hash = String::new();
    let mut next = Instant::now() + offset;
    while !over.load(Ordering::Relaxed) {
        if Instant::now() < next {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        next += EVERY;
        let page = load(address, path, &hash);
        taken.push(page.taken);
        if page.status == 200 {
            hash = shown(&page.text).to_owned();
        }
    }
    taken
}
