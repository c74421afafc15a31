#!/bin/bash
# check_calls.sh: below cli/ nothing prints to stdout or stderr, ends the
# process or keeps hidden state; the process is changed (environment, signals,
# other programs) by cli/ and runtime/launch/ alone, and the floors of the
# library do not read the environment; nowhere a function that cannot be used
# safely.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
below=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt | grep -vx cli)
awk '
# Takes comments and the insides of strings and characters out of a line.
function code(line,    out, i, c, two) {
    out = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (two == "//") {
            break
        } else if (c == "\"" || c == "\047") {
            quote = c
            for (i++; i <= length(line); i++) {
                c = substr(line, i, 1)
                if (c == "\\")
                    i++
                else if (c == quote)
                    break
            }
            out = out " "
        } else {
            out = out c
        }
    }
    return out
}
function calls(text, names) {
    return text ~ ("(^|[^a-zA-Z0-9_.>])(" names ")[ ]*\\(")
}
function complain(why) {
    sub(/^ +/, "", $0)
    printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0
    n_bad++
}
BEGIN {
    # NCCL and CUDA take these settings from the environment alone.
    changes["runtime/gpu_comm/gpu_driver_nccl.c"] = 1
    changes["runtime/gpu/gpu_driver_cuda.c"] = 1
    changes["runtime/hosts/host_probe.c"] = 1 # starts remote shells
}
FNR == 1 { in_comment = 0; is_cli = FILENAME ~ /^cli\// }
{
    text = code($0)
    if (calls(text, "gets|strcpy|strcat|sprintf|vsprintf|alloca|strtok|" \
                    "atoi|atof|atol|sscanf"))
        complain("cannot be used safely")
    if (is_cli)
        next
    if (calls(text, "exit|_Exit|quick_exit|abort"))
        complain("ends the process")
    if (calls(text, "printf|vprintf|puts|putchar|perror") ||
        text ~ /(^|[^a-zA-Z0-9_])(stdout|stderr)([^a-zA-Z0-9_]|$)/)
        complain("prints")
    if (calls(text, "setlocale|srand|rand|random|drand48"))
        complain("has hidden state")
    if (calls(text, "setenv|unsetenv|putenv|exec[lv]p?e?|fork|posix_spawnp?|" \
                    "signal|sigaction|system|popen") &&
        FILENAME !~ /^runtime\/launch\// && !(FILENAME in changes))
        complain("changes the process")
    if (calls(text, "getenv|secure_getenv") &&
        FILENAME !~ /^(kernels|runtime|calibrate)\//)
        complain("reads the environment")
}
END { exit n_bad > 0 }
' $(find $below cli -name '*.c' | sort) || bad=1

# What is not about the command line takes a request (api/request/request.h).
n=$(find cli -name '*.[ch]' ! -path 'cli/command/*' ! -path 'cli/option/*' -exec cat {} + |
    grep -c 'fr_cli \*')
if [ "$n" -gt 60 ]; then
    echo "cli/ has $n parameters of type fr_cli outside command/ and option/; 60 are the limit"
    bad=1
fi
exit $bad
