// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of trace formats that are read: one row each.

use crate::blkparse::{Blkparse, BlkparseReader, ColumnsReader};
use crate::blktrace::BlktraceReader;
use crate::block_dump::{BlockDump, BlockDumpReader};
use crate::braces::{Braces, BracesReader};
use crate::compact::CompactReader;
use crate::ctf::CtfReader;
use crate::ftrace::{Ftrace, FtraceReader};
use crate::input::Input;
use crate::rows::{self, KINDS, RowKind, RowReader};
use crate::snoop::{Snoop, SnoopReader};
use crate::source::Source;
use crate::text::{Dialect, TextReader};
use crate::tracedat::TraceDatReader;
use crate::vscsi::VscsiReader;
use crate::{FormatError, ReadCounts};
use blklab_trace::{TraceHeader, TraceSource};
use std::fmt;

/// Where text must show its first event.
const PREFIX_BYTES: usize = 64 * 1024;
/// What is looked at for text before that: enough for most, so that a pipe
/// need not deliver more before anything is shown.
const SHORT_PREFIX_BYTES: usize = 4096;

/// A reader of what was recognised, or why there is none after all.
type Opened = Result<Box<dyn Reader>, FormatError>;

/// A trace format.
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Whether its times are those that blkparse printed, from the first event
    /// of the original trace, not those of a clock.
    pub has_printed_times: bool,
    /// Whether an input is of this format, by what it begins with.
    pub(crate) recognises: fn(&mut Input<Source>) -> Result<bool, FormatError>,
    /// Reads an input of this format.
    pub(crate) open: fn(Input<Source>) -> Opened,
}

impl Format {
    /// Whether a trace of it may be a file for each CPU.
    pub(crate) fn is_blktrace(&self) -> bool {
        self.name == "blktrace"
    }

