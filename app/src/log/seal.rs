//! The seal of an experiment: what is fixed before its first decision, to be published before it.
//!
//! A function of the spec and, once the experiment is there, of what its row says: no clock, so that the same input gives the
//! same bytes.

use std::sync::Arc;

use debora::measure::answer;
use debora::measure::words::{amount, listed};
use debora::measure::{json, warnings};
use debora::problem::Outside;
use debora::spec::{OnWait, Spec};
use debora::{Key, Plan, Policy, Problem, VALUES_VERSION};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::calendar::iso;
use crate::hex;
use crate::log::{OtherValues, chain, check_values};
use crate::store::ExperimentRow;

/// What a seal says of the key if there is no experiment yet.
const NO_KEY: &str = "There is no key yet: the service draws it when the experiment is created, and its hash is in the \
    experiment's own seal. Publish that one before the first decision.";

/// And once there is one.
const COMMITTED: &str = "key_hash is SHA-256(salt, key): salt and key are secret until the end, and no other pair is known to \
    give it. head is the hash from which the log's chain starts: it is over the spec, the values version, key_hash, \
    the id and the time of creation.";

/// A pre-registration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seal {
    /// The version of this document.
    pub seal: u32,
    /// The experiment; `None` for a spec alone.
    pub id: Option<String>,
    /// What its spec calls it.
    pub name: Option<String>,
    /// When the experiment was created, as ISO 8601.
    pub created: Option<String>,
    /// The program that wrote it.
    pub program: &'static str,
    /// The version of the values: with the same one, spec, key and outcomes give the same decisions.
    pub values_version: u32,
    /// SHA-256 of salt and key; `None` for a spec alone.
    pub key_hash: Option<String>,
    /// The head before the first epoch; `None` for a spec alone.
    pub head: Option<String>,
    /// What these two commit to.
    pub commitment: &'static str,
    /// SHA-256 of the spec's text.
    pub spec_hash: String,
    /// The same for all specs that mean the same, whatever their key: 64 hexadecimal digits.
    pub fingerprint: String,
    /// The actions, by number from 0.
    pub actions: Vec<String>,
    /// The reward, then the costs.
    pub quantities: Vec<SealedQuantity>,
    /// Who stays outside the experiment, if anybody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holdback: Option<SealedHoldback>,
    /// What is promised and what it takes, in sentences; warnings first.
    pub promised: Vec<String>,
    /// What the promises rest on.
    pub premises: Vec<String>,
    /// What will be seen, and when.
    pub looks: Vec<SealedLook>,
    /// Every constant of the run, as `debora plan --json` gives them.
    pub plan: Value,
    /// The spec, as it was given.
    pub spec: String,
}

/// A quantity as it is declared, in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SealedQuantity {
    /// Its name.
    pub name: String,
    /// The least and the largest value.
    pub range: [f64; 2],
    /// The threshold of a cost.
    pub threshold: Option<f64>,
    /// What is promised about the threshold.
    pub promise: Option<&'static str>,
}

/// Who stays outside the experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SealedHoldback {
    /// The share of request keys.
    pub share: f64,
    /// The action that they get, by number from 0.
    pub action: u32,
    /// Its name.
    pub name: String,
    /// How each is chosen.
    pub by: &'static str,
}

impl SealedHoldback {
    fn of(spec: &Spec) -> Option<Self> {
        let held_back = spec.service.holdback?;
        Some(Self {
            share: held_back.share,
            action: held_back.action,
            name: spec.problem.actions()[held_back.action as usize].clone(),
            by: "the key and the request key: philox4x64-10(key, [first 16 bytes of SHA-256(request key), 0, 13]) below the share",
        })
    }
}

/// A moment at which actions are compared.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SealedLook {
    /// Outcomes of each action.
    pub samples: u64,
    /// All actions have as many after this many rounds at the earliest.
    pub round: u64,
    /// Differences in reward of this size are then seen, in its units.
    pub gap: f64,
    /// Half the length of the interval of each estimated quantity, in its units.
    pub widths: Vec<f64>,
}

