// SPDX-License-Identifier: MIT OR Apache-2.0
//! Seek times: from a curve or from measurements, as a table of nanoseconds.
//!
//! Sources: C. Ruemmler and J. Wilkes, "An introduction to disk drive modeling",
//! IEEE Computer 27(3), 1994 (three parts); E. Lee and R. Katz, "An analytic
//! performance model of disk arrays", SIGMETRICS 1993 (from three figures of a
//! data sheet); DiskSim (tables of measured times). Distances are cylinders,
//! times milliseconds.

use std::sync::Arc;

/// How long a seek takes.
#[derive(Clone, Debug)]
pub(crate) enum SeekCurve {
    /// `a + b*sqrt(d)` below `limit` cylinders, `c + e*d` from there on.
    ThreePart {
        a_ms: f64,
        b_ms: f64,
        limit: u32,
        c_ms: f64,
        e_ms: f64,
    },
    /// `a*sqrt(d-1) + b*(d-1) + t_min`, with a and b from the times of one
    /// cylinder, of a mean seek, and of the whole disk of `cylinders`.
    LeeKatz {
        min_ms: f64,
        avg_ms: f64,
        max_ms: f64,
        cylinders: u32,
    },
    /// Measured distances and times in ascending order, straight lines between.
    Table(Vec<(u32, f64)>),
}

impl SeekCurve {
    /// The curve through the three times of a data sheet: Lee and Katz's, or,
    /// where that would bend downwards, three parts through the same times
    /// with the mean at a third of the cylinders.
    pub(crate) fn from_data_sheet(
        min_ms: f64,
        avg_ms: f64,
        max_ms: f64,
        cylinders: u32,
    ) -> SeekCurve {
        let n = f64::from(cylinders.max(6));
        if 7.0 * min_ms - 15.0 * avg_ms + 8.0 * max_ms >= 0.0 {
            return SeekCurve::LeeKatz {
                min_ms,
                avg_ms,
                max_ms,
                cylinders,
            };
        }
        let third = n / 3.0;
        let b_ms = (avg_ms - min_ms) / (third.sqrt() - 1.0);
        let e_ms = (max_ms - avg_ms) / (n - third);
        SeekCurve::ThreePart {
            a_ms: min_ms - b_ms,
            b_ms,
            limit: third as u32,
            c_ms: avg_ms - e_ms * third,
            e_ms,
        }
    }

    /// Time of a seek over `distance` cylinders.
    pub(crate) fn ms(&self, distance: u32) -> f64 {
        let d = f64::from(distance);
        match self {
            _ if distance == 0 => 0.0,
            SeekCurve::ThreePart {
                a_ms, b_ms, limit, ..
            } if distance < *limit => a_ms + b_ms * d.sqrt(),
            SeekCurve::ThreePart { c_ms, e_ms, .. } => c_ms + e_ms * d,
            SeekCurve::LeeKatz {
                min_ms,
                avg_ms,
                max_ms,
                cylinders,
            } => {
                let n = f64::from(*cylinders);
                let a = (-10.0 * min_ms + 15.0 * avg_ms - 5.0 * max_ms) / (3.0 * n.sqrt());
                let b = (7.0 * min_ms - 15.0 * avg_ms + 8.0 * max_ms) / (3.0 * n);
                a * (d - 1.0).sqrt() + b * (d - 1.0) + min_ms
            }
            SeekCurve::Table(points) => interpolate(points, d),
        }
    }
}

fn interpolate(points: &[(u32, f64)], d: f64) -> f64 {
    let i = points.partition_point(|(at, _)| f64::from(*at) <= d);
    match (i.checked_sub(1).map(|i| points[i]), points.get(i)) {
        (Some((d0, t0)), Some(&(d1, t1))) => {
            t0 + (t1 - t0) * (d - f64::from(d0)) / (f64::from(d1) - f64::from(d0))
        }
        (Some((_, t)), None) => t,
        (None, Some(&(_, t))) => t,
        (None, None) => 0.0,
    }
}

/// Seek times by distance.
#[derive(Clone, Debug)]
pub(crate) struct SeekTable {
    ns: Arc<[u32]>,
    /// The smallest time of this or any larger distance, where a measured table
    /// goes down again; otherwise empty.
    floor_ns: Arc<[u32]>,
}

