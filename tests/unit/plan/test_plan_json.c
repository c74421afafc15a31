/*
 * test_plan_json.c: plan files: written, read, written again to the same
 * bytes; every decision survives; bad files.
 */
#include "core/system/fileio.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_json.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

/* No member has its default. */
static void make(fr_plan_file *file)
{
    fr_err err = {0};
    fr_plan_file_init(file);
    CHECK_OK(fr_model_load(NULL, "llama-tiny", &file->model, &err), &err);
    fr_plan *p = &file->plan;
    p->tp = 2, p->pp = 2, p->dp = 3, p->vpp = 2;
    p->micro_batch = 5;
    p->schedule = FR_SCHEDULE_INTERLEAVED;
    p->recompute = FR_RECOMPUTE_SELECTIVE;
    p->is_sequence_parallel = true;
    p->is_overlap = false;
    p->bucket_bytes = 18446744073709551557ull;
    p->compressor = FR_COMPRESSOR_POWERSGD;
    p->compressor_rank = 7;
    p->compressor_density = 0.1 + 0.2;
    p->has_error_feedback = false;
    p->collective = FR_COLLECTIVE_HALVING_DOUBLING;
    p->protocol = FR_PROTOCOL_LL128;
    p->n_channels = 13;
    p->rank_order = FR_RANK_ORDER_PP_TP_DP;
    p->n_threads = 3;
    p->n_split = 4;
    for (int i = 0; i < 4; i++)
        p->layer_split[i] = 1;
    p->n_shares = 3;
    p->batch_shares[0] = p->batch_shares[1] = p->batch_shares[2] = 2;
    fr_job *j = &file->job;
    j->global_batch = 30;
    j->seq = 94;
    j->n_steps = 1237;
    j->seed = 18446744073709551615ull;
    j->optimizer = FR_OPTIMIZER_LAMB;
    j->lr = 1.0 / 3.0;
    j->beta1 = 0.87;
    j->beta2 = 0.991;
    j->optimizer_eps = 3.3e-9;
    j->weight_decay = 0.0123;
    j->trust_coefficient = 0.0025;
    j->clip_norm = 0.77;
    j->lr_schedule = FR_LR_COSINE;
    j->warmup_steps = 11;
    j->lr_min_frac = 0.09;
    j->lr_rule = FR_LR_RULE_SQRT;
    j->lr_base_batch = 5;
    snprintf(j->data, sizeof j->data, "a \"quoted\" path/\xc3\xa9.bin");
    snprintf(file->cluster, sizeof file->cluster, "two-hosts-1gbit");
    file->cluster_hash = 0xfedcba9876543210ull;
    file->profile_hash = 0x0123456789abcdefull;
    file->node_of_rank = malloc(12 * sizeof *file->node_of_rank);
    for (int i = 0; i < 12; i++)
        file->node_of_rank[i] = 11 - i;
    file->has_prediction = true;
    file->prediction.expected_step_s = 0.13;
    file->prediction.step_s = 0.1234567890123456789;
    file->prediction.step_s_p95 = 0.25;
    file->prediction.tokens_per_s = 1e5 / 7;
    for (int i = 0; i < FR_PART_N; i++)
        file->prediction.breakdown_s[i] = 0.01 * (i + 1) / 3;
    file->prediction.memory.peak_bytes = 9007199254740993ull; /* 2^53 + 1 */
    file->prediction.memory.fits = true;
    file->prediction.memory.p_fits = 0.97;
    file->prediction.cost.kwh = 3.25e-5;
    file->prediction.source = "fitted";
}

static char *to_text(const fr_plan_file *file)
{
    fr_json_writer json;
    fr_buffer buffer;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&json, &buffer);
    fr_plan_file_write(file, &json);
    return buffer.data;
}

