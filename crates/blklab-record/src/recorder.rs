// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recording: buffers of the CPUs into files, and these into one.

use crate::groups::{BLOCK, Group, SCHED_EVENTS};
use crate::head::{head, read_large};
use crate::instance::Instance;
use crate::kept::Kept;
use crate::{Disk, RecordError, Roots, stacks};
use blklab_formats::PartialFile;
use blklab_formats::tracedat::{Live, StackAddresses, Submitters, TraceDatHead, write_trace_dat};
use blklab_trace::TraceSink;
use blklab_types::Time;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The clock of the recording: nanoseconds, the same for all CPUs.
const CLOCK: &str = "mono";

/// Tasks whose switches are recorded, at most: a filter has room for no more.
const SUBMITTERS_MAX: usize = 48;

/// Memory for what is kept of all CPUs.
const KEPT_BYTES_MAX: usize = 1 << 30;

/// What to record.
#[derive(Debug, Default)]
pub struct Options {
    /// The events of these disks and of those below them; of all if there is none.
    pub disk: Option<Disk>,
    /// Groups beside the block layer.
    pub groups: Vec<&'static Group>,
    /// Buffer of each CPU, in KiB.
    pub buffer_kb: u32,
    /// Keep this last time alone, in memory; everything, in files, if there is none.
    pub keep: Option<Duration>,
    /// Whether events are decoded while they are recorded, for [`Recorder::drain_to`].
    pub is_watched: bool,
    /// Whether the stack of each task that queues a bio is recorded.
    pub has_stacks: bool,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    // Closed before the instance is removed, which is not possible while they are open.
    cpus: Vec<Cpu>,
    instance: Instance,
    head: TraceDatHead,
    out: PartialFile,
    page: Vec<u8>,
    submitters: Option<Submitters>,
    stacks: Option<StackAddresses>,
    nr_filtered: usize,
    keep: Option<Duration>,
    live: Option<Live>,
}

/// The buffer of a CPU, and the file that its pages go to, at once or in the end.
#[derive(Debug)]
struct Cpu {
    number: u32,
    buffer: File,
    pages: BufWriter<PartialFile>,
    kept: Kept,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The trace.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
    /// Events that were read from the buffers: all of them are in it, unless the last time alone
    /// was to be kept.
    pub nr_events: u64,
    /// Less than that time was kept, since it took too much memory.
    pub is_cut: bool,
    /// Events for which the buffers had no room.
    pub nr_lost: u64,
    /// Tasks that submitted I/O whose switches were not recorded, since they were
    /// too many.
    pub nr_unfollowed: usize,
    /// Stacks that were read from the buffers.
    pub nr_stacks: u64,
}

impl Recorder {
    /// Begins to record; `path` becomes the trace.
    ///
    /// # Errors
    /// One line: what right, event or option is missing; then nothing is left behind.
    pub fn start(roots: &Roots, options: &Options, path: &Path) -> Result<Recorder, RecordError> {
        let mut enabled: Vec<(&Group, Vec<String>)> = Vec::new();
        for group in std::iter::once(&BLOCK).chain(options.groups.iter().copied()) {
            enabled.push((group, group.events(&roots.tracefs)?));
        }
        let out = PartialFile::create(path)?;
        let instance = Instance::create(&roots.tracefs)?;
        instance.set("tracing_on", "0")?;
        // Kernels before 3.17 have no such clock; theirs is then as good as it gets.
        if instance.read("trace_clock")?.contains(CLOCK) {
            instance.set("trace_clock", CLOCK)?;
        }
        instance.set("buffer_size_kb", &options.buffer_kb.to_string())?;
        let head = head(roots, &instance, &enabled)?;
        let of_disks = options.disk.as_ref().map(filter_of_disks);
        let mut submitters = None;
        for (group, events) in &enabled {
            for event in events {
                let folder = format!("events/{}/{event}", group.name);
                let format = instance.read(&format!("{folder}/format"))?;
                if let Some(filter) = &of_disks
                    && format.contains(" dev;")
                {
                    instance.set(&format!("{folder}/filter"), filter)?;
                }
                if group.is_of_submitters() {
                    instance.set(&format!("{folder}/filter"), &filter_of(event, &[]))?;
                    let queue = instance.read("events/block/block_bio_queue/format")?;
                    submitters = Some(Submitters::new(head.page_bytes, &queue));
                }
            }
        }
        let stacks = if options.has_stacks {
            let filter = of_disks.as_deref();
            Some(stacks::start(roots, &instance, head.page_bytes, filter)?)
        } else {
            None
        };
        let live = if options.is_watched {
            Some(live(&instance, &head, &enabled)?)
        } else {
            None
        };
        let mut recorder = Recorder {
            keep: options.keep,
            live,
            cpus: Vec::new(),
            page: vec![0; head.page_bytes as usize],
            head,
            out,
            instance,
            submitters,
            stacks,
            nr_filtered: 0,
        };
        recorder.open_buffers(path)?;
        for (group, events) in &enabled {
            for event in events {
                let name = format!("events/{}/{event}/enable", group.name);
                recorder.instance.set(&name, "1")?;
            }
        }
        recorder.instance.set("tracing_on", "1")?;
        Ok(recorder)
    }

