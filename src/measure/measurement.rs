//! What to run, and running a part of it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::lab::metrics::UNSAFE_TOLERANCE;
use crate::lab::part::{PartPairs, part_indices};
use crate::lab::players::OwnPlayer;
use crate::lab::replicate::{Contestant, Experiment, Pair, Simulator};
use crate::lab::threads;
use crate::lab::world::{Truth, World};
use crate::measure::players::contestant;
use crate::measure::{
    DEBORA, FirstRun, MeasureError, OpenTable, Part, SpecText, warnings, world_gaps,
};
use crate::spec::{Simulated, SpecError};

/// What pairs of runs are measured for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredVerb {
    /// Debora alone: are the decisions of two runs the same?
    Replicate,
    /// Debora beside its rivals.
    Compare,
}

impl MeasuredVerb {
    /// As users type it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replicate => "replicate",
            Self::Compare => "compare",
        }
    }
}

/// Everything that determines a measurement: what a part carries beside its pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Measurement {
    /// What for.
    pub verb: MeasuredVerb,
    /// What is measured.
    pub spec: SpecText,
    /// How rounds are simulated.
    pub simulator: Simulator,
    /// How many pairs the whole has.
    pub pairs: u64,
    /// The names of the players; in a comparison debora first.
    pub players: Vec<String>,
    /// The spec of the second run's world, where that is another one. Nothing in it is replaced.
    pub other: Option<SpecText>,
}

/// A measurement as files hold it: texts, since a spec is known by what was written, and is checked again when read.
#[derive(Serialize, Deserialize)]
// The order of the fields is that of the files.
struct Written {
    verb: MeasuredVerb,
    text: String,
    file: String,
    overrides: Vec<(String, String)>,
    simulator: Simulator,
    pairs: u64,
    players: Vec<String>,
    /// File and text.
    other: Option<(String, String)>,
}

impl From<Measurement> for Written {
    fn from(measurement: Measurement) -> Self {
        let spec = measurement.spec;
        Self {
            verb: measurement.verb,
            text: spec.text,
            file: spec.file,
            overrides: spec.overrides,
            simulator: measurement.simulator,
            pairs: measurement.pairs,
            players: measurement.players,
            other: measurement.other.map(|other| (other.file, other.text)),
        }
    }
}

impl TryFrom<Written> for Measurement {
    type Error = SpecError;

    fn try_from(written: Written) -> Result<Self, SpecError> {
        let other = written
            .other
            .map(|(file, text)| SpecText::parse(text, file, Vec::new()))
            .transpose()?;
        Ok(Self {
            verb: written.verb,
            spec: SpecText::parse(written.text, written.file, written.overrides)?,
            simulator: written.simulator,
            pairs: written.pairs,
            players: written.players,
            other,
        })
    }
}

/// What a measurement needs from outside.
pub struct Io<'a> {
    /// Opens the tables of worlds.
    pub open: &'a OpenTable,
    /// Seconds since any fixed moment.
    pub clock: &'a dyn Fn() -> f64,
    /// Told after each pair how many are done, of [`Measurement::pairs_in`].
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Once set, the measurement stops with an error.
    pub cancel: &'a AtomicBool,
    /// On how many threads, which makes no difference to the result; `None` for one for each core.
    pub threads: Option<usize>,
    /// What is code, and stands in no file.
    pub own: &'a Own,
}

/// Players and a world that are given as code. A part knows them by their names alone: whoever measures a part has them.
#[derive(Default)]
pub struct Own {
    /// Those that a measurement may name beside the rivals.
    pub players: Vec<OwnPlayer>,
    /// The world of both runs, in place of the spec's.
    pub world: Option<Simulated>,
}

impl Measurement {
    /// Pairs of debora alone. `other` is the spec of the second run's world.
    pub fn replicate(
        spec: SpecText,
        pairs: u64,
        simulator: Simulator,
        other: Option<SpecText>,
    ) -> Self {
        Self {
            verb: MeasuredVerb::Replicate,
            spec,
            simulator,
            pairs,
            players: vec![DEBORA.to_owned()],
            other,
        }
    }

    /// The same of another player than debora.
    #[must_use]
    pub fn of_player(self, name: impl Into<String>) -> Self {
        Self {
            players: vec![name.into()],
            ..self
        }
    }

