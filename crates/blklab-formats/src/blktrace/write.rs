// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing blktrace binary, little endian.

use super::files;
use super::{
    COMM_BYTES, MAGIC, RECORD_BYTES, VERSION, categories, category, device_number, note, payload,
};
use crate::names::Names;
use crate::output::Output;
use crate::{FormatError, PartialFile};
use blklab_trace::{Action, Event, TraceHeader, TraceSink};
use blklab_types::{Pid, Time};
use std::io::Write;
use std::path::{Path, PathBuf};

/// CPUs that a trace may have: the most that Linux can be built for
/// (`NR_CPUS`, arch/x86/Kconfig). Each has a file, open until the end.
const CPUS_MAX: u32 = 8192;

/// The record before its payload.
struct Record {
    sequence: u32,
    action: u32,
    payload_bytes: u16,
}

impl Record {
    /// A note about `event`'s time, process, device and CPU.
    fn note(code: u32, payload_bytes: u16) -> Record {
        Record {
            sequence: 0,
            action: code | category::NOTIFY << 16,
            payload_bytes,
        }
    }

    #[inline]
    fn put(&self, buf: &mut Vec<u8>, event: &Event) {
        let mut r = [0; RECORD_BYTES];
        r[0..4].copy_from_slice(&(MAGIC | VERSION).to_le_bytes());
        r[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        r[8..16].copy_from_slice(&event.time.0.to_le_bytes());
        r[16..24].copy_from_slice(&event.sector.to_le_bytes());
        r[24..28].copy_from_slice(&event.bytes.to_le_bytes());
        r[28..32].copy_from_slice(&self.action.to_le_bytes());
        r[32..36].copy_from_slice(&event.pid.to_le_bytes());
        r[36..40].copy_from_slice(&device_number(event.dev).to_le_bytes());
        r[40..44].copy_from_slice(&u32::from(event.cpu).to_le_bytes());
        r[44..46].copy_from_slice(&event.error.to_le_bytes());
        r[46..48].copy_from_slice(&self.payload_bytes.to_le_bytes());
        buf.extend_from_slice(&r);
    }
}

fn put_event(buf: &mut Vec<u8>, sequence: &mut u32, names: &mut Names, event: &Event) {
    // Each name once, right before the first event of its process: there every
    // reader has seen it when it needs it. A later name for the same process is
    // left out, as the kernel does and blkparse expects.
    if let Some(comm) = names.take(event.pid) {
        let about = Event {
            sector: 0,
            bytes: 0,
            error: 0,
            ..*event
        };
        Record::note(note::PROCESS, COMM_BYTES as u16).put(buf, &about);
        buf.extend_from_slice(&comm);
    }
    *sequence = sequence.wrapping_add(1);
    let (bytes, len) = payload(event);
    let record = Record {
        sequence: *sequence,
        action: event.action as u32 | categories(event.action, event.rwbs) << 16,
        payload_bytes: len as u16,
    };
    record.put(buf, event);
    buf.extend_from_slice(&bytes[..len]);
}

fn put_message(buf: &mut Vec<u8>, event: &Event, text: &str) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    Record::note(note::MESSAGE, len).put(buf, event);
    buf.extend_from_slice(&text.as_bytes()[..usize::from(len)]);
}

/// The wall clock at time 0, as the first record says it: 1970-01-01, since a
/// trace of virtual time has no other.
fn put_timestamp(buf: &mut Vec<u8>) {
    let start = Event::message(Time::ZERO, 0, 0, blklab_types::Dev::default());
    Record::note(note::TIMESTAMP, 8).put(buf, &start);
    buf.extend_from_slice(&[0; 8]);
}

/// Writes `NAME.blktrace.0`, `NAME.blktrace.1`, …, as `blktrace -o NAME`
/// does, for `blkparse -i NAME`.
///
/// All files get their names when [`BlktraceWriter::finish`] succeeds.
#[derive(Debug)]
pub struct BlktraceWriter {
    base: PathBuf,
    cpus: Vec<Cpu>,
    names: Names,
    nr_events: u64,
    error: Option<FormatError>,
}

#[derive(Debug)]
struct Cpu {
    out: Output<PartialFile>,
    sequence: u32,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlktraceWritten {
    /// The files, by CPU.
    pub files: Vec<PathBuf>,
    /// Events and messages in them.
    pub nr_events: u64,
    /// Their length together.
    pub bytes: u64,
}

fn cpu_file(base: &Path, cpu: usize) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!(".blktrace.{cpu}"));
    PathBuf::from(name)
}

