//! One caller who asks for one decision after another, beside what the disk alone takes for as much.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use debora_cli::store::{Lease, Store};

use super::raw;

/// What a commit of one lease appends to SQLite's log: the pages of the lease, of its request key and of the progress, each with a
/// header of 24 bytes.
pub const COMMIT_BYTES: usize = 3 * (4096 + 24);

/// A file that is written over and over is as long as the log of SQLite before it begins anew.
const FILE_BYTES: u64 = 1000 * (4096 + 24);

/// A way to have bytes in a file on the disk.
#[derive(Clone, Copy)]
pub struct FileSync {
    pub name: &'static str,
    /// Over what is there, or behind it: a file that grows has its length to be written, too.
    over: bool,
    sync: fn(&File) -> std::io::Result<()>,
}

/// The ways to compare with.
pub const FILE_SYNCS: [FileSync; 4] = [
    FileSync {
        name: "append, fsync",
        over: false,
        sync: File::sync_all,
    },
    FileSync {
        name: "append, fdatasync",
        over: false,
        sync: File::sync_data,
    },
    FileSync {
        name: "overwrite, fsync",
        over: true,
        sync: File::sync_all,
    },
    FileSync {
        name: "overwrite, fdatasync",
        over: true,
        sync: File::sync_data,
    },
];

impl FileSync {
    /// How long each write of a commit's bytes takes in a new file, for this long.
    pub fn latencies(self, path: &Path, time: Duration) -> Vec<Duration> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(path)
            .expect("a file");
        let bytes = [7; COMMIT_BYTES];
        let whole = FILE_BYTES / COMMIT_BYTES as u64;
        if self.over {
            for place in 0..whole {
                write_at(&file, &bytes, place);
            }
            file.sync_all().expect("a disk");
        }
        let mut place = 0;
        latencies(time, || {
            write_at(&file, &bytes, if self.over { place % whole } else { place });
            place += 1;
            (self.sync)(&file).expect("a disk");
        })
    }
}

fn write_at(file: &File, bytes: &[u8], place: u64) {
    file.write_all_at(bytes, place * bytes.len() as u64)
        .expect("a disk");
}

/// How long each commit of one of these leases takes.
pub fn commit_latencies(store: &mut Store, leases: &[Lease]) -> Vec<Duration> {
    let seconds = |lease| raw::lease_seconds(store, std::slice::from_ref(lease), 1);
    leases
        .iter()
        .map(seconds)
        .map(Duration::from_secs_f64)
        .collect()
}

/// How long each request takes on one connection, for this long. `body` makes a request's body from its number.
///
/// A thread that waits for its answer, and not a task: what its wake-ups take is not the service's.
pub fn request_latencies(
    address: &str,
    path: &str,
    time: Duration,
    body: impl Fn(u64) -> String,
) -> Vec<Duration> {
    let stream = TcpStream::connect(address).expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let mut answers = BufReader::new(stream.try_clone().expect("a socket"));
    let mut requests = stream;
    let mut number = 0;
    latencies(time, || {
        let body = body(number);
        number += 1;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        requests
            .write_all(request.as_bytes())
            .expect("a server that reads");
        read_answer(&mut answers);
    })
}

/// Reads one answer with a content-length. Anything but success is a panic.
fn read_answer(answers: &mut BufReader<TcpStream>) {
    let (mut line, mut length) = (String::new(), 0);
    answers.read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        answers.read_line(&mut line).expect("a header");
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    answers.read_exact(&mut body).expect("a body");
}

fn latencies(time: Duration, mut work: impl FnMut()) -> Vec<Duration> {
    let (begun, mut latencies) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let start = Instant::now();
        work();
        latencies.push(start.elapsed());
    }
    latencies
}
