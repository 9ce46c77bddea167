//! A program that says on its first line where it listens.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A server that listens; killed at the end, whether a test fails or not.
pub struct Running {
    /// The process.
    pub child: Child,
    /// Its first line, which not every test that starts a server reads.
    #[allow(dead_code)]
    pub line: String,
    /// Host and port.
    pub address: String,
}

/// Starts a server; what it said instead, if it did not say where it listens.
pub fn start(command: &mut Command) -> Result<Running, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a program");
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("its first line");
    // A sentence or, with --json, a document: the address ends at the first character that none has.
    let address = line
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split([',', '"', '\n']).next())
        .map(str::to_owned);
    match address {
        Some(address) => Ok(Running {
            child,
            line,
            address,
        }),
        None => {
            let status = child.wait().expect("its end");
            Err(format!("{status}, {line:?}"))
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
