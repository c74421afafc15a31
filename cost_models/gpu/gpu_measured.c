/* gpu_measured.c: see gpu_measured.h. */
#include "cost_models/gpu/gpu_measured.h"

#include "core/base/text.h"
#include "core/numbers/fit.h"
#include "cost_models/compute/compute_key.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_PLACE = 5 }; /* coordinates of a shape; unused ones are 0 */

/* Width of the smoother in natural logarithms; at least so much of the way
 * to the nearest point. */
static const double width = 0.35, reach = 0.7;
/* Beyond so much (a factor of 4 and more) the kind's mean takes over. */
static const double far = 1.4;
/* The weight of the prior that a slope is 0, against points at a distance of
 * 1. */
static const double slope_weight = 0.02;
/* Within it of a measured shape an answer counts as between them. */
static const double near = 1.1;

typedef struct fitted_point {
    const fr_compute_point *point;
    double place[N_PLACE];
    double log_ratio; /* measured over modelled */
} fitted_point;

/* The points with the same op, dtype, variant and flags. */
typedef struct kind {
    fitted_point *at;
    size_t n;
    double mean; /* of the logarithms */
    double rel_err;
    double steady; /* time under lasting load over that of the points */
} kind;

typedef struct copy_line {
    double latency_s, s_per_byte; /* 0: not measured */
} copy_line;

struct fr_gpu_measured {
    const fr_profile *profile;
    fr_gpu_model model;
    fitted_point *points; /* by kind */
    kind *kinds;
    size_t n_kinds;
    copy_line copies[2]; /* from the host, to it */
};

/* ---- shapes ------------------------------------------------------------- */

static bool is_product(fr_op op)
{
    return op == FR_OP_LINEAR_FWD || op == FR_OP_LINEAR_DGRAD ||
           op == FR_OP_LINEAR_WGRAD;
}

static bool is_attention(fr_op op)
{
    return op == FR_OP_ATTN_FWD || op == FR_OP_ATTN_BWD;
}

/* Share of the operands' bytes that come from memory. */
static double cold_frac(const fr_compute_point *key, const fr_instr *instr)
{
    double all = 0.0, cold = 0.0;

    for (int i = 0; i < FR_PROFILE_REFS && key->where[i] != '\0'; i++) {
        double n_bytes = (double)fr_instr_ref_bytes(instr, i, 1);
        all += n_bytes;
        cold += key->where[i] == FR_PROFILE_MEMORY ? n_bytes : 0.0;
    }
    return all > 0.0 ? cold / all : 0.0;
}

/*
 * Sets the coordinates in which points are neighbours: products have their
 * three dimensions, attention has heads, length and width, all other kernels
 * have bytes and the length of a row; the last coordinate is the share of the
 * bytes that comes from memory.
 */
static void place_shape(const fr_compute_point *key, const fr_instr *instr,
                        double place[N_PLACE])
{
    const int64_t *d = key->dim;
    fr_op op = (fr_op)instr->op;

    memset(place, 0, N_PLACE * sizeof *place);
    if (is_product(op)) {
        for (int i = 0; i < 3; i++)
            place[i] = log((double)d[i] + 1.0);
    } else if (is_attention(op)) {
        place[0] = log((double)d[FR_DIM(attention, batch)] *
                           (double)d[FR_DIM(attention, q_heads)] +
                       1.0);
        place[1] = log((double)d[FR_DIM(attention, seq)] + 1.0);
        place[2] = log((double)d[FR_DIM(attention, head_dim)] + 1.0);
        place[3] = log((double)d[FR_DIM(attention, q_heads)] /
                       fmax((double)d[FR_DIM(attention, kv_heads)], 1.0));
    } else {
        place[0] = log((double)key->moved_bytes + 1.0);
        place[1] = 0.5 * log((double)d[FR_DIM(matrix, cols)] + 1.0);
    }
    place[4] = cold_frac(key, instr);
}

static double model_s(const fr_gpu_measured *m, const fr_instr *instr)
{
    fr_cost cost;

    if (fr_gpu_cost_compute(&m->model, instr, &cost, NULL) != FR_OK)
        return 0.0;
    return cost.work_s;
}

static const kind *find_kind(const fr_gpu_measured *m,
                             const fr_compute_point *key)
{
    for (size_t i = 0; i < m->n_kinds; i++)
        if (fr_compute_key_is_alike(m->kinds[i].at[0].point, key))
            return &m->kinds[i];
    return NULL;
}

/* ---- between the points ------------------------------------------------- */

