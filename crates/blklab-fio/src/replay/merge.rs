// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several traces as one, by time (`merge_blktrace_file` and what belongs to
//! it): each may be played several times and faster or slower.
//!
//! As the manual page of fio 3.33 documents it; the program itself writes an
//! empty file. The time of an event is `(time + round * length) * percent /
//! 100`, with times counted from the first event of its trace (recordings of
//! different machines or days have nothing else in common), and a round as long
//! as the trace.

use super::trace::{TraceEvent, TraceEvents, TraceKind};
use blklab_types::Error;

/// One of the traces to merge.
pub struct Source<'a> {
    /// Opens the trace, once per round.
    pub open: Box<dyn Fn() -> Result<TraceEvents<'a>, Error> + 'a>,
    /// Its times are stretched to so many percent.
    pub percent: u64,
    /// How often it is played.
    pub rounds: u64,
}

/// The traces merged. Of events of one time those of the trace that is named
/// first come first.
///
/// # Errors
/// When a trace cannot be opened.
pub fn merge<'a>(sources: Vec<Source<'a>>) -> Result<TraceEvents<'a>, Error> {
    let mut heads = Vec::with_capacity(sources.len());
    for source in sources {
        let events = (source.open)()?;
        let mut head = Head {
            source,
            events,
            next: None,
            round: 0,
            first_ns: None,
            last_ns: 0,
            length_ns: 0,
        };
        head.advance()?;
        heads.push(head);
    }
    Ok(Box::new(Merged { heads }))
}

struct Head<'a> {
    source: Source<'a>,
    events: TraceEvents<'a>,
    next: Option<TraceEvent>,
    round: u64,
    /// Time of the first event.
    first_ns: Option<u64>,
    /// Time since then of the last one.
    last_ns: u64,
    /// Length of a round, known at the end of the first.
    length_ns: u64,
}

impl Head<'_> {
    /// Finds the next queued bio, in the next round if this one is over.
    fn advance(&mut self) -> Result<(), Error> {
        loop {
            match self.events.next().transpose()? {
                Some(event) if event.kind == TraceKind::Queue => {
                    self.next = Some(self.timed(event));
                    return Ok(());
                }
                Some(_) => {}
                None => {
                    self.length_ns = self.last_ns;
                    self.round += 1;
                    self.next = None;
                    if self.round >= self.source.rounds || self.first_ns.is_none() {
                        return Ok(());
                    }
                    self.events = (self.source.open)()?;
                }
            }
        }
    }

    fn timed(&mut self, event: TraceEvent) -> TraceEvent {
        let first_ns = *self.first_ns.get_or_insert(event.time_ns);
        let since = event.time_ns.saturating_sub(first_ns);
        self.last_ns = since;
        let time = u128::from(since) + u128::from(self.round) * u128::from(self.length_ns);
        let scaled = time * u128::from(self.source.percent) / 100;
        TraceEvent {
            // The first event is not at 0: a pause follows any other time.
            time_ns: u64::try_from(scaled).unwrap_or(u64::MAX).saturating_add(1),
            ..event
        }
    }
}

struct Merged<'a> {
    heads: Vec<Head<'a>>,
}

impl Iterator for Merged<'_> {
    type Item = Result<TraceEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let heads = self.heads.iter_mut();
        let first = heads
            .filter(|head| head.next.is_some())
            .min_by_key(|head| head.next.map_or(u64::MAX, |event| event.time_ns))?;
        let event = first.next.take()?;
        Some(first.advance().map(|()| event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(times: &'static [u64], sector: u64, percent: u64, rounds: u64) -> Source<'static> {
        let event = move |time_ns: u64| TraceEvent {
            kind: TraceKind::Queue,
            time_ns,
            major: 8,
            minor: 0,
            writes: false,
            discards: false,
            flushes: false,
            sector,
            bytes: 512,
        };
        Source {
            open: Box::new(move || {
                let events = times.iter().map(move |time| Ok(event(*time)));
                Ok(Box::new(events) as TraceEvents<'_>)
            }),
            percent,
            rounds,
        }
    }

    #[test]
    fn traces_are_scaled_repeated_and_ordered_by_time() {
        let sources = vec![
            source(&[1000, 1200, 1400], 1, 50, 2),
            source(&[5000, 5150, 5300, 5600], 2, 100, 1),
        ];
        let merged: Vec<(u64, u64)> = merge(sources)
            .unwrap()
            .map(|event| event.map(|e| (e.time_ns - 1, e.sector)).unwrap())
            .collect();
        let expected = [
            (0, 1),
            (0, 2),
            (100, 1),
            (150, 2),
            (200, 1),
            (200, 1),
            (300, 1),
            (300, 2),
            (400, 1),
            (600, 2),
        ];
        assert_eq!(merged, expected);
    }

    #[test]
    fn an_empty_trace_adds_nothing_and_an_error_comes_through() {
        let mut sources = vec![source(&[], 1, 100, 5), source(&[7], 2, 100, 0)];
        assert_eq!(merge(sources).unwrap().count(), 1);
        sources = vec![Source {
            open: Box::new(|| Err(Error::new("gone"))),
            percent: 100,
            rounds: 1,
        }];
        assert_eq!(merge(sources).err(), Some(Error::new("gone")));
    }
}
