//! `POST /v1/simulate`: a spec tried out on guessed means, as `debora replicate` would do it.
//!
//! ```text
//! spec + means -> the spec with a [world] -> pairs 0, 1, 2, .. until a second is over -> the measurement of those pairs
//! ```
//!
//! How many pairs that are depends on the machine; what each pair gives is a function of spec, means and its number.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::Json as Reply;
use axum::extract::{FromRequest as _, Request, State};
use debora::Problem;
use debora::lab::metrics::Spread;
use debora::lab::replicate::Simulator;
use debora::measure::{Findings, Measurement, Part, SpecText, answer, json};
use debora::problem::Quantity;
use debora::spec::{WorldKind, quoted};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Json, Object};
use crate::service::http::plan::readable;
use crate::store::Role;

/// Pairs run, unless another number is asked for: the interval of a rate near 1 is then some 3 % wide.
pub const PAIRS: u64 = 300;

/// The most that can be asked for; they would not fit into the time anyway.
const PAIRS_MAX: u64 = 10_000;

/// How long pairs are begun for.
const TIME: Duration = Duration::from_secs(1);

/// The most actions times quantities: 200 actions with 20 costs. A pair is not interrupted, and so many take 1 to 3 seconds in a
/// build without optimisation.
const SIMULATED_MAX: usize = 4_200;

/// What is to be simulated.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulateBody {
    /// The spec file's text (TOML), without `[world]`.
    spec: String,
    /// The guessed mean of each quantity of each action, by their names, in the quantity's units.
    means: BTreeMap<String, BTreeMap<String, f64>>,
    /// Pairs of runs at most; default 300.
    #[schema(minimum = 1, maximum = 10_000)]
    pairs: Option<u64>,
}

/// What pairs of runs on guessed means gave.
#[derive(Serialize, utoipa::ToSchema)]
pub struct SimulatedPairs {
    /// Pairs that were run: as many as were asked for, or as a second had room for.
    pub pairs: u64,
    /// What was asked for.
    pub asked: u64,
    /// What `debora replicate` says of them; warnings first.
    pub sentences: Vec<String>,
    /// Identical rate, regret and bounds, as `debora replicate --json` gives them.
    #[schema(value_type = Object)]
    pub found: Value,
    /// Each cost's average over a run, by the means of the actions that it played.
    pub limits: Vec<SimulatedLimit>,
    /// The spec with the guessed means: `debora replicate` gives the same for it.
    pub spec: String,
}

/// A cost's average, in its units.
#[derive(Serialize, utoipa::ToSchema)]
pub struct SimulatedLimit {
    /// The cost.
    pub name: String,
    /// Its threshold.
    pub threshold: f64,
    /// Of all runs, the mean.
    pub mean: f64,
    /// The 5 % quantile.
    pub p05: f64,
    /// The median.
    pub median: f64,
    /// The 95 % quantile.
    pub p95: f64,
}

/// Simulate an experiment
///
/// Role admin. It takes a second of a core, and creates nothing. Pairs of runs with one key on fresh data, each action's rewards
/// and costs drawn at the ends of their ranges with the guessed means. One at a time: others are answered 503 `busy`.
#[utoipa::path(post, path = "/v1/simulate", tag = "planning", request_body = SimulateBody,
    responses((status = 200, description = "What was found", body = SimulatedPairs)))]
