//! `GET /v1/experiments/{id}/state`: where an experiment stands, in the spec's units.

use axum::Json as Reply;
use axum::extract::State as Shared;
use debora::measure::answer::{look_test, picked};
use debora::record::{Kind, LookTest, Rule};
use debora::{Engine, EpochRecord, Estimate, Policy, Problem};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::log::account::ToldAccount;
use crate::log::certificate::{ActionCounts, KnownStrategy, Recommended, threshold};
use crate::log::holdback::{self, HoldbackState};
use crate::log::kept::{self, LimitState};
use crate::log::means::{self, ActionMean, IntervalMethods, METHODS};
use crate::log::observed::Observed;
use crate::log::sample_ratio::{self, SampleRatio};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::alerts;
use crate::service::http::error::ApiError;
use crate::service::http::extract::Id;
use crate::service::request::Refusal;
use crate::service::resident::Resident;
use crate::store::{ExperimentRow, Progress, Role, Status, Store};

/// Where an experiment stands.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct State {
    /// Its name in addresses.
    pub id: String,
    /// What it is called.
    pub name: Option<String>,
    /// For the pages' words; the spec, which says it, is answered elsewhere.
    #[serde(skip)]
    pub policy: Policy,
    /// Whether it decides.
    pub status: Status,
    /// Rounds in all.
    pub horizon: u64,
    /// Rounds decided.
    pub decided: u64,
    /// Decided rounds without an outcome.
    pub outstanding: u64,
    /// Whether the open epoch is fully decided and waits for outcomes.
    pub waiting: bool,
    /// The open epoch, or the last.
    pub epoch: u64,
    /// How its strategy was found: explore, estimate, infeasible (no strategy seems to keep all thresholds), or commit (one
    /// action is clearly ahead and is played to the horizon).
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    pub kind: Kind,
    /// Which of its strategies policy hard plays, mix or plan; none for the others.
    #[cfg_attr(feature = "describe", schema(value_type = Option<String>))]
    pub rule: Option<Rule>,
    /// The clear test made at its start, if one was due.
    pub test: Option<TestState>,
    /// After a commitment: why, and while it is open that nothing depends on outcomes any more, so that it can be closed without
    /// loss.
    pub committed: Option<String>,
    /// The probability of each action, by name.
    #[cfg_attr(feature = "describe", schema(value_type = std::collections::BTreeMap<String, f64>))]
    pub strategy: ByName,
    /// Counts per action.
    pub actions: Vec<ActionCounts>,
    /// What is known of each action and quantity; none before the first estimate.
    pub estimates: Vec<EstimateState>,
    /// Every mean as it was observed, beside the estimate that replicates.
    pub means: Vec<ActionMean>,
    /// Every cost's average beside its threshold: was the limit kept?
    pub limits: Vec<LimitState>,
    /// How the intervals of `means`, `limits` and `holdback` are made.
    pub intervals: IntervalMethods,
    /// What somebody should look into, in sentences: a promise that outcomes contradict, outcomes that go missing unevenly,
    /// declared means that are false.
    pub alerts: Vec<String>,
    /// The strategy to deploy if the experiment ended here.
    pub recommendation: RecommendationState,
    /// Rounds whose outcome did not come in time.
    pub imputed: u64,
    /// Outcomes that came after their round was imputed.
    pub late: u64,
    /// Decisions outside the horizon.
    pub overtime: u64,
    /// What is held back, and what the experiment gains over it; null if the spec holds nothing back.
    pub holdback: Option<HoldbackState>,
    /// Epochs whose estimates left no strategy within the thresholds.
    pub infeasible: u64,
    /// Whether outcomes go missing more often after some actions than after others.
    pub sample_ratio: SampleRatio,
    /// SHA-256 over the strategies of all closed epochs: with one key, equal digests mean equal decisions.
    pub digest: String,
    /// The hash of the last closed epoch. Publish it now and then: anyone who knows it can detect a change to what came before.
    pub head: String,
}

/// A clear test: policy free commits to an action that is ahead by more than a keyed threshold.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct TestState {
    /// Its stage, from 0.
    pub stage: u32,
    /// The rounds of each action that it looks at.
    pub count: u64,
    /// The action with the largest mean reward, by name.
    pub leader: String,
    /// The one behind it.
    pub runner_up: String,
    /// By how much the leader's mean reward is larger, in its units.
    pub lead: f64,
    /// What the lead was compared with.
    pub threshold: f64,
    /// Whether the lead was above it.
    pub passed: bool,
    /// The same in words.
    pub sentence: String,
}

