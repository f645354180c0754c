// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time: agenda, jiffy timers, named random streams.
