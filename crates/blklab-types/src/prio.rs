// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O priorities (`ioprio_set(2)`).

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
