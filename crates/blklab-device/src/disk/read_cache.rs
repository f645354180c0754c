// SPDX-License-Identifier: MIT OR Apache-2.0
//! The track buffer: segments of what was read, and the medium running on.
//!
//! After a read the medium runs on into the segment until it is `read_ahead`
//! sectors ahead of the host, reaches the end of its track or cylinder (if set
//! so), or something else needs the mechanism. Nothing happens for that in the
//! event queue: how far it got is computed when somebody asks.
//!
//! A segment is a ring: it holds the last `segment_sectors` before its end; in
//! some drives only as much behind the host as read-ahead leaves room for. A write
//! takes a segment too, in drives that do not keep one apart for writes.

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
    /// At the end of the track, or of the next one if the segment holds data of
    /// the track before: a stream is read ahead of by a track.
    NextTrack,
}

/// What a write does to the segments, beside voiding what it overwrites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteSegments {
    /// Nothing: its data are elsewhere.
    Apart,
    /// It takes one, which is empty when the data are on the medium.
    Void,
    /// It takes one, which goes on to hold the data.
    Keep,
}

/// Size and habits of the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadCacheSpec {
    pub(crate) segments: u32,
    pub(crate) segment_sectors: u64,
    pub(crate) read_ahead_sectors: u64,
    pub(crate) stop: PrefetchStop,
    /// Reads that must continue the one before until the drive reads ahead.
    pub(crate) read_ahead_after: u32,
    /// A read whose first sectors are there is a hit as far as they go.
    pub(crate) partial_hits: bool,
    /// What the host has read makes room for all of the read-ahead.
    pub(crate) makes_room: bool,
    pub(crate) writes: WriteSegments,
}

#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    /// Number of the last use; 0 for never.
    used: u64,
    /// Reads in a row that continued it.
    streak: u32,
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
    /// The sectors before this one; the medium is not running towards the rest.
    Partial(u64),
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
                if self.spec.partial_hits {
                    return Lookup::Partial(run.limit);
                }
            }
        }
        let held = |s: &Segment| s.start <= start && end <= s.end;
        if self.segments.iter().any(held) {
            return Lookup::Hit;
        }
        let begun = |s: &&Segment| s.start <= start && start < s.end;
        match self.segments.iter().find(begun) {
            Some(segment) if self.spec.partial_hits => Lookup::Partial(segment.end),
            _ => Lookup::Miss,
        }
    }

    /// How many sectors from `start` on the medium has run over.
    pub(crate) fn run_over(&self, geometry: &Geometry, start: u64, now_ns: u64) -> u64 {
        let reached = |run: &Run| self.reached(geometry, run, now_ns);
        self.run
            .as_ref()
            .map_or(0, |run| reached(run).saturating_sub(start))
    }

    /// Notes a read from the buffer of data up to `end`. Read-ahead in progress
    /// keeps its distance to the host.
    pub(crate) fn hit(&mut self, geometry: &Geometry, start: u64, end: u64, now_ns: u64) {
        if let Some(mut run) = self.run {
            let stop = self.stop(geometry, run.segment, end);
            let (low, reached) = self.held_by(geometry, &run, now_ns);
            if low <= start && end <= reached {
                self.touch(run.segment);
                self.release(run.segment, end);
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
            self.release(i, end);
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
            segment.streak = 0;
        } else {
            segment.streak = segment.streak.saturating_add(1);
        }
        self.run_on(geometry, i, end, end_ns);
    }

    /// A write of `[start, end)` begins: its data are newer than any here.
    pub(crate) fn write(&mut self, start: u64, end: u64) {
        self.invalidate(start, end);
        if self.spec.writes == WriteSegments::Apart {
            return;
        }
        let i = self.oldest();
        if self.run.is_some_and(|run| run.segment == i) {
            self.run = None;
        }
        self.segments[i] = Segment::default();
        if self.spec.writes == WriteSegments::Keep {
            self.segments[i].start = start;
            self.keep(i, end);
            self.touch(i);
        }
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
        self.release(i, end);
        let reads_ahead = self.segments[i].streak >= self.spec.read_ahead_after;
        let limit = if reads_ahead {
            self.stop(geometry, i, end)
        } else {
            end
        };
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
        let more = self.stop(geometry, run.segment, end) > run.limit;
        (here && low_water && stopped && more).then_some(run.limit)
    }

    /// Lets the medium run on from where it had stopped, from `at_ns` on.
    pub(crate) fn resume(&mut self, geometry: &Geometry, end: u64, at_ns: u64) {
        if let Some(run) = self.run {
            let limit = self.stop(geometry, run.segment, end);
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

    /// The host has got what segment `i` holds up to `end`.
    fn release(&mut self, i: usize, end: u64) {
        if self.spec.makes_room {
            let room = self.spec.segment_sectors;
            let behind = room.saturating_sub(self.spec.read_ahead_sectors);
            let start = &mut self.segments[i].start;
            *start = (*start).max(end.saturating_sub(behind));
        }
    }

    fn touch(&mut self, i: usize) {
        self.uses += 1;
        self.segments[i].used = self.uses;
    }

    /// The segment that ends where a read begins, or the one not used for
    /// longest.
    fn segment_for(&self, start: u64) -> usize {
        let continued = |s: &Segment| s.end == start && s.start < s.end;
        let position = self.segments.iter().position(continued);
        position.unwrap_or_else(|| self.oldest())
    }

    /// The segment not used for longest.
    fn oldest(&self) -> usize {
        let used = |&i: &usize| self.segments[i].used;
        (0..self.segments.len()).min_by_key(used).unwrap_or(0)
    }

    /// Where read-ahead into segment `i` after a read up to `end` stops.
    fn stop(&self, geometry: &Geometry, i: usize, end: u64) -> u64 {
        let last = end.saturating_sub(1);
        let bound = match self.spec.stop {
            PrefetchStop::Segment => u64::MAX,
            PrefetchStop::Track | PrefetchStop::WholeTrack => geometry.track_end(last),
            PrefetchStop::Cylinder => geometry.cylinder_end(last),
            PrefetchStop::NextTrack => self.track_ahead(geometry, i, end),
        };
        let limit = end.saturating_add(self.spec.read_ahead_sectors);
        limit.min(bound).min(geometry.capacity_sectors()).max(end)
    }

    /// The end of the track of `end`, or of the one behind it if segment `i`
    /// began on the track before.
    fn track_ahead(&self, geometry: &Geometry, i: usize, end: u64) -> u64 {
        let capacity = geometry.capacity_sectors();
        let next = end.min(capacity.saturating_sub(1));
        let track_end = geometry.track_end(next);
        let streams = self.segments[i].start < geometry.track_begin(next);
        if streams && track_end < capacity {
            geometry.track_end(track_end)
        } else {
            track_end
        }
    }
}
