//! What an audit found, in words: the same at a terminal and in the pages.

use debora::VALUES_VERSION;
use debora::measure::answer::{Answer, Sentence, Tone};
use debora::measure::words::{counted, whole};

use super::{Audited, Difference, Verdict};
use crate::terminal;

/// What was found.
pub fn finding(verdict: &Verdict) -> Answer {
    let mut answer = Answer::default();
    match verdict {
        Verdict::Equal(audited) => answer.paragraph(equal(audited)),
        Verdict::Different(audited, difference) => {
            answer.paragraph(different(audited, difference));
        }
    }
    answer
}

/// The same in a few words, for programs.
pub fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Different(..) => "different",
        Verdict::Equal(audited) if audited.recomputed => "equal",
        Verdict::Equal(audited) if audited.values_version < VALUES_VERSION => {
            "hashes equal, other values version"
        }
        Verdict::Equal(_) => "hashes equal, key not revealed",
    }
}

/// Why nothing can be said for certain of what is equal, if so.
pub fn not_recomputed(audited: &Audited) -> Option<String> {
    if audited.recomputed {
        return None;
    }
    let name = terminal::name(&audited.experiment);
    let version = audited.values_version;
    // Equal hashes alone are not what an audit promises.
    Some(if version < VALUES_VERSION {
        format!(
            "{name} was decided with values version {version}, and this program has {VALUES_VERSION}, so its actions, estimates and \
             strategies were not recomputed; audit it with a debora that has {version} (`debora --version` tells)"
        )
    } else {
        format!(
            "the key of {name} is not revealed, so its actions, estimates and strategies were not recomputed; audit it with an \
             admin's API key, or once it is over"
        )
    })
}

fn different(audited: &Audited, difference: &Difference) -> Vec<Sentence> {
    let name = terminal::name(&audited.experiment);
    let before = counted(audited.decisions, "decision", "decisions");
    let mut sentences = vec![
        Sentence::of(Tone::Alarm, format!("{name}: a difference."))
            .and(Tone::Plain, format!(" At {}.", quoting(difference))),
    ];
    sentences.extend(difference.meaning().map(Sentence::plain));
    sentences.push(Sentence::plain(format!("Equal before it: {before}.")));
    sentences
}

/// A difference with its values as a log may have them: whatever they say, they are read as values.
fn quoting(difference: &Difference) -> Difference {
    Difference {
        recorded: terminal::value(&difference.recorded),
        recomputed: terminal::value(&difference.recomputed),
        ..difference.clone()
    }
}

fn equal(audited: &Audited) -> Vec<Sentence> {
    let mut sentences = vec![recomputed(audited)];
    sentences.push(Sentence::plain(format!(
        "Outcomes: {} told, {} imputed; {} more came too late to count. Decisions in overtime: {}.",
        whole(audited.told()),
        whole(audited.imputed),
        whole(audited.late),
        whole(audited.overtime)
    )));
    if audited.holdback > 0 {
        // Without the key nobody can tell who belongs where.
        let checked = match audited.recomputed {
            true => "each request, inside and outside, is where its request key puts it",
            false => "whether the right requests were was not recomputed",
        };
        sentences.push(Sentence::plain(format!(
            "Held back from the experiment: {}; {checked}.",
            counted(audited.holdback, "decision", "decisions")
        )));
    }
    if let Some(epoch) = audited.open_epoch {
        sentences.push(Sentence::plain(format!(
            "Epoch {epoch} is open: {} in no hash yet, {}.",
            counted(
                audited.unhashed_outcomes,
                "of its outcomes is",
                "of its outcomes are"
            ),
            counted(audited.outstanding, "is outstanding", "are outstanding")
        )));
    }
    if audited.epochs_by_rule_1 + audited.facts_by_rule_1 > 0 {
        // Nobody is to take them for covered: the chain was made by an older program there.
        sentences.push(Sentence::plain(format!(
            "Older than rule 2 of the chain, and without times, actors and request keys in their hashes: {}; in no hash: {}.",
            counted(audited.epochs_by_rule_1, "epoch", "epochs"),
            counted(
                audited.facts_by_rule_1,
                "uncounted outcome or event",
                "uncounted outcomes and events"
            )
        )));
    }
    if audited.moved {
        sentences.push(Sentence::plain(
            "The experiment went on while its log was read: the last counts are ahead of the lines, and only that was checked.",
        ));
    }
    sentences.push(Sentence::plain("Head ").and(Tone::Faint, &audited.head));
    sentences
}

fn recomputed(audited: &Audited) -> Sentence {
    let name = terminal::name(&audited.experiment);
    let decisions = counted(audited.decisions, "decision", "decisions");
    let epochs = counted(audited.epochs, "epoch", "epochs");
    if audited.recomputed {
        let answer = format!("{name}: {decisions} in {epochs} recomputed, all equal.");
        return Sentence::of(Tone::Strong, answer);
    }
    let answer = format!("{name}: hashes and counts of {decisions} in {epochs} are equal.");
    // Without the key or with other values nothing can be drawn again, and equal hashes must not be taken for recomputed
    // decisions.
    let reason = if audited.values_version < VALUES_VERSION {
        format!(
            "Decided with values version {}, which this program does not have",
            audited.values_version
        )
    } else {
        "The key is not revealed".to_owned()
    };
    Sentence::of(Tone::Strong, answer).and(
        Tone::Plain,
        format!(" {reason}: no action, estimate or strategy was recomputed."),
    )
}
