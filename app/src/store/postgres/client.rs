//! A connection as plain threads use it. It is driven while an answer is waited for, and only then.
//!
//! Statements that wait are sent with the next one, all at once: each way to the server and back that is saved is time in which
//! nothing is done.

use std::future::{self, Future};
use std::mem;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Connection, Error, Row, Socket, Statement};

use super::handshake::Encrypted;

/// How long the end of a connection may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Values for the places of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection to a server.
pub struct Client {
    runtime: Runtime,
    /// Absent while it is dropped.
    client: Option<tokio_postgres::Client>,
    connection: Connection<Socket, Encrypted>,
}

/// A statement that is sent with the next one.
pub enum Unsent {
    Text(&'static str),
    Prepared(Statement, Vec<Box<dyn ToSql + Send + Sync>>),
}

type Reply<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

impl Client {
    pub fn new(
        runtime: Runtime,
        (client, connection): (tokio_postgres::Client, Connection<Socket, Encrypted>),
    ) -> Self {
        Self {
            runtime,
            client: Some(client),
            connection,
        }
    }

    /// Sends what waits and then this, and waits for all answers. The outer error is of something that waited, or of the
    /// connection; the statements after it were not run.
    pub fn send<T>(
        &mut self,
        waiting: &[Unsent],
        last: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        let Self {
            runtime,
            client,
            connection,
        } = self;
        let client = client.as_ref().expect("it stays until it is dropped");
        let mut answer = None;
        let waiting = waiting
            .iter()
            .map(|statement| Box::pin(statement.send(client)) as Reply<'_>);
        let mut answers: Vec<_> = waiting.collect();
        answers.push(Box::pin(async {
            answer = Some(last(client).await);
            Ok(())
        }));
        wait(runtime, connection, answers)?;
        Ok(answer.expect("the last answer is there when all are"))
    }

    pub fn batch_execute(&mut self, sql: &str) -> Result<(), Error> {
        self.send(&[], async |client| client.batch_execute(sql).await)?
    }

    pub fn execute(&mut self, sql: &str, values: Parameters<'_>) -> Result<u64, Error> {
        self.send(&[], async |client| client.execute(sql, values).await)?
    }

    pub fn query_one(&mut self, sql: &str) -> Result<Row, Error> {
        self.send(&[], async |client| client.query_one(sql, &[]).await)?
    }
}

impl Drop for Client {
    /// Says to the server that this is the end: it would take, and log, the connection as lost.
    fn drop(&mut self) {
        drop(self.client.take());
        let connection = &mut self.connection;
        let end = future::poll_fn(|context| {
            while let Poll::Ready(message) = connection.poll_message(context) {
                if !matches!(message, Some(Ok(_))) {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        });
        // A server that does not answer is left alone: nothing waits for its word.
        let _ = self
            .runtime
            .block_on(async { time::timeout(FAREWELL, end).await });
    }
}

impl Unsent {
    async fn send(&self, client: &tokio_postgres::Client) -> Result<(), Error> {
        match self {
            Self::Text(sql) => client.batch_execute(sql).await,
            Self::Prepared(statement, values) => {
                let values = values.iter().map(|value| &**value as &(dyn ToSql + Sync));
                client.execute_raw(statement, values).await.map(drop)
            }
        }
    }
}

/// Waits until all answers are there, or one is an error.
fn wait(
    runtime: &Runtime,
    connection: &mut Connection<Socket, Encrypted>,
    mut answers: Vec<Reply<'_>>,
) -> Result<(), Error> {
    runtime.block_on(future::poll_fn(|context| {
        while let Poll::Ready(Some(message)) = connection.poll_message(context) {
            message?;
        }
        // A statement is sent when its answer is first asked for: in this order, and before any is waited for.
        let mut first_error = Ok(());
        answers.retain_mut(|answer| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => {
                first_error = mem::replace(&mut first_error, Ok(())).and(answer);
                false
            }
            Poll::Pending => true,
        });
        first_error?;
        if answers.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }))
}
