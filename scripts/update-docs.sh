#!/bin/sh
# `make update-docs`: writes everything in docs/ anew that a program prints. Read
# the difference before you commit it. What needs measurements outside of the
# repository (../shared, or BLKLAB_SHARED) or fio is left as it is where these are
# missing, which a line says.
set -eu
cd "$(dirname "$0")/.."
shared=${BLKLAB_SHARED:-../shared}
blklab=${CARGO_TARGET_DIR:-target}/release/blklab

say() { echo "update-docs: $*" >&2; }

# write FILE COMMAND...: what the command prints becomes the file, whole or not at
# all. `blklab conform` ends with 1 where a model differs, which is no failure here.
write() {
    file=$1
    shift
    say "$file"
    status=0
    "$@" >"$file.partial" || status=$?
    if [ "$status" -gt 1 ] || [ ! -s "$file.partial" ]; then
        rm -f "$file.partial"
        say "$*: ended with $status"
        exit "$status"
    fi
    mv "$file.partial" "$file"
}

# The page has two parts: measured cases, and planted causes.
fidelity() {
    "$blklab" conform "$shared/truth/cases" "$shared/truth-612/cases" "$shared/truth-73/cases" \
        --output-format markdown || [ $? -eq 1 ]
    echo
    cat scripts/fidelity-causes.md
    # What rules were made with; then seeds that nobody looked at, and a kernel.
    "$blklab" conform --causes --count 148 --output-format markdown
    echo
    "$blklab" conform --causes --seed 7001 --count 148 --output-format markdown
    echo
    "$blklab" conform --causes --seed 5002 --kernel 7.3 --count 110 --output-format markdown
}

# Output behind `$ blklab …`, and the tables of the manual.
BLKLAB_UPDATE_DOCS=1 cargo test -p blklab-cli -p sstf --test it -- output
UPDATE_GOLDEN=1 cargo test -p blklab-cli --test it -- fio_options:: settings::
# Rules of findings, and what a what-if tries of their remedies.
UPDATE_GOLDEN=1 cargo test -p blklab-analysis --test it -- manual
UPDATE_GOLDEN=1 cargo test -p blklab-whatif --lib -- remedy
# What drives were measured to do beside what their models do; then the parameters of devices.
UPDATE_TABLES=1 cargo test -p blklab-device --lib published
UPDATE_DOCS=1 cargo test -p blklab-device --lib reference

cargo build --release --bin blklab
say "docs/gallery"
scripts/gallery.sh "$blklab" >/dev/null
if [ -d "$shared/truth-73/cases" ]; then
    write docs/fidelity.md fidelity
else
    say "docs/fidelity.md stays: no truth-73/cases in $shared"
fi
if [ -d "$shared/data/fio-jobs" ] && command -v fio >/dev/null 2>&1; then
    write docs/fio-jobs.md scripts/fio-jobs.py "$blklab" "$shared/data/fio-jobs"
else
    say "docs/fio-jobs.md stays: no data/fio-jobs in $shared, or no fio"
fi
