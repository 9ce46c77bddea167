//! Words, tables, plots, the HTML report.

pub mod html;
pub mod plots;
pub mod story;
pub mod words;

use debora::lab::replicate::Pair;

/// The share of pairs still identical when epoch 0, 1, .. has been played.
pub fn identical_shares(pairs: &[Pair]) -> Vec<(f64, f64)> {
    let last = pairs
        .iter()
        .flat_map(|pair| &pair.runs)
        .map(|run| run.epochs)
        .max()
        .unwrap_or(1);
    let parted = |epoch: u64| {
        pairs
            .iter()
            .filter(|pair| {
                pair.divergence
                    .as_ref()
                    .is_some_and(|split| split.epoch <= epoch)
            })
            .count()
    };
    (0..last)
        .map(|epoch| {
            (
                epoch as f64,
                1.0 - parted(epoch) as f64 / pairs.len() as f64,
            )
        })
        .collect()
}
