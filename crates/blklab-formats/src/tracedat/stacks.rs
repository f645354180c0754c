// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks of the kernel in a ring buffer (`kernel_stack`, kernel/trace/trace_entries.h), and the
//! names of the functions in them (`/proc/kallsyms`).

use super::formats::{Field, KernelFormat};
use crate::store::Order;
use blklab_trace::BETWEEN_FRAMES;

/// Functions of a stack: deeper ones the kernel does not keep.
const FRAMES_MAX: usize = 512;

/// What stands at the end of a stack that had more functions, or in place of one that is unknown.
const END: u64 = u64::MAX;

/// The event's name.
const NAME: &str = "kernel_stack";

/// Where a record has its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StackFormat {
    pub(super) id: u16,
    format: KernelFormat,
    callers: usize,
}

impl StackFormat {
    /// None if the text is of another event.
    pub(super) fn parse(text: &str) -> Option<StackFormat> {
        let format = KernelFormat::parse(text).filter(|f| f.name == NAME)?;
        let Field { offset, .. } = format.field("caller")?;
        Some(StackFormat {
            id: format.id,
            callers: offset,
            format,
        })
    }

    /// The task whose stack it is.
    pub(super) fn pid(&self, order: Order, data: &[u8]) -> Option<u32> {
        Some(self.format.number(order, data, "common_pid")? as u32)
    }

    /// The addresses in its functions, the innermost first.
    pub(super) fn addresses<'a>(
        &self,
        order: Order,
        long_bytes: usize,
        data: &'a [u8],
    ) -> impl Iterator<Item = u64> + use<'a> {
        let size = self.format.number(order, data, "size").unwrap_or(0) as usize;
        let callers = data.get(self.callers..).unwrap_or_default();
        let callers = callers.chunks_exact(long_bytes.max(1));
        let all = callers.take(size.min(FRAMES_MAX));
        let end = match long_bytes {
            4 => u64::from(u32::MAX),
            _ => END,
        };
        all.filter_map(move |bytes| order.number(bytes))
            .take_while(move |address| *address != end)
    }
}

/// The names of functions by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbols(Vec<(u64, Box<str>)>);

impl Symbols {
    /// From lines as `/proc/kallsyms` has them.
    pub(super) fn parse(text: &[u8]) -> Symbols {
        let lines = text.split(|b| *b == b'\n');
        let parsed = lines.filter_map(|line| {
            let line = Symbol::parse(std::str::from_utf8(line).ok()?)?;
            Some((line.address, Box::from(line.name)))
        });
        let mut all: Vec<(u64, Box<str>)> = parsed.collect();
        // Of several at one address the first counts, as in the kernel.
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        Symbols(all)
    }

    /// The function in which an address lies.
    fn name(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|(first, _)| *first <= address);
        // What is behind the last one is unknown: nothing says where that ends.
        let (_, name) = &self.0[..self.0.len().min(behind)].last()?;
        (behind < self.0.len()).then_some(name)
    }

    /// A stack in words; none if no function of it is known.
    pub(super) fn words(&self, addresses: impl Iterator<Item = u64>) -> Option<String> {
        let mut words = String::new();
        let mut is_known = false;
        for address in addresses {
            if !words.is_empty() {
                words.push_str(BETWEEN_FRAMES);
            }
            let name = self.name(address);
            is_known |= name.is_some();
            words.push_str(name.unwrap_or("?"));
        }
        is_known.then_some(words)
    }
}

/// A line of `/proc/kallsyms`.
pub(super) struct Symbol<'a> {
    pub(super) address: u64,
    pub(super) name: &'a str,
    pub(super) is_function: bool,
}

impl Symbol<'_> {
    /// `ffffffff81000000 T _text`, with the module behind a tab.
    pub(super) fn parse(line: &str) -> Option<Symbol<'_>> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = words.next()?;
        let name = words.next()?;
        Some(Symbol {
            address,
            name,
            is_function: matches!(kind, "t" | "T" | "w" | "W"),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::tracedat) const FORMAT: &str = "name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

    fn record(size: u32, callers: &[u64]) -> Vec<u8> {
        let mut data = vec![0; 16];
        data[0] = 4;
        data[4] = 77;
        data[8..12].copy_from_slice(&size.to_le_bytes());
        callers
            .iter()
            .for_each(|c| data.extend_from_slice(&c.to_le_bytes()));
        data
    }

    #[test]
    fn a_stack_has_as_many_functions_as_it_says_and_holds() {
        let format = StackFormat::parse(FORMAT).expect("a format");
        let order = Order::default();
        let read = |data: &[u8]| format.addresses(order, 8, data).collect::<Vec<_>>();
        let data = record(2, &[0x10, 0x20, 0x30]);
        assert_eq!(format.pid(order, &data), Some(77));
        assert_eq!(read(&data), [0x10, 0x20]);
        // Cut, ended early, and none at all.
        assert_eq!(read(&record(9, &[0x10])), [0x10]);
        assert_eq!(read(&record(3, &[0x10, u64::MAX, 0x30])), [0x10]);
        assert_eq!(read(&record(u32::MAX, &[]))[..], [0_u64; 0]);
        assert_eq!(read(&data[..7])[..], [0_u64; 0]);
        assert!(StackFormat::parse(&FORMAT.replace("kernel_stack", "user_stack")).is_none());
    }

    #[test]
    fn functions_have_the_name_before_them() {
        let text = "30 T third\n10 t first\n20 T second\t[xfs]\n10 T alias\nx y z\n";
        let symbols = Symbols::parse(text.as_bytes());
        let names = [0xf, 0x10, 0x1f, 0x20, 0x30].map(|a| symbols.name(a));
        assert_eq!(
            names,
            [None, Some("first"), Some("first"), Some("second"), None]
        );
        let words = |all: &[u64]| symbols.words(all.iter().copied());
        assert_eq!(
            words(&[0x25, 0x5, 0x12]).as_deref(),
            Some("second < ? < first")
        );
        assert_eq!((words(&[0x5]), words(&[])), (None, None));
    }
}
