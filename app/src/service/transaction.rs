//! A group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then what they close, then the rest in order: none of the group is answered before
//! all of it is durable, so to their callers they happened at once. Experiments are locked in the order of their ids.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use debora::spec::Spec;
use debora::{Engine, Key, Plan, VALUES_VERSION};

use crate::hex;
use crate::log::chain;
use crate::service::request::{Answer, Create, Refusal, Request, beginning, is_id};
use crate::service::resident::Resident;
use crate::service::turn::{Turn, opened};
use crate::store::{Event, ExperimentRow, Status, Store};

/// What comes of a request.
pub type Answered = Result<Answer, Refusal>;

/// Experiments in memory, by id.
type Residents = BTreeMap<String, Resident>;

/// Serves groups of requests, each in a transaction of its own: one node's only writer.
pub struct Executor {
    store: Box<dyn Store>,
    residents: Residents,
}

impl Executor {
    /// At an opened store.
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
        let ids: BTreeSet<&str> = requests.iter().map(Request::id).collect();
        // A commit that failed may have been kept all the same: to serve its requests again could do them twice.
        if ids.len() > 1 && !committing && self.store.begin().is_ok() {
            self.store.rollback();
            // The store is there: one damaged experiment must not fail its neighbours.
            return requests
                .iter()
                .flat_map(|request| self.serve(std::slice::from_ref(request), now))
                .collect();
        }
        let detail = format!("{failure:#}");
        requests
            .iter()
            .map(|_| {
                Err(Refusal::Store {
                    detail: detail.clone(),
                })
            })
            .collect()
    }

    /// After a failure: what is in memory may be ahead of what is stored.
    fn forget(&mut self) {
        self.store.rollback();
        self.residents.clear();
    }

    /// The experiments whose missing outcomes may be due. One that cannot be read is left out, and said.
    pub fn waiting(&mut self) -> Result<Vec<String>> {
        self.store.begin()?;
        let ids = self.read_waiting();
        self.store.rollback();
        ids
    }

    fn read_waiting(&mut self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for (ExperimentRow { id, .. }, progress) in self.store.experiments()? {
            if !progress.status.is_open() {
                continue;
            }
            match resident_at(&mut self.residents, &mut *self.store, &id, progress.epoch) {
                Ok(resident) if resident.rules.outcome_wait.is_some() => ids.push(id),
                Ok(_) => {}
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
    /// Whether it came as far as its commit, which may have been kept even if it failed.
    committing: bool,
}

impl Transaction<'_> {
    fn run(&mut self, requests: &[Request]) -> Result<Vec<Answered>> {
        self.store.begin()?;
        let mut answers: Vec<Option<Answered>> = requests.iter().map(|_| None).collect();
        // In the order of ids, so that two nodes that lock the same experiments never wait for each other in a circle.
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            groups.entry(request.id()).or_default().push(place);
        }
        for (id, mut places) in groups {
            for &place in &places {
                if let Request::Create(create) = &requests[place] {
                    answers[place] = Some(self.create(create)?);
                }
            }
            places.retain(|&place| answers[place].is_none());
            if places.is_empty() {
                continue;
            }
            let group: Vec<&Request> = places.iter().map(|&place| &requests[place]).collect();
            for (place, answer) in places.into_iter().zip(self.serve_one(id, &group)?) {
                answers[place] = Some(answer);
            }
        }
        self.committing = true;
        self.store.commit()?;
        Ok(answers
            .into_iter()
            .map(|answer| answer.expect("every request is answered"))
            .collect())
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
        if !self.store.create(&experiment, &progress, &first_epoch)? {
            return self.created_before(create, experiment.id);
        }
        let id = experiment.id;
        self.store.add_event(
            &id,
            &Event {
                at: self.now,
                actor: create.actor.clone(),
                what: "created".into(),
            },
        )?;
        let resident = Resident::new(engine, spec.service);
        self.residents.insert(id.clone(), resident);
        Ok(Ok(Answer::Created {
            id,
            repeated: false,
        }))
    }

    /// The answer where the id is taken: by this very experiment, or by another.
    fn created_before(&mut self, create: &Create, id: String) -> Result<Answered> {
        // A request that gives no key asked for any, so the one that was drawn the first time is right.
        let same = self.store.experiment(&id)?.is_some_and(|(before, _)| {
            before.spec == create.spec && create.key.is_none_or(|key| key == before.key)
        });
        Ok(if same {
            Ok(Answer::Created { id, repeated: true })
        } else {
            Err(Refusal::IdTaken { id })
        })
    }

    /// Serves the requests of one experiment.
    fn serve_one(&mut self, id: &str, group: &[&Request]) -> Result<Vec<Answered>> {
        let Some(progress) = self.store.lock(id)? else {
            return Ok(group
                .iter()
                .map(|_| Err(Refusal::NoExperiment { id: id.to_owned() }))
                .collect());
        };
        let resident = resident_at(self.residents, self.store, id, progress.epoch)?;
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
        // A finished experiment is read again as its last epoch began.
        if turn.progress.status == Status::Done {
            self.residents.remove(id);
        }
        Ok(answers)
    }
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
        let read = Resident::read(store, id)?
            .ok_or_else(|| anyhow::anyhow!("experiment {id} has lost its rows"))?;
        residents.insert(id.to_owned(), read);
    }
    Ok(residents.get_mut(id).expect("inserted above"))
}

/// Checks what a new experiment is made of, and draws what is not given.
fn draft(create: &Create, now: i64) -> Result<Result<ExperimentRow, Refusal>> {
    let id = match &create.id {
        Some(id) => id.clone(),
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
    if spec.key_given {
        return Err(Refusal::KeyInSpec);
    }
    let plan = Plan::of(spec.problem);
    if plan.blind && !create.blind {
        let warning = debora::measure::warnings(&plan, None).swap_remove(0);
        return Err(Refusal::Blind(warning));
    }
    Ok(())
}

/// Random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes)
}
