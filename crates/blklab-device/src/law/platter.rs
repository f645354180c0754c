// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mechanism of the `simdisk` laws: one zone, one surface, a head, a
//! revolution, and read-ahead. Integer nanoseconds throughout.
//!
//! ```text
//! track(l) = l / spt        angle(l) = (l mod spt + track(l) * skew) mod spt
//! seek(0)  = 0              seek(d)  = min + var * sqrt(d / tracks)
//! skew     = ceil(seek(1) / sector_ns)
//! media(l, n) = n * sector_ns + skew * sector_ns * (track changes within)
//! t1 = begin + seek(|track(l) - head|)
//! t2 = first time >= t1 with (t mod revolution) = angle(l) * sector_ns
//! ```
//!
//! Read-ahead: after a read that ends at sector L0 at time T0 the medium runs
//! on, up to `ra` sectors. A later read of [a, a+n), with no other access to
//! the medium in between, is a hit if it begins in what has been passed and
//! ends within L0 + ra; it ends when the medium has passed its end.
//!
//! The square root is the integer one of 32.32 fixed-point numbers, as a kernel
//! module computes it.

use blklab_types::Time;

/// The shape of a platter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlatterSpec {
    pub(crate) capacity_sectors: u64,
    pub(crate) sector_ns: u64,
    pub(crate) track_sectors: u64,
    /// Time of any seek, at most 1 s.
    pub(crate) seek_min_ns: u32,
    /// Added for a seek over the whole disk, at most 1 s.
    pub(crate) seek_var_ns: u32,
    pub(crate) read_ahead_sectors: u64,
}

/// The medium running on after a read.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// First sector that is still in the buffer.
    low: u64,
    /// The medium passed this sector …
    end: u64,
    /// … at this time (ns); below 0 if it was before time 0.
    at_ns: i64,
}

/// Head, angle and read-ahead.
#[derive(Clone, Debug)]
pub(crate) struct Platter {
    spec: PlatterSpec,
    /// Seek time by distance in tracks.
    seek_ns: Vec<u32>,
    skew_sectors: u64,
    revolution_ns: u64,
    head_track: u64,
    run: Option<Run>,
}

impl Platter {
    pub(crate) fn new(spec: PlatterSpec) -> Platter {
        let tracks = (spec.capacity_sectors / spec.track_sectors).max(1);
        let seek = |d: u64| match d {
            0 => 0,
            _ => {
                let root = ((d << 32) / tracks).isqrt();
                spec.seek_min_ns + ((u64::from(spec.seek_var_ns) * root) >> 16) as u32
            }
        };
        let seek_ns: Vec<u32> = (0..=tracks).map(seek).collect();
        Platter {
            spec,
            skew_sectors: u64::from(seek_ns[1]).div_ceil(spec.sector_ns),
            revolution_ns: spec.track_sectors * spec.sector_ns,
            seek_ns,
            head_track: 0,
            run: None,
        }
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.spec.capacity_sectors
    }

    fn track(&self, sector: u64) -> u64 {
        sector / self.spec.track_sectors
    }

    /// Seek and rotational wait from `begin_ns` until `sector` passes the head.
    pub(crate) fn positioning_ns(&self, begin_ns: u64, sector: u64) -> u64 {
        let track = self.track(sector);
        let seek_ns = u64::from(self.seek_ns[track.abs_diff(self.head_track) as usize]);
        let on_track = (sector + track * self.skew_sectors) % self.spec.track_sectors;
        let angle_ns = on_track * self.spec.sector_ns;
        let head_ns = (begin_ns + seek_ns) % self.revolution_ns;
        let wait_ns = (angle_ns + self.revolution_ns - head_ns) % self.revolution_ns;
        seek_ns + wait_ns
    }

    /// Time in which `n` sectors from `sector` on pass the head.
    fn media_ns(&self, sector: u64, n: u64) -> u64 {
        let changes = self.track(sector + n.max(1) - 1) - self.track(sector);
        (n + changes * self.skew_sectors) * self.spec.sector_ns
    }

    /// As [`Platter::media_ns`], for a medium that runs on: a track change right
    /// before `sector` counts as well.
    fn run_ns(&self, sector: u64, n: u64) -> u64 {
        let changes = match (sector, n) {
            (_, 0) => 0,
            (0, n) => self.track(n - 1),
            (sector, n) => self.track(sector + n - 1) - self.track(sector - 1),
        };
        (n + changes * self.skew_sectors) * self.spec.sector_ns
    }

    /// When the medium passes the end of `n` sectors more.
    fn passes_ns(&self, run: &Run, n: u64) -> i64 {
        run.at_ns + self.run_ns(run.end, n) as i64
    }

    /// The first `n` sectors were read so long before time 0 that the read-ahead
    /// after them has ended.
    pub(crate) fn scanned(&mut self, n: u64) {
        if n > 0 {
            let ahead_ns = self.run_ns(n, self.spec.read_ahead_sectors) as i64;
            self.head_track = self.track(n - 1);
            self.run = Some(Run {
                low: self.lowest(0, n),
                end: n,
                at_ns: -ahead_ns - 1,
            });
        }
    }

    /// First sector in the buffer when the medium, running since `low`, has
    /// passed `end`.
    fn lowest(&self, low: u64, end: u64) -> u64 {
        low.max(end.saturating_sub(self.spec.read_ahead_sectors))
    }

    /// Whether a read that begins now comes from the read-ahead.
    pub(crate) fn is_hit(&self, begin_ns: u64, sector: u64, n: u64) -> bool {
        self.run.is_some_and(|run| {
            let passed =
                sector <= run.end || self.passes_ns(&run, sector - run.end) <= begin_ns as i64;
            run.low <= sector && passed && sector + n <= run.end + self.spec.read_ahead_sectors
        })
    }

    /// Reads `n` sectors, which are known not to come from the read-ahead; says
    /// when they have passed.
    pub(crate) fn read(&mut self, begin: Time, sector: u64, n: u64) -> Time {
        let end = self.access(begin, sector, n);
        self.run = Some(Run {
            low: self.lowest(sector, sector + n),
            end: sector + n,
            at_ns: end.ns() as i64,
        });
        end
    }

    /// Writes `n` sectors; says when they have passed.
    pub(crate) fn write(&mut self, begin: Time, sector: u64, n: u64) -> Time {
        self.run = None;
        self.access(begin, sector, n)
    }

    fn access(&mut self, begin: Time, sector: u64, n: u64) -> Time {
        let wait_ns = self.positioning_ns(begin.ns(), sector);
        self.head_track = self.track(sector + n.max(1) - 1);
        Time(begin.ns() + wait_ns + self.media_ns(sector, n))
    }

    /// Serves a hit (see [`Platter::is_hit`]) that may end at `earliest` at the
    /// earliest; says when it does.
    pub(crate) fn read_ahead(&mut self, begin: Time, earliest: Time, sector: u64, n: u64) -> Time {
        let Some(run) = self.run else { return earliest };
        let limit = self.spec.read_ahead_sectors;
        let stopped = begin.ns() as i64 > self.passes_ns(&run, limit);
        let read_end = sector + n;
        if stopped || read_end <= run.end {
            return earliest;
        }
        let at_ns = self.passes_ns(&run, read_end - run.end);
        self.head_track = self.track(read_end - 1);
        self.run = Some(Run {
            low: self.lowest(run.low, read_end),
            end: read_end,
            at_ns,
        });
        Time((at_ns.max(0) as u64).max(earliest.ns()))
    }
}
