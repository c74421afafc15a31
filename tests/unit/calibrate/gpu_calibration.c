/* gpu_calibration.c: threads as ranks of a calibration. */
#include "tests/unit/calibrate/gpu_calibration.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

/* ---- the law ------------------------------------------------------------ */

static double rate_of(const fr_instr *instr)
{
    return instr->dtype == FR_DTYPE_BF16   ? 6.183e14
           : instr->dtype == FR_DTYPE_TF32 ? 3.217e14
                                           : 4.391e13;
}

static double kernel_law(const fr_instr *instr, double cold_bytes,
                         double warm_bytes)
{
    double memory_s = cold_bytes / 2.713e12 + warm_bytes / 7.291e12;
    double flop = (double)fr_instr_flop(instr);

    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return 2.31e-6 + fmax(flop / rate_of(instr), memory_s);
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return 3.17e-6 + flop / 0.41 / rate_of(instr);
    case FR_OP_CAST: /* of a small one the code comes from memory, too */
        return 1.93e-6 + memory_s +
               (cold_bytes > 0 && instr->vector.n <= 8 ? 0.61e-6 : 0);
    case FR_OP_EMBED_FWD: /* the tokens' rows of the tables */
    case FR_OP_EMBED_BWD:
        return 5.71e-6 + (double)instr->dim[0] * (double)instr->dim[1] /
                             (instr->dtype == FR_DTYPE_BF16 ? 3.3e11 : 1.9e11);
    default:
        return 1.93e-6 + memory_s;
    }
}

static const double copy_Bps[GPU_FAKE_WAY_N] = {
    [GPU_FAKE_WITHIN] = 1.27e12,      [GPU_FAKE_IN_PINNED] = 5.31e10,
    [GPU_FAKE_IN_PAGEABLE] = 1.13e10, [GPU_FAKE_OUT_PINNED] = 5.47e10,
    [GPU_FAKE_OUT_PAGEABLE] = 9.7e9,  [GPU_FAKE_TO_PEER] = 3.71e11};

static double copy_law(gpu_fake_way way, double n_bytes)
{
    return 6.7e-6 + n_bytes / copy_Bps[way];
}

static double exchange_law(fr_op op, int n_group, double n_bytes)
{
    double passes = op == FR_OP_ALL_REDUCE ? 2.0 : 1.0;

    if (op == FR_OP_SEND || op == FR_OP_RECV)
        return 7.9e-6 + n_bytes / 2.83e11;
    return 13.3e-6 + passes * (n_group - 1) / n_group * n_bytes / 3.59e11;
}

const gpu_fake_law gpu_calibration_law = {.kernel_s = kernel_law,
                                          .copy_s = copy_law,
                                          .exchange_s = exchange_law,
                                          .kernel_gap_s = 0.87e-6,
                                          .event_s = 0.37e-6,
                                          .beside = 1.173,
                                          .hot = 1.117,
                                          .n_hot = 40,
                                          .launch_s = 0,
                                          .context_bytes = 523456789,
                                          .world_bytes = 12345678,
                                          .pair_bytes = 345678901,
                                          .group_bytes = 398765432,
                                          .library_bytes = 45678912};

/* ---- a calibration ------------------------------------------------------ */

void gpu_calibration_init(gpu_calibration *b, int n_devices)
{
    fr_err err = {0};

    memset(b, 0, sizeof *b);
    gpu_fake_init(&b->fake, n_devices);
    b->timeout_s = 60;
    b->fake.law = &gpu_calibration_law;
    b->fake.memory_bytes = UINT64_C(85520809984);
    CHECK_OK(
        fr_model_load(NULL, "configs/models/gpt2-124m.json", &b->model, &err),
        &err);
    b->model.n_layers = 2;
    fr_job_init(&b->job);
    b->job.seq = 512;
    fr_log_init_stream(&b->log, stderr);
    b->one = (fr_calibrate_case){&b->model, &b->job};
    b->options = (fr_calibrate_options){
        .cases = &b->one, .n_cases = 1, .is_quick = true, .budget_s = 2.0};
    if (getenv("SHOW_LOG") != NULL)
        b->options.log = &b->log;
}

void gpu_calibration_release(gpu_calibration *b)
{
    fr_profile_release(&b->profile);
    fr_model_release(&b->model);
    gpu_fake_release(&b->fake);
}

typedef struct rank_thread {
    gpu_calibration *b;
    fr_loopback *hub;
    int64_t rank;
    fr_profile profile;
    fr_status status;
    fr_err err;
} rank_thread;

static void *run_rank(void *context)
{
    rank_thread *r = context;
    fr_transport *transport = NULL;

    r->status = fr_transport_loopback_create(r->hub, r->rank, r->b->timeout_s,
                                             &transport, &r->err);
    if (r->status == FR_OK)
        r->status = fr_calibrate_gpu(transport, &r->b->setup, &r->b->options,
                                     &r->profile, &r->err);
    fr_transport_destroy(transport);
    return NULL;
}

fr_status gpu_calibration_run(gpu_calibration *b, int n_ranks,
                              const int32_t *nodes, fr_err *err)
{
    rank_thread ranks[GPU_FAKE_MAX_RANKS] = {0};
    pthread_t threads[GPU_FAKE_MAX_RANKS];
    fr_loopback *hub;

    b->system = gpu_fake_system(&b->fake);
    b->setup.system = &b->system;
    if (b->comm != NULL)
        b->system.comm = b->comm;
    if (b->norm_fwd != NULL)
        b->fake.kernels[FR_OP_NORM_FWD] = b->norm_fwd;
    FR_TRY(fr_loopback_create(n_ranks, nodes, &hub, err));
    for (int i = 0; i < n_ranks; i++) {
        ranks[i] = (rank_thread){.b = b, .hub = hub, .rank = i};
        CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0);
    }
    for (int i = 0; i < n_ranks; i++)
        (void)pthread_join(threads[i], NULL);
    fr_loopback_destroy(hub);
    for (int i = 0; i < n_ranks; i++)
        if (ranks[i].status != FR_OK) {
            *err = ranks[i].err;
            return ranks[i].status;
        }
    b->profile = ranks[0].profile;
    return FR_OK;
}
