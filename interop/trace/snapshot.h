/*
 * snapshot.h: what PyTorch's caching allocator held
 * (torch.cuda.memory._snapshot(); torch/csrc/cuda/memory_snapshot.cpp), as
 * JSON: `segments`, and the history of allocations in `device_traces`.  What
 * torch writes by itself is a pickle: json.dump(torch.cuda.memory._snapshot())
 * makes the JSON.
 */
#ifndef FR_INTEROP_TRACE_SNAPSHOT_H
#define FR_INTEROP_TRACE_SNAPSHOT_H

#include "core/stream/infile.h"

enum { FR_SNAPSHOT_DEVICES = 64 };

/* Bytes of a device; n_segments 0: it holds nothing. */
typedef struct fr_snapshot_device {
    uint64_t n_segments, n_blocks; /* blocks: live ones */
    double reserved_bytes, allocated_bytes;
    /* Free within segments: of no use to others, in one piece at most. */
    double free_bytes, largest_free_bytes;
    /* The history: its largest sum of live allocations includes those before
     * it, which are in the snapshot and not in the history. */
    uint64_t n_events;
    double peak_bytes, peak_reserved_bytes;
} fr_snapshot_device;

typedef struct fr_snapshot {
    fr_snapshot_device device[FR_SNAPSHOT_DEVICES];
    int n_devices; /* the largest that is named, and one */
} fr_snapshot;

/* FR_INPUT "path:line: ..." where it is no such snapshot. */
FR_CHECKED fr_status fr_snapshot_read(fr_infile *file, fr_snapshot *out,
                                      fr_err *err);

#endif
