/*
 * test_calibrate_run.c: a whole calibration with almost no time: alone, and
 * with two ranks that are threads of this process.
 */
#include "calibrate/calibrate.h"
#include "calibrate/cpu/shapes.h"
#include "cost_models/base/cost.h"
#include "tests/check.h"

#include <pthread.h>

static const double budget_s = 0.4;

typedef struct tiny {
    fr_model model;
    fr_job job;
    fr_calibrate_case one;
    fr_calibrate_options options;
} tiny;

static void tiny_init(tiny *t)
{
    fr_err err = {0};

    memset(t, 0, sizeof *t);
    CHECK_OK(
        fr_model_load(NULL, "configs/models/gpt2-tiny.json", &t->model, &err),
        &err);
    fr_job_init(&t->job);
    t->job.global_batch = 2;
    t->job.seq = 16;
    t->one = (fr_calibrate_case){&t->model, &t->job};
    t->options = (fr_calibrate_options){.cases = &t->one,
                                        .n_cases = 1,
                                        .is_quick = true,
                                        .budget_s = budget_s,
                                        .scratch_dir = check_tmp_dir()};
}

static void check_points(const fr_profile *profile)
{
    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *point = &profile->compute[i];
        CHECK(point->sample.median_s > 0.0);
        CHECK(point->sample.n_samples > 0);
        CHECK(point->sample.median_s < 1.0);
        for (size_t k = 0; k < i; k++) {
            const fr_compute_point *other = &profile->compute[k];
            CHECK(!(fr_compute_key_equal(point, other) &&
                    point->n_threads == other->n_threads &&
                    point->n_busy == other->n_busy));
        }
    }
    for (size_t i = 0; i < profile->n_comm; i++)
        CHECK(profile->comm[i].sample.median_s > 0.0);
}

static void test_alone(void)
{
    fr_err err = {0};
    fr_profile profile;
    fr_cluster cluster;
    fr_cost_model *costs;
    bool is_first = false;
    tiny t;

    tiny_init(&t);
    CHECK_OK(fr_calibrate(&t.options, 1, &profile, &is_first, &err), &err);
    CHECK(is_first);
    CHECK(profile.n_compute > 50);
    CHECK_INT(profile.n_comm, 0);
    CHECK(profile.baseline_alone_bytes > 1000000);
    CHECK(fr_profile_find_rate(&profile, "sgemm", 1, 1) != NULL);
    CHECK(fr_profile_find_rate(&profile, "write", 0, 0) != NULL);
    CHECK(profile.n_held_out > 0);
    CHECK_STR(profile.model, "gpt2-tiny");
    check_points(&profile);
    /* Every measured point is found again by the instruction it is for. */
    CHECK_OK(fr_cluster_load(NULL, "dgx-h100:1", &cluster, &err), &err);
    CHECK_OK(fr_cost_model_create(&profile, &cluster, &costs, &err), &err);
    for (size_t i = 0; i < profile.n_compute; i++) {
        const fr_compute_point *point = &profile.compute[i];
        fr_compute_point key;
        fr_instr instr;
        fr_cost cost;
        CHECK(fr_compute_key_instr(point, &instr));
        for (int r = 0; r < FR_PROFILE_REFS && point->where[r] != 0; r++)
            instr.ref[r].reuse_log2 = point->where[r] == 'n'   ? 10
                                      : point->where[r] == 'm' ? 40
                                                               : 0;
        if (point->is_held_out || strchr(point->where, 'l') != NULL)
            continue;
        fr_compute_key(&instr, &profile.fingerprint, point->n_threads, &key);
        CHECK(fr_compute_key_equal(&key, point));
        CHECK_OK(
            fr_cost_compute(costs, &instr, point->n_threads, 0, &cost, &err),
            &err);
        CHECK_INT(cost.source, FR_COST_MEASURED);
        if (point->n_busy == 1)
            CHECK(cost.work_s == point->sample.median_s);
    }
    fr_cost_model_destroy(costs);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
    fr_model_release(&t.model);
}

static bool has_op(const fr_profile *profile, const char *op, const char *dtype)
{
    for (size_t i = 0; i < profile->n_compute; i++)
        if (strcmp(profile->compute[i].op, op) == 0 &&
            strcmp(profile->compute[i].dtype, dtype) == 0)
            return true;
    return false;
}

