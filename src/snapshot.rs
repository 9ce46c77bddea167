//! Snapshots: an engine as bytes, exactly, and back. **A snapshot holds the key**: anyone who reads it can predict
//! decisions.
//!
//! ```text
//! "debora snapshot" | version | values version | problem | key | facts of the run | SHA-256 of all before
//! ```
//!
//! Integers are little endian, floats their bits, texts and lists preceded by their length. Only facts are kept: what was
//! told, what was handed out, the exact sums behind looks, pick and estimates. Strategy, targets and rounded means are computed again by
//! the code that computed them first, so a snapshot cannot contradict them.
//!
//! How often each action was handed out and told in the open epoch follows from the key, too, and is compared with the draws
//! when a snapshot is read: except in a mixed strategy's epoch of more than [`REDRAWN_MAX`] rounds, where that would take as
//! long as the epoch did. Such a snapshot holds the counts handed out. They are checked for what can be
//! seen without drawing, and compared with the draws before the epoch can close: [`Engine::tell`] and its kin then refuse the
//! snapshot instead of telling the last round, so that no strategy ever rests on counts that the key does not give. Until then
//! each decision is right, being a function of key, strategy and round alone; only where the epoch ends is taken on trust.
//! A code over the counts, keyed or not, would not do instead: anyone who can write a snapshot has its key.

use sha2::{Digest as _, Sha256};

use crate::engine::Engine;
use crate::key::Key;
use crate::mean::{FIXED_ONE, Tally};
use crate::plan::Explore;
use crate::problem::{
    Cost, CostRange, Draft, Outside, Policy, Problem, Quantity, Range, SafeKnown,
};
use crate::record::EpochRecord;
use crate::{Error, Plan, VALUES_VERSION};

const MAGIC: &[u8] = b"debora snapshot";
const VERSION: u64 = 1;
const CHECKSUM: usize = 32;

/// The most rounds that are drawn again to read a snapshot: about a millisecond's work.
const REDRAWN_MAX: u64 = 1 << 16;

const NOT_THE_DRAWS: &str = "the actions handed out are not those of its key";
const MISCOUNTS_THE_TOLD: &str = "its tally does not count the rounds told";

impl Engine {
    /// The engine as bytes. They hold the key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer(MAGIC.to_vec());
        let with_counts = self.is_long();
        bytes.u64(VERSION);
        bytes.u64(u64::from(VALUES_VERSION));
        write_draft(&mut bytes, &self.problem().draft);
        bytes.text(&self.key.to_hex());
        bytes.0.extend(self.digest);
        bytes.u64(self.open.epoch);
        bytes.u64(self.open.first_round);
        bytes.u64(self.open.rounds);
        bytes.u64s(&self.open.counts);
        // What was decided from them follows from the counts and the key.
        if self.ends_part_of_trial() {
            self.trial_sums.iter().for_each(|&sum| bytes.u128(sum));
        }
        self.write_estimates(&mut bytes);
        bytes.u64(u64::from(with_counts));
        if with_counts {
            bytes.u64s(&self.asked);
        }
        bytes.u64s(self.tally.counts());
        self.tally.sums().iter().for_each(|&sum| bytes.u128(sum));
        bytes.u64(self.low_water);
        bytes.u64(self.told_above.len() as u64);
        for (&round, fixed) in &self.told_above {
            bytes.u64(round);
            bytes.u64s(fixed);
        }
        let checksum = Sha256::digest(&bytes.0);
        bytes.0.extend(checksum);
        bytes.0
    }

    /// Whether drawing the open epoch's decisions again would take long. Of a run that is over they are, as nothing would ever
    /// compare them later.
    fn is_long(&self) -> bool {
        let drawn = self.blocks.is_none() && self.strategy.only().is_none();
        drawn && self.open.rounds > REDRAWN_MAX && !self.is_done()
    }

    /// Compares the open epoch's counts with the draws, if they were read from a snapshot of a long epoch and not compared yet.
    ///
    /// Whatever would close the epoch does this first; it takes time in proportion to the rounds handed out.
    pub fn check_counts_read(&mut self) -> Result<(), Error> {
        if !self.counts_on_trust {
            return Ok(());
        }
        let mut asked = self.open.counts.clone();
        count_draws(self, self.open.first_round..self.next_round(), &mut asked);
        check(asked == self.asked, NOT_THE_DRAWS)?;
        check_untold(self)?;
        self.counts_on_trust = false;
        Ok(())
    }

    /// Per action the epoch of its estimate, and the sums behind it. The rounded means follow from them.
    fn write_estimates(&self, bytes: &mut Writer) {
        for (action, epoch) in self.estimates.epochs.iter().enumerate() {
            // One more, so that 0 can mean that the action has no estimate.
            bytes.u64(epoch.map_or(0, |epoch| epoch + 1));
            if epoch.is_some() {
                let sums = self.estimates.sums[action..].iter();
                sums.step_by(self.asked.len())
                    .for_each(|&sum| bytes.u128(sum));
            }
        }
    }

    /// The engine that [`Engine::to_bytes`] wrote; it goes on bit for bit.
    ///
    /// Of the open epoch's decisions at most 65,536 are drawn again, unless the run is over: if there are more, their counts are
    /// taken as read, and compared with the draws before the epoch closes, or by [`Engine::check_counts_read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(checked_content(bytes)?);
        let version = reader.u64()?;
        if version != VERSION {
            return Err(bad(&format!(
                "it has version {version}, and this program reads version {VERSION}"
            )));
        }
        let values = reader.u64()?;
        if values != u64::from(VALUES_VERSION) {
            // What is computed again must come out as it did: with other values the run could change in mid-epoch.
            return Err(bad(&format!(
                "it has values version {values}, and this program has {VALUES_VERSION}"
            )));
        }
        let problem = read_draft(&mut reader)?.build()?;
        let engine = read_run(&mut reader, problem)?;
        check(reader.0.is_empty(), "there are extra bytes after its end")?;
        Ok(engine)
    }
}