static void check_equal(const fr_plan_file *a, const fr_plan_file *b)
{
    char one[512], two[512];
    CHECK_STR(fr_plan_describe(&a->plan, one, sizeof one),
              fr_plan_describe(&b->plan, two, sizeof two));
    CHECK(a->plan.bucket_bytes == b->plan.bucket_bytes);
    CHECK(a->plan.compressor_density == b->plan.compressor_density);
    CHECK(a->job.seed == b->job.seed && a->job.lr == b->job.lr);
    CHECK(a->job.optimizer == b->job.optimizer);
    CHECK(a->job.lr_rule == b->job.lr_rule);
    CHECK_STR(a->job.data, b->job.data);
    CHECK_STR(a->cluster, b->cluster);
    CHECK(a->cluster_hash == b->cluster_hash);
    CHECK(a->profile_hash == b->profile_hash);
    CHECK(memcmp(a->node_of_rank, b->node_of_rank, 12 * sizeof(int32_t)) == 0);
    CHECK(a->prediction.step_s == b->prediction.step_s);
    CHECK(a->prediction.expected_step_s == b->prediction.expected_step_s);
    CHECK(memcmp(a->prediction.breakdown_s, b->prediction.breakdown_s,
                 sizeof a->prediction.breakdown_s) == 0);
    CHECK(a->prediction.memory.peak_bytes == b->prediction.memory.peak_bytes);
    CHECK_STR(a->prediction.source, b->prediction.source);
    CHECK_INT(fr_model_parameters(&a->model), fr_model_parameters(&b->model));
}

static void test_round_trip(void)
{
    fr_plan_file first, second = {0};
    fr_err err = {0};
    make(&first);
    CHECK_OK(fr_plan_check(&first.plan, &first.model, &first.job, &err), &err);
    char *one = to_text(&first);
    if (CHECK_OK(fr_plan_file_parse("p", one, strlen(one), &second, &err),
                 &err)) {
        char *two = to_text(&second);
        CHECK_STR(one, two);
        check_equal(&first, &second);
        free(two);
        fr_plan_file_release(&second);
    }
    free(one);
    fr_plan_file_release(&first);
}

static void test_file(void)
{
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "forerun-plan-%d.json", (int)getpid());
    fr_plan_file first, second = {0};
    fr_err err = {0};
    char *one = NULL, *two = NULL;
    make(&first);
    first.has_prediction = false;
    first.cluster_hash = 0;
    free(first.node_of_rank);
    first.node_of_rank = NULL;
    CHECK_OK(fr_plan_file_save(&first, path, &err), &err);
    CHECK_OK(fr_plan_file_load(path, &second, &err), &err);
    CHECK(!second.has_prediction && second.cluster_hash == 0);
    CHECK(second.node_of_rank == NULL);
    CHECK_OK(fr_file_read(path, 0, &one, NULL, &err), &err);
    CHECK_OK(fr_plan_file_save(&second, path, &err), &err);
    CHECK_OK(fr_file_read(path, 0, &two, NULL, &err), &err);
    CHECK_STR(one, two);
    free(one);
    free(two);
    unlink(path);
    fr_plan_file_release(&first);
    fr_plan_file_release(&second);
}

#define MODEL                                                                  \
    "\"model\": {\"schema\": \"forerun.model/1\", \"name\": \"m\", "           \
    "\"n_layers\": 3, \"hidden\": 96, \"n_heads\": 6, \"ffn_hidden\": 384, "   \
    "\"vocab\": 311, \"max_seq\": 64}"
#define FILE_WITH(world, plan, job, rest)                                      \
    "{\"schema\": \"forerun.plan/1\",\n\"world\": " world                      \
    ",\n\"plan\": {" plan "},\n\"job\": {" job "},\n" MODEL rest "}"
#define JOB "\"global_batch\": 6, \"seq\": 33"
#define FILE_2_WITH(plan, execution, rest)                                     \
    "{\"schema\": \"forerun.plan/2\",\n\"world\": 2,\n\"plan\": {" plan        \
    "},\n\"execution\": {" execution "},\n\"job\": {" JOB "},\n" MODEL rest    \
    "}"
#define DECISIONS                                                              \
    "\"dp\": 2, \"zero\": 1, \"recompute\": \"full\", "                        \
    "\"flash_attention\": true"