    /// The folder of its instance in tracefs.
    pub fn instance_path(&self) -> &Path {
        self.instance.path()
    }

    fn open_buffers(&mut self, path: &Path) -> Result<(), RecordError> {
        let folder = self.instance.file("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|e| RecordError::at("read", &folder, &e))?;
        let mut numbers: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                name.to_str()?.strip_prefix("cpu")?.parse().ok()
            })
            .collect();
        numbers.sort_unstable();
        for number in numbers {
            let buffer = folder.join(format!("cpu{number}/trace_pipe_raw"));
            let opened = OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
                .open(&buffer);
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".cpu{number}"));
            self.cpus.push(Cpu {
                number,
                buffer: opened.map_err(|e| RecordError::at("open", &buffer, &e))?,
                pages: BufWriter::with_capacity(1 << 18, PartialFile::create(Path::new(&name))?),
                kept: Kept::default(),
            });
        }
        Ok(())
    }

    /// As [`Recorder::drain`], and sends the block events that all CPUs have shown by now, in
    /// order, if the recording is watched.
    ///
    /// # Errors
    /// As there.
    pub fn drain_to(&mut self, sink: &mut dyn TraceSink) -> Result<(), RecordError> {
        // What was before this is in the buffers.
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned();
        self.drain()?;
        if let Some(live) = &mut self.live {
            live.send_before(Time(now), sink);
        }
        Ok(())
    }

    /// Takes what the buffers have; to be called several times a second.
    ///
    /// # Errors
    /// If it cannot be read, or not be stored.
    pub fn drain(&mut self) -> Result<(), RecordError> {
        let mut is_new = false;
        for cpu in &mut self.cpus {
            loop {
                let read = match cpu.buffer.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(n) => n,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => {
                        let number = cpu.number;
                        return Err(RecordError::new(format!(
                            "cannot read the buffer of CPU {number}: {e}"
                        )));
                    }
                };
                self.page[read..].fill(0);
                if self.keep.is_some() {
                    cpu.kept.push(&self.page);
                } else {
                    let stored = cpu.pages.write_all(&self.page);
                    stored.map_err(|e| RecordError::new(format!("cannot store the trace: {e}")))?;
                }
                if let Some(live) = &mut self.live {
                    live.page(cpu.number as u16, &self.page);
                }
                if let Some(stacks) = &mut self.stacks {
                    stacks.scan(&self.page);
                }
                if let Some(submitters) = &mut self.submitters {
                    is_new |= submitters.scan(&self.page);
                }
            }
        }
        if let Some(keep) = self.keep {
            self.forget(keep);
        }
        if is_new {
            self.follow_submitters()?;
        }
        Ok(())
    }

    /// Forgets pages that are older than what is to be kept, and the oldest where they take too
    /// much memory.
    fn forget(&mut self, keep: Duration) {
        let newest_ns = self
            .cpus
            .iter()
            .filter_map(|cpu| cpu.kept.newest_ns())
            .max();
        let since_ns = newest_ns
            .unwrap_or(0)
            .saturating_sub(keep.as_nanos() as u64);
        let most = KEPT_BYTES_MAX / self.cpus.len().max(1);
        for cpu in &mut self.cpus {
            cpu.kept.forget(since_ns, most);
        }
    }

    /// Has the switches of those tasks recorded that submit I/O.
    fn follow_submitters(&mut self) -> Result<(), RecordError> {
        let Some(submitters) = &self.submitters else {
            return Ok(());
        };
        let nr = submitters.pids().count().min(SUBMITTERS_MAX);
        if nr > self.nr_filtered {
            self.nr_filtered = nr;
            let pids: Vec<u32> = submitters.pids().take(SUBMITTERS_MAX).collect();
            for event in SCHED_EVENTS {
                let name = format!("events/sched/{event}/filter");
                self.instance.set(&name, &filter_of(event, &pids))?;
            }
        }
        Ok(())
    }

    /// Stops, and gives the trace its name.
    ///
    /// # Errors
    /// If the rest cannot be read or the trace not be stored; nothing is left behind.
    pub fn finish(mut self, roots: &Roots) -> Result<Recorded, RecordError> {
        self.instance.set("tracing_on", "0")?;
        self.drain()?;
        let mut stats = Vec::new();
        let (mut nr_events, mut nr_lost) = (0, 0);
        for cpu in &self.cpus {
            let text = self
                .instance
                .read(&format!("per_cpu/cpu{}/stats", cpu.number))?;
            nr_events += counted(&text, &["read events"]);
            nr_lost += counted(&text, &["overrun", "commit overrun", "dropped events"]);
            stats.push(format!("CPU: {}\n{text}", cpu.number));
        }
        self.head.cpu_stats = stats;
        if let Some(found) = &self.stacks {
            self.head.symbols = stacks::symbols(roots, found)?;
        }
        let saved = read_large(&self.instance.path().join("../../saved_cmdlines"));
        self.head.comms = saved.unwrap_or_default();
        let store = |e: io::Error| RecordError::new(format!("cannot store the trace: {e}"));
        let (mut files, mut parts) = (Vec::new(), Vec::new());
        let is_cut = self.cpus.iter().any(|cpu| cpu.kept.is_cut());
        for mut cpu in self.cpus {
            cpu.kept.write_to(&mut cpu.pages).map_err(store)?;
            let part = cpu.pages.into_inner().map_err(|e| store(e.into_error()))?;
            files.push(part.reader()?);
            parts.push(part);
        }
        self.instance.remove()?;
        write_trace_dat(&mut self.out, &self.head, &mut files).map_err(store)?;
        let path = self.out.path().to_path_buf();
        let bytes = self.out.commit()?;
        drop(parts);
        let submitters = self.submitters.map_or(0, |s| s.pids().count());
        Ok(Recorded {
            path,
            bytes,
            nr_events,
            nr_lost,
            is_cut,
            nr_stacks: self.stacks.map_or(0, |s| s.nr_stacks()),
            nr_unfollowed: submitters - self.nr_filtered.min(submitters),
        })
    }
}

