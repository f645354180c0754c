// SPDX-License-Identifier: MIT OR Apache-2.0
//! Laws are found again.

use super::{Command, DeviceFit, fit};
use blklab_types::{Op, SplitMix64, Time};

/// Commands in bursts of up to `depth`, served by a queue of `channels` by `time`, which is
/// told the command and the sector after the last one.
fn served(
    n: usize,
    depth: u64,
    channels: usize,
    time: impl Fn(&Command, u64, &mut SplitMix64) -> u64,
) -> Vec<Command> {
    let mut random = SplitMix64(7);
    let mut free = vec![0_u64; channels];
    let (mut now, mut head, mut all) = (0, 0, Vec::new());
    while all.len() < n {
        for _ in 0..=random.below(depth) {
            let op = if random.below(3) == 0 {
                Op::Write
            } else {
                Op::Read
            };
            let mut c = Command {
                issue: Time(now),
                complete: Time(now),
                sector: random.below(1 << 24) * 8,
                nr_sectors: 8 << random.below(4),
                op,
            };
            now += random.below(2000);
            let channel = (0..channels).min_by_key(|i| free[*i]).expect("one");
            let start = free[channel].max(c.issue.ns());
            free[channel] = start + time(&c, head, &mut random);
            c.complete = Time(free[channel]);
            head = c.end();
            all.push(c);
        }
        let busiest = *free.iter().max().expect("one");
        now = now.max(busiest.saturating_sub(random.below(500_000)));
    }
    all
}

fn value<'a>(fit: &'a DeviceFit, name: &str) -> &'a str {
    let found = fit.params.iter().find(|(n, _)| n == name);
    found.map_or("", |(_, v)| v)
}

#[test]
fn one_at_a_time_with_a_time_per_sector() {
    let all = served(2000, 8, 1, |c, _, _| {
        let fixed = if c.op == Op::Read { 100_000 } else { 300_000 };
        fixed + u64::from(c.nr_sectors) * 500
    });
    let fit = fit(&all).expect("a law");
    assert_eq!(fit.channels, 1, "{fit:?}");
    assert_eq!(value(&fit, "read"), "100us", "{fit:?}");
    assert_eq!(value(&fit, "write"), "300us");
    assert_eq!(value(&fit, "read_ns_per_sector"), "500");
    assert_eq!(value(&fit, "write_ns_per_sector"), "500");
    assert_eq!(value(&fit, "order"), "");
}

#[test]
fn noise_does_not_hide_how_many_are_served_at_a_time() {
    for channels in [1_usize, 4, 16] {
        let all = served(4000, 32, channels, |_, _, random| {
            60_000 + random.below(60_000)
        });
        let fit = fit(&all).expect("a law");
        assert_eq!(fit.channels as usize, channels, "{fit}");
        assert!(fit.channels_alike.0 <= fit.channels, "{fit}");
        let read = value(&fit, "read");
        assert!(read.starts_with("0:60"), "{read}");
        assert!(read.contains("/99.9"), "{read}");
    }
}

#[test]
fn many_channels_are_found_too() {
    let all = served(4000, 32, 64, |_, _, random| 60_000 + random.below(60_000));
    let fit = fit(&all).expect("a law");
    assert_eq!(fit.channels, 64, "{fit}");
    assert!(fit.queue_depth > 64, "{fit}");
}

#[test]
fn a_head_that_moves_is_seen() {
    let all = served(4000, 4, 1, |c, head, random| {
        let root = (c.sector.abs_diff(head) as f64).sqrt();
        1_000_000 + (root * 400.0) as u64 + random.below(8_000_000)
    });
    let fit = fit(&all).expect("a law");
    assert_eq!(fit.channels, 1, "{fit:?}");
    let b: f64 = value(&fit, "b_ns_per_sqrt_sector")
        .parse()
        .expect("a number");
    assert!((350.0..450.0).contains(&b), "{b}");
}

#[test]
fn sequential_commands_are_a_kind_of_their_own() {
    let (mut all, mut now) = (Vec::<Command>::new(), 0);
    for i in 0..400_u64 {
        let sequential = i % 4 != 0;
        let sector = if sequential {
            all.last().map_or(0, Command::end)
        } else {
            1_000_000 * i
        };
        let ns = if sequential { 80_000 } else { 8_000_000 };
        all.push(Command {
            issue: Time(now),
            complete: Time(now + ns),
            sector,
            nr_sectors: 8,
            op: Op::Read,
        });
        now += ns + 10_000;
    }
    let fit = fit(&all).expect("a law");
    assert_eq!(value(&fit, "read_sequential"), "80us", "{fit:?}");
    assert_eq!(value(&fit, "read"), "8ms", "{fit:?}");
}

#[test]
fn few_commands_are_refused_and_odd_ones_left_out() {
    let c = Command {
        issue: Time(5),
        complete: Time(9),
        sector: u64::MAX,
        nr_sectors: 8,
        op: Op::Read,
    };
    let text = fit(&[c; 3]).expect_err("too few");
    assert!(
        text.to_string().contains("3 commands from D to C"),
        "{text}"
    );
    let backwards = Command {
        complete: Time(1),
        ..c
    };
    assert!(fit(&[c, c, c, backwards]).is_err());
    let fit = fit(&[c; 4]).expect("a law");
    assert_eq!(fit.nr_commands, 4);
}
