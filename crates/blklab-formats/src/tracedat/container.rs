// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where in the file what is: formats, names of processes, the buffers of the CPUs.

use super::formats::{EventFormat, KernelFormat};
use super::stacks::{StackFormat, Symbols};
use crate::FormatError;
use crate::store::{Order, Store};
use flate2::read::ZlibDecoder;
use std::io::Read as _;

/// Longest text of a format, or of the names of processes.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Options, events of a system, CPUs: more there are not.
const ENTRIES_MAX: u32 = 1 << 16;

/// How the pages of version 7 are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Zlib,
    Zstd,
}

/// The pages of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) cpu: u16,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// What the file says before its pages.
#[derive(Debug, Default)]
pub(super) struct Container {
    pub(super) order: Order,
    /// Bytes of a `long` of the recording machine.
    pub(super) long_bytes: usize,
    pub(super) page_bytes: usize,
    pub(super) events: Vec<EventFormat>,
    /// Events of other systems that are read.
    pub(super) kernel_events: Vec<KernelFormat>,
    /// The event that holds stacks.
    pub(super) stacks: Option<StackFormat>,
    /// The functions in them.
    pub(super) symbols: Symbols,
    /// Names of those that are not, by id.
    pub(super) others: Vec<(u16, String)>,
    /// Lines of `PID COMM`.
    pub(super) comms: Vec<u8>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) packing: Option<Packing>,
    pub(super) kernel: String,
    /// Events that were lost on all CPUs, as the recorder's statistics say.
    pub(super) nr_lost: u64,
}

/// A place in the file, or in a section that was decompressed.
struct Cursor<'a> {
    store: &'a Store,
    name: &'a str,
    at: u64,
    order: Order,
    buf: Vec<u8>,
}

impl Cursor<'_> {
    fn damaged<T>(&self, problem: &'static str) -> Result<T, FormatError> {
        Err(FormatError::Header {
            input: self.name.to_owned(),
            problem,
        })
    }

    fn bytes(&mut self, len: u64) -> Result<&[u8], FormatError> {
        if len > TEXT_BYTES_MAX {
            return self.damaged("a part of it is longer than 64 MiB");
        }
        let read = self.store.read(self.at, len as usize, &mut self.buf);
        read.map_err(|e| FormatError::io(format!("read {}", self.name), e))?;
        if (self.buf.len() as u64) < len {
            return self.damaged("the file ends inside it");
        }
        self.at += len;
        Ok(&self.buf)
    }

    fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, FormatError> {
        let order = self.order;
        Ok(order.u16(self.bytes(2)?).unwrap_or_default())
    }

    fn u32(&mut self) -> Result<u32, FormatError> {
        let order = self.order;
        Ok(order.u32(self.bytes(4)?).unwrap_or_default())
    }

    fn u64(&mut self) -> Result<u64, FormatError> {
        let order = self.order;
        Ok(order.u64(self.bytes(8)?).unwrap_or_default())
    }

    /// A number of things, of which there are not too many.
    fn count(&mut self) -> Result<u32, FormatError> {
        match self.u32()? {
            n if n > ENTRIES_MAX => self.damaged("more entries than there can be"),
            n => Ok(n),
        }
    }

    /// A text that ends with NUL.
    fn text(&mut self) -> Result<String, FormatError> {
        let mut text = Vec::new();
        loop {
            match self.u8()? {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                byte => text.push(byte),
            }
            if text.len() > 4096 {
                return self.damaged("a name is longer than 4096 bytes");
            }
        }
    }

    fn expect(&mut self, expected: &[u8]) -> Result<(), FormatError> {
        let is_there = self.bytes(expected.len() as u64)? == expected;
        if is_there {
            Ok(())
        } else {
            self.damaged("a part of it is not where it should be")
        }
    }
}

impl Container {
    /// Without any buffer, for pages of the machine that this runs on.
    pub(super) fn of_this_machine(page_bytes: u32) -> Container {
        Container {
            order: Order {
                big_endian: cfg!(target_endian = "big"),
            },
            long_bytes: size_of::<usize>(),
            page_bytes: page_bytes as usize,
            ..Container::default()
        }
    }

    /// Reads it from the beginning of a file.
    pub(super) fn read(store: &Store, name: &str) -> Result<Container, FormatError> {
        let mut c = Cursor {
            store,
            name,
            at: 0,
            order: Order::default(),
            buf: Vec::new(),
        };
        c.expect(super::MAGIC)?;
        let version = c.text()?;
        let mut all = Container::default();
        all.order.big_endian = c.u8()? != 0;
        c.order = all.order;
        all.long_bytes = c.u8()?.into();
        all.page_bytes = c.u32()? as usize;
        if !matches!(all.long_bytes, 4 | 8) || !(1024..=1 << 20).contains(&all.page_bytes) {
            return c.damaged("no machine has pages or numbers of such a length");
        }
        match version.as_str() {
            "6" => all.version_6(&mut c)?,
            "7" => all.version_7(&mut c)?,
            other => {
                return Err(FormatError::Version {
                    input: name.to_owned(),
                    format: "trace.dat",
                    found: other.parse().unwrap_or(0),
                    supported: "versions 6 and 7",
                });
            }
        }
        Ok(all)
    }

