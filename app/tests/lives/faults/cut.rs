//! What a power cut leaves of files, worked out from the trace of `disk.c`.
//!
//! What was synced is there. Of each write since, all, nothing, or any of its sectors of 512 bytes may be: later ones without
//! earlier ones, too. Names (made, moved, removed) last from the sync of their folder on; of those since, the first few
//! last, as file systems keep their order. After a sync that failed, the writes before it are on the disk or not, and no
//! later sync tries them again: so Linux does it.

use std::collections::BTreeMap;

use super::Dice;

/// The part of a write that a disk writes whole.
const SECTOR: u64 = 512;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A change of a file's bytes.
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

/// A change of the folder.
#[derive(Clone)]
enum Naming {
    Create(String, usize),
    Remove(String),
    Rename(String, String),
}

#[derive(Default)]
struct TracedFile {
    synced: Vec<u8>,
    since: Vec<Change>,
}

/// The disk as it stands: what is synced, and what came since.
pub struct Traced {
    files: Vec<TracedFile>,
    /// Names as the program sees them, and as they are synced.
    names: BTreeMap<String, usize>,
    names_synced: BTreeMap<String, usize>,
    namings: Vec<Naming>,
    /// By handle: the file that is open, `None` for the folder itself.
    open: BTreeMap<u32, Option<usize>>,
    moving: String,
}

impl Traced {
    /// Files that were there before, and all that happened since.
    pub fn replay(before: &Files, trace: &[u8], dice: &mut Dice) -> Self {
        let mut disk = Self {
            files: Vec::new(),
            names: BTreeMap::new(),
            names_synced: BTreeMap::new(),
            namings: Vec::new(),
            open: BTreeMap::new(),
            moving: String::new(),
        };
        for (name, bytes) in before {
            disk.names.insert(name.clone(), disk.files.len());
            disk.files.push(TracedFile {
                synced: bytes.clone(),
                since: Vec::new(),
            });
        }
        disk.names_synced = disk.names.clone();
        let mut rest = trace;
        // The last record may be torn, if the process died while it was written.
        while let Some((record, after)) = next_record(rest) {
            disk.apply(&record, dice);
            rest = after;
        }
        disk
    }

    /// What a cut leaves.
    pub fn cut(mut self, dice: &mut Dice) -> Files {
        let kept = dice.below(self.namings.len() as u64 + 1) as usize;
        for naming in self.namings.drain(..kept) {
            rename(&mut self.names_synced, naming);
        }
        let mut left = Files::new();
        for (name, file) in &self.names_synced {
            let file = &mut self.files[*file];
            settle(file, dice);
            left.insert(name.clone(), file.synced.clone());
        }
        left
    }

    fn apply(&mut self, record: &Record, dice: &mut Dice) {
        let name = || String::from_utf8(record.bytes.to_vec()).expect("names are UTF-8");
        match record.operation {
            b'o' => {
                let file = (!record.bytes.is_empty()).then(|| self.names[&name()]);
                self.open.insert(record.handle, file);
            }
            b'c' => {
                let file = self.files.len();
                self.files.push(TracedFile::default());
                self.open.insert(record.handle, Some(file));
                self.name(Naming::Create(name(), file));
            }
            b'u' => self.name(Naming::Remove(name())),
            b'm' => self.moving = name(),
            b'n' => self.name(Naming::Rename(self.moving.clone(), name())),
            b'w' => {
                let change = Change::Write(record.offset, record.bytes.to_vec());
                self.file(record).since.push(change);
            }
            b't' => self
                .file(record)
                .since
                .push(Change::Truncate(record.offset)),
            b's' => self.sync(record),
            b'f' => {
                if let Some(file) = self.open[&record.handle] {
                    settle(&mut self.files[file], dice);
                }
            }
            other => panic!("{:?} is not an operation", other as char),
        }
    }

    fn file(&mut self, record: &Record) -> &mut TracedFile {
        let file = self.open[&record.handle].expect("nothing is written to a folder");
        &mut self.files[file]
    }

    fn name(&mut self, naming: Naming) {
        rename(&mut self.names, naming.clone());
        self.namings.push(naming);
    }

