/*
 * measure.h: what the operating system says about this rank: memory, cores.
 */
#ifndef FR_RUNTIME_RANK_MEASURE_H
#define FR_RUNTIME_RANK_MEASURE_H

#include "core/base/err.h"

/*
 * Peak memory of this process.  Counted: the peak of its resident set (VmHWM)
 * less all shared memory it maps (RssShmem: its neighbours' windows, MPI's
 * own segments), plus the pages of its own window that exist (`window` NULL:
 * the slab is private memory and is in VmHWM already).  So a window counts
 * once, with the rank that owns it.
 */
FR_CHECKED fr_status fr_measure_peak(void *window, uint64_t n_bytes,
                                     uint64_t *peak_bytes, fr_err *err);

/* Resident memory of this process now, neighbours' windows that it has touched
 * included; 0: not known. */
uint64_t fr_measure_resident(void);

/* Forgets the peak so far (Linux: clear_refs); best effort. */
void fr_measure_reset_peak(void);

/* A number that ranks of one machine share (the kernel's boot id), and what
 * the machine calls itself. */
uint64_t fr_measure_machine(char host[64]);

/* Cores that a rank's threads run on. */
typedef struct fr_cores {
    int n_main; /* of the compute threads; 0: not pinned */
    int main[256];
    int comm; /* of the communication thread; -1: like the main ones */
    bool is_core_shared; /* computing and communication share cores */
    bool is_crowded;     /* more compute threads than cores */
} fr_cores;

/*
 * Deals the cores that this process may use to n_local ranks of n_threads
 * each, of which this is number i_local; no pinning when they do not suffice
 * or FORERUN_PIN=0.
 */
void fr_cores_assign(int64_t n_local, int64_t i_local, int n_threads,
                     fr_cores *out);

/* Pins the calling thread (threads it starts later inherit it) and says in
 * *previous, of n_bytes, what was; undo with fr_cores_restore. */
typedef struct fr_core_mask {
    uint64_t words[16];
    bool is_set;
} fr_core_mask;
void fr_cores_pin(const fr_cores *cores, fr_core_mask *previous);
void fr_cores_restore(const fr_core_mask *previous);

#endif