/// Values by name, in the spec's order.
pub struct ByName(pub Vec<(String, f64)>);

impl Serialize for ByName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // This is written by hand: a `BTreeMap` would sort the names, and actions are known in the spec's order.
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0
            .iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

/// What is known of an action's quantity.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct EstimateState {
    /// The action's number in the spec, from 0.
    pub action: u32,
    /// The action's name.
    pub name: String,
    /// The reward or a cost, by name.
    pub quantity: String,
    /// From how many rounds.
    pub count: u64,
    /// The rounded mean, which decides.
    pub estimate: f64,
    /// The true mean is at least this. All intervals hold together with probability 1 - delta.
    pub low: f64,
    /// The true mean is at most this.
    pub high: f64,
    /// Of a cost: its threshold, which its mean must keep; under policy free it is stated and decides nothing.
    pub threshold: Option<f64>,
}

/// What to deploy.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct RecommendationState {
    /// The probability of each action, by name.
    #[cfg_attr(feature = "describe", schema(value_type = std::collections::BTreeMap<String, f64>))]
    pub strategy: ByName,
    /// How it was found; while exploring it says nothing about which action is best.
    #[cfg_attr(feature = "describe", schema(value_type = String))]
    pub kind: Kind,
    /// What it is known to give: the reward first, then the costs.
    pub expected: Vec<Expected>,
    /// The best strategy sure to keep every limit; none while nothing is estimated, or if no strategy is sure to.
    pub cautious: Option<CautiousState>,
}

/// The strategy that is sure to keep every limit.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct CautiousState {
    /// The probability of each action, by name.
    #[cfg_attr(feature = "describe", schema(value_type = std::collections::BTreeMap<String, f64>))]
    pub strategy: ByName,
    /// What it is known to give: the reward first, then the costs.
    pub expected: Vec<Expected>,
}

/// What a strategy is known to give of a quantity.
#[derive(Serialize)]
#[cfg_attr(feature = "describe", derive(utoipa::ToSchema))]
pub struct Expected {
    /// The reward or a cost, by name.
    pub quantity: String,
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
    /// Of a cost: its threshold, which its mean must keep; under policy free it is stated and decides nothing.
    pub threshold: Option<f64>,
}

/// Where an experiment stands
///
/// Role read. Epoch, strategy, estimates with intervals beside thresholds, counts, what is outstanding, imputed, late and
/// overtime, and whether some actions' outcomes go missing more often.
#[cfg_attr(feature = "describe", utoipa::path(get, path = "/v1/experiments/{id}/state", tag = "experiments",
    params(("id" = String, Path, description = "The experiment")),
    responses((status = 200, description = "Where it stands", body = State))))]
pub async fn state(
    Shared(app): Shared<AppState>,
    caller: Caller,
    Id(id): Id,
) -> Result<Reply<State>, ApiError> {
    caller.require_for(Role::Read, &id)?;
    let asked = id.clone();
    let state = app.read_page(move |store| read(store, &asked)).await?;
    Ok(Reply(state.ok_or(Refusal::NoExperiment { id })?))
}

/// An experiment, and all that its state is shown from.
pub struct WholeState {
    /// What it is.
    pub experiment: ExperimentRow,
    /// How far it is.
    pub progress: Progress,
    /// Its engine and its rules.
    pub resident: Resident,
    /// Where it stands.
    pub state: State,
}

/// Reads where an experiment stands.
pub fn read(store: &mut Store, id: &str) -> anyhow::Result<Option<State>> {
    Ok(read_whole(store, id)?.map(|whole| whole.state))
}

/// The same with what it is shown from, for those who show more of it.
pub fn read_whole(store: &mut Store, id: &str) -> anyhow::Result<Option<WholeState>> {
    let Some((experiment, progress)) = store.experiment(id)? else {
        return Ok(None);
    };
    // Read from the store, and not asked of the writer, which has it in memory: pages and monitors
    // must not take the writer's time.
    let Some(resident) = Resident::read(store, id)? else {
        return Ok(None);
    };
    let name = debora::spec::Spec::parse(&experiment.spec, id)?.name;
    let observed = Observed::read(store, id, &progress, &resident.engine)?;
    let state = State::of(name, id, &progress, &resident, &observed)?;
    Ok(Some(WholeState {
        experiment,
        progress,
        resident,
        state,
    }))
}

