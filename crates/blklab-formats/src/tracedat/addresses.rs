// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses in the stacks of pages while they are recorded, and the names that they need.

use super::container::Container;
use super::pages::{Next, OnePage};
use super::stacks::{StackFormat, Symbol};
use std::collections::BTreeSet;
use std::io::{self, BufRead};

/// Gathers the addresses of stacks from pages.
#[derive(Debug)]
pub struct StackAddresses {
    container: Container,
    format: StackFormat,
    addresses: BTreeSet<u64>,
    nr_stacks: u64,
}

impl StackAddresses {
    /// `format` is that of `ftrace/kernel_stack`; none if it is another's.
    pub fn new(page_bytes: u32, format: &str) -> Option<StackAddresses> {
        Some(StackAddresses {
            container: Container::of_this_machine(page_bytes),
            format: StackFormat::parse(format)?,
            addresses: BTreeSet::new(),
            nr_stacks: 0,
        })
    }

    /// Looks through a page.
    pub fn scan(&mut self, page: &[u8]) {
        let (order, long_bytes) = (self.container.order, self.container.long_bytes);
        let mut page = OnePage::new(&self.container, 0, page);
        while let Some(next) = page.next() {
            let data = page.record();
            if matches!(next, Next::Record { .. }) && order.u16(data) == Some(self.format.id) {
                self.nr_stacks += 1;
                let addresses = self.format.addresses(order, long_bytes, data);
                self.addresses.extend(addresses);
            }
        }
    }

    /// Stacks that were found.
    pub fn nr_stacks(&self) -> u64 {
        self.nr_stacks
    }

    /// Of lines as `/proc/kallsyms` has them those of the functions that occur, each with the
    /// line behind it, which says where it ends.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn symbols(&self, kallsyms: impl BufRead) -> io::Result<String> {
        let mut all = Vec::new();
        for line in kallsyms.lines() {
            let line = line?;
            if let Some(symbol) = Symbol::parse(&line).filter(|s| s.is_function && s.address > 0) {
                all.push((symbol.address, line));
            }
        }
        all.sort_by_key(|(address, _)| *address);
        all.dedup_by_key(|(address, _)| *address);
        let mut places = BTreeSet::new();
        for address in &self.addresses {
            let behind = all.partition_point(|(first, _)| first <= address);
            places.extend(behind.checked_sub(1).into_iter().chain([behind]));
        }
        let mut text = String::new();
        for (_, line) in places.into_iter().filter_map(|place| all.get(place)) {
            text.push_str(line);
            text.push('\n');
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracedat::stacks::tests::FORMAT;

    #[test]
    fn only_symbols_that_occur_are_kept_with_where_they_end() {
        let mut found = StackAddresses::new(4096, FORMAT).expect("a format");
        found.addresses.extend([0x15, 0x16, 0x35]);
        let kallsyms = "10 T a\n20 T b\n28 D data\n30 T c\n40 t d\t[xfs]\n50 T e\n";
        let kept = found.symbols(kallsyms.as_bytes()).expect("text");
        assert_eq!(kept, "10 T a\n20 T b\n30 T c\n40 t d\t[xfs]\n");
        // Addresses that the kernel hides say nothing.
        let hidden = found.symbols("0 T a\n0 T b\n".as_bytes()).expect("text");
        assert_eq!(hidden, "");
    }
}
