// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: fetched, built, and kept in a cache.

mod apt;
mod cache;
mod command;
mod image;
mod key;
mod make;
mod modules;
mod overlay;
mod own_module;
mod program;
mod recipe;
mod simdisk;
mod source;
mod tools;

pub use cache::{Built, Cache, Engine};
pub use command::{Step, Watch};
pub use image::{Added, FLAVOUR, add, fetch};
pub use make::{build, built};
pub(crate) use modules::Loading;
pub(crate) use own_module::NAME as SIMDISK;
pub(crate) use program::{REPLAY, check_replay, replay};
pub use recipe::HZ;
pub(crate) use simdisk::prepare as prepare_simdisk;
pub use source::Source;
pub(crate) use tools::{find as find_program, path_in_machine};
