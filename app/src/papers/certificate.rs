//! The certificate for people: what was promised, what happened, what to deploy, who did what, and how to verify it.

use debora::Policy;
use debora::measure::answer::{Align, AnswerTable};
use debora::measure::words::{amount, counted, percent, whole};
use debora::record::{Interval, Kind};
use maud::{Markup, html};

use super::{between, columns, facts, sentences};
use crate::log::certificate::{
    ActionCounts, ActionShare, Certificate, HistoryEntry, KnownQuantity, KnownStrategy,
};
use crate::log::holdback::{HoldbackState, LiftState, SideMean};
use crate::log::kept::LimitVerdict;
use crate::log::means::ActionMean;
use crate::report::html::table;
use crate::store::Status;

/// Where the log can be had, and what it takes.
pub struct LogAddress {
    /// The service's address, as in `http://127.0.0.1:8080`.
    pub service: String,
    /// Whether it asks for an API key.
    pub keyed: bool,
}

/// What it is called.
pub fn title(certificate: &Certificate) -> String {
    let named = certificate.name.as_deref().unwrap_or(&certificate.id);
    format!("Certificate of {named}")
}

/// What a page shows.
pub fn content(certificate: &Certificate, address: &LogAddress) -> Markup {
    html! {
        p.first { (ending(certificate)) }
        (facts(&[
            ("Experiment", Some(&certificate.id)),
            ("Created", Some(&certificate.created)),
            ("Ended", Some(&certificate.ended)),
        ]))
        @for sentence in alarms(certificate) { p.alarm { (sentence) } }
        // In the order in which a reader asks: what was said before, what came of it, what to do, and whether to believe it.
        h2 { "What was promised" }
        (sentences(&certificate.promised))
        h2 { "What happened" }
        (sentences(&happened(certificate)))
        (table(&counts(&certificate.actions)))
        p { (certificate.sample_ratio.sentence) }
        @if !certificate.limits.is_empty() {
            h2 { "Were the limits kept?" }
            (limits(certificate))
        }
        @if let Some(holdback) = &certificate.holdback {
            h2 { "What it gained" }
            p { (holdback.sentence) }
            ul { @for lift in &holdback.lifts { li { (lift.sentence) } } }
            (table(&lifts(holdback)))
            p.small { "Intervals: " (certificate.intervals.lift) "." }
        }
        h2 { "What to deploy" }
        (deploy(certificate))
        h2 { "What is known of each action" }
        (known(certificate))
        h2 { "Who did what, and when" }
        (history(&certificate.history))
        p.small { "Times are those of the service's clock, in UTC. The log also names who asked for each decision and told each outcome." }
        h2 { "How to verify it" }
        (verify(certificate, address))
        h2 { "For the record" }
        (record(certificate))
        h2 { "The spec" }
        pre { (certificate.spec) }
    }
}

/// How it ended.
fn ending(certificate: &Certificate) -> String {
    let horizon = whole(certificate.horizon);
    if certificate.status == Status::Done {
        return format!("Done: all {horizon} rounds were decided and have their outcomes.");
    }
    let mut history = certificate.history.iter();
    let closed = history.find(|entry| entry.what == "closed");
    let who = closed.map_or("nobody", |entry| &*entry.actor);
    format!(
        "Closed by {who} after {} of {horizon} rounds: what would have come after that was not learned.",
        whole(certificate.rounds)
    )
}

fn happened(certificate: &Certificate) -> Vec<String> {
    let rounds = counted(certificate.rounds, "round was", "rounds were");
    let mut sentences = vec![format!(
        "{rounds} decided in {}: {} told, {} imputed as they did not come in time, {} outstanding at the end.",
        counted(certificate.epochs, "closed epoch", "closed epochs"),
        counted(certificate.told, "outcome was", "outcomes were"),
        whole(certificate.imputed),
        whole(certificate.outstanding),
    )];
    // What did not happen is not mentioned, except what an auditor would ask for: that nothing was imputed is said above.
    if certificate.late > 0 {
        let late = counted(certificate.late, "outcome came", "outcomes came");
        sentences.push(format!(
            "{late} after its round was imputed: it is logged, and counts for nothing."
        ));
    }
    if certificate.overtime > 0 {
        let overtime = counted(certificate.overtime, "decision was", "decisions were");
        sentences.push(format!(
            "{overtime} made outside the horizon, while epochs waited: logged, and counted for nothing."
        ));
    }
    if certificate.infeasible > 0 {
        let epochs = counted(certificate.infeasible, "epoch", "epochs");
        sentences.push(format!(
            "In {epochs} the estimates left no strategy within the thresholds."
        ));
    }
    sentences
}

