//! Values in the shape in which stores keep them.
//!
//! Feedback is kept as bytes, since SQLite writes a real -0.0 as 0 and a hash over what was told must not change.

use anyhow::{Context as _, Result, bail, ensure};

use super::{DecisionKind, Progress, Role};

/// A number to be stored. Stores count to 2^63 - 1; rounds end at 2^53.
pub fn encode_number(number: u64) -> Result<i64> {
    i64::try_from(number)
        .with_context(|| format!("{number} cannot be stored: numbers end at {}", i64::MAX))
}

/// Where to read from, or how much: nothing that is stored lies beyond the largest.
pub fn saturate(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was stored.
pub fn parse_number(number: i64) -> Result<u64> {
    u64::try_from(number)
        .with_context(|| format!("the store holds {number}, which must not be negative"))
}

/// A truth value that was stored: 0 or 1, and nothing else that would read like it.
pub fn parse_truth(number: i64) -> Result<bool> {
    // An audit must see every changed bit, so 2 is not another word for true.
    ensure!(
        matches!(number, 0 | 1),
        "the store holds {number} where only 0 and 1 can be"
    );
    Ok(number == 1)
}

/// What a decision counts for, as it was stored.
pub fn parse_kind(number: i64) -> Result<DecisionKind> {
    let of = |kind: &DecisionKind| i64::from(kind.number()) == number;
    let found = DecisionKind::ALL.into_iter().find(of);
    found.with_context(|| {
        format!("the store holds {number} where only 0, 1 and 2 can be, of rounds, overtime and holdback")
    })
}

/// The reward and the costs, eight little-endian bytes each.
pub fn encode_feedback(reward: f64, costs: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 * (1 + costs.len()));
    bytes.extend(reward.to_le_bytes());
    for cost in costs {
        bytes.extend(cost.to_le_bytes());
    }
    bytes
}

/// The reward and the costs again.
pub fn parse_feedback(bytes: &[u8]) -> Result<(f64, Vec<f64>)> {
    // A damaged file must be an error here, not a panic: the service answers for all other experiments in it, too.
    let (values, rest) = bytes.as_chunks::<8>();
    let Some((reward, costs)) = values.split_first().filter(|_| rest.is_empty()) else {
        bail!(
            "the store holds feedback of {} bytes; it must be a multiple of 8, and not 0",
            bytes.len()
        );
    };
    Ok((
        f64::from_le_bytes(*reward),
        costs.iter().map(|cost| f64::from_le_bytes(*cost)).collect(),
    ))
}

/// Actions in as few little-endian bytes each as the largest needs: 1, 2 or 4.
pub fn encode_actions(actions: &[u32]) -> Result<Vec<u8>> {
    let Some(largest) = actions.iter().max() else {
        bail!("a lease of no rounds cannot be stored")
    };
    // One byte for nearly every problem: leases of ten thousand rounds are most of what a store holds.
    Ok(if *largest < 1 << 8 {
        actions.iter().map(|action| *action as u8).collect()
    } else if *largest < 1 << 16 {
        actions
            .iter()
            .flat_map(|action| (*action as u16).to_le_bytes())
            .collect()
    } else {
        actions
            .iter()
            .flat_map(|action| action.to_le_bytes())
            .collect()
    })
}

/// The actions of this many rounds again.
pub fn parse_actions(bytes: &[u8], rounds: i64) -> Result<Vec<u32>> {
    let rounds = usize::try_from(rounds).unwrap_or_default();
    // The width is not stored: it follows from the lengths.
    let width = bytes.len().checked_div(rounds).unwrap_or_default();
    let whole = matches!(width, 1 | 2 | 4) && width * rounds == bytes.len();
    ensure!(
        whole,
        "the store holds {} bytes for the actions of {rounds} rounds",
        bytes.len()
    );
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    Ok(bytes.chunks_exact(width).map(number).collect())
}

/// Progress as JSON.
pub fn encode_progress(progress: &Progress) -> Result<String> {
    // JSON and not columns: it is read and written whole, and its lists are as long as there are actions.
    serde_json::to_string(progress).context("cannot write the progress")
}

/// Progress again.
pub fn parse_progress(text: &str) -> Result<Progress> {
    serde_json::from_str(text)
        .with_context(|| format!("the store holds the progress {text:?}, which cannot be read"))
}

/// A salt.
pub fn parse_salt(bytes: &[u8]) -> Result<[u8; 16]> {
    bytes
        .try_into()
        .with_context(|| format!("the store holds a salt of {} bytes, not 16", bytes.len()))
}

/// A secret.
pub fn parse_secret(bytes: &[u8]) -> Result<[u8; 32]> {
    bytes
        .try_into()
        .with_context(|| format!("the store holds a secret of {} bytes, not 32", bytes.len()))
}

/// Ids in one text: none has a space in it.
pub fn encode_ids(ids: &[String]) -> String {
    ids.join(" ")
}

/// The ids again.
pub fn parse_ids(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// The role of this name.
pub fn parse_role(name: &str) -> Result<Role> {
    let roles = [Role::Read, Role::Decide, Role::Admin];
    let found = roles.into_iter().find(|role| role.name() == name);
    found.with_context(|| {
        format!("the store holds the role {name:?}; roles are read, decide and admin")
    })
}
