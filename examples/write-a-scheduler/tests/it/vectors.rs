// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-worked cases: these bios at these times must be dispatched in this order.

use crate::support::events;
use blklab::trace::Action;

/// What is handed to a disk that serves one command at a time, 1 ms each, as
/// `sector+sectors`. The reads have 8 sectors and arrive at times in us.
fn dispatched(patience: i64, reads: &[(u64, u64)]) -> Vec<String> {
    let ops = reads.iter().map(|(us, sector)| {
        let ns = us * 1000;
        format!("[{ns}, 'read', [], {sector}, 8]")
    });
    let ops = ops.collect::<Vec<_>>().join(", ");
    let text = format!(
        "kernel = '6.1'\nscheduler = 'sstf'\n\
         [tunables]\npatience = {patience}\n\
         [queue]\nnr_requests = 64\n\
         [device]\nname = 'serial'\nqueue_depth = 1\nread_ns = 1000000\nns_per_sector = 0\n\
         [[processes]]\nname = 'reader'\npid = 1\nunplug = 'each'\n\
         io = {{ pattern = 'script', ops = [{ops}] }}\n"
    );
    let all = events(&text);
    let issued = all.iter().filter(|e| e.action == Action::Issue);
    issued
        .map(|e| format!("{}+{}", e.sector, e.nr_sectors()))
        .collect()
}

/// The last four arrive while the first is served; then the head is at 1008.
const READS: [(u64, u64); 5] = [(0, 1000), (100, 5000), (200, 900), (300, 1200), (400, 3000)];

#[test]
fn the_nearest_goes_first() {
    // 900 is 108 away and 1200 is 192; from 908 on the way leads upwards.
    let order = ["1000+8", "900+8", "1200+8", "3000+8", "5000+8"];
    assert_eq!(dispatched(64, &READS), order);
}

#[test]
fn the_oldest_is_passed_over_twice_at_most() {
    // 900 and 1200 pass 5000; then it is its turn.
    let order = ["1000+8", "900+8", "1200+8", "5000+8", "3000+8"];
    assert_eq!(dispatched(2, &READS), order);
}

#[test]
fn without_patience_it_is_first_come_first_served() {
    let order = ["1000+8", "5000+8", "900+8", "1200+8", "3000+8"];
    assert_eq!(dispatched(0, &READS), order);
}

#[test]
fn a_merged_request_is_where_it_begins_and_as_old_as_it_was() {
    // 4992 is put in front of 5000 and 5016 behind both: one request, in the
    // place and with the age of 5000. A read of 4980 is nearer to the head now.
    let reads = [
        (0, 1000),
        (100, 5000),
        (200, 4992),
        (300, 4980),
        (400, 5008),
    ];
    assert_eq!(dispatched(64, &reads), ["1000+8", "4980+8", "4992+24"]);
    assert_eq!(dispatched(0, &reads), ["1000+8", "4992+24", "4980+8"]);
}

#[test]
fn a_gap_that_closes_makes_one_request_of_two() {
    let reads = [(0, 1000), (100, 5016), (200, 5000), (300, 5008)];
    assert_eq!(dispatched(64, &reads), ["1000+8", "5000+24"]);
    // It has the age of the older one: 900 came later.
    let reads = [(0, 1000), (100, 5016), (200, 900), (300, 5000), (400, 5008)];
    assert_eq!(dispatched(0, &reads), ["1000+8", "5000+24", "900+8"]);
}
