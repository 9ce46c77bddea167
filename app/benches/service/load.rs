//! A load on a server: connections that each send a request, read the answer, and send the next.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What was measured.
#[derive(Default)]
pub struct Measured {
    pub requests: u64,
    pub seconds: f64,
    /// Bytes of the last answer's body.
    pub body: usize,
    latencies: Vec<Duration>,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Takes another measurement in.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.seconds += other.seconds;
        self.body = self.body.max(other.body);
        self.latencies.extend(other.latencies);
        self.latencies.sort();
    }

    /// The latency below which this share of answers stays, in milliseconds.
    pub fn latency(&self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share) as usize;
        self.latencies[place.min(self.latencies.len() - 1)].as_secs_f64() * 1e3
    }
}

/// Sends for some time over a number of connections. `body` makes a request's body from connection and number; none ends.
pub async fn load(
    address: &str,
    path: &str,
    connections: u64,
    time: Duration,
    body: impl Fn(u64, u64) -> Option<String> + Clone + Send + Sync + 'static,
) -> Measured {
    // One after another and before the clock runs: of many at once the kernel puts some off by a second.
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await.expect("a server");
        stream.set_nodelay(true).expect("a socket");
        streams.push(stream);
    }
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for (connection, mut stream) in (0..).zip(streams) {
        let (address, path, body) = (address.to_owned(), path.to_owned(), body.clone());
        tasks.push(tokio::spawn(async move {
            let (mut latencies, mut length) = (Vec::new(), 0);
            let mut buffer = Vec::with_capacity(1 << 16);
            for number in 0.. {
                let Some(body) = body(connection, number).filter(|_| begun.elapsed() < time) else { break };
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                let sent = Instant::now();
                stream.write_all((head + &body).as_bytes()).await.expect("a server that reads");
                length = answer(&mut stream, &mut buffer).await;
                latencies.push(sent.elapsed());
            }
            (latencies, length)
        }));
    }
    let mut measured = Measured::default();
    for task in tasks {
        let (latencies, length) = task.await.expect("a client that ends");
        measured.latencies.extend(latencies);
        measured.body = measured.body.max(length);
    }
    measured.seconds = begun.elapsed().as_secs_f64();
    measured.requests = measured.latencies.len() as u64;
    measured.latencies.sort();
    measured
}

/// Reads one answer with a content-length; the length of its body. Anything but success is a panic.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> usize {
    buffer.clear();
    let end = loop {
        let count = stream.read_buf(buffer).await.expect("an answer");
        assert!(
            count > 0,
            "the server hung up: {}",
            String::from_utf8_lossy(buffer)
        );
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    assert!(
        head.starts_with("http/1.1 20"),
        "{}",
        String::from_utf8_lossy(buffer)
    );
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.expect("a length").trim().parse().expect("a number");
    while buffer.len() < end + length {
        let count = stream.read_buf(buffer).await.expect("an answer");
        assert!(count > 0, "the server hung up");
    }
    length
}
