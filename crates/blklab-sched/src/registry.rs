// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which schedulers there are: those of this crate and those of its user.

use crate::{ALL, Scheduler};
use blklab_kernel::KernelVersion;
use std::fmt;

/// The schedulers that an experiment can name: those of [`ALL`] and, after them,
/// those that another crate brings along. It does for experiments what
/// `elv_register` (block/elevator.c) does for the kernel.
#[derive(Clone, Copy, Default)]
pub struct Schedulers {
    own: &'static [Scheduler],
}

impl Schedulers {
    /// Those of this crate alone.
    pub const BUILT_IN: Schedulers = Schedulers { own: &[] };

    /// The schedulers of this crate and `own`.
    ///
    /// # Panics
    /// If two have the same name. The kernel refuses the second with `EBUSY`.
    pub fn with(own: &'static [Scheduler]) -> Schedulers {
        let all = Schedulers { own };
        for (i, s) in all.iter().enumerate() {
            let taken = all.iter().take(i).any(|other| other.name == s.name);
            assert!(!taken, "two schedulers are called '{}'", s.name);
        }
        all
    }

    /// Those that are not of this crate.
    pub fn own(self) -> &'static [Scheduler] {
        self.own
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = &'static Scheduler> {
        ALL.iter().chain(self.own)
    }

    /// Those of one release.
    pub fn in_release(self, version: KernelVersion) -> impl Iterator<Item = &'static Scheduler> {
        self.iter().filter(move |s| s.is_in(version))
    }

    /// The one of that name, if the release has it.
    pub fn find(self, name: &str, version: KernelVersion) -> Option<&'static Scheduler> {
        self.in_release(version).find(|s| s.name == name)
    }
}

impl PartialEq for Schedulers {
    /// By name: names are unique.
    fn eq(&self, other: &Schedulers) -> bool {
        self.iter().map(|s| s.name).eq(other.iter().map(|s| s.name))
    }
}

impl fmt::Debug for Schedulers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|s| s.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Schedulers;
    use crate::{Scheduler, none};
    use blklab_kernel::KernelVersion;

    static MINE: [Scheduler; 1] = [Scheduler {
        name: "mine",
        since: KernelVersion::new(6, 0),
        ..none::SCHEDULER
    }];
    static AGAIN: [Scheduler; 1] = [none::SCHEDULER];

    #[test]
    fn one_of_another_crate_is_found_in_its_releases() {
        let (old, new) = (KernelVersion::new(5, 0), KernelVersion::new(6, 1));
        let all = Schedulers::with(&MINE);
        assert_eq!(all.find("mine", new).map(|s| s.name), Some("mine"));
        assert!(all.find("mine", old).is_none());
        assert!(Schedulers::default().find("mine", new).is_none());
        assert_ne!(all, Schedulers::default());
    }

    #[test]
    #[should_panic(expected = "two schedulers are called 'none'")]
    fn names_are_unique() {
        let _ = Schedulers::with(&AGAIN);
    }
}
