//! The logic of live experiments: a group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then what they close, then the rest in order: none of the group is answered before
//! all of it is durable, so to their callers they happened at once. Experiments are locked in the order of their ids.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use debora::record::Kind;
use debora::spec::{OnWait, Spec};
use debora::{Engine, Key, Plan};

use crate::service::chain;
use crate::service::live::{Live, outstanding};
use crate::service::request::{
    Answer, Change, Create, Decided, NAME_MAX, Of, ROUNDS_MAX, Receipt, Refusal, Request, Sheet, Telling, beginning,
    is_id,
};
use crate::store::{Aside, EpochRow, Event, Experiment, Lease, Outcome, Progress, Status, Store};

/// Leases looked at for missing outcomes in one go, so that a long backlog does not hold up the rest.
const LEASES_A_TICK: usize = 256;

/// One node's writer.
pub struct Desk {
    store: Box<dyn Store>,
    live: BTreeMap<String, Live>,
}

type Answered = Result<Answer, Refusal>;
type Receipts = Result<Vec<Receipt>, Refusal>;

impl Desk {
    /// At an opened store.
    pub fn new(store: Box<dyn Store>) -> Self {
        Self { store, live: BTreeMap::new() }
    }

    /// Serves a group: each request is answered, and what the answers say is durable. If the store fails, nothing of the
    /// group is known to have happened.
    pub fn serve(&mut self, requests: &[Request], now: i64) -> Vec<Answered> {
        match self.transact(requests, now) {
            Ok(answers) => answers,
            Err(error) => {
                self.store.rollback();
                // What is in memory may be ahead of what is stored.
                self.live.clear();
                let detail = format!("{error:#}");
                requests.iter().map(|_| Err(Refusal::Store { detail: detail.clone() })).collect()
            }
        }
    }

    /// The experiments whose missing outcomes may be due.
    pub fn waiting(&mut self) -> Result<Vec<String>> {
        let rows = self.store.experiments()?;
        let open = rows.into_iter().filter(|(_, progress)| matches!(progress.status, Status::Running | Status::Paused));
        let mut ids = Vec::new();
        for (experiment, progress) in open {
            if live_at(&mut self.live, &mut *self.store, &experiment.id, progress.epoch)?.rules.outcome_wait.is_some() {
                ids.push(experiment.id);
            }
        }
        Ok(ids)
    }

    fn transact(&mut self, requests: &[Request], now: i64) -> Result<Vec<Answered>> {
        self.store.begin()?;
        let mut answers: Vec<Option<Answered>> = requests.iter().map(|_| None).collect();
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            match request {
                Request::Create(create) => answers[place] = Some(self.create(create, now)?),
                Request::Decide { id, .. }
                | Request::Tell { id, .. }
                | Request::Change { id, .. }
                | Request::Tick { id } => groups.entry(id).or_default().push(place),
            }
        }
        for (id, places) in groups {
            let group: Vec<&Request> = places.iter().map(|&place| &requests[place]).collect();
            for (place, answer) in places.into_iter().zip(self.serve_one(id, &group, now)?) {
                answers[place] = Some(answer);
            }
        }
        self.store.commit()?;
        Ok(answers.into_iter().map(|answer| answer.expect("every request is answered")).collect())
    }

    fn create(&mut self, create: &Create, now: i64) -> Result<Answered> {
        let experiment = match draft(create, now)? {
            Ok(experiment) => experiment,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (engine, rules) = {
            let spec = Spec::parse(&experiment.spec, &experiment.id)?;
            (Engine::new(spec.problem, experiment.key), spec.service)
        };
        let head = chain::genesis(&experiment.spec, &chain::key_hash(experiment.salt, experiment.key));
        let progress = beginning(engine.problem().actions().len(), head, engine.digest());
        let id = experiment.id.clone();
        if !self.store.create(&experiment, &progress, &opened(&engine, now)?)? {
            let same = self.store.experiment(&id)?.is_some_and(|(before, _)| {
                before.spec == create.spec && create.key.is_none_or(|key| key == before.key)
            });
            return Ok(if same { Ok(Answer::Created { id, repeated: true }) } else { Err(Refusal::IdTaken { id }) });
        }
        self.store.add_event(&id, &Event { at: now, actor: create.actor.clone(), what: "created".into() })?;
        self.live.insert(id.clone(), Live::new(engine, rules));
        Ok(Ok(Answer::Created { id, repeated: false }))
    }

    /// Serves the requests of one experiment.
    fn serve_one(&mut self, id: &str, group: &[&Request], now: i64) -> Result<Vec<Answered>> {
        let Some(progress) = self.store.lock(id)? else {
            return Ok(group.iter().map(|_| Err(Refusal::NoExperiment { id: id.to_owned() })).collect());
        };
        let live = live_at(&mut self.live, &mut *self.store, id, progress.epoch)?;
        let mut sitting = Sitting { id, store: &mut *self.store, live, before: progress.clone(), progress, now };
        let answers = sitting.serve(group)?;
        // A finished experiment is read again as its last epoch began.
        if sitting.progress.status == Status::Done {
            self.live.remove(id);
        }
        Ok(answers)
    }
}

