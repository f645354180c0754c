#!/bin/sh
# Checks what blklab depends on (deny.toml) with cargo-deny: licences, versions,
# sources, and known faults, where RustSec's database of them can be fetched.
set -eu
cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null 2>&1 || {
    echo "deny: installs cargo-deny with cargo, which takes some minutes" >&2
    cargo install --locked cargo-deny
    PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
}
cargo deny check licenses bans sources
if cargo deny fetch db; then
    cargo deny check --disable-fetch advisories
else
    echo "deny: the database of advisories cannot be fetched here; they are not checked" >&2
fi
