// SPDX-License-Identifier: MIT OR Apache-2.0
//! What I/Os cost on a device, and which latencies it is to keep: numbers of the user or
//! of the device's class.

use blklab_types::{IoCostModel, IoCostQos, IoCostRates, IoCostTarget, Op, Span, Time};

/// Device time of a second, at a rate of 100 % (`VTIME_PER_SEC`).
pub(super) const PER_SECOND: u64 = 1 << 37;
/// Of a microsecond: the rate of 100 % (`VTIME_PER_USEC`).
pub(super) const PER_US: u64 = PER_SECOND / 1_000_000;
/// Of a nanosecond (`VTIME_PER_NSEC`).
pub(super) const PER_NS: u64 = PER_SECOND / 1_000_000_000;

/// Size that costs are counted in, in sectors and bytes.
const PAGE_SECTORS: u64 = 8;
const PAGE_BYTES: u64 = 4096;

/// An I/O that begins further away than this is random (`LCOEF_RANDIO_PAGES`).
const NEAR_PAGES: u64 = 4096;

/// Bounds of the rate, in millionths (`VRATE_MIN_PPM`, `VRATE_MAX_PPM`).
const RATE_PPM: (u32, u32) = (10_000, 100_000_000);

/// Bounds of a period (`MIN_PERIOD`, `MAX_PERIOD`).
const PERIOD_US: (u64, u64) = (1_000, 1_000_000);

/// The rate has to be out of a class's bounds for so long (`AUTOP_CYCLE_NSEC`).
const CLASS_CHANGES_AFTER: Span = Span(10_000_000_000);

/// Devices that are alike (`AUTOP_*`), the slower first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It seeks.
    Seeks,
    /// It does not, and takes one command at a time.
    OneAtATime,
    /// It does neither.
    Slower,
    /// Such a device that turned out to be fast.
    Faster,
}

const fn rates(bytes: u64, sequential: u64, random: u64) -> IoCostRates {
    IoCostRates {
        bytes_per_s: Some(bytes),
        sequential_per_s: Some(sequential),
        random_per_s: Some(random),
    }
}

impl Class {
    /// What such a device can do: reads, writes.
    const fn rates(self) -> [IoCostRates; 2] {
        match self {
            Class::Seeks => [
                rates(174_019_176, 41_708, 370),
                rates(178_075_866, 42_705, 378),
            ],
            Class::OneAtATime => [
                rates(245_855_193, 61_575, 6_946),
                rates(141_365_009, 33_716, 26_796),
            ],
            Class::Slower => [
                rates(488_636_629, 8_932, 8_518),
                rates(427_891_549, 28_755, 21_940),
            ],
            Class::Faster => [
                rates(3_102_524_156, 724_816, 778_122),
                rates(1_742_780_862, 425_702, 443_193),
            ],
        }
    }

    /// The latency that it is to keep.
    const fn latency_us(self) -> u32 {
        match self {
            Class::Seeks => 250_000,
            Class::OneAtATime | Class::Slower => 25_000,
            Class::Faster => 5_000,
        }
    }
}

/// A latency and the part of requests that may miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) latency_us: u32,
    /// Millionths of the requests that are to keep it.
    pub(super) ppm: u32,
}

/// Costs in device time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Coefficients {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Coefficients {
    /// `calc_lcoefs`.
    fn of_rates(user: IoCostRates, class: IoCostRates) -> Coefficients {
        let number = |of: fn(&IoCostRates) -> Option<u64>| of(&user).or(of(&class)).unwrap_or(0);
        let pages = number(|r| r.bytes_per_s).div_ceil(PAGE_BYTES);
        let page = match pages {
            0 => 0,
            n => PER_SECOND.div_ceil(n),
        };
        let beside_page = |per_s: u64| match per_s {
            0 => 0,
            n => PER_SECOND.div_ceil(n).saturating_sub(page),
        };
        Coefficients {
            page,
            sequential: beside_page(number(|r| r.sequential_per_s)),
            random: beside_page(number(|r| r.random_per_s)),
        }
    }
}