/* Rows of experts go somewhere, and all that can be run is timed. */
static void test_experts(void)
{
    static const char text[] =
        "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 2, "
        "\"hidden_size\": 32, \"num_attention_heads\": 4, "
        "\"num_key_value_heads\": 4, \"intermediate_size\": 48, "
        "\"vocab_size\": 64, \"max_position_embeddings\": 32, "
        "\"rms_norm_eps\": 1e-5, \"num_local_experts\": 4, "
        "\"num_experts_per_tok\": 2}";
    fr_err err = {0};
    fr_profile profile;
    bool is_first = false;
    tiny t;

    tiny_init(&t);
    fr_model_release(&t.model);
    CHECK_OK(fr_model_parse("tiny", text, strlen(text), &t.model, &err), &err);
    t.options.is_quick = false;
    CHECK_OK(fr_calibrate(&t.options, 1, &profile, &is_first, &err), &err);
    CHECK(has_op(&profile, "grouped_dgrad", "f32"));
    CHECK(has_op(&profile, "unpermute", "f32"));
    CHECK(has_op(&profile, "grouped_fwd", "bf16"));
    CHECK(has_op(&profile, "copy", "f32")); /* to the host */
    check_points(&profile);
    fr_profile_release(&profile);
    fr_model_release(&t.model);
}

typedef struct rank_thread {
    fr_loopback *hub;
    int64_t rank;
    tiny *t;
    fr_profile profile;
    fr_status status;
    fr_err err;
} rank_thread;

static void *run_rank(void *context)
{
    rank_thread *r = context;
    fr_transport *transport = NULL;

    r->status = fr_transport_loopback_create(r->hub, r->rank, 60.0, &transport,
                                             &r->err);
    if (r->status == FR_OK)
        r->status =
            fr_calibrate_over(transport, &r->t->options, &r->profile, &r->err);
    fr_transport_destroy(transport);
    return NULL;
}

static void run_two(const int32_t *nodes, tiny *t, fr_profile *out)
{
    fr_err err = {0};
    rank_thread ranks[2];
    pthread_t threads[2];
    fr_loopback *hub;

    CHECK_OK(fr_loopback_create(2, nodes, &hub, &err), &err);
    for (int i = 0; i < 2; i++) {
        ranks[i] = (rank_thread){.hub = hub, .rank = i, .t = t};
        CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_OK(ranks[i].status, &ranks[i].err);
    }
    CHECK_INT(ranks[1].profile.n_compute, 0);
    *out = ranks[0].profile;
    fr_loopback_destroy(hub);
}

static void test_two_ranks(void)
{
    fr_profile profile = {0};
    bool has_sync = false, has_async = false, has_send = false,
         has_busy = false;
    tiny t;

    tiny_init(&t);
    run_two(NULL, &t, &profile);
    for (size_t i = 0; i < profile.n_comm; i++) {
        const fr_comm_point *point = &profile.comm[i];
        CHECK_STR(point->scope, "shm");
        CHECK(point->cpu_frac >= 0.0 && point->cpu_frac <= 1.0);
        has_send = has_send || strcmp(point->op, "send") == 0;
        has_sync = has_sync || !point->is_async;
        has_async = has_async || point->is_async;
    }
    CHECK(has_sync && has_async && has_send);
    for (size_t i = 0; i < profile.n_compute; i++)
        has_busy = has_busy || profile.compute[i].n_busy == 2;
    CHECK(has_busy || profile.fingerprint.n_cores < 2);
    check_points(&profile);
    fr_profile_release(&profile);
    fr_model_release(&t.model);
}

static void test_two_nodes(void)
{
    static const int32_t nodes[] = {0, 1};
    fr_profile profile = {0};
    tiny t;

    tiny_init(&t);
    t.options.n_cases = 0; /* links alone */
    run_two(nodes, &t, &profile);
    CHECK_INT(profile.fingerprint.n_nodes, 2);
    CHECK(profile.n_comm > 20);
    CHECK_INT(profile.n_compute, 0);
    for (size_t i = 0; i < profile.n_comm; i++)
        CHECK_STR(profile.comm[i].scope, "net");
    fr_profile_release(&profile);
    fr_model_release(&t.model);
}

CHECK_MAIN({"alone", test_alone}, {"experts", test_experts},
           {"two_ranks", test_two_ranks}, {"two_nodes", test_two_nodes})
