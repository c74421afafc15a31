/* comm_fit.c: see comm_fit.h. */
#include "cost_models/link/comm_fit.h"

#include "core/numbers/fit.h"
#include "cost_models/compute/compute_key.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* All sizes of one (op, algorithm, scope, group, sync or async). */
typedef struct comm_curve {
    int op, algorithm;
    bool is_net, is_async, is_cold;
    int64_t n_group;
    int64_t n_nodes; /* 0: the scope names none */
    size_t n;
    double *bytes, *seconds, *cpu_frac, *rel_err; /* [n], ascending bytes */
    fr_curve *curve;
    fr_line line; /* alpha and beta */
    fr_line end;  /* the same of the largest sizes alone */
} comm_curve;

/* Sizes that say what the largest ones take: down to the last one over it. */
static const double end_ratio = 8;

struct fr_comm_fits {
    comm_curve *at;
    size_t n;
};

static void curve_release(comm_curve *curve)
{
    free(curve->bytes);
    free(curve->seconds);
    free(curve->cpu_frac);
    free(curve->rel_err);
    fr_curve_destroy(curve->curve);
}

void fr_comm_fits_destroy(fr_comm_fits *fits)
{
    if (fits == NULL)
        return;
    for (size_t i = 0; i < fits->n; i++)
        curve_release(&fits->at[i]);
    free(fits->at);
    free(fits);
}

/* 4 of "net:4"; 0 of "net". */
static int64_t scope_nodes(const char *scope)
{
    size_t n = strlen(FR_PROFILE_SCOPE_NET);

    if (strncmp(scope, FR_PROFILE_SCOPE_NET, n) != 0 || scope[n] != ':')
        return 0;
    return strtoll(scope + n + 1, NULL, 10);
}

static void identify(const fr_comm_point *point, comm_curve *out)
{
    int algorithm = fr_name_find(&fr_collective_names, point->algorithm);

    memset(out, 0, sizeof *out);
    out->op = fr_op_find(point->op);
    out->algorithm = algorithm < 0 ? FR_COLLECTIVE_AUTO : algorithm;
    out->is_net = strcmp(point->scope, FR_PROFILE_SCOPE_SHM) != 0;
    out->is_async = point->is_async;
    out->is_cold = point->is_cold;
    out->n_group = point->n_group;
    out->n_nodes = scope_nodes(point->scope);
}

static bool is_same(const comm_curve *a, const comm_curve *b)
{
    return a->op == b->op && a->algorithm == b->algorithm &&
           a->is_net == b->is_net && a->is_async == b->is_async &&
           a->is_cold == b->is_cold && a->n_group == b->n_group &&
           a->n_nodes == b->n_nodes;
}

static bool is_used(const fr_comm_point *point)
{
    return !point->is_held_out && !point->is_beside &&
           strcmp(point->algorithm, FR_PROFILE_NCCL_ESTIMATE) != 0 &&
           fr_op_find(point->op) >= 0;
}

/* Sorted insertion; an equal size replaces nothing (the first one stays). */
static void insert_point(comm_curve *curve, const fr_comm_point *point)
{
    double bytes = fmax((double)point->n_bytes, 1.0);
    size_t i = curve->n;

    for (size_t k = 0; k < curve->n; k++)
        if (curve->bytes[k] == bytes)
            return;
    for (; i > 0 && curve->bytes[i - 1] > bytes; i--) {
        curve->bytes[i] = curve->bytes[i - 1];
        curve->seconds[i] = curve->seconds[i - 1];
        curve->cpu_frac[i] = curve->cpu_frac[i - 1];
        curve->rel_err[i] = curve->rel_err[i - 1];
    }
    curve->bytes[i] = bytes;
    curve->seconds[i] = point->sample.median_s;
    curve->cpu_frac[i] = point->cpu_frac;
    curve->rel_err[i] = point->sample.rel_err;
    curve->n++;
}

static void fit_lines(comm_curve *curve)
{
    const size_t n = curve->n;
    size_t first = 0;
    if (n < 2 || fr_fit_alpha_beta(curve->bytes, curve->seconds, n,
                                   &curve->line, NULL) != FR_OK)
        curve->line.b = curve->seconds[n - 1] / curve->bytes[n - 1];
    while (curve->bytes[first] * end_ratio < curve->bytes[n - 1])
        first++;
    if (n - first < 2 ||
        fr_fit_alpha_beta(curve->bytes + first, curve->seconds + first,
                          n - first, &curve->end, NULL) != FR_OK ||
        curve->end.b <= 0)
        curve->end = curve->line;
}

