//! Webhooks: addresses that are told what happens to experiments.
//!
//! ```text
//! record and state ─► Notice ─► message, one a webhook ─► sent, again and again until it is taken
//! (http/webhooks)               (outbox.rs)               (sender.rs, signature.rs)
//! ```
//!
//! A decision never waits for any of it: what is told is read from the record afterwards, by a thread of its own, and a cursor
//! in the store says how far. The message is written in the transaction that moves the cursor, so that each is written once.

pub mod message;
pub mod outbox;
pub mod sender;
pub mod signature;

use anyhow::Result;
use ureq::http::Uri;

use crate::service::keys::is_key_name;
use crate::service::limits::{quoted, within};
use crate::service::random::random;
use crate::service::request::{Refusal, RefusalLine, is_id};
use crate::store::{Deliveries, Store, Webhook, WebhookSecret};
use message::{WORDS, unknown_word};

/// The most webhooks: each may have a request under way, on a thread of its own.
pub const WEBHOOKS_MAX: usize = 32;

/// The longest address and the longest template, in bytes.
const TEXT_BYTES_MAX: usize = 2_048;

/// The longest wait before somebody is told, in seconds: a year, as for `outcome_wait`.
const WAIT_SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// An epoch is over.
    EpochClosed,
    /// One action is played to the horizon.
    Committed,
    /// The estimates leave no strategy within the thresholds.
    Infeasible,
    /// The experiment is over.
    Done,
    /// A cost's mean is above its threshold.
    LimitExceeded,
    /// Outcomes go missing more often after some actions than after others.
    SampleRatio,
    /// Outcomes are waited for, and have been for long.
    Waiting,
    /// Somebody tries the webhook.
    Test,
}

impl EventKind {
    /// All that can be asked for: a test is not, as it is sent in any case.
    pub const ALL: [Self; 7] = [
        Self::EpochClosed,
        Self::Committed,
        Self::Infeasible,
        Self::Done,
        Self::LimitExceeded,
        Self::SampleRatio,
        Self::Waiting,
    ];

    /// Its name in messages and in the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::EpochClosed => "epoch.closed",
            Self::Committed => "experiment.committed",
            Self::Infeasible => "experiment.infeasible",
            Self::Done => "experiment.done",
            Self::LimitExceeded => "limit.exceeded",
            Self::SampleRatio => "sample_ratio.uneven",
            Self::Waiting => "outcomes.waiting",
            Self::Test => "webhook.test",
        }
    }
}

/// The shapes of a message.
pub const FORMATS: [&str; 2] = ["standard", "slack"];

/// Why nothing was done about a webhook.
#[derive(Debug)]
pub enum WebhookRefusal {
    /// An address that is none.
    Url,
    /// A shape that no message has.
    Format { format: String },
    /// A template where there is no text.
    Template,
    /// A brace that begins none of the words.
    Word { word: String },
    /// An event that does not exist.
    Event { event: String },
    /// A webhook for nothing.
    NoEvent,
    /// A wait of nothing, or of more than a year.
    Wait { wait: u64 },
    /// There are as many as there may be.
    TooMany,
    /// A webhook has this name.
    Taken { name: String },
    /// No webhook has this name.
    NotThere { name: String },
    /// Its receiver wants no more.
    Disabled { name: String },
}

impl WebhookRefusal {
    /// Its line of the table of refusals.
    pub fn line(&self) -> RefusalLine<'_> {
        use RefusalLine as Line;
        match self {
            Self::Url => Line::new(
                422,
                "webhook",
                "the url must be an address that begins with http:// or https://, without a name or password in it",
                "",
            ),
            Self::Format { format } => Line::new(
                422,
                "webhook",
                format!("the format {format:?} must be {}", FORMATS.join(" or ")),
                "",
            ),
            Self::Template => Line::new(
                422,
                "webhook",
                "a template is for the format slack alone, is not empty and contains no zero byte",
                "leave it out, or set the format",
            ),
            Self::Word { word } => Line::new(
                422,
                "webhook",
                format!("the template has {word:?} behind a brace, which nothing replaces"),
                format!("use {}", WORDS.map(|word| format!("{{{word}}}")).join(", ")),
            ),
            Self::Event { event } => Line::new(
                422,
                "webhook",
                format!(
                    "the event {event:?} must be one of {}",
                    EventKind::ALL.map(EventKind::name).join(", ")
                ),
                "",
            ),
            Self::NoEvent => Line::new(
                422,
                "webhook",
                "events is an empty list, so nothing would be sent",
                "leave it out for all events",
            ),
            Self::Wait { wait } => Line::new(
                422,
                "webhook",
                format!(
                    "wait_seconds = {wait} must be from 1 to {WAIT_SECONDS_MAX}, which is a year"
                ),
                "",
            ),
            Self::TooMany => Line::new(
                409,
                "webhooks",
                format!("there are {WEBHOOKS_MAX} webhooks, and no more are possible"),
                "remove one first",
            ),
            Self::Taken { name } => Line::new(
                409,
                "webhook_taken",
                format!("there is a webhook named {name:?}"),
                "choose another name, or remove it first",
            ),
            Self::NotThere { name } => Line::new(
                404,
                "no_such_webhook",
                format!("there is no webhook {name:?}"),
                "GET /v1/webhooks lists them",
            ),
            Self::Disabled { name } => Line::new(
                409,
                "webhook_disabled",
                format!("webhook {name:?} is disabled, as its receiver answered 410"),
                "remove it, and add it again",
            ),
        }
    }
}

