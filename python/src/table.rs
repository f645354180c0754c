// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of columns, which Python's libraries take over without copying: the stream of
//! Arrow's `PyCapsule` interface.

use crate::errors::refuse;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyFloat, PyInt, PyList};
use std::sync::Arc;

/// A table in memory, in batches: columns of 64-bit integers, 64-bit floats and texts.
#[pyclass(frozen, module = "blklab._native")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Of batches with one schema; `empty` is that of a table without rows.
    pub(crate) fn new(batches: Vec<RecordBatch>, empty: SchemaRef) -> Table {
        let schema = batches.first().map_or(empty, RecordBatch::schema);
        Table { schema, batches }
    }
}

/// A column that is being gathered.
pub(crate) enum Cells {
    /// Integers.
    Ints(Vec<Option<i64>>),
    /// Floats.
    Floats(Vec<Option<f64>>),
    /// Texts.
    Texts(Vec<Option<String>>),
}

/// A table of columns with their names.
pub(crate) fn table(columns: Vec<(String, Cells)>) -> PyResult<Table> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, cells) in columns {
        let (kind, array): (DataType, ArrayRef) = match cells {
            Cells::Ints(v) => (DataType::Int64, Arc::new(Int64Array::from(v))),
            Cells::Floats(v) => (DataType::Float64, Arc::new(Float64Array::from(v))),
            Cells::Texts(v) => (DataType::Utf8, Arc::new(StringArray::from(v))),
        };
        fields.push(Field::new(name, kind, true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(refuse)?;
    Ok(Table::new(vec![batch], schema))
}

/// A value as Python has it.
fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .value(row)
            .into_bound_py_any(py),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        other => Err(refuse(format!(
            "a column of {other} has no values in Python"
        ))),
    }
}

/// A column of Python's values: integers, floats or texts, with None for no value.
fn cells(name: &str, values: &[Bound<'_, PyAny>]) -> PyResult<Cells> {
    let there = || values.iter().filter(|v| !v.is_none());
    let wrong = |_| {
        refuse(format!(
            "column {name}: expected integers, floats or texts, and None"
        ))
    };
    if there().all(PyAnyMethods::is_instance_of::<PyInt>) {
        let values = values.iter().map(PyAnyMethods::extract::<Option<i64>>);
        Ok(Cells::Ints(values.collect::<PyResult<_>>().map_err(wrong)?))
    } else if there().all(|v| v.is_instance_of::<PyInt>() || v.is_instance_of::<PyFloat>()) {
        let values = values.iter().map(PyAnyMethods::extract::<Option<f64>>);
        Ok(Cells::Floats(
            values.collect::<PyResult<_>>().map_err(wrong)?,
        ))
    } else {
        let values = values.iter().map(PyAnyMethods::extract::<Option<String>>);
        Ok(Cells::Texts(
            values.collect::<PyResult<_>>().map_err(wrong)?,
        ))
    }
}

#[pymethods]
impl Table {
    /// Of pairs of a column's name and its values, all of one length.
    #[new]
    fn of_columns(columns: Vec<(String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Table> {
        let columns = columns.into_iter().map(|(name, values)| {
            let cells = cells(&name, &values)?;
            Ok((name, cells))
        });
        table(columns.collect::<PyResult<_>>()?)
    }

    /// The columns' names, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|f| f.name().clone())
            .collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a column, as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        if self.schema.index_of(name).is_err() {
            let names = self.column_names();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(crate::errors::raise(blklab::types::Error::new(
                blklab::types::no_such("column", name, &names),
            )));
        }
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column_by_name(name).expect("batches have one schema");
            for row in 0..batch.num_rows() {
                list.append(value(py, array, row)?)?;
            }
        }
        Ok(list)
    }

    /// The columns by name, each a list.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.column_names() {
            dict.set_item(&name, self.column(py, &name)?)?;
        }
        Ok(dict)
    }

    /// The rows, each a dictionary.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let dict = PyDict::new(py);
                for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
                    dict.set_item(field.name(), value(py, array, row)?)?;
                }
                rows.append(dict)?;
            }
        }
        Ok(rows)
    }

    /// The schema, for Arrow's `PyCapsule` interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref()).map_err(refuse)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, for Arrow's `PyCapsule` interface: pandas, Polars, `DuckDB` and pyarrow take
    /// them over as they lie. A schema that is requested is not looked at, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        // Batches share their columns: nothing but pointers is copied.
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
