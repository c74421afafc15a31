/*
 * cublaslt_cuda.c: see cublaslt_cuda.h.  CUDA's libraries carry the major
 * version in their names; a newer minor one will do.
 */
#include "runtime/kernels_cuda/cublaslt_cuda.h"

#include <dlfcn.h>
#include <string.h>

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define LIBRARY "libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR)

/* A pointer to a function out of what dlsym() gives (POSIX allows it, C has
 * no cast for it). */
static fr_status look_up(void *library, const char *name, void *out,
                         fr_err *err)
{
    void *found = dlsym(library, name);

    if (found == NULL)
        return fr_fail(err, FR_FAILURE,
                       LIBRARY " has no %s; install the one of CUDA " TEXT_OF(
                           CUBLAS_VER_MAJOR) "." TEXT_OF(CUBLAS_VER_MINOR),
                       name);
    memcpy(out, &found, sizeof found);
    return FR_OK;
}

fr_status fr_cublaslt_load(fr_cublaslt *out, fr_err *err)
{
    fr_cublaslt loaded;
    /* Never closed: what it starts on a device outlives the last product. */
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

    if (library == NULL)
        return fr_fail(err, FR_FAILURE,
                       "cuBLASLt: %s; install it (libcublas), or point "
                       "LD_LIBRARY_PATH at it",
                       dlerror());
#define LOOK_UP(name) FR_TRY(look_up(library, #name, &loaded.name, err));
    FR_CUBLASLT_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    *out = loaded;
    return FR_OK;
}
