//! `/v1/webhooks`: who is told what happens, for admins of all experiments.

pub mod notices;
pub mod watcher;

use std::collections::BTreeMap;

use axum::Json as Reply;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::keys::{KeyName, body_of_admin, require_admin_of_all};
use crate::service::webhooks::outbox::{AddWebhook, RemoveWebhook, TestWebhook};
use crate::service::webhooks::signature::shown;
use crate::service::webhooks::{NewWebhook, shown_url};
use crate::store::Webhook;

/// How long outcomes may be waited for before somebody is told, by default.
pub const WAIT_SECONDS: u64 = 3_600;

/// A webhook that is asked for.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhookBody {
    /// What it is called. Not one or two dots alone.
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9._@-]+$")]
    pub name: String,
    /// Where messages are posted: http or https.
    #[schema(max_length = 2048)]
    pub url: String,
    /// The shape of messages; default: standard.
    #[schema(nullable = false, value_type = Option<WebhookFormat>)]
    pub format: Option<String>,
    /// Of format slack: its text, in which {experiment}, {event}, {words} and {link} are replaced. Default: `*{experiment}*: {words}`.
    #[schema(nullable = false, max_length = 2048)]
    pub template: Option<String>,
    /// The events it is told; default: all.
    #[schema(nullable = false, value_type = Option<Vec<WebhookEvent>>)]
    pub events: Option<Vec<String>>,
    /// The ids of the experiments, which need not exist yet; default: all.
    #[schema(nullable = false)]
    pub experiments: Option<Vec<String>>,
    /// How long outcomes may be waited for before `outcomes.waiting` is sent; default: an hour.
    #[schema(nullable = false, minimum = 1, maximum = 31536000)]
    pub wait_seconds: Option<u64>,
}

/// `{type, timestamp, data}`, or what Slack's incoming webhooks take.
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "describes a text that the service checks")]
pub enum WebhookFormat {
    Standard,
    Slack,
}

/// What can happen.
#[derive(utoipa::ToSchema)]
#[allow(
    dead_code,
    reason = "describes the service's EventKind, which knows nothing of HTTP"
)]
pub enum WebhookEvent {
    #[schema(rename = "epoch.closed")]
    EpochClosed,
    #[schema(rename = "experiment.committed")]
    Committed,
    #[schema(rename = "experiment.infeasible")]
    Infeasible,
    #[schema(rename = "experiment.done")]
    Done,
    #[schema(rename = "limit.exceeded")]
    LimitExceeded,
    #[schema(rename = "sample_ratio.uneven")]
    SampleRatio,
    #[schema(rename = "outcomes.waiting")]
    Waiting,
}

/// A webhook that was made.
#[derive(Serialize, utoipa::ToSchema)]
pub struct MadeWebhook {
    /// What it is called.
    pub name: String,
    /// What its messages are signed with, which is not shown again.
    pub secret: String,
}

/// A webhook, without what is secret.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ListedWebhook {
    /// What it is called.
    pub name: String,
    /// Scheme and host of its address; the rest may be secret, and is not shown again.
    pub url: String,
    /// The shape of its messages.
    #[schema(value_type = WebhookFormat)]
    pub format: String,
    /// The text of format slack; null for the default.
    pub template: Option<String>,
    /// The events it is told; null for all.
    #[schema(value_type = Option<Vec<WebhookEvent>>)]
    pub events: Option<Vec<String>>,
    /// The experiments it is for; null for all.
    pub experiments: Option<Vec<String>>,
    /// How long outcomes may be waited for before it is told.
    pub wait_seconds: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When its receiver answered 410, and wants no more; null if it did not.
    pub disabled_at: Option<i64>,
    /// Messages that wait to be sent, or to be sent again.
    pub pending: u64,
    /// Messages that were taken.
    pub delivered: u64,
    /// Messages that were given up after three days.
    pub failed: u64,
    /// When one was last taken.
    pub last_success_at: Option<i64>,
    /// When an attempt last failed.
    pub last_error_at: Option<i64>,
    /// And why.
    pub last_error: Option<String>,
}

impl ListedWebhook {
    fn of(webhook: Webhook, pending: u64) -> Self {
        let deliveries = webhook.deliveries;
        Self {
            url: shown_url(&webhook.url),
            name: webhook.name,
            format: webhook.format,
            template: webhook.template,
            events: webhook.events,
            experiments: webhook.experiments,
            wait_seconds: webhook.wait.unsigned_abs() / 1_000,
            created_at: webhook.created_at,
            disabled_at: webhook.disabled_at,
            pending,
            delivered: deliveries.delivered,
            failed: deliveries.failed,
            last_success_at: deliveries.last_success_at,
            last_error_at: deliveries.last_error_at,
            last_error: deliveries.last_error,
        }
    }
}

/// All webhooks.
#[derive(Serialize, utoipa::ToSchema)]
pub struct WebhookList {
    /// By name.
    webhooks: Vec<ListedWebhook>,
}

