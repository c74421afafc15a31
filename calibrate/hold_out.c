/* hold_out.c: how well the fits meet what they never saw. */
#include "calibrate/calibrate.h"
#include "cost_models/compute/compute_fit.h"
#include "cost_models/compute/compute_key.h"
#include "cost_models/gpu/gpu_measured.h"
#include "cost_models/link/comm_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_error(fr_held_out *check, double fitted_s, double measured_s)
{
    double ape = fabs(fitted_s - measured_s) / measured_s;

    check->mean_ape = (check->mean_ape * check->n + ape) / (check->n + 1);
    check->worst_ape = fmax(check->worst_ape, ape);
    check->n++;
}

/* Keeps the check of a group and an operation if it had any point. */
static fr_status keep_check(fr_profile *profile, fr_held_out *check,
                            const char *group, const char *op, fr_err *err)
{
    if (check->n == 0)
        return FR_OK;
    snprintf(check->what, sizeof check->what, "%s %s", group, op);
    return fr_profile_add_held_out(profile, check, err);
}

/* The fit that a cost model would make for this point. */
static fr_status fit_like(const fr_profile *profile,
                          const fr_compute_point *like, fr_compute_fit **out,
                          fr_err *err)
{
    fr_status status;
    size_t n = 0;
    const fr_compute_point **members =
        calloc(profile->n_compute + 1, sizeof *members);

    if (members == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < profile->n_compute; i++)
        if (fr_compute_key_same_fit(&profile->compute[i], like))
            members[n++] = &profile->compute[i];
    status = fr_compute_fit_create(members, n, out, err);
    free(members);
    return status;
}

static void note_all(const fr_profile *profile, const fr_gpu_measured *measured,
                     const char *op, fr_held_out *check)
{
    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        double fitted_s;
        if (!point->is_held_out || strcmp(point->op, op) != 0)
            continue;
        fitted_s = fr_gpu_measured_fit_s(measured, point);
        if (fitted_s > 0.0)
            note_error(check, fitted_s, point->sample.median_s);
    }
}

/* Copies to and from page-locked memory, by the line that prices them. */
static fr_status check_copies(fr_profile *profile,
                              const fr_gpu_measured *measured, bool is_to_host,
                              fr_err *err)
{
    const char *op = is_to_host ? "copy_d2h" : "copy_h2d";
    fr_held_out check = {0};

    for (size_t i = 0; i < profile->n_comm; i++) {
        const fr_comm_point *point = &profile->comm[i];
        fr_cost cost;
        if (point->is_held_out && strcmp(point->op, op) == 0 &&
            strcmp(point->scope, "pinned") == 0 &&
            fr_gpu_measured_copy(measured, (double)point->n_bytes, is_to_host,
                                 &cost))
            note_error(&check, cost.latency_s + cost.work_s,
                       point->sample.median_s);
    }
    return keep_check(profile, &check, "pinned", op, err);
}

static fr_status check_gpu(fr_profile *profile, fr_err *err)
{
    fr_gpu_measured *measured;
    fr_status status = FR_OK;

    FR_TRY(fr_gpu_measured_create(profile, &measured, err));
    for (int op = 0; status == FR_OK && op < FR_OP_N; op++) {
        fr_held_out check = {0};
        note_all(profile, measured, fr_op_name((fr_op)op), &check);
        status =
            keep_check(profile, &check, "compute", fr_op_name((fr_op)op), err);
    }
    if (status == FR_OK)
        status = check_copies(profile, measured, false, err);
    if (status == FR_OK)
        status = check_copies(profile, measured, true, err);
    fr_gpu_measured_destroy(measured);
    return status;
}

static fr_status check_op(fr_profile *profile, const char *op, fr_err *err)
{
    fr_held_out check = {0};

    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        fr_compute_fit *fit;
        fr_status status;
        if (!point->is_held_out || strcmp(point->op, op) != 0)
            continue;
        status = fit_like(profile, point, &fit, err);
        if (status == FR_INPUT)
            continue;
        FR_TRY(status);
        note_error(&check, fr_compute_fit_at(fit, point, NULL, NULL),
                   point->sample.median_s);
        fr_compute_fit_destroy(fit);
    }
    return keep_check(profile, &check, "compute", op, err);
}

/* 4 of "net:4"; 0: the scope names none. */
static int64_t nodes_of(const char *scope)
{
    const char *colon = strchr(scope, ':');

    return colon != NULL ? strtoll(colon + 1, NULL, 10) : 0;
}

static fr_status check_scope(fr_profile *profile, const fr_comm_fits *fits,
                             bool is_net, fr_op op, fr_err *err)
{
    const char *scope = is_net ? FR_PROFILE_SCOPE_NET : FR_PROFILE_SCOPE_SHM;
    const size_t n_scope = strlen(scope);
    fr_held_out check = {0};

    for (size_t i = 0; i < profile->n_comm; i++) {
        const fr_comm_point *point = &profile->comm[i];
        int algorithm = fr_name_find(&fr_collective_names, point->algorithm);
        fr_comm_query query = {.op = op,
                               .algorithm = algorithm < 0
                                                ? FR_COLLECTIVE_AUTO
                                                : (fr_collective_kind)algorithm,
                               .is_net = is_net,
                               .is_async = point->is_async,
                               .is_cold = point->is_cold,
                               .n_group = point->n_group,
                               .n_nodes = nodes_of(point->scope),
                               .n_bytes = point->n_bytes,
                               .element_bytes = 4};
        fr_comm_answer answer;
        if (!point->is_held_out || strncmp(point->scope, scope, n_scope) != 0 ||
            strcmp(point->op, fr_op_name(op)) != 0 ||
            !fr_comm_fits_ask(fits, &query, &answer))
            continue;
        note_error(&check, answer.seconds, point->sample.median_s);
    }
    return keep_check(profile, &check, scope, fr_op_name(op), err);
}

fr_status fr_calibrate_hold_out(fr_profile *profile, fr_err *err)
{
    fr_status status = FR_OK;
    fr_comm_fits *fits;

    if (fr_profile_is_gpu(profile))
        FR_TRY(check_gpu(profile, err));
    for (int op = 0; op < FR_OP_N && !fr_profile_is_gpu(profile); op++)
        FR_TRY(check_op(profile, fr_op_name((fr_op)op), err));
    FR_TRY(fr_comm_fits_create(profile, &fits, err));
    for (int op = 0; op < FR_OP_N && status == FR_OK; op++)
        for (int net = 0; net < 2 && status == FR_OK; net++)
            status = check_scope(profile, fits, net == 1, (fr_op)op, err);
    fr_comm_fits_destroy(fits);
    return status;
}
