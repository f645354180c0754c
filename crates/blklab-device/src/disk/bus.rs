// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way between buffer and host: when a read has crossed it.
//!
//! A read that comes from the medium crosses the bus while the medium goes on
//! passing it. The transfer begins when a share of the read, its *mark*, is in
//! the buffer. If it catches up with the medium, the drive either holds the bus
//! and sends each sector as it comes, or lets go of it until there is a mark's
//! worth again or all of the rest:
//!
//! ```text
//! medium  |  1   2   3   4   5   6   7   8 |
//! mark 0      1   2   3   4   5   6   7   8        each as it comes
//! mark .75                        123456   78      at 6 of 8, then the rest
//! mark 1                                   12345678
//! ```
//!
//! Letting go and coming back cost time of their own in old drives.
//!
//! Source: the manual of DiskSim 4.0 ("High (read) water mark", "Set watermark by
//! reqsize", "Hold bus entire read xfer", reselection and disconnection).

use blklab_types::{Span, Time};

/// How the bus is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusSpec {
    /// Time of one sector.
    pub(crate) sector_ns: u64,
    /// A sector crosses while the medium passes it, not after.
    pub(crate) cut_through: bool,
    /// What has to be in the buffer: this share of …
    pub(crate) mark: f64,
    /// … as many sectors, or of the read if it is smaller or this is zero.
    pub(crate) mark_of_sectors: u64,
    /// Room for the data of a write that goes to the medium; 0 for enough.
    pub(crate) write_sectors: u64,
    /// Of a write too large for that, the rest comes when so much is left.
    pub(crate) low_mark: f64,
    /// The drive does not let go of the bus during a read.
    pub(crate) hold: bool,
    /// A read that finds its begin in the buffer begins to cross at once.
    pub(crate) begin_at_once: bool,
    /// To let go of the bus in a read, by the kind of the command before.
    pub(crate) disconnect_ns: [u64; 2],
    /// To get the bus back.
    pub(crate) reselect_ns: u64,
    /// Before data cross.
    pub(crate) prepare_ns: u64,
    /// After the data have crossed, for reads and writes.
    pub(crate) completion_ns: [u64; 2],
}

/// The bus, and when it is free again.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    spec: BusSpec,
    free: Time,
}

/// A read on its way into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// The drive knows of it from here on.
    pub(crate) from: Time,
    /// Sectors of it, and how many of those are in the buffer from the start.
    pub(crate) n: u64,
    pub(crate) there: u64,
    /// The medium has passed the next one, and the last one.
    pub(crate) next: Time,
    pub(crate) last: Time,
    /// The drive has let go of the bus, as in a read that missed.
    pub(crate) disconnected: bool,
    /// The command before was a write.
    pub(crate) after_write: bool,
}

impl Incoming {
    /// When `k` sectors are in the buffer.
    fn time_of(&self, k: u64) -> Time {
        if k <= self.there {
            return self.from;
        }
        if k >= self.n {
            return self.last.max(self.from);
        }
        let (span_ns, gaps) = (self.last.since(self.next).ns(), self.n - self.there - 1);
        // Rounded up, so that `count_at` of this time is `k`.
        let step = Span(((k - self.there - 1) * span_ns).div_ceil(gaps.max(1)));
        (self.next + step).max(self.from)
    }

    /// How many sectors are in the buffer at `now`.
    fn count_at(&self, now: Time) -> u64 {
        if now >= self.last {
            return self.n;
        }
        if now < self.next {
            return self.there;
        }
        let (span_ns, gaps) = (self.last.since(self.next).ns(), self.n - self.there - 1);
        let passed = now.since(self.next).ns() * gaps / span_ns.max(1);
        (self.there + 1 + passed).min(self.n - 1)
    }
}

impl BusSpec {
    /// A bus on which a sector takes so long, and nothing else any time.
    pub(crate) fn plain(sector_ns: u64) -> BusSpec {
        BusSpec {
            sector_ns,
            cut_through: true,
            mark: 0.0,
            mark_of_sectors: 0,
            write_sectors: 0,
            low_mark: 0.0,
            hold: true,
            begin_at_once: true,
            disconnect_ns: [0; 2],
            reselect_ns: 0,
            prepare_ns: 0,
            completion_ns: [0; 2],
        }
    }

    /// Sectors that have to be in the buffer before a read of `n` crosses.
    fn mark_sectors(&self, n: u64) -> u64 {
        let of = match self.mark_of_sectors {
            0 => n,
            sectors => sectors,
        };
        ((of as f64 * self.mark) as u64).clamp(1, n.max(1))
    }
}

impl Bus {
    pub(crate) fn new(spec: BusSpec) -> Bus {
        Bus {
            spec,
            free: Time::ZERO,
        }
    }

    /// `n` sectors that are in the buffer (or in the host) cross from `now` on;
    /// says when the command is complete.
    pub(crate) fn transfer(&mut self, now: Time, n: u64, write: bool) -> Time {
        let begin = self.free.max(now) + Span(self.spec.prepare_ns);
        self.free = begin
            + Span(n * self.spec.sector_ns)
            + Span(self.spec.completion_ns[usize::from(write)]);
        self.free
    }

