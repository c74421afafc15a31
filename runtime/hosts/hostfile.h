/*
 * hostfile.h: mpirun's hostfile: "name slots=2" a line, one slot by default,
 * comments after '#'.
 */
#ifndef FR_RUNTIME_HOSTS_HOSTFILE_H
#define FR_RUNTIME_HOSTS_HOSTFILE_H

#include "core/base/vec.h"

#define FR_HOST_NAME 256

typedef struct fr_host {
    char name[FR_HOST_NAME];
    int64_t n_slots;
    bool has_slots; /* the line says so; Open MPI takes its cores otherwise */
} fr_host;

typedef fr_vec(fr_host) fr_hosts;

/* FR_INPUT: no host, or slots that are no number; fr_vec_release(out) frees. */
FR_CHECKED fr_status fr_hostfile_load(const char *path, fr_hosts *out,
                                      fr_err *err);

/* FR_INFEASIBLE if the slots that the file names are too few for the ranks; a
 * host without slots may have any number. */
FR_CHECKED fr_status fr_hostfile_check(const char *path, int64_t n_ranks,
                                       fr_err *err);

/* The slots of all hosts. */
FR_CHECKED fr_status fr_hostfile_slots(const char *path, int64_t *out,
                                       fr_err *err);

#endif
