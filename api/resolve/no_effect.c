/* no_effect.c: see no_effect.h. */
#include "api/resolve/no_effect.h"

#include "spec/model/layer_ops.h"

#include <stdio.h>
#include <string.h>

typedef struct setting {
    const fr_request *request;
    const fr_job *job;
    const fr_model *model;
    const fr_cluster *cluster;
} setting;

/* Training uses these options, but they take no time in it; a plan file keeps
 * them. */
static bool is_for_training(const setting *at)
{
    return !fr_request_has(at->request, FR_OPT_OUTPUT);
}

/* Goals of a whole run count its steps, and say how its rate follows. */
static bool is_for_runs(const setting *at)
{
    return is_for_training(at) &&
           !fr_command_takes(at->request->command, FR_OPT_GOAL);
}

/* A sweep tells of a run only what its tokens take. */
static bool has_no_run(const setting *at)
{
    return fr_command_takes(at->request->command, FR_OPT_VARY) &&
           at->job->tokens == 0;
}

/* Neither a goal nor a limit looks at what interrupts a run. */
static bool has_no_interruptions(const setting *at)
{
    return fr_command_takes(at->request->command, FR_OPT_GOAL) &&
           !fr_request_counts_interruptions(at->request, at->job);
}

static bool measures_nothing(const setting *at)
{
    return fr_command_takes(at->request->command, FR_OPT_MEASURE) &&
           !fr_request_has(at->request, FR_OPT_MEASURE);
}

static bool has_no_script(const setting *at)
{
    return !fr_request_has(at->request, FR_OPT_FROM);
}

static bool has_no_spares(const setting *at)
{
    return !fr_request_has(at->request, FR_OPT_SPARES) &&
           !has_no_interruptions(at);
}

static bool is_not_spot(const setting *at)
{
    return !fr_request_on(at->request, FR_OPT_SPOT) &&
           !has_no_interruptions(at);
}

/* Nobody says how often spot nodes go: none does. */
static bool has_no_spot_rate(const setting *at)
{
    return fr_request_on(at->request, FR_OPT_SPOT) &&
           !fr_request_has(at->request, FR_OPT_SPOT_EVERY) &&
           !(at->cluster->spot_interruption_per_h > 0);
}

static bool has_no_sequence(const setting *at)
{
    return at->model->kind == FR_MODEL_LAYERS;
}

static bool drops_nothing(const setting *at)
{
    const fr_model *model = at->model;
    if (!fr_model_has_layer_ops(model))
        return false;
    for (size_t i = 0; i < model->n_layer_ops; i++)
        if (model->layer_ops[i].kind == FR_LAYER_OP_DROPOUT)
            return false;
    return true;
}

static bool has_no_experts(const setting *at)
{
    return at->model->n_experts == 0;
}

static bool has_no_read_rate(const setting *at)
{
    return !(fr_cluster_node_type(at->cluster, 0)->storage_read_Bps > 0);
}

static bool has_no_loading(const setting *at)
{
    return !fr_request_has(at->request, FR_OPT_DECODE) &&
           !(fr_cluster_node_type(at->cluster, 0)->storage_latency_s > 0);
}

static bool is_not_cached(const setting *at)
{
    const fr_node_type *node = fr_cluster_node_type(at->cluster, 0);
    return node->host_memory_bytes == 0 ||
           !(node->storage_read_Bps > 0 || node->storage_latency_s > 0);
}

static bool is_gpu(const setting *at)
{
    return fr_cluster_device(at->cluster, 0)->kind == FR_DEVICE_GPU;
}

static bool is_cpu(const setting *at)
{
    return !is_gpu(at);
}

enum { MOST_OPTIONS = 13 };
#define ANY_NODES "cluster,node"

