/*
 * trace.h: timelines that programs left behind, one event at a time and in
 * bounded memory: Chrome JSON of forerun (run --trace, simulate --trace) and
 * of PyTorch's profiler (Kineto: github.com/pytorch/kineto,
 * libkineto/src/output_json.cpp, at commit 114171df; before it
 * torch/autograd/profiler.py, export_chrome_trace).
 */
#ifndef FR_INTEROP_TRACE_TRACE_H
#define FR_INTEROP_TRACE_TRACE_H

#include "core/stream/infile.h"

/* An event with a duration ("X"), or a name of a process or a thread ("M").
 * What an event does not say is "" or -1. */
typedef struct fr_trace_event {
    char phase; /* 'X' or 'M' */
    char name[192];
    char category[32]; /* "kernel", "cpu_op"; forerun: "compute" ... */
    char process[48], thread[48];
    double begin_us, dur_us;
    char label[96];              /* of 'M': args.name */
    char shapes[192];            /* "[[32,64],[64,128]]", Input Dims */
    char types[96];              /* Input type */
    double external_id;          /* of an operator and of its kernels */
    double stream;               /* of a kernel */
    double forward_thread;       /* > 0: an operator of backward */
    char collective[32];         /* "allreduce", "_allgather_base" */
    char dtype[24];              /* of its elements */
    char ranks[192];             /* of its group, "[0,1,...]" */
    double n_in, n_out, n_group; /* elements; ranks */
    double n_bytes;              /* forerun's payload */
} fr_trace_event;

/* An event that says nothing. */
fr_trace_event fr_trace_event_none(void);

/* The description of itself in a file. */
typedef struct fr_trace_about {
    char gpu[128];       /* of device 0 */
    int32_t n_devices;   /* GPUs that its process saw */
    char capability[16]; /* "9.0" */
    double memory_bytes, n_processors;
    double rank, world_size; /* -1: not said */
} fr_trace_about;

typedef fr_status (*fr_trace_event_fn)(void *self, const fr_trace_event *event,
                                       fr_err *err);

/* The reader of a kind of file: it calls `take` for every event. */
typedef fr_status (*fr_trace_reader_fn)(const char *path,
                                        fr_trace_event_fn take, void *self,
                                        fr_trace_about *about, fr_err *err);

/* Exports of NVIDIA's Nsight Systems to SQLite: kernels, copies and the GPU.
 * FR_FAILURE in a build without libsqlite3. */
FR_CHECKED fr_status fr_nsys_read(const char *path, fr_trace_event_fn take,
                                  void *self, fr_trace_about *about,
                                  fr_err *err);

/* Execution traces of Chakra, protobuf or JSON; no pipes. */
FR_CHECKED fr_status fr_chakra_read(const char *path, fr_trace_event_fn take,
                                    void *self, fr_trace_about *about,
                                    fr_err *err);

/* The same for Chrome JSON that is open: calls `take` for every event, in the
 * order of the file; *about is complete afterwards.  FR_INPUT "path:line: ..."
 * where it is no such trace. */
FR_CHECKED fr_status fr_trace_read(fr_infile *file, fr_trace_event_fn take,
                                   void *self, fr_trace_about *about,
                                   fr_err *err);

/* The kind of a file by its first bytes; NONE: it is no trace, or cannot be
 * read. */
typedef enum fr_trace_kind {
    FR_TRACE_NONE,
    FR_TRACE_CHROME,
    FR_TRACE_NSYS,
    FR_TRACE_CHAKRA,
    FR_TRACE_N
} fr_trace_kind;

fr_trace_kind fr_trace_kind_of(const char *path);

#endif
