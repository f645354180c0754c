// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a run over time: pages of the cache, requests and tags in use. No block event
//! carries them; a run that is asked for them keeps them in its result.

use blklab_analysis::timeline::{Profile, Timeline};
use blklab_trace::{Counter, CounterSink};
use blklab_types::{Dev, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A counter over a run, by equal intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterSeries {
    /// Its name: [`Counter::name`].
    pub counter: String,
    /// Number of the device whose queue it is of, as `8,0`; none of the machine's.
    pub device: Option<String>,
    /// When the first interval begins, ns.
    pub start_ns: u64,
    /// Mean and maximum of each interval.
    #[serde(flatten)]
    pub profile: Profile,
}

/// Counters of a run that goes on.
#[derive(Debug, Default)]
pub(crate) struct CounterLog(BTreeMap<(Option<Dev>, Counter), (Time, Timeline)>);

impl CounterSink for CounterLog {
    fn counter(&mut self, time: Time, dev: Option<Dev>, counter: Counter, value: u32) {
        let own = self.0.entry((dev, counter));
        let (_, timeline) = own.or_insert_with(|| (time, Timeline::default()));
        timeline.set(time, value);
    }
}

impl CounterLog {
    /// All of them up to the end of the run, those that were never above 0 left out.
    pub(crate) fn finish(self, end: Time) -> Vec<CounterSeries> {
        let mut all = Vec::new();
        for ((dev, counter), (start, mut timeline)) in self.0 {
            timeline.proceed(end);
            let mut profile = timeline.profile();
            if profile.max == 0 {
                continue;
            }
            // Pages and requests in hundredths are exact enough.
            for mean in profile.means.iter_mut().chain([&mut profile.mean]) {
                *mean = (*mean * 100.0).round() / 100.0;
            }
            all.push(CounterSeries {
                counter: counter.name().to_owned(),
                device: dev.map(|dev| dev.to_string()),
                start_ns: start.0,
                profile,
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_the_end_and_what_never_counted_is_left_out() {
        let mut log = CounterLog::default();
        log.counter(Time(0), None, Counter::DirtyPages, 0);
        log.counter(Time(0), None, Counter::CachedPages, 0);
        log.counter(Time(512), None, Counter::DirtyPages, 8);
        let all = log.finish(Time(2048));
        let [dirty] = all.as_slice() else {
            panic!("{all:?}")
        };
        assert_eq!((dirty.counter.as_str(), dirty.start_ns), ("dirty_pages", 0));
        assert_eq!(dirty.profile.means[..2], [4.0, 8.0]);
        assert_eq!(dirty.profile.max, 8);
    }
}
