// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table on its way into a file: CSV, or Parquet.

use crate::columns::{Column, shown};
#[cfg(feature = "parquet")]
use crate::parquet::Groups;
use std::io::{self, Write};

/// What every file of Parquet begins with.
pub(crate) const PARQUET_MAGIC: &[u8] = b"PAR1";

/// Formats of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheetFormat {
    /// Comma-separated values with a line of titles.
    Csv,
    /// Apache Parquet, compressed with gzip; refused without the feature `parquet`.
    Parquet,
}

/// Takes the rows of a table, one after another.
pub(crate) trait TakesRows {
    /// All rows have the same columns.
    fn row<R>(&mut self, columns: &[Column<R>], row: &R) -> io::Result<()>;
}

/// A table that is being written.
pub(crate) enum Sheet<W: Write> {
    Csv(Box<csv::Writer<W>>, String),
    #[cfg(feature = "parquet")]
    Parquet(Box<Groups<W>>),
}

impl<W: Write + Send> Sheet<W> {
    pub(crate) fn new<R>(
        format: SheetFormat,
        columns: &[Column<R>],
        inner: W,
    ) -> io::Result<Sheet<W>> {
        match format {
            SheetFormat::Csv => {
                let mut csv = csv::Writer::from_writer(inner);
                csv.write_record(columns.iter().map(|c| c.name))
                    .map_err(csv_error)?;
                Ok(Sheet::Csv(Box::new(csv), String::new()))
            }
            #[cfg(feature = "parquet")]
            SheetFormat::Parquet => Ok(Sheet::Parquet(Box::new(Groups::new(columns, inner)?))),
            #[cfg(not(feature = "parquet"))]
            SheetFormat::Parquet => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "built without its feature 'parquet'; CSV has the same rows",
            )),
        }
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Sheet::Csv(csv, _) => csv.into_inner().map_err(csv::IntoInnerError::into_error),
            #[cfg(feature = "parquet")]
            Sheet::Parquet(groups) => groups.finish(),
        }
    }
}

impl<W: Write + Send> TakesRows for Sheet<W> {
    fn row<R>(&mut self, columns: &[Column<R>], row: &R) -> io::Result<()> {
        match self {
            Sheet::Csv(csv, text) => {
                for column in columns {
                    csv.write_field(shown((column.get)(row), text))
                        .map_err(csv_error)?;
                }
                csv.write_record(None::<&[u8]>).map_err(csv_error)
            }
            #[cfg(feature = "parquet")]
            Sheet::Parquet(groups) => groups.row(columns, row),
        }
    }
}

fn csv_error(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    }
}