pub async fn simulate(
    State(app): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Reply<SimulatedPairs>, ApiError> {
    caller.require(Role::Admin)?;
    let body = Json::from_request(request, &app).await?;
    let Object(SimulateBody { spec, means, pairs }) = body.read()?;
    Ok(Reply(
        simulated(&app, spec, means, pairs.unwrap_or(PAIRS)).await?,
    ))
}

/// Means by action and quantity.
pub type GuessedMeans = BTreeMap<String, BTreeMap<String, f64>>;

/// Runs the pairs, once nobody else does.
pub async fn simulated(
    app: &AppState,
    spec: String,
    means: GuessedMeans,
    asked: u64,
) -> Result<SimulatedPairs, ApiError> {
    if !(1..=PAIRS_MAX).contains(&asked) {
        let message = format!("pairs = {asked} is outside 1 to {PAIRS_MAX}; ask for fewer");
        let rule = format!("1 <= pairs <= {PAIRS_MAX}");
        return Err(ApiError::unfit(message).against(rule, asked).at("pairs"));
    }
    app.simulate(move || run(&spec, &means, asked)).await?
}

fn run(spec: &str, means: &GuessedMeans, asked: u64) -> Result<SimulatedPairs, ApiError> {
    let text = with_world(spec, means)?;
    let begun = Instant::now();
    let parsed = SpecText::parse(text.clone(), "spec".into(), Vec::new());
    let parsed = parsed.map_err(|error| ApiError::unfit(error.to_string()))?;
    let measurement = Measurement::replicate(parsed, asked, Simulator::Epochs, None);
    let open = |_: &std::path::Path| unreachable!("only tables are read from files");
    // The wall clock, and not what was worked: on a busy machine the caller is not to wait longer, but to get fewer.
    let part = measurement.measure_while(&open, &|| begun.elapsed() < TIME);
    let part = part.map_err(|error| ApiError::unfit(error.to_string()))?;
    Ok(SimulatedPairs::of(&part, asked, text))
}

impl SimulatedPairs {
    fn of(part: &Part, asked: u64, spec: String) -> Self {
        let findings: Findings = part.findings();
        let problem = part.measurement.spec.problem();
        Self {
            pairs: part.measurement.pairs,
            asked,
            sentences: answer::measured(part, &findings).sentences(),
            found: json::measured(part, &findings),
            limits: problem
                .limited()
                .iter()
                .zip(problem.limits())
                .map(|(&quantity, limited)| limit(part, quantity, limited))
                .collect(),
            spec,
        }
    }
}

fn limit(part: &Part, quantity: usize, (cost, threshold): (&Quantity, f64)) -> SimulatedLimit {
    let means = means_of(part, quantity);
    let runs = part.pairs.players[0].1.iter().flat_map(|pair| &pair.runs);
    let averages = runs.map(|run| {
        let played = run.counts.iter().zip(means);
        // By the true means: what a single run happened to draw says nothing of the next.
        played
            .map(|(count, mean)| *count as f64 * mean)
            .sum::<f64>()
            / run.rounds as f64
    });
    let spread = Spread::of(averages).expect("a pair is always run");
    SimulatedLimit {
        name: cost.name.clone(),
        threshold,
        mean: spread.mean,
        p05: spread.p05,
        median: spread.median,
        p95: spread.p95,
    }
}

/// The guessed means of a quantity, by action.
fn means_of(part: &Part, quantity: usize) -> &[f64] {
    let world = part.measurement.spec.spec.world.as_ref();
    match world.map(|world| &world.kind) {
        Some(WorldKind::Bernoulli { means }) => &means[quantity],
        _ => unreachable!("the world was written here"),
    }
}

/// The spec with a world of the guessed means.
fn with_world(text: &str, means: &GuessedMeans) -> Result<String, ApiError> {
    let spec = readable(text)?;
    if spec.world.is_some() {
        let message =
            "the spec has a [world], but here the guessed means are the world; remove the section";
        return Err(ApiError::unfit(message).at("world"));
    }
    check_size(&spec.problem)?;
    known_names(&spec.problem, means)?;
    // At the end, where a header begins a section of the whole file.
    let mut text = format!("{}\n\n[world]\nkind = \"bernoulli\"\n", text.trim_end());
    for quantity in 0..spec.problem.quantities() {
        let row = world_row(&spec.problem, means, quantity)?;
        text += &row;
    }
    Ok(text)
}

fn check_size(problem: &Problem) -> Result<(), ApiError> {
    let size = problem.actions().len() * problem.quantities();
    if size <= SIMULATED_MAX {
        return Ok(());
    }
    let message = format!(
        "{size} means are more than the {SIMULATED_MAX} that are simulated here; run `debora replicate` on the spec with a [world]"
    );
    let rule = format!("actions times quantities <= {SIMULATED_MAX}");
    Err(ApiError::unfit(message).against(rule, size).at("actions"))
}

/// A quantity's means, in the order of the actions.
fn world_row(problem: &Problem, means: &GuessedMeans, quantity: usize) -> Result<String, ApiError> {
    let actions = problem.actions().iter();
    let row = actions.map(|action| guessed(problem, means, action, quantity));
    let row: Vec<String> = row.collect::<Result<_, _>>()?;
    let key = match quantity {
        0 => "reward".to_owned(),
        _ => format!("cost.{}", quoted(&problem.quantity(quantity).name)),
    };
    Ok(format!("{key} = [{}]\n", row.join(", ")))
}

/// Refuses a name that no action or quantity has: a guess that is not used is a slip.
fn known_names(problem: &Problem, means: &GuessedMeans) -> Result<(), ApiError> {
    let quantities: Vec<&str> = (0..problem.quantities())
        .map(|number| &*problem.quantity(number).name)
        .collect();
    for (action, row) in means {
        if !problem.actions().contains(action) {
            let message = format!("means has {action:?}, which is not an action; remove it");
            return Err(ApiError::unfit(message).at(format!("means.{action}")));
        }
        if let Some(name) = row.keys().find(|name| !quantities.contains(&&***name)) {
            let message = format!(
                "means of {action:?} has {name:?}, which is not a quantity; choose from {quantities:?}"
            );
            return Err(ApiError::unfit(message).at(format!("means.{action}.{name}")));
        }
    }
    Ok(())
}

/// A guessed mean, as TOML has it.
fn guessed(
    problem: &Problem,
    means: &GuessedMeans,
    action: &str,
    number: usize,
) -> Result<String, ApiError> {
    let quantity = problem.quantity(number);
    let (name, range) = (&quantity.name, quantity.range);
    let field = format!("means.{action}.{name}");
    let mean = means.get(action).and_then(|row| row.get(name));
    let Some(mean) = mean else {
        let message = format!(
            "the mean {name:?} of {action:?} is missing; guess one for each quantity of each action"
        );
        return Err(ApiError::unfit(message).at(field));
    };
    if !(range.low..=range.high).contains(mean) {
        let rule = format!("{:?} <= mean <= {:?}", range.low, range.high);
        let message = format!(
            "the mean {mean:?} of {name:?} of {action:?} is outside its range [{:?}, {:?}]; guess one within it",
            range.low, range.high
        );
        return Err(ApiError::unfit(message).against(rule, *mean).at(field));
    }
    // With all digits, so that the world is the one that was asked for.
    Ok(format!("{mean:?}"))
}