impl State {
    fn of(
        name: Option<String>,
        id: &str,
        progress: &Progress,
        resident: &Resident,
        observed: &Observed,
    ) -> anyhow::Result<Self> {
        let engine = &resident.engine;
        let problem = engine.problem();
        let record = engine.open_record();
        let outstanding = progress.outstanding();
        // A closed experiment waits for nothing, whatever is outstanding.
        let open = progress.status.is_open();
        let account = ToldAccount::new(engine, progress, observed, &resident.rules)?;
        let limits = kept::of(&account);
        let sample_ratio = sample_ratio::check(&account);
        Ok(Self {
            id: id.to_owned(),
            name,
            policy: problem.policy(),
            status: progress.status,
            horizon: problem.horizon(),
            decided: progress.rounds(),
            outstanding,
            waiting: open && outstanding > 0 && resident.is_decided(progress),
            epoch: progress.epoch,
            kind: record.kind,
            rule: record.rule,
            committed: committed(problem, record, open),
            test: record
                .test
                .as_ref()
                .map(|test| TestState::of(problem, test)),
            strategy: by_name(problem, engine.strategy().probabilities()),
            actions: ActionCounts::of(problem, progress),
            estimates: estimates(engine),
            means: means::of(&account),
            alerts: alerts::sentences(alerts::alerts(problem.policy(), &limits, &sample_ratio)),
            limits,
            intervals: METHODS,
            recommendation: recommendation(engine),
            imputed: progress.imputed.iter().sum(),
            late: progress.late,
            overtime: progress.overtime,
            holdback: resident
                .rules
                .holdback
                .map(|held_back| holdback::of(&account, &held_back)),
            infeasible: progress.infeasible,
            sample_ratio,
            digest: progress.digest.clone(),
            head: progress.head.clone(),
        })
    }
}

impl TestState {
    /// Of a test, in the problem's units.
    pub fn of(problem: &Problem, test: &LookTest) -> Self {
        let [lead, threshold] = test.gap_and_threshold();
        let name = |action: u32| problem.actions()[action as usize].clone();
        Self {
            stage: test.look,
            count: test.count,
            leader: name(test.leader),
            runner_up: name(test.runner_up),
            lead,
            threshold,
            passed: test.passed,
            sentence: look_test(problem, test),
        }
    }
}

fn committed(problem: &Problem, record: &EpochRecord, open: bool) -> Option<String> {
    let test = record.test.as_ref().filter(|test| test.passed);
    let committed = test.map(|test| look_test(problem, test));
    let picked = record.pick.as_ref().map(|pick| picked(problem, pick));
    let found = committed.or(picked)?;
    // What an operator would not guess: elsewhere every outcome is waited for, and closing early loses what was to come.
    let meanwhile = if open {
        " Outcomes are still taken, but nothing depends on them: no decision waits, and the experiment can be closed without loss."
    } else {
        ""
    };
    Some(found + meanwhile)
}

fn by_name(problem: &Problem, values: &[f64]) -> ByName {
    ByName(
        problem
            .actions()
            .iter()
            .cloned()
            .zip(values.iter().copied())
            .collect(),
    )
}

fn estimates(engine: &Engine) -> Vec<EstimateState> {
    engine
        .estimates()
        .map(|estimate| EstimateState::of(engine.problem(), &estimate))
        .collect()
}

impl EstimateState {
    fn of(problem: &Problem, estimate: &Estimate) -> Self {
        let quantity = problem.quantity(estimate.quantity as usize);
        let [low, high] = estimate.interval();
        Self {
            action: estimate.action,
            name: problem.actions()[estimate.action as usize].clone(),
            quantity: quantity.name.clone(),
            count: estimate.count,
            // The middle of the outermost cells may lie outside the range, where no mean can be.
            estimate: quantity.range.to_user(estimate.estimate.clamp(0.0, 1.0)),
            low: quantity.range.to_user(low),
            high: quantity.range.to_user(high),
            threshold: threshold(problem, estimate.quantity as usize),
        }
    }
}

fn recommendation(engine: &Engine) -> RecommendationState {
    // The same as in the certificate: what is recommended on the last day is what is certified.
    let recommended = Recommended::of(engine);
    let problem = engine.problem();
    RecommendationState {
        strategy: by_name(problem, &recommended.current.strategy),
        kind: recommended.kind,
        expected: expected(recommended.current),
        cautious: recommended.cautious.map(|cautious| CautiousState {
            strategy: by_name(problem, &cautious.strategy),
            expected: expected(cautious),
        }),
    }
}

fn expected(known: KnownStrategy) -> Vec<Expected> {
    known
        .quantities
        .into_iter()
        .map(|known| Expected {
            quantity: known.name,
            low: known.interval.low,
            high: known.interval.high,
            threshold: known.threshold,
        })
        .collect()
}
