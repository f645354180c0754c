// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages as browsers show them, the front end that they are made with, and pages of
//! another target.

mod playback;
mod web;
