/*
 * team.h: teams of OpenMP threads; one thread where OpenMP was left out.
 * Inside runtime/ only.
 */
#ifndef FR_KERNELS_CPU_TEAM_H
#define FR_KERNELS_CPU_TEAM_H

#ifdef _OPENMP

#include <omp.h>

/* The size of the teams that the calling thread starts from now on. */
static inline void fr_team_set(int n_threads)
{
    if (omp_get_dynamic())
        omp_set_dynamic(0);
    if (omp_get_max_threads() != n_threads)
        omp_set_num_threads(n_threads);
}

/* The number of the calling thread in a parallel region, and how many there
 * are. */
static inline int fr_team_member(void)
{
    return omp_get_thread_num();
}

static inline int fr_team_size(void)
{
    return omp_get_num_threads();
}

#else

static inline void fr_team_set(int n_threads)
{
    (void)n_threads;
}

static inline int fr_team_member(void)
{
    return 0;
}

static inline int fr_team_size(void)
{
    return 1;
}

#endif

/* A team's size that only the clauses of OpenMP use. */
#define FR_FOR_TEAM(n) ((void)(n))

#endif
