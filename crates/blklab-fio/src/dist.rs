// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zipf, Pareto and normal distributions over a range of blocks.
//!
//! Source: fio 3.33 and its manual page; zipf after J. Gray et al., "Quickly
//! Generating Billion-Record Synthetic Databases" (SIGMOD 1994). Results
//! depend on `pow` and `log` of the platform's mathematics library, which on
//! Linux is the one fio uses.

use crate::rng::Rng;

/// Multiplier that scatters neighbouring results over the range.
const SCATTER: u64 = 0x61C8_8646_80B5_83EB;
/// Terms of the zeta sum at most.
const ZETA_TERMS_MAX: u64 = 10_000_000;

/// Which curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Zipf with this exponent.
    Zipf(f64),
    /// Pareto with this power.
    Pareto(f64),
    /// Normal with this deviation in percent of the range.
    Normal(f64),
}

/// A random variable over `0..range`.
#[derive(Clone, Debug)]
pub struct Skewed {
    rng: Rng,
    range: u64,
    offset: u64,
    scatter: bool,
    curve: Curve,
}

#[derive(Clone, Debug)]
enum Curve {
    Zipf { theta: f64, zeta2: f64, zetan: f64 },
    Pareto { power: f64 },
    Normal { deviation: u64 },
}

impl Skewed {
    /// A variable over a range (at least 1) with its own generator. `center`
    /// moves the most frequent value to that share of the range.
    pub fn new(shape: Shape, range: u64, center: Option<f64>, seed: u32) -> Skewed {
        let range = range.max(1);
        let mut rng = Rng::new(u64::from(seed), false);
        // The draw takes place even if its result is not needed.
        let centered = |rng: &mut Rng| {
            let drawn = rng.draw();
            center.map_or(drawn, |center| (range as f64 * center) as u64)
        };
        let (offset, curve) = match shape {
            Shape::Zipf(theta) => {
                let zeta2 = 1.0 + 0.5f64.powf(theta);
                (
                    centered(&mut rng),
                    Curve::Zipf {
                        theta,
                        zeta2,
                        zetan: zeta_sum(range, theta),
                    },
                )
            }
            Shape::Pareto(power) => (
                centered(&mut rng),
                Curve::Pareto {
                    power: power.ln() / (1.0 - power).ln(),
                },
            ),
            Shape::Normal(percent) => {
                let wanted = (range as f64 * percent / 100.0).ceil() as u64;
                let deviation = if percent == 0.0 {
                    0
                } else {
                    wanted.min(range / 2)
                };
                // fio keeps this offset in 32 bits, two's complement.
                let offset =
                    center.map_or(0, |center| (range as f64 * (center - 0.5)) as i64 as u32);
                (u64::from(offset), Curve::Normal { deviation })
            }
        };
        Skewed {
            rng,
            range,
            offset,
            scatter: true,
            curve,
        }
    }

    /// The same without scattering: neighbours stay neighbours.
    #[must_use]
    pub fn unscattered(mut self) -> Skewed {
        self.scatter = false;
        self
    }

    /// The next value.
    pub fn draw(&mut self) -> u64 {
        let value = match self.curve {
            Curve::Zipf {
                theta,
                zeta2,
                zetan,
            } => self.zipf(theta, zeta2, zetan),
            Curve::Pareto { power } => {
                let unit = self.rng.draw() as f64 / f64::from(u32::MAX);
                ((self.range - 1) as f64 * unit.powf(power)) as u64
            }
            Curve::Normal { deviation } => self.normal(deviation),
        };
        let value = if self.scatter {
            value.wrapping_mul(SCATTER)
        } else {
            value
        };
        value.wrapping_add(self.offset) % self.range
    }