    fn version_6(&mut self, c: &mut Cursor<'_>) -> Result<(), FormatError> {
        header_info(c)?;
        self.ftrace_events(c)?;
        self.event_formats(c)?;
        self.kallsyms(c)?;
        // Formats of printk.
        let len = c.u32()?;
        c.at += u64::from(len);
        let len = c.u64()?;
        self.comms = c.bytes(len)?.to_vec();
        let nr_cpus = c.count()?;
        let mut kind = c.bytes(10)?.to_vec();
        if kind == b"options  \0" {
            loop {
                let id = c.u16()?;
                if id == 0 {
                    break;
                }
                let len = c.u32()?;
                let data = c.bytes(len.into())?.to_vec();
                self.option(id, &data);
            }
            kind = c.bytes(10)?.to_vec();
        }
        if kind != b"flyrecord\0" {
            return c.damaged("neither options nor pages of CPUs: only recorded traces are read");
        }
        for cpu in 0..nr_cpus {
            let (offset, size) = (c.u64()?, c.u64()?);
            self.buffer(cpu, offset, size);
        }
        Ok(())
    }

    fn kallsyms(&mut self, c: &mut Cursor<'_>) -> Result<(), FormatError> {
        let len = c.u32()?;
        self.symbols = Symbols::parse(c.bytes(len.into())?);
        Ok(())
    }

    fn buffer(&mut self, cpu: u32, offset: u64, size: u64) {
        if let (Ok(cpu), true) = (u16::try_from(cpu), size > 0) {
            self.buffers.push(Buffer { cpu, offset, size });
        }
    }

    fn ftrace_events(&mut self, c: &mut Cursor<'_>) -> Result<(), FormatError> {
        for _ in 0..c.count()? {
            let len = c.u64()?;
            let text = String::from_utf8_lossy(c.bytes(len)?).into_owned();
            self.event("ftrace", &text);
        }
        Ok(())
    }

    fn event_formats(&mut self, c: &mut Cursor<'_>) -> Result<(), FormatError> {
        for _ in 0..c.count()? {
            let system = c.text()?;
            for _ in 0..c.count()? {
                let len = c.u64()?;
                let text = String::from_utf8_lossy(c.bytes(len)?).into_owned();
                self.event(&system, &text);
            }
        }
        Ok(())
    }

    fn event(&mut self, system: &str, text: &str) {
        let Some(format) = EventFormat::parse(text) else {
            return;
        };
        if system == "block" {
            self.events.push(format);
        } else if let (true, Some(stacks)) = (system == "ftrace", StackFormat::parse(text)) {
            self.stacks = Some(stacks);
        } else if crate::kernel::is_known(format.name.as_bytes()) {
            self.kernel_events.extend(KernelFormat::parse(text));
        } else {
            self.others.push((format.id, format.name));
        }
    }

    fn version_7(&mut self, c: &mut Cursor<'_>) -> Result<(), FormatError> {
        let packing = c.text()?;
        c.text()?;
        self.packing = Some(match packing.as_str() {
            "none" | "" => Packing::None,
            "zlib" => Packing::Zlib,
            "zstd" => Packing::Zstd,
            _ => return c.damaged("compressed, neither with zlib nor with zstd"),
        });
        let mut next = c.u64()?;
        // A chain of sections, each behind the one before.
        for _ in 0..1024 {
            if next == 0 {
                return Ok(());
            }
            c.at = next;
            let (id, data) = self.section(c)?;
            if id != OPTION_DONE {
                return c.damaged("no options where they should be");
            }
            next = self.options(c, &data)?;
        }
        c.damaged("its options never end")
    }

    /// A section: its id and its content, decompressed.
    fn section(&self, c: &mut Cursor<'_>) -> Result<(u16, Store), FormatError> {
        let (id, flags) = (c.u16()?, c.u16()?);
        let (_, size) = (c.u32()?, c.u64()?);
        let data = match flags & 1 {
            0 => c.bytes(size)?.to_vec(),
            _ => {
                let (packed, plain) = (c.u32()?, c.u32()?);
                let packing = self.packing.unwrap_or(Packing::None);
                let bytes = c.bytes(packed.into())?;
                match unpack(packing, bytes, plain as usize) {
                    Some(data) => data,
                    None => return c.damaged("a compressed part cannot be decompressed"),
                }
            }
        };
        Ok((id, Store::Memory(data)))
    }

