//! A server's right to a file: a lock on a file beside it, which is gone when the server is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::closing::beside_file;

/// Held until it is dropped or the process ends, however it ends.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a store's file.
    pub fn take(store: &Path) -> Result<Self> {
        // A file of its own: to close a second handle of the store's file would drop the locks that SQLite holds on it (POSIX).
        let path = beside_file(store, ".lock");
        loop {
            let file = take(&path)?;
            // A server that stops removes the file before it lets go of it, so what was locked may be a file that nobody else
            // will ever find.
            if is_at(&file, &path)? {
                return Ok(Self { file, path });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Somebody may have removed it, and another server made its own. In this order: once it is unlocked, it may be
        // another's.
        if is_at(&self.file, &self.path).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
        // Closing alone would leave it to a process that another thread is just starting.
        let _ = self.file.unlock();
    }
}

fn take(path: &Path) -> Result<File> {
    let shown = path.display();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        // As the store's own: whoever can open it can lock it, and so keep a server from starting.
        .mode(0o600)
        .open(path);
    let file = file.with_context(|| format!("cannot create the lock {shown}"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!(
            "another server has it open (it holds the lock {shown}); stop that server, use another file, or let both share a PostgreSQL store"
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {shown}"))
        }
    }
}

/// Whether this is the file under that name.
fn is_at(file: &File, path: &Path) -> Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((held.dev(), held.ino()) == (found.dev(), found.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn nobody_else_can_take_it() {
        let folder = Scratch::new("lock-mode");
        let store = folder.join("store.db");
        let lock = Lock::take(&store).unwrap();
        assert_eq!(lock.file.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn two_never_hold_it_whoever_removes_it_when() {
        let folder = Scratch::new("lock");
        let store = folder.join("store.db");
        let (held, taken) = (AtomicBool::new(false), AtomicU32::new(0));
        let take_again_and_again = || {
            while taken.load(Ordering::Relaxed) < 2_000 {
                let Ok(_lock) = Lock::take(&store) else {
                    continue;
                };
                assert!(!held.swap(true, Ordering::SeqCst), "two hold the lock");
                // Long enough for another to open the file that is about to be removed.
                thread::yield_now();
                taken.fetch_add(1, Ordering::Relaxed);
                held.store(false, Ordering::SeqCst);
            }
        };
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(take_again_and_again)));
        });
        assert!(!beside_file(&store, ".lock").exists());
    }
}