/// What stands between the first word and the checksum, if both are right.
fn checked_content(bytes: &[u8]) -> Result<&[u8], Error> {
    let (content, checksum) = bytes
        .split_at_checked(bytes.len().saturating_sub(CHECKSUM))
        .unwrap_or_default();
    if !content.starts_with(MAGIC) {
        return Err(bad("it lacks the snapshot header"));
    }
    // Against accidents, not against people: anyone who can write a snapshot can hash it.
    if Sha256::digest(content)[..] != *checksum {
        return Err(bad("its checksum is wrong, so it is damaged or incomplete"));
    }
    Ok(&content[MAGIC.len()..])
}

fn bad(reason: &str) -> Error {
    Error::Snapshot {
        reason: reason.to_owned(),
    }
}

fn check(holds: bool, rule: &str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(bad(rule)) }
}

/// Reads a run in the order in which it is computed: the epoch, its estimates, its strategy, its rounds, what was told.
///
/// Every number is checked against the others: a snapshot may come from another program, and an engine that contradicts
/// itself would fail rounds later, where nobody sees why.
fn read_run(reader: &mut Reader, problem: Problem) -> Result<Engine, Error> {
    let key = Key::from_hex(&reader.text()?)?;
    let mut engine = Engine::with_plan(Plan::of(problem).into(), key);
    engine.digest = reader.take(32)?.try_into().expect("32 bytes");
    let rounds = read_epoch(reader, &mut engine)?;
    read_trial(reader, &mut engine)?;
    read_estimates(reader, &mut engine)?;
    engine.open_epoch();
    if reader.choice([false, true])? {
        read_asked(reader, &mut engine, rounds)?;
    } else {
        hand_out_again(&mut engine, rounds)?;
    }
    read_tally(reader, &mut engine)?;
    read_told(reader, &mut engine)?;
    check_told(&engine)?;
    Ok(engine)
}

/// Reads the open epoch; returns how many of its rounds are handed out.
fn read_epoch(reader: &mut Reader, engine: &mut Engine) -> Result<u64, Error> {
    let horizon = engine.problem().horizon();
    let epoch = reader.u64()?;
    let first_round = reader.u64()?;
    let rounds = reader.u64()?;
    let counts = reader.u64s(engine.asked.len())?;
    let before = counts
        .iter()
        .try_fold(1u64, |sum, &count| sum.checked_add(count));
    check(
        epoch < engine.plan().epochs_max,
        "its epoch is beyond the last",
    )?;
    check(
        before == Some(first_round) && first_round <= horizon,
        "its counts do not lead to its epoch's first round",
    )?;
    check(
        (epoch == 0) == (first_round == 1),
        "its epoch does not fit its first round",
    )?;
    // After the check above, which keeps the subtraction from wrapping.
    check(
        rounds <= horizon + 1 - first_round,
        "its epoch goes beyond the horizon",
    )?;
    engine.asked.clone_from(&counts);
    let looks = engine.open.looks.take().filter(|_| epoch == 0);
    engine.open = EpochRecord::opening(epoch, first_round, counts);
    engine.open.looks = looks;
    check(
        explores_in_step(engine),
        "its counts are not those of its plan's exploration",
    )?;
    Ok(rounds)
}

