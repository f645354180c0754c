// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace file of whatever format it has, recognised by what is in it.

use crate::blkparse::BlkparseWriter;
use crate::blktrace::{self, BlktraceReader, CpuFile};
use crate::ctf::{self, CtfReader};
use crate::foreign::{self, Told};
use crate::format::{Format, Reader};
use crate::input::Input;
use crate::snoop::{self, Columns, SnoopReader};
use crate::source::{FileId, Progress, Source};
use crate::sums::{SUMS_BYTES_MAX, Sums, SumsKind};
use crate::table::{open, recognise, with_drivers};
use crate::{FormatError, Numbered, ReadCounts};
use blklab_trace::{Action, Digest, DigestSink, Item, TraceHeader, TraceSink, TraceSource};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// An open trace: a file, several of them, or a pipe.
#[derive(Debug)]
pub struct TraceFile {
    format: &'static Format,
    reader: Box<dyn Reader>,
    /// The files of the CPUs; empty for a single file or pipe.
    cpu_files: Vec<PathBuf>,
    inputs: Vec<FileId>,
    progress: Progress,
    /// What to call it in errors.
    name: String,
    expected: Option<Expected>,
}

/// The events that a trace has to have.
#[derive(Debug)]
struct Expected {
    /// Their digest.
    digest: u64,
    /// What says so.
    by: String,
    /// The digest of those that were read.
    read: Digest,
}

impl Expected {
    /// All events were read.
    fn check(&self, name: &str) -> Result<(), FormatError> {
        if self.read.value() == self.digest {
            return Ok(());
        }
        Err(FormatError::OtherEvents {
            input: name.to_owned(),
            wanted: self.digest,
            found: self.read.value(),
            by: self.by.clone(),
        })
    }
}

impl TraceFile {
    /// The same trace, of which reading fails at the end if its events do not have this digest;
    /// `by` is what says that they have it.
    #[must_use]
    pub fn with_digest(mut self, digest: u64, by: &Path) -> TraceFile {
        self.expected = Some(Expected {
            digest,
            by: by.display().to_string(),
            read: Digest::default(),
        });
        self
    }

    /// Opens `path`: a file of any format, compressed or not, the NAME of
    /// `NAME.blktrace.0` and so on, a folder of LTTng or a file in one, a pipe, or
    /// `-` for standard input. Whatever it is is opened once and read to its end.
    ///
    /// # Errors
    /// When there is no such file, or it is no trace.
    pub fn open(path: &Path) -> Result<TraceFile, FormatError> {
        if path != Path::new("-") && !path.exists() {
            return TraceFile::open_cpus(path);
        }
        if ctf::is_ctf_folder(path) {
            return TraceFile::open_folder(path);
        }
        let source = Source::open(path)?;
        let (id, is_file, progress) = (source.id(), source.is_file(), source.progress());
        let name = match path.to_string_lossy() {
            dash if dash == "-" => "standard input".into(),
            name => name,
        };
        let mut input = Input::new(source, &name);
        let name = name.into_owned();
        let format = recognise(&mut input)?;
        let may_be_one_of_many =
            format.is_some_and(|f| is_same(f, &blktrace::FORMAT)) || input.available().is_empty();
        if may_be_one_of_many && is_file && CpuFile::parse(path).is_some() {
            return TraceFile::open_cpus(path);
        }
        let Some(format) = format else {
            return Err(unrecognised(&mut input));
        };
        if is_same(format, &ctf::FORMAT)
            && is_file
            && let Some(folder) = ctf::folder_of(path)
        {
            return TraceFile::open_folder(&folder);
        }
        Ok(TraceFile {
            format,
            reader: open(format, input)?,
            cpu_files: Vec::new(),
            inputs: id.into_iter().collect(),
            progress,
            name,
            expected: None,
        })
    }

    /// As [`TraceFile::open`], or, if columns are named, reads `path` as rows of these.
    ///
    /// # Errors
    /// As there, or if it has no such rows.
    pub fn open_with(path: &Path, columns: Option<&Columns>) -> Result<TraceFile, FormatError> {
        let Some(columns) = columns else {
            return TraceFile::open(path);
        };
        let source = Source::open(path)?;
        let (id, progress) = (source.id(), source.progress());
        let name = path.display().to_string();
        let mut input = Input::new(source, &name);
        input.skip_byte_order_mark()?;
        if !snoop::has_columns(&mut input, columns)? {
            let expected = "rows with the columns that are named, as many words as these";
            return Err(not_expected(&input, expected));
        }
        Ok(TraceFile {
            format: &snoop::FORMAT,
            reader: Box::new(SnoopReader::with_columns(input, columns)),
            cpu_files: Vec::new(),
            inputs: id.into_iter().collect(),
            progress,
            name,
            expected: None,
        })
    }

