// SPDX-License-Identifier: MIT OR Apache-2.0
//! The track buffer: segments of what was read, and the medium running on.
//!
//! After a read the medium runs on into the segment until it is `read_ahead`
//! sectors ahead of the host, reaches the end of its track or cylinder (if set
//! so), or something else needs the mechanism. Nothing happens for that in the
//! event queue: how far it got is computed when somebody asks.
//!
//! A segment is a ring: it holds the last `segment_sectors` before its end.

use super::geometry::Geometry;

/// Where read-ahead ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchStop {
    /// When the segment is full.
    Segment,
    /// At the end of the track.
    Track,
    /// At the end of the cylinder.
    Cylinder,
    /// At the end of the track, whose begin is read too: the drive begins where
    /// it arrives and goes on round the track.
    WholeTrack,
}

/// Size and habits of the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadCacheSpec {
    pub(crate) segments: u32,
    pub(crate) segment_sectors: u64,
    pub(crate) read_ahead_sectors: u64,
    pub(crate) stop: PrefetchStop,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// Number of the last use; 0 for never.
    used: u64,
}

/// The medium running on into a segment.
#[derive(Clone, Copy, Debug)]
struct Run {
    segment: usize,
    /// This sector begins to pass at this time.
    from: u64,
    at_ns: u64,
    /// It stops here.
    limit: u64,
}

/// What the buffer has for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Nothing.
    Miss,
    /// All of it.
    Hit,
    /// The medium is running towards it and has passed it at this time (ns).
    Coming(u64),
}

/// The segments.
#[derive(Clone, Debug)]
pub(crate) struct ReadCache {
    spec: ReadCacheSpec,
    segments: Vec<Segment>,
    uses: u64,
    run: Option<Run>,
}

impl ReadCache {
    pub(crate) fn new(spec: ReadCacheSpec) -> ReadCache {
        let segments = vec![Segment::default(); spec.segments as usize];
        ReadCache {
            spec,
            segments,
            uses: 0,
            run: None,
        }
    }

    /// How far the medium has run on by now.
    fn reached(&self, geometry: &Geometry, run: &Run, now_ns: u64) -> u64 {
        geometry.passed(run.from, now_ns.saturating_sub(run.at_ns), run.limit)
    }

    /// What the segment of a run holds by now.
    fn held_by(&self, geometry: &Geometry, run: &Run, now_ns: u64) -> (u64, u64) {
        let end = self.reached(geometry, run, now_ns);
        let oldest = end.saturating_sub(self.spec.segment_sectors);
        (self.segments[run.segment].start.max(oldest), end)
    }

    /// The sectors of the segment that the last read went to, up to where the
    /// medium is: what a queued read may find there.
    pub(crate) fn passed(&self, geometry: &Geometry, now_ns: u64) -> (u64, u64) {
        self.run
            .map_or((0, 0), |run| self.held_by(geometry, &run, now_ns))
    }

    /// The time at which the medium has passed `sectors` more than at the last
    /// read.
    pub(crate) fn run_time_ns(&self, geometry: &Geometry, sectors: u64) -> Option<u64> {
        let run = self.run?;
        let n = sectors.min(run.limit - run.from);
        Some(if n == 0 {
            run.at_ns
        } else {
            run.at_ns + geometry.transfer_ns(run.from, n)
        })
    }

    /// What is there for a read of `[start, end)` now.
    pub(crate) fn lookup(&self, geometry: &Geometry, start: u64, end: u64, now_ns: u64) -> Lookup {
        if let Some(run) = self.run {
            let (low, reached) = self.held_by(geometry, &run, now_ns);
            if low <= start && start < run.limit {
                if end <= reached {
                    return Lookup::Hit;
                }
                if reached < run.limit {
                    return Lookup::Coming(
                        run.at_ns + geometry.transfer_ns(run.from, end - run.from),
                    );
                }
            }
        }
        let held = |s: &Segment| s.start <= start && end <= s.end;
        if self.segments.iter().any(held) {
            Lookup::Hit
        } else {
            Lookup::Miss
        }
    }

    /// Notes a read from the buffer of data up to `end`. Read-ahead in progress
    /// keeps its distance to the host.
    pub(crate) fn hit(&mut self, geometry: &Geometry, start: u64, end: u64, now_ns: u64) {
        let stop = self.stop(geometry, end);
        if let Some(mut run) = self.run {
            let (low, reached) = self.held_by(geometry, &run, now_ns);
            if low <= start && end <= reached {
                self.touch(run.segment);
                if reached < run.limit {
                    run.limit = run.limit.max(stop);
                    self.run = Some(run);
                }
                return;
            }
        }
        let held = |s: &Segment| s.start <= start && end <= s.end;
        if let Some(i) = self.segments.iter().position(held) {
            self.touch(i);
        }
    }

