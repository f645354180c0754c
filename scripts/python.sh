#!/bin/sh
# The package for Python: an environment of its own, the wheel, its tests.
#
#   scripts/python.sh prepare   makes the environment, with what tests take
#   scripts/python.sh test      builds the wheel, installs it there, runs the tests
#   scripts/python.sh site      builds the docs as a site
#
# The wheel is built with the profile and the objects of the other tests
# (BLKLAB_PROFILE=release: as it is given to others). Where there is no Python 3.11
# or newer with venv, and none can be installed, a line says so and nothing is tested.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$target/python
export CARGO_TARGET_DIR="$target" BLKLAB_PROFILE="${BLKLAB_PROFILE:-dev}"

say() { echo "python: $*" >&2; }

# Python 3.11 or newer that can make an environment.
find_python() {
    for python in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
        command -v "$python" >/dev/null 2>&1 || continue
        "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    done
    return 1
}

install_python() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        as_root=sudo
    fi
    say "installs python3 and python3-venv with apt-get"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-remove \
        -o DPkg::Lock::Timeout=60 python3 python3-venv </dev/null >/dev/null 2>&1
}

prepare() {
    if ! find_python; then
        if ! install_python || ! find_python; then
            say "no Python 3.11 or newer with venv: the package for Python is not tested"
            return 1
        fi
    fi
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r python/requirements-test.txt || {
        say "pip cannot install python/requirements-test.txt: the package for Python is not tested"
        return 1
    }
}

wheel() {
    wheels=$target/wheels
    rm -rf "$wheels"
    PATH=$venv/bin:$PATH "$venv/bin/pip" wheel -q --disable-pip-version-check --no-deps \
        --no-build-isolation --wheel-dir "$wheels" .
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --force-reinstall "$wheels"/*.whl
}

case ${1:-test} in
prepare) prepare || true ;;
test)
    prepare || exit 0
    "$venv/bin/ruff" check -q python
    "$venv/bin/ruff" format -q --check python
    wheel
    "$venv/bin/python" -m pytest --numprocesses auto --dist loadfile python/tests
    ;;
site)
    prepare || exit 2
    wheel
    "$venv/bin/pip" install -q --disable-pip-version-check -r docs/site/requirements.txt
    PATH=$venv/bin:$PATH docs/site/build.sh "$target/site"
    ;;
*)
    echo "usage: scripts/python.sh prepare|test|site" >&2
    exit 2
    ;;
esac