static double distance_of(const double *a, const double *b)
{
    double sum = 0.0;

    for (int i = 0; i < N_PLACE; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

enum { N_LOCAL = N_PLACE + 1 }; /* a value and its slopes */

/* Normal equations of the weighted line through the points around a place. */
typedef struct local_line {
    double matrix[N_LOCAL][N_LOCAL], right[N_LOCAL];
} local_line;

static void add_point(local_line *line, const fitted_point *point,
                      const double *place, double weight)
{
    double x[N_LOCAL] = {1.0};

    for (int i = 0; i < N_PLACE; i++)
        x[i + 1] = point->place[i] - place[i];
    for (int i = 0; i < N_LOCAL; i++) {
        line->right[i] += weight * x[i] * point->log_ratio;
        for (int k = 0; k < N_LOCAL; k++)
            line->matrix[i][k] += weight * x[i] * x[k];
    }
}

/* The value at the place itself: positive definite, so elimination needs no
 * pivots; from the last slope to the value. */
static double solve_value(local_line *line)
{
    for (int k = N_LOCAL - 1; k > 0; k--)
        for (int i = 0; i < k; i++) {
            double factor = line->matrix[i][k] / line->matrix[k][k];
            for (int j = 0; j <= k; j++)
                line->matrix[i][j] -= factor * line->matrix[k][j];
            line->right[i] -= factor * line->right[k];
        }
    return line->right[0] / line->matrix[0][0];
}

/* Log ratio at a place: the line through its neighbours, with slopes drawn to
 * 0; `without`: a point that does not count. */
static double ratio_at(const kind *k, const double *place, size_t without,
                       double *nearest)
{
    local_line line = {0};
    double least = INFINITY;

    for (size_t i = 0; i < k->n; i++)
        if (i != without)
            least = fmin(least, distance_of(place, k->at[i].place));
    *nearest = least;
    if (isinf(least))
        return k->mean;
    for (size_t i = 0; i < k->n; i++) {
        double d =
            distance_of(place, k->at[i].place) / fmax(width, reach * least);
        double weight = exp(-0.5 * d * d);
        if (i != without && weight > 1e-9)
            add_point(&line, &k->at[i], place, weight);
    }
    for (int i = 1; i < N_LOCAL; i++)
        line.matrix[i][i] += slope_weight;
    double local = exp(-0.5 * (least / far) * (least / far));
    return local * solve_value(&line) + (1.0 - local) * k->mean;
}

/* Returns the error of predicting a point from the others, over a sample of
 * many points. */
static double cross_error(const kind *k)
{
    enum { N_TRIED = 48 };
    size_t stride = k->n > N_TRIED ? k->n / N_TRIED : 1, n = 0;
    double sum = 0.0, nearest;

    if (k->n < 3)
        return 0.3;
    for (size_t i = 0; i < k->n; i += stride, n++) {
        double missed =
            ratio_at(k, k->at[i].place, i, &nearest) - k->at[i].log_ratio;
        sum += missed * missed;
    }
    return fmax(sqrt(sum / (double)n), 0.01);
}

/* ---- making ------------------------------------------------------------- */

static fr_gpu_math math_of(const char *dtype)
{
    int found = fr_name_find(&fr_dtype_names, dtype);

    return found == FR_DTYPE_F32    ? FR_GPU_MATH_F32
           : found == FR_DTYPE_TF32 ? FR_GPU_MATH_TF32
           : found == FR_DTYPE_F16  ? FR_GPU_MATH_F16
                                    : FR_GPU_MATH_BF16;
}

static const char *generation_of(const char *capability)
{
    static const struct {
        const char *capability, *generation;
    } table[] = {
        /* CUDA C++ Programming Guide, "Compute Capabilities". */
        {"7.0", "volta"},  {"7.2", "volta"},      {"8.0", "ampere"},
        {"8.6", "ampere"}, {"8.7", "ampere"},     {"8.9", "ada"},
        {"9.0", "hopper"}, {"10.0", "blackwell"}, {"10.3", "blackwell-ultra"}};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].capability, capability) == 0)
            return table[i].generation;
    return "";
}

