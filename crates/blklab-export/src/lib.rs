// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces for other programs.
//!
//! | form | holds | writer |
//! |---|---|---|
//! | CSV, Parquet | a row for each event, each I/O or each bio | [`TableWriter`] |
//! | Perfetto | tracks of processes, scheduler, hardware queues and slots of the device, with flows and counters | [`PerfettoWriter`] |
//! | fio's iolog, version 3 | what was asked for, and when | [`IologExport`] |
//!
//! Parquet needs the feature `parquet`, and brings some thirty packages. The feature `arrow` gives the
//! same tables to programs as batches of columns, without a file (`Batches`).
//!
//! Writers are [`TraceSink`](blklab_trace::TraceSink)s that keep their first error and
//! report it from `finish`. Memory is bound by the I/O in flight, and by the rows of
//! one group of Parquet.

#[cfg(feature = "arrow")]
mod batches;
mod columns;
mod iolog;
#[cfg(feature = "parquet")]
mod parquet;
mod people;
mod perfetto;
mod rows;
mod sheet;
mod table;

#[cfg(feature = "arrow")]
pub use batches::{Batches, schema};
pub use columns::{Column, Kind};
pub use iolog::IologExport;
pub use perfetto::PerfettoWriter;
pub use rows::{BIO_COLUMNS, EVENT_COLUMNS, IO_COLUMNS};
pub use sheet::SheetFormat;
pub use table::{Rows, TableWriter};

use std::path::Path;

/// Whether a file was written by one of these writers: then another may take its
/// place.
pub fn is_written_here(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| {
        std::io::Read::read_to_end(&mut std::io::Read::take(file, HEAD_BYTES), &mut head)
    });
    read.is_ok()
        && (head.starts_with(sheet::PARQUET_MAGIC)
            || table::is_title(&head)
            || perfetto::is_head(&head))
}

/// Bytes that tell a file of ours: the titles of the widest table.
const HEAD_BYTES: u64 = 1024;
