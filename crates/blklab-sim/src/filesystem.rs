// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's filesystem as the page cache takes it.

use crate::limits::sq_limits;
use blklab_experiment::{Experiment, MdLevel};
use blklab_fs::{Filesystem, Kind, Mounting};
use blklab_kernel::Part;
use blklab_pagecache::FsTraits;
use blklab_types::Error;

/// Whether the kernel has the filesystem.
///
/// # Errors
/// It came later, or is gone.
pub fn check_filesystem(e: &Experiment) -> Result<(), Error> {
    e.filesystem.check_modelled()?;
    let kind = kind(e);
    let release = e.kernel.in_part(Part::Filesystems);
    if kind.is_in(release) {
        return Ok(());
    }
    let (kernel, name) = (e.kernel, kind.name);
    let when = if !release.is_from(kind.since) {
        format!("it came with {}", kind.since)
    } else {
        format!("it went with {}", kind.until)
    };
    Err(Error::new(format!("kernel {kernel} has no {name}: {when}")).about("filesystem"))
}

/// What the files of an experiment lie on: a volume of so many sectors. The files
/// from before the run were laid out by the process of that number.
pub fn filesystem_of(e: &Experiment, sectors: u64, creator_pid: u32) -> Filesystem {
    mounting(e, sectors, creator_pid, |m| (kind(e).choose)(m))
}

/// What mounting it has to say.
pub(crate) fn filesystem_notes(e: &Experiment) -> Vec<String> {
    mounting(e, 0, 0, |m| (kind(e).notes)(m))
}

/// What is true of it, whatever the disk.
pub(crate) fn filesystem_traits(e: &Experiment) -> FsTraits {
    filesystem_of(e, 0, 0).traits()
}

/// Its row.
fn kind(e: &Experiment) -> &'static Kind<Filesystem> {
    blklab_fs::find(&e.filesystem.name).expect("names of filesystems are checked")
}

fn mounting<R>(
    e: &Experiment,
    sectors: u64,
    creator_pid: u32,
    f: impl FnOnce(&Mounting<'_>) -> R,
) -> R {
    f(&Mounting {
        options: &e.filesystem.options,
        kernel: e.kernel.in_part(Part::Filesystems),
        sectors,
        seed: e.seed,
        creator_pid,
        orders_writes: orders_writes(e),
        cpu_time: &|time| e.cpu_time(time),
    })
}

/// Whether the device below carries out barriers: RAID 0 refuses them, RAID 1
/// asks its members.
fn orders_writes(e: &Experiment) -> bool {
    let striped = e.md.is_some_and(|md| md.level != MdLevel::Raid1);
    !striped && sq_limits(e).is_ok_and(|l| l.ordered_writes)
}

#[cfg(test)]
mod tests {
    use blklab_fs::BtrfsOptions;
    use blklab_workload::compilebench::shape::{Set, Shape};

    #[test]
    fn half_of_a_source_tree_lies_in_leaves() {
        let most = u64::from(BtrfsOptions::of_0_16().max_inline_bytes);
        let files = Shape::recorded().files_of(Set::Unpatched);
        let sizes = files.iter().map(|f| f.1).filter(|bytes| *bytes <= most);
        let (count, bytes) = sizes.fold((0, 0), |(n, sum), b| (n + 1, sum + b));
        assert_eq!((count, bytes), (10_431, 15_662_948));
    }
}