/// The numbers of a device at present (`ioc_params`).
#[derive(Debug)]
pub(super) struct Model {
    qos: IoCostQos,
    user: IoCostModel,
    rotational: bool,
    one_at_a_time: bool,
    class: Class,
    too_fast_since: Option<Time>,
    too_slow_since: Option<Time>,
    /// Reads, writes.
    costs: [Coefficients; 2],
    /// Reads, writes.
    pub(super) targets: [Target; 2],
    /// Bounds of the rate, device time per microsecond.
    pub(super) rate_min: u64,
    pub(super) rate_max: u64,
    pub(super) period_us: u64,
}

impl Model {
    pub(super) fn new(
        qos: IoCostQos,
        user: IoCostModel,
        rotational: bool,
        queue_depth: u32,
    ) -> Model {
        let mut model = Model {
            qos,
            user,
            rotational,
            one_at_a_time: queue_depth == 1,
            class: Class::Slower,
            too_fast_since: None,
            too_slow_since: None,
            costs: Default::default(),
            targets: [Target {
                latency_us: 0,
                ppm: 0,
            }; 2],
            rate_min: 0,
            rate_max: 0,
            period_us: 0,
        };
        model.class = model.class_at(PER_US, Time::ZERO);
        model.refresh();
        model
    }

    /// The class at a rate, which changes when the rate says so for long
    /// (`ioc_autop_idx`).
    fn class_at(&mut self, rate: u64, now: Time) -> Class {
        if self.rotational {
            return Class::Seeks;
        }
        if self.one_at_a_time {
            return Class::OneAtATime;
        }
        if self.qos.is_user || self.user.is_user {
            return self.class;
        }
        let percent = rate * 100 / PER_US;
        let lasts = |since: &mut Option<Time>, holds: bool| {
            *since = holds.then(|| since.unwrap_or(now));
            since.is_some_and(|at| now.since(at) >= CLASS_CHANGES_AFTER)
        };
        let is_slower = self.class == Class::Slower;
        let too_fast = lasts(&mut self.too_fast_since, is_slower && percent >= 500);
        let too_slow = lasts(&mut self.too_slow_since, !is_slower && percent <= 10);
        if too_fast {
            Class::Faster
        } else if too_slow {
            Class::Slower
        } else {
            self.class
        }
    }

    /// Looks whether the device is of another class by now; whether it is
    /// (`ioc_refresh_params`).
    pub(super) fn reconsider(&mut self, rate: u64, now: Time) -> bool {
        let class = self.class_at(rate, now);
        let changes = class != self.class;
        if changes {
            self.class = class;
            self.too_fast_since = None;
            self.too_slow_since = None;
            self.refresh();
        }
        changes
    }

    /// Numbers of the class and the user.
    fn refresh(&mut self) {
        let [reads, writes] = self.class.rates();
        self.costs = [
            Coefficients::of_rates(self.user.read, reads),
            Coefficients::of_rates(self.user.write, writes),
        ];
        let target = |t: IoCostTarget| Target {
            latency_us: t.latency_us.unwrap_or(self.class.latency_us()),
            ppm: t.ppm.unwrap_or(0),
        };
        self.targets = [target(self.qos.read), target(self.qos.write)];
        let rate = |ppm: u32| (u64::from(ppm) * PER_US).div_ceil(1_000_000);
        self.rate_min = rate(self.qos.min_ppm.unwrap_or(RATE_PPM.0));
        self.rate_max = rate(self.qos.max_ppm.unwrap_or(RATE_PPM.1));
        let [reads, writes] = self.targets;
        let longer = if reads.latency_us >= writes.latency_us {
            reads
        } else {
            writes
        };
        let times = match longer.ppm {
            0 => 2,
            ppm => (u64::from(1_000_000 - ppm) / 50_000).max(2),
        };
        let period = times * u64::from(longer.latency_us);
        self.period_us = period.clamp(PERIOD_US.0, PERIOD_US.1);
    }

    fn costs_of(&self, op: Op) -> Option<&Coefficients> {
        match op {
            Op::Read => Some(&self.costs[0]),
            Op::Write | Op::Flush => Some(&self.costs[1]),
            Op::Discard => None,
        }
    }

