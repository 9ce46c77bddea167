//! A group of requests, one transaction, their answers.
//!
//! Within a group, outcomes come first, then the epochs they close, then the rest in order: nobody is answered before the whole
//! group is durable, so to its callers it all happened at once. Experiments are locked in the order of their ids.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use debora::spec::Spec;
use debora::{Engine, Key, Plan, VALUES_VERSION};

use crate::log::experiment::check_counts;
use crate::log::{OtherValues, chain};
use crate::service::clock::{Moment, Stopwatch};
use crate::service::counts::Counts;
use crate::service::key_uses::KeyUses;
use crate::service::limits;
use crate::service::node::{NodeStart, StoreStart};
use crate::service::random::random;
use crate::service::recent::Recent;
use crate::service::request::of_store::{StoreRequest, StoreTask, Task};
use crate::service::request::{Create, Granted, Refusal, Request, beginning, is_id};
use crate::service::resident::Resident;
use crate::service::turn::{Turn, TurnTime, opened};
use crate::service::went_back::lost;
use crate::store::{Event, ExperimentRow, Failure, Locked, Progress, Store, parse_progress};

/// A request's answer, or why it was refused.
pub type Answered = Result<Granted, Refusal>;

/// What a probe finds: which store it is, or why nothing can be committed to it.
pub type Probed = Result<StoreStart, Failure>;

/// The numbers of those who ask and tell, by name.
pub(super) type ActorNumbers<'a> = BTreeMap<&'a str, u64>;

/// Serves groups of requests, each in a transaction of its own: one node's only writer.
pub struct Executor {
    pub(super) store: Store,
    pub(super) residents: Recent<Resident>,
    /// What was seen committed. Kept when residents are dropped: it is what a store that went back is known by.
    pub(super) seen: Recent<Seen>,
    pub(super) stopwatch: Stopwatch,
    /// This process, at its store.
    pub node: NodeStart,
    /// What is counted on the way.
    pub counts: Counts,
    /// When keys were used.
    pub key_uses: KeyUses,
}

impl Executor {
    /// Commits something, and says why if that fails.
    pub fn probe(&mut self, moment: Moment) -> Probed {
        let touched = self.begin(moment).and_then(|_| self.store.touch());
        let committed = touched.and_then(|()| self.store.commit());
        match self.or_rollback(committed) {
            Ok(()) => Ok(self.node.start.clone()),
            Err(error) => {
                let failure = Failure::classify(&error);
                self.counts.failed(failure);
                let (code, detail) = (failure.code(), format!("{error:#}"));
                tracing::error!(code, detail, "cannot commit");
                Err(failure)
            }
        }
    }

    /// Serves a group: each request is answered, and what the answers say is durable. If the store fails, nothing of the
    /// group is known to have happened.
    pub fn serve(&mut self, requests: &[Request], moment: Moment) -> Vec<Answered> {
        self.serve_all(requests, &mut [], moment)
    }

    /// Serves a request of the store.
    pub fn serve_store<R: StoreRequest>(
        &mut self,
        request: R,
        moment: Moment,
    ) -> Result<R::Reply, Refusal> {
        let (task, mut answer) = Task::new(request);
        let mut tasks: [Box<dyn StoreTask>; 1] = [Box::new(task)];
        self.serve_all(&[], &mut tasks, moment);
        let [task] = tasks;
        task.answer();
        answer.try_recv().unwrap_or(Err(Refusal::Stopping))
    }

    /// Serves a group of requests of experiments and of tasks of the store.
    pub(super) fn serve_all(
        &mut self,
        requests: &[Request],
        tasks: &mut [Box<dyn StoreTask>],
        moment: Moment,
    ) -> Vec<Answered> {
        let mut committing = false;
        let failure = match self.run(requests, tasks, moment, &mut committing) {
            Ok(answers) => return answers,
            Err(failure) => failure,
        };
        self.counts.failed(Failure::classify(&failure));
        self.forget();
        // A commit that failed may have been kept all the same: serving its requests again could
        // carry them out twice.
        if !committing && concern_several(requests, tasks) && self.store_answers() {
            return self.serve_each(requests, tasks, moment);
        }
        let detail = format!("{failure:#}");
        let refusal = || Refusal::Store {
            detail: detail.clone(),
        };
        tasks.iter_mut().for_each(|task| task.refuse(refusal()));
        requests.iter().map(|_| Err(refusal())).collect()
    }

    /// Ends the store's connection.
    pub fn close(self) -> Result<()> {
        self.store.close()
    }