/// A webhook that is gone.
#[derive(Serialize, utoipa::ToSchema)]
pub struct RemovedWebhook {
    /// What it was called.
    name: String,
}

/// A message that is on its way.
#[derive(Serialize, utoipa::ToSchema)]
pub struct TestMessage {
    /// Its id.
    id: String,
}

/// List the webhooks
///
/// Role admin; a key for some experiments is refused. Without secrets and without the paths of addresses, which may be secret, too.
#[utoipa::path(get, path = "/v1/webhooks", tag = "webhooks",
    responses((status = 200, description = "All webhooks, by name", body = WebhookList)))]
pub async fn list(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Reply<WebhookList>, ApiError> {
    require_admin_of_all(&caller)?;
    let webhooks = listed(&app).await?;
    Ok(Reply(WebhookList { webhooks }))
}

/// All webhooks.
pub async fn listed(app: &AppState) -> Result<Vec<ListedWebhook>, ApiError> {
    let read = app.read(|store| Ok((store.webhooks()?, store.pending()?)));
    let (webhooks, pending) = read.await?;
    let mut pending: BTreeMap<_, _> = pending.into_iter().collect();
    let webhooks = webhooks.into_iter().map(|webhook| {
        let pending = pending.remove(&webhook.name).unwrap_or_default();
        ListedWebhook::of(webhook, pending)
    });
    Ok(webhooks.collect())
}

/// Add a webhook
///
/// Role admin; a key for some experiments is refused. It is told what happens from now on. The answer has the secret that its messages
/// are signed with, which is not shown again.
#[utoipa::path(post, path = "/v1/webhooks", tag = "webhooks", request_body = NewWebhookBody,
    responses((status = 201, description = "It is there", body = MadeWebhook)))]
pub async fn make(
    State(app): State<AppState>,
    caller: Caller,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let body: NewWebhookBody = body_of_admin(&app, &caller, request).await?;
    let new = NewWebhook {
        name: body.name,
        url: body.url,
        format: body.format.unwrap_or_else(|| "standard".into()),
        template: body.template,
        events: body.events,
        experiments: body.experiments,
        wait: body.wait_seconds.unwrap_or(WAIT_SECONDS),
    };
    let made = made(&app, &caller, new).await?;
    Ok((StatusCode::CREATED, Reply(made)).into_response())
}

/// Adds a webhook, if the caller may.
pub async fn made(
    app: &AppState,
    caller: &Caller,
    new: NewWebhook,
) -> Result<MadeWebhook, ApiError> {
    require_admin_of_all(caller)?;
    let name = new.name.clone();
    let url = shown_url(&new.url);
    let secret = app.service.ask_store(AddWebhook(new)).await?;
    tracing::info!(name, url, actor = &*caller.name, "a webhook was added");
    let secret = shown(secret);
    Ok(MadeWebhook { name, secret })
}

/// Remove a webhook
///
/// Role admin; a key for some experiments is refused. What waits to be sent to it goes with it.
#[utoipa::path(post, path = "/v1/webhooks/{name}/remove", tag = "webhooks",
    params(("name" = String, Path, description = "The webhook")),
    responses((status = 200, description = "It is gone", body = RemovedWebhook),
              (status = 404, description = "Code `no_such_webhook`", body = ApiError, content_type = "application/problem+json")))]
pub async fn remove(
    State(app): State<AppState>,
    caller: Caller,
    KeyName(name): KeyName,
) -> Result<Reply<RemovedWebhook>, ApiError> {
    removed(&app, &caller, name.clone()).await?;
    Ok(Reply(RemovedWebhook { name }))
}

/// Removes a webhook, if the caller may.
pub async fn removed(app: &AppState, caller: &Caller, name: String) -> Result<(), ApiError> {
    require_admin_of_all(caller)?;
    app.service.ask_store(RemoveWebhook(name.clone())).await?;
    tracing::info!(name, actor = &*caller.name, "a webhook was removed");
    Ok(())
}

/// Try a webhook
///
/// Role admin; a key for some experiments is refused. Sends a message of type `webhook.test`; the list says what became of it.
#[utoipa::path(post, path = "/v1/webhooks/{name}/test", tag = "webhooks",
    params(("name" = String, Path, description = "The webhook")),
    responses((status = 200, description = "It is on its way", body = TestMessage),
              (status = 404, description = "Code `no_such_webhook`", body = ApiError, content_type = "application/problem+json")))]
pub async fn test(
    State(app): State<AppState>,
    caller: Caller,
    KeyName(name): KeyName,
) -> Result<Reply<TestMessage>, ApiError> {
    let id = tested(&app, &caller, name).await?;
    Ok(Reply(TestMessage { id }))
}

/// Sends a test to a webhook, if the caller may.
pub async fn tested(app: &AppState, caller: &Caller, name: String) -> Result<String, ApiError> {
    require_admin_of_all(caller)?;
    Ok(app.service.ask_store(TestWebhook(name)).await?)
}
