//! A connection as plain threads use it. It is driven while an answer is waited for, and only then.
//!
//! Statements that wait are sent with the next one, all at once: each way to the server and back that is saved is time in which
//! nothing is done.

use std::future::{self, Future};
use std::pin::Pin;
use std::task::Poll;

use tokio::runtime::Runtime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Connection, Error, Row, Socket, Statement};

use super::handshake::Encrypted;

/// Values for the places of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection to a server.
pub struct Client {
    pub runtime: Runtime,
    pub client: tokio_postgres::Client,
    pub connection: Connection<Socket, Encrypted>,
}

/// A statement that is sent with the next one.
pub enum Waiting {
    Text(&'static str),
    Prepared(Statement, Vec<Box<dyn ToSql + Send + Sync>>),
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

impl Client {
    /// Sends what waits and then this, and waits for all answers. The outer error is of something that waited, or of the
    /// connection; the statements after it were not run.
    pub fn send<T>(
        &mut self,
        waiting: &[Waiting],
        last: impl AsyncFnOnce(&tokio_postgres::Client) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Error> {
        let Self {
            runtime,
            client,
            connection,
        } = self;
        let mut answer = None;
        let waiting = waiting
            .iter()
            .map(|statement| Box::pin(statement.send(client)) as Answer<'_>);
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

impl Waiting {
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
    mut answers: Vec<Answer<'_>>,
) -> Result<(), Error> {
    runtime.block_on(future::poll_fn(|context| {
        while let Poll::Ready(Some(message)) = connection.poll_message(context) {
            message?;
        }
        // A statement is sent when its answer is first asked for: in this order, and before any is waited for.
        let mut first_error = Ok(());
        answers.retain_mut(|answer| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => {
                first_error = std::mem::replace(&mut first_error, Ok(())).and(answer);
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
