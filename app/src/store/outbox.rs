//! What is to be sent to webhooks: who gets what, how far each experiment was looked through for each, and what waits.

use std::fmt;

use anyhow::Result;

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

/// The part of a store that webhooks have. Rows alone, like the rest of it.
pub trait Outbox {
    /// All webhooks, by name.
    fn webhooks(&mut self) -> Result<Vec<Webhook>>;
    /// Adds a webhook. False, and nothing is written, if the name is taken.
    fn add_webhook(&mut self, webhook: &Webhook) -> Result<bool>;
    /// Has a webhook that was just added begin here: with what comes after every experiment's open epoch began.
    fn begin_cursors(&mut self, webhook: &str) -> Result<()>;
    /// Removes a webhook with all that waits for it. False if it is not there.
    fn remove_webhook(&mut self, webhook: &str) -> Result<bool>;
    /// Rewrites what became of a webhook's messages, and whether it is disabled.
    fn set_deliveries(
        &mut self,
        webhook: &str,
        deliveries: &Deliveries,
        disabled_at: Option<i64>,
    ) -> Result<()>;
    /// How far an experiment was looked through, by webhook.
    fn cursors(&mut self, experiment: &str) -> Result<Vec<WebhookCursor>>;
    /// Moves a cursor on, if it is still as it was. False, and nothing is written, if another was faster.
    fn move_cursor(
        &mut self,
        experiment: &str,
        before: Option<&WebhookCursor>,
        after: &WebhookCursor,
    ) -> Result<bool>;
    /// Adds a message, unless it is there.
    fn add_message(&mut self, message: &WebhookMessage) -> Result<()>;
    /// A webhook's messages that are due by now, the longest due first; and those that are due after the latest that any can be,
    /// as the clock was set back.
    fn messages(
        &mut self,
        webhook: &str,
        now: i64,
        latest: i64,
        limit: usize,
    ) -> Result<Vec<WebhookMessage>>;
    /// Sets when a message is sent next and how often it was tried, if it is due when it was. False if it is not.
    fn postpone_message(
        &mut self,
        message: &WebhookMessage,
        due: i64,
        attempts: u64,
    ) -> Result<bool>;
    /// Removes a message. False if it is not there.
    fn remove_message(&mut self, webhook: &str, id: &str) -> Result<bool>;
    /// How many messages wait, by webhook; those without any are left out.
    fn pending(&mut self) -> Result<Vec<(String, u64)>>;
}
