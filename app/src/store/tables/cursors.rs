//! How far each experiment was looked through for each webhook.

use anyhow::Result;

use crate::store::Store;
use crate::store::codec::{self, encode_number, parse_number};
use crate::store::database::{Columns, number, text, values};

/// How far an experiment was looked through for a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookCursor {
    /// The webhook.
    pub webhook: String,
    /// The first epoch whose end is not told.
    pub epoch: u64,
    /// Whether the experiment's end is told.
    pub ended: bool,
    /// The alerts that are told and have not ended, a line each.
    pub active: String,
}

impl Store {
    /// Has a webhook that was just added begin here: with what comes after every experiment's open epoch began.
    pub fn begin_cursors(&mut self, webhook: &str) -> Result<()> {
        // By epochs and not by time: a clock that is set back must not have an event passed ended. One row of each experiment is
        // read, its last epoch.
        let sql = "INSERT INTO webhook_cursors (experiment, webhook, epoch, ended, active)
            SELECT p.experiment, $1, e.epoch + CASE WHEN e.closed_at IS NULL THEN 0 ELSE 1 END,
                CASE WHEN e.closed_at IS NULL THEN 0 ELSE 1 END, ''
            FROM progress p JOIN epochs e ON e.experiment = p.experiment AND e.epoch =
                (SELECT max(epoch) FROM epochs WHERE experiment = p.experiment)";
        self.write(|store| store.database.execute(sql, &values![webhook]).map(drop))
    }

    /// How far an experiment was looked through, by webhook.
    pub fn cursors(&mut self, experiment: &str) -> Result<Vec<WebhookCursor>> {
        let sql = "SELECT webhook, epoch, ended, active FROM webhook_cursors
            WHERE experiment = $1 ORDER BY webhook";
        self.page(experiment, sql, &[], read_cursor)
    }

    /// Moves a cursor on, if it is still as it was. False, and nothing is written, if another was faster.
    pub fn move_cursor(
        &mut self,
        experiment: &str,
        before: Option<&WebhookCursor>,
        after: &WebhookCursor,
    ) -> Result<bool> {
        let epoch = encode_number(after.epoch)?;
        self.write_to(experiment, |store, number| {
            let row = values![epoch, after.ended, &after.active, number, &after.webhook];
            let Some(before) = before else {
                let sql = "INSERT INTO webhook_cursors (epoch, ended, active, experiment, webhook)
                    VALUES ($1, $2, $3, $4, $5) ON CONFLICT (experiment, webhook) DO NOTHING";
                return Ok(store.database.execute(sql, &row)? == 1);
            };
            // SQLite numbers places by where they first stand, so they stand in order.
            let sql = "UPDATE webhook_cursors SET epoch = $1, ended = $2, active = $3
                WHERE experiment = $4 AND webhook = $5 AND epoch = $6 AND ended = $7 AND active = $8";
            let was = values![encode_number(before.epoch)?, before.ended, &before.active];
            Ok(store.database.execute(sql, &[&row[..], &was].concat())? == 1)
        })
    }
}

fn read_cursor(row: &dyn Columns) -> Result<WebhookCursor> {
    Ok(WebhookCursor {
        webhook: text(row, 0)?.into(),
        epoch: parse_number(number(row, 1)?)?,
        ended: codec::parse_truth(number(row, 2)?)?,
        active: text(row, 3)?.into(),
    })
}