    /// Pairs of these players, as [`choose`](crate::measure::choose) gives them.
    pub fn compare(spec: SpecText, pairs: u64, simulator: Simulator, players: Vec<String>) -> Self {
        Self {
            verb: MeasuredVerb::Compare,
            spec,
            simulator,
            pairs,
            players,
            other: None,
        }
    }

    /// How many pairs a part has, over all players.
    pub fn pairs_in(&self, part: Option<(u64, u64)>) -> Result<u64, MeasureError> {
        let indices = self.indices(part)?;
        Ok((indices.end - indices.start) * self.players.len() as u64)
    }

    fn indices(&self, part: Option<(u64, u64)>) -> Result<Range<u64>, MeasureError> {
        // The whole is the one part of one.
        let (number, of) = part.unwrap_or((1, 1));
        Ok(part_indices(self.pairs, number, of)?)
    }

    /// Measures a part, `(number from 1, of how many)`: the whole without one. Also the seconds of each player.
    pub fn measure(
        &self,
        part: Option<(u64, u64)>,
        io: &Io,
    ) -> Result<(Part, Vec<f64>), MeasureError> {
        let indices = self.indices(part)?;
        // Tables may hold millions of rows: both worlds are built here, and fingerprint and experiment take them.
        // Built before anything is measured, so that a wrong table is refused at once.
        let world = match &io.own.world {
            Some(world) => world.clone(),
            None => self.spec.world(io.open)?,
        };
        let other = self.other_world(io.open)?;
        let mut experiment = self.spec.experiment(&world, self.simulator);
        if let Some(other) = &other {
            experiment.worlds[1] = self.of_same_shape(&*world.world, other)?;
        }
        let (players, seconds) = self.play(&experiment, indices.clone(), io)?;
        let fingerprint = self.fingerprint(&world, other.as_ref());
        let pairs = PartPairs::new(fingerprint, self.pairs, players);
        let part = self.part(&experiment, io.own, indices.start == 0, pairs)?;
        Ok((part, seconds))
    }

