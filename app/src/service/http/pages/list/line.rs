//! A line of the list: what it says of an experiment, and its markup.

use std::sync::Arc;

use debora::measure::words::{counted, percent, significant, whole};
use debora::record::Kind;
use maud::{Markup, html};

use crate::calendar::iso;
use crate::reading::{ActionShare, LimitState, LimitVerdict, RunState, share};
use crate::service::http::ExperimentInfo;
use crate::service::http::pages::{parts, text};
use crate::service::http::summary::{Glance, LineSummary, Unreadable, run_state};
use crate::store::ExperimentLine;

/// Costs whose verdict is shown one by one; of more, the rest is counted.
const LIMITS_SHOWN: usize = 3;

/// An experiment in the list.
pub struct ListLine {
    /// As it is stored.
    pub row: ExperimentLine,
    pub info: Arc<ExperimentInfo>,
    /// `None` until there was time to make one.
    pub summary: Option<Arc<LineSummary>>,
    /// What time it is.
    pub now: i64,
}

impl ListLine {
    /// What it is called.
    pub fn title(&self) -> &str {
        self.info.name.as_ref().unwrap_or(&self.row.id)
    }

    pub fn glance(&self) -> Option<&Glance> {
        self.summary.as_ref()?.glance.as_ref().ok()
    }

    /// What it does; `None` while it is not known whether it waits or has committed.
    pub fn run_state(&self) -> Option<RunState> {
        run_state(&self.row, self.summary.as_deref())
    }

    /// Rounds decided, of all.
    pub fn share(&self) -> f64 {
        self.row.progress.rounds() as f64 / self.info.problem.horizon() as f64
    }

    /// Rounds decided a second; `None` while nothing is known.
    pub fn per_second(&self) -> Option<f64> {
        let rate = self.summary.as_ref()?.rate(&self.row, self.now);
        Some(rate.map_or(0.0, |rate| rate.per_second()))
    }

    /// The action played most, once that is decided by outcomes.
    pub fn leader(&self) -> Option<&ActionShare> {
        let glance = self.glance()?;
        (glance.kind != Kind::Explore).then_some(&glance.leader)
    }

    /// How many alerts there are, and the first of them; `None` while nothing is known.
    fn alerts(&self) -> Option<(usize, Option<&str>)> {
        Some(match &self.summary.as_ref()?.glance {
            Ok(glance) => {
                let first = glance.alerts.first();
                (glance.alerts.len(), first.map(|alert| &*alert.sentence))
            }
            // To be looked into more than anything else.
            Err(Unreadable::Damaged(error)) => (1, Some(error)),
            Err(Unreadable::OtherValues(_)) => (0, None),
        })
    }

    /// How many alerts there are; `None` while nothing is known.
    pub fn alerts_count(&self) -> Option<usize> {
        Some(self.alerts()?.0)
    }

    /// Its name as a link, and its id.
    pub fn named(&self) -> Markup {
        html! {
            a href={ "/experiments/" (self.row.id) } title=(self.title()) { bdi { (self.title()) } }
            @if self.info.name.is_some() { span.small { (self.row.id) } }
        }
    }

    pub fn state(&self) -> Markup {
        let word = self.run_state().map(RunState::word);
        word.map_or_else(unread, |word| parts::badge(word, word))
    }

    pub fn progress(&self) -> Markup {
        let (rounds, horizon) = (self.row.progress.rounds(), self.info.problem.horizon());
        html! {
            span { (whole(rounds)) " of " (whole(horizon)) }
            progress value=(rounds) max=(horizon) aria-label="Rounds decided" title=(percent(self.share())) {}
        }
    }

    pub fn epoch(&self) -> Markup {
        html! { span { (whole(self.row.progress.epoch)) " " span.small { (self.kind()) } } }
    }

    pub fn age(&self) -> Markup {
        let at = self.row.created_at;
        html! { time datetime=(iso(at)) title=(text::time(at)) { (text::age(self.now - at)) } }
    }

