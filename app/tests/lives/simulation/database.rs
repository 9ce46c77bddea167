//! A database that several nodes share, with a clock of its own: it fails, loses its connections and goes back as it is told to, or
//! as chance has it. Its rows are those of a SQLite file.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Result, bail, ensure};
use debora_cli::store::database::{Began, Database, Each, SqlTable, SqlValue};
use debora_cli::store::sqlite::SqliteFile;
use debora_cli::store::{Location, Purpose, Store};

use crate::kit::dice::Dice;
use crate::kit::scratch::Scratch;

/// One of so many operations fails, while any does.
const ONE_FAILS_OF: u64 = 150;

/// One of so many commits is dropped by a database that lies.
const ONE_IS_DROPPED_OF: u64 = 20;

/// How a node could notice that the database went back.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    /// Only by the rows.
    Rows,
    /// Its connection is lost.
    Connection,
    /// Its connection stays, and another server is behind it.
    Server,
}

/// The server: what all connections meet.
struct Server {
    folder: Scratch,
    /// `None` while the file is replaced.
    rows: Option<SqliteFile>,
    clock: i64,
    chance: Dice,
    fails: bool,
    lies: bool,
    failures: u64,
    /// Which server it is that the connections lead to.
    started: u64,
    connections: u64,
    /// The last connection that is lost, with all before it.
    lost: u64,
    copies: u64,
}

impl Server {
    fn rows(&mut self) -> &mut SqliteFile {
        self.rows.as_mut().expect("the file is open")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("store.db")
    }

    fn open(&mut self) {
        let mut rows = SqliteFile::open(&self.file(), Purpose::Write).unwrap();
        // No power is cut here: syncs would only take their time.
        rows.execute("PRAGMA synchronous = OFF", &[]).unwrap();
        self.rows = Some(rows);
    }

    fn has_trouble(&mut self) -> bool {
        let trouble = self.fails && self.chance.below(ONE_FAILS_OF) == 0;
        self.failures += u64::from(trouble);
        trouble
    }
}

/// A shared database, for whoever connects to it.
#[derive(Clone)]
pub struct SimulatedDatabase(Arc<Mutex<Server>>);

impl SimulatedDatabase {
    /// An empty store; `seed` says what fails.
    pub fn new(seed: u64) -> Self {
        let folder = Scratch::new("simulated");
        let file = Location::Sqlite(folder.join("store.db"));
        drop(file.open(Purpose::Serve).unwrap());
        let mut server = Server {
            folder,
            rows: None,
            clock: 0,
            chance: Dice::new(seed),
            fails: false,
            lies: false,
            failures: 0,
            started: 0,
            connections: 0,
            lost: 0,
            copies: 0,
        };
        server.open();
        Self(Arc::new(Mutex::new(server)))
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap()
    }

    pub fn connect(&self) -> Store {
        Store::over(Connection {
            database: self.clone(),
            number: 0,
            made: 0,
            started: 0,
            is_lost: true,
            in_transaction: false,
        })
    }

    /// Where its rows can be read by those whom nothing fails.
    pub fn location(&self) -> Location {
        Location::Sqlite(self.server().file())
    }

    pub fn set_clock(&self, milliseconds: i64) {
        self.server().clock = milliseconds;
    }

    /// Operations fail as chance has it, or none does.
    pub fn set_failing(&self, fails: bool) {
        self.server().fails = fails;
    }

    /// Some commits are acknowledged and dropped: what no store survives.
    pub fn lie(&self) {
        self.server().lies = true;
    }

    pub fn failures(&self) -> u64 {
        self.server().failures
    }

    /// Keeps all rows as they are, under a number.
    pub fn save(&self) -> u64 {
        let mut server = self.server();
        server.copies += 1;
        let (number, copy) = (server.copies, copy_of(&server, server.copies));
        let copy = copy.to_str().unwrap().to_owned();
        let values = [SqlValue::from(&copy)];
        server.rows().execute("VACUUM INTO $1", &values).unwrap();
        number
    }

