/*
 * profile.c: the container, the hash and the fingerprint; the tables of
 * members that reader and writer share.
 */
#include "spec/profile/profile.h"

#include "core/base/hash.h"
#include "core/base/vec.h"
#include "spec/profile/profile_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, member)                                                    \
    {                                                                          \
        .key = #member, FR_MEMBER(type, member)                                \
    }
#define POSITIVE(type, member)                                                 \
    {                                                                          \
        .key = #member, FR_MEMBER(type, member), .min = 1                      \
    }
/* Ranges far beyond any machine, within which sums and loops stay finite. */
#define MOST_S 1e6       /* of one operation */
#define MOST_RANKS 65536 /* of a node, and threads */
#define UP_TO(type, member, most)                                              \
    {                                                                          \
        .key = #member, FR_MEMBER(type, member), .max = (most)                 \
    }
#define POSITIVE_TO(type, member, most)                                        \
    {                                                                          \
        .key = #member, FR_MEMBER(type, member), .min = 1, .max = (most)       \
    }
/* The members of a sample stand in the object of what was sampled. */
#define SAMPLE(type)                                                           \
    {.key = "median_s",                                                        \
     FR_MEMBER(type, sample.median_s),                                         \
     .min = 1,                                                                 \
     .max = MOST_S},                                                           \
        {.key = "rel_err", FR_MEMBER(type, sample.rel_err), .max = 1e6},       \
        {.key = "n_samples", FR_MEMBER(type, sample.n_samples), .min = 1},     \
    {                                                                          \
        .key = "n_outliers", FR_MEMBER(type, sample.n_outliers)                \
    }

const fr_field fr_fingerprint_fields[] = {
    FIELD(fr_fingerprint, cpu),        FIELD(fr_fingerprint, kernel),
    FIELD(fr_fingerprint, blas),       FIELD(fr_fingerprint, mpi),
    FIELD(fr_fingerprint, compiler),   POSITIVE(fr_fingerprint, n_cores),
    POSITIVE(fr_fingerprint, n_nodes), FIELD(fr_fingerprint, l2_bytes),
    FIELD(fr_fingerprint, llc_bytes),  FIELD(fr_fingerprint, memory_bytes),
};
const size_t fr_fingerprint_fields_n = FR_LENGTH(fr_fingerprint_fields);

const fr_field fr_gpu_print_fields[] = {
    POSITIVE(fr_gpu_print, name),       FIELD(fr_gpu_print, capability),
    FIELD(fr_gpu_print, driver),        FIELD(fr_gpu_print, cuda),
    FIELD(fr_gpu_print, nccl),          FIELD(fr_gpu_print, n_processors),
    FIELD(fr_gpu_print, l2_bytes),      POSITIVE(fr_gpu_print, memory_bytes),
    FIELD(fr_gpu_print, clock_Hz),      FIELD(fr_gpu_print, memory_clock_Hz),
    FIELD(fr_gpu_print, power_limit_w),
};
const size_t fr_gpu_print_fields_n = FR_LENGTH(fr_gpu_print_fields);

const fr_field fr_gpu_costs_fields[] = {
    FIELD(fr_gpu_costs, workspace_bytes),
    FIELD(fr_gpu_costs, comm_world_bytes),
    FIELD(fr_gpu_costs, comm_pair_bytes),
    FIELD(fr_gpu_costs, comm_group_bytes),
    UP_TO(fr_gpu_costs, launch_s, MOST_S),
    UP_TO(fr_gpu_costs, graph_launch_s, MOST_S),
    UP_TO(fr_gpu_costs, graph_node_s, MOST_S),
    UP_TO(fr_gpu_costs, kernel_s, MOST_S),
    UP_TO(fr_gpu_costs, bracket_s, MOST_S),
    FIELD(fr_gpu_costs, steady_clock_Hz),
    FIELD(fr_gpu_costs, steady_power_w),
};
const size_t fr_gpu_costs_fields_n = FR_LENGTH(fr_gpu_costs_fields);

const fr_field fr_running_fields[] = {
    UP_TO(fr_running_costs, n_ranks, MOST_RANKS),
    UP_TO(fr_running_costs, start_s, MOST_S),
    UP_TO(fr_running_costs, restart_s, MOST_S),
    UP_TO(fr_running_costs, end_s, MOST_S),
    UP_TO(fr_running_costs, checkpoint_s, MOST_S),
};
const size_t fr_running_fields_n = FR_LENGTH(fr_running_fields);