impl BlktraceWriter {
    /// Starts the files of all CPUs of `header` (at least one). `base` is the
    /// NAME, with a directory if wanted. blkparse stops at the first CPU
    /// without a file, so CPUs without events have an empty one.
    ///
    /// # Errors
    /// When a file cannot be created, or there are too many CPUs.
    pub fn create(base: &Path, header: &TraceHeader) -> Result<BlktraceWriter, FormatError> {
        let mut writer = BlktraceWriter {
            base: base.to_path_buf(),
            cpus: Vec::new(),
            names: Names::default(),
            nr_events: 0,
            error: None,
        };
        writer.add_cpus(u32::from(header.nr_cpus.max(1)))?;
        put_timestamp(&mut writer.cpus[0].out.buf);
        Ok(writer)
    }

    fn add_cpus(&mut self, nr_cpus: u32) -> Result<(), FormatError> {
        if nr_cpus > CPUS_MAX {
            return Err(FormatError::TooManyCpus {
                nr_cpus,
                limit: CPUS_MAX,
            });
        }
        while self.cpus.len() < nr_cpus as usize {
            let file = PartialFile::create(&cpu_file(&self.base, self.cpus.len()))?;
            self.cpus.push(Cpu {
                out: Output::new(file),
                sequence: 0,
            });
        }
        let nr_files = self.cpus.len();
        for cpu in &mut self.cpus {
            cpu.out.share(nr_files);
        }
        Ok(())
    }

    /// The files of `event`'s CPU, or `None` if there cannot be one.
    fn ready(&mut self, event: &Event) -> Option<usize> {
        let cpu = usize::from(event.cpu);
        if self.cpus.get(cpu).is_none() {
            if self.error.is_some() {
                return None;
            }
            if let Err(e) = self.add_cpus(u32::from(event.cpu) + 1) {
                self.error = Some(e);
                return None;
            }
        }
        self.nr_events += 1;
        Some(cpu)
    }

    /// Writes the rest and gives the files their names. Files of CPUs that an
    /// earlier trace of this name had and this one has not are removed: they
    /// would be read as part of it.
    ///
    /// # Errors
    /// The first error since the start; then nothing is left.
    pub fn finish(self) -> Result<BlktraceWritten, FormatError> {
        if let Some(e) = self.error {
            return Err(e);
        }
        let mut partial = Vec::with_capacity(self.cpus.len());
        for cpu in self.cpus {
            partial.push(cpu.out.finish("the trace")?);
        }
        let files: Vec<PathBuf> = partial.iter().map(|f| f.path().to_path_buf()).collect();
        // CPU 0 last: blkparse begins there, and then finds all others.
        let bytes = PartialFile::commit_all(partial.into_iter().rev())?;
        files::remove_others(&self.base, &files)?;
        Ok(BlktraceWritten {
            files,
            nr_events: self.nr_events,
            bytes,
        })
    }
}

impl TraceSink for BlktraceWriter {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Message {
            return self.message(event, "");
        }
        if let Some(idx) = self.ready(event) {
            let cpu = &mut self.cpus[idx];
            put_event(&mut cpu.out.buf, &mut cpu.sequence, &mut self.names, event);
            cpu.out.end_record();
        }
    }

    fn message(&mut self, event: &Event, text: &str) {
        if let Some(idx) = self.ready(event) {
            let out = &mut self.cpus[idx].out;
            put_message(&mut out.buf, event, text);
            out.end_record();
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.add(pid, comm.as_bytes());
    }
}

/// Writes all CPUs into one stream in the order given, times as they are,
/// like `blkparse -d`: what btt and fio's `read_iolog` take.
#[derive(Debug)]
pub struct BlktraceStream<W> {
    out: Output<W>,
    sequences: Vec<u32>,
    names: Names,
}

impl<W: Write> BlktraceStream<W> {
    /// Writes to `inner`.
    pub fn new(inner: W) -> BlktraceStream<W> {
        let mut out = Output::new(inner);
        put_timestamp(&mut out.buf);
        BlktraceStream {
            out,
            sequences: Vec::new(),
            names: Names::default(),
        }
    }

    /// Writes the rest and returns what was written to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(self) -> Result<W, FormatError> {
        self.out.finish("blktrace records")
    }
}

impl<W: Write> TraceSink for BlktraceStream<W> {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Message {
            return self.message(event, "");
        }
        let cpu = usize::from(event.cpu);
        if cpu >= self.sequences.len() {
            self.sequences.resize(cpu + 1, 0);
        }
        put_event(
            &mut self.out.buf,
            &mut self.sequences[cpu],
            &mut self.names,
            event,
        );
        self.out.end_record();
    }

    fn message(&mut self, event: &Event, text: &str) {
        put_message(&mut self.out.buf, event, text);
        self.out.end_record();
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        self.names.add(pid, comm.as_bytes());
    }
}
