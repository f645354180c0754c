// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of logs, and where two logs part.

use super::*;

const LOG: &str = "\
10,0,Q,7,R,S,8,8,
10,0,P,7,,,,,
11,0,DS,7,R,S,8,8,
20,0,C,0,R,S,8,8,
20,0,E,7,R,S,8,8,lat=10";

fn rows(log: &str) -> Vec<Row> {
    log.lines().map(|l| parse_row(l).expect(l)).collect()
}

#[test]
fn rows_are_read() {
    let rows = rows(LOG);
    assert_eq!(rows[0].show(), "0.000000010 Q pid 7 RS 8+8");
    assert_eq!(rows[1].op, None);
    assert_eq!(rows[4].latency_ns, 10);
    for bad in [
        "",
        "x,0,Q,7,R,S,8,8,",
        "1,0,Q,7,B,S,8,8,",
        "1,0,Q,7,R,S,8",
        "1,0,E,7,R,S,8,8,lat=x",
    ] {
        assert_eq!(parse_row(bad), None, "{bad}");
    }
}

#[test]
fn the_first_difference_counts() {
    let recorded = rows(LOG);
    let diff = |other: &str| {
        let other = rows(other);
        let (a, b) = (pick(&recorded, Row::is_main), pick(&other, Row::is_main));
        first_difference(&a, &b, Row::same_main).map(|i| describe(&a, &b, i))
    };
    assert_eq!(diff(LOG), None);
    let moved = LOG.replace("11,0,DS", "12,0,DS");
    assert_eq!(
        diff(&moved).unwrap(),
        "line 2: recorded 0.000000011 DS pid 7 RS 8+8, simulated 0.000000012 DS pid 7 RS 8+8"
    );
    let longer = format!("{LOG}\n21,0,Q,7,R,S,16,8,");
    assert!(
        diff(&longer)
            .unwrap()
            .starts_with("line 5: recorded nothing, simulated")
    );
    // Plugs are compared apart, latencies with the completions they follow.
    assert_eq!(diff(&LOG.replace("10,0,P", "12,0,P")), None);
}

#[test]
fn latencies_are_compared_by_process() {
    let (a, b) = (rows(LOG), rows(&LOG.replace("lat=10", "lat=15")));
    let errors = latency_errors(&a, &b);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].pid, errors[0].rw, errors[0].ios),
        (7, "read", [1, 1])
    );
    assert!((errors[0].mean_error - 0.5).abs() < 1e-12);
    assert_eq!(errors[0].max_ns, [10, 15]);
}