/* The device as its points show it. */
static void make_model(fr_gpu_measured *m)
{
    const fr_gpu_print *gpu = &m->profile->fingerprint.gpu;
    fr_device_type device = {.kind = FR_DEVICE_GPU,
                             .n_cores = gpu->n_processors,
                             .memory_bytes = gpu->memory_bytes,
                             .cache_bytes = gpu->l2_bytes};
    double flops[FR_GPU_MATH_N] = {0}, memory_Bps = 0.0, least_flops = INFINITY;

    fr_text_copy_cut(device.id, sizeof device.id, gpu->name);
    fr_text_copy_cut(device.generation, sizeof device.generation,
                     generation_of(gpu->capability));
    for (size_t i = 0; i < m->profile->n_compute; i++) {
        const fr_compute_point *p = &m->profile->compute[i];
        int op = fr_op_find(p->op);
        if (p->is_held_out || op < 0)
            continue;
        double *best =
            is_product((fr_op)op) ? &flops[math_of(p->dtype)] : &memory_Bps;
        double amount =
            (double)(is_product((fr_op)op) ? p->flop : p->moved_bytes);
        if (is_product((fr_op)op) ||
            (!is_attention((fr_op)op) && strchr(p->where, 'l') == NULL))
            *best = fmax(*best, amount / p->sample.median_s);
    }
    fr_gpu_model_init(&device, &m->model);
    for (int i = 0; i < FR_GPU_MATH_N; i++)
        if (flops[i] > 0.0)
            least_flops = fmin(least_flops, flops[i]);
    /* If one of the two 16-bit units was not measured, the other stands for
     * it. */
    if (flops[FR_GPU_MATH_F16] <= 0.0)
        flops[FR_GPU_MATH_F16] = flops[FR_GPU_MATH_BF16];
    if (flops[FR_GPU_MATH_BF16] <= 0.0)
        flops[FR_GPU_MATH_BF16] = flops[FR_GPU_MATH_F16];
    for (int i = 0; i < FR_GPU_MATH_N; i++) {
        /* A unit that was not measured is as slow as the slowest one. */
        m->model.flops[i] = flops[i] > 0.0       ? flops[i]
                            : isinf(least_flops) ? 1e13
                                                 : least_flops;
        m->model.burst_flops[i] = m->model.flops[i];
        m->model.is_guessed[i] = false;
    }
    if (memory_Bps > 0.0)
        m->model.memory_Bps = memory_Bps / m->model.constants->stream_frac;
}

/* Returns the ratio of the rate under lasting load to the rate among the
 * points, for a reference product that the profile has both of. */
static double steady_of(const fr_profile *profile, const fr_compute_point *like)
{
    char name[FR_PROFILE_NAME];
    const fr_rate_point *first, *lasting;
    int op = fr_op_find(like->op);

    if (!is_product((fr_op)op) && !is_attention((fr_op)op))
        return 1.0;
    (void)snprintf(name, sizeof name, "gemm_%s", like->dtype);
    first = fr_profile_find_rate(profile, name, 0, 0);
    (void)snprintf(name, sizeof name, "gemm_steady_%s", like->dtype);
    lasting = fr_profile_find_rate(profile, name, 0, 0);
    return first != NULL && lasting != NULL
               ? fmax(first->rate / lasting->rate, 1.0)
               : 1.0;
}

static void fill_kind(fr_gpu_measured *m, kind *k, size_t first)
{
    const fr_profile *profile = m->profile;
    const fr_compute_point *like = &profile->compute[first];

    for (size_t i = first; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        fr_instr instr;
        double seconds;
        if (point->is_held_out || !fr_compute_key_is_alike(like, point) ||
            !fr_compute_key_instr(point, &instr))
            continue;
        seconds = model_s(m, &instr);
        if (!(seconds > 0.0))
            continue;
        fitted_point *at = &k->at[k->n++];
        at->point = point;
        at->log_ratio = log(point->sample.median_s / seconds);
        place_shape(point, &instr, at->place);
        k->mean += at->log_ratio;
    }
    if (k->n == 0)
        return;
    k->mean /= (double)k->n;
    k->rel_err = cross_error(k);
    k->steady = steady_of(profile, like);
}

static void make_copies(fr_gpu_measured *m)
{
    static const char *const names[] = {"copy_h2d", "copy_d2h"};
    enum { N_MAX = 64 };

    for (int way = 0; way < 2; way++) {
        double bytes[N_MAX], seconds[N_MAX];
        size_t n = 0;
        fr_line line;
        for (size_t i = 0; i < m->profile->n_comm && n < N_MAX; i++) {
            const fr_comm_point *p = &m->profile->comm[i];
            if (strcmp(p->op, names[way]) != 0 || p->is_held_out ||
                strcmp(p->scope, "pinned") != 0)
                continue;
            bytes[n] = (double)p->n_bytes;
            seconds[n++] = p->sample.median_s;
        }
        if (n >= 2 &&
            fr_fit_alpha_beta(bytes, seconds, n, &line, NULL) == FR_OK)
            m->copies[way] = (copy_line){line.a, line.b};
    }
}