/// The experiment in memory, read if it is not there or another node has closed its epoch.
fn live_at<'a>(
    live: &'a mut BTreeMap<String, Live>,
    store: &mut dyn Store,
    id: &str,
    epoch: u64,
) -> Result<&'a mut Live> {
    if live.get(id).is_none_or(|live| live.engine.epoch() != epoch) {
        let read = Live::read(store, id)?.ok_or_else(|| anyhow::anyhow!("experiment {id} has lost its rows"))?;
        live.insert(id.to_owned(), read);
    }
    Ok(live.get_mut(id).expect("inserted above"))
}

/// Checks what a new experiment is made of, and draws what is not given.
fn draft(create: &Create, now: i64) -> Result<Result<Experiment, Refusal>> {
    let id = match &create.id {
        Some(id) => id.clone(),
        None => chain::hex(&random::<8>()?),
    };
    if !is_id(&id) {
        return Ok(Err(Refusal::IdText { id }));
    }
    let spec = match Spec::parse(&create.spec, "spec") {
        Ok(spec) => spec,
        Err(error) => return Ok(Err(Refusal::Spec(error.to_string()))),
    };
    if spec.world.is_some() {
        return Ok(Err(Refusal::World));
    }
    if spec.key_given {
        return Ok(Err(Refusal::KeyInSpec));
    }
    let plan = Plan::of(spec.problem);
    if plan.blind && !create.blind {
        return Ok(Err(Refusal::Blind(crate::commands::warnings(&plan, None).swap_remove(0))));
    }
    let key = match create.key {
        Some(key) => key,
        None => Key::from(u128::from_be_bytes(random()?)),
    };
    Ok(Ok(Experiment { id, spec: create.spec.clone(), key, salt: random()?, created_at: now }))
}

/// Random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes)
}

/// The row of the epoch that an engine has just opened.
fn opened(engine: &Engine, now: i64) -> Result<EpochRow> {
    let record = serde_json::to_string(engine.open_record())?;
    Ok(EpochRow {
        epoch: engine.epoch(),
        record,
        snapshot: Some(engine.to_bytes()),
        opened_at: now,
        closed_at: None,
        rounds_hash: None,
        hash: None,
    })
}

/// One experiment within a transaction.
struct Sitting<'a> {
    id: &'a str,
    store: &'a mut dyn Store,
    live: &'a mut Live,
    before: Progress,
    progress: Progress,
    now: i64,
}

