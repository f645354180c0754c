// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace does not show, and the command that would.

use crate::findings::finding::counted;
use crate::findings::who_waits::Behaviour;
use crate::findings::whole::{DiskSum, Whole};
use blklab_trace::Action;
use blklab_types::Dev;
use serde::Serialize;

/// Names of SCSI disks: so many minors each.
const SD_MAJOR: u16 = 8;
const SD_MINORS: u16 = 16;

/// Something that the trace does not show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotShown {
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// What.
    pub what: String,
    /// Why not.
    pub because: String,
}

/// What the trace does not show of its devices.
pub(super) fn missing(whole: &Whole<'_>) -> Vec<NotShown> {
    let mut all = Vec::new();
    for (dev, sum) in &whole.sums.disks {
        if sum.nr_ended + sum.flushes.0 == 0 {
            continue;
        }
        let mut say = |what: &str, because: String| {
            let what = what.to_owned();
            all.push(NotShown {
                dev: *dev,
                what,
                because,
            });
        };
        let waited = sum.waited.requests;
        if sum.areas.nr_whole < waited {
            let without = waited - sum.areas.nr_whole;
            say(
                "what requests wait for before the device (tags, plug, scheduler)",
                format!("no Q, G or I of {}", counted(without, "requests")),
            );
        }
        if !whole.are_flags_said {
            say(
                "flushes, errors, and which writes are sync",
                "the recorder does not show them".to_owned(),
            );
        }
        for (pid, behaviour) in &sum.who_waits {
            say(
                &format!("whether {} waits for its writes", whole.who(*pid)),
                format!("it is taken to wait, since {}", behaviour.words()),
            );
        }
        if sum.nr_writes_unknown > 0 {
            say(
                "who waits for writes that others hand on",
                format!(
                    "{} of kernel threads",
                    counted(sum.nr_writes_unknown, "writes")
                ),
            );
        }
    }
    all
}

/// What makes a finding doubtful whose victims are only taken to wait.
pub(in crate::findings) fn of_behaviour(who: &str, behaviour: &Behaviour) -> String {
    format!(
        "the recorder does not show which writes are sync: that {who} waits is inferred, since {}",
        behaviour.words()
    )
}

/// The command that records what is missing: of the device with most waiting, or else of that of
/// the first finding.
pub(super) fn record_command(whole: &Whole<'_>, cause: Option<Dev>) -> String {
    let mut disks: Vec<(&Dev, &DiskSum)> = whole.sums.disks.iter().collect();
    disks.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.waited.waited_ns, sum.nr(Action::Issue))));
    let first = disks.first().map(|(dev, _)| **dev).or(cause);
    let device = first.map_or_else(|| "DEVICE".to_owned(), device_name);
    format!("sudo blklab record {device} --also jbd2,ext4,sched --for 30s")
}

/// What to call a device on the command line; research traces have numbers that no device has.
fn device_name(dev: Dev) -> String {
    let (major, minor) = (dev.major, dev.minor);
    if major == SD_MAJOR && minor / SD_MINORS < 26 {
        let letter = char::from(b'a' + (minor / SD_MINORS) as u8);
        return format!("sd{letter}");
    }
    if major == 0 {
        return "DEVICE".to_owned();
    }
    format!("/dev/block/{major}:{minor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_the_name_that_a_command_takes() {
        let name = |major, minor| device_name(Dev { major, minor });
        assert_eq!(name(8, 17), "sdb");
        assert_eq!(name(259, 3), "/dev/block/259:3");
        assert_eq!(name(0, 1), "DEVICE");
    }
}
