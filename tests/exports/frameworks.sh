# shellcheck shell=bash
# frameworks.sh: checkouts of the frameworks from clones of their repositories,
# which frameworks.tsv names.  Sourced by run.sh.

# The git directory of OWNER/NAME below a folder: a clone or a bare one that is
# called NAME, NAME.git, OWNER/NAME or OWNER+NAME; nothing where there is none.
git_dir_of() {
    local folder=$1 owner=${2%/*} name=${2#*/} base git
    for base in "$name" "$name.git" "$owner/$name" "$owner+$name"; do
        for git in "$folder/$base"{/.git,,/repo/.git,/repo}; do
            if [ -f "$git/HEAD" ] && [ -d "$git/objects" ]; then
                echo "$git"
                return
            fi
        done
    done
}

# checkout_of GIT_DIR NAME REF FOLDER PATH...: these paths of REF, extracted
# once; says where: the folder, or the file if PATH is one.
checkout_of() {
    local git=$1 label=$2-$3 ref=$3 folder=$4 commit
    commit=$(git --git-dir="$git" rev-parse -q --verify "$ref^{commit}") || {
        echo "no $ref in $git: git --git-dir=$git fetch --tags" >&2
        return 1
    }
    [ "$ref" != HEAD ] || label=$2-${commit:0:8}
    if [ ! -d "$folder/$label" ]; then
        rm -rf "$folder/$label.part"
        mkdir -p "$folder/$label.part"
        # Of a shallow or partial clone, archive complains of files nobody asks for.
        git --git-dir="$git" archive "$commit" "${@:5}" 2>/dev/null |
            tar -x -C "$folder/$label.part" 2>/dev/null || {
            echo "$ref cannot be read from $git: clone it anew" >&2
            return 1
        }
        mv "$folder/$label.part" "$folder/$label"
    fi
    label=$folder/$label
    [ ! -f "$label/$5" ] || label=$label/$5
    echo "$label"
}

# bring_frameworks REPOSITORIES FOLDER: sets each variable that the environment has
# not, from clones in REPOSITORIES; what is missing is said with its mend.
bring_frameworks() {
    local repositories=$1 folder=$2 variable repository refs paths git at found
    while IFS=$'\t' read -r variable repository refs paths; do
        case $variable in '#'*) continue ;; esac
        [ -z "${!variable:-}" ] || continue
        git=$(git_dir_of "$repositories" "$repository")
        if [ -z "$git" ]; then
            echo "missing $variable: git clone https://github.com/$repository" \
                "$repositories/${repository#*/}"
            continue
        fi
        found=
        for ref in $refs; do
            # shellcheck disable=SC2086
            at=$(checkout_of "$git" "${repository#*/}" "$ref" "$folder" $paths) &&
                found=$found${found:+:}$at
        done
        [ -z "$found" ] || export "$variable=$found"
    done <"$(dirname "${BASH_SOURCE[0]}")/frameworks.tsv"
}
