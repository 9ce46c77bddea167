//! Files that are whole or not there: written beside their place and moved into it, never over something unasked.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

/// Writes a file by way of a temporary one in the same folder, so that no half file is ever seen under its name.
pub fn write_whole(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<()>,
) -> Result<()> {
    // Refused before anything is written, as writing may take long.
    if path.exists() && !force {
        bail!(
            "{} exists; choose another name, or --force to overwrite it",
            path.display()
        );
    }
    make_whole(path, |temporary| {
        let mut writer = BufWriter::new(fs::File::create(temporary)?);
        write(&mut writer)?;
        Ok(writer.flush()?)
    })
}

/// The same for what is made under a name: it is on the disk before it gets its own.
pub fn make_whole<T>(path: &Path, make: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let temporary = Temporary::beside(path);
    let made = make(&temporary.0).and_then(|made| {
        // A file renamed before its content is on the disk could be empty after a power cut.
        fs::File::open(&temporary.0)?.sync_all()?;
        Ok(made)
    });
    let made =
        made.with_context(|| format!("cannot write {}; nothing is left of it", path.display()))?;
    fs::rename(&temporary.0, path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(made)
}

/// The file that is being written.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes what is left of the file that is being written, before the program ends in the middle of it.
pub fn remove_unfinished() {
    if let Some(path) = UNFINISHED
        .lock()
        .ok()
        .and_then(|mut unfinished| unfinished.take())
    {
        let _ = fs::remove_file(path);
    }
}

/// A file's temporary name; what is left of it is removed when the attempt ends, also by an error.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(path: &Path) -> Self {
        let name = path
            .file_name()
            .map_or("out".into(), |name| name.to_string_lossy());
        // In the same folder, as only within one file system a rename is atomic; with the process's number, as two
        // programs may write at once.
        let path = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        if let Ok(mut unfinished) = UNFINISHED.lock() {
            *unfinished = Some(path.clone());
        }
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a successful move there is nothing to remove, and that is not an error.
        let _ = fs::remove_file(&self.0);
    }
}

/// The folder of --out.
pub struct OutDir {
    path: PathBuf,
    force: bool,
}

impl OutDir {
    /// A folder for a whole report: new, or empty, or --force.
    pub fn for_report(path: &Path, force: bool) -> Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the folder {}", path.display()))?;
        let mut entries =
            fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        // What another run left would be taken for this one's.
        if !force && entries.next().is_some() {
            bail!(
                "the folder {} is not empty; choose another, or --force to overwrite in it",
                path.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            force,
        })
    }

    /// A folder that may hold other shards already.
    pub fn for_shards(path: &Path, force: bool) -> Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("cannot create the folder {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            force,
        })
    }

    /// Writes one file.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        write_whole(&self.path.join(name), self.force, |file| {
            Ok(file.write_all(content)?)
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("debora-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_failing_write_leaves_nothing_and_says_why() {
        let folder = folder("full");
        let path = folder.join("summary.json");
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = write_whole(&path, false, |file| {
            file.write_all(b"half")?;
            Err(full.into())
        });
        let message = format!("{:#}", error.unwrap_err());
        assert!(
            message.contains("nothing is left of it") && message.contains("no storage space"),
            "{message}"
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = folder("over");
        let path = folder.join("a.txt");
        let write = |text: &'static str, force| {
            write_whole(&path, force, |file| Ok(file.write_all(text.as_bytes())?))
        };
        write("one", false).unwrap();
        assert!(
            write("two", false)
                .unwrap_err()
                .to_string()
                .contains("--force")
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write("two", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert!(OutDir::for_report(&folder, false).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
