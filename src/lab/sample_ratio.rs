//! Sample-ratio checks: does it depend on the action whether an outcome is told, or how often a round is decided?
//!
//! Three checks, each by e-values ([`Evidence`]), share one false-alarm rate over the *whole* experiment, however often one looks:
//!
//! ```text
//! closed    the rounds of each closed epoch that were never told, one epoch after the other: a test martingale
//! open      the rounds of the open epoch that are not told, at look j = 1, 2, ..: e_j / (j (j + 1))
//! decided   all rounds of drawn epochs, against their strategy: a test martingale
//! p = min(1, 3 / the largest that any of them has been)
//! ```
//!
//! Looks are taken when the number of outcomes first reaches 16, 20, 25, 31, ..: a list that no action has a part in. By Markov
//! look j alone is wrong with probability at most alpha / (j (j + 1)), and these sum to alpha.
//!
//! The premise is that whether and when an outcome is told does not depend on its action. How many rounds an epoch has may
//! depend on actions, though: a drawn one ends when one of them reaches its target. A martingale may be stopped there, so that
//! `closed` and `decided` take the strategy's probabilities. For `open`, what is untold at a look depends on how many rounds
//! there are; so it is conditioned on: given the counts of what is decided, every order of these actions is equally likely, but
//! for the last round of an epoch that is all handed out, which is left out. The untold ones are then drawn without
//! replacement, and spread no wider than with it (Hoeffding, 1963, Theorem 4): [`Evidence`] holds with the shares decided. An
//! epoch in permuted blocks has a length of its own, and its shares are its strategy's.

use libm::{exp, log};
use serde::{Deserialize, Serialize};

use super::missing::Evidence;

/// The chance of any false alarm in the life of an experiment.
pub const ALARM: f64 = 1e-3;

/// Outcomes before the first look: fewer could not raise an alarm.
const FIRST_LOOK: u64 = 16;

/// How often a permuted block holds each action: decided counts differ by no more.
const BLOCK_COPIES: u64 = 8;

/// An epoch, as far as it is decided and told.
#[derive(Clone, Copy, Debug)]
pub struct EpochCounts<'a> {
    /// The probability of each action.
    pub strategy: &'a [f64],
    /// Whether it is played in permuted blocks; else each action is drawn.
    pub blocks: bool,
    /// Rounds decided, per action.
    pub decided: &'a [u64],
    /// Rounds that somebody told, per action; imputed ones are not among them.
    pub told: &'a [u64],
}

/// The last round of an epoch that is all handed out.
#[derive(Clone, Copy, Debug)]
pub struct LastRound {
    /// Its action.
    pub action: usize,
    /// Whether somebody told it.
    pub told: bool,
}

/// Which check found the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleCheck {
    /// Told against decided, in closed epochs.
    Closed,
    /// Told against decided, in the open epoch.
    Open,
    /// Decided against the strategy.
    Decided,
}

/// What the checks say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleVerdict {
    /// The chance that they ever find as much, if nothing depends on actions, is at most this.
    pub p_value: f64,
    /// The check that found the most.
    pub check: SampleCheck,
    /// The action that is untold, or decided, too often according to it.
    pub action: usize,
}

/// The largest e-value so far, in logarithms, and the action that it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Largest {
    log: f64,
    action: usize,
}

impl Largest {
    fn raise(&mut self, log: f64, evidence: &Evidence) {
        if log > self.log {
            let action = evidence.most_often();
            *self = Self { log, action };
        }
    }
}

/// The checks of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleChecks {
    untold: Evidence,
    drawn: Evidence,
    closed: Largest,
    open: Largest,
    looks: u64,
    next_look: u64,
}

impl SampleChecks {
    /// Before the first round, with this many actions.
    pub fn new(actions: usize) -> Self {
        Self {
            untold: Evidence::new(actions),
            drawn: Evidence::new(actions),
            closed: Largest::default(),
            open: Largest::default(),
            looks: 0,
            next_look: FIRST_LOOK,
        }
    }

    /// How many actions they are of.
    pub fn actions(&self) -> usize {
        self.untold.actions()
    }