/// Whether the open epoch can begin with its counts, as far as exploration says: permuted blocks bring all actions from look to
/// look together.
fn explores_in_step(engine: &Engine) -> bool {
    let counts = &engine.open.counts;
    let together = counts.iter().all(|count| *count == counts[0]);
    match &engine.plan.trial {
        Some(trial) => {
            // One epoch for each count that is reached before.
            let mut ends: Vec<u64> = engine.looks.iter().map(|look| look.count).collect();
            ends.push(trial.count);
            ends.dedup();
            let reached = ends.iter().position(|&end| end == counts[0]);
            let epoch = reached.map_or(0, |place| place as u64 + 1);
            together && (counts[0] == 0 || reached.is_some()) && engine.open.epoch == epoch
        }
        None => engine.exploring() != Some(Explore::Blocks) || (together && counts[0] == 0),
    }
}

/// Reads the sums behind the open epoch's look or pick, if one was due, and decides again.
fn read_trial(reader: &mut Reader, engine: &mut Engine) -> Result<(), Error> {
    if !engine.ends_part_of_trial() {
        return Ok(());
    }
    engine.trial_sums = (0..engine.asked.len())
        .map(|action| reader.sum(engine.open.counts[action]))
        .collect::<Result<_, _>>()?;
    engine.look_and_pick();
    Ok(())
}

fn read_tally(reader: &mut Reader, engine: &mut Engine) -> Result<(), Error> {
    let quantities = engine.problem().quantities();
    let counts = reader.u64s(engine.asked.len())?;
    let sums = (0..counts.len() * quantities)
        .map(|_| reader.u128())
        .collect::<Result<_, _>>()?;
    engine.tally = Tally::from_parts(quantities, counts, sums);
    check(
        engine.tally.impossible_sum().is_none(),
        "a sum exceeds its count",
    )
}

/// Reads the low-water mark and the feedback told above it.
fn read_told(reader: &mut Reader, engine: &mut Engine) -> Result<(), Error> {
    let quantities = engine.problem().quantities();
    engine.low_water = reader.u64()?;
    let entries = reader.u64()?;
    for _ in 0..entries {
        let round = reader.u64()?;
        let fixed = reader.u64s(quantities)?;
        check(
            fixed.iter().all(|&value| value <= FIXED_ONE),
            "feedback is outside its range",
        )?;
        let before = engine.told_above.insert(round, fixed.into_boxed_slice());
        check(before.is_none(), "a round was told twice")?;
    }
    Ok(())
}

fn read_estimates(reader: &mut Reader, engine: &mut Engine) -> Result<(), Error> {
    let actions = engine.asked.len();
    for action in 0..actions {
        // Written as one more than the epoch; 0 means that the action has no estimate.
        let epoch = reader.u64()?.checked_sub(1);
        let count = engine.open.counts[action];
        let estimated_count = engine.plan().estimated_count(count);
        check(
            epoch.is_some() == estimated_count.is_some(),
            "an action's estimate does not fit its count",
        )?;
        if let (Some(epoch), Some(count)) = (epoch, estimated_count) {
            check(
                epoch > 0 && epoch <= engine.open.epoch,
                "an estimate refers to an epoch that has not happened",
            )?;
            // Sums only: the offsets that round their means come from the key.
            for place in 0..engine.problem().quantities_estimated() {
                engine.estimates.sums[place * actions + action] = reader.sum(count)?;
            }
            engine.estimates.epochs[action] = Some(epoch);
            engine.round_means(action as u32);
        }
    }
    Ok(())
}

