// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio job files: parsed, expanded, and turned into the I/Os that fio 3.33 issues.

pub mod dist;
pub mod engine;
pub mod error;
pub mod iolog;
pub mod job;
pub mod lfsr;
pub mod option;
pub mod parse;
pub mod randmap;
pub mod range;
pub mod rng;
pub mod run;
pub mod seeds;
pub mod settings;
pub mod workload;

mod apply;
mod assign;
mod expand;
mod lists;
mod suggest;
mod text;
mod value;
