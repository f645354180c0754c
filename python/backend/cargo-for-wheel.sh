#!/bin/sh
# Stands in for cargo where the wheel is built (build_blklab.py): whatever is built of them, the
# packages are BLKLAB_PACKAGES. For the command or the module alone cargo would choose other
# features of what they depend on, and compile most crates twice.
set -eu
case ${1:-} in
build | rustc) shift ;;
*) exec cargo "$@" ;;
esac
# Of the options all but those that choose a package, and those of rustc.
count=$#
while [ "$count" -gt 0 ]; do
    option=$1
    shift
    count=$((count - 1))
    case $option in
    --) shift "$count" && break ;;
    --manifest-path) shift && count=$((count - 1)) ;;
    *) set -- "$@" "$option" ;;
    esac
done
# shellcheck disable=SC2086 # options
exec cargo build --locked "$@" $BLKLAB_PACKAGES
