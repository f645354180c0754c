// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the command writes as JSON, as Python's own values.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

/// Dictionaries, lists, numbers, texts and None.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(b) => b.into_bound_py_any(py),
        Value::Number(n) => {
            if let Some(n) = n.as_u64() {
                n.into_bound_py_any(py)
            } else if let Some(n) = n.as_i64() {
                n.into_bound_py_any(py)
            } else {
                n.as_f64().into_bound_py_any(py)
            }
        }
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let items = values.iter().map(|v| to_python(py, v));
            let items = items.collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Object(map) => {
            let dict = PyDict::new(py);
            for (key, value) in map {
                dict.set_item(key, to_python(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}

/// Of anything that has a form in JSON.
pub(crate) fn python_of<'py>(
    py: Python<'py>,
    value: &impl serde::Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(crate::errors::refuse)?;
    to_python(py, &value)
}