impl Seal {
    /// Of a spec alone.
    pub fn of_spec(text: &str, spec: &Spec) -> Self {
        let problem = &spec.problem;
        let plan = Plan::of(Arc::new(problem.clone()));
        // Sentences need something to call it.
        let named = spec.name.as_deref().unwrap_or("The experiment");
        Self {
            seal: 1,
            id: None,
            name: spec.name.clone(),
            created: None,
            program: env!("CARGO_PKG_VERSION"),
            values_version: VALUES_VERSION,
            key_hash: None,
            head: None,
            commitment: NO_KEY,
            spec_hash: hex::encode(&Sha256::digest(text)),
            fingerprint: keyless_fingerprint(spec),
            actions: problem.actions().to_vec(),
            quantities: (0..problem.quantities())
                .map(|number| SealedQuantity::of(problem, number))
                .collect(),
            holdback: SealedHoldback::of(spec),
            promised: promised(named, &plan),
            premises: premises(spec),
            looks: looks(&plan),
            plan: json::plan(&plan, None),
            spec: text.to_owned(),
        }
    }

    /// Of an experiment.
    pub fn of(experiment: &ExperimentRow) -> anyhow::Result<Result<Self, OtherValues>> {
        // Another version's plan is not what this program computes.
        if let Err(other) = check_values(experiment) {
            return Ok(Err(other));
        }
        let spec = Spec::parse(&experiment.spec, &experiment.id)?;
        Ok(Ok(Self {
            id: Some(experiment.id.clone()),
            created: Some(iso(experiment.created_at)),
            key_hash: Some(chain::key_hash(experiment.salt, experiment.key)),
            head: Some(chain::head(experiment)),
            commitment: COMMITTED,
            ..Self::of_spec(&experiment.spec, &spec)
        }))
    }
}

/// The fingerprint of a spec as if its key were 0.
fn keyless_fingerprint(spec: &Spec) -> String {
    // A fingerprint has no salt, so that a weak key could be found from it by trying.
    let mut keyless = spec.clone();
    keyless.key = Key::from(0u64);
    keyless.fingerprint()
}

/// What a plan promises, in sentences.
pub fn promised(name: &str, plan: &Plan) -> Vec<String> {
    answer::plan(name, plan, &warnings(plan, None), None, &[]).sentences()
}

fn premises(spec: &Spec) -> Vec<String> {
    let problem = &spec.problem;
    let mut sentences = vec![match problem.outside() {
        Outside::Refuse => "Outcomes outside their range are refused.".to_owned(),
        Outside::Clip => "Outcomes outside their range are clipped to it.".to_owned(),
    }];
    sentences.push(waiting(spec));
    sentences.push(match spec.service.on_wait {
        OnWait::Hold => {
            "While an epoch waits for outcomes, nothing is decided, except for flags, in overtime; that does not count.".to_owned()
        }
        OnWait::Serve => {
            "While an epoch waits for outcomes, decisions are made in overtime, by the same strategy; they do not count.".to_owned()
        }
    });
    sentences.extend(answer::holdback(problem, &spec.service));
    sentences
}

/// What happens to outcomes that do not come.
fn waiting(spec: &Spec) -> String {
    let Some(wait) = spec.service.outcome_wait else {
        return "A missing outcome is waited for without end.".to_owned();
    };
    let names = (0..spec.problem.quantities()).map(|number| &spec.problem.quantity(number).name);
    let imputed: Vec<String> = names
        .zip(&spec.service.impute)
        .map(|(name, value)| format!("{name} {}", amount(*value)))
        .collect();
    format!(
        "An outcome that is missing after {} is imputed, with {}; if it comes later, it is logged and does not count.",
        spelled(wait.as_secs()),
        listed(&imputed)
    )
}

/// Seconds in the largest unit that they are whole numbers of.
fn spelled(seconds: u64) -> String {
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    let whole = units.iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, name) = whole.copied().unwrap_or((1, "seconds"));
    match seconds / unit {
        1 => format!("1 {}", name.trim_end_matches('s')),
        number => format!("{number} {name}"),
    }
}