    /// One transaction; whether it has reached its commit, which may have been kept even if it failed.
    fn run(
        &mut self,
        requests: &[Request],
        tasks: &mut [Box<dyn StoreTask>],
        moment: Moment,
        committing: &mut bool,
    ) -> Result<Vec<Answered>> {
        let now = self.begin(moment)?;
        if self.stopwatch.is_stale(now) {
            self.stopwatch = Stopwatch::of(self.store.waiting_clock()?, now, true);
        }
        let mut transaction = Transaction {
            store: &mut self.store,
            residents: &mut self.residents,
            seen: &mut self.seen,
            touched: Vec::new(),
            time: TurnTime::of(&self.stopwatch, now),
        };
        let answers = transaction.serve(requests, tasks)?;
        let touched = transaction.touched;
        *committing = true;
        self.store.commit()?;
        for (id, seen) in touched {
            self.seen.insert(&id, seen);
        }
        // Between groups, so that none of the group's is dropped.
        self.residents.trim();
        self.seen.trim();
        Ok(answers)
    }

    /// Serves each in a transaction of its own, so that one damaged experiment does not fail its neighbours.
    fn serve_each(
        &mut self,
        requests: &[Request],
        tasks: &mut [Box<dyn StoreTask>],
        moment: Moment,
    ) -> Vec<Answered> {
        for task in tasks {
            self.serve_all(&[], std::slice::from_mut(task), moment);
        }
        requests
            .iter()
            .flat_map(|request| self.serve(std::slice::from_ref(request), moment))
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
}

/// A progress, and the text that it is stored as.
pub(super) struct Seen {
    pub progress: Progress,
    pub text: String,
}

/// A group of requests and its one commit.
pub(super) struct Transaction<'a> {
    pub store: &'a mut Store,
    pub residents: &'a mut Recent<Resident>,
    seen: &'a mut Recent<Seen>,
    /// What the group's experiments are when it is committed.
    pub touched: Vec<(String, Seen)>,
    pub time: TurnTime,
}

