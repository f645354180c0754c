#!/bin/sh
# Formatting and lints, as CI demands them.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items
if command -v shellcheck >/dev/null 2>&1; then
    shellcheck scripts/*.sh python/backend/*.sh .ci/run
fi
