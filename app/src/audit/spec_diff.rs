//! What a spec says, as a list of values that can be held against another's.

use debora::problem::{Outside, Profile};
use debora::spec::{OnWait, Spec};
use serde::Serialize;

/// A value in which two specs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecDifference {
    /// Where it stands in the spec.
    pub what: String,
    /// The first's; none if it has no such value.
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

fn values(spec: &Spec) -> Vec<(String, String)> {
    let problem = &spec.problem;
    let mut values: Vec<(String, String)> = Vec::new();
    let mut add = |what: String, value: String| values.push((what, value));
    add("policy".into(), problem.policy().name().into());
    match problem.profile() {
        Profile::Tight { growth } => {
            add("profile".into(), "tight".into());
            add("growth".into(), growth.to_string());
        }
        Profile::Paper => add("profile".into(), "paper".into()),
    }
    add("horizon".into(), problem.horizon().to_string());
    add("rho".into(), problem.rho().to_string());
    add("delta".into(), problem.delta().to_string());
    add(
        "outside".into(),
        if problem.outside() == Outside::Clip {
            "clip"
        } else {
            "refuse"
        }
        .into(),
    );
    add("actions".into(), problem.actions().join(", "));
    for (number, quantity) in
        (0..problem.quantities()).map(|number| (number, problem.quantity(number)))
    {
        let place = if number == 0 {
            "reward".to_owned()
        } else {
            format!("cost {number}")
        };
        add(format!("{place}, name"), quantity.name.clone());
        add(
            format!("{place}, range"),
            format!("[{}, {}]", quantity.range.low, quantity.range.high),
        );
        if let Some(cost) = number.checked_sub(1) {
            add(
                format!("{place}, threshold"),
                problem.threshold(cost).to_string(),
            );
        }
    }
    if let Some(safe) = problem.safe() {
        add(
            "safe strategy".into(),
            format!("{:?}", safe.strategy.probabilities()),
        );
        add(
            "margins of the safe strategy, on the unit scale".into(),
            format!("{:?}", safe.margins),
        );
    }
    add(
        "on_wait".into(),
        if spec.service.on_wait == OnWait::Serve {
            "serve"
        } else {
            "hold"
        }
        .into(),
    );
    let wait = spec
        .service
        .outcome_wait
        .map_or("for ever".into(), |wait| format!("{} s", wait.as_secs()));
    add("outcome_wait".into(), wait);
    add("impute".into(), format!("{:?}", spec.service.impute));
    values
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
