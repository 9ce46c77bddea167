//! A player of one's own in the race: Thompson sampling, about forty lines, beside debora.
//!
//! cargo run --release --example thompson

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use debora::key::Label;
use debora::lab::players::{OwnPlayer, Player, Stream, beta};
use debora::lab::replicate::{Contestant, Experiment, Simulator};
use debora::lab::{metrics, summary::Summary, world::Bernoulli};
use debora::{Key, Plan, Problem, Strategy, Tally, WorldKey};

struct Thompson {
    key: Key,
    round: u64,
    tally: Tally,
    strategy: Strategy,
}

impl Thompson {
    fn new(problem: &Problem, key: Key) -> Self {
        let actions = problem.actions().len();
        let mut player = Self {
            key,
            round: 1,
            tally: Tally::new(actions, problem.quantities()),
            strategy: Strategy::pure(0, actions),
        };
        player.decide();
        player
    }

    /// Plays the action with the largest draw from its posterior. Keyed by the round: both runs of a pair draw alike.
    fn decide(&mut self) {
        let draw = |action: u32| {
            let count = self.tally.counts()[action as usize] as f64;
            let ones = if count > 0.0 {
                self.tally.mean(action, 0) * count
            } else {
                0.0
            };
            let mut stream = Stream::new(self.key, Label::Player, [self.round, u64::from(action)]);
            beta(&mut stream, ones + 1.0, count - ones + 1.0)
        };
        let actions = 0..self.tally.counts().len() as u32;
        let best = actions.max_by(|one, two| draw(*one).total_cmp(&draw(*two)));
        self.strategy.become_pure(best.expect("an action"));
    }
}

impl Player for Thompson {
    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn rounds_max(&self) -> Option<u64> {
        Some(1)
    }

    fn tell(&mut self, stretch: &Tally) {
        self.tally.merge(stretch);
        self.round += 1;
        self.decide();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let problem = Problem::free(["a", "b", "c"], 20_000, 0.3).build()?;
    let world = Arc::new(Bernoulli::new(&problem, &[vec![0.4, 0.5, 0.6]])?);
    let experiment = Experiment {
        worlds: [world.clone(), world],
        key: Key::from(42u64),
        world_key: WorldKey::from(7u64),
        simulator: Simulator::Epochs,
        checkpoints: metrics::checkpoints(problem.horizon()),
        plan: Arc::new(Plan::of(problem)),
    };
    let mine = OwnPlayer::new("thompson", |plan, key| {
        Box::new(Thompson::new(&plan.problem, key))
    });
    for (name, player) in [
        ("debora", Contestant::Debora),
        ("mine", Contestant::Own(&mine.per_round())),
    ] {
        let pairs = experiment.pairs(player, 0..100, &|_| (), &AtomicBool::new(false))?;
        let summary = Summary::of(&experiment.plan, &pairs);
        let regret = summary.regret.expect("no limits").spread;
        println!(
            "{name}: identical in {} of {} pairs ({:.2} to {:.2}), regret {:.0} ({:.0} to {:.0})",
            summary.identical,
            summary.pairs,
            summary.interval[0],
            summary.interval[1],
            regret.mean,
            regret.p05,
            regret.p95
        );
    }
    Ok(())
}
