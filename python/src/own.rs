//! What of a measurement is Python's code: players, and a world.

use std::sync::Arc;

use debora::lab::players::OwnPlayer;
use debora::measure::{Own, SpecText};
use debora::{Key, Plan};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::code_failure::CodeFailure;
use crate::own_player::{Calls, PythonPlayer};
use crate::own_world::own_world;

/// A `debora.Player`, and how it is simulated.
struct OwnObject {
    object: Py<PyAny>,
    name: String,
    per_round: bool,
}

/// What of a measurement is Python's code.
#[derive(Default)]
pub struct OwnCode {
    players: Vec<OwnObject>,
    world: Option<Py<PyAny>>,
}

impl PartialEq for OwnCode {
    /// Code is compared by being the same object.
    fn eq(&self, other: &Self) -> bool {
        fn places(code: &OwnCode) -> Vec<*mut pyo3::ffi::PyObject> {
            let players = code.players.iter().map(|player| player.object.as_ptr());
            players.chain(code.world.as_ref().map(Py::as_ptr)).collect()
        }
        places(self) == places(other)
    }
}

impl OwnCode {
    /// Takes the names of a list of names and `debora.Player` objects, and makes each of the latter once, to see that it can play.
    pub fn read(
        players: &[Bound<'_, PyAny>],
        world: Option<Py<PyAny>>,
        spec: &SpecText,
    ) -> PyResult<(Vec<String>, Self)> {
        let mut names = Vec::new();
        let mut code = Self {
            players: Vec::new(),
            world,
        };
        for player in players {
            if let Ok(name) = player.cast::<PyString>() {
                names.push(name.to_str()?.to_owned());
                continue;
            }
            let name: String = player.getattr("name")?.extract()?;
            // Made with a key of no pair, and thrown away.
            let trial = Calls::make(player, spec.problem(), Key::from(0u64))?;
            code.players.push(OwnObject {
                object: player.clone().unbind(),
                name: name.clone(),
                per_round: trial.rounds.is_none(),
            });
            names.push(name);
        }
        Ok((names, code))
    }

    /// Whether there is a world, which then stands in place of the spec's.
    pub fn has_world(&self) -> bool {
        self.world.is_some()
    }

    /// What `read` can read again.
    pub fn objects<'py>(&self, py: Python<'py>) -> (Vec<Bound<'py, PyAny>>, Option<Py<PyAny>>) {
        let players = self.players.iter();
        (
            players
                .map(|player| player.object.bind(py).clone())
                .collect(),
            self.world.as_ref().map(|world| world.clone_ref(py)),
        )
    }

    /// As the library takes them.
    pub fn own(
        &self,
        py: Python<'_>,
        spec: &SpecText,
        pairs: u64,
        failure: &Arc<CodeFailure>,
    ) -> PyResult<Own> {
        let players = self.players.iter();
        let players = players.map(|player| own_player(py, player, spec.spec.key, pairs, failure));
        let world = self
            .world
            .as_ref()
            .map(|world| own_world(world.bind(py), spec, failure));
        Ok(Own {
            players: players.collect(),
            world: world.transpose()?,
        })
    }
}

fn own_player(
    py: Python<'_>,
    player: &OwnObject,
    key: Key,
    pairs: u64,
    failure: &Arc<CodeFailure>,
) -> OwnPlayer {
    let object = player.object.clone_ref(py);
    let name = player.name.clone();
    let failure = Arc::clone(failure);
    let own = OwnPlayer::new(player.name.clone(), move |plan: &Arc<Plan>, policy: Key| {
        // Keys do not tell their pair, but there are few enough to look.
        let pair = move || (0..pairs).find(|&pair| key.derive(pair, 0) == policy);
        Box::new(PythonPlayer::new(
            &object,
            &plan.problem,
            policy,
            (name.clone(), Box::new(pair)),
            Arc::clone(&failure),
        ))
    });
    // One thread at a time holds the interpreter's lock, and handing it around costs more than it gains.
    let own = own.one_by_one();
    if player.per_round {
        own.per_round()
    } else {
        own
    }
}
