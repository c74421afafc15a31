/*
 * test_calibrate_gpu.c: calibration on fake GPUs of a known law: the profile
 * must recover it, and a plan priced by the profile must take what the law says
 * of its instructions.
 */
#include "cost_models/base/cost.h"
#include "cost_models/compute/compute_key.h"
#include "cost_models/link/comm_fit.h"
#include "program/lower/step/lower.h"
#include "sim/predict/simulate.h"
#include "tests/check.h"
#include "tests/unit/calibrate/gpu_calibration.h"

#include <math.h>

static const gpu_fake_law *const law = &gpu_calibration_law;

/* ---- what must come back ------------------------------------------------ */

/* Returns the value of the law at a point with the operands of its key. */
static double expected_s(const fr_compute_point *point)
{
    double cold_bytes = 0, warm_bytes = 0;
    fr_instr instr;

    CHECK(fr_compute_key_instr(point, &instr));
    for (int i = 0; point->where[i] != '\0'; i++) {
        double n_bytes = (double)fr_instr_ref_bytes(&instr, i, 1);
        if (point->where[i] == 'l')
            warm_bytes += n_bytes;
        else if (point->where[i] == 'm')
            cold_bytes += n_bytes;
    }
    return law->kernel_s(&instr, cold_bytes, warm_bytes) + law->kernel_gap_s;
}

static void check_points(const fr_profile *profile)
{
    double worst = 0;
    bool has_warm = false, has_cold = false;

    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        double off = fabs(point->sample.median_s / expected_s(point) - 1.0);
        has_warm = has_warm || strchr(point->where, 'l') != NULL;
        has_cold = has_cold || strchr(point->where, 'm') != NULL;
        if (off > 0.02 && off > worst)
            check_that(false, __FILE__, __LINE__,
                       "%s %s %s [%lld %lld %lld] %s: %g s, not %g s",
                       point->op, point->dtype, point->variant,
                       (long long)point->dim[0], (long long)point->dim[1],
                       (long long)point->dim[2], point->where,
                       point->sample.median_s, expected_s(point));
        worst = fmax(worst, off);
        CHECK(point->sample.n_samples >= 3);
    }
    CHECK(has_warm && has_cold);
}

/* The law has no waves of tiles, which the fits' model has. */
static void check_held_out(const fr_profile *profile)
{
    double sum = 0;
    int n = 0;

    for (size_t i = 0; i < profile->n_held_out; i++) {
        const fr_held_out *check = &profile->held_out[i];
        if (strncmp(check->what, "compute ", 8) != 0)
            continue;
        sum += check->mean_ape;
        n++;
        check_that(check->mean_ape <= 0.08, __FILE__, __LINE__,
                   "%s: %.1f %% off", check->what, 100 * check->mean_ape);
    }
    CHECK(n >= 10);
    CHECK(sum / n < 0.025);
}

static double rate_named(const fr_profile *profile, const char *name)
{
    const fr_rate_point *rate = fr_profile_find_rate(profile, name, 0, 0);

    return CHECK(rate != NULL) ? rate->rate : 1.0;
}

static void check_device(const fr_profile *profile)
{
    const fr_gpu_costs *gpu = &profile->gpu;
    double least_s = law->kernel_s(
        &(fr_instr){.op = FR_OP_CAST, .dtype = FR_DTYPE_BF16}, 0, 48);

    CHECK_NEAR(gpu->bracket_s, law->event_s, 1e-3);
    CHECK_NEAR(gpu->kernel_s, least_s + law->kernel_gap_s, 1e-3);
    CHECK(gpu->launch_s > 0 && gpu->graph_launch_s > 0);
    CHECK_NEAR(gpu->steady_power_w, 693.5, 1e-9);
    /* A product's launch takes no longer when it is hot. */
    CHECK_NEAR(rate_named(profile, "gemm_bf16") /
                   rate_named(profile, "gemm_steady_bf16"),
               law->hot, 0.002);
    /* The context alone: these kernels hold nothing. */
    CHECK(profile->baseline_alone_bytes - law->context_bytes < 4096);
}

