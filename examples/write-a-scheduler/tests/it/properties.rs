// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every load, device and setting.

use crate::support::events;
use blklab::trace::{Action, Event, Rwbs};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;

/// A random experiment.
#[derive(Clone, Debug)]
struct Load {
    kernel: &'static str,
    patience: i64,
    queue_depth: u32,
    nr_requests: u32,
    nomerges: u8,
    /// Of each bio: pause before it in us, whether it writes, sector, sectors.
    bios: Vec<(u64, bool, u64, u32)>,
}

fn loads(nomerges: impl Strategy<Value = u8>) -> impl Strategy<Value = Load> {
    let kernels = prop::sample::select(vec!["5.0", "5.10", "5.14", "6.1", "6.12", "6.18"]);
    // Close together, so that many lie side by side.
    let writes = prop::bool::weighted(0.2);
    let bio = (0..400_u64, writes, 0..100_u64, 1..=2_u32);
    let bio = bio.prop_map(|(us, writes, at, len)| (us, writes, at * 8, len * 8));
    let bios = prop::collection::vec(bio, 1..80);
    (kernels, 0..12_i64, 1..6_u32, 4..48_u32, nomerges, bios).prop_map(
        |(kernel, patience, queue_depth, nr_requests, nomerges, bios)| Load {
            kernel,
            patience,
            queue_depth,
            nr_requests,
            nomerges,
            bios,
        },
    )
}

impl Load {
    fn events(&self) -> Vec<Event> {
        let mut ns = 0;
        let ops = self.bios.iter().map(|(us, writes, sector, sectors)| {
            ns += us * 1000;
            let rw = if *writes { "write" } else { "read" };
            format!("[{ns}, '{rw}', [], {sector}, {sectors}]")
        });
        let ops = ops.collect::<Vec<_>>().join(", ");
        events(&format!(
            "kernel = '{}'\nscheduler = 'sstf'\n\
             [tunables]\npatience = {}\n\
             [queue]\nnr_requests = {}\nnomerges = {}\n\
             [device]\nname = 'parallel'\nread_ns = 1000000\nwrite_ns = 1000000\nqueue_depth = {}\n\
             [[processes]]\nname = 'user'\npid = 1\nunplug = 'each'\n\
             io = {{ pattern = 'script', ops = [{ops}] }}\n",
            self.kernel, self.patience, self.nr_requests, self.nomerges, self.queue_depth
        ))
    }
}

/// Bytes of the events of one kind, of reads and of writes.
fn bytes(events: &[Event], action: Action) -> [u64; 2] {
    let mut sums = [0, 0];
    for e in events.iter().filter(|e| e.action == action) {
        sums[usize::from(e.rwbs.has(Rwbs::WRITE))] += u64::from(e.bytes);
    }
    sums
}

proptest! {
    // The same loads every time: a test that fails must fail again.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_doubled_or_invented(load in loads(0..=2_u8)) {
        let all = load.events();
        let queued = bytes(&all, Action::Queue);
        let submitted = load.bios.iter().map(|(.., sectors)| u64::from(*sectors) * 512);
        prop_assert_eq!(queued[0] + queued[1], submitted.sum::<u64>());
        prop_assert_eq!(bytes(&all, Action::Issue), queued);
        prop_assert_eq!(bytes(&all, Action::Complete), queued);
    }

    /// Without merging, the first of the requests that wait, in the order of
    /// their I events, is the oldest.
    #[test]
    fn the_oldest_waits_for_so_many_at_most(mut load in loads(Just(2))) {
        // A sector names one bio.
        let mut seen = BTreeSet::new();
        load.bios.retain(|(_, _, sector, _)| seen.insert(*sector));
        let (mut waiting, mut passed) = (Vec::new(), 0);
        for e in load.events() {
            match e.action {
                Action::Insert => waiting.push(e.sector),
                Action::Issue => {
                    let at = waiting.iter().position(|w| *w == e.sector).expect("it waits");
                    passed = if at == 0 { 0 } else { passed + 1 };
                    prop_assert!(passed <= load.patience, "passed over {passed} times");
                    waiting.remove(at);
                }
                _ => {}
            }
        }
        prop_assert!(waiting.is_empty(), "{waiting:?} were not dispatched");
    }
}
