//! Fingerprints: the SHA-256 of a canonical text of what determines results.
//!
//! The text is made from the checked values, not from the file: comments, order of keys, spelling of numbers, defaults
//! written out and names of files leave no trace. Numbers stand in the shortest digits that give them back, names behind
//! their length.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::problem::{Outside, Policy, Problem, Profile};
use crate::spec::{OnWait, ServiceSpec, WorldKind};
use crate::{Key, WorldKey};

/// The canonical text, line by line.
pub(super) struct Canon(String);

impl Canon {
    /// Of the problem and the key: what every run depends on.
    pub fn of(problem: &Problem, key: Key) -> Self {
        let mut canon = Self("debora spec 2\n".to_owned());
        canon.line("policy", problem.policy().name());
        match problem.profile() {
            Profile::Tight { growth } => canon.line("tight", &growth.to_string()),
            Profile::Paper => canon.line("paper", ""),
        }
        canon.line("horizon", &problem.horizon().to_string());
        canon.numbers("rho delta", &[problem.rho(), problem.delta()]);
        let outside = match problem.outside() {
            Outside::Clip => "clip",
            Outside::Refuse => "refuse",
        };
        canon.line("outside", outside);
        // In their order, not sorted: draws go by number, so another order is another experiment.
        for name in problem.actions() {
            canon.name("action", name);
        }
        for number in 0..problem.quantities() {
            let quantity = problem.quantity(number);
            canon.name("quantity", &quantity.name);
            canon.numbers("range", &[quantity.range.low, quantity.range.high]);
            // Said of each action alone or of all together, the same ranges leave the same trace.
            for own in &quantity.by_action {
                canon.numbers("own range", &[own.low, own.high]);
            }
        }
        for (quantity, threshold) in problem.limited().iter().zip(problem.thresholds()) {
            // On the unit scale, where they decide.
            canon.numbers(&format!("threshold of {quantity}"), &[*threshold]);
        }
        for (label, number) in [
            ("explore", problem.explore()),
            ("caution", caution(problem)),
        ] {
            canon.numbers(label, number.as_slice());
        }
        if let Some(safe) = problem.safe() {
            canon.numbers("safe strategy", safe.strategy.probabilities());
            canon.numbers("safe margins", &safe.margins);
        }
        canon.line("key", &key.to_hex());
        canon
    }

    /// And of the rules of a live experiment.
    pub fn service(mut self, service: &ServiceSpec) -> Self {
        let on_wait = match service.on_wait {
            OnWait::Hold => "hold",
            OnWait::Serve => "serve",
        };
        self.line("on_wait", on_wait);
        let seconds = service
            .outcome_wait
            .map_or("never".to_owned(), |wait| wait.as_secs().to_string());
        self.line("outcome_wait", &seconds);
        self.numbers("impute", &service.impute);
        // Only where there is one: specs that cannot say it keep their fingerprints.
        if let Some(held) = &service.holdback {
            self.numbers("holdback share", &[held.share]);
            self.line("holdback action", &held.action.to_string());
        }
        self
    }

    /// And of a simulated world; `rows` is the digest of a table's.
    pub fn world(mut self, kind: &WorldKind, key: WorldKey, rows: Option<&str>) -> Self {
        match kind {
            WorldKind::Bernoulli { means } => {
                for row in means {
                    self.numbers("bernoulli", row);
                }
            }
            WorldKind::Beta {
                means,
                concentration,
            } => {
                self.numbers("concentration", &[*concentration]);
                for row in means {
                    self.numbers("beta", row);
                }
            }
            WorldKind::Discrete { laws } => {
                for (values, probabilities) in laws.iter().flatten() {
                    self.numbers("values", values);
                    self.numbers("probabilities", probabilities);
                }
            }
            // What the file says counts, not what it is called.
            WorldKind::Table { .. } => self.line("table", rows.unwrap_or("unread")),
            WorldKind::Random {
                law,
                gap,
                worlds,
                index,
            } => {
                self.line("random", law.name());
                self.numbers("gap", &[*gap]);
                self.line("worlds", &format!("{worlds} from {index}"));
            }
        }
        self.line("world key", &key.to_hex());
        self
    }

    /// And of means that were drawn, on the unit scale: what a version of the generator made of law and key.
    pub fn means(mut self, means: &[Vec<f64>]) -> Self {
        for row in means {
            self.numbers("drawn", row);
        }
        self
    }

    /// 64 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        hex(&Sha256::digest(&self.0))
    }

    fn line(&mut self, label: &str, value: &str) {
        self.0 += &format!("{label} {value}\n");
    }

    fn name(&mut self, label: &str, name: &str) {
        // The length keeps a name with a line break from looking like two lines.
        self.line(label, &format!("{}:{name}", name.len()));
    }

    fn numbers(&mut self, label: &str, numbers: &[f64]) {
        self.0 += label;
        for number in numbers {
            // Adding zero makes a negative zero positive: they are one value.
            write!(self.0, " {:e}", number + 0.0).expect("a string takes all");
        }
        self.0 += "\n";
    }
}

/// Where it decides anything, the default written out.
fn caution(problem: &Problem) -> Option<f64> {
    let used = problem.policy() == Policy::Soft && problem.profile() != Profile::Paper;
    used.then(|| problem.caution())
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Holdback;

    #[test]
    fn the_text_is_readable_and_complete() {
        let draft = Problem::hard(["a", "b c"], 1_000, 0.1)
            .delta(0.05)
            .growth(4)
            .reward("clicks", [-0.0, 2.0]);
        let problem = draft
            .cost("price", [0.0, 0.5], 0.25)
            .watch("wait", vec![[0.0, 1.0], [2.0, 2.0]])
            .safe_with_costs([1.0, 0.0], [0.125])
            .build()
            .unwrap();
        let service = ServiceSpec {
            on_wait: OnWait::Serve,
            outcome_wait: None,
            impute: vec![0.0, 0.5, 2.0],
            holdback: Some(Holdback {
                share: 0.05,
                action: 1,
            }),
        };
        let kind = WorldKind::Beta {
            means: vec![vec![0.5, 1.0], vec![0.125, 0.25], vec![0.5, 2.0]],
            concentration: 10.0,
        };
        let canon = Canon::of(&problem, Key::from(42u64))
            .service(&service)
            .world(&kind, WorldKey::from(7u64), None);
        let text = "debora spec 2\npolicy hard\ntight 4\nhorizon 1000\nrho delta 1e-1 5e-2\noutside refuse\naction 1:a\n\
            action 3:b c\nquantity 6:clicks\nrange 0e0 2e0\nquantity 5:price\nrange 0e0 5e-1\nquantity 4:wait\nrange 0e0 2e0\nown range 0e0 1e0\nown range 2e0 2e0\n\
            threshold of 1 5e-1\nexplore\ncaution\n\
            safe strategy 1e0 0e0\nsafe margins 2.5e-1\nkey 0000000000000000000000000000002a\non_wait serve\n\
            outcome_wait never\nimpute 0e0 5e-1 2e0\nholdback share 5e-2\nholdback action 1\nconcentration 1e1\nbeta 5e-1 1e0\nbeta 1.25e-1 2.5e-1\nbeta 5e-1 2e0\n\
            world key 00000000000000000000000000000007\n";
        assert_eq!(canon.0, text);
    }
}
