/*
 * versions.h: what the libraries say about themselves, and the matrix product
 * that stands for the machine's speed; behind the one-file rule for MPI and
 * OpenBLAS.
 */
#ifndef FR_CALIBRATE_VERSIONS_H
#define FR_CALIBRATE_VERSIONS_H

#include <stddef.h>

const char *fr_version_blas(void);        /* OpenBLAS's configuration */
void fr_version_mpi(char *out, size_t n); /* "" without MPI */

/* c[n,n] = a * b on n_threads threads. */
void fr_sgemm_square(int n, const float *a, const float *b, float *c,
                     int n_threads);

#endif