static fr_status fill_curve(comm_curve *curve, const fr_profile *profile,
                            fr_err *err)
{
    size_t cap = profile->n_comm;
    double *smooth;
    fr_status status;

    FR_TRY_CALLOC(curve->bytes, cap, err);
    FR_TRY_CALLOC(curve->seconds, cap, err);
    FR_TRY_CALLOC(curve->cpu_frac, cap, err);
    FR_TRY_CALLOC(curve->rel_err, cap, err);
    for (size_t i = 0; i < profile->n_comm; i++) {
        comm_curve other;
        identify(&profile->comm[i], &other);
        if (is_used(&profile->comm[i]) && is_same(curve, &other))
            insert_point(curve, &profile->comm[i]);
    }
    /* More bytes never take less time: what looks so is noise. */
    FR_TRY_CALLOC(smooth, curve->n + 1, err);
    for (size_t i = 0; i < curve->n; i++)
        smooth[i] = log(curve->seconds[i]);
    status = fr_fit_isotonic(smooth, NULL, curve->n, err);
    for (size_t i = 0; i < curve->n; i++)
        smooth[i] = exp(smooth[i]);
    if (status == FR_OK)
        status =
            fr_curve_create(curve->bytes, smooth, curve->n, &curve->curve, err);
    free(smooth);
    if (status == FR_OK)
        fit_lines(curve);
    return status;
}

fr_status fr_comm_fits_create(const fr_profile *profile, fr_comm_fits **out,
                              fr_err *err)
{
    fr_status status = FR_OK;
    fr_comm_fits *fits = calloc(1, sizeof *fits);

    if (fits != NULL)
        fits->at = calloc(profile->n_comm + 1, sizeof *fits->at);
    if (fits == NULL || fits->at == NULL) {
        status = fr_fail_no_memory(err);
        goto out_fits;
    }
    for (size_t i = 0; i < profile->n_comm; i++) {
        comm_curve curve;
        bool is_known = false;
        if (!is_used(&profile->comm[i]))
            continue;
        identify(&profile->comm[i], &curve);
        for (size_t k = 0; k < fits->n; k++)
            is_known = is_known || is_same(&fits->at[k], &curve);
        if (is_known)
            continue;
        fits->at[fits->n] = curve;
        FR_TRY_GOTO(status, fill_curve(&fits->at[fits->n++], profile, err),
                    out_fits);
    }
    *out = fits;
    return FR_OK;
out_fits:
    fr_comm_fits_destroy(fits);
    return status;
}

/* Members push to servers and pull from them as all do with DIRECT. */
static fr_collective_kind measured_as(const fr_comm_query *query)
{
    return query->servers.n_servers > 0 ? FR_COLLECTIVE_DIRECT
                                        : query->algorithm;
}

/*
 * The curve that answers best: op and scope must agree; the algorithm, sync
 * or async, and the nearest group size in this order.
 */
static const comm_curve *find_curve(const fr_comm_fits *fits,
                                    const fr_comm_query *query, int *distance)
{
    const comm_curve *best = NULL;
    int op = query->op == FR_OP_RECV ? FR_OP_SEND : (int)query->op;

    for (size_t i = 0; i < fits->n; i++) {
        const comm_curve *curve = &fits->at[i];
        int away = 0;
        if (curve->op != op || curve->is_net != query->is_net ||
            (curve->n_nodes > 0 && curve->n_nodes != query->n_nodes))
            continue;
        if (op != FR_OP_SEND && op != FR_OP_BARRIER &&
            curve->algorithm != (int)measured_as(query))
            away += 1 << 20;
        /* Messages are the communication thread's either way. */
        if (curve->is_async != query->is_async)
            away += query->is_net ? 1 << 16 : 1 << 18;
        /* Small payloads were measured warm only: there it is all one. */
        if (curve->is_cold &&
            (!query->is_cold || (double)query->n_bytes < curve->bytes[0]))
            away += 1 << 19;
        if (!curve->is_cold && query->is_cold)
            away += 1 << 17;
        /* Measured for far larger payloads only. */
        if ((double)query->n_bytes * 8.0 < curve->bytes[0])
            away += 1 << 22;
        if ((double)query->n_bytes > 4.0 * curve->bytes[curve->n - 1])
            away += 1 << 17;
        if (op != FR_OP_SEND)
            away +=
                (int)fmin(fabs((double)(curve->n_group - query->n_group)), 6e4);
        if (best == NULL || away < *distance) {
            best = curve;
            *distance = away;
        }
    }
    return best;
}

