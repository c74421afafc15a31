#!/bin/bash
# test_formats.sh: what is exported of random plans is read by parsers that are not
# ours: PyYAML, Python's json, tomllib and ast, jq, bash -n and shellcheck.
. "$(dirname "$0")/../usability/expect.sh"
random_exports=${BUILD:-build}/tests/record/random_exports
case $random_exports in
/*) ;;
*) random_exports=$root/$random_exports ;;
esac

# parsed TARGET VERSION ENDING...: there are such files, and all can be read
parsed() {
    local target=$1 version=$2 file files ending plans=$work/$1-$2 ok=0
    mkdir "$plans"
    "$random_exports" "$target" "$version" 20 "$plans"
    asked="files of $target $version"
    /usr/bin/python3 "$root/tests/exports/parse_exports.py" "$plans" >.out 2>.err
    verdict $? "a file cannot be parsed"
    for ending in "${@:3}"; do
        files=("$plans"/*/*"$ending")
        [ -e "${files[0]}" ]
        verdict $? "there is no file *$ending"
    done
    if ls "$plans"/*/*.json >.out 2>&1 && command -v jq >.err; then
        jq empty "$plans"/*/*.json >.out 2>.err
        verdict $? "jq cannot read a file"
    fi
    for file in "$plans"/*/*.sh; do
        [ ! -e "$file" ] || bash -n "$file" 2>>.err || ok=1
    done
    verdict $ok "bash -n refuses a file"
    if ls "$plans"/[0-4]/*.sh >.out 2>&1 && command -v shellcheck >.err; then
        shellcheck -s bash "$plans"/[0-4]/*.sh >.out 2>.err
        verdict $? "shellcheck has something to say"
    fi
}
parsed megatron core-0.8 .sh
parsed megatron - .sh
parsed megatron-bridge - .py
parsed deepspeed - .json .sh
parsed torchtitan 0.2 .toml
parsed torchtitan - .py
parsed accelerate 1.0 .yaml .sh
parsed accelerate - .yaml .json .sh
summary
