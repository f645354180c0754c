// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides the lives of a device's requests into what they waited for.

use super::disk::{Disk, Request};
use super::sums::{add, is_longer, is_most};
use super::waits::{Ahead, LONG_FACTOR, Wait};
use blklab_trace::Rwbs;
use blklab_types::{Pid, Time};
use std::ops::Range;

/// Requests ahead that are counted one by one; of more, so many spread evenly.
const AHEAD_SEEN: usize = 1024;

/// A request or tag that comes within this time was not waited for.
const LONG_GET_NS: u64 = 50_000;

/// What each request of a device waited for, in the order of its requests.
pub(super) fn divide(disk: &Disk) -> Vec<Wait> {
    (0..disk.requests.len())
        .map(|place| wait_of(disk, place))
        .collect()
}

/// That of the request at a place.
fn wait_of(disk: &Disk, place: usize) -> Wait {
    let r = &disk.requests[place];
    let life = &r.life;
    let span = |from: Option<Time>, to: Option<Time>| match (from, to) {
        (Some(from), Some(to)) if from < to => to.since(from).0,
        _ => 0,
    };
    let mut wait = Wait {
        get_ns: span(r.queue, life.get),
        ..Wait::default()
    };
    let between = |from: Option<Time>, to: Option<Time>| match (from, to) {
        (Some(from), Some(to)) => disk.flushes.within(from, to),
        _ => 0,
    };
    if r.is_flush() {
        wait.flush_ns = span(r.start(), life.complete);
        return wait;
    }
    let on_plug = span(life.get, life.insert);
    let flushing = between(life.get, life.insert);
    if is_most(flushing, on_plug) {
        wait.flush_ns = on_plug;
    } else {
        wait.plug_ns = on_plug;
    }
    let Some(issue) = life.issue else {
        return wait;
    };
    // A trace may begin with D.
    let from = r.handed_over().unwrap_or(issue);
    let queued = span(Some(from), Some(issue));
    wait.idle_ns = disk.idle_within(from, issue).min(queued);
    wait.ahead_ns = queued - wait.idle_ns;
    if r.flags.has(Rwbs::FLUSH) {
        // Before its data the device empties its cache: no command of it shows where old kernels
        // record none.
        add(&mut wait.flush_ns, std::mem::take(&mut wait.idle_ns));
    }
    let alone = disk.service.alone(r.op()).unwrap_or(0);
    if let (Some(queue), Some(get)) = (r.queue, life.get)
        && is_longer(wait.get_ns, LONG_FACTOR, alone.max(LONG_GET_NS))
    {
        match disk.flushes_before_get(queue, get) {
            Some(flushing) => {
                let flushing = flushing.min(wait.get_ns);
                add(&mut wait.flush_ns, flushing);
                wait.get_ns -= flushing;
            }
            None => wait.get = Some(Box::new(ahead_of(disk, r, queue, get))),
        }
    }
    if is_longer(wait.ahead_ns, LONG_FACTOR, alone.max(1)) {
        let flushing = between(Some(from), Some(issue)).min(wait.ahead_ns);
        if is_most(flushing, wait.ahead_ns) {
            add(&mut wait.flush_ns, flushing);
            wait.ahead_ns -= flushing;
        } else {
            wait.ahead = Some(Box::new(ahead_of(disk, r, from, issue)));
        }
    }
    if let (Some(complete), Some(d2c)) = (life.complete, r.d2c()) {
        wait.alone_ns = d2c.min(alone);
        wait.behind_ns = d2c - wait.alone_ns;
        if is_longer(wait.behind_ns, LONG_FACTOR - 1, alone.max(1)) {
            let flushing = between(Some(issue), Some(complete)).min(wait.behind_ns);
            if is_most(flushing, wait.behind_ns) {
                add(&mut wait.flush_ns, flushing);
                wait.behind_ns -= flushing;
            } else {
                let had_room = had_room(disk, place, issue, complete);
                let at_device = [issue, complete];
                let behind = if had_room || !is_busy_beside(disk, place, at_device, wait.behind_ns)
                {
                    Ahead::default()
                } else {
                    ahead_of(disk, r, issue, complete)
                };
                // A disk that caches writes takes one at once, and many as fast as it
                // can write them.
                let each_ns = alone.max(disk.service.interval_ns.unwrap_or(0));
                let beside = behind.all + disk.nr_unknown_ends(issue, complete);
                let factor = LONG_FACTOR * (beside + 1);
                wait.is_device_slow = is_longer(wait.behind_ns, factor, each_ns);
                wait.behind = Some(Box::new(behind));
            }
        }
    }
    wait
}

