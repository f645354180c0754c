// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing `trace.dat` of version 6 from the pages of a kernel's buffers, which are
//! taken as they are (trace-cmd.dat.v6(5)).

use super::MAGIC;
use super::container::Container;
use super::formats::EventFormat;
use super::pages::{Next, OnePage};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Options of the file: what its pages say nothing about.
const OPTION_CPUSTAT: u16 = 2;
const OPTION_CLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;

/// What a file says before its pages; the texts are those of tracefs.
#[derive(Clone, Debug, Default)]
pub struct TraceDatHead {
    /// Bytes of a page of the buffers.
    pub page_bytes: u32,
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// `format` of the events of `events/ftrace`.
    pub ftrace_formats: Vec<Vec<u8>>,
    /// `format` of each event that may appear, by system.
    pub formats: Vec<(String, Vec<Vec<u8>>)>,
    /// Lines of `/proc/kallsyms`: the functions of stacks.
    pub symbols: String,
    /// `saved_cmdlines`: lines of PID and name.
    pub comms: Vec<u8>,
    /// `trace_clock`.
    pub clock: String,
    /// As of `uname -a`: system, host, release, version, machine.
    pub uname: String,
    /// `per_cpu/cpuN/stats`.
    pub cpu_stats: Vec<String>,
}

/// A machine word, little endian: the pages are those of this machine.
const LONG_BYTES: u8 = size_of::<usize>() as u8;

impl TraceDatHead {
    /// All that is before the pages, but where those are.
    fn bytes(&self, nr_cpus: u32) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(b"6\0");
        out.push(u8::from(cfg!(target_endian = "big")));
        out.push(LONG_BYTES);
        out.extend_from_slice(&self.page_bytes.to_ne_bytes());
        for (title, text) in [
            (&b"header_page\0"[..], &self.header_page),
            (b"header_event\0", &self.header_event),
        ] {
            out.extend_from_slice(title);
            put_text(&mut out, text);
        }
        put_texts(&mut out, &self.ftrace_formats);
        out.extend_from_slice(&(self.formats.len() as u32).to_ne_bytes());
        for (system, formats) in &self.formats {
            out.extend_from_slice(system.as_bytes());
            out.push(0);
            put_texts(&mut out, formats);
        }
        out.extend_from_slice(&(self.symbols.len() as u32).to_ne_bytes());
        out.extend_from_slice(self.symbols.as_bytes());
        // No formats of printk.
        out.extend_from_slice(&[0; 4]);
        put_text(&mut out, &self.comms);
        out.extend_from_slice(&nr_cpus.to_ne_bytes());
        out.extend_from_slice(b"options  \0");
        for stats in &self.cpu_stats {
            put_option(&mut out, OPTION_CPUSTAT, stats);
        }
        put_option(&mut out, OPTION_CLOCK, &self.clock);
        put_option(&mut out, OPTION_UNAME, &self.uname);
        out.extend_from_slice(&0_u16.to_ne_bytes());
        out.extend_from_slice(b"flyrecord\0");
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u64).to_ne_bytes());
    out.extend_from_slice(text);
}

fn put_texts(out: &mut Vec<u8>, texts: &[Vec<u8>]) {
    out.extend_from_slice(&(texts.len() as u32).to_ne_bytes());
    for text in texts {
        put_text(out, text);
    }
}

fn put_option(out: &mut Vec<u8>, id: u16, text: &str) {
    out.extend_from_slice(&id.to_ne_bytes());
    out.extend_from_slice(&(text.len() as u32 + 1).to_ne_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Writes a file: the head, then the pages of each CPU, whose files are read from their
/// beginning.
///
/// # Errors
/// When a file cannot be read or the output not written.
pub fn write_trace_dat(
    mut out: impl Write,
    head: &TraceDatHead,
    cpus: &mut [File],
) -> io::Result<()> {
    let mut bytes = head.bytes(cpus.len() as u32);
    let page_bytes = u64::from(head.page_bytes);
    let mut at = (bytes.len() as u64 + 16 * cpus.len() as u64).next_multiple_of(page_bytes);
    for cpu in &mut *cpus {
        let size = cpu.seek(SeekFrom::End(0))?;
        for number in [at, size] {
            bytes.extend_from_slice(&number.to_ne_bytes());
        }
        at += size.next_multiple_of(page_bytes);
    }
    bytes.resize(bytes.len().next_multiple_of(page_bytes as usize), 0);
    out.write_all(&bytes)?;
    let mut buf = vec![0; COPY_BYTES];
    for cpu in cpus {
        cpu.seek(SeekFrom::Start(0))?;
        let mut size = 0;
        loop {
            match cpu.read(&mut buf) {
                Ok(0) => break,
                Ok(n) => {
                    out.write_all(&buf[..n])?;
                    size += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let rest = size.next_multiple_of(page_bytes) - size;
        out.write_all(&vec![0; rest as usize])?;
    }
    out.flush()
}

/// Learns from pages, while they are recorded, which tasks submit I/O.
#[derive(Debug)]
pub struct Submitters {
    container: Container,
    queue: Option<EventFormat>,
    pids: BTreeSet<u32>,
}

impl Submitters {
    /// `queue_format` is the format of `block_bio_queue`.
    pub fn new(page_bytes: u32, queue_format: &str) -> Submitters {
        Submitters {
            container: Container::of_this_machine(page_bytes),
            queue: EventFormat::parse(queue_format),
            pids: BTreeSet::new(),
        }
    }

    /// Looks through a page; says whether there is a new one.
    pub fn scan(&mut self, page: &[u8]) -> bool {
        let Some(format) = &self.queue else {
            return false;
        };
        let before = self.pids.len();
        let order = self.container.order;
        let mut page = OnePage::new(&self.container, 0, page);
        while let Some(next) = page.next() {
            let data = page.record();
            if matches!(next, Next::Record { .. })
                && order.u16(data) == Some(format.id)
                && let Some(pid) = format.pid.and_then(|f| order.number(f.bytes(data)?))
            {
                self.pids.insert(pid as u32);
            }
        }
        self.pids.len() > before
    }

    /// Those seen so far, by number.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.pids.iter().copied()
    }
}
