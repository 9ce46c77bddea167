//! What may be stored and answered at most, in one place: whatever is stored is read again and again, and sent to many.

use debora::spec::Spec;

use crate::service::request::{NAME_MAX, Refusal};

/// The longest spec, in bytes: thousands of actions, and room for comments.
pub const SPEC_BYTES_MAX: usize = 1 << 20;

/// The most estimates of a live experiment, which are its actions times its quantities (the reward and the costs). Every
/// epoch's record has all of them, and every answer with a state.
pub const ESTIMATES_MAX: usize = 16_384;

/// The longest reason of an administrative change, in bytes.
pub const REASON_BYTES_MAX: usize = 1_000;

/// The most bytes of an answer with decisions, about; a request that would get more is given fewer of them.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Of a decision's text, what is not its action's name: the fields, and the longest numbers.
const DECISION_BYTES: usize = 160;

/// Whether a text can be the name of something, or a request key.
pub fn is_name(text: &str) -> bool {
    // PostgreSQL's texts cannot hold a zero byte, and other control characters would spoil a log.
    (1..=NAME_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// As much of a text as a name may have, for an error: an answer is not to grow with what it refuses.
pub fn quoted(text: &str) -> String {
    text.chars().take(NAME_MAX).collect()
}

/// Refuses a spec that is too long, before time is spent on it.
pub fn check_length(spec: &str) -> Result<(), Refusal> {
    within("the spec", spec.len(), SPEC_BYTES_MAX)
}

/// Refuses a spec that is not a live experiment's.
pub fn check_live(spec: &Spec) -> Result<(), Refusal> {
    check_spec(spec)?;
    if spec.world.is_some() {
        return Err(Refusal::World);
    }
    // Sums over actions, imputed values and outcomes that come late are all on one scale for a cost.
    let problem = &spec.problem;
    let mut costs = (1..problem.quantities()).map(|quantity| problem.quantity(quantity));
    if let Some(cost) = costs.find(|cost| !cost.by_action.is_empty()) {
        return Err(Refusal::RangesByAction {
            cost: cost.name.clone(),
        });
    }
    // Everyone with role read sees the spec, and anyone who has the key can predict decisions.
    if spec.key_given {
        return Err(Refusal::KeyInSpec);
    }
    Ok(())
}

/// Refuses names that are too long, and too many estimates.
pub fn check_spec(spec: &Spec) -> Result<(), Refusal> {
    let problem = &spec.problem;
    let actions = problem.actions();
    let quantities = (0..problem.quantities()).map(|quantity| &problem.quantity(quantity).name);
    for name in spec.name.iter().chain(actions).chain(quantities) {
        if !is_name(name) {
            return Err(Refusal::Name {
                name: quoted(name),
                bytes: name.len(),
            });
        }
    }
    let estimates = actions.len() * problem.quantities();
    if estimates > ESTIMATES_MAX {
        return Err(Refusal::Estimates { estimates });
    }
    Ok(())
}

/// Refuses a reason that is too long, or has control characters other than line ends.
pub fn check_reason(reason: &str) -> Result<(), Refusal> {
    let control = |sign: char| sign.is_control() && sign != '\n';
    if reason.chars().any(control) {
        return Err(Refusal::ReasonText);
    }
    within("the reason", reason.len(), REASON_BYTES_MAX)
}

pub fn within(what: &'static str, bytes: usize, most: usize) -> Result<(), Refusal> {
    if bytes > most {
        return Err(Refusal::TooLong { what, bytes, most });
    }
    Ok(())
}

/// How many decisions an answer may have, if its actions have these names.
pub fn decisions_max(names: &[String]) -> u64 {
    // As JSON writes them: a quotation mark takes two bytes.
    let written = |name: &String| serde_json::to_string(name).map_or(0, |text| text.len());
    let longest = names.iter().map(written).max().unwrap_or(0);
    // At least one, or an experiment that was created without these limits would get nothing.
    (ANSWER_BYTES_MAX / (longest + DECISION_BYTES)).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::ROUNDS_MAX;

    #[test]
    fn names_within_the_limit_never_shorten_an_answer_and_longer_ones_do() {
        let most = |name: String| decisions_max(&["b".into(), name]);
        assert!(most("\"".repeat(NAME_MAX)) >= ROUNDS_MAX);
        assert_eq!(most("a".repeat(3 << 20)), 2);
        assert_eq!(most("a".repeat(9 << 20)), 1);
    }

    #[test]
    fn names_are_short_texts_without_control_characters() {
        assert!(is_name("é") && is_name(&"a".repeat(NAME_MAX)));
        assert!(!is_name("") && !is_name(&"a".repeat(NAME_MAX + 1)) && !is_name("a\u{0}"));
    }
}
