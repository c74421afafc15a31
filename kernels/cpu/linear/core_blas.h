/*
 * core_blas.h: for which CPU OpenBLAS has kernels at work.  It chooses when it
 * is loaded, by the number of the CPU's model; one that is newer than itself it
 * may take for a CPU of 2004, whose products take several times as long.
 */
#ifndef FR_KERNELS_CPU_LINEAR_CORE_BLAS_H
#define FR_KERNELS_CPU_LINEAR_CORE_BLAS_H

/* By this variable of the environment it is told. */
#define FR_BLAS_CORE_ENV "OPENBLAS_CORETYPE"

/* Returns the kernels of the library that are best for this CPU ("SkylakeX"),
 * if it has chosen much worse ones; else NULL. */
const char *fr_blas_core_better(const char *chosen);

/* Returns the value that the variable should have; NULL: the library chose
 * well, or the variable is set. */
const char *fr_blas_core_instead(void);

#endif
