//! `GET /v1/experiments/{id}/state`: where an experiment stands, in the spec's units.

use axum::Json as Reply;
use axum::extract::State as Shared;
use axum::response::{IntoResponse as _, Response};
use debora::record::{Kind, Rule};
use serde::Serialize;

use crate::reading::{
    ActionCounts, ActionMean, Advice, AdvisedQuantity, AdvisedStrategy, ByName, HoldbackState,
    IntervalMethods, LimitState, METHODS, Reading, SampleRatio, TestState,
};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::Id;
use crate::service::request::Refusal;
use crate::store::{Role, Status};

/// Where an experiment stands.
#[derive(Serialize, utoipa::ToSchema)]
pub struct State<'a> {
    /// Its name in addresses.
    id: &'a str,
    /// What it is called.
    name: Option<&'a str>,
    /// Whether it decides.
    status: Status,
    /// Rounds in all.
    horizon: u64,
    /// Rounds decided.
    decided: u64,
    /// Decided rounds without an outcome.
    outstanding: u64,
    /// Whether the open epoch is fully decided and waits for outcomes.
    waiting: bool,
    /// The open epoch, or the last.
    epoch: u64,
    /// How its strategy was found: explore, estimate, infeasible (no strategy seems to keep all thresholds), or commit (one
    /// action is clearly ahead and is played to the horizon).
    #[schema(value_type = String)]
    kind: Kind,
    /// Which of its strategies policy hard plays, mix or plan; none for the others.
    #[schema(value_type = Option<String>)]
    rule: Option<Rule>,
    /// The clear test made at its start, if one was due.
    test: Option<TestState>,
    /// After a commitment: why, and while it is open that nothing depends on outcomes any more, so that it can be closed without
    /// loss.
    committed: Option<String>,
    /// The probability of each action, by name.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    strategy: ByName<'a>,
    /// Counts per action.
    actions: Vec<ActionCounts>,
    /// What is known of each action and quantity; none before the first estimate.
    estimates: Vec<EstimateState<'a>>,
    /// Every mean as it was observed, beside the estimate that replicates.
    means: &'a [ActionMean],
    /// Every cost's average beside its threshold: was the limit kept?
    limits: &'a [LimitState],
    /// How the intervals of `means`, `limits` and `holdback` are made.
    intervals: IntervalMethods,
    /// What somebody should look into, in sentences: a promise that outcomes contradict, outcomes that go missing unevenly,
    /// declared means that are false.
    alerts: Vec<String>,
    /// The strategy to deploy if the experiment ended here.
    recommendation: RecommendationState<'a>,
    /// Rounds whose outcome did not come in time.
    imputed: u64,
    /// Outcomes that came after their round was imputed.
    late: u64,
    /// Decisions outside the horizon.
    overtime: u64,
    /// What is held back, and what the experiment gains over it; null if the spec holds nothing back.
    holdback: Option<&'a HoldbackState>,
    /// Epochs whose estimates left no strategy within the thresholds.
    infeasible: u64,
    /// Whether outcomes go missing more often after some actions than after others.
    sample_ratio: &'a SampleRatio,
    /// SHA-256 over the strategies of all closed epochs: with one key, equal digests mean equal decisions.
    digest: &'a str,
    /// The hash of the last closed epoch. Publish it now and then: anyone who knows it can detect a change to what came before.
    head: &'a str,
}

/// What is known of an action's quantity.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EstimateState<'a> {
    /// The action's number in the spec, from 0.
    action: u32,
    /// The action's name.
    name: &'a str,
    /// The reward or a cost, by name.
    quantity: &'a str,
    /// From how many rounds.
    count: u64,
    /// The rounded mean, which decides.
    estimate: f64,
    /// The true mean is at least this. All intervals hold together with probability 1 - delta.
    low: f64,
    /// The true mean is at most this.
    high: f64,
    /// Of a cost: its threshold, which its mean must keep; under policy free it is stated and decides nothing.
    threshold: Option<f64>,
}

/// What to deploy.
#[derive(Serialize, utoipa::ToSchema)]
pub struct RecommendationState<'a> {
    /// The probability of each action, by name.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    strategy: ByName<'a>,
    /// How it was found; while exploring it says nothing about which action is best.
    #[schema(value_type = String)]
    kind: Kind,
    /// What it is known to give: the reward first, then the costs.
    expected: Vec<Expected<'a>>,
    /// The best strategy sure to keep every limit; none while nothing is estimated, or if no strategy is sure to.
    cautious: Option<CautiousState<'a>>,
}

