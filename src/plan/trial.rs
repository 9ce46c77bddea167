//! The trial of policy free in profile tight: how long all actions are tried, when it looks, how it picks.
//!
//! ```text
//! n_f    = max(1, floor(min(3 (T/rho)^(2/3), T/3)/K)),   or max(1, floor(s T/K)) with `explore` = s
//! b      = min(growth, 8),   P = the least integer >= 1 with b^P >= n_f
//! wrong  = min(delta/2, rho/40),   Lambda = ln(2(K-1)P/wrong)
//! c      = max(1, ln(4KP/wrong)/2, 1.4 ln K)
//! C      = sqrt(2/3) if K = 2 else .9,   s_K = .98 if K = 2 else min(.95, .57 + 1.5/(K + 1/2))
//! A      = 2/(rho s_K ln b)
//! t_0    = max( sqrt(1.06 (Lambda + ln(Lambda)/2 + 1/2)),  (C A ln 2 + sqrt((C A ln 2)^2 + 5.6 A))/2 )
//! eta    = sqrt(6) rho s_K/(1 - 1/K)
//! ```
//!
//! Source: docs/theory.md, "Try, look, pick".

use std::f64::consts::LN_2;

use serde::Serialize;

use super::rounding::floor;
use crate::line::MeanLine;
use crate::look::LookRule;
use crate::problem::Problem;
use crate::width::RADIUS;

/// Looks are at most this far apart, whatever the growth: with wider ones a world can be in doubt at a look and at the pick.
const SPACING_MAX: u32 = 8;

/// A look of the plan. Leads are differences on the line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlannedLook {
    /// Samples of every action.
    pub count: u64,
    /// The round after which it is made.
    pub round: u64,
    /// The least lead that may commit: t_0/sqrt(count).
    pub commits_from: f64,
    /// The lead that is sure to commit: twice that.
    pub commits_at_most: f64,
}

/// The trial's constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trial {
    /// n_f: how often each action is tried.
    pub count: u64,
    /// The looks for the median draw of their place, the first first.
    pub looks: Vec<PlannedLook>,
    /// eta sqrt(n_f): what a place on the line is multiplied by in the pick.
    pub scale: f64,
    /// c of the line.
    pub offset_c: f64,
    /// t_0: what a lead times the root of its count must exceed, for the least threshold.
    pub threshold: f64,
    /// The lead on the line that is picked with probability .9: ln(9(K-1))/(eta sqrt(n_f)).
    pub picked_lead: f64,
    #[serde(skip)]
    actions: u64,
    #[serde(skip)]
    pub(crate) rule: LookRule,
}

impl Trial {
    /// The trial of a problem of policy free; none if its horizon is too short for one.
    pub(super) fn new(problem: &Problem, growth: u32) -> Option<Self> {
        let count = trial_count(problem);
        let actions = problem.actions().len() as u64;
        if count.checked_mul(actions)? > problem.horizon() - 1 {
            return None;
        }
        let (k, rho) = (actions as f64, problem.rho());
        let spacing = growth.min(SPACING_MAX);
        let looks_most = f64::from(looks_most(spacing, count));
        let wrong = (problem.delta() / 2.0).min(rho / 40.0);
        let offset_c = (libm::log(4.0 * k * looks_most / wrong) / 2.0)
            .max(1.4 * libm::log(k))
            .max(1.0);
        let share = share_of_rho(k);
        let rule = LookRule {
            last: count,
            spacing,
            threshold: least_threshold(k, rho * share, spacing, looks_most, wrong),
            offset_c,
        };
        // What makes the bound on the pick's risk rho s_K, with the scale of a difference of two places, sqrt(2/3).
        let eta = libm::sqrt(6.0) * rho * share / (1.0 - 1.0 / k);
        let scale = eta * libm::sqrt(count as f64);
        Some(Self {
            count,
            looks: rule
                .looks(0.5)
                .iter()
                .map(|look| planned(&rule, look.count, actions))
                .collect(),
            scale,
            offset_c,
            threshold: rule.threshold,
            picked_lead: libm::log(9.0 * (k - 1.0)) / scale,
            actions,
            rule,
        })
    }

    /// The first and the last round after which a look can be made, over all draws of their places; none if there are none.
    pub fn first_and_last_look(&self) -> Option<[u64; 2]> {
        let first = self.rule.least_count()?;
        Some([first, self.count].map(|count| count * self.actions))
    }

    /// The largest number of looks of any draw, and one more epoch for the trial's end and one for what follows.
    pub(super) fn epochs_max(&self) -> u64 {
        self.rule.looks(0.0).len() as u64 + 2
    }

    /// The line at the trial's end.
    pub fn line(&self) -> MeanLine {
        MeanLine::new(self.count, self.offset_c)
    }

    /// How much a round after the pick may lose, with probability 1 - 2 delta.
    ///
    /// min(1, (1 + 2c/n_f) (ln(2(K-1)/delta)/(eta sqrt(n_f)) + 2.06 sqrt(ln(4K/delta)/(2 n_f))))
    pub(super) fn loss_after(&self, delta: f64) -> f64 {
        let (k, n) = (self.actions as f64, self.count as f64);
        let noise = libm::log(2.0 * (k - 1.0) / delta) / self.scale;
        let sampling = 2.0 * RADIUS * libm::sqrt(libm::log(4.0 * k / delta) / (2.0 * n));
        ((1.0 + 2.0 * self.offset_c / n) * (noise + sampling)).min(1.0)
    }
}

/// n_f.
fn trial_count(problem: &Problem) -> u64 {
    let (horizon, k) = (problem.horizon() as f64, problem.actions().len() as f64);
    let rounds = match problem.explore() {
        Some(share) => share * horizon,
        None => {
            let best = 3.0 * libm::pow(horizon / problem.rho(), 2.0 / 3.0);
            best.min(horizon / 3.0)
        }
    };
    floor(rounds / k).max(1)
}

/// P: the least integer from 1 on with b^P >= n_f.
fn looks_most(spacing: u32, count: u64) -> u32 {
    let mut power = u64::from(spacing);
    let mut looks = 1;
    while power < count {
        power = power.saturating_mul(u64::from(spacing));
        looks += 1;
    }
    looks
}

/// s_K: the part of rho that looks and pick may each use, as no world can leave both in doubt.
fn share_of_rho(k: f64) -> f64 {
    if k == 2.0 {
        0.98
    } else {
        (0.57 + 1.5 / (k + 0.5)).min(0.95)
    }
}

/// t_0; `rho` is rho s_K.
fn least_threshold(k: f64, rho: f64, spacing: u32, looks_most: f64, wrong: f64) -> f64 {
    let lambda = libm::log(2.0 * (k - 1.0) * looks_most / wrong);
    // A wrong leader needs a deviation beyond this.
    let right = libm::sqrt(1.06 * (lambda + libm::log(lambda) / 2.0 + 0.5));
    // How far two runs' leads lie apart on average, times the root of the count.
    let apart = if k == 2.0 { libm::sqrt(2.0 / 3.0) } else { 0.9 };
    let a = 2.0 / (rho * libm::log(f64::from(spacing)));
    let half = apart * a * LN_2;
    right.max((half + libm::sqrt(half * half + 5.6 * a)) / 2.0)
}

fn planned(rule: &LookRule, count: u64, actions: u64) -> PlannedLook {
    let least = rule.threshold / libm::sqrt(count as f64);
    PlannedLook {
        count,
        round: count * actions,
        commits_from: least,
        commits_at_most: 2.0 * least,
    }
}
