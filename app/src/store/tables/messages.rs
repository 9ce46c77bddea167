//! Messages that wait to be sent to webhooks.

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{encode_number, parse_number, saturate};
use crate::store::database::{Columns, number, text, values};

/// A message that waits to be sent. What was taken or given up is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookMessage {
    /// The webhook.
    pub webhook: String,
    /// What makes its repetition known to the receiver.
    pub id: String,
    /// What is sent, the same each time.
    pub body: String,
    /// When it was written.
    pub raised: i64,
    /// When it is sent next.
    pub due: i64,
    /// How often it was tried.
    pub attempts: u64,
}

impl Store {
    /// Adds a message, unless it is there.
    pub fn add_message(&mut self, message: &WebhookMessage) -> Result<()> {
        let sql = "INSERT INTO webhook_messages (webhook, id, body, raised, due, attempts)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (webhook, id) DO NOTHING";
        let values = values![
            &message.webhook,
            &message.id,
            &message.body,
            message.raised,
            message.due,
            encode_number(message.attempts)?
        ];
        self.execute(sql, &values).map(drop)
    }

    /// A webhook's messages that are due by now, the longest due first; and those that are due after the latest that any can be,
    /// as the clock was set back.
    pub fn messages(
        &mut self,
        webhook: &str,
        now: i64,
        latest: i64,
        limit: usize,
    ) -> Result<Vec<WebhookMessage>> {
        let sql = "SELECT webhook, id, body, raised, due, attempts FROM webhook_messages
            WHERE webhook = $1 AND (due <= $2 OR due > $3) ORDER BY due, id LIMIT $4";
        let values = values![webhook, now, latest, saturate(limit as u64)];
        self.rows(sql, &values, read_message)
    }

    /// Sets when a message is sent next and how often it was tried, if it is due when it was. False if it is not.
    pub fn postpone_message(
        &mut self,
        message: &WebhookMessage,
        due: i64,
        attempts: u64,
    ) -> Result<bool> {
        let sql = "UPDATE webhook_messages SET due = $1, attempts = $2
            WHERE webhook = $3 AND id = $4 AND due = $5";
        let values = values![
            due,
            encode_number(attempts)?,
            &message.webhook,
            &message.id,
            message.due
        ];
        self.execute(sql, &values)
    }

    /// Removes a message. False if it is not there.
    pub fn remove_message(&mut self, webhook: &str, id: &str) -> Result<bool> {
        let sql = "DELETE FROM webhook_messages WHERE webhook = $1 AND id = $2";
        self.execute(sql, &values![webhook, id])
    }

    /// How many messages wait, by webhook; those without any are left out.
    pub fn pending(&mut self) -> Result<Vec<(String, u64)>> {
        let sql = "SELECT webhook, count(*) FROM webhook_messages GROUP BY webhook";
        let read =
            |row: &dyn Columns| Ok((text(row, 0)?.to_owned(), parse_number(number(row, 1)?)?));
        self.rows(sql, &[], read)
    }
}

fn read_message(row: &dyn Columns) -> Result<WebhookMessage> {
    Ok(WebhookMessage {
        webhook: text(row, 0)?.into(),
        id: text(row, 1)?.into(),
        body: text(row, 2)?.into(),
        raised: number(row, 3)?,
        due: number(row, 4)?,
        attempts: parse_number(number(row, 5)?)?,
    })
}
