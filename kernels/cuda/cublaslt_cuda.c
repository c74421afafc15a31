/*
 * cublaslt_cuda.c: see cublaslt_cuda.h.  CUDA's libraries carry the major
 * version in their names; a newer minor one will do.
 */
#include "kernels/cuda/cublaslt_cuda.h"

#include "core/system/shared_library.h"

#include <dlfcn.h>

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define LIBRARY "libcublasLt.so." TEXT_OF(CUBLAS_VER_MAJOR)

static fr_status look_up(void *library, const char *name, void *out,
                         fr_err *err)
{
    if (fr_library_find(library, name, out))
        return FR_OK;
    return fr_fail(err, FR_FAILURE,
                   LIBRARY " has no %s; install the one of CUDA " TEXT_OF(
                       CUBLAS_VER_MAJOR) "." TEXT_OF(CUBLAS_VER_MINOR),
                   name);
}

fr_status fr_cublaslt_load(fr_cublaslt *out, fr_err *err)
{
    fr_cublaslt loaded;
    void *library = fr_library_open(LIBRARY);

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
