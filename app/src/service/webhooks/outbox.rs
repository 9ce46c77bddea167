//! What becomes of messages, each step within the writer's transaction: written once, claimed, and sent again until they are
//! taken or too old.
//!
//! ```text
//! due = now at first;   claimed: due = now + CLAIM;   failed for the nth time: due = now + min(5 s 2^(n - 1), 1 h);   taken: removed
//! ```
//!
//! A claim is a compare-and-swap on `due`, so that of two nodes one sends. A node that dies leaves its claims behind: they are
//! sent again once they run out, which is why a receiver may see a message twice. Times are the server's, or those of the database
//! that nodes share. If they jump, messages come sooner, or an hour later.

use anyhow::Result;

use crate::hex;
use crate::service::keys::is_key_name;
use crate::service::limits::quoted;
use crate::service::random::random;
use crate::service::request::Refusal;
use crate::service::request::of_store::StoreRequest;
use crate::service::webhooks::message::Notice;
use crate::service::webhooks::{EventKind, NewWebhook, WebhookRefusal};
use crate::store::{Store, Webhook, WebhookCursor, WebhookMessage, WebhookSecret};

/// How long a claim lasts: what [`super::sender`] takes at most, 12 seconds, and some for a writer that is busy.
const CLAIM: i64 = 15_000;

/// How long after the first failed attempt comes the next; then twice as long, and so on.
const BACKOFF: i64 = 5_000;

/// The longest that this becomes.
const BACKOFF_MAX: i64 = 60 * 60 * 1_000;

/// How long a message is tried for: a long weekend.
const AGE_MAX: i64 = 3 * 24 * 60 * 60 * 1_000;

/// How often at least: half a day's attempts.
const ATTEMPTS_MIN: u64 = 20;

/// Messages of a webhook that are claimed at once.
const CLAIMED_MAX: usize = 16;

/// An experiment was looked through for a webhook.
#[derive(Clone, Debug)]
pub struct Raise {
    /// The experiment.
    pub experiment: String,
    /// The cursor as it was found.
    pub before: Option<WebhookCursor>,
    /// As it is to be.
    pub after: WebhookCursor,
    /// What was found: ids and bodies.
    pub messages: Vec<(String, String)>,
}

/// Messages of a webhook that this node is to send.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The webhook.
    pub webhook: Webhook,
    /// Its messages.
    pub messages: Vec<WebhookMessage>,
}

/// What became of a message that was claimed.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The message.
    pub message: WebhookMessage,
    /// What became of it.
    pub sent: Attempt,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It was taken.
    Taken,
    /// It was not, for this reason.
    Failed(String),
    /// The receiver wants no more.
    Gone,
    /// It was not sent: those before it took all the time, or the receiver wants no more.
    Untried,
}

/// Adds a webhook. Answered with the secret that its messages are signed with.
#[derive(Clone, Debug)]
pub struct AddWebhook(pub NewWebhook);