static void check_copies(const fr_profile *profile, bool has_peer)
{
    static const struct {
        const char *op, *scope;
        gpu_fake_way way;
    } kinds[] = {{"copy_h2d", "pinned", GPU_FAKE_IN_PINNED},
                 {"copy_h2d", "pageable", GPU_FAKE_IN_PAGEABLE},
                 {"copy_d2h", "pinned", GPU_FAKE_OUT_PINNED},
                 {"copy_d2h", "pageable", GPU_FAKE_OUT_PAGEABLE},
                 {"copy_d2d", "device", GPU_FAKE_WITHIN},
                 {"copy_peer", "peer", GPU_FAKE_TO_PEER}};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        int n = 0;
        for (size_t i = 0; i < profile->n_comm; i++) {
            const fr_comm_point *p = &profile->comm[i];
            if (strcmp(p->op, kinds[k].op) != 0 ||
                strcmp(p->scope, kinds[k].scope) != 0)
                continue;
            n++;
            CHECK_NEAR(p->sample.median_s /
                           law->copy_s(kinds[k].way, (double)p->n_bytes),
                       1.0, 1e-3);
        }
        CHECK_INT(n > 3, kinds[k].way != GPU_FAKE_TO_PEER || has_peer);
    }
}

static void test_one(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    if (CHECK_OK(gpu_calibration_run(&b, 1, NULL, &err), &err)) {
        CHECK_STR(b.profile.fingerprint.gpu.name, "fake");
        CHECK_STR(b.profile.fingerprint.gpu.capability, "9.0");
        CHECK_STR(b.profile.fingerprint.gpu.nccl, "2.28.9");
        CHECK(b.profile.n_compute > 200);
        check_points(&b.profile);
        check_held_out(&b.profile);
        check_device(&b.profile);
        check_copies(&b.profile, false);
    }
    gpu_calibration_release(&b);
}

/* ---- and be priced ------------------------------------------------------ */

/* All instructions of the one rank program, by the law, with hot products. */
static double step_by_law(const fr_program *program,
                          const fr_fingerprint *machine)
{
    const fr_rank_program *rank_program = &program->rank_programs[0];
    double sum_s = 0;

    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_segment *s =
            &program->segments[rank_program->calls[c].i_segment];
        for (uint32_t i = 0; i < s->n_instrs; i++) {
            const fr_instr *instr = &program->instrs[s->first_instr + i];
            fr_compute_point key;
            if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COMPUTE)
                continue;
            fr_compute_key(instr, machine, 1, &key);
            bool is_hot = strncmp(key.op, "linear_", 7) == 0 ||
                          strncmp(key.op, "attn_", 5) == 0;
            sum_s += expected_s(&key) * (is_hot ? law->hot : 1.0);
        }
    }
    return sum_s;
}

static void price_plan(gpu_calibration *b, int64_t micro_batch, double slack)
{
    fr_err err = {0};
    fr_cluster cluster;
    fr_cost_model *costs = NULL;
    fr_program *program = NULL;
    fr_prediction prediction;
    fr_placement placement = {.n_ranks = 1};
    fr_job job = b->job;
    fr_plan plan;

    fr_plan_init(&plan);
    plan.precision = FR_DTYPE_BF16;
    plan.execution.kernels = FR_KERNELS_OWN;
    plan.n_threads = 1;
    plan.micro_batch = micro_batch;
    plan.is_flash = true;
    job.global_batch = 2 * micro_batch;
    CHECK_OK(fr_cluster_load(NULL, "dgx-h100:1", &cluster, &err), &err);
    CHECK_OK(fr_cost_model_create(&b->profile, &cluster, &costs, &err), &err);
    CHECK_OK(fr_lower(&b->model, &job, &plan, &placement, &program, &err),
             &err);
    if (CHECK_OK(fr_simulate(program, costs, &cluster, &placement, NULL,
                             &prediction, &err),
                 &err)) {
        double wanted_s = step_by_law(program, &b->profile.fingerprint);
        check_that(fabs(prediction.step_s / wanted_s - 1) < slack, __FILE__,
                   __LINE__, "micro-batch %d: %g s, the law says %g s",
                   (int)micro_batch, prediction.step_s, wanted_s);
        /* The slab, and what was seen besides. */
        CHECK(prediction.memory.peak_bytes ==
              program->rank_programs[0].slab_bytes +
                  b->profile.baseline_alone_bytes);
    }
    fr_program_destroy(program);
    fr_cost_model_destroy(costs);
    fr_cluster_release(&cluster);
}

