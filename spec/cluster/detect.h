/*
 * detect.h: what machine this process may use: hwloc where it was built in,
 * else /proc and /sys.  Affinity masks and control groups count: a container
 * with two cores of 64 is a machine of two cores.
 */
#ifndef FR_SPEC_CLUSTER_DETECT_H
#define FR_SPEC_CLUSTER_DETECT_H

#include "core/base/err.h"

typedef struct fr_machine {
    char cpu[128];          /* model name, "" if unknown */
    int32_t n_cores;        /* physical cores that may be used, >= 1 */
    int32_t n_sockets;      /* >= 1 */
    uint64_t memory_bytes;  /* that may be used */
    uint64_t llc_bytes;     /* last-level cache, one of them; 0: unknown */
    double peak_fp32_flops; /* nominal: clock x vector units, 0: unknown */
} fr_machine;

/* Never fails: what cannot be found out is 0 (cores, sockets: 1). */
void fr_machine_detect(fr_machine *out);

#endif
