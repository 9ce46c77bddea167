//! Webhooks: who is told what, where, and what became of it.

use std::fmt;

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{self, encode_number, parse_number};
use crate::store::database::{Columns, number, text, values};

/// What a webhook's messages are signed with.
// A type of its own without its bytes in `Debug`: requests and rows are printed when something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WebhookSecret(pub [u8; 32]);

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// An address that is told what happens.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// What it is called.
    pub name: String,
    /// Where to: it may hold a secret, too.
    pub url: String,
    /// What its messages are signed with. Kept as it is, since a hash of it could sign nothing.
    pub secret: WebhookSecret,
    /// The shape of its messages, in a word.
    pub format: String,
    /// What their text is made of, if that was given.
    pub template: Option<String>,
    /// The events it is told; `None` for all.
    pub events: Option<Vec<String>>,
    /// The ids of the experiments it is for; `None` for all.
    pub experiments: Option<Vec<String>>,
    /// How long outcomes may be waited for before it is told, in milliseconds.
    pub wait: i64,
    /// When it was made.
    pub created_at: i64,
    /// When its receiver said that it wants no more.
    pub disabled_at: Option<i64>,
    /// What became of its messages.
    pub deliveries: Deliveries,
}

impl fmt::Debug for Webhook {
    /// Without its address, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.name)
    }
}

/// What became of a webhook's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Messages that were taken.
    pub delivered: u64,
    /// Messages that were given up.
    pub failed: u64,
    /// When one was last taken.
    pub last_success_at: Option<i64>,
    /// When an attempt last failed.
    pub last_error_at: Option<i64>,
    /// And why.
    pub last_error: Option<String>,
}

impl Store {
    /// All webhooks, by name.
    pub fn webhooks(&mut self) -> Result<Vec<Webhook>> {
        let sql =
            "SELECT name, url, secret, format, template, events, experiments, wait, created_at,
                disabled_at, delivered, failed, last_success_at, last_error_at, last_error
            FROM webhooks ORDER BY name";
        self.rows(sql, &[], read_webhook)
    }

    /// Adds a webhook. False, and nothing is written, if the name is taken.
    pub fn add_webhook(&mut self, webhook: &Webhook) -> Result<bool> {
        let [events, experiments] = [&webhook.events, &webhook.experiments]
            .map(|words| words.as_deref().map(codec::encode_ids));
        let deliveries = &webhook.deliveries;
        // The database decides whether the name is free, as it does for keys.
        let sql = "INSERT INTO webhooks (name, url, secret, format, template, events, experiments,
                wait, created_at, disabled_at, delivered, failed, last_success_at, last_error_at,
                last_error)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            ON CONFLICT (name) DO NOTHING";
        let values = values![
            &webhook.name,
            &webhook.url,
            webhook.secret.0.as_slice(),
            &webhook.format,
            &webhook.template,
            &events,
            &experiments,
            webhook.wait,
            webhook.created_at,
            webhook.disabled_at,
            encode_number(deliveries.delivered)?,
            encode_number(deliveries.failed)?,
            deliveries.last_success_at,
            deliveries.last_error_at,
            &deliveries.last_error
        ];
        self.execute(sql, &values)
    }

    /// Removes a webhook with all that waits for it. False if it is not there.
    pub fn remove_webhook(&mut self, webhook: &str) -> Result<bool> {
        // Messages first, as those who settle them begin there, too: two nodes must not wait for each other in a circle.
        for table in ["webhook_messages", "webhook_cursors"] {
            let sql = format!("DELETE FROM {table} WHERE webhook = $1");
            self.write(|store| store.database.execute(&sql, &values![webhook]).map(drop))?;
        }
        self.execute("DELETE FROM webhooks WHERE name = $1", &values![webhook])
    }

    /// Rewrites what became of a webhook's messages, and whether it is disabled.
    pub fn set_deliveries(
        &mut self,
        webhook: &str,
        deliveries: &Deliveries,
        disabled_at: Option<i64>,
    ) -> Result<()> {
        let sql = "UPDATE webhooks SET delivered = $1, failed = $2, last_success_at = $3,
                last_error_at = $4, last_error = $5, disabled_at = $6 WHERE name = $7";
        let values = values![
            encode_number(deliveries.delivered)?,
            encode_number(deliveries.failed)?,
            deliveries.last_success_at,
            deliveries.last_error_at,
            &deliveries.last_error,
            disabled_at,
            webhook
        ];
        self.execute(sql, &values).map(drop)
    }
}

fn read_webhook(row: &dyn Columns) -> Result<Webhook> {
    Ok(Webhook {
        name: text(row, 0)?.into(),
        url: text(row, 1)?.into(),
        secret: WebhookSecret(codec::parse_secret(row.bytes(2)?.unwrap_or_default())?),
        format: text(row, 3)?.into(),
        template: row.text(4)?.map(String::from),
        events: row.text(5)?.map(codec::parse_ids),
        experiments: row.text(6)?.map(codec::parse_ids),
        wait: number(row, 7)?,
        created_at: number(row, 8)?,
        disabled_at: row.number(9)?,
        deliveries: Deliveries {
            delivered: parse_number(number(row, 10)?)?,
            failed: parse_number(number(row, 11)?)?,
            last_success_at: row.number(12)?,
            last_error_at: row.number(13)?,
            last_error: row.text(14)?.map(String::from),
        },
    })
}
