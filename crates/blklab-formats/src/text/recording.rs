// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a text goes on with another recording: mails quote several, one behind
//! the other.

/// Going back by less is disorder among CPUs.
const DISORDER_NS: i64 = 100_000_000;
/// Numbers that go back by less are lines in another order.
const DISORDER_EVENTS: u32 = 16;
/// CPUs that are followed.
const CPUS_MAX: usize = 8192;

/// The number and the time of an event.
type Last = (Option<u32>, i64);

/// The recording so far.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// The last event of each CPU.
    cpus: Vec<Option<Last>>,
    latest_ns: Option<i64>,
    /// Whether something else stands between the last event and the next.
    is_interrupted: bool,
}

impl Recording {
    /// A line that is no part of a trace.
    pub(super) fn interrupted(&mut self) {
        self.is_interrupted = true;
    }

    /// Takes an event; says whether another recording begins with it. `of_device` is the last
    /// number of its device on its CPU.
    #[inline]
    pub(super) fn event(
        &mut self,
        cpu: u16,
        sequence: Option<u32>,
        of_device: impl FnOnce() -> Option<u32>,
        at_ns: i64,
    ) -> bool {
        let cpu = usize::from(cpu);
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        let last = self.cpus.get(cpu).copied().flatten();
        let begins = self.latest_ns.is_some_and(|latest_ns| {
            begins_anew(
                last,
                (sequence, at_ns),
                of_device,
                latest_ns,
                is_interrupted,
            )
        });
        if begins {
            self.cpus.clear();
            self.latest_ns = None;
        }
        self.latest_ns = Some(self.latest_ns.map_or(at_ns, |latest| latest.max(at_ns)));
        if cpu < CPUS_MAX {
            if cpu >= self.cpus.len() {
                self.cpus.resize(cpu + 1, None);
            }
            self.cpus[cpu] = Some((sequence, at_ns));
        }
        begins
    }
}

impl Recording {
    /// Takes a row of a trace that has nothing but rows; says whether another begins
    /// with it, behind something that is no row.
    #[inline]
    pub(super) fn row(&mut self, at_ns: i64) -> bool {
        let is_interrupted = std::mem::take(&mut self.is_interrupted);
        let latest_ns = self.latest_ns.unwrap_or(i64::MIN);
        let begins = is_interrupted && at_ns < latest_ns;
        self.latest_ns = Some(if begins { at_ns } else { at_ns.max(latest_ns) });
        begins
    }
}

/// Whether an event is the first of another recording, by the last event of its
/// CPU, the last number of its device there, and the latest of all.
#[inline]
fn begins_anew(
    last: Option<Last>,
    (sequence, at_ns): Last,
    of_device: impl FnOnce() -> Option<u32>,
    latest_ns: i64,
    is_interrupted: bool,
) -> bool {
    if let (Some(number), Some((Some(before), _))) = (sequence, last) {
        if number == before.wrapping_add(1) {
            // This CPU goes on where it was.
            return false;
        }
        let goes_back = |before: u32| {
            let back = before.wrapping_sub(number);
            back > DISORDER_EVENTS && back < u32::MAX / 2
        };
        // Devices that are traced apart have numbers of their own.
        if goes_back(before) && of_device().is_some_and(goes_back) {
            return true;
        }
    }
    if at_ns >= latest_ns {
        return false;
    }
    let is_later_on_its_cpu = last.is_some_and(|(before, time)| {
        at_ns >= time && sequence.zip(before).is_none_or(|(n, b)| n > b)
    });
    if is_later_on_its_cpu {
        return false;
    }
    // blkparse's first event is the zero of its times.
    let is_zero = at_ns == 0 && sequence == Some(1);
    is_zero || latest_ns - at_ns >= DISORDER_NS || is_interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU, number and ms of each event; which ones begin a recording.
    fn check(events: &[(u16, u32, i64)], expected: &[usize]) {
        let mut recording = Recording::default();
        let mut found = Vec::new();
        let mut last = [None; 32];
        for (i, (cpu, number, ms)) in events.iter().enumerate() {
            let number = Some(*number).filter(|n| *n > 0);
            let before = std::mem::replace(&mut last[usize::from(*cpu)], number);
            if recording.event(*cpu, number, || before, ms * 1_000_000) {
                found.push(i);
            }
        }
        assert_eq!(found, expected, "{events:?}");
    }

    #[test]
    fn where_recordings_begin() {
        // In order, with what others left out.
        check(&[(0, 1, 0), (1, 1, 5), (0, 2, 6), (0, 90, 7)], &[]);
        // Disorder among CPUs, however large, while each goes on.
        check(&[(0, 1, 0), (1, 1, 900), (0, 2, 10), (0, 3, 20)], &[]);
        // Disorder of a new CPU.
        check(&[(0, 1, 0), (0, 2, 90), (1, 1, 10)], &[]);
        check(&[(0, 1, 0), (0, 2, 900), (1, 7, 10)], &[2]);
        // Zero again, on another CPU; numbers that begin anew.
        check(&[(5, 1, 0), (5, 2, 1), (17, 1, 0), (17, 2, 1)], &[2]);
        check(&[(0, 900, 10), (0, 901, 11), (0, 300, 50)], &[2]);
        // Two lines in another order.
        check(&[(13, 4434, 10), (13, 4432, 9)], &[]);
        // A single bad time: the numbers go on.
        check(&[(0, 1, 0), (0, 2, 9_000_000), (0, 3, 1)], &[]);
        // Without numbers.
        check(&[(0, 0, 500), (1, 0, 450), (1, 0, 460)], &[]);
        check(&[(0, 0, 500), (1, 0, 150)], &[1]);
    }

    #[test]
    fn prose_in_between() {
        let mut recording = Recording::default();
        let mut event = |cpu, at_ns| recording.event(cpu, None, || None, at_ns);
        assert!(!event(0, 500));
        recording.interrupted();
        let mut event = |cpu, at_ns| recording.event(cpu, None, || None, at_ns);
        assert!(!event(0, 501), "time goes on");
        recording.interrupted();
        assert!(recording.event(1, None, || None, 450));
    }

    #[test]
    fn another_device_has_numbers_of_its_own() {
        let mut recording = Recording::default();
        assert!(!recording.event(18, Some(7053), || None, 500));
        assert!(!recording.event(18, Some(1183), || Some(1182), 501));
        assert!(!recording.event(18, Some(240), || None, 502));
        assert!(recording.event(18, Some(3), || Some(240), 503));
    }
}
