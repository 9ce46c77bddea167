//! A problem as the head of a spec file: what [`Spec::parse`](crate::spec::Spec::parse) reads back as the same problem.

use std::fmt::Write as _;

use crate::problem::{Outside, Policy, Problem, Profile, Quantity, SafeKnown};

/// A text as a TOML string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(character)).expect("strings take all")
            }
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

impl Problem {
    /// The problem as a spec file says it. Numbers are written so that they are read back to the bit.
    ///
    /// ```
    /// # use debora::{Problem, spec::Spec};
    /// let problem = Problem::soft(["a", "b"], 1_000_000, 0.1).cost("price", [0.0, 0.02], 0.003).build()?;
    /// assert_eq!(Spec::parse(&problem.to_toml(), "x.toml").unwrap().problem, problem);
    /// # Ok::<(), debora::Error>(())
    /// ```
    pub fn to_toml(&self) -> String {
        let draft = &self.draft;
        let mut lines = vec![
            format!("policy = \"{}\"", self.policy().name()),
            format!("horizon = {}", self.horizon()),
            format!("rho = {:?}", self.rho()),
            format!("delta = {:?}", self.delta()),
        ];
        match (self.profile(), draft.growth) {
            (Profile::Paper, _) => lines.push("profile = \"paper\"".into()),
            (_, Some(growth)) => lines.push(format!("growth = {growth}")),
            _ => {}
        }
        if self.outside() == Outside::Clip {
            lines.push("outside = \"clip\"".into());
        }
        let actions: Vec<String> = self.actions().iter().map(|action| quoted(action)).collect();
        lines.push(format!("actions = [{}]", actions.join(", ")));
        lines.extend(["".into(), "[reward]".into()]);
        lines.extend(quantity(&draft.reward));
        for (cost, threshold) in &draft.costs {
            lines.extend(["".into(), "[[cost]]".into()]);
            lines.extend(quantity(cost));
            lines.push(format!("threshold = {threshold:?}"));
        }
        if let (Policy::Hard, Some((strategy, known))) = (self.policy(), &draft.safe) {
            let costs = draft.costs.iter().map(|(cost, _)| &cost.name);
            let (word, values) = match known {
                SafeKnown::Costs(values) => ("cost", values),
                SafeKnown::Margins(values) => ("margin", values),
            };
            lines.extend(["".into(), "[safe]".into()]);
            lines.push(format!(
                "strategy = {}",
                by_name(self.actions().iter().zip(strategy))
            ));
            lines.push(format!("{word} = {}", by_name(costs.zip(values))));
        }
        lines.join("\n") + "\n"
    }
}

fn quantity(quantity: &Quantity) -> [String; 2] {
    let range = quantity.range;
    [
        format!("name = {}", quoted(&quantity.name)),
        format!("range = [{:?}, {:?}]", range.low, range.high),
    ]
}

fn by_name<'a>(entries: impl Iterator<Item = (&'a String, &'a f64)>) -> String {
    let entries: Vec<String> = entries
        .map(|(name, value)| format!("{} = {value:?}", quoted(name)))
        .collect();
    format!("{{ {} }}", entries.join(", "))
}
