// SPDX-License-Identifier: MIT OR Apache-2.0
//! Volumes of a disk: partitions, and devices that are mapped to it (A). Who waits for what is
//! done on another volume of the same disk has a neighbour: nothing that is seen of the own
//! volume tells that.

use super::Finding;
use super::finding::listed;
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs of devices, over all processes, that are kept; of more, the first.
const PAIRS_MAX: usize = 1 << 14;

/// Which volumes each process uses.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// By process and device: what its I/O there was for.
    above: BTreeMap<(Pid, Dev), BTreeSet<Dev>>,
    nr_pairs: usize,
}

impl Volumes {
    /// Takes an event that says where a bio of a volume goes (A).
    pub(super) fn event(&mut self, event: &Event) {
        debug_assert_eq!(event.action, Action::Remap);
        if event.from_dev == event.dev {
            return;
        }
        let key = (event.pid, event.dev);
        let is_known = |above: &BTreeSet<Dev>| above.contains(&event.from_dev);
        if self.nr_pairs >= PAIRS_MAX || self.above.get(&key).is_some_and(is_known) {
            return;
        }
        self.nr_pairs += 1;
        self.above.entry(key).or_default().insert(event.from_dev);
    }

    /// The volumes that a process uses a disk for: the outermost.
    fn used_by(&self, pid: Pid, disk: Dev) -> BTreeSet<Dev> {
        let (mut outermost, mut seen) = (BTreeSet::new(), BTreeSet::from([disk]));
        let mut open = vec![disk];
        while let Some(dev) = open.pop() {
            match self.above.get(&(pid, dev)) {
                Some(above) => open.extend(above.iter().filter(|d| seen.insert(**d))),
                None if dev != disk => drop(outermost.insert(dev)),
                None => {}
            }
        }
        outermost
    }

    /// Says it where those who wait and those whose I/O makes them wait use different volumes of
    /// a disk.
    pub(super) fn introduce(&self, f: &mut Finding) {
        let used = |pids: &mut dyn Iterator<Item = Pid>| {
            let mut all = BTreeSet::new();
            for pid in pids {
                let own = self.used_by(pid, f.dev);
                if own.is_empty() {
                    return BTreeSet::new();
                }
                all.extend(own);
            }
            all
        };
        let waiting = used(&mut f.victims.iter().map(|p| p.pid));
        let causing = used(&mut f.causes.iter().map(|p| p.pid));
        if waiting.is_empty() || causing.is_empty() || !waiting.is_disjoint(&causing) {
            return;
        }
        let names = |devs: &BTreeSet<Dev>| listed(devs.iter().map(Dev::to_string));
        f.what += &format!(
            " A neighbour on the same disk: the I/O of {} is for {}, that of {} for {}.",
            listed(f.causes.iter().map(ToString::to_string)),
            names(&causing),
            f.victim_names(),
            names(&waiting),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Party;
    use blklab_trace::Rwbs;
    use blklab_types::Time;

    fn dev(minor: u16) -> Dev {
        Dev { major: 8, minor }
    }

    /// A dm device.
    fn dm(minor: u16) -> Dev {
        Dev { major: 253, minor }
    }

    /// I/O of a process goes from the first of these devices to the last.
    fn passes(volumes: &mut Volumes, pid: Pid, path: &[Dev]) {
        for pair in path.windows(2) {
            volumes.event(&Event {
                time: Time(1),
                sector: 8,
                arg: 0,
                bytes: 4096,
                pid,
                dev: pair[1],
                from_dev: pair[0],
                error: 0,
                cpu: 0,
                rwbs: Rwbs::READ,
                action: Action::Remap,
            });
        }
    }

    fn said(volumes: &Volumes, victims: &[Pid], causes: &[Pid]) -> String {
        let party = |pid: &Pid| Party {
            pid: *pid,
            comm: None,
            requests: 1,
            delay_ns: 1,
            writes_for: None,
        };
        let mut f = Finding::new("behind-other", dev(0), "");
        f.victims = victims.iter().map(party).collect();
        f.causes = causes.iter().map(party).collect();
        volumes.introduce(&mut f);
        f.what
    }

    #[test]
    fn who_uses_another_volume_is_a_neighbour() {
        let mut volumes = Volumes::default();
        passes(&mut volumes, 1, &[dev(1), dev(0)]);
        passes(&mut volumes, 2, &[dev(2), dev(0)]);
        passes(&mut volumes, 3, &[dev(2), dev(0)]);
        passes(&mut volumes, 3, &[dev(1), dev(0)]);
        let text = said(&volumes, &[1], &[2]);
        assert!(text.starts_with(" A neighbour on the same disk: the I/O of "));
        assert!(
            text.contains("is for 8,2") && text.contains("for 8,1."),
            "{text}"
        );
        // The same volume, at least partly; and those of which it is not known.
        assert_eq!(said(&volumes, &[1], &[3]), "");
        assert_eq!(said(&volumes, &[1], &[2, 4]), "");
        assert_eq!(said(&volumes, &[4], &[2]), "");
        assert_eq!(said(&volumes, &[1], &[]), "");
    }

    #[test]
    fn of_devices_on_one_partition_the_outermost_count() {
        let mut volumes = Volumes::default();
        passes(&mut volumes, 1, &[dm(0), dev(1), dev(0)]);
        passes(&mut volumes, 2, &[dm(1), dev(1), dev(0)]);
        let text = said(&volumes, &[1], &[2]);
        assert!(
            text.contains("is for 253,1") && text.contains("for 253,0."),
            "{text}"
        );
        // A circle, which only a damaged trace has, has no end that could be named.
        passes(&mut volumes, 1, &[dev(0), dm(0)]);
        assert_eq!(said(&volumes, &[2], &[1]), "");
    }

    #[test]
    fn of_very_many_pairs_the_first_are_kept() {
        let mut volumes = Volumes::default();
        for pid in 0..2 * PAIRS_MAX as u32 {
            passes(&mut volumes, pid, &[dev(1), dev(0)]);
        }
        assert_eq!(
            (volumes.nr_pairs, volumes.above.len()),
            (PAIRS_MAX, PAIRS_MAX)
        );
    }
}
