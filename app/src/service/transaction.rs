//! A group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then the epochs they close, then the rest in order: nobody is answered before the whole
//! group is durable, so to its callers it all happened at once. Experiments are locked in the order of their ids.

use std::collections::BTreeMap;

use anyhow::Result;
use debora::spec::Spec;
use debora::{Engine, Key, Plan, VALUES_VERSION};

use crate::hex;
use crate::log::{OtherValues, chain};
use crate::service::request::{Create, Granted, Refusal, Request, beginning, is_id};
use crate::service::resident::Resident;
use crate::service::turn::{Turn, opened};
use crate::store::{Event, ExperimentRow, Locked, Status, Store};

/// A request's answer, or why it was refused.
pub type Answered = Result<Granted, Refusal>;

/// Experiments in memory, by id.
type Residents = BTreeMap<String, Resident>;

/// Serves groups of requests, each in a transaction of its own: one node's only writer.
pub struct Executor {
    store: Box<dyn Store>,
    residents: Residents,
}

impl Executor {
    /// On an open store.
    pub fn new(store: Box<dyn Store>) -> Self {
        Self {
            store,
            residents: Residents::new(),
        }
    }

    /// Serves a group: each request is answered, and what the answers say is durable. If the store fails, nothing of the
    /// group is known to have happened.
    pub fn serve(&mut self, requests: &[Request], now: i64) -> Vec<Answered> {
        let mut transaction = Transaction {
            store: &mut *self.store,
            residents: &mut self.residents,
            now,
            committing: false,
        };
        let failure = match transaction.run(requests) {
            Ok(answers) => return answers,
            Err(failure) => failure,
        };
        let committing = transaction.committing;
        self.forget();
        // A commit that failed may have been kept all the same: serving its requests again could
        // carry them out twice.
        if !committing && concern_several_experiments(requests) && self.store_answers() {
            return self.serve_each(requests, now);
        }
        let detail = format!("{failure:#}");
        let refuse = |_| {
            Err(Refusal::Store {
                detail: detail.clone(),
            })
        };
        requests.iter().map(refuse).collect()
    }

    /// Serves each request in a transaction of its own, so that one damaged experiment does not fail its neighbours.
    fn serve_each(&mut self, requests: &[Request], now: i64) -> Vec<Answered> {
        requests
            .iter()
            .flat_map(|request| self.serve(std::slice::from_ref(request), now))
            .collect()
    }

    /// Whether the store still works, so that the failure must lie in one of the experiments.
    fn store_answers(&mut self) -> bool {
        let answers = self.store.begin().is_ok();
        self.store.rollback();
        answers
    }

    /// After a failure: what is in memory may be ahead of what is stored.
    fn forget(&mut self) {
        self.store.rollback();
        self.residents.clear();
    }

    /// The experiments whose missing outcomes may be due. One that cannot be read is logged and left out.
    pub fn waiting(&mut self) -> Result<Vec<String>> {
        // It only reads, but a lost connection to PostgreSQL is made again when a transaction begins.
        self.store.begin()?;
        let ids = self.read_waiting();
        self.store.rollback();
        ids
    }

    fn read_waiting(&mut self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for (ExperimentRow { id, .. }, progress) in self.store.experiments(None, usize::MAX)? {
            if !progress.status.is_open() {
                continue;
            }
            match resident_at(&mut self.residents, &mut *self.store, &id, progress.epoch) {
                Ok(resident) if resident.rules.outcome_wait.is_some() => ids.push(id),
                Ok(_) => {}
                // The others are not to wait for ever because this one is damaged.
                Err(error) => tracing::error!(
                    id,
                    detail = format!("{error:#}"),
                    "an experiment cannot be read"
                ),
            }
        }
        Ok(ids)
    }
}

/// A group of requests and its one commit.
struct Transaction<'a> {
    store: &'a mut dyn Store,
    residents: &'a mut Residents,
    now: i64,
    /// Whether it has reached its commit, which may have been kept even if it failed.
    committing: bool,
}