/// Whether the device could work on the request at a place at once for as long as it had it:
/// it works on several at a time, and never had more. Whoever came later and went earlier
/// then took nothing from it.
fn had_room(disk: &Disk, place: usize, issue: Time, complete: Time) -> bool {
    let room = u64::from(disk.service.room);
    let depth = |i: usize| u64::from(disk.depth_at_issue[i]);
    if depth(place) > room {
        return false;
    }
    let (mut later, mut sum) = (0, 0);
    for (i, weight) in spread(disk.issued_between(issue, complete)) {
        later += weight;
        sum += weight * depth(i);
    }
    sum <= later * room
}

/// Places of which those are seen that lie evenly between, with how many each stands for.
fn spread(places: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let step = places.len().div_ceil(AHEAD_SEEN).max(1);
    places.step_by(step).map(move |i| (i, step as u64))
}

/// Whether the device has others beside the request at a place for most of the time that it
/// takes beyond what one takes alone: else they are not why.
fn is_busy_beside(disk: &Disk, place: usize, [issue, complete]: [Time; 2], behind_ns: u64) -> bool {
    let since = spread(disk.issued_between(issue, complete));
    let others = disk.in_flight_at(issue).map(|i| (i, 1)).chain(since);
    let mut beside_ns = 0;
    for (other, weight) in others.filter(|(i, _)| *i != place) {
        let other = &disk.requests[other].life;
        if let (Some(from), Some(to)) = (other.issue, other.complete) {
            let (from, to) = (from.max(issue), to.min(complete));
            let ns = to.0.saturating_sub(from.0);
            add(&mut beside_ns, ns.saturating_mul(weight));
        }
        if is_most(beside_ns, behind_ns) {
            return true;
        }
    }
    false
}

/// Those that the device has at `from` or gets before `to`, and that are done
/// before the one that waits.
fn ahead_of(disk: &Disk, waiting: &Request, from: Time, to: Time) -> Ahead {
    let mut ahead = Ahead::default();
    let mut pids: Vec<(Pid, u64)> = Vec::new();
    let mut writers: Vec<(Pid, u64)> = Vec::new();
    let mut workers: Vec<(Pid, u64)> = Vec::new();
    let alone_ns = disk.service.alone(waiting.op()).unwrap_or(0);
    let arrived = waiting.handed_over();
    let mut count = |other: &Request, weight: u64| {
        if other.life.number == waiting.life.number {
            return;
        }
        ahead.all += weight;
        let work = weight * Ahead::work_of(other.life.bytes, alone_ns);
        add(&mut ahead.work[0], work);
        // Whoever hands on what others have queued hands on what somebody waits for, and what
        // nobody does.
        let is_of_sort = waiting.is_owner_known || other.is_sync == waiting.is_sync;
        if other.pid == waiting.pid && other.op() == waiting.op() && is_of_sort {
            ahead.own += weight;
            add(&mut ahead.work[1], work);
            return;
        }
        ahead.reads += weight * u64::from(other.is_read());
        ahead.writes += weight * u64::from(other.is_write());
        add(&mut ahead.work[2], work * u64::from(other.is_read()));
        add(&mut ahead.work[3], work * u64::from(other.is_write()));
        ahead.later += weight * u64::from(other.handed_over() > arrived);
        ahead.unknown += weight * u64::from(!other.has_owner());
        if other.has_owner() && other.pid != waiting.pid {
            tally(&mut pids, other.pid, weight);
            tally(&mut workers, other.pid, work);
            if other.is_write() {
                tally(&mut writers, other.pid, weight);
            }
        }
    };
    for i in disk.in_flight_at(from) {
        count(&disk.requests[i], 1);
    }
    for (i, weight) in spread(disk.issued_between(from, to)) {
        let other = &disk.requests[i];
        if waiting.life.issue > Some(from) || other.life.complete <= Some(to) {
            count(other, weight);
        }
    }
    ahead.worker = most(workers)[0];
    ahead.others = most(pids);
    ahead.writers = most(writers);
    ahead
}

fn tally(all: &mut Vec<(Pid, u64)>, pid: Pid, weight: u64) {
    match all.iter_mut().find(|(p, _)| *p == pid) {
        Some((_, n)) => *n += weight,
        None => all.push((pid, weight)),
    }
}

/// The processes with most, most first.
fn most(mut all: Vec<(Pid, u64)>) -> [(Pid, u64); 4] {
    all.sort_unstable_by_key(|(pid, n)| (std::cmp::Reverse(*n), *pid));
    let mut most = [(0, 0); 4];
    for (place, other) in most.iter_mut().zip(all) {
        *place = other;
    }
    most
}
