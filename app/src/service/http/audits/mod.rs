//! `/v1/experiments/{id}/audit`: an experiment audited by the service that serves it.
//!
//! Such an audit shows that what is stored agrees with itself, not that the service is honest: whoever runs the service could have
//! it answer anything. It reads the log alone, as an audit by the service's address does.

mod thread;

use anyhow::Result;
use axum::Json as Reply;
use axum::extract::State;
use debora::measure::answer::{Answer, Sentence};
use serde::Serialize;

pub use thread::Audits;

use crate::audit::{self, Difference, Verdict};
use crate::calendar::iso;
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::experiments::row;
use crate::service::http::extract::Id;
use crate::store::Role;

/// The audit of an experiment: the one under way, and the last that ended.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct AuditState {
    /// The experiment.
    pub id: String,
    /// The audit under way; null if there is none.
    pub running: Option<AuditProgress>,
    /// Whether another experiment is being audited: one is audited at a time.
    pub other_running: bool,
    /// What the last audit found since the server started; null if there was none.
    pub last: Option<AuditFinding>,
}

/// How far an audit is.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct AuditProgress {
    /// When it began.
    pub begun: String,
    /// Epochs read so far.
    pub epochs: u64,
    /// Decisions checked so far.
    pub decisions: u64,
    /// Outcomes checked so far.
    pub outcomes: u64,
    /// The share of decisions and outcomes that are checked, of those there are: from 0 to 1.
    pub share: f64,
    /// Whether the caller may stop it.
    #[serde(skip)]
    pub stoppable: bool,
}

/// What an audit found.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct AuditFinding {
    /// `equal`, `different`, `failed` (the log cannot be read), `stopped` (as somebody asked), or `hashes equal, ..` where actions
    /// could not be recomputed.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    pub verdict: &'static str,
    /// The same in sentences, as `debora audit` prints them.
    pub sentences: Vec<String>,
    /// The first difference; null if there is none.
    #[cfg_attr(feature = "describe", schema(value_type = Option<Object>))]
    pub difference: Option<Difference>,
    /// Epochs that were checked, with the open one.
    pub epochs: u64,
    /// Decisions that were checked.
    pub decisions: u64,
    /// Outcomes that were checked.
    pub outcomes: u64,
    /// The head up to which all is equal; null unless the verdict is `equal` or `hashes equal, ..`.
    pub head: Option<String>,
    /// When it began.
    pub begun: String,
    /// When it ended.
    pub ended: String,
    /// How long it took.
    pub seconds: f64,
    /// For the pages.
    #[serde(skip)]
    pub answer: Answer,
    #[serde(skip)]
    pub ended_at: i64,
}

/// Where an audit stands
///
/// Role read. How far the audit of this experiment is, and what the last one found: of this server, since it started.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/audit", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "The audit under way, and the last", body = AuditState))))]
pub async fn show(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<AuditState>, ApiError> {
    Ok(Reply(state_of(&app, &caller, &id).await?))
}

/// Audit an experiment
///
/// Role read. Begins an audit, unless one of this experiment is under way, and does not wait for its end: ask again with GET. One
/// experiment is audited at a time; 503 `busy` while it is another. It shows that what is stored agrees with itself: for more, run
/// `debora audit` elsewhere, with a head that was published.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/audit", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It is under way", body = AuditState))))]
pub async fn start(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<AuditState>, ApiError> {
    begun(&app, &caller, &id).await?;
    Ok(Reply(state_of(&app, &caller, &id).await?))
}

/// Stop an audit
///
/// Role read. Stops the audit of this experiment, if it is under way: the key that began it, or one of role admin.
#[cfg_attr(feature = "describe", utoipa::path(post, path = "/v1/experiments/{id}/audit/stop", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "It stops", body = AuditState))))]
pub async fn stop(
    State(app): State<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<AuditState>, ApiError> {
    stopped(&app, &caller, &id).await?;
    Ok(Reply(state_of(&app, &caller, &id).await?))
}

/// The audit of an experiment, for those who may look at it.
pub async fn state_of(app: &AppState, caller: &Caller, id: &str) -> Result<AuditState, ApiError> {
    caller.require_for(Role::Read, id)?;
    let (_, progress) = row(app, id).await?;
    Ok(app.audits.state(id, caller, &progress))
}

/// Begins it. Who may read may also download the whole log, which costs the service more than an audit does.
pub async fn begun(app: &AppState, caller: &Caller, id: &str) -> Result<(), ApiError> {
    caller.require_for(Role::Read, id)?;
    row(app, id).await?;
    app.audits.start(&app.service, id, caller)
}

/// Stops it.
pub async fn stopped(app: &AppState, caller: &Caller, id: &str) -> Result<(), ApiError> {
    caller.require_for(Role::Read, id)?;
    row(app, id).await?;
    app.audits.stop(id, caller)
}

/// When an audit was made, and how long it took.
struct AuditTimes {
    begun_at: i64,
    ended_at: i64,
    seconds: f64,
}

fn finding(
    id: &str,
    found: Result<Option<Verdict>>,
    [epochs, decisions, outcomes]: [u64; 3],
    times: AuditTimes,
) -> AuditFinding {
    let (verdict, answer) = match &found {
        Ok(Some(verdict)) => (audit::verdict_word(verdict), audit::finding(verdict)),
        Ok(None) => (
            "stopped",
            one_sentence("Stopped as asked; what was checked until then was equal."),
        ),
        Err(error) => {
            // To the log alone: an error of a database may tell what is not for everyone who reads.
            tracing::error!(
                id,
                detail = format!("{error:#}"),
                "an experiment cannot be audited"
            );
            (
                "failed",
                one_sentence("The log cannot be read to its end; the server's log says why."),
            )
        }
    };
    let (head, difference) = match found {
        Ok(Some(Verdict::Equal(audited))) => (Some(audited.head), None),
        Ok(Some(Verdict::Different(_, difference))) => (None, Some(difference)),
        Ok(None) | Err(_) => (None, None),
    };
    AuditFinding {
        verdict,
        sentences: answer.sentences(),
        difference,
        epochs,
        decisions,
        outcomes,
        head,
        begun: iso(times.begun_at),
        ended: iso(times.ended_at),
        seconds: times.seconds,
        answer,
        ended_at: times.ended_at,
    }
}

fn one_sentence(text: &str) -> Answer {
    let mut answer = Answer::default();
    answer.paragraph([Sentence::plain(text)]);
    answer
}
