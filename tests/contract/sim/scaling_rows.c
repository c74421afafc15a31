/* scaling_rows.c: what the words of a row mean. */
#include "tests/contract/sim/scaling_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has(const fr_case *row, fr_case_column column, const char *word)
{
    return strstr(row->field[column], word) != NULL;
}

char *scaling_key(const fr_case *row, char *key, size_t n_key)
{
    const char *const *f = row->field;
    snprintf(key, n_key, "%s|%s|%s|%s|%s|%s|%s|%s", f[FR_CASE_SOURCE],
             f[FR_CASE_MODEL], f[FR_CASE_GPU], f[FR_CASE_SYNC_METHOD],
             f[FR_CASE_DATA], f[FR_CASE_PRECISION], f[FR_CASE_BATCH_PER_GPU],
             f[FR_CASE_SEQ]);
    return key;
}

/* A text that begins with `word` has our name `ours`. */
typedef struct naming {
    const char *word, *ours;
} naming;

static const char *find(const naming *names, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, names[i].word, strlen(names[i].word)) == 0)
            return names[i].ours;
    return NULL;
}
#define FIND(names, text) find(names, sizeof names / sizeof names[0], text)

static const naming models[] = {
    {"Inception", "inception-v3"},
    {"ResNet-50", "resnet-50"},
    {"ResNet-101", "resnet-101"},
    {"ResNet-152", "resnet-152"},
    {"VGG", "vgg-16"},
    {"AlexNet", "alexnet"},
    {"BERT-Large", "bert-large"},
};

static const naming nodes[] = {
    {"P100 DGX-1", "dgx-1-p100"},     {"P100", "p100-4-roce"},
    {"K80 GCE", "n1-k80-8"},          {"K80 p2.8xlarge", "p2.8xlarge"},
    {"V100-SXM2-32GB", "dgx-1-v100"}, {"V100-SXM2-16GB", "dgx-1-v100-16g"},
    {"V100-SXM3", "dgx-2"},           {"A100-SXM-80GB", "dgx-a100"},
};

static fr_dtype precision_of(const char *text)
{
    return strstr(text, "TF32")                           ? FR_DTYPE_TF32
           : strstr(text, "fp16")                         ? FR_DTYPE_F16
           : strstr(text, "bf16") || strstr(text, "BF16") ? FR_DTYPE_BF16
                                                          : FR_DTYPE_F32;
}

/*
 * The place and the time of the sum of gradients. tf_cnn_benchmarks
 * (variable_mgr.py) does so variable by variable beside backward; its
 * parameter device, or where there are replicas and no NCCL the place where
 * copies are added, is the CPU or the GPUs. Horovod fuses up to 64 MB
 * (docs/tensor-fusion.rst). Once per accumulated step: in one piece after the
 * last backward, in fp16 where training is (NVIDIA's BERT,
 * --allreduce_post_accumulation_fp16); DeepSpeed without ZeRO does so, too
 * (runtime/engine.py, buffered_allreduce_fallback).
 */
static void set_exchange(const fr_case *row, fr_plan *plan)
{
    bool is_gpu = has(row, FR_CASE_SYNC_METHOD, "gpu");
    bool is_server = has(row, FR_CASE_SYNC_METHOD, "parameter_server") ||
                     has(row, FR_CASE_SYNC_METHOD, "PS") || is_gpu;

    if (is_server) {
        plan->collective = FR_COLLECTIVE_PARAMETER_SERVER;
        plan->server_place = is_gpu ? FR_SERVER_DEVICE : FR_SERVER_HOST;
    }
    if (has(row, FR_CASE_SYNC_METHOD, "ring"))
        plan->collective = FR_COLLECTIVE_RING;
    if (has(row, FR_CASE_FRAMEWORK, "tf_cnn_benchmarks"))
        plan->bucket_bytes = 1;
    if (has(row, FR_CASE_FRAMEWORK, "Horovod") ||
        has(row, FR_CASE_SYNC_METHOD, "Horovod"))
        plan->bucket_bytes = 64 * 1024 * 1024;
    if (has(row, FR_CASE_SYNC_METHOD, "once per accumulated step") ||
        has(row, FR_CASE_FRAMEWORK, "DeepSpeed")) {
        plan->is_overlap = false;
        plan->bucket_bytes = 0;
    }
    if (plan->precision == FR_DTYPE_F16)
        plan->grad_dtype = FR_DTYPE_F16;
}

