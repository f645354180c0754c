#!/bin/sh
# What a change needs before it is looked at: formatting, lints, the unit tests of every
# crate, golden texts and measured cases. `make test` runs everything.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
# Fits search for half a minute; `make test` runs them.
cargo test --workspace --lib --exclude blklab-fit
cargo test -p blklab-cli --test it -- golden:: conform:: errors::
