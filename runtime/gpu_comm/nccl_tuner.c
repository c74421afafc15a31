/*
 * nccl_tuner.c: see nccl_tuner.h.
 *
 * The interface is declared here in our own words, from NCCL's headers
 * src/include/plugin/tuner/tuner_v3.h, _v4.h, _v5.h, src/include/nccl_common.h
 * (https://github.com/NVIDIA/nccl, read 2026-11-21): the three differ in what
 * init() is told, and v3 is not told whether buffers are registered.
 */
#include "runtime/gpu_comm/nccl_tuner.h"

#include "plan/collective/collective.h"

#include <stdatomic.h>
#include <stddef.h>

enum { SUCCESS = 0 }; /* ncclResult_t */

/* ncclFunc_t, as far as it is asked for. */
enum { BROADCAST = 0, ALL_GATHER = 2, REDUCE_SCATTER = 3, ALL_REDUCE = 4 };

enum { TREE = 0, RING = 1, NVLS = 4 };  /* rows of the table */
enum { LL = 0, LL128 = 1, SIMPLE = 2 }; /* its columns */

typedef void (*logger_fn)(int level, unsigned long flags, const char *file,
                          int line, const char *format, ...);

/* The table of costs, microseconds by [algorithm][protocol], comes with the
 * type of a list of rows and is none; negative: cannot be done. */
typedef int (*ask_v3_fn)(void *context, int function, size_t n_bytes, int n_ops,
                         float **costs, int n_algorithms, int n_protocols,
                         int *n_channels);
typedef int (*ask_fn)(void *context, int function, size_t n_bytes, int n_ops,
                      float **costs, int n_algorithms, int n_protocols,
                      int is_registered, int *n_channels);
typedef int (*init_fn)(size_t n_ranks, size_t n_nodes, logger_fn log,
                       void **context);
typedef int (*init_v5_fn)(void **context, uint64_t id, size_t n_ranks,
                          size_t n_nodes, logger_fn log, void *domains,
                          void *constants);

typedef struct tuner_v3 {
    const char *name;
    init_fn init;
    ask_v3_fn ask;
    int (*destroy)(void *context);
} tuner_v3;

typedef struct tuner_v4 {
    const char *name;
    init_fn init;
    ask_fn ask;
    int (*destroy)(void *context);
} tuner_v4;

typedef struct tuner_v5 {
    const char *name;
    init_v5_fn init;
    ask_fn ask;
    int (*finalize)(void *context);
} tuner_v5;

static _Atomic(fr_gpu_choices *) nccl_choices_in_use;

void fr_nccl_tuner_use(fr_gpu_choices *choices)
{
    atomic_store(&nccl_choices_in_use, choices);
}

/* NCCL's numbers (nccl_tuner.h, nccl_common.h of NCCL 2.28); -1: it has none.
 */
static int algorithm_of(fr_collective_kind kind)
{
    const fr_collective *entry = fr_collectives[kind];
    switch (entry != NULL && entry->has_nccl ? entry->nccl
                                             : FR_NCCL_NO_ALGORITHM) {
    case FR_NCCL_RING:
        return RING;
    case FR_NCCL_TREE: /* NCCL's tree is a pair of them */
        return TREE;
    case FR_NCCL_NVLS:
        return NVLS;
    default:
        return -1;
    }
}

static int function_of(fr_op op)
{
    switch (op) {
    case FR_OP_BROADCAST:
        return BROADCAST;
    case FR_OP_ALL_GATHER:
        return ALL_GATHER;
    case FR_OP_REDUCE_SCATTER:
        return REDUCE_SCATTER;
    case FR_OP_ALL_REDUCE:
        return ALL_REDUCE;
    default:
        return -1;
    }
}

static int protocol_of(fr_protocol protocol)
{
    switch (protocol) {
    case FR_PROTOCOL_LL:
        return LL;
    case FR_PROTOCOL_LL128:
        return LL128;
    case FR_PROTOCOL_SIMPLE:
        return SIMPLE;
    default:
        return -1;
    }
}

