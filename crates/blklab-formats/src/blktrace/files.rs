// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of all CPUs, merged by time.

use super::read::{Said, Stream};
use crate::input::Input;
use crate::source::{FileId, Progress, Source};
use crate::{FormatError, ReadCounts};
use blklab_trace::{Action, Event, Item, TraceSink, TraceSource};
use blklab_types::Time;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Reads blktrace binary, versions 7 and 8, of either byte order.
///
/// Times are those of the recording machine; blkparse subtracts that of the
/// first event. Events of equal time come in blkparse's order. The name of a
/// process comes before the event that follows it in its file, which can be
/// a little early with regard to its time.
#[derive(Debug)]
pub struct BlktraceReader<R> {
    streams: Vec<Stream<R>>,
    /// The event each stream has next.
    heads: Vec<Option<Event>>,
    /// Its text, if it is a message.
    texts: Vec<String>,
    /// Streams that have an event, in the order they are taken from.
    queue: Vec<usize>,
    /// The stream whose next event is looked for.
    loading: Option<usize>,
    /// Whether a first event was looked for in all streams.
    primed: bool,
    counts: ReadCounts,
    last_time: Time,
    text: String,
    /// Plain events on their way to a sink.
    batch: Vec<Event>,
}

/// Plain events that a sink is given at a time: so few that they are still in the
/// processor's first cache.
const BATCH_EVENTS: usize = 256;

/// The name of the file of one CPU: `NAME.blktrace.CPU`, perhaps compressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CpuFile {
    /// `NAME`, with its folder.
    pub(crate) base: PathBuf,
    pub(crate) cpu: u16,
}

/// Bytes that tell records of blktrace.
const MAGIC_BYTES: usize = 4;

/// Ends of the names of compressed files, behind a dot.
pub const COMPRESSED: [&str; 3] = ["zst", "gz", "xz"];

impl CpuFile {
    pub(crate) fn parse(path: &Path) -> Option<CpuFile> {
        let name = path.file_name()?.as_bytes();
        let name = COMPRESSED
            .iter()
            .find_map(|end| name.strip_suffix(end.as_bytes())?.strip_suffix(b"."))
            .unwrap_or(name);
        let marker = b".blktrace.";
        let at = name.windows(marker.len()).rposition(|w| w == marker)?;
        let cpu = std::str::from_utf8(&name[at + marker.len()..]).ok()?;
        // As blktrace writes it: no sign, no zeros in front.
        let cpu = cpu.parse::<u16>().ok().filter(|n| n.to_string() == cpu)?;
        Some(CpuFile {
            base: path.with_file_name(OsStr::from_bytes(&name[..at])),
            cpu,
        })
    }
}

/// What was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) ids: Vec<FileId>,
    pub(crate) progress: Progress,
}

fn no_such_file() -> io::Error {
    io::Error::from_raw_os_error(Errno::NOENT.raw_os_error())
}

fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// The files of all CPUs of the trace `base`, in order of the CPUs. Those of
/// CPUs that were not online do not exist.
fn list(base: &Path) -> Result<Vec<(u16, PathBuf)>, FormatError> {
    let folder = match base.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let at = |e| FormatError::at("read the folder", folder, e);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(at)? {
        let path = base.with_file_name(entry.map_err(at)?.file_name());
        if let Some(file) = CpuFile::parse(&path).filter(|file| file.base == base) {
            found.push((file.cpu, path));
        }
    }
    found.sort();
    Ok(found)
}

