//! The certificate for people: what was promised, what happened, what to deploy, who did what, and how to verify it.

use debora::Policy;
use debora::measure::answer::{Answer, AnswerCell, AnswerTable, Sentence, Tone, row_for_each};
use debora::measure::words::{amount, counted, percent, whole};
use debora::record::{Interval, Kind};

use super::between;
use crate::reading::certificate::{Certificate, HistoryEntry};
use crate::reading::{ActionCounts, AdvisedQuantity, AdvisedStrategy, LimitVerdict};
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

/// What it says.
pub fn answer(certificate: &Certificate, address: &LogAddress) -> Answer {
    let mut answer = Answer::default();
    answer.paragraph([Sentence::of(Tone::Strong, ending(certificate))]);
    answer.facts([
        ("Experiment", code(&certificate.id)),
        ("Created", code(&certificate.created)),
        ("Ended", code(&certificate.ended)),
    ]);
    for sentence in alarms(certificate) {
        answer.paragraph([Sentence::of(Tone::Alarm, sentence)]);
    }
    // In the order in which a reader asks: what was said before, what came of it, what to do, and whether to believe it.
    answer.heading("What was promised");
    answer.list(&certificate.promised);
    answer.heading("What happened");
    answer.list(happened(certificate));
    answer.table(counts(&certificate.actions));
    answer.paragraph([Sentence::plain(&certificate.sample_ratio.sentence)]);
    limits(&mut answer, certificate);
    gained(&mut answer, certificate);
    deploy(&mut answer, certificate);
    known(&mut answer, certificate);
    answer.heading("Who did what, and when");
    answer.facts(certificate.history.iter().map(event));
    answer.note(
        "Times are those of the service's clock, in UTC. The log also names who asked for each decision and told each outcome.",
    );
    verify(&mut answer, certificate, address);
    record(&mut answer, certificate);
    answer.heading("The spec");
    answer.quotation(&certificate.spec);
    answer
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
    row_for_each(actions)
        .words("action", |action| &action.name)
        .numbers("decided", |action| action.decided)
        .numbers("told", |action| action.told)
        .numbers("imputed", |action| action.imputed)
        .numbers("outstanding", |action| action.outstanding())
        .table()
}

fn gained(answer: &mut Answer, certificate: &Certificate) {
    let Some(holdback) = &certificate.holdback else {
        return;
    };
    answer.heading("What it gained");
    answer.paragraph([Sentence::plain(&holdback.sentence)]);
    answer.list(holdback.lifts.iter().map(|lift| &lift.sentence));
    let lifts = row_for_each(&holdback.lifts)
        .words("quantity", |lift| &lift.quantity)
        .numbers("experiment", |lift| {
            AnswerCell::or_none(lift.experiment.mean)
        })
        .numbers("held back", |lift| AnswerCell::or_none(lift.holdback.mean))
        .numbers("difference", |lift| AnswerCell::or_none(lift.lift))
        .numbers("interval", |lift| both(lift.interval));
    answer.table(lifts.table());
    answer.note(format!("Intervals: {}.", certificate.intervals.lift));
}

fn deploy(answer: &mut Answer, certificate: &Certificate) {
    let recommendation = &certificate.recommendation;
    answer.heading("What to deploy");
    answer.paragraph([if recommendation.kind == Kind::Explore {
        let nothing =
            "It ended while it explored: its last strategy says nothing about which action is best.";
        Sentence::of(Tone::Alarm, nothing)
    } else {
        Sentence::plain("The last strategy, the best by what is known, which still learns:")
    }]);
    strategy(answer, certificate.policy, &recommendation.current);
    let Some(cautious) = &recommendation.cautious else {
        let none = "There is no cautious strategy: no strategy is sure to keep every limit by what is known.";
        return answer.paragraph([Sentence::plain(none)]);
    };
    let sure = "The cautious strategy, the best that is sure to keep every limit:";
    answer.paragraph([Sentence::plain(sure)]);
    strategy(answer, certificate.policy, cautious);
}

fn strategy(answer: &mut Answer, policy: Policy, advised: &AdvisedStrategy) {
    // Of many actions a strategy plays a few.
    let all = advised.shares.all().iter();
    let shares = row_for_each(all.filter(|share| share.probability > 0.0))
        .words("action", |share| &share.name)
        .shares("probability", |share| share.probability);
    answer.table(shares.table());
    let quantities = advised.quantities.iter();
    answer.list(quantities.map(|quantity| expected(policy, quantity)));
}

