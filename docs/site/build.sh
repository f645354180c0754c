#!/bin/sh
# The docs as a site: pages, the reference of Python, of Rust and of the command.
#
#   docs/site/build.sh OUT
#
# Nothing comes from the network. It takes sphinx-build and the package blklab with its
# command on PATH (`make site` sees to that).
set -eu
cd "$(dirname "$0")/../.."
out=${1:?usage: docs/site/build.sh OUT}
staged=$out.sources
rm -rf "$staged"
mkdir -p "$staged"
cp -r docs/. "$staged/"
cp docs/site/conf.py "$staged/conf.py"
rm -rf "$staged/site"
# Paths of the repository's pages: those of docs/ are the site's root.
sed 's|](docs/|](|g' README.md >"$staged/start.md"

pages() {
    for page in "$@"; do
        [ -f "docs/$page.md" ] && echo "$page"
    done
}

{
    echo '# blklab'
    echo
    echo 'A laboratory for Linux block-I/O latency. [Begin here](start.md), then [the manual](README.md).'
    toc() {
        printf '\n```{toctree}\n:caption: %s\n:maxdepth: 1\n\n' "$1"
        cat
        printf '```\n'
    }
    printf 'start\nREADME\nexamples\n' | toc 'Begin'
    # shellcheck disable=SC2046 # names of pages
    pages experiments kernels kernel-generations modelled devices limits kernel-target | toc 'Experiments'
    pages why traces record compare report recommend reproduce | toc 'Answers'
    { pages python python-sweeps python-tuning python-fleet paper && echo python-api; } | toc 'Python'
    echo command-reference | toc 'Command'
    # What no list above has.
    for file in docs/*.md; do
        page=$(basename "$file" .md)
        case " README examples experiments kernels kernel-generations modelled devices limits kernel-target \
why traces record compare report recommend reproduce python python-sweeps python-tuning python-fleet paper " in
        *" $page "*) ;;
        *) echo "$page" ;;
        esac
    done | toc 'More'
    find docs/filesystems docs/schedulers docs/cgroups docs/reports -name '*.md' | sed 's|^docs/||; s|\.md$||' |
        sort | toc 'Models and reports'
} >"$staged/index.md"

cat >"$staged/python-api.md" <<'PAGE'
# The package for Python

```{eval-rst}
.. automodule:: blklab
   :members: run, matrix, load, compare, report, kernels, sweep, tune, experiment, Run, Runs, Trace, Why, Comparison, KernelChanges, Sweep, Tuned, Table, Experiment, Scheduler, Request
   :imported-members:
.. automodule:: blklab.list
   :members:
.. automodule:: blklab.fleet
   :members:
   :imported-members:
.. automodule:: blklab.testing
   :members: check_scheduler
```
PAGE

{
    echo '# The command'
    echo
    echo '```text'
    blklab --help
    echo '```'
    for name in $(blklab --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
        [ "$name" = help ] && continue
        printf '\n## blklab %s\n\n```text\n' "$name"
        blklab "$name" --help
        echo '```'
    done
} >"$staged/command-reference.md"

sphinx-build -q -b html "$staged" "$out"
if command -v cargo >/dev/null 2>&1; then
    cargo doc -q -p blklab --no-deps
    rm -rf "$out/rust"
    cp -r "${CARGO_TARGET_DIR:-target}/doc" "$out/rust"
    echo "The library's reference: $out/rust/blklab/index.html"
fi
echo "The site: $out/index.html"
