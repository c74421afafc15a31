/*
 * doctor.h: what this machine has for training, what it lacks, and the mend.
 *
 * A check looks at one thing and adds a finding for it, or several (each
 * network interface).  Checks read /proc, /sys and /dev below `root`, "" but in
 * tests, the limits of this process, and which libraries can be loaded; they
 * change nothing and take no longer than that.
 */
#ifndef FR_CALIBRATE_DOCTOR_DOCTOR_H
#define FR_CALIBRATE_DOCTOR_DOCTOR_H

#include "core/base/vec.h"
#include "spec/cluster/cluster.h"

typedef enum fr_finding_state {
    FR_FINDING_OK,
    FR_FINDING_ADVICE,  /* works, but slower or for less than it could */
    FR_FINDING_MISSING, /* a command that needs it ends with an error */
    FR_FINDING_N
} fr_finding_state;

typedef struct fr_finding {
    const char *check; /* "cores", "locked memory" */
    fr_finding_state state;
    char found[160];
    char mend[200];         /* "": nothing to do */
    const char *needed_for; /* the feature that is slower, or ends; NULL:
                               everything */
} fr_finding;

typedef fr_vec(fr_finding) fr_findings;

/* All checks in the order of their table.  fr_vec_release(out) frees, also
 * after a failure, which is only FR_NO_MEMORY. */
FR_CHECKED fr_status fr_doctor_examine(const char *root, fr_findings *out,
                                       fr_err *err);

/* Is this machine a node of the cluster?  Devices, cores, memory, network. */
FR_CHECKED fr_status fr_doctor_compare(const char *root,
                                       const fr_cluster *cluster,
                                       fr_findings *out, fr_err *err);

#endif
