/*
 * config_accelerate.c: the YAML that Hugging Face's Accelerate is started with
 * (commands/config/config_args.py, ClusterConfig; the keys of its parts are
 * arguments of commands/launch.py).  A ds_config.json that it names is read
 * too.  Micro-batch, recompute of DDP and the optimizer are the training
 * script's.
 */
#include "core/document/yaml.h"
#include "frameworks/accelerate/accelerate_reader.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"
#include "frameworks/read/config.h"

#include <string.h>
#include <strings.h>

enum { DDP_BUCKET_BYTES = 25 << 20 };

/* NULL: read, or where processes run and not what they do. */
static const fr_config_key root_keys[] = {
    {"compute_environment", NULL},
    {"distributed_type", NULL},
    {"mixed_precision", NULL},
    {"fp16", NULL},
    {"num_processes", NULL},
    {"num_machines", NULL},
    {"use_cpu", NULL},
    {"deepspeed_config", NULL},
    {"fsdp_config", NULL},
    {"megatron_lm_config", NULL},
    {"parallelism_config", NULL},
    {"tp_config", NULL},
    {"dynamo_config", NULL},
    {"dynamo_backend", NULL},
    {"debug", NULL},
    {"machine_rank", NULL},
    {"main_process_ip", NULL},
    {"main_process_port", NULL},
    {"main_training_function", NULL},
    {"rdzv_backend", NULL},
    {"same_network", NULL},
    {"gpu_ids", NULL},
    {"enable_cpu_affinity", NULL},
    {"mpirun_config", NULL},
    {"downcast_bf16", NULL},
    {"tpu_name", NULL},
    {"tpu_zone", NULL},
    {"tpu_use_cluster", NULL},
    {"tpu_use_sudo", NULL},
    {"tpu_vm", NULL},
    {"tpu_env", NULL},
    {"command_file", NULL},
    {"commands", NULL},
    {"fp8_config", "products of fp8 are taken as forerun has them"},
    {"ipex_config", FR_ACCELERATE_NO_PLACE},
};

static const fr_config_key dynamo_keys[] = {
    {"dynamo_backend", NULL},
    {"dynamo_mode", NULL},
    {"dynamo_use_dynamic", NULL},
    {"dynamo_use_fullgraph", NULL},
    {"dynamo_use_regional_compilation", NULL},
};

static bool looks_like(const char *text, size_t n)
{
    /* `accelerate config` always writes this key, and no other file has it. */
    static const char mark[] = "distributed_type:";
    return memmem(text, n, mark, strlen(mark)) != NULL;
}

static fr_status read_precision(fr_accelerate_reader *r)
{
    static const char *const words[FR_ACCELERATE_PRECISIONS_N] = {
        [FR_ACCELERATE_F32] = "no",
        [FR_ACCELERATE_F16] = "fp16",
        [FR_ACCELERATE_BF16] = "bf16",
        [FR_ACCELERATE_FP8] = "fp8"};
    const fr_json_value *value = fr_json_find(r->root, "mixed_precision");
    bool is_f16 = false;
    FR_TRY(fr_accelerate_read_switch(r, r->root, "fp16",
                                     &is_f16)); /* before 0.5 */
    r->precision = is_f16 ? FR_ACCELERATE_F16 : FR_ACCELERATE_F32;
    if (value != NULL && fr_json_kind_of(value) == FR_JSON_BOOL)
        return fr_json_fail(value, r->err,
                            "mixed_precision is a word: write 'no' in quotes");
    return fr_accelerate_read_word(r, r->root, "mixed_precision", words,
                                   FR_ACCELERATE_PRECISIONS_N, &r->precision);
}

static fr_status read_dynamo(fr_accelerate_reader *r)
{
    const fr_json_value *part;
    const char *backend;
    FR_TRY(fr_accelerate_find_part(r, "dynamo_config", dynamo_keys,
                                   FR_LENGTH(dynamo_keys), &part));
    if (part == NULL)
        part = r->root; /* before 0.15 */
    const fr_json_value *value = fr_json_find(part, "dynamo_backend");
    if (value == NULL || fr_json_kind_of(value) == FR_JSON_BOOL)
        return FR_OK; /* an unquoted NO */
    FR_TRY(fr_json_as_string(value, &backend, r->err));
    r->is_compiled = strcasecmp(backend, "no") != 0;
    return FR_OK;
}

static fr_status read_processes(fr_accelerate_reader *r)
{
    const fr_json_value *value = fr_json_find(r->root, "num_processes");
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_deepspeed_read_count(value, "num_processes", -1, 1 << 24,
                                   &r->n_processes, r->err));
    if (r->n_processes < 1) {
        r->n_processes = 0; /* -1: the command line says it */
        return FR_OK;
    }
    if (!r->is_single && r->request->world > 0 &&
        r->request->world != r->n_processes)
        return fr_json_fail(
            value, r->err, "num_processes is %lld, and there are %lld ranks",
            (long long)r->n_processes, (long long)r->request->world);
    return FR_OK;
}

/* launch_command(): simple_launcher() starts one process, whatever
 * num_processes says, unless mpirun_config has a hostfile. */
