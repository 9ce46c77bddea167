//! A world whose feedback is drawn by a function in Python.

use std::sync::Arc;

use debora::key::Label;
use debora::lab::world::World;
use debora::mean::{FIXED_ONE, to_fixed};
use debora::measure::SpecText;
use debora::spec::Simulated;
use debora::{Problem, WorldKey};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use crate::code_failure::CodeFailure;
use crate::error::Error;
use crate::value::to_key;

/// Draws that one call asks for at most: large beside what a call costs, small beside the memory.
const DRAWS_A_CALL: u64 = 1 << 20;

/// The world of a `debora.worlds.Function`.
pub fn own_world(
    object: &Bound<'_, PyAny>,
    spec: &SpecText,
    failure: &Arc<CodeFailure>,
) -> PyResult<Simulated> {
    let problem = Arc::clone(&spec.plan.problem);
    let names: Vec<String> = (1..problem.quantities())
        .map(|quantity| problem.quantity(quantity).name.clone())
        .collect();
    let means: Vec<Vec<f64>> = object
        .call_method1("_means", (problem.actions(), names.clone()))?
        .extract()?;
    let unit_means = means
        .iter()
        .enumerate()
        .map(|(quantity, row)| {
            let units = (0..).zip(row).map(|(action, &mean)| {
                let share = unit(&problem, (quantity, action), mean)?;
                Ok(problem.on_scale(quantity, action, share))
            });
            units.collect::<PyResult<Vec<f64>>>()
        })
        .collect::<PyResult<Vec<_>>>()?;
    let key = match object.getattr("key")? {
        none if none.is_none() => spec.spec.key.world(),
        given => WorldKey::from_hex(&to_key(&given)?.to_hex()).expect("a key's digits"),
    };
    let name: String = object.getattr("name")?.extract()?;
    Ok(Simulated {
        // By its name and its means: whether two functions are the same cannot be known.
        fingerprint: format!(
            "{} function {name} {means:?} {}",
            spec.spec.fingerprint(),
            key.to_hex()
        ),
        world: Arc::new(PythonWorld {
            object: object.clone().unbind(),
            names,
            means: unit_means,
            problem,
            failure: Arc::clone(failure),
        }),
        key,
    })
}

/// A value in the user's units as a share of its action's range.
fn unit(problem: &Problem, (quantity, action): (usize, u32), value: f64) -> PyResult<f64> {
    let quantity = problem.quantity(quantity);
    let own = quantity.range_of(action);
    if quantity.known(action) == Some(value) {
        return Ok(0.0);
    }
    if (own.low..=own.high).contains(&value) {
        return Ok(own.to_unit(value));
    }
    Err(Error::new_err(format!(
        "the world gives {:?} the value {value:?}, outside its range [{:?}, {:?}]; use the range's units",
        quantity.name, own.low, own.high
    )))
}

struct PythonWorld {
    object: Py<PyAny>,
    names: Vec<String>,
    means: Vec<Vec<f64>>,
    problem: Arc<Problem>,
    failure: Arc<CodeFailure>,
}

impl PythonWorld {
    /// Calls `add` with each value drawn, in multiples of 2^-53. After a failure there are none, and the measurement ends.
    fn add_draws(&self, words: [u64; 4], action: u32, count: u64, mut add: impl FnMut(usize, u64)) {
        self.failure.attach(|py| {
            if let Err(error) = self.draw(py, words, action, count, &mut add) {
                let name = &self.problem.actions()[action as usize];
                let place = format!("in the world, drawing {count} of action {name:?}");
                self.failure.set(py, error, &place);
            }
        });
    }

    fn draw(
        &self,
        py: Python<'_>,
        [low, high, ..]: [u64; 4],
        action: u32,
        count: u64,
        add: &mut impl FnMut(usize, u64),
    ) -> PyResult<()> {
        let key = u128::from(high) << 64 | u128::from(low);
        let given = self
            .object
            .bind(py)
            .call_method1("_draws", (action, count, key, self.names.clone()))?;
        let rows: PyReadonlyArray2<f64> = given.extract()?;
        for row in rows.as_array().rows() {
            for (quantity, &value) in row.iter().enumerate() {
                add(
                    quantity,
                    to_fixed(unit(&self.problem, (quantity, action), value)?),
                );
            }
        }
        Ok(())
    }
}

impl World for PythonWorld {
    fn means(&self) -> &[Vec<f64>] {
        &self.means
    }

    fn pull(&self, key: WorldKey, action: u32, pull: u64, values: &mut [f64]) {
        let words = key.block(Label::Feedback, [action.into(), pull, 0]);
        values.fill(0.0);
        self.add_draws(words, action, 1, |quantity, fixed| {
            values[quantity] = fixed as f64 / FIXED_ONE as f64;
        });
    }

    fn pulls(&self, key: WorldKey, action: u32, first: u64, count: u64, sums: &mut [u128]) {
        sums.fill(0);
        let mut done = 0;
        while done < count {
            let words = key.block(Label::FeedbackSum, [action.into(), first + done, 0]);
            let draws = DRAWS_A_CALL.min(count - done);
            self.add_draws(words, action, draws, |quantity, fixed| {
                sums[quantity] += u128::from(fixed);
            });
            done += draws;
        }
    }
}
