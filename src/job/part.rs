//! Jobs, and the parts that are measured of them.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::job::players::contestant;
use crate::job::{DEBORA, JobError, Loaded, Open, Story, warnings};
use crate::lab::metrics::{Run, UNSAFE_TOLERANCE, checkpoints};
use crate::lab::part::{PartPairs, part_indices};
use crate::lab::replicate::{Contestant, Experiment, Simulator};
use crate::lab::summary::{Broken, Promise, Summary};
use crate::lab::world::Truth;

/// Everything a measurement is determined by: what a shard carries beside its pairs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// `replicate` or `compare`.
    pub verb: String,
    /// The spec's text.
    pub text: String,
    /// The spec's file.
    pub file: String,
    /// What is replaced in the spec.
    pub overrides: Vec<(String, String)>,
    /// How rounds are simulated.
    pub simulator: Simulator,
    /// How many pairs the whole has.
    pub pairs: u64,
    /// Who plays; debora first.
    pub players: Vec<String>,
    /// The spec of the second run's world: its file and its text.
    pub other: Option<(String, String)>,
}

/// A job and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What was asked.
    pub job: Job,
    /// What a person must know first.
    pub warnings: Vec<String>,
    /// Whether the safe strategy's true margins are smaller than the stated ones.
    pub premise_false: bool,
    /// Of pair 0's first run; in the part that has it.
    pub story: Option<Story>,
    /// The pairs.
    pub shard: PartPairs,
}

/// What a measurement needs from outside.
pub struct Host<'a> {
    /// Opens the tables of worlds.
    pub open: &'a Open,
    /// Seconds since any fixed moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Told after each pair how many are done, of [`Job::pairs_in`].
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Once set, the measurement stops with an error.
    pub cancel: &'a AtomicBool,
}

/// A whole measurement, summed up.
pub struct Findings {
    /// The spec.
    pub loaded: Loaded,
    /// Player by player; debora first.
    pub summaries: Vec<(String, Summary)>,
    /// The promises that debora was measured to break.
    pub broken: Vec<Broken>,
}

impl Job {
    /// Pairs of debora alone. `other` is the spec of the second run's world: its file and its text.
    pub fn replicate(
        loaded: &Loaded,
        pairs: u64,
        simulator: Simulator,
        other: Option<(String, String)>,
    ) -> Self {
        Self {
            other,
            ..Self::new(
                "replicate",
                loaded,
                pairs,
                simulator,
                vec![DEBORA.to_owned()],
            )
        }
    }

    /// Pairs of these players, as [`choose`](crate::job::choose) gives them.
    pub fn compare(
        loaded: &Loaded,
        pairs: u64,
        simulator: Simulator,
        players: Vec<String>,
    ) -> Self {
        Self::new("compare", loaded, pairs, simulator, players)
    }

    fn new(
        verb: &str,
        loaded: &Loaded,
        pairs: u64,
        simulator: Simulator,
        players: Vec<String>,
    ) -> Self {
        let Loaded {
            text,
            file,
            overrides,
            ..
        } = loaded.clone();
        Self {
            verb: verb.to_owned(),
            text,
            file,
            overrides,
            simulator,
            pairs,
            players,
            other: None,
        }
    }

    /// How many pairs a share of the job measures, over all players.
    pub fn pairs_in(&self, shard: Option<(u64, u64)>) -> Result<u64, JobError> {
        let (number, of) = shard.unwrap_or((1, 1));
        let indices = part_indices(self.pairs, number, of)?;
        Ok((indices.end - indices.start) * self.players.len() as u64)
    }

    /// Measures a share of the job, `(number from 1, of how many)`: all of it without one. Also the seconds of each player.
    pub fn measure(
        &self,
        shard: Option<(u64, u64)>,
        host: &Host,
    ) -> Result<(Part, Vec<f64>), JobError> {
        let loaded = self.loaded()?;
        let experiment = self.experiment(&loaded, host.open)?;
        let (number, of) = shard.unwrap_or((1, 1));
        let indices = part_indices(self.pairs, number, of)?;
        let (mut players, mut seconds) = (Vec::new(), Vec::new());
        for (place, name) in (0..).zip(&self.players) {
            let (begun, before) = ((host.clock)(), place * (indices.end - indices.start));
            let progress = |done: u64| (host.progress)(before + done);
            let player = contestant(name, loaded.spec.problem.policy())?;
            let pairs = experiment.pairs(player, indices.clone(), &progress, host.cancel)?;
            seconds.push((host.clock)() - begun);
            players.push((name.clone(), pairs));
        }
        let mut story = Story::new();
        if indices.start == 0 {
            experiment.run_observed(Contestant::Debora, 0, 0, &mut |stretch| story.add(stretch))?;
        }
        let warnings = warnings(&loaded.plan, Some(&*experiment.worlds[0]));
        let story = (indices.start == 0).then_some(story);
        let truth = Truth::of(&loaded.spec.problem, &*experiment.worlds[0]);
        let premise_false = truth
            .margins_missing
            .iter()
            .any(|&missing| missing > UNSAFE_TOLERANCE);
        let shard = PartPairs::new(self.fingerprint(&loaded, host.open)?, self.pairs, players);
        Ok((
            Part {
                job: self.clone(),
                warnings,
                premise_false,
                story,
                shard,
            },
            seconds,
        ))
    }

