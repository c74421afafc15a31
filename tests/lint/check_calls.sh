#!/bin/bash
# check_calls.sh: below cli/ nothing prints to stdout or stderr, ends the
# process or changes the locale; nowhere a function that cannot be used safely.
set -u
cd "$(dirname "$0")/../.." || exit 1
below="core spec plan cost_models sim tuner runtime calibrate report"
bad=0

# Comments and strings are cut out, lines keep their numbers.
code() {
    gcc -fpreprocessed -dD -E -w "$1" 2>/dev/null |
        sed -E 's/"([^"\\]|\\.)*"/""/g'
}

search() { # FILE PATTERN WHY
    local hits
    hits=$(code "$1" | grep -E "(^|[^a-zA-Z0-9_])($2)[ ]*\(") || return 0
    while read -r hit; do
        echo "$1: $3: $hit"
    done <<<"$hits"
    bad=1
}

for file in $(find $below -name '*.c' | sort); do
    search "$file" 'exit|_Exit|quick_exit|abort' 'ends the process'
    search "$file" 'printf|vprintf|puts|putchar|perror' 'prints'
    search "$file" 'setlocale|srand|rand|random|drand48' 'has global state'
    if code "$file" | grep -qE '(^|[^a-zA-Z0-9_])(stdout|stderr)([^a-zA-Z0-9_]|$)'; then
        echo "$file: names stdout or stderr"
        bad=1
    fi
done
for file in $(find $below cli -name '*.c' | sort); do
    search "$file" 'gets|strcpy|strcat|sprintf|vsprintf|alloca|strtok|atoi|atof|atol|sscanf' \
        'cannot be used safely'
done
exit $bad
