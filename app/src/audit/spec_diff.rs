//! In what two specs differ, value by value.

use debora::Problem;
use debora::problem::{Outside, Profile};
use debora::spec::{OnWait, ServiceSpec, Spec};
use serde::Serialize;

/// A value in which two specs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecDifference {
    /// Where it stands in the spec.
    pub what: String,
    /// The first's; `None` if it has no such value.
    pub first: Option<String>,
    /// The second's.
    pub second: Option<String>,
}

/// The values in which two specs differ. Names of experiments do not count.
pub fn differences(one: &Spec, two: &Spec) -> Vec<SpecDifference> {
    let (one, two) = (values(one), values(two));
    let value = |values: &[(String, String)], what: &str| {
        values
            .iter()
            .find(|(name, _)| name == what)
            .map(|(_, value)| value.clone())
    };
    // In the order of the first spec, and then what only the second has.
    let mut names: Vec<&String> = one.iter().chain(&two).map(|(name, _)| name).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.as_str()));
    let values = names.into_iter().map(|what| SpecDifference {
        what: what.clone(),
        first: value(&one, what),
        second: value(&two, what),
    });
    values.filter(|value| value.first != value.second).collect()
}

/// What a spec says, by name and in its order.
type Values = Vec<(String, String)>;

fn values(spec: &Spec) -> Values {
    let mut values = Values::new();
    add_problem(&mut values, &spec.problem);
    for quantity in 0..spec.problem.quantities() {
        add_quantity(&mut values, &spec.problem, quantity);
    }
    // Margins on the unit scale, as they decide: in the user's units they depend on the threshold that is listed above.
    if let Some(safe) = spec.problem.safe() {
        let strategy = safe.strategy.probabilities();
        add(&mut values, "safe strategy", format!("{strategy:?}"));
        add(
            &mut values,
            "margins of the safe strategy, on the unit scale",
            format!("{:?}", safe.margins),
        );
    }
    add_service(&mut values, &spec.service);
    values
}

fn add(values: &mut Values, what: impl Into<String>, value: impl ToString) {
    values.push((what.into(), value.to_string()));
}

fn add_problem(values: &mut Values, problem: &Problem) {
    add(values, "policy", problem.policy().name());
    match problem.profile() {
        // Profile paper has no growth: its levels double.
        Profile::Tight { growth } => {
            add(values, "profile", "tight");
            add(values, "growth", growth);
        }
        Profile::Paper => add(values, "profile", "paper"),
    }
    add(values, "horizon", problem.horizon());
    add(values, "rho", problem.rho());
    add(values, "delta", problem.delta());
    let outside = match problem.outside() {
        Outside::Clip => "clip",
        Outside::Refuse => "refuse",
    };
    add(values, "outside", outside);
    add(values, "actions", problem.actions().join(", "));
}

fn add_quantity(values: &mut Values, problem: &Problem, number: usize) {
    let quantity = problem.quantity(number);
    let cost = number.checked_sub(1);
    // By number, not by name: a cost that was renamed is the same cost under another name.
    let place = cost.map_or("reward".to_owned(), |_| format!("cost {number}"));
    let range = format!("[{}, {}]", quantity.range.low, quantity.range.high);
    add(values, format!("{place}, name"), &quantity.name);
    add(values, format!("{place}, range"), range);
    for (action, own) in quantity.by_action.iter().enumerate() {
        let range = format!("[{}, {}]", own.low, own.high);
        add(values, format!("{place}, range of action {action}"), range);
    }
    if let Some(threshold) = cost.and_then(|cost| problem.threshold(cost)) {
        add(values, format!("{place}, threshold"), threshold);
    }
}

fn add_service(values: &mut Values, service: &ServiceSpec) {
    let on_wait = match service.on_wait {
        OnWait::Serve => "serve",
        OnWait::Hold => "hold",
    };
    add(values, "on_wait", on_wait);
    let wait = service
        .outcome_wait
        .map_or("for ever".into(), |wait| format!("{} s", wait.as_secs()));
    add(values, "outcome_wait", wait);
    add(values, "impute", format!("{:?}", service.impute));
    if let Some(holdback) = &service.holdback {
        add(values, "holdback, share", holdback.share);
        add(values, "holdback, action", holdback.action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_named() {
        let text = "policy = 'soft'\nhorizon = 1e6\nrho = 0.1\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5";
        let spec = Spec::parse(text, "x").unwrap();
        assert_eq!(differences(&spec, &spec), []);
        let other = Spec::parse(
            &text.replace("0.5", "0.25").replace("'soft'", "'free'"),
            "x",
        )
        .unwrap();
        let difference = |what: &str, first: &str, second: &str| SpecDifference {
            what: what.into(),
            first: Some(first.into()),
            second: Some(second.into()),
        };
        let expected = [
            difference("policy", "soft", "free"),
            difference("cost 1, threshold", "0.5", "0.25"),
        ];
        assert_eq!(differences(&spec, &other), expected);
        let paper = Spec::parse(&format!("profile = 'paper'\n{text}"), "x").unwrap();
        assert_eq!(
            differences(&spec, &paper)[1],
            SpecDifference {
                second: None,
                ..difference("growth", "8", "")
            }
        );
    }
}
