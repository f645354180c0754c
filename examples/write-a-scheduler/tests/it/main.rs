// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a scheduler is tested with: vectors, properties, and its page.

mod properties;
mod support;
mod tutorial;
mod vectors;