    fn zipf(&mut self, theta: f64, zeta2: f64, zetan: f64) -> u64 {
        let range = self.range as f64;
        let alpha = 1.0 / (1.0 - theta);
        let eta = (1.0 - (2.0 / range).powf(1.0 - theta)) / (1.0 - zeta2 / zetan);
        let unit = self.rng.draw() as f64 / f64::from(u32::MAX);
        let z = unit * zetan;
        let rank = if z < 1.0 {
            1
        } else if z < 1.0 + 0.5f64.powf(theta) {
            2
        } else {
            1u64.wrapping_add((range * (eta * unit - eta + 1.0).powf(alpha)) as u64)
        };
        rank - 1
    }

    fn normal(&mut self, deviation: u64) -> u64 {
        let span = self.range.saturating_add(1);
        let total = (0..12).fold(0u64, |sum, _| sum.wrapping_add(self.rng.draw() % span));
        let middle = total.wrapping_add(11) / 12;
        if deviation == 0 {
            return middle;
        }
        let spread = (deviation as f64 * self.rng.unit()) as i64;
        let mut extra = spread - (deviation / 2).cast_signed();
        let mut value = middle.wrapping_add_signed(extra);
        // Halved until it fits; a middle that does not fit by itself stays.
        while value >= self.range && extra != 0 {
            extra /= 2;
            value = middle.wrapping_add_signed(extra);
        }
        value
    }
}

fn zeta_sum(range: u64, theta: f64) -> f64 {
    (0..range.min(ZETA_TERMS_MAX)).fold(0.0, |sum, at| sum + (1.0 / (at + 1) as f64).powf(theta))
}

/// A hash of a file name, after B. Jenkins' lookup3 (2006, public domain) with
/// the deviations of fio: from each block of twelve bytes but the last, only
/// three bytes count.
pub fn name_hash(name: &[u8]) -> u32 {
    let start = 0x61C8_8647u32.wrapping_add(name.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = name;
    while rest.len() > 12 {
        a = a.wrapping_add(u32::from(rest[0]));
        b = b.wrapping_add(u32::from(rest[4]));
        c = c.wrapping_add(u32::from(rest[8]));
        mix(&mut a, &mut b, &mut c);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let word = |at: usize| {
        let byte = |i: usize| rest.get(at * 4 + i).copied().unwrap_or(0);
        u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
    };
    a = a.wrapping_add(word(0));
    b = b.wrapping_add(word(1));
    c = c.wrapping_add(word(2));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    let round = |x: &mut u32, y: &mut u32, z: &mut u32, bits: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(bits);
        *z = z.wrapping_add(*y);
    };
    round(a, b, c, 4);
    round(b, c, a, 6);
    round(c, a, b, 8);
    round(a, b, c, 16);
    round(b, c, a, 19);
    round(c, a, b, 4);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: Shape, expected: [u64; 6]) {
        let mut skewed = Skewed::new(shape, 1024, None, 12345);
        assert_eq!(std::array::from_fn(|_| skewed.draw()), expected);
    }

    #[test]
    fn known_values() {
        check(Shape::Zipf(1.2), [874, 601, 433, 218, 496, 853]);
        check(Shape::Pareto(0.3), [874, 455, 949, 89, 492, 706]);
        check(Shape::Normal(20.0), [250, 313, 459, 3, 44, 208]);
    }

    #[test]
    fn hashes() {
        for (name, hash) in [
            ("a", 0x6bbe_9f77),
            ("j1.0.0", 0x2a59_0628),
            ("abcdefghijkl", 0xd855_beeb),
            ("abcdefghijklm", 0x5953_6a0b),
            ("/mnt/data/file.0.0", 0xe9ab_afb1),
        ] {
            assert_eq!(name_hash(name.as_bytes()), hash, "{name}");
        }
    }

    #[test]
    fn tiny_ranges_end() {
        for shape in [Shape::Zipf(1.1), Shape::Pareto(0.2), Shape::Normal(99.0)] {
            for range in 1..4 {
                let mut skewed = Skewed::new(shape, range, None, 1);
                assert!((0..1000).all(|_| skewed.draw() < range));
            }
        }
    }
}
