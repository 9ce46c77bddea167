//! One file per verb, and what they share: here, and in [`measure`] for the verbs that measure pairs.

pub mod audit;
pub mod backup;
pub mod compare;
pub mod diff;
pub mod import;
pub mod init;
pub mod keys;
pub mod measure;
pub mod merge;
pub mod plan;
pub mod ready;
pub mod replicate;
pub mod run;
pub mod seal;
pub mod serve;
pub mod sweep;

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread};

use anyhow::{Context, Result};
use debora::measure::SpecText;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{SpecArgs, SpecChanges, SpecsArgs};

/// Set by Ctrl-C.
pub static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Set while pairs are measured, which look at [`CANCELLED`] between two of them.
pub static MEASURING: AtomicBool = AtomicBool::new(false);

/// Ctrl-C asks the measuring of pairs to stop. Other work, and a second Ctrl-C, end at once, without a half file.
pub fn listen_for_interrupts() -> Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.context("cannot listen for Ctrl-C")?;
    let _entered = runtime.enter();
    // Before this returns: from then on it is heard.
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    thread::spawn(move || {
        while runtime.block_on(interrupts.recv()).is_some() {
            // A measurement stops between two pairs and cleans up itself; nothing else looks at the flag.
            if CANCELLED.swap(true, Ordering::Relaxed) || !MEASURING.load(Ordering::Relaxed) {
                crate::files::remove_unfinished();
                eprintln!("error: stopped as asked; nothing is complete");
                std::process::exit(2);
            }
        }
    });
    Ok(())
}

/// Prints to standard output. A reader that has gone away is not an error: it has seen enough.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    // Flushed here: at the program's end a full disk would go unnoticed.
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Reads a spec file.
pub fn load(args: &SpecArgs) -> Result<SpecText> {
    load_file(&args.file, &args.changes)
}

/// Reads several, each with the same changes.
pub fn load_all(args: &SpecsArgs) -> Result<Vec<SpecText>> {
    let files = args.files.iter();
    files.map(|file| load_file(file, &args.changes)).collect()
}

fn load_file(path: &Path, changes: &SpecChanges) -> Result<SpecText> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).with_context(|| {
        format!("cannot read {file}; name a spec file, or write one with `debora init`")
    })?;
    Ok(SpecText::parse(text, file, changes.overrides())?)
}

/// Opens a table's file.
pub fn open(path: &Path) -> io::Result<Box<dyn io::Read>> {
    Ok(Box::new(fs::File::open(path)?))
}
