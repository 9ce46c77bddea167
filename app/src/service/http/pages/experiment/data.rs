//! The numbers behind every figure and table, for other programs: as they are shown, with all their digits.

use debora::record::Interval;
use serde_json::{Value, json};

use super::view::ExperimentView;
use crate::calendar::iso;
use crate::service::http::table::DataTable;

/// The table of a name, as addresses have it.
pub fn table(view: &ExperimentView, name: &str) -> Option<DataTable> {
    match name {
        "strategy" => Some(strategy(view)),
        "means" => Some(means(view)),
        "limits" => Some(limits(view)),
        "counts" => Some(counts(view)),
        _ => None,
    }
}

/// One row for each epoch and action: actions as columns would meet names that columns have.
fn strategy(view: &ExperimentView) -> DataTable {
    let mut rows = Vec::new();
    for epoch in &view.epochs {
        for (action, probability) in view.state.actions.iter().zip(&epoch.strategy) {
            rows.push(vec![
                json!(epoch.epoch),
                json!(epoch.kind),
                json!(epoch.first_round),
                json!(epoch.last_round),
                json!(iso(epoch.opened_at)),
                json!(epoch.closed_at.map(iso)),
                json!(action.action),
                json!(action.name),
                json!(probability),
            ]);
        }
    }
    DataTable::new(
        &[
            "epoch",
            "kind",
            "first round",
            "last round",
            "opened",
            "closed",
            "action",
            "name",
            "probability",
        ],
        rows,
    )
}

fn means(view: &ExperimentView) -> DataTable {
    let thresholds = |quantity: &str| {
        let mut limits = view.state.limits.iter();
        limits
            .find(|limit| limit.name == quantity)
            .map(|limit| limit.threshold)
    };
    let row = |mean: &crate::log::means::ActionMean| {
        let estimate = mean.estimate.as_ref();
        vec![
            json!(mean.quantity),
            json!(mean.action),
            json!(mean.name),
            json!(mean.observed.mean),
            json!(mean.observed.interval.low),
            json!(mean.observed.interval.high),
            json!(mean.observed.count),
            json!(estimate.map(|estimate| estimate.value)),
            json!(estimate.map(|estimate| estimate.cell.low)),
            json!(estimate.map(|estimate| estimate.cell.high)),
            json!(estimate.map(|estimate| estimate.width)),
            json!(estimate.map(|estimate| estimate.count)),
            json!(thresholds(&mean.quantity)),
            json!(mean.why),
        ]
    };
    DataTable::new(
        &[
            "quantity",
            "action",
            "name",
            "observed mean",
            "observed from",
            "observed to",
            "told",
            "estimate",
            "cell from",
            "cell to",
            "width",
            "rounds of the estimate",
            "threshold",
            "why they differ",
        ],
        view.state.means.iter().map(row).collect(),
    )
}

fn limits(view: &ExperimentView) -> DataTable {
    let ends = |interval: &Interval| [json!(interval.low), json!(interval.high)];
    let row = |limit: &crate::log::kept::LimitState| {
        let [low, high] = ends(&limit.all.interval);
        let expected = limit.all.expected.as_ref();
        vec![
            json!(limit.name),
            json!(limit.threshold),
            json!(limit.all.verdict),
            json!(limit.all.count),
            json!(limit.all.realised),
            json!(limit.all.realised_told),
            low,
            high,
            json!(expected.map(|expected| expected.value)),
            json!(limit.last_epoch.count),
            json!(limit.last_epoch.realised),
            json!(limit.realised_overtime),
        ]
    };
    DataTable::new(
        &[
            "cost",
            "threshold",
            "verdict",
            "rounds",
            "average",
            "average of those told",
            "mean from",
            "mean to",
            "expected by the estimates",
            "rounds of the last epoch",
            "average in the last epoch",
            "average of overtime",
        ],
        view.state.limits.iter().map(row).collect(),
    )
}

/// Action by action, and then all together, which alone has late outcomes and overtime.
fn counts(view: &ExperimentView) -> DataTable {
    let state = &view.state;
    let shares = state.strategy.0.iter().map(|(_, share)| share);
    let mut rows: Vec<Vec<Value>> = state
        .actions
        .iter()
        .zip(shares)
        .map(|(action, share)| {
            vec![
                json!(action.action),
                json!(action.name),
                json!(share),
                json!(action.decided),
                json!(action.told),
                json!(action.outstanding()),
                json!(action.imputed),
                Value::Null,
                Value::Null,
            ]
        })
        .collect();
    let told: u64 = state.actions.iter().map(|action| action.told).sum();
    rows.push(vec![
        Value::Null,
        json!("all actions"),
        Value::Null,
        json!(state.decided),
        json!(told),
        json!(state.outstanding),
        json!(state.imputed),
        json!(state.late),
        json!(state.overtime),
    ]);
    DataTable::new(
        &[
            "action",
            "name",
            "probability",
            "decided",
            "told",
            "outstanding",
            "imputed",
            "late",
            "overtime",
        ],
        rows,
    )
}
