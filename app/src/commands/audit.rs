//! `debora audit`: every decision of a live experiment, recomputed.

use anyhow::{Result, anyhow, bail, ensure};
use debora::measure::answer::{Answer, Sentence, Tone};
use serde_json::{Value, json};

use crate::args::Common;
use crate::audit::{self, Credentials, LogSource, Verdict, not_recomputed, verdict_word};
use crate::commands::print;
use crate::terminal::{self, ink_for_stdout, json_text, laid_out, one_line};

/// What came of one experiment.
struct Finding {
    /// Its name, where there may be several.
    experiment: Option<String>,
    /// Whether a published head was looked for.
    with_head: bool,
    /// What was found, or why it cannot be audited.
    verdict: Result<Verdict>,
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
    let experiments = source
        .experiments(experiment.or(named.as_deref()))
        .map_err(|error| anyhow!(one_line(&error)))?;
    check_head(head, experiments.len())?;
    let (mut documents, mut different, mut unknown) = (Vec::new(), false, Vec::new());
    for experiment in experiments {
        let finding = Finding::of(&source, experiment, head, credentials);
        different |= matches!(finding.verdict, Ok(Verdict::Different(..)));
        unknown.extend(finding.unknown());
        documents.push(finding.document());
        // As each is found: the next may take minutes.
        if !common.json {
            print(&laid_out(&finding.answer(), ink_for_stdout()))?;
        }
    }
    if common.json {
        print(&(json_text(&json!({ "experiments": documents })) + "\n"))?;
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
        Self {
            experiment,
            with_head: head.is_some(),
            verdict,
        }
    }

    /// Why nothing can be said for certain, if so.
    fn unknown(&self) -> Option<String> {
        match &self.verdict {
            // Equal hashes alone are not what the command promises, so it must not end with 0.
            Ok(Verdict::Equal(audited)) => not_recomputed(audited),
            Ok(Verdict::Different(..)) => None,
            Err(error) => Some(match &self.experiment {
                Some(experiment) => format!(
                    "{} cannot be audited: {}",
                    terminal::name(experiment),
                    one_line(error)
                ),
                None => one_line(error),
            }),
        }
    }

    fn document(&self) -> Value {
        match &self.verdict {
            Ok(verdict @ Verdict::Equal(audited)) => {
                json!({ "verdict": verdict_word(verdict), "audited": audited })
            }
            Ok(verdict @ Verdict::Different(audited, difference)) => {
                let meaning = difference.meaning();
                json!({
                    "verdict": verdict_word(verdict), "audited": audited, "difference": difference, "meaning": meaning
                })
            }
            Err(error) => {
                let experiment = &self.experiment;
                json!({ "verdict": "failed", "experiment": experiment, "error": format!("{error:#}") })
            }
        }
    }

    fn answer(&self) -> Answer {
        match &self.verdict {
            Ok(verdict) => {
                let mut answer = audit::finding(verdict);
                if self.with_head && matches!(verdict, Verdict::Equal(_)) {
                    let found = "The published head is in its chain.".to_owned();
                    answer.paragraph([Sentence::plain(found)]);
                }
                answer
            }
            Err(_) => {
                let name = self
                    .experiment
                    .as_deref()
                    .map_or("The log".into(), terminal::name);
                let mut answer = Answer::default();
                answer.paragraph([Sentence::of(Tone::Alarm, format!("{name}: not audited."))]);
                answer
            }
        }
    }
}