    /// Leaves out the looks up to this many outcomes: of what was missing then, nothing is known any more.
    pub fn skip_looks(&mut self, outcomes: u64) {
        while self.is_due(outcomes) {
            self.next_look += self.next_look / 4;
        }
    }

    /// Takes over what looks of others found: when they were taken is not kept, and what was untold then cannot be found again.
    pub fn take_looks(&mut self, others: &Self) {
        self.open = others.open;
        self.looks = others.looks;
    }

    /// Whether to look, now that there are this many outcomes in all.
    pub fn is_due(&self, outcomes: u64) -> bool {
        outcomes >= self.next_look
    }

    /// Looks at the open epoch, if it is due. `last` is its last round if all are handed out.
    pub fn look(&mut self, outcomes: u64, epoch: EpochCounts<'_>, last: Option<LastRound>) {
        if !self.is_due(outcomes) {
            return;
        }
        self.skip_looks(outcomes);
        self.looks += 1;
        let looks = self.looks as f64;
        let evidence = open_evidence(epoch, last);
        self.open.raise(
            evidence.ln_e_value() - log(looks * (looks + 1.0)),
            &evidence,
        );
    }

    /// Adds an epoch that is closed.
    pub fn close(&mut self, epoch: EpochCounts<'_>) {
        self.untold.add(&untold(epoch), epoch.strategy);
        self.closed.raise(self.untold.ln_e_value(), &self.untold);
        if !epoch.blocks {
            self.drawn.add(epoch.decided, epoch.strategy);
        }
    }

    /// Adds the untold rounds of an epoch that is closed and stays the last: what was decided in it is judged as in an open one.
    pub fn close_last(&mut self, epoch: EpochCounts<'_>) {
        let drawn = self.drawn.clone();
        self.close(epoch);
        self.drawn = drawn;
    }

    /// What they say, with what is decided in the open epoch.
    pub fn verdict(&self, open: EpochCounts<'_>) -> SampleVerdict {
        let (decided, action) = self.decided(open);
        let found = [
            (self.closed.log, SampleCheck::Closed, self.closed.action),
            (self.open.log, SampleCheck::Open, self.open.action),
            (decided, SampleCheck::Decided, action),
        ];
        // The first of equals: an array is never empty.
        let most = |one: (f64, _, _), two: (f64, _, _)| if two.0 > one.0 { two } else { one };
        let (log, check, action) = found.into_iter().reduce(most).expect("three checks");
        SampleVerdict {
            // Any of the three could be wrong: each has a third of the rate.
            p_value: (3.0 * exp(-log)).min(1.0),
            check,
            action,
        }
    }

    fn decided(&self, open: EpochCounts<'_>) -> (f64, usize) {
        let mut drawn = self.drawn.clone();
        if open.blocks {
            let most = open
                .decided
                .iter()
                .enumerate()
                .max_by_key(|decided| decided.1);
            let least = open.decided.iter().min().copied().unwrap_or_default();
            // A permuted block leaves nothing to chance: what differs by more than one was not decided by it.
            return match most {
                Some((action, &most)) if most - least > BLOCK_COPIES => (f64::INFINITY, action),
                _ => (drawn.ln_e_value(), drawn.most_often()),
            };
        }
        drawn.add(open.decided, open.strategy);
        (drawn.ln_e_value(), drawn.most_often())
    }
}

fn untold(epoch: EpochCounts<'_>) -> Vec<u64> {
    let counts = epoch.decided.iter().zip(epoch.told);
    // Counts come from a store, and one that is damaged may hold more told than decided.
    counts
        .map(|(decided, told)| decided.saturating_sub(*told))
        .collect()
}