impl StoreRequest for AddWebhook {
    type Reply = WebhookSecret;

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<WebhookSecret, Refusal>> {
        match self.0.check() {
            Ok(()) => self.0.add(store, now),
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

/// Removes the webhook of this name, and what waits for it.
#[derive(Clone, Debug)]
pub struct RemoveWebhook(pub String);

impl StoreRequest for RemoveWebhook {
    type Reply = ();

    fn serve(&self, store: &mut Store, _now: i64) -> Result<Result<(), Refusal>> {
        let name = &self.0;
        // Before the store: PostgreSQL fails at a zero byte, and the caller would take that for the store's fault.
        if is_key_name(name) && store.remove_webhook(name)? {
            return Ok(Ok(()));
        }
        Ok(Err(not_there(name)))
    }
}

/// Writes a message to try the webhook of this name with. Answered with the message's id.
#[derive(Clone, Debug)]
pub struct TestWebhook(pub String);

impl StoreRequest for TestWebhook {
    type Reply = String;

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<String, Refusal>> {
        test(store, &self.0, now)
    }
}

/// Writes what was found in experiments, unless another node was faster.
#[derive(Clone, Debug)]
pub struct RaiseNotices(pub Vec<Raise>);

impl StoreRequest for RaiseNotices {
    type Reply = ();

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<(), Refusal>> {
        for one in &self.0 {
            raise(store, one, now)?;
        }
        Ok(Ok(()))
    }
}

/// Claims what is due, but for webhooks that are busy. Answered with what is to be sent.
#[derive(Clone, Debug)]
pub struct ClaimMessages {
    /// The names of the webhooks that this node is at work for.
    pub busy: Vec<String>,
}

impl StoreRequest for ClaimMessages {
    type Reply = Vec<Claimed>;

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<Vec<Claimed>, Refusal>> {
        claim(store, &self.busy, now).map(Ok)
    }
}

/// Notes what became of messages that were claimed.
#[derive(Clone, Debug)]
pub struct SettleMessages(pub Vec<Settled>);

impl StoreRequest for SettleMessages {
    type Reply = ();

    fn serve(&self, store: &mut Store, now: i64) -> Result<Result<(), Refusal>> {
        for one in &self.0 {
            settle(store, one, now)?;
        }
        Ok(Ok(()))
    }
}

fn named(store: &mut Store, name: &str) -> Result<Option<Webhook>> {
    let mut webhooks = store.webhooks()?.into_iter();
    Ok(webhooks.find(|webhook| webhook.name == name))
}

fn not_there(name: &str) -> Refusal {
    WebhookRefusal::NotThere { name: quoted(name) }.into()
}

fn message(webhook: &str, id: &str, body: &str, now: i64) -> WebhookMessage {
    WebhookMessage {
        webhook: webhook.into(),
        id: id.into(),
        body: body.into(),
        raised: now,
        due: now,
        attempts: 0,
    }
}

fn test(store: &mut Store, name: &str, now: i64) -> Result<Result<String, Refusal>> {
    let Some(webhook) = named(store, name)? else {
        return Ok(Err(not_there(name)));
    };
    if webhook.disabled_at.is_some() {
        let name = name.into();
        return Ok(Err(WebhookRefusal::Disabled { name }.into()));
    }
    let notice = Notice {
        kind: EventKind::Test,
        experiment: String::new(),
        what: String::new(),
        epoch: 0,
        at: now,
        words: "This is a test: messages arrive.".into(),
        facts: serde_json::Map::new(),
    };
    // Drawn, as every test is another event.
    let id = format!("msg_{}", hex::encode(&random::<16>()?));
    let message = message(name, &id, &notice.body(&webhook), now);
    store.add_message(&message)?;
    Ok(Ok(id))
}

fn raise(store: &mut Store, raise: &Raise, now: i64) -> Result<()> {
    let name = &raise.after.webhook;
    // It may have been removed, or have become another, since the experiment was looked at.
    let wanted = named(store, name)?.is_some_and(|webhook| webhook.disabled_at.is_none());
    let (before, after) = (raise.before.as_ref(), &raise.after);
    if !wanted || !store.move_cursor(&raise.experiment, before, after)? {
        return Ok(());
    }
    raise
        .messages
        .iter()
        .try_for_each(|(id, body)| store.add_message(&message(name, id, body, now)))
}

fn claim(store: &mut Store, busy: &[String], now: i64) -> Result<Vec<Claimed>> {
    let mut all = Vec::new();
    for webhook in store.webhooks()? {
        if webhook.disabled_at.is_some() || busy.contains(&webhook.name) {
            continue;
        }
        let mut messages = Vec::new();
        for mut message in store.messages(&webhook.name, now, now + BACKOFF_MAX, CLAIMED_MAX)? {
            let due = now + CLAIM;
            if store.postpone_message(&message, due, message.attempts)? {
                message.due = due;
                messages.push(message);
            }
        }
        if !messages.is_empty() {
            all.push(Claimed { webhook, messages });
        }
    }
    Ok(all)
}

fn settle(store: &mut Store, settled: &Settled, now: i64) -> Result<()> {
    let Settled { message, sent } = settled;
    let Some(webhook) = named(store, &message.webhook)? else {
        return Ok(());
    };
    let mut deliveries = webhook.deliveries;
    let mut disabled_at = webhook.disabled_at;
    if let Attempt::Failed(_) | Attempt::Gone = sent {
        deliveries.last_error_at = Some(now);
    }
    match sent {
        Attempt::Untried => {
            // At once: it was not tried, and a receiver that does not answer has one message at a time to do so.
            let postponed = store.postpone_message(message, now, message.attempts);
            return postponed.map(drop);
        }
        Attempt::Taken => {
            // Another node may have settled it, if this one's claim ran out.
            if store.remove_message(&message.webhook, &message.id)? {
                deliveries.delivered += 1;
            }
            deliveries.last_success_at = Some(now);
        }
        Attempt::Failed(reason) => {
            deliveries.last_error = Some(reason.clone());
            let attempts = message.attempts + 1;
            // Both, as a clock that jumps ahead must not make what is a second old too old.
            let is_old = now - message.raised >= AGE_MAX && attempts >= ATTEMPTS_MIN;
            if !is_old {
                let due = now + backoff(attempts);
                store.postpone_message(message, due, attempts)?;
            } else if store.remove_message(&message.webhook, &message.id)? {
                deliveries.failed += 1;
            }
        }
        Attempt::Gone => {
            deliveries.last_error = Some("it answered 410: it wants no more".into());
            deliveries.failed += u64::from(store.remove_message(&message.webhook, &message.id)?);
            disabled_at = Some(now);
        }
    }
    store.set_deliveries(&message.webhook, &deliveries, disabled_at)
}

/// How long after this many failed attempts comes the next.
fn backoff(attempts: u64) -> i64 {
    // Beyond ten doublings it is the longest in any case, and nothing overflows.
    let doublings = attempts.saturating_sub(1).min(10);
    (BACKOFF << doublings).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_come_twice_as_late_each_time_and_within_an_hour() {
        let seconds = [1, 2, 3, 9, 10, 11, 10_000].map(|attempts| backoff(attempts) / 1_000);
        assert_eq!(seconds, [5, 10, 20, 1_280, 2_560, 3_600, 3_600]);
    }
}