/// The strategy that is sure to keep every limit.
#[derive(Serialize, utoipa::ToSchema)]
pub struct CautiousState<'a> {
    /// The probability of each action, by name.
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    strategy: ByName<'a>,
    /// What it is known to give: the reward first, then the costs.
    expected: Vec<Expected<'a>>,
}

/// What a strategy is known to give of a quantity.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Expected<'a> {
    /// The reward or a cost, by name.
    quantity: &'a str,
    /// At least this.
    low: f64,
    /// At most this.
    high: f64,
    /// Of a cost: its threshold, which its mean must keep; under policy free it is stated and decides nothing.
    threshold: Option<f64>,
}

/// Where an experiment stands
///
/// Role read. Epoch, strategy, estimates with intervals beside thresholds, counts, what is outstanding, imputed, late and
/// overtime, and whether some actions' outcomes go missing more often.
#[utoipa::path(get, path = "/v1/experiments/{id}/state", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "Where it stands", body = State)))]
pub async fn state(
    Shared(app): Shared<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Response, ApiError> {
    caller.require_for(Role::Read, &id)?;
    let asked = id.clone();
    let state = app.read_page(move |store| {
        let reading = Reading::read(store, &asked)?;
        // Computed and written on this thread, which gives way to all others.
        Ok(reading.map(|reading| Reply(State::from_reading(&reading)).into_response()))
    });
    let state = state.await?;
    Ok(state.ok_or(Refusal::NoExperiment { id })?)
}

impl<'a> State<'a> {
    fn from_reading(reading: &'a Reading) -> Self {
        let progress = &reading.progress;
        let record = reading.engine.open_record();
        let outcomes = reading.outcomes();
        // Their kinds are for metrics: here a sentence says it all.
        let alerts = reading.alerts().into_iter();
        Self {
            id: reading.id(),
            name: reading.spec.name.as_deref(),
            status: progress.status,
            horizon: reading.problem().horizon(),
            decided: outcomes.decided,
            outstanding: outcomes.outstanding,
            waiting: reading.is_waiting(),
            epoch: progress.epoch,
            kind: record.kind,
            rule: record.rule,
            committed: reading.commitment(),
            test: reading.test(),
            strategy: reading.shares().by_name(),
            actions: reading.actions(),
            estimates: EstimateState::all(reading.means()),
            means: reading.means(),
            alerts: alerts.map(|alert| alert.sentence).collect(),
            limits: reading.limits(),
            intervals: METHODS,
            recommendation: RecommendationState::from_advice(reading.advice()),
            imputed: outcomes.imputed,
            late: outcomes.late,
            overtime: outcomes.overtime,
            holdback: reading.holdback(),
            infeasible: progress.infeasible,
            sample_ratio: reading.sample_ratio(),
            digest: &progress.digest,
            head: &progress.head,
        }
    }
}

impl<'a> EstimateState<'a> {
    fn all(means: &'a [ActionMean]) -> Vec<Self> {
        let estimates = means.iter().filter_map(|mean| {
            let estimate = mean.estimate.as_ref()?;
            Some(Self {
                action: mean.action,
                name: &mean.name,
                quantity: &mean.quantity,
                count: estimate.count,
                estimate: estimate.value,
                low: estimate.interval.low,
                high: estimate.interval.high,
                threshold: mean.threshold,
            })
        });
        estimates.collect()
    }
}

impl<'a> RecommendationState<'a> {
    fn from_advice(advice: &'a Advice) -> Self {
        Self {
            strategy: advice.current.shares.by_name(),
            kind: advice.kind,
            expected: Expected::all(&advice.current),
            cautious: advice.cautious.as_ref().map(|cautious| CautiousState {
                strategy: cautious.shares.by_name(),
                expected: Expected::all(cautious),
            }),
        }
    }
}

impl<'a> Expected<'a> {
    fn all(advised: &'a AdvisedStrategy) -> Vec<Self> {
        let of_quantity = |advised: &'a AdvisedQuantity| Self {
            quantity: &advised.name,
            low: advised.interval.low,
            high: advised.interval.high,
            threshold: advised.threshold,
        };
        advised.quantities.iter().map(of_quantity).collect()
    }
}
