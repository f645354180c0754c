#!/bin/sh
# Formatting and lints, as CI demands them.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --document-private-items
