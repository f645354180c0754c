// SPDX-License-Identifier: MIT OR Apache-2.0
//! Re-enactments: of simulated runs, whose truth is at hand, and of traces that
//! nobody recorded.

mod hostile;
mod truth;