impl Transaction<'_> {
    fn serve(
        &mut self,
        requests: &[Request],
        tasks: &mut [Box<dyn StoreTask>],
    ) -> Result<Vec<Answered>> {
        let actors = self.actors(requests)?;
        for task in tasks {
            task.serve(self.store, self.time.at)?;
        }
        let mut answers: Vec<Option<Answered>> = requests.iter().map(|_| None).collect();
        for (id, places) in by_experiment(requests) {
            self.serve_experiment(id, places, requests, &actors, &mut answers)?;
        }
        Ok(all_of(answers))
    }

    /// The numbers of those who ask and tell.
    ///
    /// A name's first use inserts it, which locks it against other nodes: all are asked for before any experiment is locked, in
    /// the order of names, so that no two nodes wait for each other in a circle.
    fn actors<'a>(&mut self, requests: &'a [Request]) -> Result<ActorNumbers<'a>> {
        let names: BTreeSet<&str> = requests.iter().filter_map(Request::actor).collect();
        names
            .into_iter()
            .map(|name| Ok((name, self.store.actor(name)?)))
            .collect()
    }

    /// Serves the requests of one experiment, which stand at these places of the group.
    fn serve_experiment(
        &mut self,
        id: &str,
        mut places: Vec<usize>,
        requests: &[Request],
        actors: &ActorNumbers<'_>,
        answers: &mut [Option<Answered>],
    ) -> Result<()> {
        for &place in &places {
            // Created first, whatever the order: if this group creates it, the other requests are for it.
            if let Request::Create(create) = &requests[place] {
                answers[place] = Some(self.create(create)?);
            }
        }
        places.retain(|&place| answers[place].is_none());
        if places.is_empty() {
            return Ok(());
        }
        let group: Vec<&Request> = places.iter().map(|&place| &requests[place]).collect();
        for (place, answer) in places.into_iter().zip(self.take_turn(id, &group, actors)?) {
            answers[place] = Some(answer);
        }
        Ok(())
    }

    fn create(&mut self, create: &Create) -> Result<Answered> {
        let experiment = match draft(create, self.time.at)? {
            Ok(experiment) => experiment,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let spec = Spec::parse(&experiment.spec, &experiment.id)?;
        let engine = Engine::new(spec.problem, experiment.key);
        let head = chain::head(&experiment);
        let mut progress = beginning(engine.problem().actions().len(), head, engine.digest());
        let event = Event {
            at: self.time.at,
            actor: create.actor.clone(),
            what: "created".into(),
            reason: None,
            position: progress.next_position,
        };
        chain::enter_event(&event, &mut progress);
        let first_epoch = opened(&engine, self.time.at)?;
        // The store decides whether the id is free, and not a look beforehand: another node may
        // create the same one at this moment.
        if !self.store.create(&experiment, &progress, &first_epoch)? {
            return self.created_before(create);
        }
        let id = experiment.id;
        self.store.add_event(&id, &event)?;
        let resident = Resident::new(engine, spec.service, self.time.at);
        self.residents.insert(&id, resident);
        Ok(Ok(Granted::Created { repeated: false }))
    }

    /// The answer where the id is taken: by this very experiment, or by another.
    fn created_before(&mut self, create: &Create) -> Result<Answered> {
        let id = &create.id;
        // A request without a key accepts any, so the one drawn the first time is right. The spec
        // is compared as text: the chain hashes the text, so another spelling is another experiment.
        let same = self.store.experiment(id)?.is_some_and(|(before, _)| {
            before.spec == create.spec && create.key.is_none_or(|key| key == before.key)
        });
        Ok(if same {
            Ok(Granted::Created { repeated: true })
        } else {
            Err(Refusal::IdTaken { id: id.clone() })
        })
    }

    /// Serves the requests for an experiment that should exist by now.
    fn take_turn(
        &mut self,
        id: &str,
        group: &[&Request],
        actors: &ActorNumbers<'_>,
    ) -> Result<Vec<Answered>> {
        let seen = self.seen.get_mut(id);
        let Some(locked) = self.store.lock(id)? else {
            if seen.is_some() {
                tracing::error!(id, "an experiment is gone from the store, which went back");
            }
            return Ok(group
                .iter()
                .map(|_| Err(Refusal::NoExperiment { id: id.to_owned() }))
                .collect());
        };
        let Locked {
            progress: text,
            due,
            observed,
        } = locked;
        let progress = match seen {
            // Nearly always: no other node has written since, and nothing was lost.
            Some(seen) if seen.text == text => seen.progress.clone(),
            seen => {
                let progress = parse_progress(&text)?;
                let lost = seen.and_then(|seen| lost(&seen.progress, &progress));
                if let Some(lost) = lost {
                    return self.pause(id, Seen { progress, text }, &lost, group);
                }
                progress
            }
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
        check_counts(id, &progress, resident.engine.problem())?;
        let mut turn = Turn {
            id,
            store: self.store,
            resident,
            before: progress.clone(),
            progress,
            stored: text,
            due_before: due,
            due,
            observed_before: observed,
            observed: None,
            time: self.time,
            actors,
            drawn: Vec::new(),
            drawn_first: 0,
        };
        let answers = turn.serve(group)?;
        let seen = Seen {
            progress: turn.progress,
            text: turn.stored,
        };
        self.touched.push((id.to_owned(), seen));
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

/// Whether a group concerns several experiments, or has tasks beside something else.
fn concern_several(requests: &[Request], tasks: &[Box<dyn StoreTask>]) -> bool {
    let beside_others = !tasks.is_empty() && tasks.len() + requests.len() > 1;
    beside_others || requests.windows(2).any(|pair| pair[0].id() != pair[1].id())
}

/// The experiment in memory, read if it is not there or another node has closed its epoch.
fn resident_at<'a>(
    residents: &'a mut Recent<Resident>,
    store: &mut Store,
    id: &str,
    epoch: u64,
) -> Result<&'a mut Resident> {
    let current = residents
        .get_mut(id)
        .is_some_and(|resident| resident.engine.epoch() == epoch);
    if !current {
        // Its row of progress was just found, so a missing experiment is damage, not a wrong id.
        let read = Resident::read(store, id)?.ok_or_else(|| {
            anyhow::anyhow!("the rows of experiment {id} are missing from the store")
        })?;
        residents.insert(id, read);
    }
    Ok(residents.get_mut(id).expect("inserted above"))
}

/// Checks what a new experiment is made of, and draws what is not given.
fn draft(create: &Create, now: i64) -> Result<Result<ExperimentRow, Refusal>> {
    if let Err(refusal) = check_draft(create) {
        return Ok(Err(refusal));
    }
    let key = match create.key {
        Some(key) => key,
        None => Key::from(u128::from_be_bytes(random()?)),
    };
    Ok(Ok(ExperimentRow {
        id: create.id.clone(),
        spec: create.spec.clone(),
        key,
        // Without it the published hash of a small key, such as 42, could be guessed by trying.
        salt: random()?,
        created_at: now,
        values_version: VALUES_VERSION,
    }))
}

fn check_draft(create: &Create) -> Result<(), Refusal> {
    if !is_id(&create.id) {
        return Err(Refusal::IdText {
            id: limits::quoted(&create.id),
        });
    }
    limits::check_length(&create.spec)?;
    let spec = Spec::parse(&create.spec, "spec").map_err(Refusal::Spec)?;
    limits::check_live(&spec)?;
    // A blind plan never compares anything, and nobody should learn that after a year of traffic.
    let plan = Plan::of(spec.problem);
    if plan.blind && !create.blind {
        let warning = debora::measure::warnings(&plan, None).swap_remove(0);
        return Err(Refusal::Blind(warning));
    }
    Ok(())
}
