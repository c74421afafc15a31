/*
 * goodput_changes.h: what would make a run of weeks shorter: other checkpoints,
 * storage, restarts, spares, nodes, one at a time.
 */
#ifndef FR_API_GOODPUT_GOODPUT_CHANGES_H
#define FR_API_GOODPUT_GOODPUT_CHANGES_H

#include "api/goodput/goodput_case.h"

enum { FR_GOODPUT_CHANGES = 9 };

/* Puts the changes that apply into out[FR_GOODPUT_CHANGES]; the run itself is
 * not changed.  FR_NO_MEMORY. */
FR_CHECKED fr_status fr_goodput_changes(const fr_cluster *cluster,
                                        const fr_goodput_case *run,
                                        fr_goodput_change *out, size_t *n,
                                        fr_err *err);

#endif
