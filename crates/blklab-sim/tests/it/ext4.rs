// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's jobs on ext4.

use crate::rig::{Ran, experiment, run, try_run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_fiostat::Ddir;
use blklab_sim::catalogue;
use blklab_trace::Action;

fn on_ext4(kernel: &str, scheduler: &str) -> Experiment {
    let mut e = experiment();
    e.kernel = kernel.parse().expect("a version");
    e.scheduler = scheduler.to_owned();
    e.device = DeviceSpec {
        name: "sata-7200-2008".to_owned(),
        params: Vec::new(),
    };
    e.choose_filesystem("ext4", &catalogue())
        .expect("there is one");
    e
}

/// Sectors that were queued, with the lengths.
fn queued(r: &Ran) -> Vec<(u64, u64)> {
    r.spans(Action::Queue)
}

#[test]
fn every_write_with_fsync_is_data_a_descriptor_an_inode_and_a_commit_block() {
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=4m\nnumber_ios=50\nfsync=1\noverwrite=1\n";
    for scheduler in ["noop", "deadline", "cfq"] {
        let r = run(&on_ext4("4.19", scheduler), job);
        let stat = &r.job("a").stat;
        assert_eq!(stat.dir(Ddir::Write).total_ios, 50, "{scheduler}");
        let queued = queued(&r);
        let file = queued[0].0 / 8 / 32768;
        // fio leaves the last one out: nothing of it is written.
        assert_eq!(queued.len(), 49 * 4, "{scheduler}");
        for one in queued.chunks(4) {
            let [data, descriptor, inode, commit] = one else {
                panic!("four");
            };
            assert!(one.iter().all(|q| q.1 == 8), "{scheduler}: {one:?}");
            assert_eq!(data.0 / 8 / 32768, file, "{scheduler}: {one:?}");
            let log = [descriptor.0 + 8, descriptor.0 + 16];
            assert_eq!([inode.0, commit.0], log, "{scheduler}: {one:?}");
        }
        // A flush before each commit block, and one after it.
        let flushes = r.spans(Action::Issue).iter().filter(|i| i.1 == 0).count();
        assert_eq!(flushes, 49 * 2, "{scheduler}");
    }
}

#[test]
fn kernels_before_2_6_28_have_no_ext4() {
    let job = "[a]\nrw=write\nsize=1m\n";
    let error = try_run(&on_ext4("2.6.26", "noop"), job).map(|_| ());
    assert_eq!(
        error,
        Err("kernel 2.6.26 has no ext4: it came with 2.6.28".to_owned())
    );
}
