#!/bin/sh
# setup.sh [build|demo|check|ci]: installs the Debian packages that are missing.
#
# Does nothing, and needs no network, when nothing is missing.  Where the user
# is neither root nor allowed to sudo without a password it prints the line to
# run and fails.  Called by `make demo`, `make check` and .ci/run.
set -eu

build="gcc libc6-dev make pkg-config libgsl-dev libxml2-dev libcjson-dev
    libopenblas-openmp-dev libdnnl-dev libopenmpi-dev openmpi-bin libhwloc-dev
    zlib1g-dev libsqlite3-dev libyaml-dev libmicrohttpd-dev"
demo="$build"
check="$build iproute2 sqlite3"
ci="$check python3-torch clang clang-tidy libclang-rt-dev libomp-dev valgrind"

case "${1:-build}" in
build) wanted=$build ;;
demo) wanted=$demo ;;
check) wanted=$check ;;
ci) wanted=$ci ;;
*)
    echo "usage: setup.sh [build|demo|check|ci]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
    echo "setup.sh: this is no Debian system, nothing was installed;" \
        "forerun needs what these packages hold:" $wanted >&2
    exit 0
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted \
    2>/dev/null | sed -n 's/^installed //p')
missing=
for package in $wanted; do
    case "
$installed
" in
    *"
$package
"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    as=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as="sudo -n"
else
    echo "setup.sh: packages are missing; run this as root, then try again:" >&2
    echo "    apt-get update && $line" >&2
    exit 1
fi

echo "setup.sh: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The lists may be fresh already; update only when the packages are not found.
if ! $as $line >"$log" 2>&1; then
    $as apt-get update >>"$log" 2>&1 || true
    if ! $as $line >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "setup.sh: this failed: $line" >&2
        exit 1
    fi
fi
