// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device had to do in a while, and what follows from that.

use crate::flow::{Flow, Kind};
use crate::number::{figures, ms_text};
use crate::reading::Subject;

/// So many at a time on average while the device is busy are no queue.
const ALONE: f64 = 1.5;
/// A device that is busy for less has time left.
const HARDLY_BUSY_PERCENT: f64 = 50.0;
/// Nothing is left of one that serves one at a time.
const FULL_PERCENT: f64 = 95.0;
/// Latencies that are long on any disk that has time left.
const LONG_MS: f64 = 20.0;
/// Flushes that stand out.
const FLUSH_MS: f64 = 5.0;
/// Reads and writes stand in one queue: so many at a time, and that share of them writes.
const CROWD: f64 = 4.0;
const MOSTLY: f64 = 0.8;
/// What is printed and what follows from the rates differ by more than rounding.
const DIFFERS: f64 = 0.2;

/// What a device had to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Its name.
    pub(crate) device: String,
    /// By kind, in the order of [`Kind::ALL`].
    pub(crate) flows: [Flow; 4],
    /// Requests whose kinds are not told apart (`tps`).
    pub(crate) transfers: Flow,
    /// Requests under way on average, as printed (`aqu-sz`).
    pub(crate) printed: Option<f64>,
    /// Share of the time in which any was under way (`%util`).
    pub(crate) busy_percent: Option<f64>,
    /// Numbers are per second. Otherwise they are of a while that is not known.
    pub(crate) is_per_second: bool,
    /// Of that while: in which any was under way.
    pub(crate) busy_ms: Option<f64>,
}

impl Load {
    pub(crate) fn flow(&self, kind: Kind) -> &Flow {
        &self.flows[kind as usize]
    }

    pub(crate) fn flow_mut(&mut self, kind: Kind) -> &mut Flow {
        &mut self.flows[kind as usize]
    }

    /// Of all kinds, and those whose kind is not known.
    fn all(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().chain(std::iter::once(&self.transfers))
    }

    /// Requests that ended.
    pub(crate) fn number(&self) -> f64 {
        self.all().map(|flow| flow.number).sum()
    }

    /// Milliseconds that all of them took together.
    fn waited_ms(&self) -> Option<f64> {
        self.all().map(Flow::waited_ms).sum()
    }

    /// Requests under way on average, by Little's law.
    pub(crate) fn under_way(&self) -> Option<f64> {
        let waited = self.waited_ms().filter(|_| self.is_per_second);
        waited.map(|ms| ms / 1000.0).or(self.printed)
    }

    /// The same of the time in which any was.
    fn under_way_while_busy(&self) -> Option<f64> {
        if let (Some(waited), Some(busy)) = (self.waited_ms(), self.busy_ms) {
            return (busy > 0.0).then_some(waited / busy);
        }
        let busy = self.busy_percent.filter(|percent| *percent > 0.0)?;
        Some(self.under_way()? / (busy / 100.0).min(1.0))
    }

    /// Milliseconds between two ends while the device is busy.
    fn between_ends_ms(&self) -> Option<f64> {
        let number = Some(self.number()).filter(|number| *number > 0.0)?;
        if let Some(busy) = self.busy_ms {
            return Some(busy / number);
        }
        Some(10.0 * self.busy_percent?.min(100.0) / number)
    }

    /// Latency of all of them on average.
    fn await_ms(&self) -> Option<f64> {
        let number = Some(self.number()).filter(|number| *number > 0.0)?;
        Some(self.waited_ms()? / number)
    }

    /// What it shows.
    pub(crate) fn subject(&self, name: String) -> Subject {
        let mut subject = Subject::new(name);
        for kind in Kind::ALL {
            let flow = self.flow(kind);
            if flow.number > 0.0 {
                subject.show(kind.name(), flow.text(self.is_per_second));
                let unit = if self.is_per_second { "_per_s" } else { "" };
                subject.figure(format!("{}{unit}", kind.name()), flow.number);
                if let Some(ms) = flow.await_ms {
                    subject.figure(format!("{}_await_ms", kind.name()), ms);
                }
            }
        }
        if self.transfers.number > 0.0 {
            let text = self.transfers.text(self.is_per_second);
            subject.show("transfers", format!("{text}; reads and writes together"));
            subject.figure("transfers_per_s", self.transfers.number);
        }
        self.show_under_way(&mut subject);
        self.show_queue(&mut subject);
        self.show_busy(&mut subject);
        self.show_flushes(&mut subject);
        self.show_reads_behind_writes(&mut subject);
        subject
    }

