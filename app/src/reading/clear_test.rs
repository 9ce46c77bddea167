//! The clear test by names, in the reward's units.

use debora::Problem;
use debora::measure::answer::clear_test;
use debora::record::ClearTest;
use serde::Serialize;

use super::Reading;

/// A clear test: policy free commits to an action that is ahead by more than a keyed threshold.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct TestState {
    /// Its stage, from 0.
    pub stage: u32,
    /// The rounds of each action that it looks at.
    pub count: u64,
    /// The action with the largest mean reward, by name.
    pub leader: String,
    /// The one behind it.
    pub runner_up: String,
    /// By how much the leader's mean reward is larger, in its units.
    pub lead: f64,
    /// What the lead was compared with.
    pub threshold: f64,
    /// Whether the lead was above it.
    pub passed: bool,
    /// The same in words.
    pub sentence: String,
}

impl TestState {
    /// Names a test's actions and scales its numbers.
    pub fn new(problem: &Problem, test: &ClearTest) -> Self {
        let span = problem.quantity(0).range.span();
        let [lead, threshold] = test.gap_and_threshold().map(|gap| gap * span);
        let name = |action: u32| problem.actions()[action as usize].clone();
        Self {
            stage: test.stage,
            count: test.count,
            leader: name(test.leader),
            runner_up: name(test.runner_up),
            lead,
            threshold,
            passed: test.passed,
            sentence: clear_test(problem, test),
        }
    }
}

impl Reading {
    /// Why one action is played to the horizon, if one is.
    pub fn commitment(&self) -> Option<String> {
        let test = self.test().filter(|test| test.passed)?;
        // What an operator would not guess: elsewhere every outcome is waited for, and closing early loses what was to come.
        let meanwhile = if self.is_open() {
            " Outcomes are still taken, but nothing depends on them: no decision waits, and the experiment can be closed without loss."
        } else {
            ""
        };
        Some(test.sentence + meanwhile)
    }
}
