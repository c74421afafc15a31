#!/bin/bash
# check_figures.sh: docs/validation.md prints the figures of the visible rows as
# `make validate` reached them (tests/validate/reached_means.tsv), correctly
# rounded; these means follow from the errors of the rows (reached.tsv); each
# source was left out of one stack prior; and README.md, which names the most
# important figures in a sentence, agrees with docs/validation.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
rows=tests/validate/reached.tsv
means=tests/validate/reached_means.tsv
prior=cost_models/stack/stack_prior.inc
bad=0
complain() {
    echo "$*"
    bad=1
}

# ---- the means follow from the rows -----------------------------------------
# Errors in reached.tsv have four digits behind the point.
awk -F '\t' -v tolerance=0.00006 '
    function size(x) { return x < 0 ? -x : x }
    function check(key, value) {
        if (!(key in mean) || size(mean[key] - value) > tolerance) {
            printf "%s: %s is %s, the rows of reached.tsv give %.5f\n",
                   FILENAME, key, mean[key], value
            bad = 1
        }
    }
    function median(list, n,    i, k, swap) {
        for (i = 2; i <= n; i++)
            for (k = i; k > 1 && list[k - 1] > list[k]; k--) {
                swap = list[k]; list[k] = list[k - 1]; list[k - 1] = swap
            }
        return (list[int((n + 1) / 2)] + list[int((n + 2) / 2)]) / 2
    }
    NR == FNR {
        mean[$1] = $2
        n_scored += $1 ~ /^by_source\..*\.scored$/ && $2 > 0
        next
    }
    {
        n[$1]++
        ape[$1] += size($3)
        err[$1] += $3
        apes[++n_rows] = size($3)
    }
    END {
        for (source in n) {
            n_sources++
            check("by_source." source ".scored", n[source])
            check("by_source." source ".mape", ape[source] / n[source])
            check("by_source." source ".bias", err[source] / n[source])
            macro_mape += ape[source] / n[source]
            macro_bias += err[source] / n[source]
            mape += ape[source]
            bias += err[source]
        }
        if (n_sources != n_scored) {
            print FILENAME ": " n_sources " sources, not " n_scored
            bad = 1
        }
        check("scored", n_rows)
        check("macro_mape", macro_mape / n_sources)
        check("macro_bias", macro_bias / n_sources)
        check("mape", mape / n_rows)
        check("bias", bias / n_rows)
        check("median_ape", median(apes, n_rows))
        exit bad
    }' "$means" "$rows" || bad=1

# ---- sources ----------------------------------------------------------------
# The rounds of MLPerf are one source, in the table and in what is scored.
n_mlperf=$(sed 1d tests/validate/mlperf_llm_steps.csv | cut -d, -f1 |
    sort -u | wc -l)
[ "$n_mlperf" = 1 ] ||
    complain "tests/validate/mlperf_llm_steps.csv: $n_mlperf sources, not one"
[ "$(cut -f1 $rows | sort -u | grep -c MLPerf)" = 1 ] ||
    complain "$rows: MLPerf is not one source"
diff <(cut -f1 $rows | sort -u) <(sed -n 's/^{"\(..*\)",$/\1/p' $prior | sort) ||
    complain "$prior: its sources (>) are not those of $rows (<): make fit-stack"

# ---- the pages print these figures ------------------------------------------
# {KEY}: a number; {KEY %}: a percentage; {+KEY %}: one with its sign.
fill() {
    awk -F '\t' -v text="$1" '
        { value[$1] = $2 }
        END {
            while (match(text, /\{[^}]*\}/)) {
                key = substr(text, RSTART + 1, RLENGTH - 2)
                format = "%d"
                if (sub(/ %$/, "", key))
                    format = sub(/^\+/, "", key) ? "%+.1f %%" : "%.1f %%"
                number = !(key in value) ? "(no " key ")" : \
                    sprintf(format, (format == "%d" ? 1 : 100) * value[key])
                text = substr(text, 1, RSTART - 1) number \
                       substr(text, RSTART + RLENGTH)
            }
            print text
        }' $means
}
page_has() { # PAGE TEMPLATE
    local line
    line=$(fill "$2")
    grep -qxF -- "$line" "$1" || complain "$1: no line says: $line"
}