static const struct {
    bool (*is_so)(const setting *at);
    const char *why;
    fr_option options[MOST_OPTIONS]; /* FR_OPT_HELP (0) at the end */
    const char *unless_varied; /* keys of --vary whose values may undo it */
} reasons[] = {
    {is_for_training,
     "no prediction depends on it; -o keeps it in the plan, for 'forerun run'",
     {FR_OPT_SEED, FR_OPT_LR, FR_OPT_LR_SCHEDULE, FR_OPT_LR_BASE_BATCH,
      FR_OPT_WARMUP, FR_OPT_WEIGHT_DECAY, FR_OPT_DATA},
     NULL},
    {is_for_runs,
     "the answer is of one step; -o keeps it in the plan, for 'forerun run'",
     {FR_OPT_LR_RULE},
     NULL},
    {has_no_run,
     "the answer has a whole run only with --tokens",
     {FR_OPT_STEPS, FR_OPT_LR_RULE},
     NULL},
    {has_no_interruptions,
     "the answer has a whole run only with --tokens, or a goal or a limit of "
     "one",
     {FR_OPT_MTBF, FR_OPT_RESTART, FR_OPT_CHECKPOINT_KIND, FR_OPT_STORAGE_WRITE,
      FR_OPT_STORAGE_READ, FR_OPT_SPOT_EVERY, FR_OPT_SPOT_WAIT,
      FR_OPT_SPOT_TOGETHER, FR_OPT_SPARES, FR_OPT_REPAIR, FR_OPT_LEAST_NODES,
      FR_OPT_CHECKPOINT_EVERY},
     NULL},
    {has_no_spares,
     "a spare node is always there without --spares",
     {FR_OPT_REPAIR},
     "spares"},
    {has_no_script, "there is no script without --from", {FR_OPT_SET}, NULL},
    {measures_nothing,
     "nothing is timed without --measure",
     {FR_OPT_TIMEOUT},
     NULL},
    {is_not_spot,
     "there are no spot nodes without --spot",
     {FR_OPT_SPOT_EVERY, FR_OPT_SPOT_WAIT, FR_OPT_SPOT_TOGETHER},
     "spot"},
    {has_no_spot_rate,
     "the rate at which spot nodes are taken away is not known; give "
     "--spot-every",
     {FR_OPT_SPOT_WAIT, FR_OPT_SPOT_TOGETHER},
     ANY_NODES ",spot-every"},
    {has_no_sequence,
     "a list of layers has no sequences",
     {FR_OPT_SEQ},
     "model"},
    {drops_nothing,
     "none of the model's layers has a dropout",
     {FR_OPT_DROPOUT},
     "model"},
    {has_no_experts,
     "the model has no experts",
     {FR_OPT_ETP, FR_OPT_EXPERT_DISPATCH, FR_OPT_EXPERT_IMBALANCE,
      FR_OPT_EXPERT_CAPACITY, FR_OPT_EXPERT_PAD},
     "model"},
    {has_no_read_rate,
     "the nodes' <storage> has no read rate",
     {FR_OPT_SAMPLE_BYTES},
     ANY_NODES ",storage-read"},
    {has_no_loading,
     "nothing is decoded without --decode, nor has the nodes' <storage> a "
     "latency",
     {FR_OPT_LOADERS},
     ANY_NODES ",decode,storage-latency"},
    {is_not_cached,
     "the nodes' <storage> has no read rate or latency, or their hosts no "
     "memory",
     {FR_OPT_DATASET_BYTES},
     ANY_NODES ",storage-read,storage-latency"},
    {is_gpu,
     "GPUs compute, not threads of the host",
     {FR_OPT_THREADS},
     ANY_NODES},
    {is_cpu, "there are no GPUs", {FR_OPT_CUDA_GRAPHS}, ANY_NODES},
    {is_cpu,
     "there is no NCCL between CPUs",
     {FR_OPT_NCCL_PROTOCOL, FR_OPT_NCCL_CHANNELS},
     ANY_NODES},
    {is_cpu, "on CPUs forerun itself trains", {FR_OPT_FRAMEWORK}, ANY_NODES},
};

/* Is the word one of the list, whose words end with a comma? */
static bool is_listed(const char *list, const char *word, size_t n_word)
{
    while (list != NULL && *list != '\0') {
        const size_t n = strcspn(list, ",");
        if (n == n_word && strncmp(list, word, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* Does a --vary, "KEY=A,B" or several with blanks between them, have one of
 * these keys? */
static bool varies(const fr_request *request, const char *keys)
{
    if (!fr_command_takes(request->command, FR_OPT_VARY))
        return false;
    for (int i = 0; i < request->n_repeats; i++)
        for (const char *at = request->repeats[i]; *at != '\0';) {
            at += strspn(at, " ");
            if (is_listed(keys, at, strcspn(at, "= ")))
                return true;
            at += strcspn(at, " ");
        }
    return false;
}

static bool holds(size_t i_reason, const setting *at)
{
    return reasons[i_reason].is_so(at) &&
           !varies(at->request, reasons[i_reason].unless_varied);
}

bool fr_has_no_effect(const fr_request *request, fr_option option,
                      const fr_job *job, const fr_model *model,
                      const fr_cluster *cluster)
{
    const setting at = {request, job, model, cluster};
    for (size_t i = 0; i < FR_LENGTH(reasons); i++)
        for (int k = 0; k < MOST_OPTIONS; k++)
            if (reasons[i].options[k] == option && holds(i, &at))
                return true;
    return false;
}

void fr_note_ignored(const fr_request *request, const char *names,
                     const char *why)
{
    fr_request_note(request, "%s %s ignored: %s", names,
                    strchr(names, ',') == NULL ? "is" : "are", why);
}

void fr_note_no_effect(const fr_request *request, const fr_job *job,
                       const fr_model *model, const fr_cluster *cluster)
{
    const setting at = {request, job, model, cluster};
    for (size_t i = 0; i < FR_LENGTH(reasons); i++) {
        char names[256] = "";
        if (!holds(i, &at))
            continue;
        for (const fr_option *o = reasons[i].options;
             o < reasons[i].options + MOST_OPTIONS && *o != FR_OPT_HELP; o++) {
            size_t used = strlen(names);
            if (request->option[*o].source == FR_SOURCE_FLAG)
                snprintf(names + used, sizeof names - used, "%s--%s",
                         used > 0 ? ", " : "", fr_option_get(*o).name);
        }
        if (names[0] != '\0')
            fr_note_ignored(request, names, reasons[i].why);
    }
}