/// Draws the open epoch's decisions again; a pure strategy has one action for all, and whole blocks have known counts.
fn hand_out_again(engine: &mut Engine, rounds: u64) -> Result<(), Error> {
    // Counts of millions of rounds are common here, and with one action there is nothing to draw.
    let too_many = "more rounds are handed out than its epoch has";
    if engine.blocks.is_some() {
        let room = engine.last_round + 1 - engine.open.first_round;
        check(rounds <= room, too_many)?;
        for (action, count) in (0..).zip(engine.block_counts(rounds)) {
            engine.count_as_asked(action, count);
        }
        return Ok(());
    }
    if let Some(action) = engine.strategy.only() {
        let room = engine
            .target(action)
            .map(|target| target - engine.asked[action as usize]);
        check(room.is_none_or(|room| rounds <= room), too_many)?;
        engine.count_as_asked(action, rounds);
        return Ok(());
    }
    // One by one, as only the draws say which action had how many of them.
    let mut actions = [0; 64];
    let mut left = rounds;
    while left > 0 {
        check(!engine.handed_out, too_many)?;
        let room = left.min(actions.len() as u64) as usize;
        left -= engine.ask_into(&mut actions[..room]) as u64;
    }
    Ok(())
}

/// Reads how often each action was handed out: `rounds` in the open epoch, and no action beyond what ends it.
fn read_asked(reader: &mut Reader, engine: &mut Engine, rounds: u64) -> Result<(), Error> {
    let asked = reader.u64s(engine.asked.len())?;
    let mut at_target = 0;
    for (action, asked) in (0..).zip(asked) {
        let more = asked.checked_sub(engine.asked[action as usize]);
        let more = more.ok_or_else(|| bad(NOT_THE_DRAWS))?;
        let target = engine.target(action);
        let probability = engine.strategy.probabilities()[action as usize];
        // As many as are left at most, as a sum of any numbers could wrap.
        let possible = more <= rounds - engine.open.rounds && (more == 0 || probability > 0.0);
        check(
            possible && target.is_none_or(|target| asked <= target),
            NOT_THE_DRAWS,
        )?;
        at_target += u32::from(target == Some(asked));
        engine.count_as_asked(action, more);
    }
    engine.counts_on_trust = true;
    // Only of a long epoch: elsewhere the counts are not taken on trust.
    check(
        engine.open.rounds == rounds && at_target <= 1 && engine.is_long(),
        NOT_THE_DRAWS,
    )
}

/// What is told must be rounds handed out, must leave one open unless the run is over, and must add up to the tally.
fn check_told(engine: &Engine) -> Result<(), Error> {
    let first = engine.open.first_round;
    let low = engine.low_water;
    let next = engine.next_round();
    check(
        (first..=next).contains(&low),
        "its told rounds are not those handed out",
    )?;
    check(
        engine.is_done() || !engine.handed_out || low < next,
        "its epoch is told and not closed",
    )?;
    // The low-water mark itself is open, or it would be higher.
    check(
        engine
            .told_above
            .keys()
            .all(|round| (low + 1..next).contains(round)),
        "its told rounds are not in order",
    )?;
    if engine.counts_on_trust {
        return check_told_on_trust(engine);
    }
    // Decisions are functions of their rounds, so the tally's counts can be had again from which rounds are told.
    check(
        told_counts(engine) == engine.tally.counts(),
        MISCOUNTS_THE_TOLD,
    )
}

/// What can be said of the tally of a long epoch without drawing many of its rounds.
fn check_told_on_trust(engine: &Engine) -> Result<(), Error> {
    check(!engine.is_done(), "its run is over")?;
    let told = engine.tally.counts();
    let within = (0..told.len())
        .all(|action| (engine.open.counts[action]..=engine.asked[action]).contains(&told[action]));
    // After that no sum can wrap: these numbers are at most those handed out, which are within the horizon.
    let untold = || engine.asked.iter().sum::<u64>() - told.iter().sum::<u64>();
    check(
        within && untold() == engine.outstanding_count(),
        MISCOUNTS_THE_TOLD,
    )?;
    if engine.outstanding_count() <= REDRAWN_MAX {
        check_untold(engine)?;
    }
    Ok(())
}

/// The tally counts what is handed out except the rounds that are not told.
fn check_untold(engine: &Engine) -> Result<(), Error> {
    let mut counts = engine.tally.counts().to_vec();
    count_draws(engine, engine.outstanding(), &mut counts);
    check(counts == engine.asked, MISCOUNTS_THE_TOLD)
}

