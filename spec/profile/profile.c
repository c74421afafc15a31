/*
 * profile.c: the container, the hash and the fingerprint; the tables of
 * members that reader and writer share.
 */
#include "spec/profile/profile.h"

#include "core/base/hash.h"
#include "spec/profile/profile_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(type, member, field_kind, positive)                              \
    {                                                                          \
#member, FR_FIELD_##field_kind, positive, offsetof(type, member),      \
            sizeof(((type *)0)->member)                                        \
    }
#define SAMPLE(type, member, field_kind, positive)                             \
    {                                                                          \
#member, FR_FIELD_##field_kind, positive,                              \
            offsetof(type, sample) + offsetof(fr_sample, member),              \
            sizeof(((fr_sample *)0)->member)                                   \
    }
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const fr_field fr_fingerprint_fields[] = {
    FIELD(fr_fingerprint, cpu, TEXT, false),
    FIELD(fr_fingerprint, kernel, TEXT, false),
    FIELD(fr_fingerprint, blas, TEXT, false),
    FIELD(fr_fingerprint, mpi, TEXT, false),
    FIELD(fr_fingerprint, compiler, TEXT, false),
    FIELD(fr_fingerprint, n_cores, I32, true),
    FIELD(fr_fingerprint, n_nodes, I32, true),
    FIELD(fr_fingerprint, l2_bytes, U64, false),
    FIELD(fr_fingerprint, llc_bytes, U64, false),
    FIELD(fr_fingerprint, memory_bytes, U64, false),
};
const size_t fr_fingerprint_fields_n = COUNT(fr_fingerprint_fields);

const fr_field fr_gpu_print_fields[] = {
    FIELD(fr_gpu_print, name, TEXT, true),
    FIELD(fr_gpu_print, capability, TEXT, false),
    FIELD(fr_gpu_print, driver, TEXT, false),
    FIELD(fr_gpu_print, cuda, TEXT, false),
    FIELD(fr_gpu_print, nccl, TEXT, false),
    FIELD(fr_gpu_print, n_processors, I32, false),
    FIELD(fr_gpu_print, l2_bytes, U64, false),
    FIELD(fr_gpu_print, memory_bytes, U64, true),
    FIELD(fr_gpu_print, clock_Hz, DOUBLE, false),
    FIELD(fr_gpu_print, memory_clock_Hz, DOUBLE, false),
    FIELD(fr_gpu_print, power_limit_w, DOUBLE, false),
};
const size_t fr_gpu_print_fields_n = COUNT(fr_gpu_print_fields);

const fr_field fr_gpu_costs_fields[] = {
    FIELD(fr_gpu_costs, workspace_bytes, U64, false),
    FIELD(fr_gpu_costs, comm_world_bytes, U64, false),
    FIELD(fr_gpu_costs, comm_pair_bytes, U64, false),
    FIELD(fr_gpu_costs, comm_group_bytes, U64, false),
    FIELD(fr_gpu_costs, launch_s, DOUBLE, false),
    FIELD(fr_gpu_costs, graph_launch_s, DOUBLE, false),
    FIELD(fr_gpu_costs, graph_node_s, DOUBLE, false),
    FIELD(fr_gpu_costs, kernel_s, DOUBLE, false),
    FIELD(fr_gpu_costs, bracket_s, DOUBLE, false),
    FIELD(fr_gpu_costs, steady_clock_Hz, DOUBLE, false),
    FIELD(fr_gpu_costs, steady_power_w, DOUBLE, false),
};
const size_t fr_gpu_costs_fields_n = COUNT(fr_gpu_costs_fields);

const fr_field fr_profile_scalars[] = {
    FIELD(fr_profile, model, TEXT, false),
    FIELD(fr_profile, wall_s, DOUBLE, false),
    FIELD(fr_profile, baseline_bytes, U64, false),
    FIELD(fr_profile, baseline_alone_bytes, U64, false),
    FIELD(fr_profile, instr_overhead_s, DOUBLE, false),
    FIELD(fr_profile, call_overhead_s, DOUBLE, false),
    FIELD(fr_profile, wake_s, DOUBLE, false),
    FIELD(fr_profile, jitter_frac, DOUBLE, false),
    FIELD(fr_profile, n_disturbed, I32, false),
};
const size_t fr_profile_scalars_n = COUNT(fr_profile_scalars);

static const fr_field compute_fields[] = {
    FIELD(fr_compute_point, op, TEXT, true),
    FIELD(fr_compute_point, dtype, TEXT, true),
    FIELD(fr_compute_point, variant, TEXT, false),
    FIELD(fr_compute_point, flags, U32, false),
    FIELD(fr_compute_point, dim, DIMS, false),
    FIELD(fr_compute_point, where, TEXT, false),
    FIELD(fr_compute_point, n_threads, I32, true),
    FIELD(fr_compute_point, n_busy, I32, true),
    FIELD(fr_compute_point, is_held_out, BOOL, false),
    FIELD(fr_compute_point, flop, U64, false),
    FIELD(fr_compute_point, moved_bytes, U64, false),
    SAMPLE(fr_compute_point, median_s, DOUBLE, true),
    SAMPLE(fr_compute_point, rel_err, DOUBLE, false),
    SAMPLE(fr_compute_point, n_samples, I32, true),
    SAMPLE(fr_compute_point, n_outliers, I32, false),
};

