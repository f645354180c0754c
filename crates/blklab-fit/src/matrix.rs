// SPDX-License-Identifier: MIT OR Apache-2.0
//! Symmetric matrices of a few rows, as least squares have them.

/// A square matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    n: usize,
    values: Vec<f64>,
}

impl Matrix {
    pub(crate) fn zero(n: usize) -> Matrix {
        Matrix {
            n,
            values: vec![0.0; n * n],
        }
    }

    /// The products of all pairs of columns.
    pub(crate) fn of_columns(columns: &[Vec<f64>]) -> Matrix {
        let mut all = Matrix::zero(columns.len());
        for (i, a) in columns.iter().enumerate() {
            for (j, b) in columns.iter().enumerate() {
                all.add(i, j, dot(a, b));
            }
        }
        all
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.n + j]
    }

    pub(crate) fn add(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.n + j] += value;
    }

    /// Adds the products of all pairs of numbers of a vector, so many times.
    pub(crate) fn add_outer(&mut self, vector: &[f64], times: f64) {
        for (i, a) in vector.iter().enumerate() {
            for (j, b) in vector.iter().enumerate() {
                self.add(i, j, times * a * b);
            }
        }
    }

    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.values
            .chunks(self.n)
            .map(|row| dot(row, vector))
            .collect()
    }

    /// The vector that the matrix turns into `right`; none if it is not positive definite.
    pub(crate) fn solve(&self, right: &[f64]) -> Option<Vec<f64>> {
        Some(self.decomposed()?.solve(right))
    }

    /// Cholesky's decomposition; none if the matrix is not positive definite.
    pub(crate) fn decomposed(&self) -> Option<Decomposed> {
        let mut lower = Matrix::zero(self.n);
        for i in 0..self.n {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower.at(i, k) * lower.at(j, k)).sum();
                let left = self.at(i, j) - known;
                let value = if i == j {
                    (left > 0.0).then(|| left.sqrt())?
                } else {
                    left / lower.at(j, j)
                };
                lower.add(i, j, value);
            }
        }
        Some(Decomposed { lower })
    }
}

/// A positive definite matrix as the product of one and the same that is mirrored.
#[derive(Clone, Debug)]
pub(crate) struct Decomposed {
    lower: Matrix,
}

impl Decomposed {
    /// The vector that the matrix turns into `right`.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (n, lower) = (self.lower.n, &self.lower);
        let mut found = right.to_vec();
        for i in 0..n {
            let known: f64 = (0..i).map(|k| lower.at(i, k) * found[k]).sum();
            found[i] = (found[i] - known) / lower.at(i, i);
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| lower.at(k, i) * found[k]).sum();
            found[i] = (found[i] - known) / lower.at(i, i);
        }
        found
    }

    /// The columns of the inverse.
    pub(crate) fn inverse(&self) -> Vec<Vec<f64>> {
        let n = self.lower.n;
        let unit = |i: usize| -> Vec<f64> { (0..n).map(|j| f64::from(i == j)).collect() };
        (0..n).map(|i| self.solve(&unit(i))).collect()
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_solved_gives_the_right_side_again() {
        let columns = [vec![1.0, 2.0, 0.5], vec![0.0, 1.0, -1.0]];
        let squares = Matrix::of_columns(&columns);
        assert_eq!(squares.at(0, 0), 5.25);
        let found = squares.solve(&[3.0, -1.0]).expect("is positive definite");
        let again = squares.times(&found);
        assert!((again[0] - 3.0).abs() < 1e-12 && (again[1] + 1.0).abs() < 1e-12);
    }

    #[test]
    fn columns_that_are_alike_have_no_solution() {
        let columns = [vec![1.0, 2.0], vec![1.0, 2.0]];
        assert_eq!(Matrix::of_columns(&columns).solve(&[1.0, 1.0]), None);
    }
}
