#!/bin/sh
# Checks everything, tests included, with the oldest supported compiler, the
# `rust-version` of Cargo.toml: rustup's, or the one in PATH if it is that.
set -eu
cd "$(dirname "$0")/.."
wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
case $(rustc --version) in
"rustc $wanted."*) ;;
*)
    command -v rustup >/dev/null 2>&1 || {
        echo "msrv: rustc is not $wanted, and there is no rustup to get it with (rustup.rs)" >&2
        exit 2
    }
    rustup toolchain install "$wanted" --no-self-update --profile minimal
    export RUSTUP_TOOLCHAIN="$wanted"
    ;;
esac
rustc --version
# In a folder of its own: what another compiler built would be built again.
cargo check --workspace --all-targets --locked --target-dir "${CARGO_TARGET_DIR:-target}/msrv"
