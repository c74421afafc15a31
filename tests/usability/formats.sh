#!/bin/bash
# formats.sh: every command answers in every format, on stdout and in the file
# of --report, which are the same to the byte.
. "$(dirname "$0")/expect.sh"
data=$root/tests/golden/fixtures
export FORERUN_BUDGET=0.1s FORERUN_QUIET=1
cp "$root/tests/golden/cases/flows-three"/three.* .
head -n 4 "$root/tests/validate/llm_steps.csv" >few.csv
forerun simulate gpt2-tiny this-machine --dp 1 --seq 32 --global-batch 2 \
    -o plan.json >/dev/null
forerun report trace plan.json this-machine -o trace.json
answered=

# A JSON object with a schema.
is_json() {
    [ "$(head -n 1 "$1")" = "{" ] && [ "$(grep -c . "$1")" -gt 2 ] &&
        sed -n 2p "$1" | grep -q '"schema": "forerun\.' &&
        [ "$(grep . "$1" | tail -n 1)" = "}" ]
}

# Under each heading, and until a blank line, rows of as many fields.
is_csv() {
    awk '{ text = text $0 "\n" }
        END {
            gsub(/"([^"]|"")*"/, "quoted", text)
            n = split(text, row, "\n")
            for (i = 1; i < n; i++) {
                n_fields = split(row[i], unused, ",")
                if (row[i] == "") { width = 0; continue }
                if (width == 0) width = n_fields
                if (n_fields != width) exit 1
            }
            exit text == ""
        }' "$1"
}

# Rows of a table have as many cells as its heading; no line has an end of
# blanks.
is_markdown() {
    awk '/^```/ { is_code = !is_code }
        is_code { next }
        / $/ { exit 1 }
        !/^\|/ { width = 0; next }
        {
            gsub(/\\\|/, "")
            n = gsub(/\|/, "|")
            if (width == 0) width = n
            if (n != width) exit 1
        }' "$1" && [ -s "$1" ]
}

is_text() { [ -s "$1" ]; }

# answers COMMAND...: in each format, with a status of 0, or 4 where something
# that it checks is missing
answers() {
    local format ending
    answered+="$1"$'\n'
    for format in text json csv markdown; do
        case $format in
        text) ending=txt ;;
        markdown) ending=md ;;
        *) ending=$format ;;
        esac
        rm -f "report.$ending"
        asked="forerun $* --format $format"
        timeout 120 forerun "$@" --format "$format" --report "report.$ending" \
            >.out 2>.err </dev/null
        status=$?
        [ "$status" = 0 ] || [ "$status" = 4 ]
        verdict $? "ends with $status"
        "is_$format" .out
        verdict $? "is not $format"
        cmp -s .out "report.$ending"
        verdict $? "--report report.$ending is not what stdout is"
    done
}

two=(gpt2-124m two-hosts-1gbit --global-batch 8 --seq 256)
answers simulate "${two[@]}" --dp 2 --gantt
answers tune "${two[@]}"
answers sweep "${two[@]}" --fixed --vary nodes=1,2
answers explain "${two[@]}" --dp 2
answers goodput plan.json dgx-h100:2 --runs 10 --for-days 2
answers goodput plan.json this-machine --steps 40 --inject kill:rank=0@30
answers run plan.json --steps 2
forerun run plan.json --steps 2 --checkpoint kept >/dev/null
answers checkpoint inspect kept
answers checkpoint verify kept
answers compare plan.json plan.json
answers compare trace.json trace.json
answers validate few.csv
answers validate few.csv --rows --shots 0,1 --draws 2
answers validate few.csv --explain-row "$(
    forerun validate few.csv --json | sed -n 's/.*"id": "\(.*\)",/\1/p' | head -n 1
)"
answers collective all_reduce 1MB..4MB dgx-h100:2
answers flows three.xml three.csv
answers catalog
answers catalog targets megatron
answers catalog --template rail
answers doctor
answers calibrate --runs few.csv -o stack.json
answers import hwloc "$data/import/machine.xml"
answers import log "$data/log/megatron.log"
answers import kineto "$data/trace/kineto_rank0.json.gz"
answers import memory-snapshot "$data/trace/snapshot.json"
answers export plan.json --to megatron
answers report check-trace trace.json
answers help
answers help terms
answers help bubble
answers version
answers completions bash

asked="formats of commands"
for command in $(forerun help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort -u); do
    grep -qx "$command" <<<"$answered"
    verdict $? "forerun $command has no row in formats.sh"
done
summary
