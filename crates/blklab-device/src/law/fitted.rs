// SPDX-License-Identifier: MIT OR Apache-2.0
//! Law `fitted`: what a trace shows of a device of which nothing else is known.
//!
//! ```text
//! time = (read_ns or write_ns + sectors * …_sector_ps / 1000) * spread + fua_ns
//! ```
//!
//! So many commands are served at a time (`servers`; 0: all that there are), in order of
//! hand-over; the others wait. A flush begins when all that were handed over before it
//! have ended, and nothing else begins until it has. Times vary as they were seen to: the
//! parameters `read_spread` and `write_spread` are quantiles of what commands took, in
//! thousandths of what the line says, and one after the other of each direction takes the
//! next of them, in an order that spreads them evenly. So the law draws no random numbers
//! and has the recorded distribution, though not what makes one command slower than
//! another.

use super::parallel::InFlight;
use crate::device::{Command, Device, DeviceCx};
use crate::error::DeviceError;
use crate::info::Settings;
use crate::limits::{DeviceLimits, Driver};
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{BioFlags, DiscardLimits, Op, Span, Unit};
use std::collections::VecDeque;
use std::sync::Arc;

const TIME: Kind = Kind::Time {
    unit_ns: 1,
    max_ns: 3_600_000_000_000,
};
const SECTOR_PS: Kind = Kind::Count {
    min: 0,
    max: 1_000_000_000_000,
};
const SERVERS: Kind = Kind::Count {
    min: 0,
    max: 65_536,
};

#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    param("read_ns", TIME, "100000", "time of a read of no length"),
    param("write_ns", TIME, "", "time of a write of no length; as read_ns if not given"),
    param("read_sector_ps", SECTOR_PS, "0", "added for each sector of a read, in ps").in_unit(Unit::Ps),
    param("write_sector_ps", SECTOR_PS, "", "added for each sector of a write, in ps; as read_sector_ps if not given").in_unit(Unit::Ps),
    param("read_spread", Kind::Text, "1000", "quantiles of the times of reads, in thousandths of what the line says, as in 900:1000:1300"),
    param("write_spread", Kind::Text, "1000", "the same of writes"),
    param("flush_ns", TIME, "0", "time of a flush; nothing else is served meanwhile"),
    param("fua_ns", TIME, "0", "added for a write that passes the cache"),
    param("servers", SERVERS, "1", "commands that are served at a time; 0: all"),
    param("fua", Kind::Switch, "off", "a write can be made to pass the cache (queue/fua)"),
    param("budget", Kind::Switch, "off", "the driver counts commands beside its tags, as SCSI does"),
];

pub(crate) const LIMITS: DeviceLimits = DeviceLimits {
    driver: Driver::SimDisk,
    discard: Some(DiscardLimits::ANY),
    ..DeviceLimits::NONE
};

pub(crate) const SETTINGS: Settings = Settings {
    depth: None,
    limits: |values, limits| DeviceLimits {
        has_fua: values.on("fua"),
        driver: if values.on("budget") {
            Driver::Scsi
        } else {
            limits.driver
        },
        ..limits
    },
    ..Settings::NONE
};

/// Times of one direction.
#[derive(Clone, Debug)]
struct Line {
    fixed_ns: u64,
    sector_ps: u64,
    /// Thousandths, ascending.
    spread: Arc<[u32]>,
    /// Commands so far.
    served: u64,
}

impl Line {
    /// The next command takes so long.
    fn time(&mut self, nr_sectors: u32) -> u64 {
        // The golden ratio of 2^64: its multiples are spread evenly.
        let place = self.served.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.served += 1;
        let rank = (u128::from(place) * self.spread.len() as u128) >> 64;
        let line = self.fixed_ns + u64::from(nr_sectors) * self.sector_ps / 1000;
        (u128::from(line) * u128::from(self.spread[rank as usize]) / 1000) as u64
    }
}

#[derive(Clone)]
struct Fitted {
    read: Line,
    write: Line,
    flush_ns: u64,
    fua_ns: u64,
    servers: usize,
    /// Handed over and not begun, oldest first.
    waiting: VecDeque<Command>,
    nr_served: usize,
    flushes: bool,
    in_flight: InFlight,
}

impl Fitted {
    fn time(&mut self, cmd: &Command) -> Span {
        let ns = match cmd.op {
            Op::Read => self.read.time(cmd.nr_sectors),
            Op::Write if cmd.flags.has(BioFlags::FUA) => {
                self.write.time(cmd.nr_sectors) + self.fua_ns
            }
            Op::Write => self.write.time(cmd.nr_sectors),
            Op::Flush => self.flush_ns,
            Op::Discard => 0,
        };
        Span(ns)
    }

