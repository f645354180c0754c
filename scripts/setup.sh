#!/bin/sh
# Sees to what building or testing needs, then runs a command with it:
#
#   scripts/setup.sh build|test [COMMAND...]
#
# Building needs a C compiler and a Rust toolchain, at least as new as the
# `rust-version` of Cargo.toml. Testing needs clippy and rustfmt as well; some
# tests compare with blktrace and fio, and skip where these are missing.
#
# A toolchain that will do is used as it is, wherever it lies. Otherwise one is
# installed beside what is there, by rustup or from Debian's packages, and a
# line says so before. Nothing is ever removed or replaced. Without the right
# to install, one line says what is missing and what to type.
set -eu
cd "$(dirname "$0")/.."

goal=${1:-}
case $goal in
build | test) shift ;;
*)
    echo "usage: scripts/setup.sh build|test [COMMAND...]" >&2
    exit 2
    ;;
esac

wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
cargo_home=${CARGO_HOME:-${HOME:-}/.cargo}
# Or rustup's stand-ins for rustc and cargo download a toolchain when they are
# asked for their version.
export RUSTUP_AUTO_INSTALL=0

say() { echo "setup: $*" >&2; }

fail() {
    say "$@"
    exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether version $1 is $2 or newer.
at_least() {
    oldest=$(printf '%s\n' "$2" "$1" | sort -t . -k 1,1n -k 2,2n -k 3,3n | head -n 1)
    [ "$oldest" = "$2" ]
}

# ---- What is there ---------------------------------------------------------

# Whether the toolchain that PATH leads to will do; `fault` says why not.
will_do() {
    fault=
    for tool in rustc cargo; do
        place=$(command -v "$tool") || {
            fault="there is no $tool"
            return 1
        }
        said=$("$tool" --version 2>&1) || {
            fault="$place does not run: $(printf '%s\n' "$said" | head -n 1)"
            return 1
        }
        version=$(printf '%s\n' "$said" | sed -n "s/^$tool \([0-9][0-9.]*\).*/\1/p")
        at_least "${version:-0}" "$wanted" || {
            fault="$place is ${version:-of an unknown version}"
            return 1
        }
    done
    [ "$goal" = test ] || return 0
    for part in clippy fmt; do
        cargo "$part" --version >/dev/null 2>&1 || {
            fault="$place $version has no working 'cargo $part'"
            return 1
        }
    done
}

# Makes PATH lead to a toolchain that will do: the one it leads to anyway, one
# further down in it, or one in cargo's own folder.
find_rust() {
    will_do && return
    first_fault=$fault
    path=$PATH
    dirs=$path:$cargo_home/bin
    ifs=$IFS
    IFS=:
    for dir in $dirs; do
        IFS=$ifs
        [ -x "$dir/cargo" ] || continue
        PATH=$dir:$path
        if will_do; then
            say "uses Rust $version in $dir ($first_fault)"
            return
        fi
        # A compiler out of PATH explains more than that PATH has none.
        case $first_fault in "there is no"*) first_fault=$fault ;; esac
    done
    IFS=$ifs
    PATH=$path
    fault=$first_fault
    find_toolchain
}

# Chooses a toolchain of rustup's that is not its default.
find_toolchain() {
    have_rustup || return 1
    first_fault=$fault
    for name in $(rustup toolchain list 2>/dev/null | sed -n 's/^\([^ ]*-[^ ]*\).*/\1/p'); do
        if use_toolchain "$name"; then
            say "uses rustup's toolchain $name ($first_fault)"
            return
        fi
    done
    fault=$first_fault
    return 1
}

# Makes PATH and RUSTUP_TOOLCHAIN lead to the named toolchain if it will do.
use_toolchain() {
    path=$PATH
    was=${RUSTUP_TOOLCHAIN:-}
    PATH=$(dirname "$(command -v rustup)"):$path
    export RUSTUP_TOOLCHAIN="$1"
    will_do && return
    PATH=$path
    RUSTUP_TOOLCHAIN=$was
    [ -n "$was" ] || unset RUSTUP_TOOLCHAIN
    return 1
}

# Whether rustup is there; PATH then leads to it.
have_rustup() {
    have rustup && return
    [ -x "$cargo_home/bin/rustup" ] && PATH=$PATH:$cargo_home/bin
}

# Whether a C program can be compiled and linked.
have_cc() {
    have cc || return 1
    program=$(mktemp)
    status=0
    echo 'int main(void) { return 0; }' | cc -x c -o "$program" - >/dev/null 2>&1 || status=1
    rm -f "$program"
    return "$status"
}

# Whether a folder can be written, or made.
writable() {
    dir=$1
    while [ ! -e "$dir" ]; do dir=$(dirname "$dir"); done
    [ -d "$dir" ] && [ -w "$dir" ]
}

# ---- What can be installed -------------------------------------------------