fr_status fr_gpu_measured_create(const fr_profile *profile,
                                 fr_gpu_measured **out, fr_err *err)
{
    fr_gpu_measured *m = calloc(1, sizeof *m);
    size_t n = profile->n_compute + 1, n_used = 0;

    if (m != NULL) {
        m->points = calloc(n, sizeof *m->points);
        m->kinds = calloc(n, sizeof *m->kinds);
    }
    if (m == NULL || m->points == NULL || m->kinds == NULL) {
        fr_gpu_measured_destroy(m);
        return fr_fail_no_memory(err);
    }
    m->profile = profile;
    make_model(m);
    for (size_t i = 0; i < profile->n_compute; i++) {
        kind *k = &m->kinds[m->n_kinds];
        if (profile->compute[i].is_held_out ||
            find_kind(m, &profile->compute[i]) != NULL)
            continue;
        k->at = m->points + n_used;
        fill_kind(m, k, i);
        n_used += k->n;
        m->n_kinds += k->n > 0;
    }
    make_copies(m);
    *out = m;
    return FR_OK;
}

void fr_gpu_measured_destroy(fr_gpu_measured *measured)
{
    if (measured == NULL)
        return;
    free(measured->points);
    free(measured->kinds);
    free(measured);
}

/* ---- asking ------------------------------------------------------------- */

bool fr_gpu_measured_is_of(const fr_gpu_measured *measured,
                           const fr_device_type *device)
{
    const fr_gpu_print *gpu = &measured->profile->fingerprint.gpu;
    double ratio = (double)gpu->memory_bytes / (double)device->memory_bytes;
    bool is_known = device->generation[0] != '\0' &&
                    measured->model.generation != FR_GPU_OTHER;

    /* Datasheets round, drivers keep some for themselves. */
    if (device->kind != FR_DEVICE_GPU || fabs(log(ratio)) > log(1.15))
        return false;
    return !is_known ||
           fr_gpu_generation_of(device) == measured->model.generation;
}

/* Not what was timed, though its key does not tell. */
static bool is_other(const fr_instr *instr)
{
    const uint32_t others = FR_INSTR_HOST | FR_INSTR_NONCAUSAL |
                            FR_INSTR_TRANSPOSE | FR_INSTR_DROPOUT;

    return (instr->flags & others) != 0 ||
           (is_attention((fr_op)instr->op) &&
            (instr->attention.key_rows > 0 || instr->attention.window > 0));
}

static const fr_compute_point *find_exact(const kind *k,
                                          const fr_compute_point *key)
{
    for (size_t i = 0; i < k->n; i++)
        if (fr_compute_key_equal(k->at[i].point, key))
            return k->at[i].point;
    return NULL;
}

bool fr_gpu_measured_ask(const fr_gpu_measured *measured, const fr_instr *instr,
                         fr_cost *out)
{
    fr_compute_point key;
    fr_cost cost;
    double place[N_PLACE], nearest, ratio;

    if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COMPUTE ||
        is_other(instr))
        return false;
    fr_compute_key(instr, &measured->profile->fingerprint, 1, &key);
    const kind *k = find_kind(measured, &key);
    if (k == NULL ||
        fr_gpu_cost_compute(&measured->model, instr, &cost, NULL) != FR_OK)
        return false;
    const fr_compute_point *exact = find_exact(k, &key);
    if (exact != NULL) {
        cost.work_s = exact->sample.median_s;
        cost.rel_err = exact->sample.rel_err;
        cost.source = FR_COST_MEASURED;
    } else {
        place_shape(&key, instr, place);
        ratio = ratio_at(k, place, SIZE_MAX, &nearest);
        cost.work_s *= exp(ratio);
        cost.rel_err = k->rel_err * (nearest <= near ? 1.0 : 2.0);
        cost.source = nearest <= near ? FR_COST_FITTED : FR_COST_EXTRAPOLATED;
    }
    cost.work_s *= k->steady;
    cost.memory_frac = 0.0; /* its memory is its own, not the node's */
    *out = cost;
    return true;
}

double fr_gpu_measured_fit_s(const fr_gpu_measured *measured,
                             const fr_compute_point *key)
{
    const kind *k = find_kind(measured, key);
    double place[N_PLACE], nearest;
    fr_instr instr;

    if (k == NULL || !fr_compute_key_instr(key, &instr))
        return -1.0;
    place_shape(key, &instr, place);
    return model_s(measured, &instr) *
           exp(ratio_at(k, place, SIZE_MAX, &nearest));
}

bool fr_gpu_measured_copy(const fr_gpu_measured *measured, double n_bytes,
                          bool is_to_host, fr_cost *out)
{
    const copy_line *line = &measured->copies[is_to_host];

    if (!(line->s_per_byte > 0.0))
        return false;
    *out = (fr_cost){.latency_s = line->latency_s,
                     .work_s = n_bytes * line->s_per_byte,
                     .rel_err = 0.05,
                     .source = FR_COST_FITTED};
    return true;
}