static fr_status read_single(fr_accelerate_reader *r)
{
    const fr_json_value *type = fr_json_find(r->root, "distributed_type");
    const fr_json_value *mpirun = fr_json_find(r->root, "mpirun_config");
    const char *name = "NO"; /* without quotes it is false */
    if (type != NULL && fr_json_kind_of(type) == FR_JSON_STRING)
        FR_TRY(fr_json_as_string(type, &name, r->err));
    r->is_single = strcmp(name, "NO") == 0 &&
                   fr_json_find(mpirun, "mpirun_hostfile") == NULL;
    return FR_OK;
}

static void note_single(fr_accelerate_reader *r)
{
    const int64_t world =
        r->n_processes > 1 ? r->n_processes : r->request->world;
    if (world > 1)
        fr_buffer_printf(&r->out->notes,
                         "one process, not %lld: distributed_type NO starts "
                         "one\n",
                         (long long)world);
    r->n_processes = 1;
}

/* accelerator.py: fp16 needs a GPU. */
static fr_status read_device(fr_accelerate_reader *r)
{
    const fr_json_value *value = fr_json_find(r->root, "use_cpu");
    bool is_cpu = false;
    FR_TRY(fr_accelerate_read_switch(r, r->root, "use_cpu", &is_cpu));
    if (!is_cpu)
        return FR_OK;
    if (r->precision == FR_ACCELERATE_F16)
        return fr_json_fail(value, r->err,
                            "Accelerate has no fp16 on CPUs; leave use_cpu out "
                            "or give mixed_precision bf16");
    fr_buffer_puts(&r->out->notes,
                   "use_cpu: the processes train on CPUs; predict them on a "
                   "cluster of nodes without GPUs (forerun catalog nodes)\n");
    return FR_OK;
}

/* ---- DDP ---- */

static fr_status read_ddp(fr_accelerate_reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const fr_json_value *old = fr_json_find(r->root, "tp_config");
    int32_t n_copies = 1;
    FR_TRY(fr_accelerate_take_script(r, r->out->framework));
    FR_TRY(fr_accelerate_read_degree(r, old, "tp_size",
                                     &plan->tp)); /* 1.4 and 1.5 */
    FR_TRY(fr_accelerate_read_mesh(r, &n_copies));
    FR_TRY(fr_config_take_dp(r->request, r->n_processes, r->out, r->err));
    plan->grad_dtype = FR_DTYPE_F32;
    plan->bucket_bytes = DDP_BUCKET_BYTES;
    fr_accelerate_take_batch(r, 1);
    fr_buffer_puts(&r->out->notes,
                   "no recompute, buckets of 25 MiB: the training script says "
                   "them; give --recompute full, --bucket\n");
    return FR_OK;
}

/* ---- the file ---- */

typedef struct kind {
    const char *name; /* of distributed_type */
    fr_status (*read)(fr_accelerate_reader *r);
} kind;

static const kind kinds[] = {
    {"NO", read_ddp},
    {"MULTI_GPU", read_ddp},
    {"MULTI_CPU", read_ddp},
    {"MULTI_XPU", read_ddp},
    {"MULTI_NPU", read_ddp},
    {"MULTI_MLU", read_ddp},
    {"MULTI_MUSA", read_ddp},
    {"MULTI_SDAA", read_ddp},
    {"MULTI_HPU", read_ddp},
    {"MULTI_NEURON", read_ddp},
    {"TP", read_ddp},
    {"FSDP", fr_accelerate_read_fsdp},
    {"DEEPSPEED", fr_accelerate_read_deepspeed},
    {"MEGATRON_LM", fr_accelerate_read_megatron},
};

static fr_status read_kind(fr_accelerate_reader *r)
{
    const fr_json_value *value = fr_json_find(r->root, "distributed_type");
    const char *name;
    if (value != NULL && fr_json_kind_of(value) == FR_JSON_BOOL)
        return kinds[0].read(r); /* an unquoted NO */
    FR_TRY(fr_json_get_string(r->root, "distributed_type", &name, r->err));
    for (size_t i = 0; i < FR_LENGTH(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].read(r);
    return fr_json_fail(value, r->err,
                        "distributed_type '%.40s'; NO, MULTI_CPU, MULTI_GPU, "
                        "FSDP, DEEPSPEED and MEGATRON_LM are read",
                        name);
}

static fr_status read_root(fr_accelerate_reader *r)
{
    const fr_json_value *where = fr_json_find(r->root, "compute_environment");
    const char *name;
    FR_TRY(fr_config_check_keys(r->root, "", root_keys, FR_LENGTH(root_keys),
                                &r->out->notes, r->err));
    FR_TRY(fr_json_get_string_or(r->root, "compute_environment",
                                 "LOCAL_MACHINE", &name, r->err));
    if (strcmp(name, "LOCAL_MACHINE") != 0)
        return fr_json_fail(where, r->err,
                            "compute_environment '%.40s': LOCAL_MACHINE alone "
                            "is read",
                            name);
    FR_TRY(read_single(r));
    FR_TRY(read_processes(r));
    if (r->is_single)
        note_single(r);
    FR_TRY(read_precision(r));
    FR_TRY(read_device(r));
    FR_TRY(read_dynamo(r));
    return read_kind(r);
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_yaml_parse(request->path, request->text, request->n_text, &json,
                         err));
    fr_accelerate_reader r = {
        .request = request, .root = fr_json_root(json), .out = out, .err = err};
    fr_status status = read_root(&r);
    fr_json_destroy(json);
    return status;
}

const fr_config_format fr_config_accelerate = {
    .summary = "the YAML of Hugging Face's Accelerate",
    .looks_like = looks_like,
    .read = read_config,
};