# Lets rustup install a toolchain beside those it has.
install_with_rustup() {
    have_rustup || return 1
    name=stable
    beside="as rustup's default"
    if rustup toolchain list 2>/dev/null | grep -q '^[^ ]*-'; then
        name=$wanted
        beside="beside rustup's others"
    fi
    say "installs Rust $name with clippy and rustfmt, $beside ($fault)"
    said=$(rustup toolchain install "$name" --no-self-update --profile minimal --component clippy,rustfmt 2>&1) || {
        say "rustup could not: $(printf '%s\n' "$said" | grep -m 1 -i '^error' || echo 'no error given')"
        return 1
    }
    [ "$name" != stable ] || rustup default stable >/dev/null 2>&1
    use_toolchain "$name"
}

# Whether we may install packages; `as_root` goes before commands that do.
may_install() {
    have apt-get || return 1
    as_root=
    [ "$(id -u)" = 0 ] && return
    as_root=sudo
    have sudo && sudo -n true 2>/dev/null
}

# Sets `rust` to Debian's packages of a toolchain that is new enough: Rust
# itself, what Debian builds web browsers with in its stable releases, or
# rustup. Sets `replacing` to packages that could be had but for others that
# would have to go or to be upgraded.
find_packages() {
    rust=
    replacing=
    have apt-cache || return 1
    for web in '' -web; do
        at_least "$(candidate "rustc$web")" "$wanted" || continue
        rust="rustc$web cargo$web"
        [ "$goal" = build ] || rust="$rust rustfmt$web rust$web-clippy"
        replaces_nothing "$rust" && return
        replacing=$rust
    done
    rust=rustup
    [ "$(candidate rustup)" != 0 ] && replaces_nothing rustup && return
    rust=
    return 1
}

# The version of a package that apt-get would install, 0 if none.
candidate() {
    version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9][0-9.]*\).*/\1/p')
    echo "${version:-0}"
}

# Whether packages can be installed without touching a toolchain that is there.
replaces_nothing() {
    # shellcheck disable=SC2086 # a list of packages
    plan=$(apt-get install -s -q --no-remove $1 2>/dev/null) || return 1
    ! printf '%s\n' "$plan" | grep -q '^Inst \(rust\|cargo\)[^ ]* \['
}

# Installs packages; says what apt-get said if it cannot.
install_packages() {
    say "installs $* with apt-get, which takes a minute or two${fault:+ ($fault)}"
    log=$(mktemp)
    status=0
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-remove \
        -o DPkg::Lock::Timeout=60 "$@" </dev/null >"$log" 2>&1 || status=1
    [ "$status" = 0 ] || grep '^E:' "$log" >&2 || tail -n 3 "$log" >&2
    rm -f "$log"
    return "$status"
}

# ---- What is done ----------------------------------------------------------

# What is missing, in words, and the packages that have it.
missing=
packages=
need() {
    missing="${missing:+$missing; }$1"
    packages="$packages${packages:+${2:+ }}$2"
}

# Says in a line what is missing and what to type.
give_up() {
    advice=
    ! have apt-get || [ -z "$packages" ] || advice=". As root: apt-get install $packages"
    if [ -n "$fault" ] && [ -z "$rust" ]; then
        advice="$advice. Rust for every system: https://rustup.rs"
        [ -z "$replacing" ] || advice="$advice ($replacing would replace what is installed)"
    fi
    fail "missing: $missing$advice"
}

# What cannot be done without.
find_rust || install_with_rustup || true
have_cc || need "a C compiler" "gcc libc6-dev"
if [ -n "$missing$fault" ]; then
    may=no
    if may_install; then
        may=yes
        # A fresh machine's lists are missing or old.
        $as_root apt-get update -qq >/dev/null 2>&1 || true
    fi
    if [ -n "$fault" ]; then
        find_packages || may=no
        with=
        [ "$goal" = build ] || with=" with clippy and rustfmt"
        need "Rust $wanted or newer$with ($fault)" "$rust"
    fi
    [ "$may" = yes ] || give_up
    # shellcheck disable=SC2086 # a list of packages
    install_packages $packages || give_up
    have_cc || fail "the C compiler does not compile: $(command -v cc || echo 'there is no cc')"
    find_rust || install_with_rustup || fail "Rust was installed, but $fault"
fi

# What can be done without.
if [ "$goal" = test ] && [ "${BLKLAB_SETUP_TOOLS:-1}" = 1 ]; then
    if have blkparse && have btt && have fio; then
        :
    elif may_install && install_packages blktrace fio; then
        :
    else
        say "blktrace and fio are not installed; tests against them skip"
    fi
fi

# cargo says less clearly what is wrong with these.
target=${CARGO_TARGET_DIR:-target}
writable "$cargo_home" ||
    fail "cargo cannot write to $cargo_home; set CARGO_HOME to a folder of yours"
writable "$target" ||
    fail "cargo cannot write to $target; set CARGO_TARGET_DIR to a folder of yours"

[ $# -gt 0 ] || exit 0
case $goal in
build) [ -e "$target/release" ] || say "the first build takes some minutes" ;;
test) [ -e "$target/debug" ] || say "the first build and all tests take about a quarter of an hour" ;;
esac
exec "$@"