/// What a strategy gives of a quantity, beside its threshold.
fn expected(policy: Policy, quantity: &AdvisedQuantity) -> String {
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
fn known(answer: &mut Answer, certificate: &Certificate) {
    answer.heading("What is known of each action");
    let means = row_for_each(&certificate.means)
        .words("action", |mean| &mean.name)
        .words("quantity", |mean| &mean.quantity)
        .numbers("observed", |mean| mean.observed.mean)
        .numbers("interval", |mean| both(mean.observed.interval))
        .numbers("told", |mean| mean.observed.count)
        // None before the first estimate, and of costs under policy free.
        .numbers("estimate", |mean| {
            AnswerCell::or_none(mean.estimate.as_ref().map(|estimate| estimate.value))
        })
        .numbers("cell", |mean| {
            let estimate = mean.estimate.as_ref();
            estimate.map(|estimate| both(estimate.cell))
        });
    answer.table(means.table());
    answer.note(format!(
        "Observed is the plain mean of what was told, with {}, each of which ever misses with probability at most {}. The estimate \
         is the rounded mean, which decides: any mean in its cell gives the same one.",
        certificate.intervals.mean,
        percent(certificate.intervals.miss)
    ));
    let told = certificate.means.iter();
    let told = told.filter(|mean| mean.observed.count > 0);
    answer.list(told.map(|mean| format!("{}, {}: {}", mean.name, mean.quantity, mean.why)));
}

fn both(interval: Interval) -> String {
    between([interval.low, interval.high])
}

/// What must not be overlooked.
fn alarms(certificate: &Certificate) -> Vec<&str> {
    let ratio = &certificate.sample_ratio;
    let missing = ratio.mismatch.then_some(&ratio.sentence);
    let all = certificate.contradictions.iter().chain(missing);
    all.map(|sentence| &**sentence).collect()
}

fn limits(answer: &mut Answer, certificate: &Certificate) {
    if certificate.limits.is_empty() {
        return;
    }
    answer.heading("Were the limits kept?");
    for limit in &certificate.limits {
        // Under policy free a threshold is stated only: that it was exceeded is a fact and no alarm.
        let exceeded = limit.all.verdict == LimitVerdict::Exceeded;
        let tone = match certificate.policy {
            Policy::Soft | Policy::Hard if exceeded => Tone::Alarm,
            _ => Tone::Strong,
        };
        answer.paragraph([Sentence::of(tone, &limit.all.sentence)]);
        let overtime = limit.realised_overtime.map(|average| {
            let average = amount(average);
            format!("Over decisions in overtime, which do not count: {average} on average.")
        });
        let last = format!("In the last epoch: {}", limit.last_epoch.sentence);
        answer.list([last].into_iter().chain(overtime));
    }
    answer.note(format!(
        "Intervals: {}, each of which ever misses with probability at most {}.",
        certificate.intervals.average,
        percent(certificate.intervals.miss)
    ));
}

fn event(entry: &HistoryEntry) -> (&str, String) {
    let reason = entry.reason.as_ref();
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    (
        &entry.time,
        format!("{} {}{reason}", entry.actor, entry.what),
    )
}

fn verify(answer: &mut Answer, certificate: &Certificate, address: &LogAddress) {
    answer.heading("How to verify it");
    let (fetch, audit, key) = commands(certificate, address);
    let mut step = |what: &str, command: &str| {
        answer.paragraph([Sentence::plain(what)]);
        answer.quotation(command);
    };
    step("Take the log.", &fetch);
    step(
        "Recompute every decision, estimate, strategy and hash, and see that this certificate's head is in the chain.",
        &audit,
    );
    if let Some(key) = &key {
        step(
            "See that the key was fixed before the first decision: this prints the key hash, which stands in the seal.",
            key,
        );
    } else if let Some(why) = certificate.key_withheld {
        let held = format!("The key cannot be held against its hash yet. {why}");
        answer.paragraph([Sentence::plain(held)]);
    }
    let published = "Whoever runs the service could have written another history with hashes of its own. What speaks against that \
        are a seal that was published before the first decision, with key hash ";
    let heads = ", and heads that were published while it ran: give each to --head. The events above say where they are. An \
        outcome that was told wrongly in the first place is not detected by any of this.";
    answer.paragraph([Sentence::plain(published)
        .and(Tone::Faint, &certificate.key_hash)
        .and(Tone::Plain, heads)]);
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

fn record(answer: &mut Answer, certificate: &Certificate) {
    answer.heading("For the record");
    answer.facts([
        ("Head", code(&certificate.head)),
        ("Decisions", code(&certificate.digest)),
        ("Key hash", code(&certificate.key_hash)),
        ("Key", certificate.key.as_deref().map(code).into()),
        ("Salt", certificate.salt.as_deref().map(code).into()),
        (
            "Fingerprint",
            certificate.fingerprint.as_deref().map(code).into(),
        ),
        ("Values version", certificate.values_version.into()),
    ]);
}

fn code(text: &str) -> AnswerCell {
    AnswerCell::Code(text.to_owned())
}