fn told_counts(engine: &Engine) -> Vec<u64> {
    let mut counts = engine.open.counts.clone();
    let first = engine.open.first_round;
    let low = engine.low_water;
    let above = engine.told_above.keys().copied();
    if let Some(action) = engine.strategy.only() {
        counts[action as usize] += low - first + above.len() as u64;
        return counts;
    }
    let mut drawn = first..low;
    if engine.blocks.is_some() {
        // Drawing every block up to the low-water mark again would take as long as the epoch did.
        let told = engine.block_counts(low - first);
        counts
            .iter_mut()
            .zip(told)
            .for_each(|(count, told)| *count += told);
        drawn = low..low;
    }
    count_draws(engine, drawn.chain(above), &mut counts);
    counts
}

/// Counts the actions of rounds of the open epoch, drawn again.
fn count_draws(engine: &Engine, rounds: impl Iterator<Item = u64>, counts: &mut [u64]) {
    let mut actions = [0; 64];
    let mut rounds = rounds.peekable();
    while rounds.peek().is_some() {
        let some: Vec<u64> = rounds.by_ref().take(actions.len()).collect();
        let actions = &mut actions[..some.len()];
        engine.decide_many(some, actions);
        actions
            .iter()
            .for_each(|&action| counts[action as usize] += 1);
    }
}

/// The problem as the user stated it: scaled to the unit interval and back, a range or threshold might lose a bit.
fn write_draft(bytes: &mut Writer, draft: &Draft) {
    bytes.u64(match draft.policy {
        Policy::Free => 0,
        Policy::Soft => 1,
        Policy::Hard => 2,
    });
    bytes.u64(draft.actions.len() as u64);
    draft.actions.iter().for_each(|action| bytes.text(action));
    bytes.u64(draft.horizon);
    bytes.f64(draft.rho);
    bytes.f64(draft.delta);
    bytes.u64(u64::from(draft.paper));
    bytes.u64(draft.growth.map_or(0, |growth| u64::from(growth) + 1));
    bytes.u64(u64::from(draft.outside == Outside::Clip));
    write_quantity(bytes, &draft.reward);
    bytes.u64(draft.costs.len() as u64);
    for cost in &draft.costs {
        write_quantity(bytes, &cost.quantity);
        bytes.some(cost.threshold);
    }
    bytes.some(draft.explore);
    bytes.some(draft.caution);
    match &draft.safe {
        None => bytes.u64(0),
        Some((strategy, known)) => {
            // Costs or margins, as given: one computed from the other would round.
            let (which, values) = match known {
                SafeKnown::Costs(values) => (1, values),
                SafeKnown::Margins(values) => (2, values),
            };
            bytes.u64(which);
            bytes.f64s(strategy);
            bytes.f64s(values);
        }
    }
}

fn read_draft(reader: &mut Reader) -> Result<Draft, Error> {
    // Nothing is judged here: what is read goes through the same checks as a problem stated by hand.
    let policy = reader.choice([Policy::Free, Policy::Soft, Policy::Hard])?;
    let count = reader.u64()?;
    let actions = (0..count)
        .map(|_| reader.text())
        .collect::<Result<_, _>>()?;
    let horizon = reader.u64()?;
    let rho = reader.f64()?;
    let delta = reader.f64()?;
    let paper = reader.choice([false, true])?;
    let growth = match reader.u64()?.checked_sub(1) {
        None => None,
        Some(growth) => Some(u32::try_from(growth).map_err(|_| bad("its growth is too large"))?),
    };
    let outside = reader.choice([Outside::Refuse, Outside::Clip])?;
    let reward = reader.quantity()?;
    let count = reader.u64()?;
    let costs = (0..count)
        .map(|_| {
            Ok(Cost {
                quantity: reader.quantity()?,
                threshold: reader.some()?,
            })
        })
        .collect::<Result<_, Error>>()?;
    let explore = reader.some()?;
    let caution = reader.some()?;
    let safe = read_safe(reader)?;
    Ok(Draft {
        policy,
        actions,
        horizon,
        rho,
        delta,
        paper,
        growth,
        outside,
        reward,
        costs,
        explore,
        caution,
        safe,
    })
}