    /// Reads a trace of any format from `inner`, which may be compressed; `name`
    /// is for errors.
    ///
    /// # Errors
    /// When it cannot be read, or is no trace.
    pub fn from_reader(
        inner: impl Read + Send + 'static,
        name: &str,
    ) -> Result<TraceFile, FormatError> {
        let source = source_of(inner, name)?;
        let progress = source.progress();
        let mut input = Input::new(source, name);
        let Some(format) = recognise(&mut input)? else {
            return Err(unrecognised(&mut input));
        };
        TraceFile::of_input(format, input, progress)
    }

    /// Reads `inner` as a trace of this format, whatever it looks like.
    ///
    /// # Errors
    /// When it cannot be read, or is none of this format after all.
    pub fn of_format(
        format: &'static Format,
        inner: impl Read + Send + 'static,
        name: &str,
    ) -> Result<TraceFile, FormatError> {
        let source = source_of(inner, name)?;
        let progress = source.progress();
        TraceFile::of_input(format, Input::new(source, name), progress)
    }

    fn of_input(
        format: &'static Format,
        input: Input<Source>,
        progress: Progress,
    ) -> Result<TraceFile, FormatError> {
        Ok(TraceFile {
            format,
            progress,
            name: input.name.clone(),
            reader: open(format, input)?,
            cpu_files: Vec::new(),
            inputs: Vec::new(),
            expected: None,
        })
    }

    fn open_cpus(path: &Path) -> Result<TraceFile, FormatError> {
        let (reader, opened) = BlktraceReader::open_files(path)?;
        Ok(TraceFile {
            format: &blktrace::FORMAT,
            reader: Box::new(reader),
            inputs: opened.ids,
            progress: opened.progress,
            name: path.display().to_string(),
            cpu_files: opened.paths,
            expected: None,
        })
    }

    fn open_folder(path: &Path) -> Result<TraceFile, FormatError> {
        let (reader, opened) = CtfReader::open_files(path)?;
        Ok(TraceFile {
            format: &ctf::FORMAT,
            reader: with_drivers(&ctf::FORMAT, Box::new(reader))?,
            cpu_files: Vec::new(),
            inputs: opened.ids,
            progress: opened.progress,
            name: path.display().to_string(),
            expected: None,
        })
    }

    /// Whether a folder is a trace: one of LTTng.
    pub fn is_folder(path: &Path) -> bool {
        ctf::is_ctf_folder(path)
    }

    /// Whether files of a folder itself, and not of one below it, are a trace: one of LTTng.
    pub fn holds_one(folder: &Path) -> bool {
        ctf::has_ctf_metadata(folder)
    }

    /// The format.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// What the trace says about itself, where the format has that.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.reader.header()
    }

    /// Whether the trace says what was lost of it: that it names no losses means that there
    /// were none. Complete after the last item.
    pub fn says_losses(&self) -> bool {
        self.format.says_losses && !self.counts().unsaid
    }

    /// Whether flags of its events say which writes are sync: recorders of no more than the
    /// beginning and the end of an I/O show none, and neither do copies of what they recorded.
    pub fn says_flags(&self) -> bool {
        let has = |h: &TraceHeader, action| h.recorded.has(action);
        let has_requests = |h| has(h, Action::Insert) || has(h, Action::GetRequest);
        self.format.says_flags && self.header().is_none_or(has_requests)
    }

    /// What a copy has to keep of what this trace lacks; complete after the last item.
    pub fn lacks(&self) -> ReadCounts {
        ReadCounts {
            unsaid: !self.says_losses(),
            ..self.counts().clone()
        }
    }

    /// Refuses a trace that has ended and in which nothing was, not even damage. Only files of
    /// blktrace can be so: texts are told by their first event, and the others say themselves
    /// how much there was, if only that it was nothing.
    fn check_not_empty(&self) -> Result<(), FormatError> {
        let c = self.counts();
        let nr = [c.events, c.messages, c.kernel_events, c.other_events];
        let amiss = [c.unknown, c.damaged, c.foreign, c.skipped_bytes, c.missing];
        let is_empty = nr.iter().chain(&amiss).all(|n| *n == 0) && !c.truncated;
        if is_empty && is_same(self.format, &blktrace::FORMAT) {
            return Err(FormatError::Empty {
                input: self.name.clone(),
            });
        }
        Ok(())
    }

    /// The files of the CPUs, where the trace is one file for each.
    pub fn cpu_files(&self) -> &[PathBuf] {
        &self.cpu_files
    }

    /// CPUs below the highest that have no file: they were not online, or their
    /// files are missing.
    pub fn missing_cpus(&self) -> Vec<u16> {
        let cpus = self
            .cpu_files
            .iter()
            .filter_map(|path| CpuFile::parse(path));
        let there: Vec<u16> = cpus.map(|file| file.cpu).collect();
        let highest = there.last().copied().unwrap_or(0);
        (0..highest).filter(|cpu| !there.contains(cpu)).collect()
    }

    /// The files that are read: an output must be none of them.
    pub fn inputs(&self) -> &[FileId] {
        &self.inputs
    }

    /// How much of it was read, while it is read.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.reader.counts()
    }

    /// Whether a file that exists is a trace of any format, or empty: then
    /// another trace may take its place.
    pub fn is_trace(path: &Path) -> bool {
        let Ok(source) = Source::open(path) else {
            return false;
        };
        let mut input = Input::new(source, "");
        match recognise(&mut input) {
            Ok(format) => format.is_some() || input.available().is_empty(),
            Err(_) => false,
        }
    }

    /// Whether a file that is no trace has sums in place of I/Os.
    pub fn has_sums(path: &Path) -> bool {
        let Some(source) = path.is_file().then(|| Source::open(path).ok()).flatten() else {
            return false;
        };
        let mut input = Input::new(source, "");
        let is_no_trace = matches!(recognise(&mut input), Ok(None));
        is_no_trace && foreign::told(input.available()).is_some_and(|told| told.sums.is_some())
    }
}