    /// Has the rows that were kept under a number again.
    pub fn go_back(&self, number: u64, notice: Notice) {
        let mut server = self.server();
        server.rows = None;
        for beside in ["store.db", "store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(server.folder.join(beside));
        }
        fs::copy(copy_of(&server, number), server.file()).unwrap();
        server.open();
        match notice {
            Notice::Rows => {}
            Notice::Connection => server.lost = server.connections,
            Notice::Server => server.started += 1,
        }
    }
}

fn copy_of(server: &Server, number: u64) -> PathBuf {
    server.folder.join(format!("copy-{number}.db"))
}

/// A node's connection, which makes itself anew between transactions, as that to PostgreSQL does.
struct Connection {
    database: SimulatedDatabase,
    /// What the node is told: another one for each that was made anew, and for another server.
    number: u64,
    made: u64,
    started: u64,
    is_lost: bool,
    in_transaction: bool,
}

impl Connection {
    fn connect_again(&mut self, server: &mut Server) {
        server.connections += 1;
        self.made = server.connections;
        self.started = server.started;
        self.is_lost = false;
        self.number += 1;
    }

    /// Ends with the connection; the server undoes what was not committed.
    fn lose(&mut self, server: &mut Server) -> anyhow::Error {
        if self.in_transaction {
            server.rows().rollback();
        }
        self.is_lost = true;
        anyhow::anyhow!("the connection is lost")
    }

    fn run<T>(&mut self, operation: impl FnOnce(&mut SqliteFile) -> Result<T>) -> Result<T> {
        let database = self.database.clone();
        let mut server = database.server();
        ensure!(
            !self.is_lost || !self.in_transaction,
            "the connection is lost"
        );
        if server.has_trouble() {
            return Err(self.lose(&mut server));
        }
        if self.is_lost {
            self.connect_again(&mut server);
        }
        operation(server.rows())
    }
}

impl Database for Connection {
    fn begin(&mut self) -> Result<Began> {
        let database = self.database.clone();
        let mut server = database.server();
        if server.has_trouble() {
            self.is_lost = true;
            bail!("the server does not answer");
        }
        if self.is_lost || self.made <= server.lost || self.started != server.started {
            self.connect_again(&mut server);
        }
        server.rows().begin()?;
        self.in_transaction = true;
        Ok(Began {
            now: Some(server.clock),
            connection: self.number,
        })
    }

    fn commit(&mut self) -> Result<()> {
        let database = self.database.clone();
        let mut server = database.server();
        ensure!(!self.is_lost, "the connection is lost");
        let is_refused = server.has_trouble();
        if is_refused {
            return Err(self.lose(&mut server));
        }
        self.in_transaction = false;
        if server.lies && server.chance.below(ONE_IS_DROPPED_OF) == 0 {
            server.rows().rollback();
            return Ok(());
        }
        server.rows().commit()?;
        // Kept, and nobody hears of it.
        if server.has_trouble() {
            return Err(self.lose(&mut server));
        }
        Ok(())
    }

    fn rollback(&mut self) {
        if self.in_transaction && !self.is_lost {
            self.database.server().rows().rollback();
        }
        self.in_transaction = false;
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn for_update(&self) -> &'static str {
        self.database.server().rows().for_update()
    }

    fn size(&self) -> &'static str {
        self.database.server().rows().size()
    }

    fn foreign(&mut self) -> Result<Vec<String>> {
        self.run(|rows| rows.foreign())
    }

    fn query(&mut self, sql: &str, values: &[SqlValue<'_>], each: Each<'_>) -> Result<()> {
        self.run(|rows| rows.query(sql, values, each))
    }

    fn query_each(
        &mut self,
        sql: &str,
        first: i64,
        seconds: &[SqlValue<'_>],
        each: Each<'_>,
    ) -> Result<()> {
        self.run(|rows| rows.query_each(sql, first, seconds, each))
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64> {
        self.run(|rows| rows.execute(sql, values))
    }

    fn execute_by_commit(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<()> {
        self.run(|rows| rows.execute_by_commit(sql, values))
    }

    fn insert(&mut self, table: &SqlTable, rows: &[Vec<SqlValue<'_>>]) -> Result<Vec<bool>> {
        self.run(|file| file.insert(table, rows))
    }
}