#define FACTS                                                                  \
    "\"zero_unit\": \"parameter\", \"kernels\": \"eager\", "                   \
    "\"flash_kind\": \"flash-2\", \"scaling\": \"block\", "                    \
    "\"cuda_graphs\": \"layer\", \"loss_fused\": true, "                       \
    "\"loss_metrics\": 2, \"grad_added_apart\": true, "                        \
    "\"grad_listed\": true, \"routing_fused\": true, \"norm_fused\": true, "   \
    "\"early_stop\": true, \"p2p_sync\": true, \"expert_imbalance\": 1.5, "    \
    "\"compress_by\": \"tensor\""

/* A key that is left out has its default. */
static void test_minimal(void)
{
    const char *text = FILE_WITH("2", "\"dp\": 2", JOB, "");
    fr_plan_file file = {0};
    fr_err err = {0};
    fr_plan plain;
    fr_plan_init(&plain);
    if (!CHECK_OK(fr_plan_file_parse("p", text, strlen(text), &file, &err),
                  &err))
        return;
    CHECK_INT(file.plan.dp, 2);
    CHECK_INT(file.plan.bucket_bytes, plain.bucket_bytes);
    CHECK_INT(file.job.seq, 33);
    CHECK_STR(file.backend, "cpu");
    fr_plan_file_release(&file);
}

/* Files of version 1 have the facts of execution among the decisions.  Both
 * come to the same plan, whose description is what checkpoints are known by:
 * it is that of the program that wrote version 1. */
static void test_versions(void)
{
    static const char description[] =
        "dp2 tp1 pp1 mb1 1f1b zero1 recompute=full block-scaling flash2 "
        "kernels=eager cuda-graphs=layer fused-loss loss-metrics=2 "
        "grads-added-apart grads-listed fused-routing fused-norms early-stop "
        "gather=parameter imbalance=1.5";
    const char *texts[] = {FILE_WITH("2", DECISIONS ", " FACTS, JOB, ""),
                           FILE_2_WITH(DECISIONS, FACTS, "")};
    fr_plan_file files[2] = {0};
    char *written[2] = {NULL}, text[512];
    fr_err err = {0};
    for (int i = 0; i < 2; i++) {
        if (!CHECK_OK(fr_plan_file_parse("p", texts[i], strlen(texts[i]),
                                         &files[i], &err),
                      &err))
            return;
        CHECK_STR(fr_plan_describe(&files[i].plan, text, sizeof text),
                  description);
        CHECK(files[i].plan.execution.compress_by == FR_COMPRESS_TENSOR);
        written[i] = to_text(&files[i]);
    }
    CHECK(fr_plan_is_same(&files[0].plan, &files[1].plan));
    CHECK(fr_plan_hash(&files[0].plan) == fr_plan_hash(&files[1].plan));
    CHECK_STR(written[0], written[1]);
    CHECK_HAS(written[0], "\"schema\": \"forerun.plan/2\"");
    for (int i = 0; i < 2; i++) {
        free(written[i]);
        fr_plan_file_release(&files[i]);
    }
}

/* Version 2 renamed frameworks: older files keep their meaning. */
static void test_old_names(void)
{
    static const char *const texts[] = {
        FILE_WITH("2", "\"dp\": 2", JOB, ", \"framework\": \"megatron\""),
        FILE_WITH("2", "\"dp\": 2", JOB, ", \"framework\": \"deepspeed\""),
        FILE_WITH("2", "\"dp\": 2", JOB, ", \"framework\": \"megatron-core\""),
        FILE_WITH("2", "\"dp\": 2", JOB, ", \"framework\": \"torchtitan\""),
        FILE_WITH("2", "\"dp\": 2", JOB, ""),
        FILE_2_WITH("\"dp\": 2", "", ", \"framework\": \"megatron\"")};
    static const char *const names[] = {"megatron-2021",
                                        "megatron-deepspeed-2021",
                                        "megatron",
                                        "torchtitan",
                                        "",
                                        "megatron"};
    for (size_t i = 0; i < FR_LENGTH(texts); i++) {
        fr_plan_file file, again;
        fr_err err;
        char *text;
        if (!CHECK_OK(fr_plan_file_parse("p", texts[i], strlen(texts[i]), &file,
                                         &err),
                      &err))
            return;
        CHECK_STR(file.framework, names[i]);
        text = to_text(&file);
        CHECK_OK(fr_plan_file_parse("p", text, strlen(text), &again, &err),
                 &err);
        CHECK_STR(again.framework, names[i]);
        free(text);
        fr_plan_file_release(&file);
        fr_plan_file_release(&again);
    }
}

