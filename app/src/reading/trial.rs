//! Looks and picks of policy free by names.

use debora::Problem;
use debora::measure::answer::{look_test, picked};
use debora::record::LookTest;
use serde::Serialize;

use super::Reading;

/// A look: policy free commits to an action that is ahead by more than a keyed threshold.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct TestState {
    /// Its number, from the last on.
    pub look: u32,
    /// The rounds of each action that it looks at.
    pub count: u64,
    /// The action with the largest mean reward, by name.
    pub leader: String,
    /// The one behind it.
    pub runner_up: String,
    /// By how much the leader is ahead on the line where variance is constant: around the middle of the range, about a share of it.
    pub lead: f64,
    /// What the lead was compared with.
    pub threshold: f64,
    /// Whether the lead was above it.
    pub passed: bool,
    /// The same in words.
    pub sentence: String,
}

impl TestState {
    /// Names a look's actions.
    pub fn new(problem: &Problem, test: &LookTest) -> Self {
        let [lead, threshold] = test.gap_and_threshold();
        let name = |action: u32| problem.actions()[action as usize].clone();
        Self {
            look: test.look,
            count: test.count,
            leader: name(test.leader),
            runner_up: name(test.runner_up),
            lead,
            threshold,
            passed: test.passed,
            sentence: look_test(problem, test),
        }
    }
}

impl Reading {
    /// Why one action is played to the horizon, if one is.
    pub fn commitment(&self) -> Option<String> {
        let committed = self.test().filter(|test| test.passed);
        let pick = self.engine.open_record().pick.as_ref();
        let picked = pick.map(|pick| picked(self.problem(), pick));
        let found = committed.map(|test| test.sentence).or(picked)?;
        // What an operator would not guess: elsewhere every outcome is waited for, and closing early loses what was to come.
        let meanwhile = if self.is_open() {
            " Outcomes are still taken, but nothing depends on them: no decision waits, and the experiment can be closed without loss."
        } else {
            ""
        };
        Some(found + meanwhile)
    }
}
