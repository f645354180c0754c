// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every fuzz target without a fuzzer: its seeds, the planted fault, mutants that are the
//! same every time, random experiments.

mod canary;
mod mutants;
mod random;
mod rows;
mod seeds;
