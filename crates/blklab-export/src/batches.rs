// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as batches of Apache Arrow, in memory.

use crate::columns::{Column, Kind, Value, shown};
use crate::rows::{BIO_COLUMNS, EVENT_COLUMNS, IO_COLUMNS};
use crate::sheet::TakesRows;
use crate::table::{Rows, ToRows, failed, passes_on};
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use blklab_formats::FormatError;
use blklab_trace::TraceSink;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Gives a trace as batches of columns, with the names, types and rows of the tables that
/// [`TableWriter`](crate::TableWriter) writes: numbers are `Int64`, texts `Utf8`.
///
/// `take` gets each batch as soon as it is full; memory is bound by one batch and the I/O in
/// flight. After an error of `take` the rest of the trace is passed over.
pub struct Batches<F>(ToRows<Gather<F>>)
where
    F: FnMut(RecordBatch) -> io::Result<()>;

impl<F: FnMut(RecordBatch) -> io::Result<()>> Batches<F> {
    /// Batches of at most `batch_rows` rows, all but the last of as many.
    pub fn new(rows: Rows, batch_rows: NonZeroUsize, take: F) -> Batches<F> {
        let gather = match rows {
            Rows::Events => Gather::new(&EVENT_COLUMNS, batch_rows, take),
            Rows::Ios => Gather::new(&IO_COLUMNS, batch_rows, take),
            Rows::Bios => Gather::new(&BIO_COLUMNS, batch_rows, take),
        };
        Batches(ToRows::new(rows, gather))
    }

    /// Gives the last batch, if there are rows left.
    ///
    /// # Errors
    /// The first error of `take`.
    pub fn finish(self) -> Result<(), FormatError> {
        self.0.finish()?.end_batch().map_err(failed)
    }
}

passes_on!(impl<F: FnMut(RecordBatch) -> io::Result<()>> TraceSink for Batches<F>);

/// Columns of the batch that is being gathered.
struct Gather<F> {
    schema: SchemaRef,
    columns: Vec<Cells>,
    nr_rows: usize,
    batch_rows: usize,
    text: String,
    take: F,
}

/// The values of a column.
enum Cells {
    Numbers(Int64Builder),
    Texts(StringBuilder),
}

impl Cells {
    fn new(kind: Kind) -> Cells {
        match kind {
            Kind::Number => Cells::Numbers(Int64Builder::new()),
            Kind::Text => Cells::Texts(StringBuilder::new()),
        }
    }

    fn push(&mut self, value: Value<'_>, text: &mut String) {
        match (self, value) {
            (Cells::Numbers(cells), Value::Number(n)) => {
                cells.append_value(i64::try_from(n).unwrap_or(i64::MAX));
            }
            (Cells::Numbers(cells), Value::Absent) => cells.append_null(),
            (Cells::Texts(cells), Value::Absent) => cells.append_null(),
            (Cells::Texts(cells), value) => cells.append_value(shown(value, text)),
            (Cells::Numbers(_), value) => unreachable!("{value:?} in a column of numbers"),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Cells::Numbers(cells) => Arc::new(cells.finish()),
            Cells::Texts(cells) => Arc::new(cells.finish()),
        }
    }
}

/// The columns of a table of such rows.
pub fn schema(rows: Rows) -> SchemaRef {
    match rows {
        Rows::Events => schema_of(&EVENT_COLUMNS),
        Rows::Ios => schema_of(&IO_COLUMNS),
        Rows::Bios => schema_of(&BIO_COLUMNS),
    }
}

fn schema_of<R>(columns: &[Column<R>]) -> SchemaRef {
    let field = |c: &Column<R>| {
        let kind = match c.kind {
            Kind::Number => DataType::Int64,
            Kind::Text => DataType::Utf8,
        };
        Field::new(c.name, kind, c.is_optional)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> Gather<F> {
    fn new<R>(columns: &[Column<R>], batch_rows: NonZeroUsize, take: F) -> Gather<F> {
        Gather {
            schema: schema_of(columns),
            columns: columns.iter().map(|c| Cells::new(c.kind)).collect(),
            nr_rows: 0,
            batch_rows: batch_rows.get(),
            text: String::new(),
            take,
        }
    }

    fn end_batch(&mut self) -> io::Result<()> {
        if self.nr_rows == 0 {
            return Ok(());
        }
        self.nr_rows = 0;
        let columns = self.columns.iter_mut().map(Cells::take).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        (self.take)(batch.map_err(io::Error::other)?)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> TakesRows for Gather<F> {
    fn row<R>(&mut self, columns: &[Column<R>], row: &R) -> io::Result<()> {
        for (cells, column) in self.columns.iter_mut().zip(columns) {
            cells.push((column.get)(row), &mut self.text);
        }
        self.nr_rows += 1;
        if self.nr_rows >= self.batch_rows {
            return self.end_batch();
        }
        Ok(())
    }
}
