// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single-queue block layer: requests, merging, plugging, pools, elevator traits.
