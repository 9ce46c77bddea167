//! The logic of live experiments: a group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then what they close, then the rest in order: none of the group is answered before
//! all of it is durable, so to their callers they happened at once. Experiments are locked in the order of their ids.

use std::collections::BTreeMap;

use anyhow::Result;
use debora::spec::Spec;
use debora::{Engine, Key, Plan};

use crate::service::chain;
use crate::service::live::Live;
use crate::service::request::{Answer, Create, Refusal, Request, beginning, is_id};
use crate::service::sitting::{Sitting, opened};
use crate::store::{Event, Experiment, Status, Store};

/// One node's writer.
pub struct Desk {
    store: Box<dyn Store>,
    live: BTreeMap<String, Live>,
}

/// What comes of a request.
pub type Answered = Result<Answer, Refusal>;

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
        return Ok(Err(Refusal::Blind(debora::job::warnings(&plan, None).swap_remove(0))));
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
