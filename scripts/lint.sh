#!/bin/sh
# Formatting and lints of everything. With `light`, what takes no compilation.
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all --check
if command -v shellcheck >/dev/null 2>&1; then
    shellcheck scripts/*.sh python/backend/*.sh .ci/run
fi
[ "${1:-}" != light ] || exit 0
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items