typedef struct bad {
    const char *text, *says;
} bad;

static const bad bad_plans[] = {
    {"", "p.json:1:"},
    {"[]", "p.json:1:"},
    {"{\"schema\": \"forerun.plan/9\"}", "schema is 'forerun.plan/9'"},
    {FILE_WITH("4", "\"dp\": 2", JOB, ""),
     "p.json:2: tp 1 x pp 1 x dp 2 x cp 1 = 2 ranks, but world is 4"},
    {FILE_WITH("1", "\"tpp\": 1", JOB, ""), "p.json:3: unknown key 'tpp'"},
    {FILE_WITH("1", "\"tp\": 1, \"tp\": 2", JOB, ""), "p.json:3:"},
    {FILE_WITH("1", "\"tp\": 1.5", JOB, ""), "p.json:3:"},
    {FILE_WITH("1", "\"tp\": 4294967297", JOB, ""),
     "p.json:3: tp is 4294967297: out of range"},
    {FILE_WITH("5", "\"tp\": 5", JOB, ""),
     "heads: 6 is not a multiple of tp 5; choose tp "
     "from 1,2,3,6"},
    {FILE_WITH("1", "\"schedule\": \"2f2b\"", JOB, ""),
     "p.json:3: unknown schedule '2f2b'; choose from gpipe, 1f1b, "
     "interleaved"},
    {FILE_WITH("1", "\"layer_split\": 3", JOB, ""), "p.json:3: layer_split"},
    {FILE_WITH("1", "\"batch_shares\": [1, -7]", JOB, ""),
     "batch_shares has 2 entries for dp 1"},
    {FILE_WITH("1", "\"compressor_density\": 1e999", JOB, ""), "p.json:3:"},
    {FILE_WITH("1", "", "\"global_batch\": 0", ""),
     "p.json:4: global_batch is 0"},
    {FILE_WITH("1", "", JOB ", \"lr\": \"3e-4\"", ""), "p.json:4:"},
    {FILE_WITH("1", "", JOB ", \"seed\": -1", ""), "p.json:4:"},
    {FILE_WITH("1", "", JOB ", \"optimizer\": \"adam\"", ""),
     "p.json:4: unknown optimizer 'adam'; choose from sgd, adamw, lars, lamb"},
    {FILE_WITH("1", "", "\"global_batch\": 6, \"seq\": 65", ""),
     "seq 65 > max_seq 64"},
    {FILE_WITH("1", "", JOB, ",\n\"backend\": \"tpu\""),
     "p.json:6: unknown backend 'tpu'"},
    {FILE_WITH("1", "", JOB, ",\n\"cluster_hash\": \"12\""),
     "p.json:6: cluster_hash '12' is not 16 hexadecimal digits"},
    {FILE_WITH("1", "", JOB, ",\n\"node_of_rank\": [0, 1]"),
     "p.json:6: node_of_rank must list one node for each of the 1 ranks"},
    {FILE_WITH("1", "", JOB, ",\n\"node_of_rank\": [-1]"), "p.json:6:"},
    {FILE_WITH("1", "", JOB,
               ",\n\"prediction\": {\"step_s\": 0, "
               "\"memory\": {}}"),
     "p.json:6: step_s is 0"},
    {FILE_WITH("1", "", JOB, ",\n\"prediction\": {\"step_s\": 1}"), "'memory'"},
    {FILE_WITH("1", "", JOB, ",\n\"prediction\": 3"), "p.json:6:"},
    {FILE_WITH("1", "", JOB, ",\n\"comment\": 3"), "p.json:6: unknown key"},
    {FILE_WITH("1", "", JOB, ",\n\"execution\": {}"),
     "p.json:6: unknown key 'execution'"},
    {FILE_2_WITH("\"dp\": 2, \"kernels\": \"eager\"", "", ""),
     "p.json:3: unknown key 'kernels'"},
    {FILE_2_WITH("\"dp\": 2", "\"tp\": 1", ""), "p.json:4: unknown key 'tp'"},
    {FILE_2_WITH("\"dp\": 2", "\"kernels\": \"own\"", ""),
     "p.json:4: unknown kernels 'own'"},
    {FILE_2_WITH("\"dp\": 2", "\"loss_metrics\": 65", ""), "loss_metrics"},
    {"{\"schema\": \"forerun.plan/2\", \"world\": 1, \"plan\": {}, "
     "\"job\": {}, " MODEL "}",
     "'execution'"},
    {"{\"schema\": \"forerun.plan/1\", \"world\": 1, \"plan\": {}, "
     "\"job\": {}}",
     "'model'"},
};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad_plans / sizeof bad_plans[0]; i++) {
        fr_plan_file file;
        fr_err err = {0};
        memset(&file, 0x5a, sizeof file);
        const fr_plan_file before = file;
        const char *text = bad_plans[i].text;
        CHECK_FAILS(
            fr_plan_file_parse("p.json", text, strlen(text), &file, &err),
            FR_INPUT, &err);
        if (!CHECK_HAS(err.text, bad_plans[i].says))
            printf("  case %zu\n", i);
        CHECK_HAS(err.text, "p.json:");
        CHECK(memcmp(&before, &file, sizeof file) == 0);
    }
}

