#!/bin/sh
# Stands in for cargo where maturin builds the module (build_blklab.py): builds what
# BLKLAB_BUILDS says in one go, the command and the module. For each alone cargo would choose
# other features of what they depend on, and compile most crates twice.
set -eu
case ${1:-} in
build | rustc) shift ;;
*) exec cargo "$@" ;;
esac
# Of the options all but those that choose what is built, and those of rustc.
count=$#
while [ "$count" -gt 0 ]; do
    option=$1
    shift
    count=$((count - 1))
    case $option in
    --) shift "$count" && break ;;
    --lib) ;;
    --manifest-path) shift && count=$((count - 1)) ;;
    *) set -- "$@" "$option" ;;
    esac
done
# shellcheck disable=SC2086 # options
exec cargo build --locked "$@" $BLKLAB_BUILDS