    fn kind(&self) -> &'static str {
        match self.glance().map(|glance| glance.kind) {
            Some(Kind::Explore) => "explore",
            Some(Kind::Estimate) => "estimate",
            Some(Kind::Infeasible) => "infeasible",
            Some(Kind::Commit) => "commit",
            Some(Kind::Pick) => "pick",
            None => "",
        }
    }

    pub fn rate(&self) -> Markup {
        let Some(summary) = &self.summary else {
            return unread();
        };
        if !self.row.progress.status.is_open() {
            return html! { span.small { "over" } };
        }
        let Some(rate) = summary.rate(&self.row, self.now) else {
            let last = summary.last_decided();
            let last = last.map_or("Nothing was decided yet.".into(), text::idle);
            return html! { span.small title=(last) { "none" } };
        };
        let over = format!(
            "{} in the last {}",
            counted(rate.rounds, "round", "rounds"),
            text::age(rate.span)
        );
        html! { span title=(over) { (per_time(rate.per_second())) } }
    }

    pub fn leading(&self) -> Markup {
        match self.summary.as_ref().map(|summary| &summary.glance) {
            None => unread(),
            Some(Err(Unreadable::OtherValues(why))) => {
                html! { span.small title=(why) { "of another version" } }
            }
            Some(Err(Unreadable::Damaged(_))) => html! { span.small { "unreadable" } },
            Some(Ok(_)) => match self.leader() {
                None => html! { span.small { "exploring" } },
                Some(leader) => html! {
                    span.leader title=(leader.name) { bdi { (leader.name) } " " span.share { (share(leader.probability)) } }
                },
            },
        }
    }

    pub fn limits(&self) -> Markup {
        let Some(Glance { limits, .. }) = self.glance() else {
            return unread();
        };
        if limits.is_empty() {
            return html! { span.small { "no costs" } };
        }
        // One that would be counted alone takes no more room by its name.
        let shown = if limits.len() == LIMITS_SHOWN + 1 {
            limits.len()
        } else {
            limits.len().min(LIMITS_SHOWN)
        };
        html! {
            span.limits {
                @for limit in &limits[..shown] {
                    @let [class, words] = parts::verdict(limit.all.verdict);
                    span.badge.(class) title=(limit.all.sentence) { bdi { (limit.name) } " " (words) }
                }
                @if shown < limits.len() { span.small { "and " (counts(&limits[shown..])) } }
            }
        }
    }

    pub fn alerted(&self) -> Markup {
        match self.alerts() {
            None => unread(),
            Some((count, Some(first))) => {
                let word = if count == 1 { "alert" } else { "alerts" };
                html! {
                    a.badge.alert href={ "/experiments/" (self.row.id) } title=(first) { (count) " " (word) }
                }
            }
            Some((_, None)) => html! { span.small { "none" } },
        }
    }
}

/// What stands where a summary has not been made yet.
fn unread() -> Markup {
    html! { span.small title="Not read yet: the list goes on reading when it is refreshed." { "…" } }
}

/// How many of each verdict: "1 exceeded, 16 kept".
fn counts(limits: &[LimitState]) -> String {
    let count = |verdict: LimitVerdict| {
        let limits = limits.iter();
        let of_it = limits.filter(|limit| limit.all.verdict == verdict);
        (of_it.count(), verdict)
    };
    let counts = LimitVerdict::ALL.map(count);
    let said = counts.iter().filter(|(count, _)| *count > 0);
    let said: Vec<_> = said
        .map(|(count, one)| format!("{count} {}", parts::verdict(*one)[1]))
        .collect();
    said.join(", ")
}

/// A rate in the largest unit of time that makes it at least 1, or by the hour: "3.2/min".
fn per_time(per_second: f64) -> String {
    let (rate, unit) = match per_second {
        rate if rate >= 1.0 => (rate, "s"),
        rate if rate * 60.0 >= 1.0 => (rate * 60.0, "min"),
        rate => (rate * 3_600.0, "h"),
    };
    // Two digits: with more, it would change at every look.
    format!("{}/{unit}", significant(rate, 2))
}
