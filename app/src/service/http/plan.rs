//! `POST /v1/plan`: what a spec will see and when, before there is an experiment.

use axum::Json as Reply;
use axum::extract::{FromRequest as _, Request, State};
use debora::measure::answer::{Answer, AnswerTable, Item, Sentence};
use debora::measure::words::whole;
use debora::measure::{answer, json, warnings};
use debora::spec::Spec;
use debora::{Plan, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::seal::{SealedLook, looks};
use crate::service::http::AppState;
use crate::service::http::access::Caller;
use crate::service::http::error::ApiError;
use crate::service::http::extract::{Json, Object};
use crate::service::http::spec_edit::{Notation, SpecEdit};
use crate::service::limits;
use crate::service::request::Refusal;
use crate::store::Role;

/// The most estimates (actions times quantities) of a spec whose horizon for a gap is searched for: a second's work.
const GAP_ESTIMATES_MAX: usize = 2_048;

/// What is to be planned.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanBody {
    /// The spec file's text (TOML).
    spec: String,
    /// A difference in reward, in its units: the answer then has the horizon that shows it. For at most 2,048 estimates, which are
    /// actions times quantities.
    gap: Option<f64>,
}

/// A plan, for programs and for people.
#[derive(Serialize, utoipa::ToSchema)]
pub struct Planned {
    /// What the spec calls itself.
    pub name: Option<String>,
    /// Every constant of the run, as `debora plan --json` gives them.
    #[schema(value_type = Object)]
    pub plan: Value,
    /// What `debora plan` says; warnings first.
    pub sentences: Vec<String>,
    /// Those of them that are warnings.
    pub warnings: Vec<String>,
    /// Rounds in all.
    pub horizon: u64,
    /// When all actions have been estimated.
    pub exploration: PlannedExploration,
    /// The quantities that are estimated: the reward, then the costs.
    pub quantities: Vec<String>,
    /// The width against rounds: what will be seen, and when.
    pub looks: Vec<SealedLook>,
    /// How a blind plan can be made to see; absent if it is not blind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remedy: Option<BlindRemedy>,
    /// What `debora plan` shows in tables, for the page.
    #[serde(skip)]
    pub tables: Vec<AnswerTable>,
}

/// How long actions are only explored.
#[derive(Serialize, utoipa::ToSchema)]
pub struct PlannedExploration {
    /// Its rounds; with hard limits, on the expected path. None if the plan is blind.
    pub rounds: Option<u64>,
    /// Their share of the horizon; 1 if the plan is blind.
    pub share: f64,
}

/// What would make a blind plan see. Both may be missing: then fewer actions or costs are needed.
#[derive(Serialize, utoipa::ToSchema)]
pub struct BlindRemedy {
    /// The smallest horizon known to be enough.
    pub horizon: Option<u64>,
    /// Any rho above this is enough.
    pub rho_above: Option<f64>,
    /// The spec's text with that horizon, or else with a rho that is enough.
    pub spec: Option<String>,
}

/// Plan an experiment
///
/// Role read. Nothing is created. Of a spec that is refused, `field` names the value at fault, `line` and `column` its place.
#[utoipa::path(post, path = "/v1/plan", tag = "planning", request_body = PlanBody,
    responses((status = 200, description = "The plan", body = Planned)))]
pub async fn plan(
    State(app): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Reply<Planned>, ApiError> {
    caller.require(Role::Read)?;
    let body = Json::from_request(request, &app).await?;
    let Object(PlanBody { spec, gap }) = body.read()?;
    // In a lane of its own: with many actions and a gap hundreds of plans are computed, which takes milliseconds each.
    let planned = app.compute(move || planned(&spec, gap)).await??;
    Ok(Reply(planned))
}

/// The plan of a text.
pub fn planned(text: &str, gap: Option<f64>) -> Result<Planned, ApiError> {
    let spec = readable(text)?;
    let plan = Plan::of(spec.problem);
    let gap = gap.map(|gap| shown_by(&plan, gap)).transpose()?;
    // `debora plan` calls a spec without a name by its file.
    let called = spec.name.as_deref().unwrap_or("spec");
    let warnings = warnings(&plan, None);
    let mut answer = answer::plan(called, &plan, &warnings, gap, &[]);
    let held_back = answer::holdback(&plan.problem, &spec.service);
    answer.paragraph(held_back.map(Sentence::plain));
    let problem = &plan.problem;
    let estimated = 0..problem.quantities_estimated();
    Ok(Planned {
        plan: json::plan(&plan, gap),
        tables: tables(&answer),
        sentences: answer.sentences(),
        warnings,
        horizon: problem.horizon(),
        exploration: PlannedExploration {
            rounds: plan.exploration_rounds.filter(|_| !plan.blind),
            share: plan.exploration_share(),
        },
        quantities: estimated
            .map(|number| problem.quantity(number).name.clone())
            .collect(),
        looks: looks(&plan),
        remedy: plan.blind.then(|| remedy(text, &plan)),
        name: spec.name,
    })
}

fn tables(answer: &Answer) -> Vec<AnswerTable> {
    let tables = answer.items.iter().filter_map(|item| match item {
        Item::Table(table) => Some(table.clone()),
        _ => None,
    });
    tables.collect()
}

/// A spec that a service could hold.
pub fn readable(text: &str) -> Result<Spec, ApiError> {
    limits::check_length(text)?;
    let spec = Spec::parse(text, "spec").map_err(Refusal::Spec)?;
    limits::check_spec(&spec)?;
    Ok(spec)
}

/// A gap, and the horizon that shows it.
fn shown_by(plan: &Plan, gap: f64) -> Result<(f64, Option<u64>), ApiError> {
    let problem = &plan.problem;
    let estimates = problem.actions().len() * problem.quantities();
    if estimates > GAP_ESTIMATES_MAX {
        let message = format!(
            "the horizon for a gap is searched for among at most {GAP_ESTIMATES_MAX} estimates, and this spec has {estimates}, \
             actions times quantities; leave out gap, or use debora plan --gap"
        );
        let rule = format!("actions times quantities <= {GAP_ESTIMATES_MAX}");
        return Err(ApiError::unfit(message).against(rule, estimates).at("gap"));
    }
    let horizon = plan.horizon_for_gap(gap);
    horizon
        .map(|horizon| (gap, horizon))
        .map_err(|error| ApiError::unfit(error.to_string()).at("gap"))
}

fn remedy(text: &str, plan: &Plan) -> BlindRemedy {
    let rho = plan
        .rho_needed
        .and_then(|above| enough(&plan.problem, above));
    let changed = match (plan.horizon_needed, rho) {
        // With marks at the thousands, since people will read it.
        (Some(horizon), _) => with(text, "horizon", &whole(horizon).replace(',', "_")),
        (None, Some(rho)) => with(text, "rho", &rho.to_string()),
        (None, None) => None,
    };
    BlindRemedy {
        horizon: plan.horizon_needed,
        rho_above: plan.rho_needed,
        spec: changed,
    }
}

/// The least rho of two digits that lies above a limit, if there is one below 1.
fn enough(problem: &Problem, above: f64) -> Option<f64> {
    let rho = ((above * 100.0).floor() + 1.0) / 100.0;
    (rho > above && rho < 1.0 && rho > problem.rho()).then_some(rho)
}

fn with(text: &str, key: &str, value: &str) -> Option<String> {
    let mut spec = SpecEdit::parse(text)?;
    spec.set(&[key], value, Notation::Number);
    Some(spec.text())
}