    /// The spec, read again.
    pub fn loaded(&self) -> Result<Loaded, JobError> {
        Ok(Loaded::from_text(
            self.text.clone(),
            self.file.clone(),
            self.overrides.clone(),
        )?)
    }

    fn experiment(&self, loaded: &Loaded, open: &Open) -> Result<Experiment, JobError> {
        let mut experiment = loaded.experiment(self.simulator, open)?;
        if let Some((file, text)) = &self.other {
            let other = Loaded::from_text(text.clone(), file.clone(), Vec::new())?.world(open);
            let other = other.map_err(|error| JobError::OtherWorld {
                file: file.clone(),
                error,
            })?;
            experiment.worlds[1] = other.world;
            let same = |world: usize| {
                (
                    experiment.worlds[world].means().len(),
                    experiment.worlds[world].means()[0].len(),
                )
            };
            if same(0) != same(1) {
                return Err(JobError::OtherShape {
                    other: file.clone(),
                    file: self.file.clone(),
                });
            }
        }
        Ok(experiment)
    }

    /// What shards must agree on.
    fn fingerprint(&self, loaded: &Loaded, open: &Open) -> Result<String, JobError> {
        let other = match &self.other {
            Some((file, text)) => {
                Loaded::from_text(text.clone(), file.clone(), Vec::new())?
                    .world(open)?
                    .fingerprint
            }
            None => String::new(),
        };
        Ok(format!(
            "{} {} {:?} {other}",
            self.verb,
            loaded.world(open)?.fingerprint,
            self.simulator
        ))
    }

    /// The program's flags that, with the spec, give this job again.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--pairs {}", self.pairs)];
        if self.simulator == Simulator::Rounds {
            flags.push("--simulator rounds".into());
        }
        if self.verb == "compare" {
            flags.push(format!("--players {}", self.players[1..].join(",")));
        }
        flags.extend(
            self.other
                .as_ref()
                .map(|(file, _)| format!("--other-world {file}")),
        );
        flags.push("--out DIR".into());
        flags
    }
}

impl Part {
    /// The content of a shard's file: floats are written so that they are read back to the bit.
    pub fn to_json(&self) -> String {
        format!(
            "{}\n",
            serde_json::to_string(self).expect("numbers, texts and lists")
        )
    }

    /// The whole, from parts in any order. Parts may overlap where they agree.
    pub fn merge(mut parts: Vec<Part>) -> Result<Part, JobError> {
        let shards: Vec<PartPairs> = parts.iter().map(|part| part.shard.clone()).collect();
        let shard = PartPairs::merge(&shards)?;
        parts[0].check_shape(&shard)?;
        let story = parts.iter_mut().find_map(|part| part.story.take());
        let first = parts.swap_remove(0);
        Ok(Part {
            story,
            shard,
            ..first
        })
    }

    /// Every run must have the numbers the spec asks for: a file edited by hand may not.
    fn check_shape(&self, shard: &PartPairs) -> Result<(), JobError> {
        let problem = self.job.loaded()?.spec.problem;
        let (costs, checkpoints) = (
            problem.thresholds().len(),
            checkpoints(problem.horizon()).len(),
        );
        let fits = |run: &Run| {
            let regret = run.regret_curve.len();
            run.violations.len() == costs
                && run.violation_curve.len() == checkpoints
                && (regret == checkpoints || (regret == 0 && run.regret.is_none()))
        };
        let mut runs = shard
            .players
            .iter()
            .flat_map(|(_, pairs)| pairs)
            .flat_map(|pair| &pair.runs);
        if shard.players.is_empty() || shard.total == 0 || !runs.all(fits) {
            return Err(JobError::PartShape);
        }
        Ok(())
    }

    /// What a whole measurement found.
    pub fn findings(&self) -> Result<Findings, JobError> {
        let loaded = self.job.loaded()?;
        let summary = |pairs| Summary::of(&loaded.plan, pairs);
        let summaries: Vec<(String, Summary)> = self
            .shard
            .players
            .iter()
            .map(|(name, pairs)| (name.clone(), summary(pairs)))
            .collect();
        let mut broken = summaries[0].1.broken(&loaded.plan);
        if self.premise_false {
            // What rests on the safe strategy's margins is not promised then.
            broken.retain(|broken| broken.promise == Promise::Identical);
        }
        Ok(Findings {
            loaded,
            summaries,
            broken,
        })
    }
}