impl SealedQuantity {
    fn of(problem: &Problem, number: usize) -> Self {
        let quantity = problem.quantity(number);
        let threshold = number
            .checked_sub(1)
            .and_then(|cost| problem.threshold(cost));
        let promise = match problem.policy() {
            Policy::Free => "stated; policy free does not keep it",
            Policy::Soft => "kept on average, up to the bound above",
            Policy::Hard => "kept by every round's strategy",
        };
        Self {
            name: quantity.name.clone(),
            range: [quantity.range.low, quantity.range.high],
            promise: threshold.map(|_| promise),
            threshold,
        }
    }
}

/// The counts at which actions are estimated, as far as anything is seen there.
pub fn looks(plan: &Plan) -> Vec<SealedLook> {
    let problem = &plan.problem;
    let actions = problem.actions().len() as u64;
    let spans = problem.estimated().iter();
    let spans: Vec<f64> = spans
        .map(|&number| problem.quantity(number).range.span())
        .collect();
    let in_units = |width: f64| -> Vec<f64> { spans.iter().map(|span| width * span).collect() };
    let levels = plan.levels.iter();
    levels
        // Twice a width of half a range says no more than the range itself; profile paper begins with many such.
        .filter(|level| 2.0 * level.width < 1.0)
        .map(|level| SealedLook {
            samples: level.count,
            // Each round plays one action.
            round: actions * level.count,
            gap: 2.0 * level.width * problem.quantity(0).range.span(),
            widths: in_units(level.width),
        })
        .filter(|look| look.round <= problem.horizon())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "name = 'n'\npolicy = 'soft'\nhorizon = 1e8\nrho = 0.1\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nrange = [0, 0.02]\nthreshold = 0.003\n[service]\noutcome_wait = '24h'";

    fn seal(text: &str) -> Seal {
        Seal::of_spec(text, &Spec::parse(text, "spec").unwrap())
    }

    #[test]
    fn a_seal_is_a_function_of_what_is_sealed() {
        assert_eq!(seal(SPEC), seal(SPEC));
        let commented = format!("{SPEC}\n# nothing");
        assert_eq!(seal(SPEC).fingerprint, seal(&commented).fingerprint);
        assert_ne!(seal(SPEC).spec_hash, seal(&commented).spec_hash);
        let keyed = SPEC.replace("rho", "key = 7\nrho");
        assert_eq!(
            seal(SPEC).fingerprint,
            seal(&keyed).fingerprint,
            "a key could be guessed from it"
        );
        let other = SPEC.replace("0.003", "0.004");
        assert_ne!(seal(SPEC).fingerprint, seal(&other).fingerprint);
    }

    #[test]
    fn what_will_be_seen_gets_finer_and_what_is_assumed_is_said() {
        let seal = seal(SPEC);
        assert!(seal.looks.len() > 1);
        let finer =
            |pair: &[SealedLook]| pair[0].gap > pair[1].gap && pair[0].round < pair[1].round;
        assert!(seal.looks.windows(2).all(finer), "{:?}", seal.looks);
        let last = seal.looks.last().unwrap();
        assert_eq!(seal.plan["detectable"], last.gap);
        let premises = seal.premises.join(" ");
        for words in [
            "missing after 1 day is imputed, with reward 0 and price 0.02",
            "nothing is decided",
        ] {
            assert!(premises.contains(words), "{words:?} is not in {premises}");
        }
        assert_eq!(seal.quantities[1].threshold, Some(0.003));
    }

    /// A plan too short to compare anything promises to see nothing.
    #[test]
    fn a_blind_plan_sees_nothing() {
        let seal = seal(&SPEC.replace("1e8", "100"));
        assert!(
            seal.looks.is_empty() && seal.promised[0].contains("BLIND"),
            "{:?}",
            seal.promised
        );
    }

    #[test]
    fn waiting_times_are_spelled_in_whole_units() {
        assert_eq!(
            [86_400, 7 * 86_400, 5_400, 90, 3_600].map(spelled),
            ["1 day", "7 days", "90 minutes", "90 seconds", "1 hour"]
        );
    }
}
