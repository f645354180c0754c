#!/bin/sh
# Stands in for cargo where the wheel of the tests is built (scripts/python.sh): builds
# all that `cargo test` builds, out of what it has compiled. For one package alone cargo
# chooses other features of the dependencies, and most would be compiled again.
set -eu
case ${1:-} in
build | rustc) ;;
*) exec cargo "$@" ;;
esac
messages=human
while [ $# -gt 0 ]; do
    if [ "$1" = --message-format ]; then
        messages=$2
    fi
    shift
done
exec cargo build --workspace --lib --bins --tests --locked --message-format "$messages"
