# shellcheck shell=bash
# each_checkout.sh: random plans for checkouts of a framework.  Sourced.

# each_checkout TARGET CHECKOUTS REPORT.json CHECK.py MODEL...: gives 200 random
# plans of each checkout (separated by ':'), for what `version_of CHECKOUT` says
# it is, to CHECK.py CHECKOUT FOLDER REPORT; exit 77 where there are none.
each_checkout() {
    local target=$1 checkouts=$2 report=$3 check=$4 checkout version
    local status=0 separator='{' work
    if [ -z "$checkouts" ]; then
        echo "no checkout of $target (tests/exports/README.md)"
        exit 77
    fi
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    : >"$work/report"
    for checkout in ${checkouts//:/ }; do
        version=$(version_of "$checkout")
        rm -rf "$work/plans"
        mkdir "$work/plans"
        "${BUILD:-$here/../../build}/tests/record/random_exports" "$target" \
            "$version" "${PLANS:-200}" "$work/plans" "${@:5}"
        echo "# $target $version (${checkout##*/})"
        "${PYTHON:-/usr/bin/python3}" "$here/$check" "$checkout" "$work/plans" \
            "$work/one.json" 2>"$work/err" || { status=1; tail -5 "$work/err"; }
        printf '%s"%s": ' "$separator" "${checkout##*/}" >>"$work/report"
        cat "$work/one.json" >>"$work/report"
        separator=', '
    done
    echo '}' >>"$work/report"
    mv "$work/report" "$report"
    exit $status
}