impl Transaction<'_> {
    fn run(&mut self, requests: &[Request]) -> Result<Vec<Answered>> {
        self.store.begin()?;
        let mut answers: Vec<Option<Answered>> = requests.iter().map(|_| None).collect();
        for (id, places) in by_experiment(requests) {
            self.serve_experiment(id, places, requests, &mut answers)?;
        }
        self.committing = true;
        self.store.commit()?;
        Ok(all_of(answers))
    }

    /// Serves the requests of one experiment, which stand at these places of the group.
    fn serve_experiment(
        &mut self,
        id: &str,
        mut places: Vec<usize>,
        requests: &[Request],
        answers: &mut [Option<Answered>],
    ) -> Result<()> {
        // Created first, whatever the order: if this group creates it, the other requests are for it.
        for &place in &places {
            if let Request::Create(create) = &requests[place] {
                answers[place] = Some(self.create(create)?);
            }
        }
        places.retain(|&place| answers[place].is_none());
        if places.is_empty() {
            return Ok(());
        }
        let group: Vec<&Request> = places.iter().map(|&place| &requests[place]).collect();
        for (place, answer) in places.into_iter().zip(self.take_turn(id, &group)?) {
            answers[place] = Some(answer);
        }
        Ok(())
    }

    fn create(&mut self, create: &Create) -> Result<Answered> {
        let experiment = match draft(create, self.now)? {
            Ok(experiment) => experiment,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let spec = Spec::parse(&experiment.spec, &experiment.id)?;
        let engine = Engine::new(spec.problem, experiment.key);
        let head = chain::head(&experiment);
        let progress = beginning(engine.problem().actions().len(), head, engine.digest());
        let first_epoch = opened(&engine, self.now)?;
        // The store decides whether the id is free, and not a look beforehand: another node may
        // create the same one at this moment.
        if !self.store.create(&experiment, &progress, &first_epoch)? {
            return self.created_before(create, experiment.id);
        }
        let id = experiment.id;
        let event = Event {
            at: self.now,
            actor: create.actor.clone(),
            what: "created".into(),
            reason: None,
        };
        self.store.add_event(&id, &event)?;
        let resident = Resident::new(engine, spec.service);
        self.residents.insert(id.clone(), resident);
        Ok(Ok(Granted::Created {
            id,
            repeated: false,
        }))
    }

    /// The answer where the id is taken: by this very experiment, or by another.
    fn created_before(&mut self, create: &Create, id: String) -> Result<Answered> {
        // A request without a key accepts any, so the one drawn the first time is right. The spec
        // is compared as text: the chain hashes the text, so another spelling is another experiment.
        let same = self.store.experiment(&id)?.is_some_and(|(before, _)| {
            before.spec == create.spec && create.key.is_none_or(|key| key == before.key)
        });
        Ok(if same {
            Ok(Granted::Created { id, repeated: true })
        } else {
            Err(Refusal::IdTaken { id })
        })
    }

    /// Serves the requests for an experiment that should exist by now.
    fn take_turn(&mut self, id: &str, group: &[&Request]) -> Result<Vec<Answered>> {
        let Some(Locked { progress, .. }) = self.store.lock(id)? else {
            return Ok(group
                .iter()
                .map(|_| Err(Refusal::NoExperiment { id: id.to_owned() }))
                .collect());
        };
        let resident = match resident_at(self.residents, self.store, id, progress.epoch) {
            Ok(resident) => resident,
            // Its callers are told the reason and the remedy; what else cannot be read is damage.
            Err(error) => {
                let other: OtherValues = error.downcast()?;
                let refuse = |_: &&Request| Err(Refusal::OtherValues(other.clone()));
                return Ok(group.iter().map(refuse).collect());
            }
        };
        resident.check(id, &progress)?;
        let mut turn = Turn {
            id,
            store: self.store,
            resident,
            before: progress.clone(),
            progress,
            now: self.now,
        };
        let answers = turn.serve(group)?;
        // Little more is asked of a finished experiment, so it does not stay in memory: it can be read
        // again, as its last epoch began.
        if turn.progress.status == Status::Done {
            self.residents.remove(id);
        }
        Ok(answers)
    }
}

/// The answers, once every request has one.
pub(super) fn all_of(answers: Vec<Option<Answered>>) -> Vec<Answered> {
    // A request without an answer would be a bug, and its caller would wait for ever.
    answers
        .into_iter()
        .map(|answer| answer.expect("every request is answered"))
        .collect()
}

/// The places of each experiment's requests.
///
/// In the order of ids, so that two nodes that lock the same experiments never wait for each other in a circle.
fn by_experiment(requests: &[Request]) -> BTreeMap<&str, Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, request) in requests.iter().enumerate() {
        groups.entry(request.id()).or_default().push(place);
    }
    groups
}

fn concern_several_experiments(requests: &[Request]) -> bool {
    requests.windows(2).any(|pair| pair[0].id() != pair[1].id())
}

/// The experiment in memory, read if it is not there or another node has closed its epoch.
fn resident_at<'a>(
    residents: &'a mut Residents,
    store: &mut dyn Store,
    id: &str,
    epoch: u64,
) -> Result<&'a mut Resident> {
    let current = residents
        .get(id)
        .is_some_and(|resident| resident.engine.epoch() == epoch);
    if !current {
        // Its row of progress was just found, so a missing experiment is damage, not a wrong id.
        let read = Resident::read(store, id)?.ok_or_else(|| {
            anyhow::anyhow!("the rows of experiment {id} are missing from the store")
        })?;
        residents.insert(id.to_owned(), read);
    }
    Ok(residents.get_mut(id).expect("inserted above"))
}

/// Checks what a new experiment is made of, and draws what is not given.
fn draft(create: &Create, now: i64) -> Result<Result<ExperimentRow, Refusal>> {
    let id = match &create.id {
        Some(id) => id.clone(),
        // 64 random bits: the ids of a million experiments collide with probability 3e-8.
        None => hex::encode(&random::<8>()?),
    };
    if let Err(refusal) = check_draft(&id, create) {
        return Ok(Err(refusal));
    }
    let key = match create.key {
        Some(key) => key,
        None => Key::from(u128::from_be_bytes(random()?)),
    };
    Ok(Ok(ExperimentRow {
        id,
        spec: create.spec.clone(),
        key,
        // Without it the published hash of a small key, such as 42, could be guessed by trying.
        salt: random()?,
        created_at: now,
        values_version: VALUES_VERSION,
    }))
}

fn check_draft(id: &str, create: &Create) -> Result<(), Refusal> {
    if !is_id(id) {
        return Err(Refusal::IdText { id: id.to_owned() });
    }
    let spec =
        Spec::parse(&create.spec, "spec").map_err(|error| Refusal::Spec(error.to_string()))?;
    if spec.world.is_some() {
        return Err(Refusal::World);
    }
    // Everyone with role read sees the spec, and anyone who has the key can predict decisions.
    if spec.key_given {
        return Err(Refusal::KeyInSpec);
    }
    // A blind plan never compares anything, and nobody should learn that after a year of traffic.
    let plan = Plan::of(spec.problem);
    if plan.blind && !create.blind {
        let warning = debora::measure::warnings(&plan, None).swap_remove(0);
        return Err(Refusal::Blind(warning));
    }
    Ok(())
}

/// Random bytes from the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        anyhow::anyhow!("the operating system's random number generator failed: {error}")
    })?;
    Ok(bytes)
}
