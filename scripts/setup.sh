#!/bin/sh
# Installs what building and testing need, where it is missing: a C linker and
# a Rust toolchain. Debian's blktrace tools and fio are wanted by some tests,
# which say so and skip without them; they are installed when we may.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

apt_install() {
    if ! have apt-get; then
        return 1
    fi
    if [ "$(id -u)" = 0 ]; then
        sudo=
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo=sudo
    else
        return 1
    fi
    $sudo apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq "$@" >/dev/null 2>&1
}

have cc || apt_install gcc libc6-dev ||
    { echo "setup: no C linker (cc); install gcc" >&2; exit 2; }

if ! have cargo && [ -x "$HOME/.cargo/bin/cargo" ]; then
    echo "setup: cargo is in $HOME/.cargo/bin, which is not in PATH" >&2
    exit 2
fi
have cargo || apt_install rustup && { have cargo || rustup default stable >/dev/null 2>&1; } || true
have cargo || apt_install cargo ||
    { echo "setup: no Rust toolchain; install Rust 1.89 or newer (rustup.rs)" >&2; exit 2; }

if [ "${BLKLAB_SETUP_TOOLS:-1}" = 1 ]; then
    have blkparse && have btt && have fio || apt_install blktrace fio ||
        echo "setup: blktrace and fio are not installed; tests against them skip" >&2
fi
