#!/bin/bash
# check_megatron.sh REPORT.json: 200 random plans for each checkout of
# Megatron-LM in MEGATRON_DIR (separated by ':'), by its own parser and checks
# (megatron_arguments.py).
set -euo pipefail
report=$1
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${MEGATRON_DIR:-}" ]; then
    echo "MEGATRON_DIR names no checkout of Megatron-LM"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
separator='{'
: >"$work/report"
for checkout in ${MEGATRON_DIR//:/ }; do
    info=$checkout/megatron/core/package_info.py
    version=core-$(sed -n 's/^MAJOR *= *//p' "$info").$(
        sed -n 's/^MINOR *= *//p' "$info")
    mkdir "$work/$version"
    "${BUILD:-$here/../../build}/tests/record/random_exports" megatron \
        "$version" "${PLANS:-200}" "$work/$version"
    echo "# $version"
    /usr/bin/python3 "$here/megatron_arguments.py" "$checkout" \
        "$work/$version" "$work/$version.json" 2>"$work/err" || status=1
    printf '%s"%s": ' "$separator" "$version" >>"$work/report"
    cat "$work/$version.json" >>"$work/report"
    separator=', '
done
echo '}' >>"$work/report"
mv "$work/report" "$report"
exit $status
