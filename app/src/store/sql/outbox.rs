//! The statements of the outbox.

use anyhow::Result;

use super::{Sql, bound, codec, number, stored, text, unstored, values};
use crate::store::database::Columns;
use crate::store::outbox::{
    Deliveries, Outbox, Webhook, WebhookCursor, WebhookMessage, WebhookSecret,
};

impl Outbox for Sql {
    fn webhooks(&mut self) -> Result<Vec<Webhook>> {
        let sql =
            "SELECT name, url, secret, format, template, events, experiments, wait, created_at,
                disabled_at, delivered, failed, last_success_at, last_error_at, last_error
            FROM webhooks ORDER BY name";
        self.rows(sql, &[], read_webhook)
    }

    fn add_webhook(&mut self, webhook: &Webhook) -> Result<bool> {
        let [events, experiments] =
            [&webhook.events, &webhook.experiments].map(|words| words.as_deref().map(codec::ids));
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
            stored(deliveries.delivered)?,
            stored(deliveries.failed)?,
            deliveries.last_success_at,
            deliveries.last_error_at,
            &deliveries.last_error
        ];
        self.execute(sql, &values)
    }

    fn begin_cursors(&mut self, webhook: &str) -> Result<()> {
        // By epochs and not by time: a clock that is set back must not have an event passed ended. One row of each experiment is
        // read, its last epoch.
        let sql = "INSERT INTO webhook_cursors (experiment, webhook, epoch, ended, active)
            SELECT p.experiment, $1, e.epoch + CASE WHEN e.closed_at IS NULL THEN 0 ELSE 1 END,
                CASE WHEN e.closed_at IS NULL THEN 0 ELSE 1 END, ''
            FROM progress p JOIN epochs e ON e.experiment = p.experiment AND e.epoch =
                (SELECT max(epoch) FROM epochs WHERE experiment = p.experiment)";
        self.write(|store| store.database.execute(sql, &values![webhook]).map(drop))
    }

    fn remove_webhook(&mut self, webhook: &str) -> Result<bool> {
        // Messages first, as those who settle them begin there, too: two nodes must not wait for each other in a circle.
        for table in ["webhook_messages", "webhook_cursors"] {
            let sql = format!("DELETE FROM {table} WHERE webhook = $1");
            self.write(|store| store.database.execute(&sql, &values![webhook]).map(drop))?;
        }
        self.execute("DELETE FROM webhooks WHERE name = $1", &values![webhook])
    }

    fn set_deliveries(
        &mut self,
        webhook: &str,
        deliveries: &Deliveries,
        disabled_at: Option<i64>,
    ) -> Result<()> {
        let sql = "UPDATE webhooks SET delivered = $1, failed = $2, last_success_at = $3,
                last_error_at = $4, last_error = $5, disabled_at = $6 WHERE name = $7";
        let values = values![
            stored(deliveries.delivered)?,
            stored(deliveries.failed)?,
            deliveries.last_success_at,
            deliveries.last_error_at,
            &deliveries.last_error,
            disabled_at,
            webhook
        ];
        self.execute(sql, &values).map(drop)
    }

    fn cursors(&mut self, experiment: &str) -> Result<Vec<WebhookCursor>> {
        let sql = "SELECT webhook, epoch, ended, active FROM webhook_cursors
            WHERE experiment = $1 ORDER BY webhook";
        self.page(experiment, sql, &[], read_cursor)
    }

    fn move_cursor(
        &mut self,
        experiment: &str,
        before: Option<&WebhookCursor>,
        after: &WebhookCursor,
    ) -> Result<bool> {
        let epoch = stored(after.epoch)?;
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
            let was = values![stored(before.epoch)?, before.ended, &before.active];
            Ok(store.database.execute(sql, &[&row[..], &was].concat())? == 1)
        })
    }

    fn add_message(&mut self, message: &WebhookMessage) -> Result<()> {
        let sql = "INSERT INTO webhook_messages (webhook, id, body, raised, due, attempts)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (webhook, id) DO NOTHING";
        let values = values![
            &message.webhook,
            &message.id,
            &message.body,
            message.raised,
            message.due,
            stored(message.attempts)?
        ];
        self.execute(sql, &values).map(drop)
    }

    fn messages(
        &mut self,
        webhook: &str,
        now: i64,
        latest: i64,
        limit: usize,
    ) -> Result<Vec<WebhookMessage>> {
        let sql = "SELECT webhook, id, body, raised, due, attempts FROM webhook_messages
            WHERE webhook = $1 AND (due <= $2 OR due > $3) ORDER BY due, id LIMIT $4";
        let values = values![webhook, now, latest, bound(limit as u64)];
        self.rows(sql, &values, read_message)
    }

    fn postpone_message(
        &mut self,
        message: &WebhookMessage,
        due: i64,
        attempts: u64,
    ) -> Result<bool> {
        let sql = "UPDATE webhook_messages SET due = $1, attempts = $2
            WHERE webhook = $3 AND id = $4 AND due = $5";
        let values = values![
            due,
            stored(attempts)?,
            &message.webhook,
            &message.id,
            message.due
        ];
        self.execute(sql, &values)
    }

    fn remove_message(&mut self, webhook: &str, id: &str) -> Result<bool> {
        let sql = "DELETE FROM webhook_messages WHERE webhook = $1 AND id = $2";
        self.execute(sql, &values![webhook, id])
    }

    fn pending(&mut self) -> Result<Vec<(String, u64)>> {
        let sql = "SELECT webhook, count(*) FROM webhook_messages GROUP BY webhook";
        let read = |row: &dyn Columns| Ok((text(row, 0)?.to_owned(), unstored(number(row, 1)?)?));
        self.rows(sql, &[], read)
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
            delivered: unstored(number(row, 10)?)?,
            failed: unstored(number(row, 11)?)?,
            last_success_at: row.number(12)?,
            last_error_at: row.number(13)?,
            last_error: row.text(14)?.map(String::from),
        },
    })
}

fn read_cursor(row: &dyn Columns) -> Result<WebhookCursor> {
    Ok(WebhookCursor {
        webhook: text(row, 0)?.into(),
        epoch: unstored(number(row, 1)?)?,
        ended: codec::truth(number(row, 2)?)?,
        active: text(row, 3)?.into(),
    })
}

fn read_message(row: &dyn Columns) -> Result<WebhookMessage> {
    Ok(WebhookMessage {
        webhook: text(row, 0)?.into(),
        id: text(row, 1)?.into(),
        body: text(row, 2)?.into(),
        raised: number(row, 3)?,
        due: number(row, 4)?,
        attempts: unstored(number(row, 5)?)?,
    })
}
