#!/bin/bash
# run.sh: what the frameworks themselves say of plans that are exported to them
# (make check-exports REPOSITORIES=FOLDER).  Clones of the frameworks lie in FOLDER
# (frameworks.tsv), or the environment names checkouts (README.md).  Each
# check_NAME.sh is given the file that its report, a JSON object, goes to, with forerun
# in the path; exit 77: what it needs is not here.  Ends with 77 where none is.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
PATH=$build:$PATH
export PATH LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
# shellcheck source=tests/exports/frameworks.sh
. tests/exports/frameworks.sh
bring_frameworks "${REPOSITORIES:-$build/repositories}" "$build/frameworks"
reports=$build/exports
rm -rf "$reports"
mkdir -p "$reports"
n_passed=0 n_failed=0 n_skipped=0
for script in tests/exports/check_*.sh; do
    name=${script##*/check_}
    name=${name%.sh}
    began_s=$SECONDS
    "$script" "$reports/$name.json" </dev/null
    status=$?
    case $status in
    0) word=ok n_passed=$((n_passed + 1)) ;;
    77) word=skip n_skipped=$((n_skipped + 1)) ;;
    *) word=FAIL n_failed=$((n_failed + 1)) ;;
    esac
    printf '%-4s %s (%d s)\n' $word "$name" $((SECONDS - began_s))
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
echo "# $n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed = 0 ] || exit 1
[ $n_passed != 0 ] || exit 77
