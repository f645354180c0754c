// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded process that behaves otherwise: as after a change of its application.

use crate::recorded::{Bio, Marks, Process, Recorded, Waiting};
use blklab_analysis::spread::percentile;
use blklab_types::{BioFlags, Op, Pid, Span};

impl Process {
    /// It has at most so many bios under way.
    pub fn keep_under_way(&mut self, depth: u32) {
        let depth = depth.max(1);
        for b in &mut self.bios {
            b.room = match (self.waiting, b.room) {
                (Waiting::Depth(_) | Waiting::Free, _) | (_, 0) => depth,
                (_, room) => room.min(depth),
            };
            b.marks = b.marks.with(Marks::AWAITED);
        }
        if matches!(self.waiting, Waiting::Free | Waiting::Depth(_)) {
            self.waiting = Waiting::Depth(depth);
        }
    }

    /// Nothing bounds what it has under way but the number of requests.
    pub fn submit_freely(&mut self) {
        for b in &mut self.bios {
            b.room = 0;
            b.marks = b.marks.with(Marks::SLEPT);
        }
        self.waiting = Waiting::Free;
    }

    /// It submits so many bios under one plug, and waits for all of them before the next.
    pub fn submit_in_batches(&mut self, batch: usize) {
        let batch = batch.max(1);
        let last = self.bios.len().saturating_sub(1);
        for (i, b) in self.bios.iter_mut().enumerate() {
            let ends = i % batch == batch - 1 || i == last;
            let marks = b.marks.with(Marks::AWAITED).with(Marks::PLUGGED);
            b.marks = if ends {
                marks.with(Marks::ENDS_PLUG)
            } else {
                marks.without(Marks::ENDS_PLUG).without(Marks::UNPLUGS)
            };
            b.room = if i % batch == 0 { 1 } else { u32::MAX };
        }
        self.waiting = Waiting::Until;
    }

    /// Its writes say that somebody waits for them.
    pub fn write_sync(&mut self) {
        for b in self.bios.iter_mut().filter(|b| b.op == Op::Write) {
            b.flags |= BioFlags::SYNC;
        }
    }

    /// What it reads piece by piece, each where the last one ended, it reads in pieces of so
    /// many sectors, one of them ahead of the one that it works on. It thinks as long for
    /// each piece as it did for what is in it.
    pub fn read_ahead(&mut self, sectors: u32) {
        let mut bios: Vec<Bio> = Vec::new();
        let flags = BioFlags::SYNC | BioFlags::META;
        for b in &self.bios {
            let joins = |last: &&mut Bio| {
                let whole = last.nr_sectors.saturating_add(b.nr_sectors) <= sectors;
                let both_read = last.op == Op::Read && b.op == Op::Read;
                let is_plain = !b.flags.any(flags) && !last.flags.any(flags);
                both_read && whole && last.end() == b.sector && is_plain
            };
            match bios.last_mut().filter(joins) {
                Some(last) => {
                    last.nr_sectors += b.nr_sectors;
                    last.think += b.think;
                    last.latency = b.latency().map_or(last.latency, |l| {
                        Span((b.at + l).ns().saturating_sub(last.at.ns()))
                    });
                }
                None => bios.push(*b),
            }
        }
        for b in bios.iter_mut().filter(|b| b.op == Op::Read) {
            b.room = b.room.max(2);
        }
        self.bios = bios;
        self.links.clear();
    }

    /// The median of its pauses; zero without any.
    fn median_think(&self) -> Span {
        let thinks = self.bios.iter().skip(1).map(|b| b.think);
        percentile(50, thinks.collect()).unwrap_or_default()
    }

    /// Who had to wait before its bios were queued did not want to: its long pauses are as
    /// its others are.
    fn without_long_pauses(&mut self, longest: Span) {
        let usual = self.median_think();
        for b in &mut self.bios {
            if b.think > longest {
                b.think = usual;
            }
        }
    }
}

impl Recorded {
    /// The process with this pid.
    pub fn process_mut(&mut self, pid: Pid) -> Option<&mut Process> {
        self.processes.iter_mut().find(|p| p.pid == pid)
    }

