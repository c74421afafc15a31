/*
 * collective_switch.c: the switch adds: the one between the GPUs of a node
 * (nvls, NVLink SHARP), or those of the network (sharp; Graham et al.,
 * Scalable Hierarchical Aggregation Protocol, COMHPC 2016).
 *
 * Data go up to the switch and down to the members in stages:
 *
 *   reduce-scatter      up what each has, down to each the sum of its slice
 *   all-gather          up the slice of each, down all of it
 *   all-reduce, nvls    one after the other: the owner of a slice asks for its
 *                       sum and sends it back, (1 + 1/g) payloads through each
 *                       port and direction, whatever the group's size
 *   all-reduce, sharp   up what each has, down the sum: one payload
 *
 * In chunks, so that going up and coming down overlap.
 */
#include "plan/collective/collective.h"

enum { N_CHUNKS = 16, MOST_STAGES = 4 };

typedef struct stage {
    bool is_up, is_whole; /* what goes: all of a chunk, or each its own slice */
} stage;

typedef struct stages {
    int n;
    stage at[MOST_STAGES];
} stages;

#define UP(is_whole)                                                           \
    {                                                                          \
        true, is_whole                                                         \
    }
#define DOWN(is_whole)                                                         \
    {                                                                          \
        false, is_whole                                                        \
    }

static const stages scatter = {2, {UP(true), DOWN(false)}};
static const stages gather = {2, {UP(false), DOWN(true)}};
static const stages both_by_owners = {
    4, {UP(true), DOWN(false), UP(false), DOWN(true)}};
static const stages both_at_once = {2, {UP(true), DOWN(true)}};

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 &&
           (op == FR_OP_ALL_REDUCE || op == FR_OP_REDUCE_SCATTER ||
            op == FR_OP_ALL_GATHER);
}

/* The part of a chunk that belongs to member i.  Of an all-reduce it is all
 * the same who owns what, so chunks are contiguous. */
static fr_slice own_part(fr_op op, uint64_t n, int64_t g, int chunk, int64_t i)
{
    const uint64_t part = n / (uint64_t)g;
    const fr_slice of = op == FR_OP_ALL_REDUCE
                            ? fr_collective_slice(n, N_CHUNKS, chunk)
                            : fr_collective_slice(part, N_CHUNKS, chunk);
    const uint64_t first =
        op == FR_OP_ALL_REDUCE ? of.first : of.first + (uint64_t)i * part;

    if (op != FR_OP_ALL_REDUCE)
        return (fr_slice){first, first + of.end - of.first};
    const fr_slice own = fr_collective_slice(of.end - of.first, g, i);
    return (fr_slice){first + own.first, first + own.end};
}

static fr_status move(const stage *s, int64_t g, int64_t member, fr_slice slice,
                      fr_transfer_list *list, fr_err *err)
{
    const bool is_sum = s->is_up && s->is_whole;

    return fr_transfer_list_move(list, s->is_up ? member : g,
                                 s->is_up ? g : member, slice, is_sum, err);
}

static fr_status emit_stage(const stage *s, fr_op op, uint64_t n, int64_t g,
                            int chunk, fr_transfer_list *list, fr_err *err)
{
    for (int64_t i = 0; i < g; i++) {
        if (!s->is_whole)
            FR_TRY(move(s, g, i, own_part(op, n, g, chunk, i), list, err));
        else if (op == FR_OP_ALL_REDUCE)
            FR_TRY(move(s, g, i, fr_collective_slice(n, N_CHUNKS, chunk), list,
                        err));
        else
            for (int64_t k = 0; k < g; k++)
                FR_TRY(move(s, g, i, own_part(op, n, g, chunk, k), list, err));
    }
    return FR_OK;
}

static fr_status emit_stages(const stages *all, fr_op op, int64_t g, uint64_t n,
                             fr_transfer_list *list, fr_err *err)
{
    for (int phase = 0; g > 1 && phase < N_CHUNKS + all->n - 1;
         phase++, list->n_phases++)
        for (int i = 0; i < all->n; i++) {
            const int chunk = phase - i;
            if (chunk < 0 || chunk >= N_CHUNKS)
                continue;
            FR_TRY(emit_stage(&all->at[i], op, n, g, chunk, list, err));
        }
    return FR_OK;
}

/* Adding is the switch's work; each phase lasts as long as the fuller
 * direction of a member's link. */
static double stages_s(const stages *all, int64_t n_group, double n_bytes,
                       const fr_link_cost *link)
{
    const double chunk = n_bytes / N_CHUNKS, own = chunk / (double)n_group;
    double bytes = 0;

    if (n_group == 1)
        return 0;
    for (int phase = 0; phase < N_CHUNKS + all->n - 1; phase++) {
        double through[2] = {0, 0}; /* down, up */
        for (int i = 0; i < all->n; i++)
            if (phase >= i && phase - i < N_CHUNKS)
                through[all->at[i].is_up] += all->at[i].is_whole ? chunk : own;
        bytes += through[0] > through[1] ? through[0] : through[1];
    }
    return (N_CHUNKS + all->n - 1) * link->latency_s + bytes * link->s_per_byte;
}

/* Returns the stages of an operation that is half of an all-reduce. */
static const stages *halves(fr_op op, const stages *of_all_reduce)
{
    return op == FR_OP_REDUCE_SCATTER ? &scatter
           : op == FR_OP_ALL_GATHER   ? &gather
                                      : of_all_reduce;
}

static fr_status emit_nvls(fr_op op, int64_t n_group, uint64_t n,
                           fr_transfer_list *list, fr_err *err)
{
    return emit_stages(halves(op, &both_by_owners), op, n_group, n, list, err);
}

static double nvls_idle_s(fr_op op, int64_t n_group, uint64_t n,
                          uint64_t element_bytes, const fr_link_cost *link)
{
    return stages_s(halves(op, &both_by_owners), n_group,
                    (double)(n * element_bytes), link);
}

static fr_status emit_sharp(fr_op op, int64_t n_group, uint64_t n,
                            fr_transfer_list *list, fr_err *err)
{
    return emit_stages(halves(op, &both_at_once), op, n_group, n, list, err);
}

static double sharp_idle_s(fr_op op, int64_t n_group, uint64_t n,
                           uint64_t element_bytes, const fr_link_cost *link)
{
    return stages_s(halves(op, &both_at_once), n_group,
                    (double)(n * element_bytes), link);
}

const fr_collective fr_collective_nvls = {
    .name = "nvls",
    .summary = "the switch between the GPUs of a node adds",
    .not_executable = "adding in the switch",
    .has_nccl = true,
    .is_simple_only = true,
    .nccl = FR_NCCL_NVLS,
    .fits = fits,
    .emit = emit_nvls,
    .idle_s = nvls_idle_s,
};

const fr_collective fr_collective_sharp = {
    .name = "sharp",
    .summary = "the switches of the network add",
    .not_executable = "adding in the switch",
    .is_simple_only = true,
    .nccl = FR_NCCL_SHARP,
    .fits = fits,
    .emit = emit_sharp,
    .idle_s = sharp_idle_s,
};
