#!/bin/sh
# What `make test` and CI run.
set -eu
cd "$(dirname "$0")/.."
scripts/test-setup.sh
scripts/lint.sh
# Fuzz targets are a workspace of their own. Linking them takes a C++ compiler;
# that they compile does not.
cargo check --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/fuzz" \
    --no-default-features --bins
cargo test --workspace