/// The files of the trace `base` that are there: a trace written under that name
/// takes the place of all.
///
/// # Errors
/// If the folder cannot be read.
pub fn cpu_files_there(base: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let found = list(base)?;
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Whether a file holds records of blktrace, or nothing.
fn is_blktrace(path: &Path) -> bool {
    let Ok(source) = Source::open(path) else {
        return false;
    };
    let mut input = Input::new(source, "");
    let begin = input.fill(MAGIC_BYTES);
    begin.is_ok_and(|bytes| bytes.is_empty() || super::is_magic(bytes))
}

/// Removes the files of the trace `base` that are not among `kept`: those of an
/// earlier trace. What is none of blktrace stays.
pub(super) fn remove_others(base: &Path, kept: &[PathBuf]) -> Result<(), FormatError> {
    for (_, path) in list(base)? {
        let is_file = path.symlink_metadata().is_ok_and(|m| m.is_file());
        if is_file && !kept.contains(&path) && is_blktrace(&path) {
            std::fs::remove_file(&path).map_err(|e| FormatError::at("remove", &path, e))?;
        }
    }
    Ok(())
}

/// As [`list`], with one file for each CPU.
fn cpu_files(base: &Path) -> Result<Vec<(u16, PathBuf)>, FormatError> {
    let found = list(base)?;
    for pair in found.windows(2) {
        if pair[0].0 == pair[1].0 {
            return Err(FormatError::TwoFiles {
                cpu: pair[0].0,
                files: [pair[0].1.clone(), pair[1].1.clone()],
            });
        }
    }
    Ok(found)
}

impl BlktraceReader<Source> {
    /// Opens `NAME.blktrace.0`, `NAME.blktrace.1`, … for `NAME`, or for the
    /// name of one of them; each may be compressed.
    ///
    /// # Errors
    /// When there is no such file, or one of them cannot be opened.
    pub fn open(path: &Path) -> Result<BlktraceReader<Source>, FormatError> {
        BlktraceReader::open_files(path).map(|(reader, _)| reader)
    }

    pub(crate) fn open_files(path: &Path) -> Result<(BlktraceReader<Source>, Opened), FormatError> {
        let base = CpuFile::parse(path).map_or_else(|| path.to_path_buf(), |file| file.base);
        let missing = || FormatError::at("open", path, no_such_file());
        let files = match base.file_name() {
            Some(_) if base.parent().is_none_or(is_folder) => cpu_files(&base)?,
            Some(_) => return Err(missing()),
            None => return Err(missing()),
        };
        if files.is_empty() {
            return Err(missing());
        }
        let nr_files = files.len();
        let mut streams = Vec::with_capacity(nr_files);
        let mut opened = Opened {
            paths: Vec::with_capacity(nr_files),
            ids: Vec::with_capacity(nr_files),
            progress: Progress::default(),
        };
        let mut progress = Vec::with_capacity(nr_files);
        for (cpu, path) in files {
            let source = Source::one_of(nr_files, &path)?;
            opened.ids.extend(source.id());
            progress.push(source.progress());
            let input = Input::one_of(nr_files, source, &path.to_string_lossy());
            streams.push(Stream::new(input, Some(cpu)));
            opened.paths.push(path);
        }
        opened.progress = Progress::join(progress.into_iter());
        Ok((BlktraceReader::from_streams(streams), opened))
    }
}

impl<R: Read> BlktraceReader<R> {
    /// Reads one stream in which all CPUs are mixed; `name` is for errors.
    pub fn from_stream(inner: R, name: &str) -> BlktraceReader<R> {
        BlktraceReader::from_input(Input::new(inner, name))
    }

    /// As [`BlktraceReader::from_stream`].
    pub(crate) fn from_input(input: Input<R>) -> BlktraceReader<R> {
        BlktraceReader::from_streams(vec![Stream::new(input, None)])
    }

    fn from_streams(streams: Vec<Stream<R>>) -> BlktraceReader<R> {
        BlktraceReader {
            heads: streams.iter().map(|_| None).collect(),
            texts: streams.iter().map(|_| String::new()).collect(),
            queue: Vec::with_capacity(streams.len()),
            loading: if streams.is_empty() { None } else { Some(0) },
            primed: false,
            streams,
            counts: ReadCounts::default(),
            last_time: Time::ZERO,
            text: String::new(),
            batch: Vec::new(),
        }
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    fn time(&self, stream: usize) -> Time {
        self.heads[stream].map_or(Time::MAX, |event| event.time)
    }

    /// Puts a stream in its place: by time, before others of the same time
    /// except the very first, as blkparse does.
    fn enqueue(&mut self, stream: usize) {
        let time = self.time(stream);
        let place = match self.queue.first() {
            Some(first) if self.time(*first) <= time => {
                let later = &self.queue[1..];
                1 + later.partition_point(|s| self.time(*s) < time)
            }
            _ => 0,
        };
        self.queue.insert(place, stream);
    }

    /// A stream found its next event, or its end.
    fn loaded(&mut self, stream: usize, event: Option<Event>) {
        if let Some(event) = event {
            if event.action == Action::Message {
                self.texts[stream] = std::mem::take(&mut self.streams[stream].text);
            }
            self.heads[stream] = Some(event);
        }
        if !self.primed {
            if event.is_some() {
                self.enqueue(stream);
            }
            self.loading = Some(stream + 1).filter(|next| *next < self.streams.len());
            self.primed = self.loading.is_none();
            return;
        }
        // The stream was and is the first; it stays if not later than the next.
        self.loading = None;
        let stays = event.is_some()
            && self
                .queue
                .get(1)
                .is_none_or(|next| self.time(stream) <= self.time(*next));
        if !stays {
            self.queue.remove(0);
            if event.is_some() {
                self.enqueue(stream);
            }
        }
    }
}

impl<R: Read> BlktraceReader<R> {
    /// Sends the plain records behind the last event, as far as its stream goes on.
    fn send_plain(&mut self, sink: &mut dyn TraceSink) {
        let (Some(stream), true) = (self.loading, self.primed) else {
            return;
        };
        let next = self.queue.get(1);
        let until = next.map_or(Time::MAX, |next| self.time(*next));
        while let Some(event) = self.streams[stream].next_plain(until) {
            self.counts.check_time(&mut self.last_time, event.time);
            self.counts.events += 1;
            self.batch.push(event);
            if self.batch.len() == BATCH_EVENTS {
                sink.events(&self.batch);
                self.batch.clear();
            }
        }
        sink.events(&self.batch);
        self.batch.clear();
    }
}

impl<R: Read> TraceSource for BlktraceReader<R> {
    type Error = FormatError;

    fn send_all(&mut self, sink: &mut dyn TraceSink) -> Result<(), FormatError> {
        while let Some(item) = self.next_item()? {
            item.send_to(sink);
            self.send_plain(sink);
        }
        Ok(())
    }

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        while let Some(stream) = self.loading {
            match self.streams[stream].next(&mut self.counts)? {
                Some(Said::Process(time, pid)) => {
                    self.counts.processes += 1;
                    let comm = &self.streams[stream].text;
                    return Ok(Some(Item::Process { time, pid, comm }));
                }
                Some(Said::NewRecording) => {
                    // Of several files only one does so: their times tell.
                    if self.streams.len() == 1 {
                        self.counts.new_recordings += 1;
                        self.last_time = Time::ZERO;
                        return Ok(Some(Item::NewRecording));
                    }
                }
                Some(Said::Event(event)) => self.loaded(stream, Some(event)),
                None => self.loaded(stream, None),
            }
        }
        let Some(&first) = self.queue.first() else {
            return Ok(None);
        };
        self.loading = Some(first);
        let Some(event) = self.heads[first].take() else {
            return Ok(None);
        };
        self.counts.check_time(&mut self.last_time, event.time);
        if event.action == Action::Message {
            self.counts.messages += 1;
            self.text = std::mem::take(&mut self.texts[first]);
            return Ok(Some(Item::Message(event, &self.text)));
        }
        self.counts.events += 1;
        Ok(Some(Item::Event(event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpu_files() {
        let check = |name: &str, expected: Option<(&str, u16)>| {
            let expected = expected.map(|(base, cpu)| CpuFile {
                base: base.into(),
                cpu,
            });
            assert_eq!(CpuFile::parse(Path::new(name)), expected, "{name}");
        };
        check("t.blktrace.0", Some(("t", 0)));
        check("d/t.blktrace.17.zst", Some(("d/t", 17)));
        check("a.blktrace.b.blktrace.3.gz", Some(("a.blktrace.b", 3)));
        check("x.blktrace.d/t", None);
        check("t.blktrace.00", None);
        check("t.blktrace.65536", None);
        check("t.blktrace.0.partial", None);
    }
}
