#!/bin/sh
# Builds the page's script and style (crates/blklab-report/web) from their sources:
#
#   scripts/web.sh [--check]
#
# What it builds is committed, so that building blklab needs no node. With --check
# nothing is written: it fails if what is committed is not what the sources give.
set -eu
cd "$(dirname "$0")/../crates/blklab-report/web"

if ! command -v npm >/dev/null 2>&1; then
    echo "web: node and npm are missing (apt-get install nodejs npm)" >&2
    exit 2
fi
npm ci --no-audit --no-fund --loglevel=error
npx tsc --noEmit
node build.mjs "$@"
