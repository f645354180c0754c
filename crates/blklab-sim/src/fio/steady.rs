// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs that end at a steady state: what fio's helper thread does once a second.
//!
//! Behaviour of fio 3.33 (steadystate.c, helper_thread.c). Jobs with
//! `group_reporting` are measured together, at the last job of their group: while
//! that one does not run, nobody judges. A job in its ramp time is not looked at,
//! and when one ends its ramp time the next look is a second later.

use super::files::Plan;
use super::recording::{Recording, Slot};
use blklab_fio::settings::{SteadyMeasure, SteadyOptions};
use blklab_fiostat::{SteadyCriterion, SteadyRate, SteadySample, SteadyState};
use blklab_types::{Span, Time};

/// Between two looks (`ss_check_interval`).
const INTERVAL: Span = Span::from_us(1_000_000);

/// A job that looks for a steady state.
#[derive(Debug)]
struct Member {
    job: usize,
    group: u32,
    /// It is reported together with its group.
    is_grouped: bool,
    ramp: Span,
    ramp_over: bool,
    ended: bool,
    /// The last look, and what the job had moved by then.
    last: Option<(Time, (u64, u64))>,
}

/// Looks at the jobs of a run.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    members: Vec<Member>,
    due: Time,
}

impl SteadyWatch {
    /// Nothing if no job looks for a steady state. Gives each job that judges its
    /// judgement.
    pub(crate) fn new(plans: &mut [Box<Plan>], begin: Time) -> Option<SteadyWatch> {
        let mut members: Vec<Member> = Vec::new();
        for (job, plan) in plans.iter().enumerate() {
            let settings = &plan.job.settings;
            if settings.steady.window() > 0 {
                members.push(Member {
                    job,
                    group: plan.job.group,
                    is_grouped: settings.group_reporting,
                    ramp: Span::from_us(settings.steady.ramp_us),
                    ramp_over: settings.steady.ramp_us == 0,
                    ended: false,
                    last: None,
                });
            }
        }
        for (at, member) in members.iter().enumerate() {
            let together = |other: &Member| other.is_grouped && other.group == member.group;
            if !member.is_grouped || !members[at + 1..].iter().any(together) {
                let plan = &mut plans[member.job];
                plan.steady = Some(SteadyState::new(criterion(&plan.job.settings.steady)));
            }
        }
        let due = begin + INTERVAL;
        (!members.is_empty()).then_some(SteadyWatch { members, due })
    }

    /// When to look again.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Looks if it is time. Returns the groups and jobs that are to end.
    pub(crate) fn look(&mut self, now: Time, slots: &[Slot]) -> Vec<Steady> {
        if now < self.due {
            return Vec::new();
        }
        let ramp_end = |slot: &Slot| slot.borrow().as_ref().and_then(|r| r.ramp_end);
        let anew = slots.iter().filter_map(ramp_end).max();
        if let Some(due) = anew.map(|end| end + INTERVAL).filter(|due| now < *due) {
            self.due = due;
            return Vec::new();
        }
        self.due += INTERVAL;
        let mut steady = Vec::new();
        let mut measured = None;
        let mut group = None;
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            let mut slot = slots[member.job].borrow_mut();
            let Some(recording) = slot.as_mut().filter(|r| r.ended.is_none()) else {
                continue;
            };
            if member.ended || recording.in_ramp() {
                continue;
            }
            if !member.is_grouped || group != Some(member.group) {
                measured = None;
            }
            group = Some(member.group);
            if let Some(own) = member.measure(recording, now) {
                let sum: &mut SteadySample = measured.get_or_insert_default();
                sum.iops += own.iops;
                sum.bw += own.bw;
            }
            let (Some(state), Some(sample)) = (&mut recording.steady, measured) else {
                continue;
            };
            if state.add(sample) {
                let found = if member.is_grouped {
                    Steady::Group(member.group)
                } else {
                    Steady::Job(member.job)
                };
                drop(slot);
                self.end(found, slots);
                steady.push(found);
            }
        }
        steady
    }

    fn end(&mut self, found: Steady, slots: &[Slot]) {
        for member in &mut self.members {
            if found.takes(member.job, member.group) {
                member.ended = true;
                if let Some(r) = slots[member.job].borrow_mut().as_mut()
                    && let Some(state) = &mut r.steady
                {
                    state.end();
                }
            }
        }
    }
}

/// What has reached its steady state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Steady {
    /// One job.
    Job(usize),
    /// All jobs of a group.
    Group(u32),
}

impl Steady {
    /// Whether it ends that job of that group.
    pub(crate) fn takes(self, job: usize, group: u32) -> bool {
        match self {
            Steady::Job(own) => own == job,
            Steady::Group(own) => own == group,
        }
    }
}

impl Member {
    /// The rates since the last look; none while they do not count.
    fn measure(&mut self, recording: &Recording, now: Time) -> Option<SteadySample> {
        let since = recording.counts_since();
        self.ramp_over |= now.since(since) >= self.ramp + INTERVAL;
        let (last, (ios, bytes)) = self.last.unwrap_or((since, (0, 0)));
        let ms = now.since(last).0 / 1_000_000;
        // fio divides by the milliseconds; a job that starts just now counts next time.
        if ms == 0 {
            return None;
        }
        let moved = recording.stats.moved();
        self.last = Some((now, moved));
        self.ramp_over.then(|| SteadySample {
            iops: 1000 * (moved.0 - ios) / ms,
            bw: 1000 * (moved.1 - bytes) / ms,
        })
    }
}

fn criterion(options: &SteadyOptions) -> SteadyCriterion {
    SteadyCriterion {
        rate: match options.measure {
            SteadyMeasure::Iops => SteadyRate::Iops,
            SteadyMeasure::Bandwidth => SteadyRate::Bandwidth,
        },
        is_slope: options.is_slope,
        limit: options.limit,
        is_percent: options.is_percent,
        window: usize::try_from(options.window()).expect("checked when the jobs were read"),
    }
}
