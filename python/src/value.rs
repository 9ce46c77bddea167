//! Values on their way in and out: Python objects as TOML, JSON documents as Python objects.

use debora::Key;
use debora::measure::answer::Answer;
use debora::spec::quoted;
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use serde_json::{Value, json};

use crate::error::refused;

/// A document as dictionaries, lists and numbers.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(flag) => flag.into_bound_py_any(py),
        // Whole numbers stay whole: counts up to 2^64 have no exact double.
        Value::Number(number) => match number.as_u64() {
            Some(whole) => whole.into_bound_py_any(py),
            None => match number.as_i64() {
                Some(whole) => whole.into_bound_py_any(py),
                None => number.as_f64().into_bound_py_any(py),
            },
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| to_python(py, entry))
                .collect::<PyResult<_>>()?;
            entries.into_bound_py_any(py)
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (name, entry) in entries {
                dict.set_item(name, to_python(py, entry)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// An answer as `debora._answer` lays it out: a list of its items.
pub fn answer_items<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &json!(answer.items))
}

/// A number, text, list or dictionary as a TOML value.
pub fn to_toml(value: &Bound<'_, PyAny>) -> PyResult<String> {
    // This comes before integers: in Python a bool is one.
    if value.is_instance_of::<PyBool>() {
        return Ok(value.is_truthy()?.to_string());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(text.to_str()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if value.is_instance_of::<PyFloat>() {
        // All digits, and with a point; infinities and NaN are lower case in TOML.
        return Ok(format!("{:?}", value.extract::<f64>()?).to_lowercase());
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(format!(
                "{} = {}",
                quoted(&name.str()?.to_cow()?),
                to_toml(&value)?
            ))
        };
        let entries: Vec<String> = dict.iter().map(entry).collect::<PyResult<_>>()?;
        return Ok(format!("{{ {} }}", entries.join(", ")));
    }
    // Arrays and numbers of numpy and pandas know themselves as plain ones.
    if let Ok(plain) = value.call_method0("tolist") {
        return to_toml(&plain);
    }
    if let Ok(entries) = value.try_iter() {
        let entries: Vec<String> = entries
            .map(|entry| to_toml(&entry?))
            .collect::<PyResult<_>>()?;
        return Ok(format!("[{}]", entries.join(", ")));
    }
    let message = format!(
        "{} is not a number, a text, a list or a dictionary",
        value.repr()?
    );
    Err(PyTypeError::new_err(message))
}

/// A whole number, 0 or more, as Python writes it: 100, 1e2, or numpy's.
pub struct Whole(pub u64);

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let whole = match value.extract::<u64>() {
            Ok(whole) => Some(whole),
            // Up to 2^53 the spelling of a float is its value.
            Err(_) => value
                .extract::<f64>()
                .ok()
                .filter(|number| (0.0..=9_007_199_254_740_992.0).contains(number))
                .filter(|number| number.trunc() == *number)
                .map(|number| number as u64),
        };
        // A TypeError, before which PyO3 puts the argument's name.
        whole.map(Self).ok_or_else(|| {
            let shown = value.repr().map_or(String::new(), |repr| repr.to_string());
            PyTypeError::new_err(format!("{shown} is not a whole number of 0 or more"))
        })
    }
}

/// A key: a whole number, or 32 hexadecimal digits.
pub fn to_key(value: &Bound<'_, PyAny>) -> PyResult<Key> {
    if let Ok(text) = value.cast::<PyString>() {
        return Key::from_hex(text.to_str()?).map_err(refused);
    }
    match value.extract::<u128>() {
        Ok(number) => Ok(Key::from(number)),
        // Negative, or beyond 128 bits.
        Err(_) if value.is_instance_of::<PyInt>() => Err(refused(debora::Error::KeyText {
            text: value.str()?.to_str()?.to_owned(),
        })),
        Err(error) => Err(error),
    }
}

/// A key as a number.
pub fn key_number(hex: &str) -> u128 {
    u128::from_str_radix(hex, 16).expect("hexadecimal digits")
}
