#!/bin/bash
# check_examples.sh [PAGE...]: examples print what the pages show (README.md).
# An example is an indented line "$ forerun ..." (a trailing \ continues it);
# the indented lines after it are the beginning of what it prints, on stdout
# and stderr.  A line "..." stands for any number of lines that are left out,
# a final " ..." for the rest of a line.  Blank lines do not count.  The
# examples of a page run one after the other in one folder that is thrown away,
# with tests/, configs/ and bench/ of the tree in it.
# <!-- not run: REASON --> before a block excludes it, up to the next line of
# text.  Examples have to take less than two seconds each.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
[ $# != 0 ] || set -- README.md
forerun=$(realpath -e "$build/forerun" 2>/dev/null) || {
    echo "$build/forerun is not built: no example was checked"
    exit 77
}
export LC_ALL=C.UTF-8 PATH=${forerun%/*}:$PATH
unset COLUMNS
for name in "${!FORERUN_@}"; do
    unset "$name"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0
complain() {
    echo "$*"
    bad=1
}

# Is what stands in the file $1 what the file $2 has?  Prints the first shown
# line that is not.
compare() {
    awk '
    # Does the line that was printed, s, match the one that is shown, t?
    function is_like(s, t) {
        if (t ~ / \.\.\.$/)
            return index(s, substr(t, 1, length(t) - 3)) == 1
        return s == t
    }
    { sub(/[ \t]+$/, "") }
    /^$/ { next }
    NR == FNR { shown[++n_shown] = $0; next }
    { printed[++n_printed] = $0 }
    END {
        at = 1
        may_skip = 0
        for (i = 1; i <= n_shown; i++) {
            if (shown[i] == "...") {
                may_skip = 1
                continue
            }
            while (may_skip && at <= n_printed && !is_like(printed[at], shown[i]))
                at++
            if (at > n_printed || !is_like(printed[at], shown[i])) {
                print "    shown:   " shown[i]
                print "    printed: " (at > n_printed ? "(no such line)" : printed[at])
                exit 1
            }
            at++
            may_skip = 0
        }
        if (!may_skip && at <= n_printed) {
            print "    shown:   (nothing more, not even ...)"
            print "    printed: " printed[at]
            exit 1
        }
    }' "$1" "$2"
}

run_example() { # PAGE LINE COMMAND FILE-WITH-WHAT-IS-SHOWN
    (cd "$scratch/tree" && timeout 60 bash -c "$3") >"$scratch/printed" 2>&1 \
        </dev/null
    # The note of a prediction without a profile is the same for every one.
    sed -i '/^forerun: no --profile: /d' "$scratch/printed"
    compare "$4" "$scratch/printed" >"$scratch/difference" || {
        complain "$1:$2: $3"
        cat "$scratch/difference"
    }
}

check_page() {
    local page=$1 line number=0 at=0 command='' is_run=1 is_open=0 n=0
    local shown=$scratch/shown
    rm -rf "$scratch/tree"
    mkdir "$scratch/tree"
    ln -s "$PWD"/{tests,configs,bench} "$scratch/tree"
    while IFS= read -r line || [ -n "$line" ]; do
        number=$((number + 1))
        if [ $is_open = 1 ]; then # a command that goes over several lines
            command=${command%\\}${line#    }
            [[ $line == *\\ ]] || is_open=0
            continue
        fi
        if [[ -n $command && ! ($line == "    "* && $line != '    $ '*) &&
            -n $line ]]; then
            run_example "$page" $at "$command" "$shown"
            n=$((n + 1))
            command=''
        fi
        case $line in
        '    $ forerun '*)
            [ $is_run = 1 ] || continue
            command=${line#'    $ '} at=$number
            [[ $line == *\\ ]] && is_open=1
            : >"$shown"
            ;;
        '    '*) [ -z "$command" ] || printf '%s\n' "${line#    }" >>"$shown" ;;
        '<!-- not run: '?*' -->') is_run=0 ;;
        '') ;;
        *) is_run=1 ;;
        esac
    done <"$page"
    [ -z "$command" ] || run_example "$page" $at "$command" "$shown"
    [ $n != 0 ] || complain "$page: shows no example that is run"
}

for page in "$@"; do
    check_page "$page"
done
exit $bad