const fr_field fr_profile_scalars[] = {
    FIELD(fr_profile, model),
    FIELD(fr_profile, wall_s),
    FIELD(fr_profile, baseline_bytes),
    FIELD(fr_profile, baseline_alone_bytes),
    UP_TO(fr_profile, instr_overhead_s, MOST_S),
    UP_TO(fr_profile, call_overhead_s, MOST_S),
    UP_TO(fr_profile, wake_s, MOST_S),
    UP_TO(fr_profile, jitter_frac, FR_MOST_JITTER_FRAC),
    FIELD(fr_profile, n_disturbed),
};
const size_t fr_profile_scalars_n = FR_LENGTH(fr_profile_scalars);

static const fr_field compute_fields[] = {
    POSITIVE(fr_compute_point, op),
    POSITIVE(fr_compute_point, dtype),
    FIELD(fr_compute_point, variant),
    FIELD(fr_compute_point, flags),
    FIELD(fr_compute_point, dim),
    FIELD(fr_compute_point, where),
    POSITIVE_TO(fr_compute_point, n_threads, MOST_RANKS),
    POSITIVE_TO(fr_compute_point, n_busy, MOST_RANKS),
    FIELD(fr_compute_point, is_held_out),
    FIELD(fr_compute_point, flop),
    FIELD(fr_compute_point, moved_bytes),
    SAMPLE(fr_compute_point),
};

static const fr_field comm_fields[] = {
    POSITIVE(fr_comm_point, op),
    FIELD(fr_comm_point, algorithm),
    POSITIVE(fr_comm_point, scope),
    POSITIVE_TO(fr_comm_point, n_group, INT32_MAX),
    FIELD(fr_comm_point, n_bytes),
    FIELD(fr_comm_point, is_async),
    FIELD(fr_comm_point, is_beside),
    FIELD(fr_comm_point, is_cold),
    FIELD(fr_comm_point, is_held_out),
    UP_TO(fr_comm_point, cpu_frac, MOST_RANKS),
    SAMPLE(fr_comm_point),
};

static const fr_field sharing_fields[] = {
    POSITIVE(fr_sharing_point, victim),
    POSITIVE(fr_sharing_point, beside),
    POSITIVE_TO(fr_sharing_point, n_busy, MOST_RANKS),
    POSITIVE_TO(fr_sharing_point, slowdown, 1e6),
    FIELD(fr_sharing_point, rel_err),
};

static const fr_field rate_fields[] = {
    POSITIVE(fr_rate_point, name),
    POSITIVE_TO(fr_rate_point, n_threads, MOST_RANKS),
    POSITIVE_TO(fr_rate_point, n_busy, MOST_RANKS),
    POSITIVE_TO(fr_rate_point, rate, 1e18),
    FIELD(fr_rate_point, rel_err),
};

static const fr_field held_out_fields[] = {
    POSITIVE(fr_held_out, what),
    POSITIVE(fr_held_out, n),
    FIELD(fr_held_out, mean_ape),
    FIELD(fr_held_out, worst_ape),
};

static const fr_field others_fields[] = {
    POSITIVE(fr_others_point, phase),
    FIELD(fr_others_point, rank),
    UP_TO(fr_others_point, elapsed_s, MOST_S),
    UP_TO(fr_others_point, own_s, 1e12),
    UP_TO(fr_others_point, others_s, 1e12),
    UP_TO(fr_others_point, stolen_s, 1e12),
    POSITIVE_TO(fr_others_point, n_processors, MOST_RANKS),
    FIELD(fr_others_point, n_runnable),
    FIELD(fr_others_point, is_disturbed),
};

static const fr_field step_fields[] = {
    POSITIVE(fr_step_point, model),
    POSITIVE(fr_step_point, plan),
    POSITIVE(fr_step_point, global_batch),
    POSITIVE(fr_step_point, seq),
    POSITIVE(fr_step_point, n_ranks),
    POSITIVE(fr_step_point, predicted_s),
    SAMPLE(fr_step_point),
};