page=docs/validation.md
while IFS= read -r source; do
    k="by_source.$source."
    page_has $page "| $source | {${k}scored} | {${k}mape %} |\
 {${k}median_ape %} | {${k}worst_ape %} | {+${k}bias %} |\
 {${k}concordance %} | {${k}coverage_90 %} |"
done < <(cut -f1 $rows | sort -u)
for k in 0 1 3 10; do
    at=shots.$k.
    page_has $page "| $k | {${at}sources} | {${at}macro_mape %} |\
 {+${at}macro_bias %} | {${at}macro_coverage_90 %} | {${at}macro_half_width %} |"
done
while IFS= read -r line; do
    page_has $page "$line"
done <<'LINES'
| all | {scored} | {mape %} | {median_ape %} | {worst_ape %} | {+bias %} | {concordance %} | {coverage_90 %} |
| Megatron-LM golden values | {by_source.Megatron-LM golden values.memory_scored} | {by_source.Megatron-LM golden values.memory_mape %} | {+by_source.Megatron-LM golden values.memory_bias %} |
| all | {memory.scored} | {memory.mape %} | {+memory.bias %} |
| step time: MAPE over rows | {mape %} | 10 % |
| mean over {shots.0.sources} sources | {macro_mape %} | 12 % |
| the same if every step ran at 40 % of the peak; at the share of the peak that the other sources reach | {flat_mfu_macro_mape %}; {others_mfu_macro_mape %} | |
| rows of 512 GPUs and more ({large_scored}); of mixtures of experts ({experts_scored}) | {large_mape %}; {experts_mape %} | |
| median row | {median_ape %} | 6 % |
| bias: over rows, over sources | {+bias %}, {+macro_bias %} | within 5 % |
| pairs of one source ranked right ({pairs} that differ by more than 5 %) | {concordance %} | 88 % |
| 90 % interval covers | {coverage_90 %} | 85 to 97 % |
| the same, mean over sources; mean half-width | {macro_coverage_90 %}; {macro_half_width %} | 85 to 95 % |
| median half-width | {half_width_median %} | 15 % |
| the same, each source scaled by the factor of the others | {coverage_90_scaled %} inside, {half_width_median_scaled %} wide | |
| memory: MAPE over rows, over sources | {memory.mape %}, {memory.macro_mape %} | 8 %, 10 % |
LINES

# ---- README.md says the same in its first paragraphs --------------------------
# A cell of a table of docs/validation.md; its columns are counted from 2.
cell() { # BEGINNING-OF-ROW COLUMN
    awk -F ' *[|] *' -v row="$1" -v column="$2" '
        index($0, row) == 1 { text = $column; n++ }
        END { print n == 1 ? text : "(" n + 0 " rows: " row ")" }' $page
}
readme=$(tr -s '\n ' '  ' <README.md)
readme_has() {
    [[ $readme == *"$1"* ]] || complain "README.md: no sentence says: $1"
}
sources='| 11 sources, none of their steps measured'
after='| the same after one measured step of the source; after three'
users=$(cell '| reports of ordinary users' 4)
slower=${users#*; } slower=${slower%% predicted*}
readme_has "is off by $(cell "| NVIDIA's DGX Cloud tables" 4) (NVIDIA's DGX Cloud\
 tables) and by $(cell "$sources" 4 | sed 's/,.*//') (11 published sources)"
readme_has "$(cell "$after" 4 | sed 's/;.*//') after one measured step of the\
 source and $(cell "$after" 4 | sed 's/.*; //') after three"
readme_has "ordinary users are off by ${users%;*}, ${slower/ the / } of them slower\
 than predicted"
readme_has "$(cell '| share of them inside the "90 %" interval' 4) of the unseen\
 steps lie inside the \"90 %\" interval"
visible='On the {scored} published steps that forerun was developed with, the'
readme_has "$(fill "$visible error is {mape %}"), on CPUs\
 $(cell '| step time, mean absolute error |' 3), on one H200\
 $(cell '| error of the step, mean: from published kernels' 3 | sed 's/;.*//')"
exit $bad
