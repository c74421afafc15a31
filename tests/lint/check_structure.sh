#!/bin/bash
# check_structure.sh: what keeps the tree readable and no compiler checks.
#   - a folder has at most 25 files, a header at most 250 lines;
#   - a public type or constant is defined once;
#   - fr_plan holds decisions: at most 46 members beside `execution`, where what
#     a framework does by itself belongs;
#   - an external function is called from another file, or it is static;
#   - no more than three files depend on each other in a circle.
# The last two read the symbols of the built library.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
bad=0
complain() {
    echo "$*"
    bad=1
}

# Folders and headers.
# shellcheck disable=SC2086
large=$(find $floors bench tests/unit tests/contract -type f -printf '%h\n' |
    sort | uniq -c | awk '$1 > 25 { print $2 ": " $1 " files, 25 are the limit" }')
[ -z "$large" ] || complain "$large"
# shellcheck disable=SC2086
long=$(find $floors \( -name '*.h' -o -name '*.cuh' \) -print0 | sort -z |
    xargs -0 awk 'FNR == 251 { print FILENAME ": more than 250 lines" }')
[ -z "$long" ] || complain "$long"

# Types and constants: the same tag, typedef or enumerator in two files.
# shellcheck disable=SC2086
twice=$(find $floors \( -name '*.[ch]' -o -name '*.cuh' \) -print0 | xargs -0 awk '
    /^typedef (struct|enum|union) fr_[a-z0-9_]+ \{/ { print $3, FILENAME }
    /^(struct|enum|union) fr_[a-z0-9_]+ \{/ { print $2, FILENAME }
    ' | sort -u | awk '
    { if ($1 == name) print $1 ": defined in " file " and in " $2
      name = $1; file = $2 }')
[ -z "$twice" ] || complain "$twice"

# Members of a plan, but for what executes it.
crowd=$(sed -n '/^typedef struct fr_plan {/,/^} fr_plan;/p' \
    plan/decide/plan.h | sed '1d;$d' | tr '\n' ' ' |
    sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' | tr ';,' '\n\n' | awk '
    NF > 0 && $NF != "execution" { n++ }
    END { if (n > 46 || n < 2)
              print "plan/decide/plan.h: fr_plan has " n " members beside " \
                  "execution, 46 are the limit; a fact of how a framework " \
                  "executes belongs to fr_execution" }')
[ -z "$crowd" ] || complain "$crowd"

[ -e "$build/libforerun.a" ] && [ -e "$build/cli/main.o" ] || {
    echo "$build/libforerun.a is not built: symbols were not checked"
    exit $((bad ? 1 : 77))
}
if objdump -t "$build/libforerun.a" | grep -q '__asan\|__ubsan'; then
    exit $bad # a sanitizer adds its own symbols
fi

symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
# FILE KIND NAME, from the object of every product file.
# shellcheck disable=SC2086
find $floors \( -name '*.c' -o -name '*.cu' \) | sort |
    sed "s|^|$build/|; s|\.c\$|.o|; s|\.cu\$|.cu.o|" |
    while read -r object; do
        [ ! -e "$object" ] || printf '%s\0' "$object"
    done | xargs -0 nm -A | awk -v build="$build/" '{
        file = substr($1, length(build) + 1)
        sub(/:.*/, "", file)
        if (sub(/\.cu\.o$/, ".cu", file) == 0)
            sub(/\.o$/, ".c", file)
        if ($2 == "U")
            print file, "uses", $3
        else if ($2 ~ /[TDRBC]/)
            print file, "has", $3
    }' >"$symbols"

# Nobody calls it: no other file of the product and no benchmark.  What a test
# calls stays if its own file calls it too, or if it reads text where the product
# reads files (a *_parse, which fuzzing needs); what tests alone call does not.
callers() { # FOLDER ...: the undefined symbols of their objects
    find "$@" -name '*.o' -print0 2>/dev/null | xargs -0 -r nm 2>/dev/null |
        awk 'NF == 2 && $1 == "U" { print $2 }' | sort -u
}
unused=$(awk '
    FILENAME == "/dev/fd/3" { used[$1]; next }
    FILENAME == "/dev/fd/4" { tested[$1]; next }
    $2 == "uses" { used[$3] }
    $2 == "has" && $3 ~ /^[a-z]/ { where[$3] = $1 }
    END {
        for (name in where) {
            # NCCL looks its plugin up by name; nvcc registers kernels.
            if (name in used || name == "main" || where[name] ~ /\.cu$/ ||
                name ~ /^(ncclTunerPlugin|__|fr_cluster_xsd)/)
                continue
            print where[name], name, name in tested
        }
    }' /dev/fd/3 /dev/fd/4 "$symbols" 3< <(callers "$build/bench") \
    4< <(callers "$build/tests" "$build/emulated/tests") | sort |
    while read -r file name is_tested; do
        n=$(grep -cE "(^|[^a-z0-9_])$name([^a-z0-9_]|$)" "$file")
        [ "$is_tested" = 1 ] && [ "$n" -gt 1 ] && continue
        [ "$is_tested" = 1 ] && [ "${name%_parse}" != "$name" ] && continue
        if [ "$is_tested" = 1 ]; then
            echo "$file: only tests call $name"
        elif [ "$n" -gt 1 ]; then
            echo "$file: $name could be static"
        else
            echo "$file: nobody calls $name"
        fi
    done)
[ -z "$unused" ] || complain "$unused"

# Circles: sets of files that reach each other, by their calls (Tarjan's
# strongly connected components, SIAM J. Comput. 1(2), 1972).
circles=$(awk '
    $2 == "has" { owner[$3] = $1 }
    $2 == "uses" { use_file[++n_uses] = $1; use_name[n_uses] = $3 }
    function visit(v,    k, w, n, members) {
        index_of[v] = low[v] = ++counter
        stack[++top] = v
        on_stack[v] = 1
        for (k = 1; k <= n_edges[v]; k++) {
            w = edge[v, k]
            if (!(w in index_of)) {
                visit(w)
                if (low[w] < low[v]) low[v] = low[w]
            } else if (on_stack[w] && index_of[w] < low[v])
                low[v] = index_of[w]
        }
        if (low[v] != index_of[v]) return
        do {
            w = stack[top--]
            on_stack[w] = 0
            members = members " " w
            n++
        } while (w != v)
        if (n > 3)
            print n " files in a circle:" members
    }
    END {
        for (i = 1; i <= n_uses; i++) {
            a = use_file[i]
            b = owner[use_name[i]]
            if (b != "" && a != b && !((a, b) in seen)) {
                seen[a, b]
                edge[a, ++n_edges[a]] = b
                nodes[a]; nodes[b]
            }
        }
        for (v in nodes) if (!(v in index_of)) visit(v)
    }' "$symbols")
[ -z "$circles" ] || complain "$circles"
exit $bad
