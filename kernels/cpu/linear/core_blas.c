/* core_blas.c: see core_blas.h. */
#include "kernels/cpu/linear/core_blas.h"

#include "core/base/text.h"

#include <cblas.h>
#include <stddef.h>
#include <stdlib.h>

const char *fr_blas_core_better(const char *chosen)
{
#ifdef __x86_64__
    static const char *const without_avx2[] = {
        "Prescott",  "Core2",      "Penryn",       "Dunnington",
        "Nehalem",   "Atom",       "Nano",         "Opteron",
        "Barcelona", "Bobcat",     "Opteron_SSE3", "Sandybridge",
        "Bulldozer", "Piledriver", "Steamroller"};

    if (fr_text_find(chosen, without_avx2, FR_LENGTH(without_avx2)) < 0)
        return NULL;
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    (void)chosen;
    return NULL;
}

const char *fr_blas_core_instead(void)
{
    return getenv(FR_BLAS_CORE_ENV) != NULL
               ? NULL
               : fr_blas_core_better(openblas_get_corename());
}
