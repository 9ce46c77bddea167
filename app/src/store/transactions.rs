//! Transactions: what is written together, and is on the disk when its commit returns.

use anyhow::{Context as _, Result, bail, ensure};

use super::Store;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TransactionState {
    None,
    Open,
    /// A statement failed. PostgreSQL would undo the rest when asked to commit it, and say nothing; SQLite may have ended
    /// it by itself, on a full disk, and would write the rest one by one.
    Failed,
}

impl Store {
    /// Begins a transaction. Reads outside one see what is committed; writes outside one are errors.
    pub fn begin(&mut self) -> Result<()> {
        ensure!(
            self.transaction == TransactionState::None,
            "a transaction is open already; commit it or roll it back first"
        );
        let began = self
            .database
            .begin()
            .context("cannot begin a transaction of the store")?;
        // Another server may number experiments and actors otherwise.
        if began.connection != self.began.connection {
            self.forget_numbers();
        }
        self.began = began;
        self.transaction = TransactionState::Open;
        Ok(())
    }

    /// Makes the transaction's writes durable: they are on the disk when this returns. After an error the transaction is
    /// over, and was kept whole or not at all: not at all if something failed within it before.
    pub fn commit(&mut self) -> Result<()> {
        match self.transaction {
            TransactionState::None => bail!("no transaction is open; nothing was committed"),
            TransactionState::Failed => {
                self.rollback();
                bail!("the transaction failed before, so nothing of it was kept");
            }
            TransactionState::Open => {}
        }
        let committed = self.database.commit().context("cannot commit to the store");
        // SQLite leaves a transaction open whose commit failed: the next one would join it.
        if committed.is_err() {
            self.rollback();
        }
        self.transaction = TransactionState::None;
        committed
    }

    /// Forgets the transaction's writes, if one is open.
    pub fn rollback(&mut self) {
        if self.transaction != TransactionState::None {
            self.database.rollback();
            // A number that was given within the transaction may be given again.
            self.forget_numbers();
            self.transaction = TransactionState::None;
        }
    }

    /// Ends a server's connection and leaves a file that is whole by itself; an error if it is not.
    pub fn close(mut self) -> Result<()> {
        self.rollback();
        self.database.close()
    }

    /// Changes a value that means nothing, for a commit that has something to make durable.
    pub fn touch(&mut self) -> Result<()> {
        // Another value each time: SQLite writes no page whose bytes stay the same, and its commit would prove nothing.
        let sql = "INSERT INTO meta (name, value) VALUES ('touched', 0)
            ON CONFLICT (name) DO UPDATE SET value = 1 - meta.value";
        self.execute(sql, &[]).map(drop)
    }

    /// The clock that all nodes share, in milliseconds since 1970, as it was when the transaction began. `None` where one server
    /// alone has the store, and its own clock serves.
    pub fn now(&self) -> Option<i64> {
        self.began.now
    }

    /// Another number than before if the connection was made again, or leads to another server: what was read and even committed
    /// before may not be there.
    pub fn connection(&self) -> u64 {
        self.began.connection
    }

    fn forget_numbers(&mut self) {
        self.numbers.clear();
        self.actors.clear();
        self.names.clear();
    }
}