static const fr_field comm_fields[] = {
    FIELD(fr_comm_point, op, TEXT, true),
    FIELD(fr_comm_point, algorithm, TEXT, false),
    FIELD(fr_comm_point, scope, TEXT, true),
    FIELD(fr_comm_point, n_group, I32, true),
    FIELD(fr_comm_point, n_bytes, U64, false),
    FIELD(fr_comm_point, is_async, BOOL, false),
    FIELD(fr_comm_point, is_beside, BOOL, false),
    FIELD(fr_comm_point, is_cold, BOOL, false),
    FIELD(fr_comm_point, is_held_out, BOOL, false),
    FIELD(fr_comm_point, cpu_frac, DOUBLE, false),
    SAMPLE(fr_comm_point, median_s, DOUBLE, true),
    SAMPLE(fr_comm_point, rel_err, DOUBLE, false),
    SAMPLE(fr_comm_point, n_samples, I32, true),
    SAMPLE(fr_comm_point, n_outliers, I32, false),
};

static const fr_field sharing_fields[] = {
    FIELD(fr_sharing_point, victim, TEXT, true),
    FIELD(fr_sharing_point, beside, TEXT, true),
    FIELD(fr_sharing_point, n_busy, I32, true),
    FIELD(fr_sharing_point, slowdown, DOUBLE, true),
    FIELD(fr_sharing_point, rel_err, DOUBLE, false),
};

static const fr_field rate_fields[] = {
    FIELD(fr_rate_point, name, TEXT, true),
    FIELD(fr_rate_point, n_threads, I32, true),
    FIELD(fr_rate_point, n_busy, I32, true),
    FIELD(fr_rate_point, rate, DOUBLE, true),
    FIELD(fr_rate_point, rel_err, DOUBLE, false),
};

static const fr_field held_out_fields[] = {
    FIELD(fr_held_out, what, TEXT, true),
    FIELD(fr_held_out, n, I32, true),
    FIELD(fr_held_out, mean_ape, DOUBLE, false),
    FIELD(fr_held_out, worst_ape, DOUBLE, false),
};

static const fr_field step_fields[] = {
    FIELD(fr_step_point, model, TEXT, true),
    FIELD(fr_step_point, plan, TEXT, true),
    FIELD(fr_step_point, global_batch, U64, true),
    FIELD(fr_step_point, seq, U64, true),
    FIELD(fr_step_point, n_ranks, I32, true),
    FIELD(fr_step_point, predicted_s, DOUBLE, true),
    SAMPLE(fr_step_point, median_s, DOUBLE, true),
    SAMPLE(fr_step_point, rel_err, DOUBLE, false),
    SAMPLE(fr_step_point, n_samples, I32, true),
    SAMPLE(fr_step_point, n_outliers, I32, false),
};

#define RECORD(member, type, optional)                                         \
    {                                                                          \
#member, member##_fields, COUNT(member##_fields), sizeof(type),        \
            offsetof(fr_profile, member), offsetof(fr_profile, n_##member),    \
            offsetof(fr_profile, cap_##member), optional                       \
    }

const fr_record fr_profile_records[FR_RECORDS_N] = {
    RECORD(compute, fr_compute_point, false),
    RECORD(comm, fr_comm_point, false),
    RECORD(sharing, fr_sharing_point, false),
    RECORD(rate, fr_rate_point, false),
    RECORD(held_out, fr_held_out, false),
    RECORD(step, fr_step_point, true),
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
    fr_profile_init(profile);
}

fr_status fr_profile_append(fr_profile *profile, const fr_record *record,
                            const void *item, fr_err *err)
{
    char *base = (char *)profile;
    void *items;
    size_t *n = (size_t *)(void *)(base + record->n_offset);
    size_t *cap = (size_t *)(void *)(base + record->cap_offset);

    memcpy(&items, base + record->items_offset, sizeof items);
    if (*n == *cap) {
        size_t wanted = *cap > 0 ? 2 * *cap : 16;
        void *grown = realloc(items, wanted * record->item_bytes);
        if (grown == NULL)
            return fr_fail_no_memory(err);
        memcpy(base + record->items_offset, &grown, sizeof grown);
        items = grown;
        *cap = wanted;
    }
    memcpy((char *)items + *n * record->item_bytes, item, record->item_bytes);
    *n += 1;
    return FR_OK;
}

const void *fr_profile_items(const fr_profile *profile, const fr_record *record,
                             size_t *n)
{
    const char *base = (const char *)profile;
    const void *items;

    memcpy(n, base + record->n_offset, sizeof *n);
    memcpy(&items, base + record->items_offset, sizeof items);
    return items;
}

fr_status fr_profile_add_compute(fr_profile *profile,
                                 const fr_compute_point *point, fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[0], point, err);
}

fr_status fr_profile_add_comm(fr_profile *profile, const fr_comm_point *point,
                              fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[1], point, err);
}

fr_status fr_profile_add_sharing(fr_profile *profile,
                                 const fr_sharing_point *point, fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[2], point, err);
}

fr_status fr_profile_add_rate(fr_profile *profile, const fr_rate_point *point,
                              fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[3], point, err);
}

fr_status fr_profile_add_held_out(fr_profile *profile, const fr_held_out *check,
                                  fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[4], check, err);
}

fr_status fr_profile_add_step(fr_profile *profile, const fr_step_point *point,
                              fr_err *err)
{
    return fr_profile_append(profile, &fr_profile_records[5], point, err);
}

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
        for (size_t j = 0; !record->is_optional && j < n; j++)
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