    /// How long the data of a write take to arrive that goes to the medium, as far
    /// as there is room for them.
    pub(crate) fn write_data_ns(&self, n: u64) -> u64 {
        self.spec.prepare_ns + self.with_room(n) * self.spec.sector_ns
    }

    /// By how much the rest of a write of `n` sectors comes late that `media_ns`
    /// would do for. The bus brings it when what is in the buffer has fallen to the
    /// low mark.
    pub(crate) fn refill_late_ns(&self, n: u64, media_ns: u64) -> u64 {
        let first = self.with_room(n);
        let of = match self.spec.mark_of_sectors {
            0 => first,
            sectors => sectors,
        };
        let mark = ((of as f64 * self.spec.low_mark) as u64).clamp(1, first.max(1));
        let rest = n - first;
        let (bus_ns, ahead_ns) = (rest * self.spec.sector_ns, (mark + rest) * media_ns);
        bus_ns.saturating_sub(ahead_ns / n.max(1))
    }

    fn with_room(&self, n: u64) -> u64 {
        match self.spec.write_sectors {
            0 => n,
            room => n.min(room),
        }
    }

    /// When a write is complete that the medium has taken at `media_end`.
    pub(crate) fn write_end(&self, media_end: Time, reselect_ns: Option<u64>) -> Time {
        let reselect_ns = reselect_ns.unwrap_or(self.spec.reselect_ns);
        media_end + Span(reselect_ns) + Span(self.spec.completion_ns[1])
    }

    /// When a read that comes from the medium is complete.
    pub(crate) fn read_end(&mut self, read: &Incoming) -> Time {
        if self.spec.cut_through {
            return self.follow(read);
        }
        let again_ns = self.spec.reselect_ns
            + self.spec.prepare_ns
            + self.spec.disconnect_ns[0]
            + self.spec.disconnect_ns[1];
        let end = if self.spec.mark_sectors(read.n) == 1 && again_ns == 0 || self.spec.hold {
            self.send_as_it_comes(read)
        } else {
            self.send_in_bursts(read)
        };
        self.free = end + Span(self.spec.completion_ns[0]);
        self.free
    }

    /// A bus faster than the medium follows the head and ends with it; its own
    /// last sector is neglected.
    fn follow(&mut self, read: &Incoming) -> Time {
        let begin = read.time_of(self.spec.mark_sectors(read.n));
        let end = self.free.max(begin) + Span(read.n * self.spec.sector_ns);
        if end <= read.last + Span(self.spec.sector_ns) {
            return read.last;
        }
        self.free = end;
        end
    }

    /// When the transfer begins.
    fn begin(&self, read: &Incoming) -> Time {
        let late_ns = self.spec.disconnect_ns[usize::from(read.after_write)];
        if !read.disconnected && self.spec.begin_at_once && read.there > 0 {
            return self.free.max(read.from) + Span(self.spec.prepare_ns);
        }
        let from = read.from + Span(if read.disconnected { late_ns } else { 0 });
        let marked = read.time_of(self.spec.mark_sectors(read.n));
        from.max(marked).max(self.free) + Span(self.spec.reselect_ns + self.spec.prepare_ns)
    }

    /// Each sector waits for the medium and for the one before it: the last one
    /// is through when the first, or the first that was not there, or the last,
    /// has kept the others waiting longest.
    fn send_as_it_comes(&self, read: &Incoming) -> Time {
        let n_ns = |n: u64| Span(n * self.spec.sector_ns);
        let whole = self.begin(read) + n_ns(read.n);
        let rest = read.time_of(read.there + 1) + n_ns(read.n - read.there);
        whole.max(rest).max(read.time_of(read.n) + n_ns(1))
    }

