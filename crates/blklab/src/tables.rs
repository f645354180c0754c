// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as tables in memory: batches of Apache Arrow, with the columns of `NAME.parquet`.
//!
//! ```
//! use blklab::tables::{Rows, batches};
//! use blklab::trace_file::TraceFile;
//! use std::num::NonZeroUsize;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("trace.txt");
//! # std::fs::write(&path, "\
//! #  8,0 0 1 0.000000000 10 Q R 64 + 8 [x]\n\
//! #  8,0 0 2 0.000001000 10 G R 64 + 8 [x]\n\
//! #  8,0 0 3 0.000002000 10 D R 64 + 8 [x]\n\
//! #  8,0 0 4 0.000102000 0 C R 64 + 8 [0]\n")?;
//! let mut trace = TraceFile::open(&path)?;
//! let mut requests = 0;
//! let batch_rows = NonZeroUsize::new(8192).expect("a batch has rows");
//! batches(&mut trace, Rows::Ios, batch_rows, |batch| {
//!     assert!(batch.column_by_name("complete_ns").is_some());
//!     requests += batch.num_rows();
//!     Ok(())
//! })?;
//! assert_eq!(requests, 1);
//! # Ok(())
//! # }
//! ```

pub use arrow_array::RecordBatch;
pub use blklab_export::{Batches, Rows, schema};

use blklab_formats::{FormatError, TraceFile};
use blklab_trace::TraceSource as _;
use std::io;
use std::num::NonZeroUsize;

/// Gives all of a trace to `take`, a batch at a time: memory is bound by `batch_rows` rows
/// and by the I/O in flight. [`Batches`] takes the events of a run while it runs.
///
/// # Errors
/// If the trace cannot be read, and the first error of `take`.
pub fn batches(
    trace: &mut TraceFile,
    rows: Rows,
    batch_rows: NonZeroUsize,
    take: impl FnMut(RecordBatch) -> io::Result<()>,
) -> Result<(), FormatError> {
    let mut batches = Batches::new(rows, batch_rows, take);
    trace.send_all(&mut batches)?;
    batches.finish()
}
