//! A problem as the head of a spec file: what [`Spec::parse`](crate::spec::Spec::parse) reads back as the same problem.

use std::fmt::Write as _;

use crate::problem::{Outside, Policy, Problem, Profile, Quantity, Range, SafeKnown};

/// A text as a TOML string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // TOML forbids control characters as they are.
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
        let mut lines = self.scalar_lines();
        lines.extend(["".into(), "[reward]".into()]);
        lines.extend(self.quantity_lines(&draft.reward));
        for cost in &draft.costs {
            lines.extend(["".into(), "[[cost]]".into()]);
            lines.extend(self.quantity_lines(&cost.quantity));
            let threshold = cost.threshold.iter();
            lines.extend(threshold.map(|threshold| format!("threshold = {threshold:?}")));
        }
        // A safe strategy of another policy is refused when read.
        if self.policy() == Policy::Hard {
            lines.extend(self.safe_lines());
        }
        lines.join("\n") + "\n"
    }

    fn scalar_lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("policy = \"{}\"", self.policy().name()),
            format!("horizon = {}", self.horizon()),
            // `{:?}` keeps the point of 1.0, without which TOML has an integer, and all digits.
            format!("rho = {:?}", self.rho()),
            format!("delta = {:?}", self.delta()),
        ];
        match (self.profile(), self.draft.growth) {
            (Profile::Paper, _) => lines.push("profile = \"paper\"".into()),
            (_, Some(growth)) => lines.push(format!("growth = {growth}")),
            _ => {}
        }
        let numbers = [
            ("explore", self.draft.explore),
            ("caution", self.draft.caution),
        ];
        for (key, number) in numbers {
            lines.extend(number.map(|number| format!("{key} = {number:?}")));
        }
        if self.outside() == Outside::Clip {
            lines.push("outside = \"clip\"".into());
        }
        let actions: Vec<String> = self.actions().iter().map(|action| quoted(action)).collect();
        lines.push(format!("actions = [{}]", actions.join(", ")));
        lines
    }

    fn quantity_lines(&self, quantity: &Quantity) -> Vec<String> {
        let ends = |range: &Range| format!("[{:?}, {:?}]", range.low, range.high);
        let own: Vec<String> = self
            .actions()
            .iter()
            .zip(&quantity.by_action)
            .map(|(action, own)| format!("{} = {}", quoted(action), ends(own)))
            .collect();
        let range = match own.is_empty() {
            true => ends(&quantity.range),
            false => format!("{{ {} }}", own.join(", ")),
        };
        vec![
            format!("name = {}", quoted(&quantity.name)),
            format!("range = {range}"),
        ]
    }

    fn safe_lines(&self) -> Vec<String> {
        let Some((strategy, known)) = &self.draft.safe else {
            return Vec::new();
        };
        // As it was stated: costs turned into margins and back might differ in the last bit.
        let (word, values) = match known {
            SafeKnown::Costs(values) => ("cost", values),
            SafeKnown::Margins(values) => ("margin", values),
        };
        let costs = self.draft.limited().map(|(cost, _)| &cost.name);
        let strategy = by_name(self.actions().iter().zip(strategy));
        vec![
            "".into(),
            "[safe]".into(),
            format!("strategy = {strategy}"),
            format!("{word} = {}", by_name(costs.zip(values))),
        ]
    }
}

fn by_name<'a>(entries: impl Iterator<Item = (&'a String, &'a f64)>) -> String {
    let entries: Vec<String> = entries
        .map(|(name, value)| format!("{} = {value:?}", quoted(name)))
        .collect();
    format!("{{ {} }}", entries.join(", "))
}
