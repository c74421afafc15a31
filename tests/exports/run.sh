#!/bin/bash
# run.sh: what the frameworks themselves say of plans that are exported to them
# (make check-exports).  Each check_NAME.sh is given the file that its report, a
# JSON object, goes to, with forerun in the path; exit 77: what it needs is not
# here.  README.md says what each needs.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
PATH=$build:$PATH
export PATH LC_ALL=C.UTF-8
reports=$build/exports
rm -rf "$reports"
mkdir -p "$reports"
n_failed=0
for script in tests/exports/check_*.sh; do
    name=${script##*/check_}
    name=${name%.sh}
    "$script" "$reports/$name.json" </dev/null
    status=$?
    case $status in
    0) echo "ok   $name" ;;
    77) echo "skip $name" ;;
    *)
        echo "FAIL $name"
        n_failed=$((n_failed + 1))
        ;;
    esac
done
{
    printf '{"schema": "forerun.exports/1"'
    for report in "$reports"/*.json; do
        [ -e "$report" ] || continue
        name=${report##*/}
        printf ', "%s": ' "${name%.json}"
        cat "$report"
    done
    printf '}\n'
} >"$build/exports.json"
[ $n_failed = 0 ]
