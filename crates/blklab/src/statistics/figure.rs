// SPDX-License-Identifier: MIT OR Apache-2.0
//! One number over the runs of a side.

use blklab_fiostat::LatencyHist;

/// One number over the runs of a side: its value in each run, and how these make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    each: Vec<f64>,
    how: How,
}

#[derive(Clone, Debug, PartialEq)]
enum How {
    Mean,
    Median,
    /// The percentile of the latencies of all runs together, in ns, each with its longest,
    /// which no percentile exceeds.
    Pooled(f64, Vec<(LatencyHist, f64)>),
}

impl Figure {
    /// The mean over the runs, for rates and means.
    pub fn mean(each: Vec<f64>) -> Figure {
        let how = How::Mean;
        Figure { each, how }
    }

    /// The median over the runs, for maxima.
    pub fn median(each: Vec<f64>) -> Figure {
        let how = How::Median;
        Figure { each, how }
    }

    /// A percentile of the latencies of all runs together, in ns. The runs' own
    /// percentiles are what is tested.
    pub fn pooled(percentile: f64, runs: Vec<LatencyHist>) -> Figure {
        let open = runs.into_iter().map(|run| (run, f64::INFINITY));
        Figure::pooled_within(percentile, open.collect())
    }

    /// The same of runs whose longest latency is known: bins are wider than values, and no
    /// percentile exceeds that, in fio's figures neither.
    pub fn pooled_within(percentile: f64, runs: Vec<(LatencyHist, f64)>) -> Figure {
        let each = runs
            .iter()
            .map(|(run, max)| percentile_of(run, percentile).min(*max));
        Figure {
            each: each.collect(),
            how: How::Pooled(percentile, runs),
        }
    }

    /// Runs.
    pub fn runs(&self) -> usize {
        self.each.len()
    }

    /// Its value in each run.
    pub fn each(&self) -> &[f64] {
        &self.each
    }

    /// Over all runs; 0 if there are none.
    pub fn value(&self) -> f64 {
        let all: Vec<usize> = (0..self.runs()).collect();
        self.over(&all)
    }

    /// Whether all runs have the same value.
    pub fn is_constant(&self) -> bool {
        self.each.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Over some of the runs, each as often as it is named.
    pub(crate) fn over(&self, runs: &[usize]) -> f64 {
        if runs.is_empty() {
            return 0.0;
        }
        match &self.how {
            How::Mean => runs.iter().map(|&i| self.each[i]).sum::<f64>() / runs.len() as f64,
            How::Median => {
                let mut values: Vec<f64> = runs.iter().map(|&i| self.each[i]).collect();
                values.sort_by(f64::total_cmp);
                let n = values.len();
                f64::midpoint(values[(n - 1) / 2], values[n / 2])
            }
            How::Pooled(percentile, hists) => {
                let mut sum = LatencyHist::default();
                runs.iter().for_each(|&i| sum.merge(&hists[i].0));
                let longest = runs.iter().map(|&i| hists[i].1).fold(0.0, f64::max);
                percentile_of(&sum, *percentile).min(longest)
            }
        }
    }
}

fn percentile_of(hist: &LatencyHist, percentile: f64) -> f64 {
    let samples = hist.bins().map(|(_, count)| count).sum();
    hist.percentiles(&[percentile], samples)[0] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_that_of_all_runs_together() {
        let mut short = LatencyHist::default();
        short.add_many(100, 98);
        let mut long = LatencyHist::default();
        long.add_many(1_000_000, 2);
        let pooled = Figure::pooled(99.0, vec![short.clone(), long]);
        // The mean of the runs' own would be half of it.
        assert!((pooled.value() / 1e6 - 1.0).abs() < 0.01, "{pooled:?}");
        assert_eq!(pooled.over(&[0, 0]), 100.0);
        let mut one = LatencyHist::default();
        one.add_many(168_506, 1);
        let within = Figure::pooled_within(99.9, vec![(one.clone(), 168_506.0)]);
        assert_eq!(
            (within.value(), within.each()),
            (168_506.0, &[168_506.0][..])
        );
        assert!(Figure::pooled(99.9, vec![one]).value() > 168_506.0);
        assert_eq!(Figure::mean(vec![1.0, 2.0, 6.0]).value(), 3.0);
        assert_eq!(Figure::median(vec![1.0, 2.0, 6.0]).value(), 2.0);
        assert_eq!(Figure::mean(Vec::new()).value(), 0.0);
    }
}