static void test_priced(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    if (CHECK_OK(gpu_calibration_run(&b, 1, NULL, &err), &err)) {
        price_plan(&b, 4, 0.01);  /* shapes that were timed */
        price_plan(&b, 6, 0.03);  /* between them */
        price_plan(&b, 28, 0.05); /* beyond: up to 16 were */
    }
    gpu_calibration_release(&b);
}

/* ---- several ranks ------------------------------------------------------ */

static void check_exchanges(const fr_profile *profile, const char *scope,
                            int n_group, bool is_estimated)
{
    int n = 0, n_estimates = 0;

    for (size_t i = 0; i < profile->n_comm; i++) {
        const fr_comm_point *p = &profile->comm[i];
        int op = fr_op_find(p->op);
        if (op < 0 || strcmp(p->scope, scope) != 0 || p->n_group != n_group)
            continue;
        if (strcmp(p->algorithm, FR_PROFILE_NCCL_ESTIMATE) == 0) {
            /* gpu_fake_comm.c's own opinion, which is another one. */
            CHECK_NEAR(p->sample.median_s, 7.3e-6 + (double)p->n_bytes / 2.7e9,
                       1e-9);
            n_estimates++;
            continue;
        }
        n++;
        check_that(
            fabs(p->sample.median_s /
                     law->exchange_s((fr_op)op, n_group, (double)p->n_bytes) -
                 1) < 0.01,
            __FILE__, __LINE__, "%s %s %d: %g s", p->op, scope, n_group,
            p->sample.median_s);
        CHECK(p->is_async);
    }
    if (is_estimated)
        CHECK(n_estimates > 0);
    else
        CHECK_INT(n_estimates, 0);
    check_that(n > 5, __FILE__, __LINE__, "%d points of %s, %d", n, scope,
               n_group);
}

/* The estimate of NCCL is in no curve. */
static void check_fit(const fr_profile *profile)
{
    fr_comm_query query = {.op = FR_OP_ALL_REDUCE,
                           .is_async = true,
                           .n_group = 2,
                           .n_bytes = 1 << 20,
                           .element_bytes = 4};
    fr_comm_answer answer = {0};
    fr_comm_fits *fits = NULL;
    fr_err err = {0};

    if (CHECK_OK(fr_comm_fits_create(profile, &fits, &err), &err) &&
        fr_comm_fits_ask(fits, &query, &answer))
        CHECK_NEAR(answer.seconds,
                   law->exchange_s(FR_OP_ALL_REDUCE, 2, (double)query.n_bytes),
                   0.02);
    CHECK(answer.seconds > 0);
    fr_comm_fits_destroy(fits);
}

static void check_sharing(const fr_profile *profile)
{
    int n[2] = {0};

    /* Exchanges of the law take no notice of kernels. */
    for (size_t i = 0; i < profile->n_sharing; i++) {
        const fr_sharing_point *p = &profile->sharing[i];
        bool is_exchange = strcmp(p->victim, "all_reduce") == 0;
        CHECK_NEAR(p->slowdown, is_exchange ? 1 : law->beside, 0.015);
        n[is_exchange]++;
    }
    CHECK_INT(n[0], 2);
    CHECK_INT(n[1], 2);
}

