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

/// A store's file and the log beside it, as they were when first looked at.
pub struct Presence {
    store: PathBuf,
    log: PathBuf,
    seen: Option<[FileIdentity; 2]>,
}

/// The device and the number of a file on it.
type FileIdentity = (u64, u64);

impl Presence {
    /// Of a file that has just been opened.
    pub fn of(path: &Path) -> Result<Self> {
        // The file itself: a link that later points elsewhere is no concern of the one who opened it.
        let store = fs::canonicalize(path)?;
        let mut log = store.clone().into_os_string();
        log.push("-wal");
        Ok(Self {
            store,
            log: log.into(),
            seen: None,
        })
    }

    /// Fails if one of them is gone or replaced. Two calls of the system: nothing beside the write of a commit.
    pub fn check(&mut self) -> Result<()> {
        let found = [identity(&self.store)?, identity(&self.log)?];
        // The log is made by the first transaction, so there is nothing to compare with before it.
        let seen = *self.seen.get_or_insert(found);
        for ((path, found), seen) in [&self.store, &self.log].into_iter().zip(found).zip(seen) {
            ensure!(found == seen, FileMoved::Replaced(shown(path)));
        }
        Ok(())
    }
}

fn identity(path: &Path) -> Result<FileIdentity> {
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(FileMoved::Gone(shown(path)).into())
        }
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", shown(path))),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
