//! `debora audit`: every decision of a live experiment, recomputed.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use crate::args::Common;
use crate::audit::{self, Audited, Credentials, LogSource, Verdict};
use crate::commands::print;
use crate::terminal::{ink_for_stdout, laid_out};
use debora::VALUES_VERSION;
use debora::measure::answer::{Answer, Sentence, Tone};
use debora::measure::words::{counted, whole};

/// What came of one experiment.
enum Finding {
    /// All that could be recomputed is equal.
    Equal(Audited),
    /// The first difference.
    Different(Audited, audit::Difference),
    /// It cannot be audited.
    Failed(Option<String>, anyhow::Error),
}

/// False if there is a difference. What could not be audited is an error, after all findings are printed.
pub fn audit(
    source: &str,
    experiment: Option<&str>,
    head: Option<&str>,
    credentials: &Credentials,
    common: &Common,
) -> Result<bool> {
    let (source, named) = LogSource::of(source)?;
    let experiments = source.experiments(experiment.or(named.as_deref()))?;
    check_head(head, experiments.len())?;
    let (mut documents, mut different, mut unknown) = (Vec::new(), false, Vec::new());
    for experiment in experiments {
        let finding = Finding::of(&source, experiment, head, credentials);
        different |= matches!(finding, Finding::Different(..));
        unknown.extend(finding.unknown());
        documents.push(finding.document());
        // As each is found: the next may take minutes.
        if !common.json {
            print(&laid_out(&finding.answer(), ink_for_stdout()))?;
        }
    }
    if common.json {
        print(&format!("{:#}\n", json!({ "experiments": documents })))?;
    }
    // A difference weighs more than what is not known: exit code 1, not 2.
    if different {
        return Ok(false);
    }
    if let Some(reason) = unknown.into_iter().next() {
        bail!(reason);
    }
    Ok(true)
}

/// Refused before any log is read, which may take long.
fn check_head(head: Option<&str>, experiments: usize) -> Result<()> {
    let Some(head) = head else { return Ok(()) };
    let digits = head.len() == 64 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(
        digits,
        "--head {head:?} is not a head: it has {} characters, and must be 64 hexadecimal digits",
        head.len()
    );
    ensure!(
        experiments == 1,
        "--head belongs to one experiment; name it with --experiment"
    );
    Ok(())
}

impl Finding {
    /// Audits an experiment. One that cannot be audited does not keep the others from it.
    fn of(
        source: &LogSource,
        experiment: Option<String>,
        head: Option<&str>,
        credentials: &Credentials,
    ) -> Self {
        let verdict = source
            .open(experiment.as_deref(), credentials)
            .and_then(|mut log| audit::audit(&mut log, head));
        match verdict {
            Ok(Verdict::Equal(audited)) => Self::Equal(audited),
            Ok(Verdict::Different(audited, difference)) => Self::Different(audited, difference),
            Err(error) => Self::Failed(experiment, error),
        }
    }

    /// Why nothing can be said for certain, if so.
    fn unknown(&self) -> Option<String> {
        match self {
            Self::Equal(audited) if audited.recomputed => None,
            // Equal hashes alone are not what the command promises, so it must not end with 0.
            Self::Equal(audited) if audited.values_version < VALUES_VERSION => {
                let version = audited.values_version;
                Some(format!(
                    "{} was decided with values version {version}, and this program has {VALUES_VERSION}, so its actions, \
                     estimates and strategies were not recomputed; audit it with a debora that has {version} (`debora --version` \
                     tells)",
                    audited.experiment
                ))
            }
            Self::Equal(audited) => Some(format!(
                "the key of {} is not revealed, so its actions, estimates and strategies were not recomputed; audit it with \
                 an admin's API key, or once it is over",
                audited.experiment
            )),
            Self::Failed(Some(experiment), error) => {
                Some(format!("{experiment} cannot be audited: {error:#}"))
            }
            Self::Failed(None, error) => Some(format!("{error:#}")),
            _ => None,
        }
    }

    fn document(&self) -> Value {
        match self {
            Self::Equal(audited) => {
                let verdict = if audited.recomputed {
                    "equal"
                } else if audited.values_version < VALUES_VERSION {
                    "hashes equal, other values version"
                } else {
                    "hashes equal, key not revealed"
                };
                json!({ "verdict": verdict, "audited": audited })
            }
            Self::Different(audited, difference) => {
                let meaning = difference.meaning();
                json!({ "verdict": "different", "audited": audited, "difference": difference, "meaning": meaning })
            }
            Self::Failed(experiment, error) => {
                json!({ "verdict": "failed", "experiment": experiment, "error": format!("{error:#}") })
            }
        }
    }

    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        match self {
            Self::Equal(audited) => answer.paragraph(equal(audited)),
            Self::Different(audited, difference) => {
                let name = &audited.experiment;
                let before = counted(audited.decisions, "decision", "decisions");
                let mut sentences = vec![
                    Sentence::of(Tone::Alarm, format!("{name}: a difference."))
                        .and(Tone::Plain, format!(" At {difference}.")),
                ];
                sentences.extend(difference.meaning().map(Sentence::plain));
                sentences.push(Sentence::plain(format!("Equal before it: {before}.")));
                answer.paragraph(sentences);
            }
            Self::Failed(experiment, _) => {
                let name = experiment.as_deref().unwrap_or("The log");
                answer.paragraph([Sentence::of(Tone::Alarm, format!("{name}: not audited."))]);
            }
        }
        answer
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
    if let Some(epoch) = audited.open_epoch {
        sentences.push(Sentence::plain(format!(
            "Epoch {epoch} is open: {} of its outcomes are in no hash yet, {} are outstanding.",
            whole(audited.unhashed_outcomes),
            whole(audited.outstanding)
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
    let name = &audited.experiment;
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