impl From<WebhookRefusal> for Refusal {
    fn from(refusal: WebhookRefusal) -> Self {
        Self::Webhook(refusal)
    }
}

/// A webhook that is asked for.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// What it is called.
    pub name: String,
    /// Where to.
    pub url: String,
    /// The shape of its messages, one of [`FORMATS`].
    pub format: String,
    /// The text of Slack's messages, with words in braces to be replaced.
    pub template: Option<String>,
    /// The names of the events; `None` for all.
    pub events: Option<Vec<String>>,
    /// The ids of the experiments; `None` for all.
    pub experiments: Option<Vec<String>>,
    /// How long outcomes may be waited for before it is told, in seconds.
    pub wait: u64,
}

/// Where a webhook's address leads, without what may be secret in it: at Slack the path is.
pub fn shown_url(url: &str) -> String {
    let uri: Option<Uri> = url.parse().ok();
    let parts = uri
        .as_ref()
        .and_then(|uri| Some((uri.scheme_str()?, uri.authority()?)));
    parts.map_or("…".into(), |(scheme, authority)| {
        format!("{scheme}://{authority}/…")
    })
}

impl NewWebhook {
    /// Refuses what no webhook can be.
    pub fn check(&self) -> Result<(), Refusal> {
        if !is_key_name(&self.name) {
            return Err(Refusal::KeyName {
                name: quoted(&self.name),
            });
        }
        within("the url", self.url.len(), TEXT_BYTES_MAX)?;
        // A name and a password in it would be sent by nobody, and shown in lists.
        let uri: Option<Uri> = self.url.parse().ok();
        let fits = uri.is_some_and(|uri| {
            let plain = uri
                .authority()
                .is_some_and(|authority| !authority.as_str().contains('@'));
            plain && matches!(uri.scheme_str(), Some("http" | "https"))
        });
        if !fits {
            return Err(WebhookRefusal::Url.into());
        }
        if !FORMATS.contains(&self.format.as_str()) {
            let format = quoted(&self.format);
            return Err(WebhookRefusal::Format { format }.into());
        }
        if let Some(template) = &self.template {
            within("the template", template.len(), TEXT_BYTES_MAX)?;
            if self.format != "slack" || template.trim().is_empty() || template.contains('\0') {
                return Err(WebhookRefusal::Template.into());
            }
            if let Some(word) = unknown_word(template) {
                let word = quoted(word);
                return Err(WebhookRefusal::Word { word }.into());
            }
        }
        if self.wait == 0 || self.wait > WAIT_SECONDS_MAX {
            return Err(WebhookRefusal::Wait { wait: self.wait }.into());
        }
        self.check_scope()
    }

    fn check_scope(&self) -> Result<(), Refusal> {
        let is_event = |name: &String| EventKind::ALL.iter().any(|kind| kind.name() == name);
        if let Some(event) = self.events.iter().flatten().find(|name| !is_event(name)) {
            let event = quoted(event);
            return Err(WebhookRefusal::Event { event }.into());
        }
        // An empty list would be a webhook for nothing, and is more likely a mistake.
        if self.events.as_ref().is_some_and(Vec::is_empty) {
            return Err(WebhookRefusal::NoEvent.into());
        }
        let mut ids = self.experiments.iter().flatten();
        ids.find(|id| !is_id(id))
            .map_or(Ok(()), |id| Err(Refusal::IdText { id: quoted(id) }))
    }

    /// Adds it, within a transaction: its secret, which is not shown again.
    pub fn add(&self, store: &mut Store, at: i64) -> Result<Result<WebhookSecret, Refusal>> {
        if store.webhooks()?.len() >= WEBHOOKS_MAX {
            return Ok(Err(WebhookRefusal::TooMany.into()));
        }
        let secret = WebhookSecret(random()?);
        let added = store.add_webhook(&Webhook {
            name: self.name.clone(),
            url: self.url.clone(),
            secret,
            format: self.format.clone(),
            template: self.template.clone(),
            events: self.events.clone(),
            experiments: self.experiments.clone(),
            wait: i64::try_from(self.wait)? * 1_000,
            created_at: at,
            disabled_at: None,
            deliveries: Deliveries::default(),
        })?;
        if !added {
            let name = self.name.clone();
            return Ok(Err(WebhookRefusal::Taken { name }.into()));
        }
        store.begin_cursors(&self.name)?;
        Ok(Ok(secret))
    }
}