fn read_safe(reader: &mut Reader) -> Result<Option<(Vec<f64>, SafeKnown)>, Error> {
    let which = reader.choice([0, 1, 2])?;
    if which == 0 {
        return Ok(None);
    }
    let strategy = reader.f64s()?;
    let values = reader.f64s()?;
    let known = if which == 1 {
        SafeKnown::Costs(values)
    } else {
        SafeKnown::Margins(values)
    };
    Ok(Some((strategy, known)))
}

fn write_quantity(bytes: &mut Writer, quantity: &Quantity) {
    bytes.text(&quantity.name);
    bytes.u64(quantity.by_action.len() as u64);
    for range in quantity.by_action.iter().chain([&quantity.range]) {
        bytes.f64(range.low);
        bytes.f64(range.high);
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.0.extend(value.to_le_bytes());
    }

    fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    fn some(&mut self, value: Option<f64>) {
        self.u64(u64::from(value.is_some()));
        value.into_iter().for_each(|value| self.f64(value));
    }

    /// Without their number, which the reader knows.
    fn u64s(&mut self, values: &[u64]) {
        values.iter().for_each(|&value| self.u64(value));
    }

    fn f64s(&mut self, values: &[f64]) {
        self.u64(values.len() as u64);
        values.iter().for_each(|&value| self.f64(value));
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
    }
}

/// What is left to read. Lists are read entry by entry, so a false length ends with the bytes, not with the memory.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| bad("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(
            self.take(8)?.try_into().expect("8 bytes"),
        ))
    }

    fn u128(&mut self) -> Result<u128, Error> {
        Ok(u128::from_le_bytes(
            self.take(16)?.try_into().expect("16 bytes"),
        ))
    }

    fn f64(&mut self) -> Result<f64, Error> {
        self.u64().map(f64::from_bits)
    }

    fn u64s(&mut self, count: usize) -> Result<Vec<u64>, Error> {
        (0..count).map(|_| self.u64()).collect()
    }

    fn f64s(&mut self) -> Result<Vec<f64>, Error> {
        let count = self.u64()?;
        (0..count).map(|_| self.f64()).collect()
    }

    /// The sum of so many values in [0, 1].
    fn sum(&mut self, count: u64) -> Result<u128, Error> {
        let sum = self.u128()?;
        let most = u128::from(count) * u128::from(FIXED_ONE);
        check(sum <= most, "a sum exceeds its count")?;
        Ok(sum)
    }

    fn text(&mut self) -> Result<String, Error> {
        // A length that this machine cannot address is beyond the bytes, too, and `take` says so.
        let length = usize::try_from(self.u64()?).unwrap_or(usize::MAX);
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| bad("a name is not text"))
    }

    fn quantity(&mut self) -> Result<Quantity, Error> {
        let name = self.text()?;
        let own = self.u64()?;
        let by_action: Vec<Range> = (0..own).map(|_| self.range()).collect::<Result<_, _>>()?;
        let range = self.range()?;
        let ranges = by_action.iter().map(|own| [own.low, own.high]);
        let read = match own {
            0 => CostRange::All([range.low, range.high]),
            _ => CostRange::Each(ranges.collect()),
        };
        // Made as any other is, so that hull and ranges cannot contradict each other.
        let quantity = Quantity::with_ranges(name, read);
        let same = (&quantity.by_action, quantity.range) == (&by_action, range);
        // NaN is unequal to itself, and refused with the problem.
        check(
            same || by_action.is_empty(),
            "a cost's ranges do not make up its own",
        )?;
        Ok(quantity)
    }

    fn range(&mut self) -> Result<Range, Error> {
        Ok(Range {
            low: self.f64()?,
            high: self.f64()?,
        })
    }

    fn some(&mut self) -> Result<Option<f64>, Error> {
        match self.choice([false, true])? {
            true => self.f64().map(Some),
            false => Ok(None),
        }
    }

    fn choice<T: Clone, const N: usize>(&mut self, choices: [T; N]) -> Result<T, Error> {
        let number = self.u64()?;
        let choice = usize::try_from(number)
            .ok()
            .and_then(|number| choices.get(number));
        choice.cloned().ok_or_else(|| {
            bad(&format!(
                "it has {number} where only numbers below {N} mean something"
            ))
        })
    }
}