static void test_truncated(void)
{
    fr_plan_file first;
    make(&first);
    char *text = to_text(&first);
    size_t n_text = strlen(text);
    for (size_t n = 0; n + 1 < n_text; n += 7) {
        fr_plan_file file = {0};
        fr_err err = {0};
        CHECK_FAILS(fr_plan_file_parse("p.json", text, n, &file, &err),
                    FR_INPUT, &err);
    }
    free(text);
    fr_plan_file_release(&first);
}

/* Steps follow from tokens, which a file without them does not write. */
static void test_tokens(void)
{
    fr_plan_file file;
    fr_err err = {0};
    make(&file);
    char *text = to_text(&file);
    CHECK(strstr(text, "\"tokens\":") == NULL);
    free(text);
    file.job.tokens = 1237 * 30 * 94 - 1; /* all but one of the last step's */
    text = to_text(&file);
    fr_plan_file back = {0};
    if (CHECK_OK(fr_plan_file_parse("p.json", text, strlen(text), &back, &err),
                 &err))
        CHECK_INT(back.job.tokens, 1237 * 30 * 94 - 1);
    fr_plan_file_release(&back);
    char *tokens = strstr(text, "\"steps\": 1237,");
    if (!CHECK(tokens != NULL))
        return;
    memcpy(tokens, "\"steps\": 1236,", strlen("\"steps\": 1236,"));
    CHECK_FAILS(fr_plan_file_parse("p.json", text, strlen(text), &back, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "steps is 1236, but 3488339 tokens take 1237 steps "
                        "of 30 x 94");
    memset(tokens, ' ', strlen("\"steps\": 1236,"));
    if (CHECK_OK(fr_plan_file_parse("p.json", text, strlen(text), &back, &err),
                 &err))
        CHECK_INT(back.job.n_steps, 1237);
    fr_plan_file_release(&back);
    free(text);
    for (int n = 0; n >= -5; n -= 5) {
        char said[64];
        file.job.tokens = 1;
        text = to_text(&file);
        char *at = strstr(text, "\"tokens\": 1,");
        if (!CHECK(at != NULL))
            return;
        snprintf(said, sizeof said, "tokens is %d; give at least 1", n);
        char *broken = malloc(strlen(text) + 2);
        if (!CHECK(broken != NULL))
            return;
        sprintf(broken, "%.*s\"tokens\": %d%s", (int)(at - text), text, n,
                at + strlen("\"tokens\": 1"));
        CHECK_FAILS(
            fr_plan_file_parse("p.json", broken, strlen(broken), &back, &err),
            FR_INPUT, &err);
        CHECK_HAS(err.text, said);
        free(broken);
        free(text);
    }
    fr_plan_file_release(&file);
}

CHECK_MAIN({"old_names", test_old_names}, {"round_trip", test_round_trip},
           {"file", test_file}, {"minimal", test_minimal},
           {"versions", test_versions}, {"bad", test_bad},
           {"truncated", test_truncated}, {"tokens", test_tokens})