    fn send_in_bursts(&self, read: &Incoming) -> Time {
        let again_ns = self.spec.reselect_ns + self.spec.prepare_ns;
        let (mut now, mut sent) = (self.begin(read), 0);
        loop {
            let there = read.count_at(now);
            now += Span((there - sent) * self.spec.sector_ns);
            sent = there;
            if sent >= read.n {
                return now;
            }
            if read.count_at(now) > sent {
                continue;
            }
            let next = (sent + self.spec.mark_sectors(read.n)).min(read.n);
            let gone = now + Span(self.spec.disconnect_ns[usize::from(read.after_write)]);
            now = gone.max(read.time_of(next)) + Span(again_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR_NS: u64 = 100;

    fn spec() -> BusSpec {
        BusSpec {
            cut_through: false,
            hold: false,
            ..BusSpec::plain(SECTOR_NS)
        }
    }

    /// A read of 8 sectors that pass from 1000 on, one every `media_ns`.
    fn miss(media_ns: u64) -> Incoming {
        Incoming {
            from: Time::ZERO,
            n: 8,
            there: 0,
            next: Time(1000),
            last: Time(1000 + 7 * media_ns),
            disconnected: true,
            after_write: false,
        }
    }

    fn end_ns(spec: BusSpec, read: &Incoming) -> u64 {
        Bus::new(spec).read_end(read).ns()
    }

    #[test]
    fn a_read_crosses_when_its_mark_is_in_the_buffer() {
        let marked = |mark, media_ns| end_ns(BusSpec { mark, ..spec() }, &miss(media_ns));
        // A bus slower than the medium never waits again.
        assert_eq!(marked(0.0, 50), 1000 + 800);
        assert_eq!(marked(0.75, 50), 1000 + 5 * 50 + 800);
        assert_eq!(marked(1.0, 50), 1000 + 7 * 50 + 800);
        // A faster one sends each as it comes, or six and then the rest.
        assert_eq!(marked(0.0, 400), 1000 + 7 * 400 + 100);
        assert_eq!(marked(0.75, 400), 1000 + 7 * 400 + 100);
        assert_eq!(marked(0.5, 400), 1000 + 7 * 400 + 3 * 100);
        assert_eq!(marked(1.0, 400), 1000 + 7 * 400 + 800);
        // A mark of the segment is out of reach of a small read: all of it.
        let of_segment = BusSpec {
            mark: 0.5,
            mark_of_sectors: 256,
            ..spec()
        };
        assert_eq!(end_ns(of_segment, &miss(50)), marked(1.0, 50));
    }

    #[test]
    fn letting_go_of_the_bus_costs_its_time_each_time() {
        let costly = BusSpec {
            mark: 0.5,
            disconnect_ns: [30, 5000],
            reselect_ns: 20,
            prepare_ns: 7,
            completion_ns: [3, 0],
            ..spec()
        };
        // At 4, which go with the two that come meanwhile; gone, and back for the
        // last two, which have come by then.
        let last = 1000 + 7 * 250;
        assert_eq!(end_ns(costly, &miss(250)), last + 27 + 2 * 100 + 3);
        let held = BusSpec {
            hold: true,
            ..costly
        };
        assert_eq!(end_ns(held, &miss(250)), last + 100 + 3);
        // The drive is longer about letting go than the data about coming.
        let late = Incoming {
            after_write: true,
            ..miss(250)
        };
        assert_eq!(end_ns(costly, &late), 5000 + 27 + 800 + 3);
    }

    /// Sector by sector, as the description says.
    fn slowly(spec: &BusSpec, read: &Incoming) -> u64 {
        let times: Vec<u64> = (1..=read.n).map(|k| read.time_of(k).ns()).collect();
        let mark = ((read.n as f64 * spec.mark) as u64).clamp(1, read.n);
        let mut now = times[mark as usize - 1].max(read.from.ns());
        let mut waits_for = 0;
        for k in 0..read.n {
            if times[k as usize] > now {
                waits_for = if spec.hold {
                    k + 1
                } else {
                    (k + mark).min(read.n)
                };
                now = times[waits_for as usize - 1];
            }
            now += spec.sector_ns;
        }
        assert!(waits_for <= read.n);
        now
    }

    #[test]
    fn reads_of_all_kinds_agree_with_going_sector_by_sector() {
        let (mut bursts, mut held) = (0, 0);
        for n in [1, 2, 3, 8, 31] {
            for media_ns in [0, 1, 33, 99, 100, 101, 250, 1000] {
                for mark in [0.0, 0.3, 0.75, 1.0] {
                    for hold in [false, true] {
                        let read = Incoming {
                            n,
                            last: Time(1000 + (n - 1) * media_ns),
                            ..miss(0)
                        };
                        let spec = BusSpec {
                            mark,
                            hold,
                            ..spec()
                        };
                        let (got, want) = (end_ns(spec, &read), slowly(&spec, &read));
                        assert_eq!(got, want, "{n} sectors, {media_ns} ns, {mark}, {hold}");
                        bursts += u32::from(!hold && mark > 0.0);
                        held += u32::from(hold);
                    }
                }
            }
        }
        assert!(bursts > 50 && held > 50);
    }

    #[test]
    fn the_begin_that_is_in_the_buffer_goes_at_once_or_waits_for_the_mark() {
        let hit = Incoming {
            there: 2,
            next: Time(3000),
            last: Time(3000 + 5 * 50),
            disconnected: false,
            ..miss(0)
        };
        assert_eq!(end_ns(spec(), &hit), 3000 + 600);
        let waiting = BusSpec {
            begin_at_once: false,
            mark: 1.0,
            ..spec()
        };
        assert_eq!(end_ns(waiting, &hit), 3250 + 800);
    }

    #[test]
    fn the_rest_of_a_write_comes_when_the_low_mark_is_reached() {
        let late = |low_mark, room| {
            let small = BusSpec {
                write_sectors: room,
                low_mark,
                ..spec()
            };
            Bus::new(small).refill_late_ns(96, 96 * 60)
        };
        // 32 of 96 sectors are on the bus (3200 ns) while the medium takes those
        // and what is left at the mark.
        assert_eq!(late(0.0, 64), 3200 - 33 * 60);
        assert_eq!(late(0.25, 64), 3200 - 48 * 60);
        assert_eq!(late(0.5, 64), 0);
        assert_eq!(late(0.0, 0), 0);
        assert_eq!(late(0.0, 96), 0);
    }
}