impl Sitting<'_> {
    fn serve(&mut self, group: &[&Request]) -> Result<Vec<Answered>> {
        let mut answers: Vec<Option<Answered>> = group.iter().map(|_| None).collect();
        for (place, receipts) in self.tell(group)? {
            answers[place] = Some(receipts.map(Answer::Told));
        }
        for (place, request) in group.iter().enumerate() {
            if let Request::Tick { .. } = request {
                answers[place] = Some(Ok(Answer::Ticked(self.impute_due()?)));
            }
        }
        self.live.move_fold_on(self.store, self.id, &self.progress)?;
        self.close_if_complete()?;
        self.decide_and_change(group, &mut answers)?;
        if self.progress != self.before {
            self.store.set_progress(self.id, &self.progress)?;
        }
        Ok(answers.into_iter().map(|answer| answer.expect("every request is answered")).collect())
    }

    fn decide_and_change(&mut self, group: &[&Request], answers: &mut [Option<Answered>]) -> Result<()> {
        let keys: Vec<&str> = group
            .iter()
            .filter_map(|request| match request {
                Request::Decide { request_key: Some(key), .. } => Some(key.as_str()),
                _ => None,
            })
            .collect();
        let known = if keys.is_empty() { Vec::new() } else { self.store.leases_of(self.id, &keys)? };
        let mut given: BTreeMap<String, Decided> = BTreeMap::new();
        for lease in known {
            let sheet = self.sheet_of(lease.epoch)?;
            given.insert(lease.request_key.clone().unwrap_or_default(), Decided { lease, sheet });
        }
        let mut leases = Vec::new();
        for (place, request) in group.iter().enumerate() {
            match request {
                Request::Decide { rounds, request_key, .. } => {
                    let before = request_key.as_ref().and_then(|key| given.get(key));
                    let decided = match before {
                        Some(decided) => repeated(decided, *rounds),
                        None => self.decide(*rounds, request_key.as_deref()),
                    };
                    if let (Ok(decided), None) = (&decided, before) {
                        leases.push(decided.lease.clone());
                        given.extend(request_key.clone().map(|key| (key, decided.clone())));
                    }
                    answers[place] = Some(decided.map(Answer::Decided));
                }
                Request::Change { change, actor, .. } => answers[place] = Some(self.change(*change, actor)?),
                _ => {}
            }
        }
        self.store.add_leases(self.id, &leases)
    }

    /// What an epoch's decisions were drawn from.
    fn sheet_of(&mut self, epoch: u64) -> Result<Arc<Sheet>> {
        if epoch == self.live.engine.epoch() {
            return Ok(Arc::clone(&self.live.sheet));
        }
        let row = self.store.epochs(self.id, epoch, 1)?.into_iter().next();
        let record: debora::EpochRecord = serde_json::from_str(&row.map_or(String::new(), |row| row.record))?;
        Ok(Arc::new(Sheet { actions: self.live.sheet.actions.clone(), strategy: record.strategy }))
    }

    /// Hands out the next rounds, fewer where the epoch ends; beyond its end, overtime or nothing.
    fn decide(&mut self, rounds: u64, request_key: Option<&str>) -> Result<Decided, Refusal> {
        let (id, progress) = (self.id.to_owned(), &mut self.progress);
        if rounds == 0 || rounds > ROUNDS_MAX {
            return Err(Refusal::Rounds { rounds });
        }
        if let Some(length) = request_key.map(str::len).filter(|length| !(1..=NAME_MAX).contains(length)) {
            return Err(Refusal::RequestKey { length });
        }
        match progress.status {
            Status::Running => {}
            Status::Paused => return Err(Refusal::Paused { id }),
            Status::Closed => return Err(Refusal::Closed { id }),
            Status::Done => return Err(Refusal::Done { id, horizon: self.live.engine.problem().horizon() }),
        }
        let overtime = self.live.ended(progress);
        let first = if overtime { progress.next_serial } else { progress.next_round };
        let mut actions = Vec::with_capacity(rounds as usize);
        if overtime {
            if self.live.rules.on_wait == OnWait::Hold {
                return Err(Refusal::Waiting { epoch: progress.epoch, outstanding: outstanding(progress) });
            }
            actions.extend((first..first + rounds).map(|serial| self.live.engine.overtime(serial).action));
            progress.next_serial += rounds;
            progress.overtime += rounds;
        } else {
            while (actions.len() as u64) < rounds && !self.live.ended(progress) {
                let action = self.live.engine.decide(progress.next_round).action;
                progress.next_round += 1;
                progress.decided[action as usize] += 1;
                actions.push(action);
            }
        }
        let request_key = request_key.map(str::to_owned);
        let lease = Lease { epoch: progress.epoch, overtime, first, actions, asked: rounds, request_key, at: self.now };
        Ok(Decided { lease, sheet: Arc::clone(&self.live.sheet) })
    }

    fn change(&mut self, change: Change, actor: &str) -> Result<Answered> {
        let id = || self.id.to_owned();
        let (to, what) = match (self.progress.status, change) {
            (Status::Closed, Change::Close) => return Ok(Ok(Answer::Changed(Status::Closed))),
            (Status::Closed, _) => return Ok(Err(Refusal::Closed { id: id() })),
            (Status::Done, _) => {
                return Ok(Err(Refusal::Done { id: id(), horizon: self.live.engine.problem().horizon() }));
            }
            (_, Change::Pause) => (Status::Paused, "paused"),
            (_, Change::Resume) => (Status::Running, "resumed"),
            (_, Change::Close) => (Status::Closed, "closed"),
        };
        if self.progress.status != to {
            self.progress.status = to;
            self.store.add_event(self.id, &Event { at: self.now, actor: actor.to_owned(), what: what.to_owned() })?;
        }
        Ok(Ok(Answer::Changed(to)))
    }

    /// Records the outcomes of all requests that tell, and gives each its receipts.
    fn tell(&mut self, group: &[&Request]) -> Result<Vec<(usize, Receipts)>> {
        let mut answers = Vec::new();
        let mut book = Book::default();
        for (place, request) in group.iter().enumerate() {
            let Request::Tell { outcomes, .. } = request else { continue };
            match self.check(outcomes) {
                Err(refusal) => answers.push((place, Err(refusal))),
                Ok(()) => book.requests.push((place, outcomes)),
            }
        }
        let outcomes: Vec<&Telling> = book.requests.iter().flat_map(|(_, outcomes)| outcomes.iter()).collect();
        book.receipts = vec![None; outcomes.len()];
        self.tell_rounds(&outcomes, &mut book.receipts)?;
        self.tell_overtime(&outcomes, &mut book.receipts)?;
        let mut receipts = book.receipts.into_iter().map(|receipt| receipt.expect("every outcome has a receipt"));
        for (place, outcomes) in book.requests {
            answers.push((place, Ok(receipts.by_ref().take(outcomes.len()).collect())));
        }
        Ok(answers)
    }

    fn check(&self, outcomes: &[Telling]) -> Result<(), Refusal> {
        if self.progress.status == Status::Closed {
            return Err(Refusal::Closed { id: self.id.to_owned() });
        }
        let problem = self.live.engine.problem();
        let mut fixed = vec![0; problem.quantities()];
        for (index, outcome) in outcomes.iter().enumerate() {
            let judged = problem.to_fixed(outcome.reward, &outcome.costs, &mut fixed);
            judged.map_err(|error| Refusal::Outcome { index, error })?;
        }
        Ok(())
    }

    fn tell_rounds(&mut self, outcomes: &[&Telling], receipts: &mut [Option<Receipt>]) -> Result<()> {
        let mut rows = Vec::new();
        // Where each round's first telling stands, here and among the rows.
        let mut firsts: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let Of::Round(round) = outcome.of else { continue };
            if round == 0 || round >= self.progress.next_round {
                receipts[place] = Some(Receipt::Unknown);
            } else if let std::collections::btree_map::Entry::Vacant(entry) = firsts.entry(round) {
                entry.insert((place, rows.len()));
                rows.push(self.row(round, outcome, false));
            }
        }
        let before = self.store.add_outcomes(self.id, &rows)?;
        self.count(&rows, &before);
        let late = self.tell_late(outcomes, &firsts, &before)?;
        for (place, outcome) in outcomes.iter().enumerate() {
            let Of::Round(round) = outcome.of else { continue };
            let Some(&(first, row)) = firsts.get(&round) else { continue };
            receipts[place] = Some(match &before[row] {
                Some(stored) if stored.imputed => aside_receipt(
                    late.get(&round).and_then(Option::as_ref),
                    outcome,
                    outcomes[first],
                    place == first,
                    Receipt::Late,
                ),
                Some(stored) => judge(same(outcome, stored.reward, &stored.costs)),
                None if place == first => Receipt::Recorded,
                None => judge(same(outcome, outcomes[first].reward, &outcomes[first].costs)),
            });
        }
        Ok(())
    }

    /// Logs outcomes of rounds that are imputed: per round, the aside that was there before.
    fn tell_late(
        &mut self,
        outcomes: &[&Telling],
        firsts: &BTreeMap<u64, (usize, usize)>,
        before: &[Option<Outcome>],
    ) -> Result<BTreeMap<u64, Option<Aside>>> {
        let imputed = |row: usize| before[row].as_ref().is_some_and(|stored| stored.imputed);
        let late = firsts.iter().filter(|(_, (_, row))| imputed(*row));
        let asides: Vec<Aside> =
            late.map(|(&round, &(first, _))| aside((0, false), round, outcomes[first], self.now)).collect();
        if asides.is_empty() {
            return Ok(BTreeMap::new());
        }
        let known = self.store.add_asides(self.id, &asides)?;
        self.progress.late += known.iter().filter(|known| known.is_none()).count() as u64;
        Ok(asides.iter().map(|aside| aside.number).zip(known).collect())
    }

    fn tell_overtime(&mut self, outcomes: &[&Telling], receipts: &mut [Option<Receipt>]) -> Result<()> {
        let mut firsts: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for (place, outcome) in outcomes.iter().enumerate() {
            let Of::Overtime { epoch, serial } = outcome.of else { continue };
            if let Some(&first) = firsts.get(&(epoch, serial)) {
                receipts[place] = Some(judge(same(outcome, outcomes[first].reward, &outcomes[first].costs)));
                continue;
            }
            // Serials are below 2^53 as rounds are; larger ones were never given.
            let given = (1..1 << 53).contains(&serial) && epoch <= self.progress.epoch;
            let lease = if given { self.store.leases(self.id, epoch, true, serial, 1)?.pop() } else { None };
            if lease.is_none_or(|lease| lease.first > serial) {
                receipts[place] = Some(Receipt::Unknown);
                continue;
            }
            firsts.insert((epoch, serial), place);
            let aside = aside((epoch, true), serial, outcome, self.now);
            let stored = self.store.add_asides(self.id, &[aside])?.swap_remove(0);
            receipts[place] = Some(aside_receipt(stored.as_ref(), outcome, outcome, true, Receipt::Overtime));
        }
        Ok(())
    }

    fn row(&self, round: u64, outcome: &Telling, imputed: bool) -> Outcome {
        Outcome { round, reward: outcome.reward, costs: outcome.costs.clone(), imputed, at: self.now }
    }

    /// Counts the rows that were not there before.
    fn count(&mut self, rows: &[Outcome], before: &[Option<Outcome>]) {
        for row in rows.iter().zip(before).filter(|(_, before)| before.is_none()).map(|(row, _)| row) {
            // A round without an outcome is of the open epoch: an epoch closes when all its rounds have one.
            let action = self.live.engine.decide(row.round).action as usize;
            self.progress.told[action] += 1;
            self.progress.imputed[action] += u64::from(row.imputed);
        }
    }

    /// Imputes rounds whose outcome is longer overdue than the rules wait.
    fn impute_due(&mut self) -> Result<u64> {
        let Some(wait) = self.live.rules.outcome_wait else { return Ok(0) };
        if !matches!(self.progress.status, Status::Running | Status::Paused) {
            return Ok(0);
        }
        let due = self.now - wait.as_millis() as i64;
        let leases = self.store.leases(self.id, self.progress.epoch, false, self.progress.due_from, LEASES_A_TICK)?;
        let mut imputed = 0;
        for lease in leases.iter().take_while(|lease| lease.at <= due) {
            let end = lease.first + lease.actions.len() as u64;
            let mut missing: std::collections::BTreeSet<u64> = (lease.first..end).collect();
            for outcome in self.store.outcomes(self.id, lease.first, lease.actions.len())? {
                missing.remove(&outcome.round);
            }
            let values = &self.live.rules.impute;
            let telling = Telling { of: Of::Round(0), reward: values[0], costs: values[1..].to_vec() };
            let rows: Vec<Outcome> = missing.iter().map(|&round| self.row(round, &telling, true)).collect();
            let before = self.store.add_outcomes(self.id, &rows)?;
            self.count(&rows, &before);
            imputed += rows.len() as u64;
            self.progress.due_from = end;
        }
        Ok(imputed)
    }

    /// Closes the open epoch if all its rounds have an outcome, and opens the next one before the horizon.
    fn close_if_complete(&mut self) -> Result<()> {
        if self.progress.status == Status::Done || !self.live.complete(&self.progress) {
            return Ok(());
        }
        let fold = self.live.whole_fold(self.store, self.id, &self.progress)?.clone();
        let mut engine = self.live.engine.clone();
        let record = serde_json::to_string(&engine.tell_epoch(fold.tally())?)?;
        let rounds_hash = fold.rounds_hash();
        let hash = chain::epoch_hash(&self.progress.head, &record, &rounds_hash);
        let done = engine.is_done();
        let closed = EpochRow {
            epoch: self.progress.epoch,
            record,
            // The store keeps when it was opened and, of the last epoch, the snapshot: a finished experiment is read from it.
            snapshot: None,
            opened_at: self.now,
            closed_at: Some(self.now),
            rounds_hash: Some(rounds_hash),
            hash: Some(hash.clone()),
        };
        let next = if done { None } else { Some(opened(&engine, self.now)?) };
        self.store.close_epoch(self.id, &closed, next.as_ref())?;
        self.progress.head = hash;
        self.progress.digest = engine.digest();
        self.progress.due_from = self.progress.next_round;
        self.progress.imputed_before.clone_from(&self.progress.imputed);
        self.progress.next_serial = 1;
        if done {
            self.progress.status = Status::Done;
            return Ok(());
        }
        self.progress.epoch = engine.epoch();
        self.progress.infeasible += u64::from(engine.open_record().kind == Kind::Infeasible);
        *self.live = Live::new(engine, self.live.rules.clone());
        Ok(())
    }
}

