#!/bin/sh
# Tries scripts/setup.sh on machines that are made up: folders of programs that
# answer as rustc, cargo, rustup, apt-get … do. What was installed is in `log`.
# shellcheck disable=SC2016,SC2086 # texts of programs; lists of packages
set -eu
cd "$(dirname "$0")/.."
setup=$PWD/scripts/setup.sh
wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The programs that every machine has.
mkdir "$scratch/base"
for tool in sh env cat head tail sed grep sort dirname mktemp rm id mkdir chmod; do
    ln -s "$(command -v "$tool")" "$scratch/base/$tool"
done

passed=0
failed=0

# A new machine: nothing but the above, no rights, an empty home.
machine() {
    name=$1
    m=$scratch/m
    rm -rf "$m"
    mkdir -p "$m/bin" "$m/home" "$m/target/release" "$m/target/debug"
    : >"$m/log"
    program id 'echo 1000'
}

# A program of the machine: its name, perhaps with a folder, and its text.
program() {
    case $1 in
    /*) file=$1 ;;
    *) file=$m/bin/$1 ;;
    esac
    mkdir -p "$(dirname "$file")"
    rm -f "$file"
    printf '#!/bin/sh\n%s\n' "$2" >"$file"
    chmod +x "$file"
}

# A toolchain in a folder: its version, then the parts of cargo's that run.
toolchain() {
    program "$1/rustc" "echo 'rustc $2 (0123abc 2026-01-01)'"
    program "$1/cargo" "case \$1 in
        --version) echo 'cargo $2 (0123abc 2026-01-01)' ;;
        clippy) case '$3' in *clippy*) ;; *) exit 1 ;; esac ;;
        fmt) case '$3' in *fmt*) ;; *) exit 1 ;; esac ;;
        esac"
}

# Packages by name and version; installing one of Rust's gives what it has.
# `upgraded` are packages that installing Rust would upgrade, `removes` those
# of Rust's that something would have to go for.
apt() {
    program apt-cache "case \$2 in
        $(for p in "$@"; do echo "${p%=*}) echo '  Candidate: ${p#*=}' ;;"; done)
        *) echo '  Candidate: (none)' ;;
        esac"
    program apt-get "
        case \"\$*\" in
        update*) echo 'apt-get update' >>'$m/log'; exit ;;
        *' -s '*)
            case \"\$*\" in *${removes:-NOTHING}*) exit 100 ;; esac
            echo 'Inst gcc [12] (13 Debian)'
            for p in ${upgraded:-}; do echo \"Inst \$p [1.85] (1.96 Debian)\"; done
            exit ;;
        esac
        echo \"apt-get \$*\" >>'$m/log'
        [ -z '${broken:-}' ] || { echo 'E: Unable to fetch some archives' >&2; exit 100; }
        for p in \"\$@\"; do
            case \$p in
            gcc) printf '#!/bin/sh\n' >'$m/bin/cc'; chmod +x '$m/bin/cc' ;;
            rustc*) rust=1 ;;
            rustup) rust=1 && cat '$m/new/rustup' >'$m/bin/rustup' ;;
            esac
        done
        [ -z \"\${rust:-}\" ] || {
            cat '$m/new/rustc' >'$m/bin/rustc'
            cat '$m/new/cargo' >'$m/bin/cargo'
        }
        chmod +x '$m/bin/'*"
    toolchain "$m/new" 1.96.0 'clippy fmt'
}

# rustup with the named toolchains of these versions: NAME=VERSION …; installs
# a further one of version `reach`, or cannot if that is empty.
rustup_with() {
    program rustup "
        list='$m/home/toolchains'
        case \"\$1 \$2\" in
        'toolchain list') [ -s \"\$list\" ] && cat \"\$list\" || echo 'no installed toolchains' ;;
        'toolchain install')
            echo \"rustup \$*\" >>'$m/log'
            [ -n '${reach:-}' ] || { echo 'info: syncing' >&2; echo 'error: no network' >&2; exit 1; }
            echo \"\$3=${reach:-}\" >>'$m/home/versions' ;;
        *) echo \"rustup \$*\" >>'$m/log' ;;
        esac"
    : >"$m/home/toolchains"
    : >"$m/home/versions"
    for t in "$@"; do
        echo "${t%=*}-x86_64-unknown-linux-gnu (active, default)" >>"$m/home/toolchains"
        echo "$t" >>"$m/home/versions"
    done
    # Its stand-ins use the named toolchain, or else the first.
    for tool in rustc cargo; do
        program "$tool" "
            name=\${RUSTUP_TOOLCHAIN:-}
            line=\$(grep \"^\${name%-x86_64-unknown-linux-gnu}\" '$m/home/versions' | head -n 1)
            [ -n \"\$line\" ] || { echo 'error: rustup could not choose a version of $tool' >&2; exit 1; }
            [ \"\$1\" != --version ] || echo \"$tool \${line#*=} (0123abc 2026-01-01)\""
    done
}

# Runs setup.sh on the machine: exit code and output must be as expected.
expect() {
    goal=$1
    code=$2
    shift 2
    status=0
    env -i PATH="$m/bin:$scratch/base" HOME="$m/home" CARGO_TARGET_DIR="$m/target" ${extra:-} \
        "$setup" "$goal" sh -c 'echo "runs ${RUSTUP_TOOLCHAIN:-} $(rustc --version)"' \
        >"$m/out" 2>&1 || status=$?
    bad=
    [ "$status" = "$code" ] || bad="exit code $status, not $code"
    for text in "$@"; do
        case $text in
        "not "*) ! grep -qF -e "${text#not }" "$m/out" "$m/log" || bad="$bad; has '${text#not }'" ;;
        *) grep -qF -e "$text" "$m/out" "$m/log" || bad="$bad; lacks '$text'" ;;
        esac
    done
    # Nothing is ever removed, and everything is said in a line or two.
    ! grep -q 'remove\|purge' "$m/log" || grep -q no-remove "$m/log" || bad="$bad; removes"
    if [ -z "$bad" ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    echo "test-setup: $name, $goal: $bad" >&2
    sed 's/^/    /' "$m/out" "$m/log" >&2
}
quiet="not setup: installs"
web="rustc=1.63.0+dfsg1-2 rustc-web=1.96.0+dfsg1-1~deb12u2"

machine "a toolchain that will do is used as it is"
program cc ''
toolchain . 1.95.0 'clippy fmt'
program id 'echo 0'
apt $web
for tool in blkparse btt fio; do program "$tool" ''; done
expect build 0 "runs  rustc 1.95.0" "not setup:" "not apt-get"
expect test 0 "runs  rustc 1.95.0" "not setup:" "not apt-get"

machine "exactly the oldest supported compiler"
program cc ''
toolchain . "$wanted.0" ''
expect build 0 "runs  rustc $wanted.0" "not setup:"

machine "nothing there, no rights, no apt-get"
expect build 2 "missing: a C compiler; Rust $wanted or newer (there is no rustc). Rust for every system: https://rustup.rs"

machine "nothing there, no rights"
apt $web
expect build 2 "$quiet" "As root: apt-get install gcc libc6-dev rustc-web cargo-web" "not clippy"
expect test 2 "with clippy and rustfmt (there is no rustc). As root: apt-get install gcc libc6-dev rustc-web cargo-web rustfmt-web rust-web-clippy"

machine "sudo that wants a password"
program sudo 'exit 1'
apt $web
expect build 2 "$quiet" "As root: apt-get install gcc"

machine "Debian 12 as root"
program id 'echo 0'
apt $web
expect build 0 "setup: installs gcc libc6-dev rustc-web cargo-web with apt-get" "apt-get update" \
    "--no-remove" "runs  rustc 1.96.0" "not clippy" "not fio"

machine "Debian 12 as root, for tests"
program id 'echo 0'
apt $web
expect test 0 "installs gcc libc6-dev rustc-web cargo-web rustfmt-web rust-web-clippy with" \
    "installs blktrace fio with" "runs  rustc 1.96.0"

machine "Debian 12 with sudo"
program sudo '[ "$1" = -n ] || echo "sudo $*" >>'"'$m/log'"'
[ "$1" != -n ] || shift
"$@"'
apt $web
expect build 0 "installs gcc libc6-dev rustc-web cargo-web with apt-get" "sudo env" "runs  rustc 1.96.0"

machine "a release with a new enough Rust of its own"
program id 'echo 0'
program cc ''
apt rustc=1.90.0+dfsg1-1 rustc-web=1.96.0+dfsg1-1
expect test 0 "installs rustc cargo rustfmt rust-clippy with apt-get" "not rustc-web"

machine "a release whose packages are all too old"
program id 'echo 0'
program cc ''
apt rustc=1.63.0 rustc-web=1.78.0
expect build 2 "$quiet" "Rust $wanted or newer (there is no rustc). Rust for every system: https://rustup.rs"

machine "a release that has rustup"
program id 'echo 0'
program cc ''
apt rustc=1.75.0 rustup=1.26.0-5
reach=1.99.0 rustup_with
for tool in rustc cargo rustup; do
    cat "$m/bin/$tool" >"$m/new/$tool"
    rm "$m/bin/$tool"
done
expect build 0 "installs rustup with apt-get" "installs Rust stable" "runs stable rustc 1.99.0"

machine "apt-get that fails"
program id 'echo 0'
broken=1 apt $web
expect build 2 "E: Unable to fetch some archives" "missing: a C compiler"

machine "an old compiler that -web packages would replace"
program id 'echo 0'
program cc ''
toolchain . 1.63.0 'clippy fmt'
removes=rustc-web apt $web
expect build 2 "$quiet" "($m/bin/rustc is 1.63.0)" "rustc-web cargo-web would replace what is installed"

machine "an old -web compiler that would be upgraded"
program id 'echo 0'
program cc ''
toolchain . 1.85.0 'clippy fmt'
upgraded=rustc-web apt $web
expect build 2 "$quiet" "($m/bin/rustc is 1.85.0)" "would replace what is installed"

machine "no clippy, no rights"
program cc ''
toolchain . 1.96.0 fmt
apt $web
expect build 0 "runs  rustc 1.96.0" "not setup:"
expect test 2 "has no working 'cargo clippy'" "As root: apt-get install rustc-web cargo-web rustfmt-web rust-web-clippy"

machine "no rustfmt, as root"
program id 'echo 0'
program cc ''
toolchain . 1.96.0 clippy
apt $web
expect test 0 "has no working 'cargo fmt'" "rustfmt-web" "runs  rustc 1.96.0"

machine "no blktrace and fio, no rights"
program cc ''
toolchain . 1.96.0 'clippy fmt'
expect test 0 "tests against them skip" "runs"
extra=BLKLAB_SETUP_TOOLS=0 expect test 0 "not setup:" "runs"

machine "cargo's folder is not in PATH"
program cc ''
toolchain "$m/home/.cargo/bin" 1.95.0 'clippy fmt'
apt $web
expect test 0 "setup: uses Rust 1.95.0 in $m/home/.cargo/bin (there is no rustc)" "runs  rustc 1.95.0" "$quiet"

machine "an old compiler before a new one"
program cc ''
toolchain . 1.63.0 ''
toolchain "$m/home/.cargo/bin" 1.95.0 ''
expect build 0 "uses Rust 1.95.0 in $m/home/.cargo/bin ($m/bin/rustc is 1.63.0)" "runs  rustc 1.95.0"

machine "rustup without a toolchain, without a network"
program id 'echo 0'
program cc ''
rustup_with
removes=NOTHING apt $web
mkdir -p "$m/shims" && for tool in rustc cargo rustup; do
    cat "$m/bin/$tool" >"$m/shims/$tool" && chmod +x "$m/shims/$tool" && rm "$m/bin/$tool"
done
ln -s "$m/shims/rustup" "$m/bin/rustup"
expect build 0 "setup: installs Rust stable with clippy and rustfmt, as rustup's default" \
    "setup: rustup could not: error: no network" "installs rustc-web cargo-web with apt-get" "runs  rustc 1.96.0"

machine "rustup without a toolchain, nothing else"
program cc ''
rustup_with
expect build 2 "does not run: error: rustup could not choose a version of rustc" "error: no network" "missing: Rust $wanted"

machine "rustup without a toolchain"
program cc ''
reach=1.99.0 rustup_with
expect build 0 "installs Rust stable with clippy and rustfmt, as rustup's default" "rustup default stable" \
    "runs stable rustc 1.99.0"

machine "rustup with an old toolchain"
program cc ''
reach=$wanted.1 rustup_with stable=1.70.0
expect build 0 "installs Rust $wanted with clippy and rustfmt, beside rustup's others ($m/bin/rustc is 1.70.0)" \
    "runs $wanted rustc $wanted.1" "not rustup default"

machine "rustup with an old default and a newer one"
program cc ''
rustup_with stable=1.70.0 nightly=1.97.0-nightly
expect build 0 "uses rustup's toolchain nightly-x86_64-unknown-linux-gnu ($m/bin/rustc is 1.70.0)" "$quiet" "rustc 1.97.0"

machine "a C compiler without headers or libraries"
program cc 'exit 1'
toolchain . 1.96.0 ''
expect build 2 "missing: a C compiler"

machine "a home that cannot be written"
program cc ''
toolchain . 1.96.0 ''
extra=CARGO_HOME=$m/log/cargo expect build 2 "cargo cannot write to $m/log/cargo; set CARGO_HOME"
extra=CARGO_TARGET_DIR=$m/log/target expect build 2 "set CARGO_TARGET_DIR"

machine "the first build"
program cc ''
toolchain . 1.96.0 ''
extra=CARGO_TARGET_DIR=$m/fresh expect build 0 "setup: the first build takes" "runs"

echo "test-setup: $passed passed, $failed failed"
[ "$failed" = 0 ]