    /// Takes options; where the next ones are.
    fn options(&mut self, c: &mut Cursor<'_>, data: &Store) -> Result<u64, FormatError> {
        let mut o = Cursor {
            store: data,
            name: c.name,
            at: 0,
            order: c.order,
            buf: Vec::new(),
        };
        for _ in 0..ENTRIES_MAX {
            let id = o.u16()?;
            let len = o.u32()?;
            let value = o.bytes(len.into())?.to_vec();
            let offset = c.order.u64(&value).unwrap_or(0);
            match id {
                OPTION_DONE => return Ok(offset),
                OPTION_BUFFER => self.buffer_option(c, value)?,
                OPTION_HEADER_INFO | OPTION_FTRACE | OPTION_EVENTS | OPTION_KALLSYMS
                | OPTION_COMMS => {
                    c.at = offset;
                    let (_, store) = self.section(c)?;
                    let mut s = Cursor {
                        store: &store,
                        name: c.name,
                        at: 0,
                        order: c.order,
                        buf: Vec::new(),
                    };
                    match id {
                        OPTION_HEADER_INFO => header_info(&mut s)?,
                        OPTION_FTRACE => self.ftrace_events(&mut s)?,
                        OPTION_EVENTS => self.event_formats(&mut s)?,
                        OPTION_KALLSYMS => self.kallsyms(&mut s)?,
                        _ => {
                            let len = s.u64()?;
                            self.comms = s.bytes(len)?.to_vec();
                        }
                    }
                }
                id => self.option(id, &value),
            }
        }
        c.damaged("its options never end")
    }

    /// Offset of the section, name, clock, page size, and the data of each CPU.
    fn buffer_option(&mut self, c: &Cursor<'_>, value: Vec<u8>) -> Result<(), FormatError> {
        let store = Store::Memory(value);
        let mut o = Cursor {
            store: &store,
            name: c.name,
            at: 8,
            order: c.order,
            buf: Vec::new(),
        };
        o.text()?;
        o.text()?;
        let page_bytes = o.u32()? as usize;
        if (1024..=1 << 20).contains(&page_bytes) {
            self.page_bytes = page_bytes;
        }
        for _ in 0..o.count()? {
            let (cpu, offset, size) = (o.u32()?, o.u64()?, o.u64()?);
            self.buffer(cpu, offset, size);
        }
        Ok(())
    }

    fn option(&mut self, id: u16, value: &[u8]) {
        if id == OPTION_UNAME {
            let text = String::from_utf8_lossy(value);
            let words = text.trim_end_matches('\0').split(' ');
            // As uname -a: system, host, release.
            self.kernel = words.take(3).last().unwrap_or_default().to_owned();
        }
        if id == OPTION_CPUSTAT {
            let nr_lost = lost_of_cpu(&String::from_utf8_lossy(value));
            self.nr_lost = self.nr_lost.saturating_add(nr_lost);
        }
    }
}

/// How many events of a CPU were lost, as `per_cpu/cpuN/stats` has it: overwritten, and
/// dropped for lack of room.
fn lost_of_cpu(stats: &str) -> u64 {
    let numbers = stats.lines().filter_map(|line| {
        let (name, number) = line.split_once(':')?;
        let is_loss = ["overrun", "commit overrun", "dropped events"].contains(&name.trim());
        let number = number.trim_matches([' ', '\t', '\0']).parse::<u64>();
        number.ok().filter(|_| is_loss)
    });
    numbers.fold(0, u64::saturating_add)
}

const OPTION_DONE: u16 = 0;
const OPTION_CPUSTAT: u16 = 2;
const OPTION_BUFFER: u16 = 3;
const OPTION_UNAME: u16 = 5;
const OPTION_HEADER_INFO: u16 = 16;
const OPTION_FTRACE: u16 = 17;
const OPTION_EVENTS: u16 = 18;
const OPTION_KALLSYMS: u16 = 19;
const OPTION_COMMS: u16 = 21;

/// The layouts of pages and of heads of events, which have been the same since 2.6.33.
fn header_info(c: &mut Cursor<'_>) -> Result<(), FormatError> {
    for title in [&b"header_page\0"[..], b"header_event\0"] {
        c.expect(title)?;
        let len = c.u64()?;
        c.bytes(len)?;
    }
    Ok(())
}

/// `plain` bytes; none if that is not what comes out.
pub(super) fn unpack(packing: Packing, bytes: &[u8], plain: usize) -> Option<Vec<u8>> {
    if plain as u64 > TEXT_BYTES_MAX {
        return None;
    }
    let mut data = Vec::new();
    match packing {
        Packing::None => data.extend_from_slice(bytes),
        Packing::Zlib => {
            let mut decoder = ZlibDecoder::new(bytes).take(plain as u64 + 1);
            decoder.read_to_end(&mut data).ok()?;
        }
        Packing::Zstd => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).ok()?;
            decoder.take(plain as u64 + 1).read_to_end(&mut data).ok()?;
        }
    }
    (data.len() == plain).then_some(data)
}