fn counts(actions: &[ActionCounts]) -> AnswerTable {
    let row = |action: &ActionCounts| {
        let outstanding = action.decided - action.told - action.imputed;
        let numbers = [action.decided, action.told, action.imputed, outstanding];
        std::iter::once(action.name.clone())
            .chain(numbers.map(whole))
            .collect()
    };
    let heading = ["action", "decided", "told", "imputed", "outstanding"];
    AnswerTable::of_numbers(heading, actions.iter().map(row).collect())
}

fn lifts(holdback: &HoldbackState) -> AnswerTable {
    let mean = |side: SideMean| side.mean.map_or("none".into(), amount);
    let row = |lift: &LiftState| {
        vec![
            lift.quantity.clone(),
            mean(lift.experiment),
            mean(lift.holdback),
            lift.lift.map_or("none".into(), amount),
            between([lift.interval.low, lift.interval.high]),
        ]
    };
    let heading = [
        "quantity",
        "experiment",
        "held back",
        "difference",
        "interval",
    ];
    AnswerTable::of_numbers(heading, holdback.lifts.iter().map(row).collect())
}

fn deploy(certificate: &Certificate) -> Markup {
    let recommendation = &certificate.recommendation;
    let policy = certificate.policy;
    html! {
        @if recommendation.kind == Kind::Explore {
            p.alarm { "It ended while it explored: its last strategy says nothing about which action is best." }
        } @else {
            p { "The last strategy, the best by what is known, which still learns:" }
        }
        (strategy(policy, &recommendation.current))
        @match &recommendation.cautious {
            Some(cautious) => {
                p { "The cautious strategy, the best that is sure to keep every limit:" }
                (strategy(policy, cautious))
            }
            None => p { "There is no cautious strategy: no strategy is sure to keep every limit by what is known." }
        }
    }
}

fn strategy(policy: Policy, known: &KnownStrategy) -> Markup {
    // Of many actions a strategy plays a few.
    let played = known.shares.iter().filter(|share| share.probability > 0.0);
    let row = |share: &ActionShare| vec![share.name.clone(), percent(share.probability)];
    let shares = AnswerTable::of_numbers(["action", "probability"], played.map(row).collect());
    html! {
        (table(&shares))
        ul { @for quantity in &known.quantities { li { (expected(policy, quantity)) } } }
    }
}

/// What a strategy gives of a quantity, beside its threshold.
fn expected(policy: Policy, quantity: &KnownQuantity) -> String {
    let (low, high) = (quantity.interval.low, quantity.interval.high);
    let known = format!(
        "{} is on average between {} and {}",
        quantity.name,
        amount(low),
        amount(high)
    );
    let Some(threshold) = quantity.threshold else {
        return known + ".";
    };
    // The whole interval must lie on one side for it to be known.
    let verdict = if high <= threshold {
        "it is kept"
    } else if low > threshold {
        "it is exceeded"
    } else {
        "whether it is kept is not known"
    };
    let stated = if policy == Policy::Free {
        ", which policy free states and does not keep"
    } else {
        ""
    };
    format!(
        "{known}; the threshold is {}{stated}: {verdict}.",
        amount(threshold)
    )
}

/// What was observed of each action, what decided, and why the two differ.
fn known(certificate: &Certificate) -> Markup {
    html! {
        (table(&means(&certificate.means)))
        p.small {
            "Observed is the plain mean of what was told, with " (certificate.intervals.mean) ", each of which ever misses with "
            "probability at most " (percent(certificate.intervals.miss)) ". The estimate is the rounded mean, which decides: any "
            "mean in its cell gives the same one."
        }
        ul {
            @for mean in certificate.means.iter().filter(|mean| mean.observed.count > 0) {
                li { (mean.name) ", " (mean.quantity) ": " (mean.why) }
            }
        }
    }
}

fn means(means: &[ActionMean]) -> AnswerTable {
    let both = |interval: Interval| between([interval.low, interval.high]);
    let row = |mean: &ActionMean| {
        // None before the first estimate, and of costs under policy free.
        let estimate = mean.estimate.as_ref();
        let observed = &mean.observed;
        vec![
            mean.name.clone(),
            mean.quantity.clone(),
            observed.mean.map(amount).unwrap_or_default(),
            both(observed.interval),
            whole(observed.count),
            estimate.map_or("none".into(), |estimate| amount(estimate.value)),
            estimate
                .map(|estimate| both(estimate.cell))
                .unwrap_or_default(),
        ]
    };
    let heading = [
        ("action", Align::Left),
        ("quantity", Align::Left),
        ("observed", Align::Right),
        ("interval", Align::Right),
        ("told", Align::Right),
        ("estimate", Align::Right),
        ("cell", Align::Right),
    ];
    columns(heading, means.iter().map(row).collect())
}

