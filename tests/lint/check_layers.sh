#!/bin/bash
# check_layers.sh: who may include whom.  A floor sees itself and what stands
# beside it here; third-party headers are met in the named files alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
awk '
BEGIN {
    sees["core"] = "core"
    sees["spec"] = "core spec"
    sees["plan"] = "core spec plan"
    sees["cost_models"] = "core spec plan cost_models"
    sees["sim"] = "core spec plan cost_models sim"
    sees["tuner"] = "core spec plan cost_models sim tuner"
    sees["runtime"] = "core spec plan runtime"
    sees["calibrate"] = "core spec plan cost_models runtime calibrate"
    sees["interop"] = "core spec plan cost_models sim interop"
    sees["report"] = "core spec plan report"
    sees["cli"] = "core spec plan cost_models sim tuner runtime calibrate " \
                  "interop report cli"
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
    only["^(cblas|openblas|f77blas|lapacke)"] = "^(runtime|calibrate)/[a-z0-9_/]*_blas\\.c$"
    only["^oneapi/"] = "_dnnl\\.c$"
    only["^hwloc"] = "_hwloc\\.c$"
    # the C library and POSIX; omp.h belongs to the compiler
    system_headers = "^(assert|complex|ctype|dirent|dlfcn|errno|fcntl|fenv|ftw|" \
        "float|inttypes|limits|locale|math|omp|poll|pthread|sched|" \
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
' $(find core spec plan cost_models sim tuner runtime calibrate interop report cli \
    bench tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.cc' | sort)
