// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that count together: a log of several bios is on the disk when all of
//! them are.

use crate::cache::PageCache;
use crate::ops::{Host, Ops};
use crate::state::{BioWork, Group, GroupEnd, State};
use blklab_types::{BioFlags, Op, TaskId};

impl State {
    /// A group that has not ended.
    fn group(&mut self, key: u64) -> &mut Group {
        let group = self.groups.get_mut(key);
        group.expect("a group is there until its last bio has ended")
    }
}

impl<H: Host> PageCache<H> {
    /// A bio of a group has ended.
    pub(crate) fn end_of_group(
        &self,
        s: &mut State,
        key: u64,
        failed: bool,
        wake: &mut Vec<TaskId>,
    ) {
        let group = s.group(key);
        group.failed |= failed;
        group.left -= 1;
        if group.left > 0 {
            return;
        }
        match group.then.clone() {
            GroupEnd::Wake(task) => wake.push(task),
            GroupEnd::Written { file, run, number } => {
                let failed = group.failed;
                s.groups.remove(key);
                s.end_writeback(file, &run, failed, wake);
                if let Some(number) = number {
                    let pages = run.end - run.start;
                    self.filesystem.group_written(s, number, pages, wake);
                }
            }
        }
    }

    /// A group whose end the running task will wait for.
    pub fn open_group(&self) -> u64 {
        let group = Group {
            left: 1,
            failed: false,
            then: GroupEnd::Wake(self.host.current()),
        };
        self.with(|s| s.groups.insert(group))
    }

    /// Submits a bio as one of a group.
    pub async fn submit_of_group(
        &self,
        key: u64,
        op: Op,
        flags: BioFlags,
        sector: u64,
        nr_sectors: u32,
    ) {
        let bio = self.with(|s| {
            s.group(key).left += 1;
            s.bios.insert(BioWork::Group(key))
        });
        self.submit_sectors(op, flags, sector, nr_sectors, bio)
            .await;
    }

    /// Sleeps until all bios of a group have ended; nothing follows. Returns
    /// whether all went well.
    pub async fn close_group(&self, key: u64) -> bool {
        let left = |s: &mut State| s.group(key).left;
        self.with(|s| s.group(key).left -= 1);
        while self.with(left) > 0 {
            self.host.unplug();
            if self.with(left) > 0 {
                self.host.suspend_for_io().await;
            }
        }
        let group = self.with(|s| s.groups.remove(key));
        !group.expect("it was open until now").failed
    }
}
