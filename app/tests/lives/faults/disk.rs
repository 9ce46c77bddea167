//! Commands the disk of `disk.c`, which a server is started with.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Dice;
use super::cut::{Files, Traced};
use crate::kit::play::serve;
use crate::kit::scratch::Scratch;

/// Kinds of operations, as `disk.c` counts them.
pub const WRITE: u32 = 1;
pub const SYNC: u32 = 2;
pub const TRUNCATE: u32 = 4;
/// Opening for writing, and changes of names.
pub const OPEN: u32 = 8;

/// Errors, by their numbers in Linux.
pub const EIO: u32 = 5;
pub const ENOSPC: u32 = 28;
pub const EROFS: u32 = 30;

/// Places in `struct control`.
const ERROR: u64 = 0;
const KINDS: u64 = 4;
const EVERY: u64 = 8;
const LIE: u64 = 12;
const DIE_AT: u64 = 16;
const CHANGES: u64 = 20;
const FAILED: u64 = 28;

/// The folder of a store on a disk that fails on command.
pub struct Disk {
    folder: Scratch,
    control: File,
    /// What was on the disk when the server was started, and the number of that start.
    before: std::sync::Mutex<Files>,
    starts: AtomicU32,
}

impl Disk {
    pub fn new() -> Self {
        let folder = Scratch::new("faults");
        fs::create_dir(folder.join("disk")).expect("a folder");
        let page = folder.join("control");
        fs::write(&page, [0; 32]).expect("a file");
        let control = File::options().read(true).write(true).open(page);
        Self {
            folder,
            control: control.expect("a file"),
            before: Default::default(),
            starts: AtomicU32::new(0),
        }
    }

    pub fn store(&self) -> String {
        self.files().join("store.db").display().to_string()
    }

    fn files(&self) -> PathBuf {
        // The program asks for files by their true names.
        let folder = self.folder.join("disk").canonicalize();
        folder.expect("a folder")
    }

    fn trace(&self) -> PathBuf {
        let number = self.starts.load(Ordering::Relaxed);
        self.folder.join(format!("trace-{number}"))
    }

    /// The command of a server on this disk.
    pub fn serve(&self, listen: &str) -> Command {
        let mut command = serve(&self.store(), listen);
        command
            .env("LD_PRELOAD", library())
            .env("FAULTS_FOLDER", self.files())
            .env("FAULTS_CONTROL", self.folder.join("control"))
            .env("FAULTS_TRACE", self.trace())
            .stderr(File::create(self.folder.join("said")).expect("a file"));
        command
    }

    /// What the server that was started last wrote to its log, which holds errors alone.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).expect("a file")
    }

    /// Cuts the power of a server that was just killed: its files are what the cut leaves.
    pub fn cut(&self, dice: &mut Dice) {
        let mut before = self.before.lock().expect("no panic while cutting");
        // A server that was killed before its first change has left no trace.
        let trace = fs::read(self.trace()).unwrap_or_default();
        let left = Traced::replay(&before, &trace, dice).cut(dice);
        fs::remove_dir_all(self.files()).expect("a folder");
        fs::create_dir(self.folder.join("disk")).expect("a folder");
        for (name, bytes) in &left {
            fs::write(self.files().join(name), bytes).expect("a file");
        }
        let _ = fs::remove_file(self.trace());
        self.starts.fetch_add(1, Ordering::Relaxed);
        *before = left;
    }

    /// From here on every so many operations of these kinds fail with this error.
    pub fn fail(&self, error: u32, kinds: u32, every: u32) {
        self.set(KINDS, kinds);
        self.set(EVERY, every);
        self.set(FAILED, 0);
        self.set(ERROR, error);
    }

    /// From here on nothing fails.
    pub fn heal(&self) {
        self.set(ERROR, 0);
    }

    /// From here on a sync is answered with success, and does nothing.
    pub fn lie(&self) {
        self.set(LIE, 1);
    }

    /// The server kills itself before this change, counted from here on and from 1; 0 for never.
    pub fn die_at(&self, change: u32) {
        self.set(CHANGES, 0);
        self.set(DIE_AT, change);
    }

    /// Changes asked for since `die_at`.
    pub fn changes(&self) -> u32 {
        self.get(CHANGES)
    }

    /// Operations that failed since `fail`.
    pub fn failed(&self) -> u32 {
        self.get(FAILED)
    }

    // The page is mapped by the server; Linux keeps what is mapped and what is written one and the same.
    fn set(&self, place: u64, value: u32) {
        let written = self.control.write_all_at(&value.to_le_bytes(), place);
        written.expect("a file");
    }

    fn get(&self, place: u64) -> u32 {
        let mut bytes = [0; 4];
        self.control
            .read_exact_at(&mut bytes, place)
            .expect("a file");
        u32::from_le_bytes(bytes)
    }
}

/// The library of `disk.c`, compiled once for all tests of this program.
fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lives/faults/disk.c");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let (library, draft) = (
            folder.join("disk.so"),
            folder.join(std::process::id().to_string()),
        );
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
        let compiled = compiler.arg(&draft).arg(source).status();
        assert!(
            compiled.expect("a C compiler, `cc`").success(),
            "{source} does not compile"
        );
        // Another run of this program may have it loaded: it is replaced, never written to.
        fs::rename(draft, &library).expect("a file");
        library
    })
}