    /// Whose bios something held back before they were queued, as a limit of a control
    /// group does: what a worker queued for it is its own again, and it pauses no longer
    /// than `longest`, but as it mostly does.
    pub fn release(&mut self, pid: Pid, longest: Span) {
        let Some(place) = self.processes.iter().position(|p| p.pid == pid) else {
            return;
        };
        let mut own = self.processes.remove(place);
        let (ops, pauses) = (ops(&own), pauses(&own, longest));
        for worker in &mut self.processes {
            let name = worker.name.as_deref().unwrap_or_default();
            if !name.starts_with("kworker") && !name.starts_with("kthrotld") {
                continue;
            }
            // In a pause of the process, and as what it does.
            let is_own = |b: &Bio| {
                let next = pauses.partition_point(|(from, _)| *from < b.at);
                let within = next.checked_sub(1).map(|i| pauses[i]);
                ops.contains(&b.op) && within.is_some_and(|(_, to)| b.at <= to)
            };
            let (held, rest) = worker.bios.iter().partition(|b| is_own(b));
            worker.bios = rest;
            own.bios.extend::<Vec<Bio>>(held);
        }
        self.processes.retain(|p| !p.bios.is_empty());
        own.bios.sort_by_key(|b| b.at);
        let room = own.bios.iter().map(|b| b.room).max().unwrap_or(1).max(1);
        for b in &mut own.bios {
            b.room = b.room.max(1).min(room);
            b.marks = b.marks.with(Marks::AWAITED).with(Marks::WOKE);
        }
        if matches!(own.waiting, Waiting::Free | Waiting::Paced) {
            own.waiting = Waiting::Until;
        }
        own.without_long_pauses(longest);
        own.links.clear();
        self.processes.push(own);
        self.processes.sort_by_key(|p| p.bios[0].at);
    }
}

fn ops(p: &Process) -> Vec<Op> {
    let mut ops: Vec<Op> = Vec::new();
    for b in &p.bios {
        if !ops.contains(&b.op) {
            ops.push(b.op);
        }
    }
    ops
}

/// When a process paused for longer.
fn pauses(p: &Process, longest: Span) -> Vec<(Span, Span)> {
    let pairs = p.bios.windows(2);
    let long = pairs.filter(|w| w[1].at.ns().saturating_sub(w[0].at.ns()) > longest.ns());
    long.map(|w| (w[0].at, w[1].at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::IoPrio;

    /// Bios of 8 sectors one behind the other, each 1 ms after the one before.
    fn reader(n: u64) -> Process {
        let bio = |i: u64| Bio {
            at: Span::from_us(1000 * i),
            think: Span::from_us(100),
            sector: 8 * i,
            latency: Span::from_us(900),
            room: 1,
            nr_sectors: 8,
            op: Op::Read,
            flags: BioFlags::NONE,
            marks: Marks::AWAITED.with(Marks::WOKE),
        };
        Process {
            pid: 7,
            name: Some("reader".to_owned()),
            waiting: Waiting::Until,
            bios: (0..n).map(bio).collect(),
            links: Vec::new(),
            prio: IoPrio::default(),
            group: String::new(),
        }
    }

    #[test]
    fn reads_are_joined_and_one_is_ahead() {
        let mut p = reader(40);
        p.bios[39].sector += 100;
        p.read_ahead(64);
        let lengths: Vec<u32> = p.bios.iter().map(|b| b.nr_sectors).collect();
        assert_eq!(lengths, [64, 64, 64, 64, 56, 8]);
        assert!(p.bios.iter().all(|b| b.room == 2));
        assert_eq!(p.bios[0].think, Span::from_us(800));
        assert_eq!(p.bios[0].latency(), Some(Span::from_us(7900)));
    }

    #[test]
    fn batches_are_plugged_and_waited_for() {
        let mut p = reader(10);
        p.submit_in_batches(4);
        let rooms: Vec<u32> = p.bios.iter().map(|b| b.room).collect();
        let any = u32::MAX;
        assert_eq!(rooms, [1, any, any, any, 1, any, any, any, 1, any]);
        let ends = |b: &Bio| b.marks.has(Marks::ENDS_PLUG);
        let ends: Vec<usize> = (0..10).filter(|i| ends(&p.bios[*i])).collect();
        assert_eq!(ends, [3, 7, 9]);
    }

    #[test]
    fn what_a_limit_held_back_is_the_processes_own_again() {
        let mut own = reader(40);
        // Each tenth was queued by a worker 100 ms late, and all behind it came later.
        for (i, b) in own.bios.iter_mut().enumerate() {
            b.at += Span::from_us(100_000 * (i as u64 / 10));
            if i % 10 == 0 {
                b.think = Span::from_us(100_100);
            }
        }
        let mut worker = reader(0);
        (worker.pid, worker.name) = (3, Some("kworker/0:1".to_owned()));
        for i in [30, 20, 10] {
            let mut b = own.bios.remove(i);
            b.at = Span(b.at.ns() - 50_000);
            worker.bios.insert(0, b);
        }
        let mut recorded = Recorded {
            processes: vec![own, worker],
            ..Recorded::default()
        };
        recorded.release(7, Span::from_us(5000));
        let [p] = &recorded.processes[..] else {
            panic!("{recorded:?}");
        };
        assert_eq!((p.pid, p.bios.len()), (7, 40));
        assert!(p.bios.iter().all(|b| b.think == Span::from_us(100)));
    }
}