impl SeekTable {
    /// The curve for up to `cylinders`, rounded to nanoseconds, within 0 to 1 s.
    pub(crate) fn new(curve: &SeekCurve, cylinders: u32) -> SeekTable {
        let ns: Vec<u32> = (0..cylinders.max(2))
            .map(|d| (curve.ms(d).clamp(0.0, 1000.0) * 1e6).round() as u32)
            .collect();
        let mut floor_ns = Vec::new();
        if !ns.is_sorted() {
            floor_ns.clone_from(&ns);
            for i in (1..ns.len()).rev() {
                floor_ns[i - 1] = floor_ns[i - 1].min(floor_ns[i]);
            }
        }
        SeekTable {
            ns: ns.into(),
            floor_ns: floor_ns.into(),
        }
    }

    /// Time of a seek over `distance` cylinders.
    pub(crate) fn ns(&self, distance: u32) -> u32 {
        self.ns[(distance as usize).min(self.ns.len() - 1)]
    }

    /// The least time of a seek over `distance` cylinders or more.
    pub(crate) fn floor_ns(&self, distance: u32) -> u32 {
        let table = if self.floor_ns.is_empty() {
            &self.ns
        } else {
            &self.floor_ns
        };
        table[(distance as usize).min(table.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(curve: &SeekCurve, distance: u32, ms: f64, tolerance_ms: f64) {
        let got = curve.ms(distance);
        assert!(
            (got - ms).abs() <= tolerance_ms,
            "seek({distance}) = {got}, expected {ms}"
        );
    }

    #[test]
    fn three_parts_of_the_hp_97560() {
        let curve = SeekCurve::ThreePart {
            a_ms: 3.24,
            b_ms: 0.400,
            limit: 383,
            c_ms: 8.00,
            e_ms: 0.008,
        };
        close(&curve, 1, 3.64, 1e-9);
        close(&curve, 100, 7.24, 1e-9);
        close(&curve, 382, 11.06, 0.003);
        close(&curve, 383, 11.064, 1e-9);
        close(&curve, 1961, 23.69, 0.003);
    }

    #[test]
    fn three_parts_of_the_cheetah_9lp() {
        let curve = SeekCurve::ThreePart {
            a_ms: 1.082,
            b_ms: 0.0967,
            limit: 1044,
            c_ms: 3.108,
            e_ms: 0.001080,
        };
        close(&curve, 100, 2.049, 1e-9);
        close(&curve, 3000, 6.348, 1e-9);
    }

    #[test]
    fn lee_katz_of_a_7200_rpm_disk() {
        let curve = SeekCurve::from_data_sheet(0.8, 8.5, 18.0, 188_000);
        assert!(matches!(curve, SeekCurve::LeeKatz { .. }));
        for (d, ms) in [
            (1, 0.8),
            (100, 1.03),
            (1000, 1.56),
            (10_000, 3.46),
            (188_000 / 3, 8.93),
        ] {
            close(&curve, d, ms, 0.006);
        }
        close(&curve, 188_000, 18.0, 0.001);
    }

    #[test]
    fn a_laptop_disk_takes_three_parts() {
        let curve = SeekCurve::from_data_sheet(1.0, 12.0, 20.0, 150_000);
        let SeekCurve::ThreePart {
            a_ms,
            b_ms,
            limit,
            c_ms,
            e_ms,
        } = curve
        else {
            panic!("Lee and Katz's curve bends downwards here");
        };
        assert!((a_ms - 0.951).abs() < 5e-4 && (b_ms - 0.0494).abs() < 5e-5);
        assert!(limit == 50_000 && (c_ms - 8.0).abs() < 1e-9 && (e_ms - 8.0e-5).abs() < 1e-9);
        close(&curve, 1, 1.0, 1e-9);
        close(&curve, 50_000, 12.0, 1e-9);
        close(&curve, 150_000, 20.0, 1e-9);
    }

    #[test]
    fn tables_are_joined_by_straight_lines_and_know_their_floor() {
        let curve = SeekCurve::Table(vec![(1, 1.0), (3, 3.0), (5, 2.0)]);
        let table = SeekTable::new(&curve, 8);
        let all: Vec<u32> = (0..8).map(|d| table.ns(d) / 1000).collect();
        assert_eq!(all, [0, 1000, 2000, 3000, 2500, 2000, 2000, 2000]);
        let floor: Vec<u32> = (0..8).map(|d| table.floor_ns(d) / 1000).collect();
        assert_eq!(floor, [0, 1000, 2000, 2000, 2000, 2000, 2000, 2000]);
    }
}