    fn sync(&mut self, record: &Record) {
        let Some(file) = self.open[&record.handle] else {
            self.names_synced = self.names.clone();
            self.namings.clear();
            return;
        };
        let TracedFile { synced, since } = &mut self.files[file];
        for change in since.drain(..) {
            match change {
                Change::Write(offset, bytes) => write(synced, offset, &bytes),
                Change::Truncate(length) => synced.resize(length as usize, 0),
            }
        }
    }
}

/// Leaves it to chance what of the changes since the last sync is on the disk.
fn settle(file: &mut TracedFile, dice: &mut Dice) {
    for change in file.since.drain(..) {
        // Whole, not at all, or torn.
        let fate = dice.below(3);
        match change {
            Change::Write(offset, bytes) => {
                for (first, piece) in sectors(offset, &bytes) {
                    if fate == 0 || (fate == 2 && dice.below(2) == 0) {
                        write(&mut file.synced, first, piece);
                    }
                }
            }
            Change::Truncate(length) if fate == 0 => file.synced.resize(length as usize, 0),
            Change::Truncate(_) => {}
        }
    }
}

/// The parts of a write, by the sectors that they are in.
fn sectors(offset: u64, bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let (mut pieces, mut first, mut rest) = (Vec::new(), offset, bytes);
    while !rest.is_empty() {
        let room = (SECTOR - first % SECTOR) as usize;
        let (piece, after) = rest.split_at(room.min(rest.len()));
        pieces.push((first, piece));
        first += piece.len() as u64;
        rest = after;
    }
    pieces
}

fn write(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (first, end) = (offset as usize, offset as usize + bytes.len());
    // A gap before it is a hole, which reads as zeros.
    file.resize(file.len().max(end), 0);
    file[first..end].copy_from_slice(bytes);
}

fn rename(names: &mut BTreeMap<String, usize>, naming: Naming) {
    match naming {
        Naming::Create(name, file) => drop(names.insert(name, file)),
        Naming::Remove(name) => drop(names.remove(&name)),
        Naming::Rename(from, to) => {
            let file = names.remove(&from).expect("a file that is renamed");
            names.insert(to, file);
        }
    }
}

/// `struct record` of disk.c, with the bytes that follow it.
struct Record<'a> {
    operation: u8,
    handle: u32,
    offset: u64,
    bytes: &'a [u8],
}

/// The first record of a trace and what follows; none if it is not whole.
fn next_record(trace: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = trace.split_at_checked(24)?;
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let (bytes, rest) = rest.split_at_checked(word(16) as usize)?;
    let record = Record {
        operation: head[0],
        handle: (word(0) >> 32) as u32,
        offset: word(8),
        bytes,
    };
    Some((record, rest))
}

/// A write that spans three sectors, after one that was synced: every subset of its sectors can be left, nothing else.
#[test]
fn a_cut_leaves_what_was_synced_and_any_sectors_of_the_rest() {
    let mut trace = Vec::new();
    let mut note = |operation: u8, offset: u64, bytes: &[u8]| {
        trace.extend(u64::from(operation).to_le_bytes());
        trace.extend([offset, bytes.len() as u64].map(u64::to_le_bytes).concat());
        trace.extend(bytes);
    };
    note(b'o', 0, b"a");
    note(b'w', 0, &[1; 1_000]);
    note(b's', 0, b"");
    note(b'w', 500, &[2; 600]);
    let before = Files::from([("a".to_owned(), Vec::new())]);
    let mut seen = std::collections::BTreeSet::new();
    let mut dice = Dice::new(3);
    for _ in 0..400 {
        let left = Traced::replay(&before, &trace, &mut dice).cut(&mut dice);
        let file = &left["a"];
        assert!(file[..500].iter().all(|&byte| byte == 1));
        let parts = [500..512, 512..1_000, 1_024..1_100];
        seen.insert(parts.map(|part| file.get(part).map(|part| (part[0], part[part.len() - 1]))));
    }
    let old = Some((1, 1));
    let new = Some((2, 2));
    let expected = [old, new].into_iter().flat_map(|first| {
        [old, new]
            .into_iter()
            .flat_map(move |second| [None, new].map(|third| [first, second, third]))
    });
    assert_eq!(seen, expected.collect());
    // Cut off in the middle of a record: what came before it counts.
    let torn = &trace[..trace.len() - 1];
    let left = Traced::replay(&before, torn, &mut dice).cut(&mut dice);
    assert_eq!(left["a"], [1; 1_000]);
}