/* Nearest in bytes, on a logarithmic scale. */
static size_t nearest_point(const comm_curve *curve, double bytes)
{
    size_t best = 0;

    for (size_t i = 1; i < curve->n; i++)
        if (fabs(log(curve->bytes[i] / bytes)) <
            fabs(log(curve->bytes[best] / bytes)))
            best = i;
    return best;
}

/* Returns the factor by which the closed forms say that the algorithm takes
 * longer in the wanted group than in the measured one. */
static double group_factor(const fr_comm_fits *fits, const comm_curve *curve,
                           const fr_comm_query *query)
{
    const fr_collective *wanted = fr_collectives[query->algorithm];
    const fr_collective *measured = fr_collectives[curve->algorithm];
    uint64_t element = query->element_bytes > 0 ? query->element_bytes : 4;
    uint64_t n = query->n_bytes / element + 1;
    fr_link_cost link;
    double there, here;

    if (query->op == FR_OP_SEND || query->op == FR_OP_RECV || wanted == NULL ||
        measured == NULL ||
        (wanted == measured && curve->n_group == query->n_group))
        return 1.0;
    if (!fr_comm_fits_link(fits, query->is_net, &link)) {
        link.latency_s = curve->line.a;
        link.s_per_byte = curve->line.b;
        link.reduce_s_per_byte = 0.0;
    }
    there = measured->idle_s(query->op, curve->n_group, n, element, &link);
    here = wanted->idle_s(query->op, query->n_group, n, element, &link);
    if (query->servers.n_servers > 0) {
        fr_link_cost inside = link;
        (void)fr_comm_fits_link(fits, false, &inside);
        here = fr_servers_idle_s(&query->servers, (double)(n * element),
                                 &inside, &link);
    }
    return there > 0.0 && here > 0.0 ? here / there : 1.0;
}

bool fr_comm_fits_ask(const fr_comm_fits *fits, const fr_comm_query *query,
                      fr_comm_answer *out)
{
    int distance = 0;
    const comm_curve *curve = find_curve(fits, query, &distance);
    double bytes = fmax((double)query->n_bytes, 1.0), factor;
    size_t nearest;

    if (curve == NULL)
        return false;
    memset(out, 0, sizeof *out);
    nearest = nearest_point(curve, bytes);
    factor = group_factor(fits, curve, query);
    out->is_measured = (distance & ~(3 << 16)) == 0 &&
                       curve->bytes[nearest] == bytes && factor == 1.0;
    out->is_inside = (distance & ((1 << 16) - 1)) == 0 &&
                     distance < (1 << 18) && factor == 1.0 &&
                     bytes >= curve->bytes[0] &&
                     bytes <= curve->bytes[curve->n - 1] * 1.25;
    out->seconds = out->is_measured ? curve->seconds[nearest]
                                    : fr_curve_at(curve->curve, bytes);
    /* Below the smallest size there is only the latency, above the largest
     * bandwidth alone decides. */
    if (bytes < curve->bytes[0])
        out->seconds = curve->seconds[0];
    if (bytes > curve->bytes[curve->n - 1])
        out->seconds = fmax(curve->seconds[curve->n - 1],
                            curve->end.a + curve->end.b * bytes);
    out->seconds *= factor;
    out->latency_s = fmin(curve->seconds[0] * factor, out->seconds);
    out->cpu_frac = curve->cpu_frac[nearest];
    out->rel_err = curve->rel_err[nearest];
    if (!out->is_measured)
        out->rel_err = hypot(out->rel_err, out->is_inside ? 0.04 : 0.2);
    return true;
}

bool fr_comm_fits_link(const fr_comm_fits *fits, bool is_net, fr_link_cost *out)
{
    fr_comm_query query = {.op = FR_OP_SEND, .is_net = is_net, .n_group = 2};
    int distance = 0;
    const comm_curve *curve = find_curve(fits, &query, &distance);

    if (curve == NULL)
        return false;
    memset(out, 0, sizeof *out);
    out->latency_s = curve->seconds[0];
    out->s_per_byte = curve->line.b;
    return true;
}
