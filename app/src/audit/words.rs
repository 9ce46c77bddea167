//! What an audit found, in words: the same at a terminal and in the pages.

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
        Verdict::Equal(_) => "hashes equal, key not revealed",
    }
}

/// Why nothing can be said for certain of what is equal, if so.
pub fn not_recomputed(audited: &Audited) -> Option<String> {
    if audited.recomputed {
        return None;
    }
    let name = terminal::name(&audited.experiment);
    // Equal hashes alone are not what an audit promises.
    Some(format!(
        "the key of {name} is not revealed, so its actions, estimates and strategies were not recomputed; audit it with an \
         admin's API key, or once it is over"
    ))
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
    // Without the key nothing can be drawn again, and equal hashes must not be taken for recomputed decisions.
    Sentence::of(Tone::Strong, answer).and(
        Tone::Plain,
        " The key is not revealed: no action, estimate or strategy was recomputed.",
    )
}