    /// Whether a trace of it is a folder.
    pub(crate) fn is_ctf(&self) -> bool {
        self.name == "ctf"
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// All formats, in the order in which they are tried: those that a few bytes
/// tell first.
pub static FORMATS: [Format; 21] = [
    Format {
        name: "blktrace",
        summary: "NAME.blktrace.CPU: the kernel's binary records, read and written",
        has_printed_times: false,
        recognises: |input| Ok(crate::blktrace::is_magic(input.fill(MAGIC_BYTES)?)),
        open: |input| Ok(Box::new(BlktraceReader::from_input(input))),
    },
    Format {
        name: "events.blk",
        summary: "NAME.blk: blklab's own compact form, read and written",
        has_printed_times: false,
        recognises: |input| Ok(input.fill(MAGIC_BYTES)?.starts_with(&crate::compact::MAGIC)),
        open: |input| Ok(Box::new(CompactReader::from_input(input)?)),
    },
    Format {
        name: "trace.dat",
        summary: "trace.dat of trace-cmd, versions 6 and 7; read",
        has_printed_times: false,
        recognises: |input| {
            let magic = crate::tracedat::MAGIC;
            Ok(input.fill(magic.len())?.starts_with(magic))
        },
        open: |input| Ok(Box::new(TraceDatReader::from_input(input)?)),
    },
    Format {
        name: "ctf",
        summary: "a folder of LTTng, CTF 1.8: metadata and a file for each CPU; read",
        has_printed_times: false,
        recognises: |input| Ok(crate::ctf::begins_like_ctf(input.fill(MAGIC_BYTES)?)),
        // Whoever named a file of a folder was given the folder.
        open: |input| Err(FormatError::Folder { input: input.name }),
    },
    Format {
        name: "blkparse",
        summary: "NAME.txt: text as blkparse prints it, read and written",
        has_printed_times: true,
        recognises: |input| begins_with(input, Blkparse::default),
        open: |input| {
            let reader = BlkparseReader::from_input(input);
            Ok(Box::new(reader.with_others(others_than("blkparse"))))
        },
    },
    Format {
        name: "ftrace",
        summary: "tracepoints as text: trace_pipe, trace-cmd report, perf script; read",
        has_printed_times: false,
        recognises: |input| begins_with(input, Ftrace::default),
        open: |input| {
            let reader = FtraceReader::from_input(input);
            Ok(Box::new(reader.with_others(others_than("ftrace"))))
        },
    },
    Format {
        name: "biosnoop",
        summary: "lines of biosnoop (bcc, libbpf-tools, bpftrace) and iosnoop; read",
        has_printed_times: false,
        recognises: |input| begins_with(input, Snoop::default),
        open: |input| {
            let reader = SnoopReader::from_input(input);
            Ok(Box::new(reader.with_others(others_than("biosnoop"))))
        },
    },
    Format {
        name: "lttng",
        summary: "events of LTTng in text: babeltrace, LTTV of 2009; read",
        has_printed_times: false,
        recognises: |input| begins_with(input, Braces::default),
        open: |input| Ok(Box::new(BracesReader::from_input(input))),
    },
    Format {
        name: "blkparse-columns",
        summary: "text as blkparse prints it in a form of the user's own (-f); read",
        has_printed_times: true,
        recognises: |input| {
            let prefix = input.fill(SHORT_PREFIX_BYTES)?;
            Ok(crate::blkparse::recognises_columns(prefix))
        },
        open: |input| Ok(Box::new(ColumnsReader::from_input(input)?)),
    },
    Format {
        name: "block_dump",
        summary: "lines of vm.block_dump in the log of a kernel up to 5.12; read",
        has_printed_times: false,
        recognises: |input| begins_with(input, BlockDump::default),
        open: |input| Ok(Box::new(BlockDumpReader::from_input(input))),
    },
    Format {
        name: "fio-iolog",
        summary: "NAME.iolog: what a fio job asked for, version 2, 3 (written); read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[0]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[0], input))),
    },
    Format {
        name: "msr",
        summary: "MSR Cambridge: asked and answered, in 100 ns; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[1]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[1], input))),
    },
    Format {
        name: "alibaba",
        summary: "Alibaba Cloud 2020: asked, in microseconds; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[2]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[2], input))),
    },
    Format {
        name: "spc",
        summary: "Storage Performance Council: asked; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[3]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[3], input))),
    },
    Format {
        name: "fio-lat-log",
        summary: "fio's latency log (write_lat_log), with offsets by log_offset; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[4]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[4], input))),
    },
    Format {
        name: "tencent",
        summary: "Tencent CBS: asked, in seconds; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[5]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[5], input))),
    },
    Format {
        name: "fiu",
        summary: "Florida International University: asked, with processes; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[6]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[6], input))),
    },
    Format {
        name: "disksim-validate",
        summary: "DiskSim's measured requests: asked and answered; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[7]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[7], input))),
    },
    Format {
        name: "disksim",
        summary: "DiskSim ASCII: asked; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[8]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[8], input))),
    },
    Format {
        name: "mqsim",
        summary: "MQSim: asked; read",
        has_printed_times: false,
        recognises: |input| begins_with_rows(input, &KINDS[9]),
        open: |input| Ok(Box::new(RowReader::from_input(&KINDS[9], input))),
    },
    Format {
        name: "vscsi",
        summary: "VMware's SCSI traces (CloudPhysics), versions 1 and 2; read",
        has_printed_times: false,
        recognises: |input| crate::vscsi::is_vscsi(input),
        open: |input| Ok(Box::new(VscsiReader::from_input(input)?)),
    },
];

/// Mails have lines of several programs side by side: the dialects that may stand
/// beside that of a row.
fn others_than(name: &str) -> Vec<Box<dyn Dialect>> {
    type Make = fn() -> Box<dyn Dialect>;
    let all: [(&str, Make); 3] = [
        ("blkparse", || Box::new(Blkparse::default())),
        ("ftrace", || Box::new(Ftrace::default())),
        ("biosnoop", || Box::new(Snoop::default())),
    ];
    let others = all.iter().filter(|(other, _)| *other != name);
    others.map(|(_, make)| make()).collect()
}

/// Bytes that tell a binary format.
const MAGIC_BYTES: usize = crate::compact::MAGIC.len();

/// Whether a text is recognised near its beginning, behind whatever a mail may
/// have in front: by its first event.
fn begins_with<D: Dialect>(
    input: &mut Input<Source>,
    dialect: impl Fn() -> D,
) -> Result<bool, FormatError> {
    for len in [SHORT_PREFIX_BYTES, PREFIX_BYTES] {
        let prefix = input.fill(len)?;
        let mut reader = TextReader::new(Input::new(prefix, ""), dialect());
        if matches!(reader.next_item(), Ok(Some(_))) || reader.counts().other_events > 0 {
            return Ok(true);
        }
        if prefix.len() < len {
            break;
        }
    }
    Ok(false)
}

/// Whether a text begins with rows of this kind.
fn begins_with_rows(
    input: &mut Input<Source>,
    kind: &'static RowKind,
) -> Result<bool, FormatError> {
    Ok(rows::recognises(kind, input.fill(SHORT_PREFIX_BYTES)?))
}

/// The format of an input; none if no row recognises it.
pub(crate) fn recognise(input: &mut Input<Source>) -> Result<Option<&'static Format>, FormatError> {
    for format in &FORMATS {
        if (format.recognises)(input)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// A reader of any format.
pub(crate) trait Reader: TraceSource<Error = FormatError> + fmt::Debug + Send {
    /// What was found so far; complete after the last item.
    fn counts(&self) -> &ReadCounts;

    /// What the trace says about itself, where the format has that.
    fn header(&self) -> Option<&TraceHeader> {
        None
    }
}

impl Reader for BlktraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for CompactReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header())
    }
}

impl Reader for BlkparseReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for ColumnsReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for BlockDumpReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

impl Reader for FtraceReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}

impl Reader for SnoopReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

impl Reader for RowReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

impl Reader for VscsiReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

impl Reader for TraceDatReader {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header()).filter(|h| !h.kernel.is_empty())
    }
}

impl Reader for CtfReader {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header()).filter(|h| !h.kernel.is_empty())
    }
}

impl Reader for BracesReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }
}
