/*
 * spot_trace.h: how many spot nodes there were, as it was recorded somewhere.
 *
 * JSON in the format of SkyPilot's traces (skypilot-org/spot-traces): {
 * "metadata": {"gap_seconds": 300}, "data": [16, 16, 14, ...]}, the number of
 * nodes at each tick.
 */
#ifndef FR_INTEROP_TRACE_SPOT_TRACE_H
#define FR_INTEROP_TRACE_SPOT_TRACE_H

#include "core/base/vec.h"

/* Spans of seconds in turn, an even number: a job's nodes are all there, they
 * are not.  fr_vec_release() frees. */
typedef fr_vec(double) fr_spot_spans;

/*
 * Reads the interruptions of a job of n_nodes.  FR_IO: the file cannot be read;
 * FR_INPUT "path:line:
 * ...": it is no such trace, or never has so many nodes.
 */
FR_CHECKED fr_status fr_spot_trace_load(const char *path, int64_t n_nodes,
                                        fr_spot_spans *out, fr_err *err);

#endif
