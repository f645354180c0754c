// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which events are given: that of time, within a window.

mod given;
mod window;

pub(crate) use given::Given;
pub(crate) use window::{Held, Said, Window};
