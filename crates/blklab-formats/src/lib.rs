// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte and text layouts of traces, and nothing else.
//!
//! | format | write | read |
//! |---|---|---|
//! | `events.blk`, the compact form of this project (`docs/trace-format.md`) | [`compact::CompactWriter`] | [`compact::CompactReader`] |
//! | blktrace binary (written as version 7, read as 7 and 8) | [`blktrace::BlktraceWriter`], [`blktrace::BlktraceStream`] | [`blktrace::BlktraceReader`] |
//! | blkparse text | [`blkparse::BlkparseWriter`] | [`blkparse::BlkparseReader`] |
//! | blkparse text in a form of the user's own | | [`blkparse::ColumnsReader`] |
//! | what block_dump wrote to the kernel's log | | [`block_dump::BlockDumpReader`] |
//! | tracepoints as text (ftrace, trace-cmd, perf) | | [`ftrace::FtraceReader`] |
//! | `trace.dat` of trace-cmd | [`tracedat::write_trace_dat`], from a kernel's pages | [`tracedat::TraceDatReader`] |
//! | folders of LTTng (CTF 1.8) | | [`ctf::CtfReader`] |
//! | events of LTTng in text | | [`braces::BracesReader`] |
//! | lines of biosnoop and iosnoop | | [`snoop::SnoopReader`] |
//! | packets of Perfetto with events of ftrace | `blklab-export` | a row of [`FORMATS`] |
//! | tables of events in CSV, and in Parquet (feature `parquet`) | `blklab-export` | a row of [`FORMATS`] |
//! | the trace of QEMU's NVMe device | | a row of [`FORMATS`] |
//! | rows of research traces and fio's logs | | a row of [`FORMATS`] each |
//! | SCSI traces of VMware's hypervisor | | [`vscsi::VscsiReader`] |
//!
//! Writers are [`TraceSink`](blklab_trace::TraceSink)s: they keep their first
//! error and report it from `finish`. Readers are
//! [`TraceSource`](blklab_trace::TraceSource)s: memory is bounded, no input
//! makes them panic, and whatever they cannot use is counted in a
//! [`ReadCounts`].
//!
//! [`TraceFile`] opens a file of any of these.
//!
//! A file is written through a [`PartialFile`], which has the name only when
//! it is complete.

pub mod blkparse;
pub mod blktrace;
pub mod block_dump;
pub mod braces;
pub mod compact;
mod counts;
pub mod ctf;
mod disks;
mod driver;
mod error;
mod events_csv;
mod events_parquet;
mod fields;
mod file;
mod foreign;
mod foreign_row;
mod foreign_sums;
mod format;
pub mod ftrace;
mod input;
mod kernel;
mod limit;
mod lttng;
mod names;
mod order;
mod output;
pub mod perfetto;
mod plausible;
mod qemu;
mod rows;
mod sequence;
pub mod snoop;
mod source;
mod store;
mod sums;
mod table;
mod text;
pub mod tracedat;
mod tracepoints;
pub mod vscsi;

pub use counts::{Numbered, ReadCounts};
pub use error::FormatError;
pub use file::TraceFile;
pub use format::Format;
pub use output::{PartialFile, remove_partial_files};
pub use source::{FileId, Progress, Source};
pub use sums::{SUMS_BYTES_MAX, Sums, SumsKind};
pub use table::FORMATS;
