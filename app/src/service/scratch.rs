//! For tests within the service: a place for a store.

use std::path::PathBuf;

use crate::store::Location;

/// A folder that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A folder of this name, and the place for a store in it.
    pub fn new(name: &str) -> (Self, Location) {
        let folder = std::env::temp_dir().join(format!("debora-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let location = Location::Sqlite(folder.join("store.db"));
        (Self(folder), location)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