    fn show_under_way(&self, subject: &mut Subject) {
        let Some(under_way) = self.under_way() else {
            return;
        };
        subject.figure("under_way", under_way);
        let mut text = format!("{} under way on average", figures(under_way));
        let by_rates = self.waited_ms().filter(|_| self.is_per_second).is_some();
        if by_rates {
            text.push_str(" (Little's law: rates times latencies");
            match self.printed {
                Some(printed) if (printed - under_way).abs() > DIFFERS * (1.0 + under_way) => {
                    let (how, kernels) = if printed < under_way {
                        (
                            "shrank",
                            " (kernels from 4.15 to 5.13 were seen to count too little)",
                        )
                    } else {
                        ("grew", "")
                    };
                    let why = format!(
                        "which counts what was there, where latencies are of what ended: the queue \
                         {how} meanwhile, or one of them is wrong{kernels}"
                    );
                    text.push_str(&format!("; aqu-sz says {}, {why})", figures(printed)));
                }
                Some(printed) => text.push_str(&format!("; aqu-sz says {})", figures(printed))),
                None => text.push(')'),
            }
        }
        subject.show("at a time", text);
    }

    fn show_queue(&self, subject: &mut Subject) {
        let (Some(busy), Some(each), Some(ms)) = (
            self.under_way_while_busy(),
            self.between_ends_ms(),
            self.await_ms(),
        ) else {
            return;
        };
        subject.figure("under_way_while_busy", busy);
        subject.figure("between_ends_ms", each);
        if busy < ALONE {
            subject.show(
                "queue",
                format!(
                    "hardly any: {} at a time while the device is busy. The {} of a request are \
                     nearly all the device's and its driver's, not waiting for other requests",
                    figures(busy),
                    ms_text(ms)
                ),
            );
            return;
        }
        subject.show(
            "queue",
            format!(
                "{} at a time while the device is busy, and one ends every {}. If it serves one \
                 at a time, that is what each takes, and {} % of the {} are waiting for the \
                 others. If it serves many at a time, all may be service: this table cannot tell",
                figures(busy),
                ms_text(each),
                figures((100.0 * (1.0 - each / ms)).clamp(0.0, 100.0)),
                ms_text(ms)
            ),
        );
    }

    /// Whether there is hardly ever more than one under way.
    fn is_alone(&self) -> bool {
        self.under_way_while_busy().is_some_and(|n| n < ALONE)
    }

    fn show_busy(&self, subject: &mut Subject) {
        let Some(percent) = self.busy_percent else {
            return;
        };
        subject.figure("busy_percent", percent);
        let is_long = self.await_ms().is_some_and(|ms| ms >= LONG_MS);
        let text = format!(
            "{} % of the time at least one was under way",
            figures(percent)
        );
        let text = if percent >= FULL_PERCENT {
            format!(
                "{text}: a disk that serves one at a time has nothing left. Of flash drives, arrays \
                 and cloud volumes, which serve many, it says nothing of what is left"
            )
        } else if percent < HARDLY_BUSY_PERCENT && is_long && self.is_alone() {
            format!(
                "{text}. It is asked seldom, one at a time, and each takes {} by itself: in the device \
                 (seeks, its cache being emptied, power saving, a fault), in what is below it (an \
                 array, a network, a host), or held back by a scheduler that idles",
                ms_text(self.await_ms().unwrap_or(0.0))
            )
        } else if percent < HARDLY_BUSY_PERCENT && is_long {
            format!(
                "{text}. A device with that much time left and latencies of {} has bursts, or \
                 requests are held back before it (throttling, a scheduler that idles, power saving)",
                ms_text(self.await_ms().unwrap_or(0.0))
            )
        } else {
            text
        };
        subject.show("busy", text);
    }

    fn show_flushes(&self, subject: &mut Subject) {
        let flushes = self.flow(Kind::Flushes);
        let Some(ms) = flushes.await_ms.filter(|_| flushes.number > 0.0) else {
            return;
        };
        if ms >= FLUSH_MS {
            subject.show(
                "look at",
                format!(
                    "flushes of the write cache: {} each. An fsync waits for one or two of them, \
                     whatever else it waits for",
                    ms_text(ms)
                ),
            );
        }
    }

