#!/bin/sh
# What `make test` and CI run.
set -eu
cd "$(dirname "$0")/.."
scripts/lint.sh
cargo test --workspace