/* The i-th part of "64 (seq128) / 8 (seq512)"; "" when there are fewer. */
static const char *part(const char *text, int i)
{
    for (; i > 0 && *text != '\0'; i--) {
        text += strcspn(text, "/");
        text += strspn(text, "/ ");
    }
    return text;
}

int scaling_n_phases(const fr_case *row)
{
    int n = 1;
    while (*part(row->field[FR_CASE_PHASE_SAMPLES], n) != '\0')
        n++;
    return n;
}

double scaling_phase_samples(const fr_case *row, int i_phase)
{
    const char *text = row->field[FR_CASE_PHASE_SAMPLES];
    return *text != '\0' ? 1e6 * strtod(part(text, i_phase), NULL) : 1;
}

/* "64K" */
static int64_t count_of(const char *text)
{
    char *end;
    int64_t n = strtol(text, &end, 10);
    return *end == 'K' ? 1024 * n : n;
}

/* As many as the row accumulates, else as its global batch has. */
static int64_t global_batch_of(const fr_case *row, int i_phase, int64_t n_gpus,
                               int64_t batch)
{
    const char *accumulated = row->field[FR_CASE_GRAD_ACCUM];
    int64_t global = count_of(part(row->field[FR_CASE_GLOBAL_BATCH], i_phase));
    double n_times = 1;
    if (*accumulated != '\0')
        n_times = strtod(accumulated, NULL);
    else if (global > 0 && global % (batch * n_gpus) == 0)
        n_times = (double)(global / (batch * n_gpus));
    return batch * n_gpus * (int64_t)(n_times + 0.5);
}

/* "128", or where a phase says it "64 (seq128)". */
static int64_t seq_of(const fr_case *row, int i_phase)
{
    const char *said =
        strstr(part(row->field[FR_CASE_BATCH_PER_GPU], i_phase), "(seq");
    return said != NULL ? strtol(said + strlen("(seq"), NULL, 10)
                        : strtol(row->field[FR_CASE_SEQ], NULL, 10);
}

bool scaling_setup_of(const fr_case *row, const scaling_ask *ask,
                      scaling_setup *out, char *why, size_t n_why)
{
    const char *const *f = row->field;
    const char *name = FIND(models, ask->model);
    const char *node = FIND(nodes, f[FR_CASE_GPU]);
    int64_t batch = count_of(part(f[FR_CASE_BATCH_PER_GPU], ask->i_phase));
    int64_t per_node = strtol(f[FR_CASE_GPUS_PER_NODE], NULL, 10);
    bool is_list = name == NULL || strcmp(name, "bert-large") != 0;

    if (name == NULL || node == NULL || batch < 1) {
        snprintf(why, n_why, "%s",
                 name == NULL   ? "a model that is not there"
                 : node == NULL ? "a node that is not there"
                                : "no batch per GPU");
        return false;
    }
    snprintf(out->model, sizeof out->model, "%s", name);
    snprintf(out->cluster, sizeof out->cluster, "%s:%d", node,
             (int)((ask->n_gpus + per_node - 1) / per_node));
    fr_plan_init(&out->plan);
    out->plan.dp = (int32_t)ask->n_gpus;
    out->plan.micro_batch = batch;
    out->plan.precision = precision_of(f[FR_CASE_PRECISION]);
    if (!is_list && !has(row, FR_CASE_FRAMEWORK, "DeepSpeed"))
        out->plan.execution.kernels = FR_KERNELS_EAGER;
    set_exchange(row, &out->plan);
    fr_job_init(&out->job);
    out->job.optimizer = is_list ? FR_OPTIMIZER_SGD : FR_OPTIMIZER_LAMB;
    out->job.clip_norm = is_list ? 0 : 1;
    out->job.dropout = is_list ? 0 : 0.1;
    out->job.seq = is_list ? 1 : seq_of(row, ask->i_phase);
    out->job.global_batch =
        global_batch_of(row, ask->i_phase, ask->n_gpus, batch);
    return true;
}
