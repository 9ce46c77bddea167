//! A folder for one test or bench, of its own and empty.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed at the end. What must be closed before has to be dropped before.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder; the name is for whoever finds it after a crash.
    pub fn new(name: &str) -> Self {
        // Tests of one program run side by side, and other programs of the same name may run, too.
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = format!("debora-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that fails leaves by unwinding: a second panic here would hide the first.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
