// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O priorities (`ioprio_set(2)`).

use std::fmt;
use std::str::FromStr;

/// Scheduling class of an I/O priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PrioClass {
    /// Not set: the kernel derives best effort from the nice value.
    #[default]
    None = 0,
    /// Real time: served before everything else.
    RealTime = 1,
    /// Best effort, levels 0 (best) to 7.
    BestEffort = 2,
    /// Served when nobody else wants the disk.
    Idle = 3,
}

/// Class and level (0 best to 7), as `ioprio_get(2)` packs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoPrio {
    /// The class.
    pub class: PrioClass,
    /// 0 (best) to 7; without meaning in class `None` and `Idle`.
    pub level: u8,
}

/// As ionice(1) prints it: `best-effort: prio 4`, `idle`.
impl fmt::Display for IoPrio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            PrioClass::None => "none",
            PrioClass::RealTime => "realtime",
            PrioClass::BestEffort => "best-effort",
            PrioClass::Idle => return f.write_str("idle"),
        };
        write!(f, "{class}: prio {}", self.level)
    }
}

/// What is no I/O priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoIoPrio;

/// As ionice(1) prints it, or with the kernel's short names of classes: `rt 4`, `be,0`.
impl FromStr for IoPrio {
    type Err = NoIoPrio;

    fn from_str(text: &str) -> Result<IoPrio, NoIoPrio> {
        let is_apart = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | '/');
        let mut words = text
            .split(is_apart)
            .filter(|word| !matches!(*word, "" | "prio"));
        let class = match words.next() {
            Some("none") => PrioClass::None,
            Some("realtime" | "rt") => PrioClass::RealTime,
            Some("best-effort" | "be") => PrioClass::BestEffort,
            Some("idle") => PrioClass::Idle,
            _ => return Err(NoIoPrio),
        };
        let level = words.next().unwrap_or("0").parse().map_err(|_| NoIoPrio)?;
        if level > 7 || words.next().is_some() {
            return Err(NoIoPrio);
        }
        Ok(IoPrio { class, level })
    }
}

impl IoPrio {
    /// Class in the bits from 13 up, level below: the kernel's encoding.
    pub fn value(self) -> u16 {
        (self.class as u16) << 13 | u16::from(self.level)
    }

    /// The better of two, as `ioprio_best` (block/ioprio.c, 2.6.28): `None`
    /// counts as best effort when classes are compared.
    #[must_use]
    pub fn best(self, other: IoPrio) -> IoPrio {
        let class = |p: IoPrio| match p.class {
            PrioClass::None => PrioClass::BestEffort,
            c => c,
        };
        match class(self).cmp(&class(other)) {
            std::cmp::Ordering::Less => self,
            std::cmp::Ordering::Greater => other,
            std::cmp::Ordering::Equal if self.value() <= other.value() => self,
            std::cmp::Ordering::Equal => other,
        }
    }
}

/// What a control group does to the priorities of its bios (`io.prio.class`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrioPolicy {
    /// `no-change`.
    #[default]
    NoChange,
    /// `promote-to-rt`: what is not real time becomes it, at level 4.
    PromoteToRt,
    /// `none-to-rt` before 6.5: what has no class becomes real time, at level 0.
    NoneToRt,
    /// `restrict-to-be`: nothing is better than best effort.
    RestrictToBe,
    /// `idle`: everything is idle.
    Idle,
}

impl PrioPolicy {
    /// What it makes of a priority.
    #[must_use]
    pub fn apply(self, prio: IoPrio) -> IoPrio {
        let worst = |class| {
            let limit = IoPrio { class, level: 0 };
            if limit.value() > prio.value() {
                limit
            } else {
                prio
            }
        };
        match self {
            PrioPolicy::NoChange => prio,
            PrioPolicy::PromoteToRt if prio.class == PrioClass::RealTime => prio,
            PrioPolicy::PromoteToRt => IoPrio {
                class: PrioClass::RealTime,
                level: 4,
            },
            PrioPolicy::NoneToRt => worst(PrioClass::RealTime),
            PrioPolicy::RestrictToBe => worst(PrioClass::BestEffort),
            PrioPolicy::Idle => worst(PrioClass::Idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IoPrio, PrioClass, PrioPolicy};

    #[test]
    fn policies_of_groups() {
        let prio = |class, level| IoPrio { class, level };
        let none = prio(PrioClass::None, 0);
        let real_time = prio(PrioClass::RealTime, 2);
        let best_effort = prio(PrioClass::BestEffort, 6);
        let idle = prio(PrioClass::Idle, 0);
        let all =
            |policy: PrioPolicy| [none, real_time, best_effort, idle].map(|p| policy.apply(p));
        assert_eq!(
            all(PrioPolicy::NoChange),
            [none, real_time, best_effort, idle]
        );
        let promoted = prio(PrioClass::RealTime, 4);
        assert_eq!(
            all(PrioPolicy::PromoteToRt),
            [promoted, real_time, promoted, promoted]
        );
        let first = prio(PrioClass::RealTime, 0);
        assert_eq!(
            all(PrioPolicy::NoneToRt),
            [first, real_time, best_effort, idle]
        );
        let limit = prio(PrioClass::BestEffort, 0);
        assert_eq!(
            all(PrioPolicy::RestrictToBe),
            [limit, limit, best_effort, idle]
        );
        assert_eq!(all(PrioPolicy::Idle), [idle; 4]);
    }
}
