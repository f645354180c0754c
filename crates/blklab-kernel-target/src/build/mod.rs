// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: fetched, built, and kept in a cache.

mod apt;
mod cache;
mod command;
mod key;
mod make;
mod overlay;
mod recipe;
mod source;
mod tools;

pub use cache::{Built, Cache};
pub use command::{Step, Watch};
pub use make::{build, built};
pub use source::Source;
pub(crate) use tools::find as find_program;