static void test_nodes(void)
{
    static const int32_t nodes[] = {0, 0, 1, 1};
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 4);
    if (CHECK_OK(gpu_calibration_run(&b, 4, nodes, &err), &err)) {
        CHECK_INT(b.profile.fingerprint.n_nodes, 2);
        check_exchanges(&b.profile, "shm", 2, true);
        check_exchanges(&b.profile, "net:2", 2, true);
        check_exchanges(&b.profile, "net:2", 4, true);
        check_fit(&b.profile);
        check_sharing(&b.profile);
        check_copies(&b.profile, true);
        CHECK(b.profile.gpu.comm_world_bytes ==
              law->world_bytes + law->library_bytes);
        CHECK(b.profile.gpu.comm_pair_bytes == law->pair_bytes);
        CHECK(b.profile.gpu.comm_group_bytes == law->group_bytes);
        check_held_out(&b.profile);
    }
    gpu_calibration_release(&b);
}

/* Through the host, on one device. */
static void test_shared(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    b.setup.is_shared = true;
    if (CHECK_OK(gpu_calibration_run(&b, 2, NULL, &err), &err)) {
        int n = 0;
        for (size_t i = 0; i < b.profile.n_comm; i++)
            n += strcmp(b.profile.comm[i].op, "all_reduce") == 0;
        CHECK(n > 3);
    }
    gpu_calibration_release(&b);
}

/* ---- what goes wrong ---------------------------------------------------- */

static void test_none(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 0);
    CHECK(gpu_calibration_run(&b, 1, NULL, &err) == FR_FAILURE);
    CHECK_HAS(err.text, "no driver");
    gpu_calibration_release(&b);
    gpu_calibration_init(&b, 1);
    CHECK(gpu_calibration_run(&b, 2, NULL, &err) == FR_INFEASIBLE);
    CHECK_HAS(err.text, "--share-gpu");
    gpu_calibration_release(&b);
}

/* A kernel that is refused costs its own points, no others. */
static void test_left_out(void)
{
    fr_err err = {0};
    int n_gelu = 0;
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    b.fake.fault.device = 0;
    b.fake.fault.op = FR_OP_GELU_FWD;
    b.fake.fault.kind = GPU_FAKE_ENQUEUE_FAILS;
    if (CHECK_OK(gpu_calibration_run(&b, 1, NULL, &err), &err)) {
        for (size_t i = 0; i < b.profile.n_compute; i++)
            n_gelu += strcmp(b.profile.compute[i].op, "gelu_fwd") == 0;
        CHECK_INT(n_gelu, 0);
        CHECK(b.profile.n_compute > 200);
        check_points(&b.profile);
    }
    gpu_calibration_release(&b);
    /* Too little memory for the large ones. */
    gpu_calibration_init(&b, 1);
    b.fake.memory_bytes = UINT64_C(1) << 30;
    if (CHECK_OK(gpu_calibration_run(&b, 1, NULL, &err), &err)) {
        CHECK(b.profile.n_compute > 100);
        check_points(&b.profile);
    }
    gpu_calibration_release(&b);
}

static fr_status no_world(fr_gpu *gpu, const fr_gpu_comm_id *id, int32_t world,
                          int32_t rank, bool has_choices, double timeout_s,
                          fr_gpu_comm **out, fr_err *err)
{
    (void)gpu;
    (void)id;
    (void)has_choices;
    (void)timeout_s;
    (void)out;
    return fr_fail(err, FR_FAILURE, "no world of %d for %d", world, rank);
}

/* Communicators that cannot be made cost the collectives alone. */
static void test_no_communicators(void)
{
    fr_gpu_comm_driver broken = gpu_fake_comm_driver;
    fr_err err = {0};
    gpu_calibration b;

    broken.init = no_world;
    gpu_calibration_init(&b, 2);
    b.comm = &broken;
    if (CHECK_OK(gpu_calibration_run(&b, 2, NULL, &err), &err)) {
        check_points(&b.profile);
        check_copies(&b.profile, true);
        CHECK_INT(b.profile.n_sharing, 0);
        for (size_t i = 0; i < b.profile.n_comm; i++)
            CHECK(strncmp(b.profile.comm[i].op, "copy_", 5) == 0);
    }
    gpu_calibration_release(&b);
}

CHECK_MAIN({"one", test_one}, {"priced", test_priced}, {"nodes", test_nodes},
           {"shared", test_shared}, {"none", test_none},
           {"left_out", test_left_out},
           {"no_communicators", test_no_communicators})