    /// Measures debora's pairs one after the other on this thread for as long as `go_on` says so, the first in any case, up to
    /// the number asked for. What comes back is the whole of a measurement of the pairs that were run.
    pub fn measure_while(
        mut self,
        open: &OpenTable,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Part, MeasureError> {
        let world = self.spec.world(open)?;
        let experiment = self.spec.experiment(&world, self.simulator);
        let mut pairs = vec![experiment.pair(Contestant::Debora, 0)?];
        while (pairs.len() as u64) < self.pairs && go_on() {
            pairs.push(experiment.pair(Contestant::Debora, pairs.len() as u64)?);
        }
        // What was found must not depend on what was asked for, but never run.
        self.pairs = pairs.len() as u64;
        let fingerprint = self.fingerprint(&world, None);
        let players = vec![(DEBORA.to_owned(), pairs)];
        self.part(
            &experiment,
            &Own::default(),
            true,
            PartPairs::new(fingerprint, self.pairs, players),
        )
    }

    /// Pairs, with what a person must know of the world that they met.
    fn part(
        &self,
        experiment: &Experiment,
        own: &Own,
        begins: bool,
        pairs: PartPairs,
    ) -> Result<Part, MeasureError> {
        let world = &*experiment.worlds[0];
        Ok(Part {
            measurement: self.clone(),
            warnings: warnings(&self.spec.plan, Some(world)),
            premise_false: self.premise_is_false(world),
            gaps: world_gaps(&self.spec.plan, world),
            // One part has pair 0, so the first run is observed once however the work is divided.
            first_run: begins
                .then(|| self.first_run(experiment, own))
                .transpose()?,
            pairs,
        })
    }

    /// Each player's pairs, and the seconds they took.
    #[expect(clippy::type_complexity, reason = "what a shard is made of")]
    fn play(
        &self,
        experiment: &Experiment,
        indices: Range<u64>,
        io: &Io,
    ) -> Result<(Vec<(String, Vec<Pair>)>, Vec<f64>), MeasureError> {
        let mut players = Vec::new();
        let mut seconds = Vec::new();
        let mut before = 0;
        let threads = io.threads.unwrap_or_else(threads::cores);
        for name in &self.players {
            let begun = (io.clock)();
            // One player after the other, each on all threads: its seconds are then its own.
            let player = contestant(name, self.spec.problem().policy(), &io.own.players)?;
            // All players share one count, as there is one bar to watch.
            let progress = |done: u64| (io.progress)(before + done);
            // Worlds are keyed by pair and member, not by player: all of them meet the same data.
            let pairs =
                experiment.pairs_on(threads, player, indices.clone(), &progress, io.cancel)?;
            seconds.push((io.clock)() - begun);
            before += pairs.len() as u64;
            players.push((name.clone(), pairs));
        }
        Ok((players, seconds))
    }

    /// Pair 0's first run of the first player once more, watched. Watching every run would keep all their strategies in memory.
    fn first_run(&self, experiment: &Experiment, own: &Own) -> Result<FirstRun, MeasureError> {
        let policy = self.spec.problem().policy();
        let player = contestant(&self.players[0], policy, &own.players)?;
        let mut first_run = FirstRun::new(experiment.worlds[0].means());
        experiment.run_observed(player, 0, 0, &mut |stretch| first_run.add(stretch))?;
        Ok(first_run)
    }

    pub(super) fn other_world(&self, open: &OpenTable) -> Result<Option<Simulated>, MeasureError> {
        let Some(other) = &self.other else {
            return Ok(None);
        };
        let world = other
            .world(open)
            .map_err(|error| MeasureError::OtherWorld {
                file: other.file.clone(),
                error,
            })?;
        Ok(Some(world))
    }

    /// The second run's world. The engine is that of the first spec, so the numbers of actions and costs must be the same.
    fn of_same_shape(
        &self,
        world: &dyn World,
        other: &Simulated,
    ) -> Result<Arc<dyn World>, MeasureError> {
        // Quantities and actions; their names and ranges may differ, as only draws are taken from it.
        let shape = |world: &dyn World| (world.means().len(), world.means()[0].len());
        if shape(world) == shape(&*other.world) {
            return Ok(Arc::clone(&other.world));
        }
        Err(MeasureError::OtherShape {
            other: self
                .other
                .as_ref()
                .map_or(String::new(), |spec| spec.file.clone()),
            file: self.spec.file.clone(),
        })
    }

    /// Whether the safe strategy's true margins are smaller than the stated ones.
    fn premise_is_false(&self, world: &dyn World) -> bool {
        Truth::of(self.spec.problem(), world)
            .margins_missing
            .iter()
            // With the room that unsafe rounds have for the rounding of floats.
            .any(|&missing| missing > UNSAFE_TOLERANCE)
    }

    /// What parts must agree on to be merged. The number of pairs is not in it, as a shard says that by itself.
    pub(super) fn fingerprint(&self, world: &Simulated, other: Option<&Simulated>) -> String {
        format!(
            "{} {} {:?} {}",
            self.verb.name(),
            world.fingerprint,
            // Both simulators have the same law but other draws, so their pairs do not mix.
            self.simulator,
            other.map_or("", |other| &other.fingerprint)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Stopped after any number of pairs, it is the measurement of so many, byte for byte.
    #[test]
    fn what_is_measured_until_told_to_stop_is_a_whole() {
        let text = "policy = 'soft'\nhorizon = 1e6\nrho = 0.3\nactions = ['a', 'b']\n[[cost]]\nname = 'price'\nthreshold = 0.5\n\
            [world]\nkind = 'bernoulli'\nreward = [0.4, 0.6]\ncost.price = [0.3, 0.6]";
        let of = |pairs| {
            let spec = SpecText::parse(text.into(), "two.toml".into(), Vec::new()).unwrap();
            Measurement::replicate(spec, pairs, Simulator::Epochs, None)
        };
        let open = |_: &std::path::Path| unreachable!("only tables are read from files");
        for (most, asked, run) in [(0, 9, 1), (4, 9, 5), (9, 3, 3)] {
            let more = Cell::new(most);
            let go_on = || more.replace(more.get().max(1) - 1) > 0;
            let stopped = of(asked).measure_while(&open, &go_on).unwrap();
            let io = Io {
                open: &open,
                clock: &|| 0.0,
                progress: &|_| (),
                cancel: &AtomicBool::new(false),
                threads: None,
                own: &Own::default(),
            };
            let (whole, _) = of(run).measure(None, &io).unwrap();
            assert_eq!(stopped.to_json(), whole.to_json());
        }
    }
}