static fr_gpu_choice *find(fr_gpu_choices *choices, int function,
                           size_t n_bytes)
{
    for (int i = 0; choices != NULL && i < choices->n; i++) {
        fr_gpu_choice *at = &choices->at[i];
        if (function_of(at->op) == function && n_bytes >= at->min_bytes &&
            n_bytes <= at->max_bytes)
            return at;
    }
    return NULL;
}

static bool is_wanted(const fr_gpu_choice *choice, int algorithm, int protocol)
{
    return (choice->algorithm == FR_COLLECTIVE_AUTO ||
            algorithm == algorithm_of(choice->algorithm)) &&
           (choice->protocol == FR_PROTOCOL_AUTO ||
            protocol == protocol_of(choice->protocol));
}

/* The dearest of what is wanted; < 0: nothing of it can be done. */
static float dearest(const fr_gpu_choice *choice, const float *costs,
                     int n_algorithms, int n_protocols)
{
    float most = -1;

    for (int a = 0; a < n_algorithms; a++)
        for (int p = 0; p < n_protocols; p++) {
            float cost = costs[a * n_protocols + p];
            if (is_wanted(choice, a, p) && cost > most)
                most = cost;
        }
    return most;
}

static int ask(void *context, int function, size_t n_bytes, int n_ops,
               float **table, int n_algorithms, int n_protocols,
               int is_registered, int *n_channels)
{
    fr_gpu_choice *choice = find(context, function, n_bytes);
    float *costs = (float *)(void *)table;

    (void)n_ops;
    (void)is_registered;
    if (choice == NULL)
        return SUCCESS;
    atomic_fetch_add(&choice->n_asked, 1);
    float most = dearest(choice, costs, n_algorithms, n_protocols);
    if (most < 0)
        return SUCCESS;
    /* NCCL's expectation of what is chosen stays true: it is what
     * ncclGroupSimulateEnd answers. */
    for (int a = 0; a < n_algorithms; a++)
        for (int p = 0; p < n_protocols; p++) {
            float *cost = &costs[a * n_protocols + p];
            if (*cost >= 0 && !is_wanted(choice, a, p))
                *cost += 2 * most + 1;
        }
    if (choice->n_channels > 0)
        *n_channels = choice->n_channels;
    atomic_fetch_add(&choice->n_granted, 1);
    return SUCCESS;
}

static int ask_v3(void *context, int function, size_t n_bytes, int n_ops,
                  float **costs, int n_algorithms, int n_protocols,
                  int *n_channels)
{
    return ask(context, function, n_bytes, n_ops, costs, n_algorithms,
               n_protocols, 0, n_channels);
}

static int init(size_t n_ranks, size_t n_nodes, logger_fn log, void **context)
{
    (void)n_ranks;
    (void)n_nodes;
    (void)log;
    *context = atomic_load(&nccl_choices_in_use);
    return SUCCESS;
}

static int init_v5(void **context, uint64_t id, size_t n_ranks, size_t n_nodes,
                   logger_fn log, void *domains, void *constants)
{
    (void)id;
    (void)domains;
    (void)constants;
    return init(n_ranks, n_nodes, log, context);
}

static int destroy(void *context)
{
    (void)context; /* borrowed */
    return SUCCESS;
}

/* Found by name: no header declares them. */
extern const tuner_v3 ncclTunerPlugin_v3;
extern const tuner_v4 ncclTunerPlugin_v4;
extern const tuner_v5 ncclTunerPlugin_v5;

const tuner_v3 ncclTunerPlugin_v3 = {"forerun", init, ask_v3, destroy};
const tuner_v4 ncclTunerPlugin_v4 = {"forerun", init, ask, destroy};
const tuner_v5 ncclTunerPlugin_v5 = {"forerun", init_v5, ask, destroy};
