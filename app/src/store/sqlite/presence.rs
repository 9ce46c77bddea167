//! Whether the files that were opened are still the ones that stand at their names.
//!
//! A file that is deleted or renamed stays writable for those who have it open: commits would succeed, and be gone with the
//! process. SQLite does not look.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::super::failure::FileMoved;
use super::closing::beside_file;

/// What a served store consists of: its file, the log, the memory that connections share, and the server's lock. Without the third,
/// others would write what this server never sees; without the last, a second server could start.
const ENDINGS: [&str; 4] = ["", "-wal", "-shm", ".lock"];

/// The files of a store, as they were when first looked at.
pub struct Presence {
    files: [PathBuf; ENDINGS.len()],
    seen: Option<[FileIdentity; ENDINGS.len()]>,
}

/// The device and the number of a file on it.
type FileIdentity = (u64, u64);

impl Presence {
    /// Of a file that has just been opened.
    pub fn note(path: &Path) -> Result<Self> {
        // The file itself: a link that later points elsewhere is no concern of the one who opened it.
        let store = fs::canonicalize(path)?;
        Ok(Self {
            files: ENDINGS.map(|ending| beside_file(&store, ending)),
            seen: None,
        })
    }

    /// Fails if one of them is gone or replaced. Four calls of the system: nothing beside the write of a commit.
    pub fn check(&mut self) -> Result<()> {
        let mut found = [(0, 0); ENDINGS.len()];
        for (found, path) in found.iter_mut().zip(&self.files) {
            *found = identity(path)?;
        }
        // The log is made by the first transaction, so there is nothing to compare with before it.
        let seen = *self.seen.get_or_insert(found);
        for ((path, found), seen) in self.files.iter().zip(found).zip(seen) {
            ensure!(found == seen, FileMoved::Replaced(name(path)));
        }
        Ok(())
    }
}

fn identity(path: &Path) -> Result<FileIdentity> {
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FileMoved::Gone(name(path)).into())
        }
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", name(path))),
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}
