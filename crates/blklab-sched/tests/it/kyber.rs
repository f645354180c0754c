// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kyber: the vectors of its specification that need a device.

use crate::mq_bench::Bench;
use crate::mq_rig::MqSetup;
use crate::mq_table::{Arrival, MqTable, arrivals, check, series};
use blklab_types::Span;

const KERNELS: &[&str] = &["5.0", "5.10", "6.1", "6.12", "6.18"];

/// On a device that takes one request at a time, 1 ms each.
fn run(arrived: &[Arrival], expected: &str) {
    for kernel in KERNELS {
        let mut table = MqTable::new(kernel, "kyber", 1, "1", arrived.to_vec());
        table.setup.limits.nr_cpus = 2;
        table.cpu = |process| u16::from(process == "CPU1");
        check(&table.run(), expected);
    }
}

#[test]
fn k1_batches() {
    let mut a = series("0", "P", "r", 20, (1000, 8), "");
    a.extend(series("0", "P", "w", 10, (9000, 8), "w"));
    let expected = "r0@0..r15@15 w0@16..w7@23 r16@24..r19@27 w8@28 w9@29";
    run(&a, expected);
}

#[test]
fn k2_a_batch_of_writes_ends_before_reads() {
    let mut a = series("0", "P", "w", 10, (9000, 8), "w");
    a.extend(series("2.5", "P", "r", 2, (1000, 8), ""));
    run(&a, "w0@0..w7@7 r0@8 r1@9 w8@10 w9@11");
}

#[test]
fn k3_an_empty_domain_ends_its_batch() {
    let a = arrivals("0 P d0 100d; 0 P d1 200d; 0 P w0 300w; 0 P w1 400w; 0 P r0 500");
    run(&a, "r0@0 w0@1 w1@2 d0@3 d1@4");
}

#[test]
fn k4_discards_go_one_by_one() {
    let mut a = series("0", "P", "d", 3, (1000, 8), "d");
    a.extend(series("0", "P", "w", 10, (9000, 8), "w"));
    run(&a, "w0@0..w7@7 d0@8 w8@9 w9@10 d1@11 d2@12");
}

#[test]
fn k10_lists_of_cpus_are_emptied_in_their_order() {
    let a = arrivals("0 CPU1 a1 100; 0 CPU1 a2 200; 0 CPU0 b1 300; 0 CPU1 a3 400");
    run(&a, "b1@0 a1@1 a2@2 a3@3");
}

#[test]
fn k11_the_newest_eight_of_a_list() {
    for kernel in KERNELS {
        let setup = MqSetup::budget(kernel, "kyber", 1);
        let mut b = Bench::new(setup, |_| Span::from_ms(1));
        b.submit("R 20000+8, R 0+8");
        for k in 1..10 {
            b.submit(&format!("R {}+8", 1000 * k));
        }
        b.events();
        b.submit("R 8+8").check_but_plugs("Q 8+8, G 8+8, I 8+8");
        b.submit("R 9008+8").check_but_plugs("Q 9008+8, M 9008+8");
    }
}
