#!/bin/bash
# check_layers.sh: a floor includes itself and the floors that floors.txt lists
# for it; third-party headers are included in the named files alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
bad=0
# The table of CONTRIBUTING.md names the same floors in the same order.
diff <(echo "$floors") <(sed -n 's/^| \([a-z_]*\) | .*/\1/p' CONTRIBUTING.md |
    grep -xF "$floors") || bad=1
# shellcheck disable=SC2086
awk '
BEGIN {
    while ((getline row < "tests/lint/floors.txt") > 0)
        if (match(row, /^[a-z_]+:/)) {
            floor = substr(row, 1, RLENGTH - 1)
            sees[floor] = floor substr(row, RLENGTH + 1)
        }
    # header pattern -> files that may include it
    only["^libxml/"] = "^core/document/xml[a-z_]*\\.c$"
    only["^yaml"] = "^core/document/yaml\\.c$"
    only["cJSON"] = "^core/document/json\\.c$"
    only["^sqlite3"] = "^interop/trace/nsys_sqlite\\.c$"
    only["^microhttpd"] = "^cli/watch/metrics_microhttpd\\.c$"
    only["^zlib"] = "^core/stream/infile_zlib\\.c$"
    only["^gsl/"] = "^core/numbers/(rng|stats|fit[a-z_]*)\\.c$"
    only["^mpi\\.h$"] = "_mpi\\.c$"
    only["^(cuda|cublas|curand|nvml|nvrtc)"] = "(_cuda\\.[ch]|\\.cuh?)$"
    only["^nccl"] = "_nccl\\.c$"
    only["^(cblas|openblas|f77blas|lapacke)"] = "^(kernels|calibrate)/[a-z0-9_/]*_blas\\.c$"
    only["^oneapi/"] = "_dnnl\\.c$"
    only["^hwloc"] = "_hwloc\\.c$"
    # the C library and POSIX; omp.h belongs to the compiler
    system_headers = "^(assert|complex|ctype|dirent|dlfcn|errno|fcntl|fenv|ftw|" \
        "float|inttypes|limits|locale|math|omp|poll|pthread|regex|sched|" \
        "semaphore|setjmp|cpuid|signal|spawn|stdalign|stdarg|stdatomic|stdbool|" \
        "stddef|stdint|stdio|stdlib|stdnoreturn|string|strings|termios|" \
        "time|unistd|wchar|immintrin|malloc|netdb|ifaddrs|" \
        "(sys|linux|netinet|arpa|net)/[a-z0-9_]+)\\.h$"
}
function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    n_bad++
}
/^[ \t]*#[ \t]*include/ {
    split(FILENAME, path, "/")
    floor = path[1]
    if (match($0, /"[^"]*"/)) {
        header = substr($0, RSTART + 1, RLENGTH - 2)
        n = split(header, parts, "/")
        if (n == 1) {
            complain("include \"" floor "/" header "\": the path counts " \
                     "from the root of the tree")
        } else if (floor in sees &&
                   index(" " sees[floor] " ", " " parts[1] " ") == 0) {
            complain(floor "/ must not see " parts[1] "/ (" header ")")
        }
    } else if (match($0, /<[^>]*>/)) {
        header = substr($0, RSTART + 1, RLENGTH - 2)
        n_files++
        if (header ~ system_headers)
            next
        is_known = 0
        for (pattern in only) {
            if (header ~ pattern) {
                is_known = 1
                if (FILENAME !~ only[pattern] && floor in sees)
                    complain("<" header "> belongs into " only[pattern])
            }
        }
        if (!is_known && floor in sees)
            complain("<" header "> is no header this project uses")
    }
}
END { exit n_bad > 0 }
' $(find $floors bench tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cc' | sort) || bad=1
exit $bad
