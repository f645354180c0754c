// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace does not show, and the command that would.

use super::WAITED_MIN;
use crate::findings::finding::counted;
use crate::findings::sums::{percent, total};
use crate::findings::threads::is_journal;
use crate::findings::who_waits::Behaviour;
use crate::findings::whole::{Account, DiskSum, Whole};
use blklab_trace::Action;
use blklab_types::Dev;
use serde::Serialize;

/// So much of all waiting, or of the trace's time, in per cent, is worth a look at who has no
/// request.
const FOR_A_REQUEST_PERCENT: u64 = 10;

/// Names of SCSI disks: so many minors each.
const SD_MAJOR: u16 = 8;
const SD_MINORS: u16 = 16;

/// What part of the way of an I/O a trace does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What requests wait for before the device: tags, plug, scheduler.
    BeforeDevice,
    /// Flushes, errors, and which writes are sync.
    Flags,
    /// Who waits.
    WhoWaits,
    /// What the page cache does: writers that are held back, what is read ahead in vain.
    PageCache,
    /// Whose requests they are.
    Owners,
    /// Which control groups processes are in, and what these are allowed.
    Groups,
    /// What else there is: the trace is short.
    Rest,
    /// What the journal does: commits, and who waits for them or for room.
    Journal,
}

/// Something that the trace does not show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotShown {
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// Which part.
    pub part: Part,
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
        let mut say = |part: Part, what: &str, because: String| {
            let what = what.to_owned();
            all.push(NotShown {
                dev: *dev,
                part,
                what,
                because,
            });
        };
        let waited = sum.waited.requests;
        let is_nothing_shown = shows_no_owner(sum);
        if sum.areas.nr_whole < waited || is_nothing_shown {
            let without = waited.max(sum.nr_ended) - sum.areas.nr_whole;
            say(
                Part::BeforeDevice,
                "what requests wait for before the device (tags, plug, scheduler)",
                format!("no Q, G or I of {}", counted(without, "requests")),
            );
        }
        if is_nothing_shown {
            say(
                Part::Owners,
                "whose requests they are",
                "D and C name who handed them to the device".to_owned(),
            );
        }
        if waits_for_groups(sum, whole) {
            let part = percent(sum.waited.get_ns, sum.waited.waited_ns);
            say(
                Part::Groups,
                "control groups: who is in which, and their io.cost, io.latency and io.weight",
                format!(
                    "{part} % of all waiting is for a request (Q-G), where these hold bios, and no \
                     context tells of them (blklab record writes one)"
                ),
            );
        }
        if !whole.are_flags_said {
            say(
                Part::Flags,
                "flushes, errors, and which writes are sync",
                "the recorder does not show them".to_owned(),
            );
        }
        if writes_back(sum) && !whole.sums.beside.page_cache {
            say(
                Part::PageCache,
                "whether writers are held back since too many pages are dirty",
                "no events of writeback".to_owned(),
            );
        }
        if journals(whole, sum).next().is_some() && !whole.sums.beside.journal {
            say(
                Part::Journal,
                "who waits for commits of the journal, or for room in it",
                "no events of it".to_owned(),
            );
        }
        for (pid, behaviour) in &sum.who_waits {
            say(
                Part::WhoWaits,
                &format!("whether {} waits for its writes", whole.who(*pid)),
                format!("it is taken to wait, since {}", behaviour.words()),
            );
        }
        if sum.nr_writes_unknown > 0 {
            say(
                Part::WhoWaits,
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

/// Whether no request of a device shows who queued it.
pub(in crate::findings) fn shows_no_owner(sum: &DiskSum) -> bool {
    let begins = [Action::Queue, Action::GetRequest, Action::Insert];
    sum.nr(Action::Issue) > 0 && begins.iter().all(|action| sum.nr(*action) == 0)
}

/// What a trace does not show that is an excerpt: what happens before and behind it.
pub(super) fn rest(whole: &Whole<'_>) -> Option<NotShown> {
    let disks = &whole.sums.disks;
    let waited: u64 = disks.values().map(|d| d.waited.requests).sum();
    let (dev, _) = disks.iter().max_by_key(|(_, d)| d.nr(Action::Complete))?;
    (waited < WAITED_MIN).then(|| NotShown {
        dev: *dev,
        part: Part::Rest,
        what: "what else happens, and how often".to_owned(),
        because: format!(
            "only {} that somebody waits for",
            counted(waited, "requests")
        ),
    })
}

/// Of the time of a device, write-back or a journal has so many per cent where processes may
/// wait for it.
const BUSY_PERCENT: u64 = 20;

/// Whether so much is written back that writers may be held back for it: what they wait for
/// then is no I/O of theirs.
fn writes_back(sum: &DiskSum) -> bool {
    let Account {
        alone_ns,
        behind_ns,
        ..
    } = sum.background;
    percent(alone_ns.saturating_add(behind_ns), sum.span_ns) >= BUSY_PERCENT
}

/// Those threads of journals that write to a device.
fn journals<'a>(whole: &'a Whole<'_>, sum: &'a DiskSum) -> impl Iterator<Item = &'a Account> {
    let is_journal = |pid| whole.sums.names.get(pid).is_some_and(is_journal);
    sum.accounts()
        .filter(move |(pid, _)| is_journal(*pid))
        .map(|(_, account)| account)
}

/// What processes may wait for that no event of the block layer shows, in words, where the
/// device has enough of it to be long.
pub(super) fn may_hide(whole: &Whole<'_>, sum: &DiskSum) -> Option<&'static str> {
    let of_journals = total(journals(whole, sum).map(|a| a.waited_ns));
    if writes_back(sum) && !whole.sums.beside.page_cache {
        return Some("whether writers are held back by the limit of dirty pages is not shown");
    }
    if percent(of_journals, sum.span_ns) >= BUSY_PERCENT && !whole.sums.beside.journal {
        return Some("who waits for the journal, and for how long, is not shown");
    }
    None
}

/// Whether control groups may be what requests wait for, and nothing is known of them: no trace
/// says which group a process is in, and io.latency has no events at all.
fn waits_for_groups(sum: &DiskSum, whole: &Whole<'_>) -> bool {
    let part = percent(sum.waited.get_ns, sum.waited.waited_ns);
    let has_groups = whole
        .context
        .kernel()
        .is_none_or(|kernel| !kernel.has_single_queue());
    let of_time = percent(sum.waited.get_ns, sum.span_ns);
    let is_much = part >= FOR_A_REQUEST_PERCENT || of_time >= FOR_A_REQUEST_PERCENT;
    is_much && has_groups && !whole.context.has_groups()
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
pub(in crate::findings) fn record_command(whole: &Whole<'_>, cause: Option<Dev>) -> String {
    let mut disks: Vec<(&Dev, &DiskSum)> = whole.sums.disks.iter().collect();
    disks.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.waited.waited_ns, sum.nr(Action::Issue))));
    let first = disks.first().map(|(dev, _)| **dev).or(cause);
    let device = first.map_or_else(|| "DEVICE".to_owned(), device_name);
    let is_of_groups = disks.iter().any(|(_, sum)| waits_for_groups(sum, whole));
    let shares = if is_of_groups { ",iocost" } else { "" };
    format!("sudo blklab record {device} --also jbd2,ext4,writeback,sched{shares} --for 30s")
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
