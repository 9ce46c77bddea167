//! One connection of a crowd: it asks, tells what it was given, and does as a 503 says: it waits, then repeats the request.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout_at};

/// An answer that takes longer is given up, as clients do.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of requests.
#[derive(Default)]
pub struct Outcomes {
    /// How long those took that were carried out.
    pub latencies: Vec<Duration>,
    /// Answered with 503.
    pub shed: u64,
    /// Not answered: the connection was refused or broke off, or patience ended.
    pub unanswered: u64,
    /// Connections that never got an answer.
    pub starved: u64,
}

impl Outcomes {
    /// Takes others in.
    pub fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.shed += other.shed;
        self.unanswered += other.unanswered;
        self.starved += other.starved;
    }

    /// The share of requests that this many are.
    pub fn share(&self, count: u64) -> f64 {
        count as f64 / (self.latencies.len() as u64 + self.shed + self.unanswered).max(1) as f64
    }

    /// The latency below which this share of answers stays, in milliseconds. Sorts them.
    pub fn latency(&mut self, share: f64) -> f64 {
        self.latencies.sort_unstable();
        let place = (self.latencies.len() as f64 * share) as usize;
        let found = self.latencies.get(place).or(self.latencies.last());
        found.map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// An answer.
pub struct Answer {
    status: u16,
    retry_after: Option<u64>,
    /// Whether the server ends the connection.
    closes: bool,
    /// Its text.
    pub body: String,
}

/// A connection and what became of its requests, until an end.
pub struct Client {
    address: String,
    end: Instant,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    outcomes: Outcomes,
}

impl Client {
    pub fn new(address: &str, end: Instant) -> Self {
        Self {
            address: address.to_owned(),
            end,
            stream: None,
            buffer: Vec::new(),
            outcomes: Outcomes::default(),
        }
    }

    /// Sends a request until it is carried out; `None` at the end. Errors of the caller are a panic.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Option<String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        while Instant::now() < self.end {
            let begun = Instant::now();
            // A request that the run's end cuts off is not counted.
            let given_up = begun + PATIENCE;
            let answer = timeout_at(
                given_up.min(self.end).into(),
                self.attempt(request.as_bytes()),
            );
            let answer = match answer.await {
                Err(_) if given_up > self.end => return None,
                answer => answer.ok().flatten(),
            };
            let wait = match answer {
                Some(Answer {
                    status: 503,
                    retry_after,
                    ..
                }) => {
                    self.outcomes.shed += 1;
                    Duration::from_secs(retry_after.unwrap_or(1))
                }
                Some(answer) => {
                    assert!(
                        answer.status < 300,
                        "{path}: {} {}",
                        answer.status,
                        answer.body
                    );
                    self.outcomes.latencies.push(begun.elapsed());
                    return Some(answer.body);
                }
                None => {
                    self.stream = None;
                    self.outcomes.unanswered += 1;
                    Duration::from_secs(1)
                }
            };
            sleep(wait.min(self.end.saturating_duration_since(Instant::now()))).await;
        }
        None
    }

    /// What became of all requests.
    pub fn end(mut self) -> Outcomes {
        let outcomes = &mut self.outcomes;
        outcomes.starved = u64::from(outcomes.latencies.is_empty() && outcomes.shed == 0);
        self.outcomes
    }

    /// Sends a request once, over a new connection if there is none. `None` if it breaks off.
    async fn attempt(&mut self, request: &[u8]) -> Option<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.address).await.ok()?,
        };
        stream.set_nodelay(true).ok()?;
        // A server that sheds may answer before it reads, and hang up: then the answer counts, not the failed write.
        let _ = stream.write_all(request).await;
        let answer = read_answer(&mut stream, &mut self.buffer).await?;
        if !answer.closes {
            self.stream = Some(stream);
        }
        Some(answer)
    }
}

/// Reads one answer, with a length or in chunks.
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Answer> {
    buffer.clear();
    let end = loop {
        if let Some(end) = position(buffer, b"\r\n\r\n") {
            break end + 4;
        }
        read_more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let field = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    match field("content-length:") {
        Some(length) => {
            let length: usize = length.parse().ok()?;
            while buffer.len() < end + length {
                read_more(stream, buffer).await?;
            }
        }
        // The sizes of chunks stay in the text: nobody here reads a text that comes in chunks.
        None => {
            while !buffer.ends_with(b"\r\n0\r\n\r\n") {
                read_more(stream, buffer).await?;
            }
        }
    }
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        retry_after: field("retry-after:").and_then(|seconds| seconds.parse().ok()),
        closes: field("connection:") == Some("close"),
        body: String::from_utf8_lossy(&buffer[end..]).into_owned(),
    })
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(buffer).await.ok()?;
    (count > 0).then_some(())
}

fn position(text: &[u8], sign: &[u8]) -> Option<usize> {
    text.windows(sign.len()).position(|window| window == sign)
}