    fn begin(&mut self, cx: &mut DeviceCx<'_>) {
        while let Some(next) = self.waiting.front() {
            let is_flush = next.op == Op::Flush;
            let is_full = self.nr_served >= self.servers;
            if is_full || self.flushes || (is_flush && self.nr_served > 0) {
                return;
            }
            let cmd = self.waiting.pop_front().expect("there is one");
            self.flushes = is_flush;
            self.nr_served += 1;
            let end = cx.now + self.time(&cmd);
            self.in_flight.push(cx, cmd.id, cx.now, end);
        }
    }
}

impl Device for Fitted {
    fn copy(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command) {
        self.waiting.push_back(*cmd);
        self.begin(cx);
    }

    fn wake(&mut self, cx: &mut DeviceCx<'_>, _token: u64) {
        self.in_flight.pop(cx);
        self.nr_served -= 1;
        // Nothing was beside a flush: what ended was it.
        self.flushes = false;
        self.begin(cx);
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }
}

/// `900:1000:1300`.
fn spread(values: &Values, name: &'static str) -> Result<Arc<[u32]>, DeviceError> {
    let parts = values.text(name).split(':').map(|p| p.trim().parse());
    let parts: Result<Vec<u32>, _> = parts.collect();
    match parts {
        Ok(list) if list.is_sorted() && list.len() <= 4096 => Ok(list.into()),
        _ => Err(values.bad(
            name,
            "thousandths in ascending order, as in 900:1000:1300".into(),
        )),
    }
}

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let read = Line {
        fixed_ns: values.int("read_ns"),
        sector_ps: values.int("read_sector_ps"),
        spread: spread(values, "read_spread")?,
        served: 0,
    };
    let write = Line {
        fixed_ns: values.opt("write_ns").unwrap_or(read.fixed_ns),
        sector_ps: values.opt("write_sector_ps").unwrap_or(read.sector_ps),
        spread: spread(values, "write_spread")?,
        served: 0,
    };
    Ok(Box::new(Fitted {
        read,
        write,
        flush_ns: values.int("flush_ns"),
        fua_ns: values.int("fua_ns"),
        servers: match values.int("servers") {
            0 => usize::MAX,
            n => n as usize,
        },
        waiting: VecDeque::with_capacity(depth as usize),
        nr_served: 0,
        flushes: false,
        in_flight: InFlight::with_depth(depth),
    }))
}

#[cfg(test)]
mod tests {
    use crate::host::Host;
    use blklab_types::{BioFlags, Op, Time};

    /// The ends of commands that are all handed over at once.
    fn ends(spec: &str, commands: &[(Op, u32)]) -> Vec<u64> {
        let mut host = Host::build(spec, 32);
        for (i, (op, sectors)) in commands.iter().enumerate() {
            host.submit(*op, BioFlags::NONE, i as u64 * 1000, *sectors);
        }
        let mut ends = vec![0; commands.len()];
        while let Some(finished) = host.step() {
            for f in finished {
                let place = f.cmd.sector / 1000;
                ends[place as usize] = f.ended.0;
            }
        }
        ends
    }

    #[test]
    fn so_many_are_served_at_a_time() {
        let four = [(Op::Read, 8); 4];
        let law = "fitted,read_ns=100,read_sector_ps=2500";
        assert_eq!(ends(law, &four), [120, 240, 360, 480]);
        let two = format!("{law},servers=2");
        assert_eq!(ends(&two, &four), [120, 120, 240, 240]);
        let all = format!("{law},servers=0");
        assert_eq!(ends(&all, &four), [120; 4]);
    }

    #[test]
    fn a_flush_is_served_alone() {
        let law = "fitted,read_ns=100,servers=4,flush_ns=1000";
        let commands = [(Op::Read, 8), (Op::Flush, 0), (Op::Read, 8), (Op::Read, 8)];
        assert_eq!(ends(law, &commands), [100, 1100, 1200, 1200]);
    }

    #[test]
    fn times_have_the_quantiles_that_were_seen() {
        let law = "fitted,read_ns=1000,read_spread=500:1000:1000:2500,servers=0";
        let mut seen = ends(law, &[(Op::Read, 8); 32]);
        seen.sort_unstable();
        let nr = |ns: u64| seen.iter().filter(|t| **t == ns).count();
        assert!((7..=9).contains(&nr(500)), "{seen:?}");
        assert!((7..=9).contains(&nr(2500)), "{seen:?}");
        assert_eq!(nr(500) + nr(1000) + nr(2500), 32);
        assert_eq!(Time(seen[31]), Time(2500));
    }

    #[test]
    fn a_spread_that_is_none_is_refused() {
        let given = [("read_spread".to_owned(), "5:1".to_owned())];
        let no_files = |_: &str| Err(String::new());
        let told = crate::build("fitted", &given, 1, &no_files).map(drop);
        let told = told.expect_err("refused").to_string();
        assert!(told.contains("ascending order"), "{told}");
    }
}