    fn show_reads_behind_writes(&self, subject: &mut Subject) {
        let (reads, writes) = (self.flow(Kind::Reads), self.flow(Kind::Writes));
        let (Some(of_reads), Some(of_writes), Some(all)) =
            (reads.await_ms, writes.waited_ms(), self.waited_ms())
        else {
            return;
        };
        let is_crowd = self.under_way_while_busy().is_some_and(|n| n >= CROWD);
        if reads.number > 0.0 && of_reads >= LONG_MS && is_crowd && of_writes > MOSTLY * all {
            let text = "reads beside writes: nearly all that is under way are writes, and a read \
                        takes as long as something that stands behind them. Whose writes, and \
                        whether the reads do stand behind them, a recording shows";
            subject.show("look at", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(load: &Load, about: &str) -> String {
        let subject = load.subject("sda".to_owned());
        let of = subject.shows.iter().filter(|shown| shown.about == about);
        of.map(|shown| shown.text.as_str())
            .collect::<Vec<_>>()
            .join(" | ")
    }

    fn load(reads: (f64, f64), writes: (f64, f64), busy_percent: f64) -> Load {
        let flow = |(number, ms)| Flow {
            number,
            await_ms: Some(ms),
            ..Flow::default()
        };
        Load {
            flows: [flow(reads), flow(writes), Flow::default(), Flow::default()],
            busy_percent: Some(busy_percent),
            is_per_second: true,
            ..Load::default()
        }
    }

    #[test]
    fn a_crowd_on_a_full_disk_leaves_open_who_serves_it() {
        let full = load((4.0, 98.0), (210.0, 148.0), 100.0);
        assert!(shown(&full, "at a time").starts_with("31.5 under way"));
        let queue = shown(&full, "queue");
        assert!(queue.contains("one ends every 4.67 ms"), "{queue}");
        assert!(queue.contains("96.8 % of the 147.1 ms"), "{queue}");
        assert!(shown(&full, "busy").contains("nothing left"));
        assert!(shown(&full, "look at").contains("reads beside writes"));
    }

    #[test]
    fn a_full_flash_drive_without_a_queue_is_no_bottleneck() {
        let nvme = load((8120.0, 0.11), (120.0, 0.05), 98.4);
        let queue = shown(&nvme, "queue");
        assert!(queue.starts_with("hardly any: 0.91 at a time"), "{queue}");
        assert!(shown(&nvme, "busy").contains("says nothing of what is left"));
        assert_eq!(shown(&nvme, "look at"), "");
    }

    #[test]
    fn long_latencies_on_an_idle_disk_come_from_elsewhere() {
        let idle = load((10.0, 60.0), (0.0, 0.0), 12.0);
        let busy = shown(&idle, "busy");
        assert!(busy.contains("held back before it"), "{busy}");
    }

    #[test]
    fn slow_requests_one_at_a_time_are_no_burst() {
        let seldom = load((0.0, 0.0), (3.0, 86.0), 25.8);
        let busy = shown(&seldom, "busy");
        assert!(
            busy.contains("each takes 86.0 ms by itself") && !busy.contains("bursts"),
            "{busy}"
        );
    }

    #[test]
    fn a_queue_that_grows_has_more_than_what_ended() {
        let mut growing = load((3.0, 576.0), (112.0, 576.0), 100.0);
        growing.printed = Some(144.85);
        let text = shown(&growing, "at a time");
        assert!(text.contains("the queue grew meanwhile"), "{text}");
    }

    #[test]
    fn a_printed_depth_that_cannot_be_is_said() {
        let mut wrong = load((100.0, 50.0), (0.0, 0.0), 100.0);
        wrong.printed = Some(0.0);
        let text = shown(&wrong, "at a time");
        assert!(
            text.contains("aqu-sz says 0, which") && text.contains("or one of them is wrong"),
            "{text}"
        );
    }

    #[test]
    fn slow_flushes_are_pointed_out() {
        let mut slow = load((0.0, 0.0), (10.0, 2.0), 50.0);
        *slow.flow_mut(Kind::Flushes) = Flow {
            number: 2.0,
            await_ms: Some(310.0),
            ..Flow::default()
        };
        assert!(shown(&slow, "look at").contains("310.0 ms each"));
    }
}