    /// Notes that `[start, end)` has been read by an access of its own, which
    /// ended at `end_ns`; the medium runs on.
    pub(crate) fn read(&mut self, geometry: &Geometry, start: u64, end: u64, end_ns: u64) {
        let i = self.segment_for(start);
        let begin = match self.spec.stop {
            PrefetchStop::WholeTrack => geometry.track_begin(start),
            _ => start,
        };
        let segment = &mut self.segments[i];
        if segment.end != start {
            segment.start = begin;
        }
        self.run_on(geometry, i, end, end_ns);
    }

    /// Notes that the medium has run on to `end`, as a read waited for.
    pub(crate) fn ran_to(&mut self, geometry: &Geometry, end: u64, end_ns: u64) {
        if let Some(run) = self.run {
            self.run_on(geometry, run.segment, end, end_ns);
        }
    }

    fn run_on(&mut self, geometry: &Geometry, i: usize, end: u64, end_ns: u64) {
        self.keep(i, end);
        self.touch(i);
        let limit = self.stop(geometry, end);
        let at_ns = end_ns + geometry.gap_before_ns(end);
        self.run = Some(Run {
            segment: i,
            from: end,
            at_ns,
            limit,
        });
    }

    /// Where read-ahead would go on, if a hit up to `end` has left less than
    /// half of its distance and the medium has stopped.
    pub(crate) fn resume_at(
        &self,
        geometry: &Geometry,
        start: u64,
        end: u64,
        now_ns: u64,
    ) -> Option<u64> {
        let run = self.run?;
        let (low, reached) = self.held_by(geometry, &run, now_ns);
        let here = low <= start && end <= run.limit;
        let low_water = end + self.spec.read_ahead_sectors / 2 >= run.limit;
        let stopped = reached >= run.limit;
        (here && low_water && stopped && self.stop(geometry, end) > run.limit).then_some(run.limit)
    }

    /// Lets the medium run on from where it had stopped, from `at_ns` on.
    pub(crate) fn resume(&mut self, geometry: &Geometry, end: u64, at_ns: u64) {
        let limit = self.stop(geometry, end);
        if let Some(run) = self.run {
            self.keep(run.segment, run.limit);
            let from = run.limit;
            self.run = Some(Run {
                from,
                at_ns,
                limit,
                ..run
            });
        }
    }

    /// The mechanism is needed elsewhere: what has been read stays. Returns the
    /// sector up to which the medium ran on.
    pub(crate) fn stop_running(&mut self, geometry: &Geometry, now_ns: u64) -> Option<u64> {
        let run = self.run.take()?;
        let end = self.reached(geometry, &run, now_ns);
        self.keep(run.segment, end);
        Some(end)
    }

    /// Forgets segments that share sectors with a write.
    pub(crate) fn invalidate(&mut self, start: u64, end: u64) {
        if let Some(run) = self.run {
            let low = self.segments[run.segment].start;
            if start < run.limit && low < end {
                self.segments[run.segment] = Segment::default();
                self.run = None;
            }
        }
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                *segment = Segment::default();
            }
        }
    }

    /// A segment holds what was read up to `end`, as far as there is room.
    fn keep(&mut self, i: usize, end: u64) {
        let segment = &mut self.segments[i];
        segment.end = end;
        segment.start = segment
            .start
            .max(end.saturating_sub(self.spec.segment_sectors));
    }

    fn touch(&mut self, i: usize) {
        self.uses += 1;
        self.segments[i].used = self.uses;
    }

    /// The segment that ends where a read begins, or the one not used for
    /// longest.
    fn segment_for(&self, start: u64) -> usize {
        let continued = |s: &Segment| s.end == start && s.start < s.end;
        let oldest = || (0..self.segments.len()).min_by_key(|&i| self.segments[i].used);
        self.segments
            .iter()
            .position(continued)
            .or_else(oldest)
            .unwrap_or(0)
    }

    /// Where read-ahead after a read up to `end` stops.
    fn stop(&self, geometry: &Geometry, end: u64) -> u64 {
        let last = end.saturating_sub(1);
        let bound = match self.spec.stop {
            PrefetchStop::Segment => u64::MAX,
            PrefetchStop::Track | PrefetchStop::WholeTrack => geometry.track_end(last),
            PrefetchStop::Cylinder => geometry.cylinder_end(last),
        };
        let limit = end.saturating_add(self.spec.read_ahead_sectors);
        limit.min(bound).min(geometry.capacity_sectors()).max(end)
    }
}
