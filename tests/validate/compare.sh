#!/bin/sh
# compare.sh RESULT.json: the scored rows of a validation against
# tests/validate/reached.tsv, the result that was committed last.  Prints the
# rows whose error changed by half a point and more, the sources whose mean did,
# and the means that changed by a twentieth of a point; exit code 4 where a
# source's mean got worse by more than two points.
# UPDATE=1 writes reached.tsv anew, and reached_means.tsv with the means of the
# same result, which README.md and docs/validation.md print
# (tests/lint/check_figures.sh): review the diff.
set -eu
reached="$(dirname "$0")/reached.tsv"
means="$(dirname "$0")/reached_means.tsv"
now=$(mktemp)
trap 'rm -f "$now"' EXIT
# A number of the result per line, after its path.  The indentation of a
# line says how deep its key lies.
means_of() {
    awk -F '"' '
        $2 == "skipped" { exit }
        {
            depth = match($0, /[^ ]/) - 1
            value = $3
            gsub(/[ :,]/, "", value)
        }
        depth == 2 {
            section = value ~ /^[[{]/ ? $2 : ""
            path = section == "" ? "" : section "."
        }
        section == "shots" && depth == 6 && $2 == "k" {
            path = "shots." value "."
        }
        section == "by_source" && depth == 4 { path = "by_source." $2 "." }
        value ~ /^-?[0-9]/ &&
            depth == (section == "" ? 2 : section == "memory" ? 4 : 6) {
            printf "%s%s\t%.6g\n", path, $2, value
        }' "$1"
}

# Steps have measured_s, memory's rows measured_bytes; what is not scored
# comes last.
awk -F '"' '
    $2 == "unscored" { exit }
    $2 == "id" { id = $4; is_step = 0 }
    $2 == "source" { source = $4 }
    $2 == "measured_s" { is_step = 1 }
    $2 == "rel_err" && is_step {
        value = $3
        gsub(/[ :,]/, "", value)
        printf "%s\t%s\t%.4f\n", source, id, value
    }' "$1" | LC_ALL=C sort >"$now"
if [ "${UPDATE:-}" = 1 ]; then
    cp "$now" "$reached"
    means_of "$1" >"$means"
    exit 0
fi
means_of "$1" | awk -F '\t' '
    NR == FNR { before[$1] = $2; next }
    $1 in before && $1 !~ /^by_source/ {
        change = $2 - before[$1]
        if (change >= 0.0005 || change <= -0.0005)
            printf "%s is %g, was %g: README.md or docs/validation.md may "\
                   "print it\n", $1, $2, before[$1]
    }' "$means" -
awk -F '\t' '
    function size(x) { return x < 0 ? -x : x }
    NR == FNR { before[$1 FS $2] = $3; next }
    !(($1 FS $2) in before) { n_new++; next }
    {
        old = before[$1 FS $2]
        n_seen++
        n[$1]++
        was[$1] += size(old)
        is[$1] += size($3)
        if (size($3 - old) >= 0.005) {
            if (n_changed++ < 30)
                printf "%-30.30s  %-44.44s %+7.1f %% -> %+.1f %%\n", $1, $2,
                       100 * old, 100 * $3
        }
    }
    END {
        for (key in before)
            n_before++
        printf "%d rows, %d of them changed by half a point and more, ",
               n_seen, n_changed
        printf "%d new, %d gone\n", n_new, n_before - n_seen
        for (source in n) {
            a = 100 * was[source] / n[source]
            b = 100 * is[source] / n[source]
            if (size(b - a) < 0.5)
                continue
            printf "%-36.36s mean error %5.1f %% -> %.1f %%%s\n", source, a, b,
                   (b > a + 2 ? "  worse" : "")
            if (b > a + 2)
                is_worse = 1
        }
        exit is_worse ? 4 : 0
    }' "$reached" "$now"
