//! Texts that are kept as files, and compared with what is said.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a line that are shown on both sides of a difference.
const AROUND: usize = 120;

/// What is said, by the name of its file.
pub struct Goldens {
    folder: PathBuf,
    said: BTreeMap<String, String>,
}

impl Goldens {
    /// Those of a folder.
    pub fn new(folder: &str) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/golden");
        Self {
            folder: golden.join(folder),
            said: BTreeMap::new(),
        }
    }

    /// Keeps a text under a name that no other has.
    pub fn keep(&mut self, name: &str, text: String) {
        let before = self.said.insert(name.to_owned(), text);
        assert!(before.is_none(), "{name} is said twice");
    }

    /// What is kept so far.
    pub fn said(&self) -> impl Iterator<Item = (&str, &str)> {
        self.said.iter().map(|(name, text)| (&**name, &**text))
    }

    /// Compares with the files; with DEBORA_WIRE set, writes them. What differs, in words.
    pub fn settle(self) -> String {
        if std::env::var_os("DEBORA_WIRE").is_some() {
            self.write();
            return String::new();
        }
        let mut kept = self.read();
        let mut differences = String::new();
        for (name, said) in &self.said {
            match kept.remove(name) {
                None => differences += &format!("\n{name}: there is no such file"),
                Some(kept) if kept == *said => {}
                Some(kept) => differences += &format!("\n{name}:{}", first_difference(&kept, said)),
            }
        }
        for name in kept.keys() {
            differences += &format!("\n{name}: the file is kept, and nothing says it");
        }
        differences
    }

    fn read(&self) -> BTreeMap<String, String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten();
        let texts = files.map(|file| {
            let path = file.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read_to_string(&path).expect("text"))
        });
        texts.collect()
    }

    fn write(&self) {
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder).expect("a folder");
        for (name, text) in &self.said {
            fs::write(self.folder.join(name), text).expect("a file");
        }
    }
}

/// What a file can be called that has this name in words.
pub fn plain(name: &str) -> String {
    let parts = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("-").to_lowercase()
}

/// The first lines that differ, from a little before the first byte that does.
fn first_difference(kept: &str, said: &str) -> String {
    let line = kept
        .lines()
        .zip(said.lines())
        .take_while(|(kept, said)| kept == said)
        .count();
    let [kept, said] = [kept, said].map(|text| text.lines().nth(line).unwrap_or("(ends)"));
    let same = kept
        .bytes()
        .zip(said.bytes())
        .take_while(|(kept, said)| kept == said)
        .count();
    let from = same.saturating_sub(AROUND);
    let cut = |line: &str| {
        let bytes = &line.as_bytes()[from..line.len().min(same + AROUND)];
        String::from_utf8_lossy(bytes).into_owned()
    };
    let line = line + 1;
    format!("{line}\n  kept: {}\n  said: {}", cut(kept), cut(said))
}
