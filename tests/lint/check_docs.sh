#!/bin/bash
# check_docs.sh: checks that the names in the docs exist: commands and options of
# forerun, targets of the Makefile, files, folders and C names of the tree, pages
# and headings that links go to; and that the files exist which sources and
# scripts name.
set -u
cd "$(dirname "$0")/../.." || exit 1
forerun=${BUILD:-build}/forerun
pages=(README.md CONTRIBUTING.md docs/*.md)
bad=0
complain() {
    echo "$*"
    bad=1
}

# ---- files: FLOOR/..., with the braces and stars of the shell ---------------
# Capital words (FLOOR, NAME, X) stand for any name; a path without an
# extension may also be that of a program under build/.
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt | paste -sd '|')
floors="$floors|bench|tests|configs|docs"
while IFS=: read -r page line path; do
    path=${path%%[.,]}
    case $path in
    *[A-Z]*) continue ;;
    docs/user-guide/*) continue ;; # Megatron-LM's
    esac
    found=0
    # Braces are expanded by eval, stars by the loop; the pattern of grep lets
    # nothing else through that a shell would run.
    eval "files=($path)"
    for file in "${files[@]}"; do
        for try in "$file" "$file".{c,h,cu}; do
            [ -e "$try" ] && found=1
        done
    done
    [ $found = 1 ] || complain "$page:$line: there is no $path"
done < <(grep -noE "(^|[^A-Za-z0-9_./-])($floors)/[A-Za-z0-9_./*{},-]+" \
    "${pages[@]}" | sed -E "s/^([^:]+:[0-9]+:)[^a-z]?/\1/; s/[).]+$//")

# ---- files that sources, scripts and the Makefile name -----------------------
# Only names with an ending of ours: others' files are quoted, too (.py, .rst).
while IFS=: read -r file line path; do
    case $path in *[A-Z]* | *_) continue ;; esac
    [ -e "$path" ] || complain "$file:$line: there is no $path"
done < <(git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.inc' '*.sh' Makefile \
    .ci/run tests/gpu/run tests/gpu/pack | grep -v '^tests/lint/check_docs' |
    xargs grep -noE "(^|[^A-Za-z0-9_./\$-])($floors)/[A-Za-z0-9_./-]+\.(c|h|cu|cuh|inc|sh)\b" |
    sed -E 's/^([^:]+:[0-9]+:)[^a-z]?/\1/')

# ---- names in C: fr_x, FR_X; a final * or _ stands for the rest ---------------
declare -A known
known_names=$(git ls-files '*.[ch]' '*.cu' '*.cuh' '*.inc' | xargs grep -ohwE \
    '(fr|FR)_[A-Za-z0-9_]+' | sort -u)
for name in $known_names; do
    known[$name]=1
done
while IFS=: read -r page line name; do
    case $name in
    *_X | *_X_*) continue ;; # stands for any name
    *_) grep -q "^$name" <<<"$known_names" && continue ;;
    *) [ -n "${known[$name]:-}" ] && continue ;;
    esac
    complain "$page:$line: the tree has no $name"
done < <(grep -noE '\b(fr|FR)_[A-Za-z0-9_]+' "${pages[@]}")

# ---- links: PAGE.md#heading --------------------------------------------------
declare -A anchors # of PAGE.md#heading, as GitHub makes them
while IFS= read -r anchor; do
    anchors[$anchor]=1
done < <(awk '/^#+ / {
    heading = tolower($0)
    sub(/^#+ /, "", heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    print FILENAME "#" heading
}' "${pages[@]}")
while IFS=: read -r page line link; do
    file=$page
    case ${link%%#*} in
    '') ;;
    ../*) file=${link%%#*} file=${file#../} ;; # from docs/, which has no folders
    *) file=${page%"${page##*/}"}${link%%#*} ;;
    esac
    if [ ! -e "$file" ]; then
        complain "$page:$line: link to $link, which does not exist"
    elif [[ $link == *"#"* && -z ${anchors[$file#${link#*#}]:-} ]]; then
        complain "$page:$line: no heading makes #${link#*#} in $file"
    fi
done < <(grep -noE '\]\([^)# ]*(#[^) ]*)?\)' "${pages[@]}" | grep -v '://' |
    sed -E 's/^([^:]+:[0-9]+):\]\((.*)\)$/\1:\2/')

# ---- targets of the Makefile -------------------------------------------------
targets=" $(grep -oE '^[a-z][a-z-]*:' Makefile | tr -d : | tr '\n' ' ')"
while IFS=: read -r page line target; do
    [[ $targets == *" ${target#make } "* ]] ||
        complain "$page:$line: the Makefile has no target ${target#make }"
done < <(grep -noE '(`|^    )make [a-z][a-z-]*' "${pages[@]}" |
    sed -E 's/:[` ]+make /:make /')

# ---- commands and options ----------------------------------------------------
[ -x "$forerun" ] || {
    echo "$forerun is not built: commands and options were not checked"
    exit $((bad ? 1 : 77))
}
help=$("$forerun" help --json)
commands=" $(grep -B1 '"summary"' <<<"$help" | sed -n \
    's/.*"name": "\(.*\)",/\1/p' | tr '\n' ' ')"
options=" $(sed -n 's/.*"name": "\(.*\)",/--\1/p' <<<"$help" | sort -u |
    tr '\n' ' ') --version "
while IFS=: read -r page line command; do
    [[ $commands == *" ${command#forerun } "* ]] ||
        complain "$page:$line: there is no command ${command#forerun }"
done < <(grep -noE '(`|^    (\$ )?)forerun [a-z][a-z-]*' "${pages[@]}" |
    sed -E 's/:[` $]+forerun /:forerun /')

# Options of other programs, as the docs quote them.
foreign=' --of --rehearse'                           # lstopo, tests/gpu/run
foreign="$foreign --env --workdir "                   # sky launch
foreign="$foreign --deepspeed "                       # training scripts
foreign="$foreign --delay-wgrad-compute "            # Megatron-LM
foreign="$foreign --overlap-moe-expert-parallel-comm --moe-layer-freq "
foreign="$foreign --init-model-with-meta-device --step-batch-size-schedule "
foreign="$foreign --save-interval --load --data-path --exit-duration-in-mins "
foreign="$foreign --time "                           # sbatch
while IFS=: read -r page line option; do
    bare=--${option#--no-}
    [[ $options == *" $option "* || $options == *" $bare "* ||
        $foreign == *" $option "* ]] ||
        complain "$page:$line: no command has the option $option"
done < <(grep -noE '(^|[^A-Za-z0-9_-])--[a-z][a-z0-9-]*' "${pages[@]}" |
    sed -E 's/^([^:]+:[0-9]+:)[^-]?/\1/')
exit $bad