/// Decodes the events of the block layer, whose times must be those of a clock that can be asked.
fn live(
    instance: &Instance,
    head: &TraceDatHead,
    enabled: &[(&Group, Vec<String>)],
) -> Result<Live, RecordError> {
    if !instance
        .read("trace_clock")?
        .contains(&format!("[{CLOCK}]"))
    {
        return Err(RecordError::new(
            "this kernel cannot record with the clock mono (3.17), which a trigger needs"
                .to_owned(),
        ));
    }
    let mut formats = Vec::new();
    for (group, events) in enabled.iter().filter(|(group, _)| group.name == BLOCK.name) {
        for event in events {
            formats.push(instance.read(&format!("events/{}/{event}/format", group.name))?);
        }
    }
    Ok(Live::new(
        head.page_bytes,
        formats.iter().map(String::as_str),
    ))
}

/// A filter of events that name a device: of this one and those below it.
fn filter_of_disks(disk: &Disk) -> String {
    let disks = disk.with_below();
    let wanted = disks.iter().map(|disk| format!("dev == {}", disk.number()));
    wanted.collect::<Vec<_>>().join(" || ")
}

/// A filter of an event of the CPU scheduler for what happens to these tasks; nothing if there
/// are none.
fn filter_of(event: &str, pids: &[u32]) -> String {
    let fields: &[&str] = match event {
        "sched_switch" => &["prev_pid", "next_pid"],
        _ => &["pid"],
    };
    // The idle task submits nothing, and its switches are everybody's.
    let wanted = pids.iter().filter(|pid| **pid > 0);
    let wanted: Vec<String> = wanted
        .flat_map(|pid| fields.iter().map(move |field| format!("{field} == {pid}")))
        .collect();
    if wanted.is_empty() {
        return format!("{} < 0", fields[0]);
    }
    wanted.join(" || ")
}

/// The sum of these numbers of `per_cpu/cpuN/stats`.
fn counted(stats: &str, names: &[&str]) -> u64 {
    let numbers = stats.lines().filter_map(|line| {
        let (name, number) = line.split_once(':')?;
        names
            .contains(&name.trim())
            .then(|| number.trim().parse::<u64>().ok())?
    });
    numbers.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stats_of_a_kernel() {
        let stats = "entries: 0\noverrun: 3\ncommit overrun: 1\nbytes: 0\n\
                     oldest event ts:     0.000000\ndropped events: 2\nread events: 40\n";
        assert_eq!(counted(stats, &["read events"]), 40);
        assert_eq!(
            counted(stats, &["overrun", "commit overrun", "dropped events"]),
            6
        );
    }

    #[test]
    fn filters_of_switches() {
        assert_eq!(filter_of("sched_switch", &[]), "prev_pid < 0");
        assert_eq!(filter_of("sched_wakeup", &[0]), "pid < 0");
        assert_eq!(filter_of("sched_wakeup", &[7, 9]), "pid == 7 || pid == 9");
        assert_eq!(
            filter_of("sched_switch", &[0, 7, 9]),
            "prev_pid == 7 || next_pid == 7 || prev_pid == 9 || next_pid == 9"
        );
    }
}
