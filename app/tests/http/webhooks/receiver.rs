//! A receiver of webhooks that fails as it is told to, and remembers all that it saw.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What it does with a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Answers with this status.
    Status(u16),
    /// Takes it, and closes the connection without an answer.
    Close,
    /// Keeps the connection and says nothing.
    Silence,
}

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Message {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
    pub answer: Answer,
}

impl Message {
    pub fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

type Rule = dyn Fn(&str, usize) -> Answer + Send + Sync;

pub struct Receiver {
    pub address: String,
    messages: Arc<Mutex<Vec<Message>>>,
}

impl Receiver {
    /// With a rule: from the path, and how often the message was seen there before, to what is done.
    pub fn start(rule: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let rule: Arc<Rule> = Arc::new(rule);
        let seen = Arc::clone(&messages);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (rule, seen) = (Arc::clone(&rule), Arc::clone(&seen));
                thread::spawn(move || receive(stream, &*rule, &seen));
            }
        });
        Self { address, messages }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All that came to a path.
    pub fn at(&self, path: &str) -> Vec<Message> {
        let all = self.messages.lock().unwrap();
        let here = all.iter().filter(|message| message.path == path);
        here.cloned().collect()
    }

    /// The bodies that were taken at a path, by id.
    pub fn taken(&self, path: &str) -> BTreeMap<String, Value> {
        let taken = self.at(path).into_iter();
        let taken = taken.filter(|message| message.answer == Answer::Status(200));
        taken
            .map(|message| (message.id().to_owned(), message.json()))
            .collect()
    }

    /// Waits until what came to a path is as it should be.
    #[track_caller]
    pub fn wait<T>(&self, path: &str, most: u64, look: impl Fn(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            let all = self.at(path);
            assert!(
                begun.elapsed() < Duration::from_secs(most),
                "after {most} s only {all:#?}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn receive(stream: TcpStream, rule: &Rule, messages: &Mutex<Vec<Message>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    // Several requests may come on one connection.
    while let Some((path, headers, body)) = request(&mut reader) {
        let mut all = messages.lock().unwrap();
        let id = headers.get("webhook-id").cloned().unwrap_or_default();
        let before = all
            .iter()
            .filter(|other| other.path == path && other.id() == id)
            .count();
        let answer = rule(&path, before);
        all.push(Message {
            path,
            headers,
            body,
            answer,
        });
        drop(all);
        match answer {
            Answer::Status(status) => {
                let head =
                    format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nlocation: /trap\r\n\r\n");
                if (&stream).write_all(head.as_bytes()).is_err() {
                    return;
                }
            }
            Answer::Close => return,
            Answer::Silence => thread::sleep(Duration::from_secs(60)),
        }
    }
}

type Head = BTreeMap<String, String>;

fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Head, String)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Head::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, headers, String::from_utf8(body).ok()?))
}
