// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two sets of runs compared, figure by figure: how large the change is, within which
//! interval it lies, and whether it is one at all.
//!
//! A [`Figure`] has a value for each run of a side. [`Change::between`] gives the ratio
//! of the sides with a 95 % interval by the bootstrap over runs, and the probability that
//! two sides which do not differ are as far apart, by Student's test. Of many
//! comparisons some look like changes by chance: [`adjust`] corrects for that (Holm),
//! and [`Verdict`] calls a figure better or worse only if both agree.
//!
//! Runs of the same seed have the same arrivals: they are compared in pairs, which takes
//! the part of the noise away that both share.
//!
//! Tails are compared as tails: a percentile is that of the I/Os of all runs pooled,
//! resampled run by run, and a maximum is the median of the runs' maxima.
//!
//! ```
//! use blklab::metric::Aim;
//! use blklab::statistics::{Change, Figure, Verdict, adjust};
//!
//! let before = Figure::mean(vec![10.1, 9.9, 10.0, 10.2, 9.8]);
//! let after = Figure::mean(vec![20.3, 19.8, 20.1, 20.4, 19.7]);
//! let mut changes = [Change::between(&before, &after, true)];
//! adjust(&mut changes);
//! assert!((changes[0].ratio.expect("not of zero") - 2.0).abs() < 0.02);
//! assert_eq!(changes[0].verdict(Aim::Higher), Verdict::Better);
//! ```

mod bootstrap;
mod change;
mod figure;
mod student;
mod warm_up;

pub use bootstrap::CONFIDENCE;
pub use change::{Change, Verdict, adjust};
pub use figure::Figure;
pub use student::half_width;
pub use warm_up::{BATCHES, warm_up};