    /// What an I/O costs that begins so far from the end of the one before
    /// (`calc_vtime_cost_builtin`); `joins`: it joins another one.
    pub(super) fn cost(&self, op: Op, nr_sectors: u32, distance_sectors: u64, joins: bool) -> u64 {
        let Some(costs) = self.costs_of(op) else {
            return 0;
        };
        let pages = (u64::from(nr_sectors) / PAGE_SECTORS).max(1);
        let begins = if joins {
            0
        } else if distance_sectors / PAGE_SECTORS > NEAR_PAGES {
            costs.random
        } else {
            costs.sequential
        };
        begins + pages * costs.page
    }

    /// The part of a request's time that its size accounts for
    /// (`calc_size_vtime_cost`).
    pub(super) fn time_of_size(&self, op: Op, nr_sectors: u32) -> Span {
        let page = self.costs_of(op).map_or(0, |costs| costs.page);
        Span(u64::from(nr_sectors) / PAGE_SECTORS * page / PER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(read: IoCostRates) -> IoCostModel {
        IoCostModel {
            is_user: true,
            read,
            ..IoCostModel::default()
        }
    }

    #[test]
    fn an_io_costs_what_the_rates_say() {
        // 1000 pages a second; 500 sequential I/Os, 100 random ones of a page.
        let read = rates(4_096_000, 500, 100);
        let model = Model::new(IoCostQos::default(), user(read), false, 32);
        let second = PER_SECOND;
        let near = |nr_sectors| model.cost(Op::Read, nr_sectors, 0, false);
        let is_about = |cost: u64, part: u64| cost.abs_diff(second / part) <= 2;
        assert!(is_about(near(8), 500));
        assert!(is_about(near(1), 500), "a page at least");
        assert!(is_about(near(80) - near(72), 1000));
        assert!(is_about(model.cost(Op::Read, 8, 40_000, false), 100));
        assert!(
            is_about(model.cost(Op::Read, 8, 32_768, false), 500),
            "16 MiB are near"
        );
        assert!(
            is_about(model.cost(Op::Read, 8, 40_000, true), 1000),
            "a merge"
        );
        assert_eq!(model.cost(Op::Discard, 8, 0, false), 0);
        assert_eq!(model.time_of_size(Op::Read, 16).ns() / 1000, 2006);
    }

    #[test]
    fn periods_follow_latencies() {
        let period = |read, write| {
            let qos = IoCostQos {
                read,
                write,
                ..IoCostQos::default()
            };
            Model::new(qos, IoCostModel::default(), false, 32).period_us
        };
        let target = |ppm, latency_us| IoCostTarget {
            ppm: Some(ppm),
            latency_us: Some(latency_us),
        };
        assert_eq!(period(target(0, 100_000), target(0, 100_000)), 200_000);
        assert_eq!(period(target(950_000, 2000), target(950_000, 5000)), 10_000);
        assert_eq!(
            period(target(500_000, 10_000), target(950_000, 5000)),
            100_000
        );
        assert_eq!(period(target(0, 10), target(0, 10)), 1000);
        assert_eq!(period(target(0, 900_000), target(0, 10)), 1_000_000);
    }

    #[test]
    fn a_fast_drive_changes_its_class() {
        let mut model = Model::new(IoCostQos::default(), IoCostModel::default(), false, 32);
        let cost = model.cost(Op::Read, 8, 1 << 30, false);
        let at = |s: u64| Time(s * 1_000_000_000);
        assert!(!model.reconsider(5 * PER_US, at(1)));
        assert!(
            !model.reconsider(4 * PER_US, at(9)),
            "it was not long enough"
        );
        assert!(!model.reconsider(5 * PER_US, at(10)));
        assert!(model.reconsider(5 * PER_US, at(20)));
        assert!(model.cost(Op::Read, 8, 1 << 30, false) < cost / 50);
        let mut disk = Model::new(IoCostQos::default(), IoCostModel::default(), true, 32);
        assert!(!disk.reconsider(5 * PER_US, at(1)) && !disk.reconsider(5 * PER_US, at(30)));
    }
}
