/*
 * import.h: descriptions that other tools wrote, read as a cluster or as a
 * profile.  A format is one file import_NAME.c and one row of the list in
 * import.c.  Readers are strict ("path:line: what; the mend"); what a file
 * does not say is taken from the catalogue and noted, a line for each
 * assumption.
 */
#ifndef FR_INTEROP_IMPORT_IMPORT_H
#define FR_INTEROP_IMPORT_IMPORT_H

#include "core/base/buffer.h"
#include "spec/cluster/cluster.h"
#include "spec/profile/profile.h"

typedef struct fr_import_options {
    const char *gpu;        /* device of the catalogue, NULL: what is found */
    const char *node_type;  /* of the catalogue: what the file leaves out */
    const char *test;       /* of nccl-tests, where the file is silent; NULL */
    int64_t n_nodes;        /* 0: one, or what the file says */
    const fr_cluster *node; /* one node, from another file: what the nodes of a
                               topology are; NULL: none */
} fr_import_options;

/* The subject of files of a kind. */
typedef enum fr_import_subject {
    FR_IMPORT_OF_NODE,
    FR_IMPORT_OF_TOPOLOGY, /* who hangs on which switch */
    FR_IMPORT_OF_CLUSTER,
    FR_IMPORT_OF_LINKS /* measurements: a profile */
} fr_import_subject;

typedef struct fr_import {
    bool is_profile;
    fr_cluster cluster; /* unless is_profile */
    fr_profile profile;
    fr_buffer notes; /* what was assumed or left out, line by line */
} fr_import;

/* Names of the kinds in the order of the list, NULL past the last. */
const char *fr_import_kind_name(int kind);
int fr_import_kind_find(const char *name); /* -1: no such kind */
fr_import_subject fr_import_kind_subject(int kind);

/* The kind that a text looks like, -1 when none claims it. */
int fr_import_guess(const char *text, size_t n);

/*
 * `text` has n bytes and a NUL after them.  `name` stands in messages and,
 * without folders and extension, becomes the cluster's name.  FR_INPUT on
 * anything wrong; fr_import_release() frees what came out.
 */
FR_CHECKED fr_status fr_import_parse(int kind, const char *name,
                                     const char *text, size_t n,
                                     const fr_import_options *options,
                                     fr_import *out, fr_err *err);
void fr_import_release(fr_import *import);

#endif