/// Requests that tell, and the receipts of all their outcomes.
#[derive(Default)]
struct Book<'a> {
    requests: Vec<(usize, &'a Vec<Telling>)>,
    receipts: Vec<Option<Receipt>>,
}

/// A request whose key is known gets the same again, if it is the same request.
fn repeated(decided: &Decided, rounds: u64) -> Result<Decided, Refusal> {
    if decided.lease.asked == rounds {
        return Ok(decided.clone());
    }
    let request_key = decided.lease.request_key.clone().unwrap_or_default();
    Err(Refusal::RequestKeyUsed { request_key, asked: decided.lease.asked, rounds })
}

fn aside((epoch, overtime): (u64, bool), number: u64, outcome: &Telling, now: i64) -> Aside {
    Aside { epoch, overtime, number, reward: outcome.reward, costs: outcome.costs.clone(), at: now }
}

/// The receipt of an outcome that is logged aside: `stored` is what was there before, `first` the group's first telling.
fn aside_receipt(
    stored: Option<&Aside>,
    outcome: &Telling,
    first: &Telling,
    is_first: bool,
    fresh: Receipt,
) -> Receipt {
    match stored {
        Some(stored) => judge(same(outcome, stored.reward, &stored.costs)),
        None if is_first => fresh,
        None => judge(same(outcome, first.reward, &first.costs)),
    }
}

fn same(outcome: &Telling, reward: f64, costs: &[f64]) -> bool {
    outcome.reward == reward && outcome.costs == costs
}

fn judge(same: bool) -> Receipt {
    if same { Receipt::Repeated } else { Receipt::Conflict }
}
