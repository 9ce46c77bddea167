//! The logic of live experiments: a group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then what they close, then the rest in order: none of the group is answered before
//! all of it is durable, so to their callers they happened at once. Experiments are locked in the order of their ids.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use debora::spec::Spec;
use debora::{Engine, Key, Plan, VALUES_VERSION};

use crate::hex;
use crate::log::chain;
use crate::service::live::Live;
use crate::service::request::{Answer, Create, Refusal, Request, beginning, is_id};
use crate::service::sitting::{Sitting, opened};
use crate::store::{Event, Experiment, Status, Store};

/// One node's writer.
pub struct Desk {
    store: Box<dyn Store>,
    live: BTreeMap<String, Live>,
    /// Whether the last group came as far as its commit, which may have been kept even if it failed.
    committing: bool,
}

/// What comes of a request.
pub type Answered = Result<Answer, Refusal>;

impl Desk {
    /// At an opened store.
    pub fn new(store: Box<dyn Store>) -> Self {
        Self {
            store,
            live: BTreeMap::new(),
            committing: false,
        }
    }

    /// Serves a group: each request is answered, and what the answers say is durable. If the store fails, nothing of the
    /// group is known to have happened.
    pub fn serve(&mut self, requests: &[Request], now: i64) -> Vec<Answered> {
        let failure = match self.transact(requests, now) {
            Ok(answers) => return answers,
            Err(failure) => self.forget(&failure),
        };
        let ids: BTreeSet<&str> = requests.iter().map(Request::id).collect();
        if ids.len() > 1 && !self.committing && self.store.begin().is_ok() {
            self.store.rollback();
            // The store is there: one damaged experiment must not fail its neighbours.
            return requests
                .iter()
                .map(|request| {
                    self.serve(std::slice::from_ref(request), now)
                        .swap_remove(0)
                })
                .collect();
        }
        requests
            .iter()
            .map(|_| {
                Err(Refusal::Store {
                    detail: failure.clone(),
                })
            })
            .collect()
    }

    /// After a failure: what is in memory may be ahead of what is stored.
    fn forget(&mut self, failure: &anyhow::Error) -> String {
        self.store.rollback();
        self.live.clear();
        format!("{failure:#}")
    }

    /// The experiments whose missing outcomes may be due. One that cannot be read is left out, and said.
    pub fn waiting(&mut self) -> Result<Vec<String>> {
        self.store.begin()?;
        let ids = self.read_waiting();
        self.store.rollback();
        ids
    }

    fn read_waiting(&mut self) -> Result<Vec<String>> {
        let rows = self.store.experiments()?;
        let open = rows
            .into_iter()
            .filter(|(_, progress)| matches!(progress.status, Status::Running | Status::Paused));
        let mut ids = Vec::new();
        for (Experiment { id, .. }, progress) in open {
            match live_at(&mut self.live, &mut *self.store, &id, progress.epoch) {
                Ok(live) if live.rules.outcome_wait.is_some() => ids.push(id),
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

    fn transact(&mut self, requests: &[Request], now: i64) -> Result<Vec<Answered>> {
        self.committing = false;
        self.store.begin()?;
        let mut answers: Vec<Option<Answered>> = requests.iter().map(|_| None).collect();
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, request) in requests.iter().enumerate() {
            groups.entry(request.id()).or_default().push(place);
        }
        for (id, mut places) in groups {
            for &place in &places {
                if let Request::Create(create) = &requests[place] {
                    answers[place] = Some(self.create(create, now)?);
                }
            }
            places.retain(|&place| answers[place].is_none());
            if places.is_empty() {
                continue;
            }
            let group: Vec<&Request> = places.iter().map(|&place| &requests[place]).collect();
            for (place, answer) in places.into_iter().zip(self.serve_one(id, &group, now)?) {
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

    fn create(&mut self, create: &Create, now: i64) -> Result<Answered> {
        let experiment = match draft(create, now)? {
            Ok(experiment) => experiment,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (engine, rules) = {
            let spec = Spec::parse(&experiment.spec, &experiment.id)?;
            (Engine::new(spec.problem, experiment.key), spec.service)
        };
        let head = chain::head(&experiment);
        let progress = beginning(engine.problem().actions().len(), head, engine.digest());
        let id = experiment.id.clone();
        if !self
            .store
            .create(&experiment, &progress, &opened(&engine, now)?)?
        {
            let same = self.store.experiment(&id)?.is_some_and(|(before, _)| {
                before.spec == create.spec && create.key.is_none_or(|key| key == before.key)
            });
            return Ok(if same {
                Ok(Answer::Created { id, repeated: true })
            } else {
                Err(Refusal::IdTaken { id })
            });
        }
        self.store.add_event(
            &id,
            &Event {
                at: now,
                actor: create.actor.clone(),
                what: "created".into(),
            },
        )?;
        self.live.insert(id.clone(), Live::new(engine, rules));
        Ok(Ok(Answer::Created {
            id,
            repeated: false,
        }))
    }

    /// Serves the requests of one experiment.
    fn serve_one(&mut self, id: &str, group: &[&Request], now: i64) -> Result<Vec<Answered>> {
        let Some(progress) = self.store.lock(id)? else {
            return Ok(group
                .iter()
                .map(|_| Err(Refusal::NoExperiment { id: id.to_owned() }))
                .collect());
        };
        let live = live_at(&mut self.live, &mut *self.store, id, progress.epoch)?;
        live.check(id, &progress)?;
        let mut sitting = Sitting {
            id,
            store: &mut *self.store,
            live,
            before: progress.clone(),
            progress,
            now,
        };
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
        let read = Live::read(store, id)?
            .ok_or_else(|| anyhow::anyhow!("experiment {id} has lost its rows"))?;
        live.insert(id.to_owned(), read);
    }
    Ok(live.get_mut(id).expect("inserted above"))
}

/// Checks what a new experiment is made of, and draws what is not given.
fn draft(create: &Create, now: i64) -> Result<Result<Experiment, Refusal>> {
    let id = match &create.id {
        Some(id) => id.clone(),
        None => hex::encode(&random::<8>()?),
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
        return Ok(Err(Refusal::Blind(
            debora::job::warnings(&plan, None).swap_remove(0),
        )));
    }
    let key = match create.key {
        Some(key) => key,
        None => Key::from(u128::from_be_bytes(random()?)),
    };
    let (spec, salt) = (create.spec.clone(), random()?);
    Ok(Ok(Experiment {
        id,
        spec,
        key,
        salt,
        created_at: now,
        values_version: VALUES_VERSION,
    }))
}

/// Random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes)
}
