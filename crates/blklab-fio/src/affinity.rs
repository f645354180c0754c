// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processors that a job is bound to: fio's `cpus_allowed`, `cpumask` and
//! `cpus_allowed_policy`.

/// fio's limit (`CPU_SETSIZE` of glibc).
const MAX_CPUS: u32 = 1024;

/// The processors that a job may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// Their numbers, ascending, each once; empty if the job is not bound.
    pub cpus: Vec<u16>,
    /// Each clone has one of them for itself (`cpus_allowed_policy=split`).
    pub split: bool,
}

impl Affinity {
    /// Sets the processors of a list such as `0-3,8`. As in fio, what is no number is 0, a
    /// range that runs backwards has none, and an empty item ends the list.
    ///
    /// # Errors
    /// A number that no system has.
    pub(crate) fn set_list(&mut self, list: &str) -> Result<(), String> {
        let mut cpus = Vec::new();
        for item in list.split(',').take_while(|item| !item.is_empty()) {
            let (first, last) = match item.split_once('-') {
                Some((first, last)) if !last.is_empty() => (number(first), number(last)),
                Some((first, _)) => (number(first), number(first)),
                None => (number(item), number(item)),
            };
            for cpu in first..=last {
                if cpu >= MAX_CPUS {
                    return Err(format!("fio: your OS only supports up to {MAX_CPUS} CPUs"));
                }
                cpus.push(cpu as u16);
            }
        }
        self.set(cpus);
        Ok(())
    }

    /// Sets the processors of the bits of a mask.
    pub(crate) fn set_mask(&mut self, mask: u32) {
        self.set((0..32).filter(|bit| mask >> bit & 1 != 0).collect());
    }

    fn set(&mut self, mut cpus: Vec<u16>) {
        cpus.sort_unstable();
        cpus.dedup();
        self.cpus = cpus;
    }

    /// The processor that fio's `thread`-th job (from 1) begins on, and those that it may
    /// run on: its own of those allowed, or all of them, of which it begins on one by turns.
    /// None if it is not bound.
    pub fn cpus_of(&self, thread: u32) -> Option<(u16, &[u16])> {
        if self.cpus.is_empty() {
            return None;
        }
        let index = thread.saturating_sub(1) as usize % self.cpus.len();
        let own = &self.cpus[index..=index];
        let all = if self.split { own } else { &self.cpus };
        Some((own[0], all))
    }
}

/// What C's `atoi` makes of it, without negative numbers.
fn number(text: &str) -> u32 {
    crate::value::leading_integer(text, 10)
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> Vec<u16> {
        let mut a = Affinity::default();
        a.set_list(list).expect("a list");
        a.cpus
    }

    #[test]
    fn lists_are_read_as_by_fio() {
        assert_eq!(cpus("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpus("5,1,5"), [1, 5]);
        assert_eq!(cpus("3-1"), []);
        assert_eq!(cpus("2-"), [2]);
        assert_eq!(cpus("1,,7"), [1]);
        assert_eq!(cpus("all"), [0]);
        let mut a = Affinity::default();
        assert!(a.set_list("0-5000").is_err());
        a.set_mask(0b1010);
        assert_eq!(a.cpus, [1, 3]);
    }

    #[test]
    fn clones_take_the_allowed_processors_by_turns() {
        let mut a = Affinity::default();
        assert_eq!(a.cpus_of(1), None);
        a.set_list("2-3").expect("a list");
        for (thread, first) in [(1, 2), (2, 3), (3, 2)] {
            assert_eq!(a.cpus_of(thread), Some((first, &[2, 3][..])));
        }
        a.split = true;
        assert_eq!(a.cpus_of(2), Some((3, &[3][..])));
    }
}