fn open_evidence(epoch: EpochCounts<'_>, last: Option<LastRound>) -> Evidence {
    let mut evidence = Evidence::new(epoch.decided.len());
    let mut untold = untold(epoch);
    if epoch.blocks {
        evidence.add(&untold, epoch.strategy);
        return evidence;
    }
    let mut decided = epoch.decided.to_vec();
    if let Some(last) = last {
        decided[last.action] = decided[last.action].saturating_sub(1);
        untold[last.action] = untold[last.action].saturating_sub(u64::from(!last.told));
    }
    let rounds = decided.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<f64> = decided.iter().map(|&count| count as f64 / rounds).collect();
    evidence.add(&untold, &shares);
    evidence
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALVES: [f64; 2] = [0.5, 0.5];

    fn halves<'a>(blocks: bool, decided: &'a [u64], told: &'a [u64]) -> EpochCounts<'a> {
        EpochCounts {
            strategy: &HALVES,
            blocks,
            decided,
            told,
        }
    }

    #[test]
    fn a_loss_of_83_in_512_is_seen_at_the_first_look_and_when_the_epoch_closes() {
        for blocks in [true, false] {
            let epoch = halves(blocks, &[512, 512], &[429, 512]);
            let last = (!blocks).then_some(LastRound {
                action: 0,
                told: false,
            });
            let mut open = SampleChecks::new(2);
            open.look(941, epoch, last);
            let mut closed = SampleChecks::new(2);
            closed.close(epoch);
            for (checks, check) in [(open, SampleCheck::Open), (closed, SampleCheck::Closed)] {
                let verdict = checks.verdict(halves(blocks, &[0, 0], &[0, 0]));
                assert!(verdict.p_value < 1e-12, "{verdict:?}");
                assert_eq!((verdict.check, verdict.action), (check, 0));
            }
            // Half of it would be chance: one action alone cannot be told from the other.
            let mut even = SampleChecks::new(2);
            even.look(941, halves(blocks, &[512, 512], &[470, 471]), None);
            even.close(halves(blocks, &[512, 512], &[470, 471]));
            let verdict = even.verdict(halves(blocks, &[0, 0], &[0, 0]));
            assert!(verdict.p_value > 0.5, "{verdict:?}");
        }
    }

    /// Drawn until an action reaches its target, over all sequences: what is untold at the end is a set of places.
    #[test]
    fn what_is_untold_when_a_target_is_reached_expects_at_most_one() {
        let (target, longest) = (4u64, 7);
        for set in 0..1u32 << longest {
            let mut expected = 0.0;
            for code in 0..1u32 << longest {
                let (mut decided, mut told) = ([0u64; 2], [0u64; 2]);
                let mut last = None;
                for place in 0..longest {
                    let action = (code >> place & 1) as usize;
                    decided[action] += 1;
                    let is_told = set >> place & 1 == 0;
                    told[action] += u64::from(is_told);
                    if decided[action] == target {
                        last = Some(LastRound {
                            action,
                            told: is_told,
                        });
                        break;
                    }
                }
                let epoch = halves(false, &decided, &told);
                expected += exp(open_evidence(epoch, last).ln_e_value()) / f64::from(1 << longest);
            }
            assert!(expected <= 1.0 + 1e-12, "{set:07b}: {expected}");
        }
    }

    #[test]
    fn decisions_that_no_strategy_makes_are_seen() {
        let checks = SampleChecks::new(2);
        let p = |blocks, decided: [u64; 2]| {
            let epoch = halves(blocks, &decided, &[0, 0]);
            checks.verdict(epoch).p_value
        };
        assert_eq!(p(true, [80, 73]), 1.0);
        assert_eq!(p(true, [80, 71]), 0.0);
        assert_eq!(p(false, [80, 73]), 1.0);
        assert!(p(false, [160, 80]) < 1e-3, "{}", p(false, [160, 80]));
        let never = EpochCounts {
            strategy: &[1.0, 0.0],
            ..halves(false, &[900, 3], &[0, 0])
        };
        assert!(checks.verdict(never).p_value < 1e-3);
    }

    #[test]
    fn looks_come_at_growing_numbers_of_outcomes_and_once_each() {
        let mut checks = SampleChecks::new(2);
        let epoch = halves(true, &[0, 0], &[0, 0]);
        let looked = (1..=40).filter(|&outcomes| {
            let due = checks.is_due(outcomes);
            checks.look(outcomes, epoch, None);
            due
        });
        assert_eq!(looked.collect::<Vec<_>>(), [16, 20, 25, 31, 38]);
        checks.look(1_000_000, epoch, None);
        assert_eq!(checks.looks, 6);
    }
}