/* Shares of fixed times are of the step, logarithms of sizes below 64.  Files
 * of 2026-11 and before lack two of them. */
#define SHARE_FIELD(symbol, name, summary)                                     \
    {.key = name,                                                              \
     FR_MEMBER(fr_run_point, features.share[FR_RUN_##symbol]),                 \
     .max = 16},
#define SIZE_FIELD(symbol, name)                                               \
    {.key = name,                                                              \
     FR_MEMBER(fr_run_point, features.size[FR_RUN_SIZE_##symbol]),             \
     .is_optional = FR_RUN_SIZE_##symbol == FR_RUN_SIZE_CP,                    \
     .max = 64},
#define KIND_FIELD(symbol, name)                                               \
    {.key = name,                                                              \
     FR_MEMBER(fr_run_point, features.kind[FR_RUN_KIND_##symbol]),             \
     .is_optional = FR_RUN_KIND_##symbol == FR_RUN_KIND_LAYOUT},

static const fr_field run_fields[] = {
    POSITIVE(fr_run_point, name), POSITIVE(fr_run_point, plan),
    POSITIVE_TO(fr_run_point, measured_s, MOST_S),
    POSITIVE_TO(fr_run_point, predicted_s, MOST_S),
    FR_RUN_SHARE_LIST(SHARE_FIELD) FR_RUN_SIZE_LIST(SIZE_FIELD)
        FR_RUN_KIND_LIST(KIND_FIELD)};

#define RECORD(member, type, optional, report)                                 \
    {                                                                          \
#member, member##_fields, FR_LENGTH(member##_fields), sizeof(type),    \
            offsetof(fr_profile, member), optional, report                     \
    }

const fr_record fr_profile_records[FR_RECORDS_N] = {
    RECORD(compute, fr_compute_point, false, false),
    RECORD(comm, fr_comm_point, false, false),
    RECORD(sharing, fr_sharing_point, false, false),
    RECORD(rate, fr_rate_point, false, false),
    RECORD(held_out, fr_held_out, false, false),
    RECORD(step, fr_step_point, true, true),
    RECORD(run, fr_run_point, true, false),
    RECORD(others, fr_others_point, true, true),
};

bool fr_profile_is_gpu(const fr_profile *profile)
{
    return profile->fingerprint.gpu.name[0] != '\0';
}

void fr_profile_init(fr_profile *profile)
{
    memset(profile, 0, sizeof *profile);
}

void fr_profile_release(fr_profile *profile)
{
    free(profile->compute);
    free(profile->comm);
    free(profile->sharing);
    free(profile->rate);
    free(profile->held_out);
    free(profile->step);
    free(profile->run);
    free(profile->others);
    fr_profile_init(profile);
}

/* The members that all arrays of records share; they are copied, since the
 * types differ. */
typedef fr_vec(void) record_array;

fr_status fr_profile_append(fr_profile *profile, const fr_record *record,
                            const void *item, fr_err *err)
{
    void *array = (char *)profile + record->offset;
    record_array head;

    if (fr_vec_grow(array, record->item_bytes, 1) != FR_OK)
        return fr_fail_no_memory(err);
    memcpy(&head, array, sizeof head);
    memcpy((char *)head.items + head.n * record->item_bytes, item,
           record->item_bytes);
    head.n++;
    memcpy(array, &head, sizeof head);
    return FR_OK;
}

const void *fr_profile_items(const fr_profile *profile, const fr_record *record,
                             size_t *n)
{
    record_array head;

    memcpy(&head, (const char *)profile + record->offset, sizeof head);
    *n = head.n;
    return head.items;
}

#define DEFINE_ADD(name, type, i_record)                                       \
    fr_status fr_profile_add_##name(fr_profile *profile, const type *item,     \
                                    fr_err *err)                               \
    {                                                                          \
        return fr_profile_append(profile, &fr_profile_records[i_record], item, \
                                 err);                                         \
    }

DEFINE_ADD(compute, fr_compute_point, 0)
DEFINE_ADD(comm, fr_comm_point, 1)
DEFINE_ADD(sharing, fr_sharing_point, 2)
DEFINE_ADD(rate, fr_rate_point, 3)
DEFINE_ADD(held_out, fr_held_out, 4)
DEFINE_ADD(step, fr_step_point, 5)
DEFINE_ADD(run, fr_run_point, 6)
DEFINE_ADD(others, fr_others_point, 7)

const fr_rate_point *fr_profile_find_rate(const fr_profile *profile,
                                          const char *name, int n_threads,
                                          int n_busy)
{
    for (size_t i = 0; i < profile->n_rate; i++) {
        const fr_rate_point *rate = &profile->rate[i];
        if (strcmp(rate->name, name) == 0 &&
            (n_threads == 0 || n_threads == rate->n_threads) &&
            (n_busy == 0 || n_busy == rate->n_busy))
            return rate;
    }
    return NULL;
}

static uint64_t hash_fields(const void *item, const fr_field *fields,
                            size_t n_fields, uint64_t seed)
{
    for (size_t i = 0; i < n_fields; i++) {
        const char *at = (const char *)item + fields[i].offset;
        seed = fields[i].kind == FR_FIELD_TEXT
                   ? fr_hash_text(at, seed)
                   : fr_hash_bytes(at, fields[i].n_bytes, seed);
    }
    return seed;
}

uint64_t fr_fingerprint_hash(const fr_fingerprint *fingerprint)
{
    uint64_t hash = hash_fields(fingerprint, fr_fingerprint_fields,
                                fr_fingerprint_fields_n, 0);

    if (fingerprint->gpu.name[0] == '\0')
        return hash;
    return hash_fields(&fingerprint->gpu, fr_gpu_print_fields,
                       fr_gpu_print_fields_n, hash);
}

uint64_t fr_profile_hash(const fr_profile *profile)
{
    uint64_t hash = fr_fingerprint_hash(&profile->fingerprint);

    hash = hash_fields(profile, fr_profile_scalars, fr_profile_scalars_n, hash);
    if (fr_profile_is_gpu(profile))
        hash = hash_fields(&profile->gpu, fr_gpu_costs_fields,
                           fr_gpu_costs_fields_n, hash);
    for (size_t i = 0; i < FR_RECORDS_N; i++) {
        const fr_record *record = &fr_profile_records[i];
        size_t n;
        const char *items = fr_profile_items(profile, record, &n);
        for (size_t j = 0; !record->is_report && j < n; j++)
            hash = hash_fields(items + j * record->item_bytes, record->fields,
                               record->n_fields, hash);
    }
    return hash;
}

static bool field_differs(const void *a, const void *b, const fr_field *field)
{
    const char *left = (const char *)a + field->offset;
    const char *right = (const char *)b + field->offset;

    /* Firmware hands a little more or less memory over at every boot. */
    if (strcmp(field->key, "memory_bytes") == 0) {
        uint64_t x, y;
        memcpy(&x, left, sizeof x);
        memcpy(&y, right, sizeof y);
        return (x > y ? x - y : y - x) > y / 50;
    }
    if (field->kind == FR_FIELD_TEXT)
        return strcmp(left, right) != 0;
    return memcmp(left, right, field->n_bytes) != 0;
}

static void format_field(const void *item, const fr_field *field, char *out,
                         size_t n)
{
    const char *at = (const char *)item + field->offset;
    int32_t small;
    uint64_t large;

    switch (field->kind) {
    case FR_FIELD_TEXT:
        snprintf(out, n, "'%s'", at);
        break;
    case FR_FIELD_I32:
        memcpy(&small, at, sizeof small);
        snprintf(out, n, "%d", small);
        break;
    default:
        memcpy(&large, at, sizeof large);
        snprintf(out, n, "%llu", (unsigned long long)large);
        break;
    }
}

char *fr_fingerprint_difference(const fr_fingerprint *then,
                                const fr_fingerprint *now, char *buf,
                                size_t n_buf)
{
    snprintf(buf, n_buf, "%s", "");
    for (size_t i = 0; i < fr_fingerprint_fields_n; i++) {
        const fr_field *field = &fr_fingerprint_fields[i];
        char was[160], is[160];
        if (!field_differs(then, now, field))
            continue;
        format_field(then, field, was, sizeof was);
        format_field(now, field, is, sizeof is);
        snprintf(buf, n_buf,
                 "the profile is of another machine or is stale: %s was %s, "
                 "is %s; run forerun calibrate again",
                 field->key, was, is);
        break;
    }
    return buf;
}