/// What must not be overlooked.
fn alarms(certificate: &Certificate) -> Vec<&str> {
    let ratio = &certificate.sample_ratio;
    let missing = ratio.mismatch.then_some(&ratio.sentence);
    let all = certificate.contradictions.iter().chain(missing);
    all.chain(&certificate.false_means)
        .map(|sentence| &**sentence)
        .collect()
}

fn limits(certificate: &Certificate) -> Markup {
    html! {
        @for limit in &certificate.limits {
            // Under policy free a threshold is stated only: that it was exceeded is a fact and no alarm.
            @let alarming = limit.all.verdict == LimitVerdict::Exceeded && certificate.policy != Policy::Free;
            p.(if alarming { "alarm" } else { "first" }) { (limit.all.sentence) }
            ul {
                li { "In the last epoch: " (limit.last_epoch.sentence) }
                @if let Some(overtime) = limit.realised_overtime {
                    li { "Over decisions in overtime, which do not count: " (amount(overtime)) " on average." }
                }
            }
        }
        p.small {
            "Intervals: " (certificate.intervals.average) ", each of which ever misses with probability at most "
            (percent(certificate.intervals.miss)) "."
        }
    }
}

fn history(history: &[HistoryEntry]) -> Markup {
    html! {
        dl.facts {
            @for entry in history {
                dt { (entry.time) }
                dd.breaks {
                    (entry.actor) " " (entry.what)
                    @if let Some(reason) = &entry.reason { ": " (reason) }
                }
            }
        }
    }
}

fn verify(certificate: &Certificate, address: &LogAddress) -> Markup {
    let Certificate { key_hash, .. } = certificate;
    let (fetch, audit, key) = commands(certificate, address);
    html! {
        ol {
            li { "Take the log." pre { (fetch) } }
            li {
                "Recompute every decision, estimate, strategy and hash, and see that this certificate's head is in the chain."
                pre { (audit) }
            }
            @if let Some(key) = key {
                li { "See that the key was fixed before the first decision: this prints the key hash, which stands in the seal." pre { (key) } }
            } @else if let Some(why) = certificate.key_withheld {
                li { "The key cannot be held against its hash yet. " (why) }
            }
        }
        p {
            "Whoever runs the service could have written another history with hashes of its own. What speaks against that are a seal "
            "that was published before the first decision, with key hash " span.hash { (key_hash) }
            ", and heads that were published while it ran: give each to " code { "--head" } ". The events above say where they are. "
            "An outcome that was told wrongly in the first place is not detected by any of this."
        }
    }
}

/// The three commands: fetch, audit, and the key's hash, if the key is shown.
pub fn commands(
    certificate: &Certificate,
    address: &LogAddress,
) -> (String, String, Option<String>) {
    let Certificate { id, head, .. } = certificate;
    // The variable that `debora audit` reads, too: what is typed is seen by others.
    let key = if address.keyed {
        "-H \"Authorization: Bearer $DEBORA_API_KEY\" "
    } else {
        ""
    };
    let service = &address.service;
    let fetch = format!("curl -fsS {key}-o {id}.jsonl {service}/v1/experiments/{id}/log/download");
    let audit = format!("debora audit {id}.jsonl --head {head}");
    let hash = certificate.salt.as_ref().zip(certificate.key.as_ref());
    // Not by debora: that a commitment was kept is worth checking with another program.
    let hash = hash.map(|(salt, key)| {
        format!(
            "python3 -c \"import hashlib; print(hashlib.sha256(bytes.fromhex('{salt}{key}')).hexdigest())\""
        )
    });
    (fetch, audit, hash)
}

fn record(certificate: &Certificate) -> Markup {
    let version = certificate.values_version.to_string();
    facts(&[
        ("Head", Some(&certificate.head)),
        ("Decisions", Some(&certificate.digest)),
        ("Key hash", Some(&certificate.key_hash)),
        ("Key", certificate.key.as_deref()),
        ("Salt", certificate.salt.as_deref()),
        ("Fingerprint", certificate.fingerprint.as_deref()),
        ("Values version", Some(&version)),
    ])
}