/// Whether these are the same row.
fn is_same(format: &Format, other: &Format) -> bool {
    format.name == other.name
}

/// What a reader gives, decompressed.
fn source_of(inner: impl Read + Send + 'static, name: &str) -> Result<Source, FormatError> {
    Source::of_reader(inner).map_err(|e| FormatError::io(format!("read {name}"), e))
}

fn unrecognised(input: &mut Input<Source>) -> FormatError {
    match foreign::told(input.available()) {
        Some(told) => foreign(&told, input).unwrap_or_else(|e| e),
        None => not_expected(
            input,
            "a trace: blktrace, blkparse, ftrace, perf, trace.dat, Perfetto, biosnoop, LTTng, events.blk, or rows of fio or a research trace (docs/traces.md)",
        ),
    }
}

/// The error that says what it is, with the sums that it has.
fn foreign(told: &Told, input: &mut Input<Source>) -> Result<FormatError, FormatError> {
    let sums = match told.sums {
        Some(kind) => Some(Box::new(sums_of(kind, input)?)),
        None => None,
    };
    Ok(FormatError::Foreign {
        input: input.name.clone(),
        what: told.foreign.what,
        instead: told.foreign.instead,
        sums,
    })
}

/// What the input has, from its current place on.
fn sums_of(kind: SumsKind, input: &mut Input<Source>) -> Result<Sums, FormatError> {
    let bytes = input.fill(SUMS_BYTES_MAX + 1)?;
    let kept = &bytes[..bytes.len().min(SUMS_BYTES_MAX)];
    Ok(Sums {
        kind,
        text: String::from_utf8_lossy(kept).into_owned(),
        is_cut: bytes.len() > SUMS_BYTES_MAX,
    })
}

/// An input that is something else than what was expected.
fn not_expected(input: &Input<Source>, expected: &'static str) -> FormatError {
    let head = input.available();
    let shown = head[..head.len().min(16)].escape_ascii().to_string();
    FormatError::Unrecognised {
        input: input.name.clone(),
        expected,
        found: match head.len() {
            0 => "nothing (it is empty)".to_owned(),
            _ => format!("\"{shown}\""),
        },
    }
}

impl TraceFile {
    /// Prints the rest with the numbers that the recorder gave to events.
    ///
    /// # Errors
    /// When it cannot be read, or nothing is in it.
    pub fn print_to<W: Write>(&mut self, out: &mut BlkparseWriter<W>) -> Result<(), FormatError> {
        self.send_numbered(out, BlkparseWriter::number)
    }

    /// Sends the rest, and behind an event its number where numbers do not go on.
    ///
    /// # Errors
    /// When it cannot be read, or nothing is in it.
    pub fn send_numbered<S: TraceSink>(
        &mut self,
        sink: &mut S,
        number: impl Fn(&mut S, Numbered),
    ) -> Result<(), FormatError> {
        let mut nr_numbered = 0;
        while let Some(item) = self.next_item()? {
            item.send_to(sink);
            let numbered = &self.counts().numbered;
            numbered[nr_numbered..]
                .iter()
                .for_each(|n| number(sink, *n));
            nr_numbered = numbered.len();
        }
        self.check_not_empty()
    }
}

impl TraceSource for TraceFile {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        let item = self.reader.next_item()?;
        if let Some(expected) = &mut self.expected {
            match &item {
                Some(Item::Event(event)) => expected.read.event(event),
                Some(_) => {}
                None => expected.check(&self.name)?,
            }
        }
        Ok(item)
    }

    fn send_all(&mut self, sink: &mut dyn TraceSink) -> Result<(), FormatError> {
        match &mut self.expected {
            None => self.reader.send_all(sink)?,
            Some(expected) => {
                let mut digested = DigestSink {
                    digest: expected.read,
                    inner: sink,
                };
                self.reader.send_all(&mut digested)?;
                expected.read = digested.digest;
                expected.check(&self.name)?;
            }
        }
        self.check_not_empty()
    }
}
