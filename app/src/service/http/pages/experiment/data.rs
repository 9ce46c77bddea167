//! The numbers behind every figure and table, for other programs: as they are shown, with all their digits.

use debora::record::Interval;
use serde_json::{Map, Value, json};

use super::view::ExperimentView;
use crate::calendar::iso;

/// A table of numbers.
pub struct DataTable {
    /// What stands in each column, in words.
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

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
    DataTable {
        columns: vec![
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
    }
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
    DataTable {
        columns: vec![
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
        rows: view.state.means.iter().map(row).collect(),
    }
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
    DataTable {
        columns: vec![
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
        rows: view.state.limits.iter().map(row).collect(),
    }
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
    DataTable {
        columns: vec![
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
    }
}

impl DataTable {
    /// With a heading line.
    pub fn csv(&self) -> String {
        let mut text = format!("{}\r\n", self.columns.join(","));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(cell).collect();
            text += &format!("{}\r\n", cells.join(","));
        }
        text
    }

    /// An object for each row, whose names are the columns'.
    pub fn json(&self) -> String {
        let object = |row: &Vec<Value>| {
            let names = self.columns.iter().map(|column| column.replace(' ', "_"));
            names.zip(row.clone()).collect::<Map<_, _>>()
        };
        let rows: Vec<Map<String, Value>> = self.rows.iter().map(object).collect();
        Value::from_iter(rows).to_string()
    }
}

fn cell(value: &Value) -> String {
    match value {
        // What is missing leaves its cell empty, which readers of CSV take for a missing value.
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        number => number.to_string(),
    }
}

/// A text as RFC 4180 has it.
fn quoted(text: &str) -> String {
    // A spreadsheet would run what begins so as a formula; behind an apostrophe it is text.
    let apostrophe = if text.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_run_no_formula_and_break_no_line() {
        let table = DataTable {
            columns: vec!["name", "observed mean"],
            rows: [r#"=HYPERLINK("x")"#, "+1", "-a,b", "@x", "plain", "a\"b"]
                .iter()
                .map(|name| vec![json!(name), json!(0.1 + 0.2)])
                .chain([vec![json!("none"), Value::Null]])
                .collect(),
        };
        let lines: Vec<String> = table.csv().split("\r\n").map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "name,observed mean",
                r#""'=HYPERLINK(""x"")",0.30000000000000004"#,
                "'+1,0.30000000000000004",
                r#""'-a,b",0.30000000000000004"#,
                "'@x,0.30000000000000004",
                "plain,0.30000000000000004",
                r#""a""b",0.30000000000000004"#,
                "none,",
                ""
            ]
        );
        let json: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(json[0]["name"], r#"=HYPERLINK("x")"#, "text is text there");
        assert_eq!(json[0]["observed_mean"], 0.1 + 0.2);
        assert_eq!(json[6]["observed_mean"], Value::Null);
    }
}
