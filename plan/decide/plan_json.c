/*
 * plan_json.c: plan and job as JSON objects.  One table of fields each serves
 * reader, writer and the list of known keys.
 */
#include "plan/decide/plan_json.h"

#include "core/base/text.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum field_kind {
    FIELD_I32,
    FIELD_I64,
    FIELD_U32,
    FIELD_U64,
    FIELD_BOOL,
    FIELD_SWITCH, /* a bool that is written where it is on */
    FIELD_DOUBLE,
    FIELD_NAME,  /* an enum, by name */
    FIELD_SPLIT, /* layer_split with n_split */
    FIELD_TEXT   /* job.data */
} field_kind;

/* Names of an enum: of an index, and back (-1: unknown). */
typedef struct naming {
    const char *(*name)(int i);
    int n;
} naming;

typedef struct field {
    const char *key;
    field_kind kind;
    size_t offset;
    const naming *names;
} field;

#define NAMING(function, type)                                                 \
    static const char *name_of_##function(int i)                               \
    {                                                                          \
        return function((type)i);                                              \
    }

NAMING(fr_schedule_kind_name, fr_schedule_kind)
NAMING(fr_recompute_name, fr_recompute)
NAMING(fr_compressor_kind_name, fr_compressor_kind)
NAMING(fr_collective_kind_name, fr_collective_kind)
NAMING(fr_protocol_name, fr_protocol)
NAMING(fr_server_place_name, fr_server_place)
NAMING(fr_rank_order_name, fr_rank_order)
NAMING(fr_cp_kind_name, fr_cp_kind)
NAMING(fr_dispatch_kind_name, fr_dispatch_kind)
NAMING(fr_flash_kind_name, fr_flash_kind)
NAMING(fr_kernel_set_name, fr_kernel_set)
NAMING(fr_scaling_name, fr_scaling)
NAMING(fr_cuda_graphs_name, fr_cuda_graphs)
NAMING(fr_zero_unit_name, fr_zero_unit)
NAMING(fr_dtype_name, fr_dtype)
NAMING(fr_optimizer_kind_name, fr_optimizer_kind)
NAMING(fr_lr_schedule_name, fr_lr_schedule)
NAMING(fr_lr_rule_name, fr_lr_rule)

static const naming schedules = {name_of_fr_schedule_kind_name, FR_SCHEDULE_N};
static const naming recomputes = {name_of_fr_recompute_name, FR_RECOMPUTE_N};
static const naming compressors = {name_of_fr_compressor_kind_name,
                                   FR_COMPRESSOR_N};
static const naming collectives = {name_of_fr_collective_kind_name,
                                   FR_COLLECTIVE_N};
static const naming protocols = {name_of_fr_protocol_name, FR_PROTOCOL_N};
static const naming server_places = {name_of_fr_server_place_name, FR_SERVER_N};
static const naming flash_kinds = {name_of_fr_flash_kind_name, FR_FLASH_N};
static const naming zero_units = {name_of_fr_zero_unit_name, FR_ZERO_UNIT_N};
static const naming graph_kinds = {name_of_fr_cuda_graphs_name,
                                   FR_CUDA_GRAPHS_N};
static const naming kernel_sets = {name_of_fr_kernel_set_name, FR_KERNELS_N};
static const naming scalings = {name_of_fr_scaling_name, FR_SCALING_N};
static const naming dispatch_kinds = {name_of_fr_dispatch_kind_name,
                                      FR_DISPATCH_N};
static const naming cp_kinds = {name_of_fr_cp_kind_name, FR_CP_N};
static const naming orders = {name_of_fr_rank_order_name, FR_RANK_ORDER_N};
static const naming dtypes = {name_of_fr_dtype_name, FR_DTYPE_N};
static const naming optimizers = {name_of_fr_optimizer_kind_name,
                                  FR_OPTIMIZER_N};
static const naming lr_schedules = {name_of_fr_lr_schedule_name, FR_LR_N};
static const naming lr_rules = {name_of_fr_lr_rule_name, FR_LR_RULE_N};

/* Every named enum is read and written through an unsigned. */
_Static_assert(sizeof(fr_schedule_kind) == sizeof(unsigned) &&
                   sizeof(fr_dtype) == sizeof(unsigned) &&
                   sizeof(fr_optimizer_kind) == sizeof(unsigned),
               "enums are as wide as unsigned");

#define PLAN(key, kind, member)                                                \
    {                                                                          \
        key, FIELD_##kind, offsetof(fr_plan, member), NULL                     \
    }
#define PLAN_NAME(key, member, names)                                          \
    {                                                                          \
        key, FIELD_NAME, offsetof(fr_plan, member), names                      \
    }

static const field plan_fields[] = {
    PLAN("tp", I32, tp),
    PLAN("pp", I32, pp),
    PLAN("dp", I32, dp),
    PLAN("cp", I32, cp),
    PLAN("ep", I32, ep),
    PLAN("vpp", I32, vpp),
    PLAN("micro_batch", I64, micro_batch),
    PLAN_NAME("schedule", schedule, &schedules),
    PLAN("zero", I32, zero_stage),
    PLAN("zero_group", I32, zero_group),
    PLAN("zero_reshard", BOOL, is_resharded),
    PLAN("zero_prefetch", I32, n_prefetch),
    PLAN_NAME("zero_unit", zero_unit, &zero_units),
    PLAN_NAME("recompute", recompute, &recomputes),
    PLAN("recompute_parts", U32, recompute_parts),
    PLAN("recompute_layers", I32, recompute_layers),
    PLAN("flash_attention", BOOL, is_flash),
    PLAN_NAME("flash_kind", flash_kind, &flash_kinds),
    PLAN_NAME("kernels", kernels, &kernel_sets),
    PLAN_NAME("scaling", scaling, &scalings),
    PLAN_NAME("cuda_graphs", cuda_graphs, &graph_kinds),
    PLAN("loss_fused", BOOL, is_loss_fused),
    PLAN("loss_metrics", I32, n_loss_metrics),
    PLAN("grad_added_apart", BOOL, is_grad_added_apart),
    PLAN("sequence_parallel", BOOL, is_sequence_parallel),
    PLAN("overlap", BOOL, is_overlap),
    PLAN("gather_overlap", BOOL, is_gather_overlap),
    PLAN("tp_overlap", BOOL, is_tp_overlap),
    PLAN("ep_overlap", SWITCH, is_ep_overlap),
    PLAN_NAME("cp_kind", cp_kind, &cp_kinds),
    PLAN("etp", I32, etp),
    PLAN_NAME("expert_dispatch", expert_dispatch, &dispatch_kinds),
    PLAN("expert_imbalance", DOUBLE, expert_imbalance),
    PLAN("offload_optimizer", BOOL, is_optimizer_offloaded),
    PLAN("offload_activations", DOUBLE, activation_offload_frac),
    PLAN("bucket_bytes", U64, bucket_bytes),
    PLAN_NAME("compressor", compressor, &compressors),
    PLAN("compressor_rank", I64, compressor_rank),
    PLAN("compressor_density", DOUBLE, compressor_density),
    PLAN("error_feedback", BOOL, has_error_feedback),
    PLAN_NAME("collective", collective, &collectives),
    PLAN_NAME("nccl_protocol", protocol, &protocols),
    PLAN("nccl_channels", I32, n_channels),
    PLAN_NAME("server_place", server_place, &server_places),
    PLAN("servers", I32, n_servers),
    PLAN_NAME("rank_order", rank_order, &orders),
    PLAN_NAME("precision", precision, &dtypes),
    PLAN_NAME("grad_dtype", grad_dtype, &dtypes),
    PLAN("threads", I32, n_threads),
    PLAN("layer_split", SPLIT, layer_split),
};
enum { N_PLAN_FIELDS = sizeof plan_fields / sizeof plan_fields[0] };

#define JOB(key, kind, member)                                                 \
    {                                                                          \
        key, FIELD_##kind, offsetof(fr_job, member), NULL                      \
    }
#define JOB_NAME(key, member, names)                                           \
    {                                                                          \
        key, FIELD_NAME, offsetof(fr_job, member), names                       \
    }

static const field job_fields[] = {
    JOB("global_batch", I64, global_batch),
    JOB("seq", I64, seq),
    JOB("steps", I64, n_steps),
    JOB("seed", U64, seed),
    JOB_NAME("optimizer", optimizer, &optimizers),
    JOB("lr", DOUBLE, lr),
    JOB("beta1", DOUBLE, beta1),
    JOB("beta2", DOUBLE, beta2),
    JOB("optimizer_eps", DOUBLE, optimizer_eps),
    JOB("weight_decay", DOUBLE, weight_decay),
    JOB("trust_coefficient", DOUBLE, trust_coefficient),
    JOB("clip_norm", DOUBLE, clip_norm),
    JOB("dropout", DOUBLE, dropout),
    JOB_NAME("lr_schedule", lr_schedule, &lr_schedules),
    JOB("warmup_steps", I64, warmup_steps),
    JOB("lr_min_frac", DOUBLE, lr_min_frac),
    JOB_NAME("lr_rule", lr_rule, &lr_rules),
    JOB("lr_base_batch", I64, lr_base_batch),
    JOB("data", TEXT, data),
};
enum { N_JOB_FIELDS = sizeof job_fields / sizeof job_fields[0] };
enum { N_FIELDS_MAX = N_PLAN_FIELDS };
_Static_assert((int)N_JOB_FIELDS <= (int)N_FIELDS_MAX, "room for the keys");

/* ---- reading ------------------------------------------------------------ */

static fr_status read_i32(const fr_json_value *value, const char *key,
                          int32_t *out, fr_err *err)
{
    int64_t wide;
    FR_TRY(fr_json_as_i64(value, &wide, err));
    if (wide < INT32_MIN || wide > INT32_MAX)
        return fr_json_fail(value, err, "%s is %lld: out of range", key,
                            (long long)wide);
    *out = (int32_t)wide;
    return FR_OK;
}

static fr_status read_u32(const fr_json_value *value, const char *key,
                          uint32_t *out, fr_err *err)
{
    uint64_t wide;
    FR_TRY(fr_json_as_u64(value, &wide, err));
    if (wide > UINT32_MAX)
        return fr_json_fail(value, err, "%s is %llu: out of range", key,
                            (unsigned long long)wide);
    *out = (uint32_t)wide;
    return FR_OK;
}

static fr_status read_name(const fr_json_value *value, const field *f,
                           unsigned *out, fr_err *err)
{
    const char *text, *names[32];
    char list[256] = "";
    size_t used = 0;
    FR_TRY(fr_json_as_string(value, &text, err));
    for (int i = 0; i < f->names->n; i++) {
        names[i] = f->names->name(i);
        if (strcmp(names[i], text) == 0) {
            *out = (unsigned)i;
            return FR_OK;
        }
        size_t n = strlen(names[i]);
        if (used + n + 3 < sizeof list) {
            memcpy(list + used, i ? ", " : "", i ? 2 : 0);
            used += i ? 2 : 0;
            memcpy(list + used, names[i], n + 1);
            used += n;
        }
    }
    return fr_json_fail(value, err, "unknown %s '%s'; choose from %s", f->key,
                        text, list);
}

static fr_status read_split(const fr_json_value *value, fr_plan *plan,
                            fr_err *err)
{
    if (fr_json_kind_of(value) != FR_JSON_ARRAY)
        return fr_json_fail(value, err,
                            "layer_split must be an array of "
                            "layers per stage");
    size_t n = fr_json_n(value);
    if (n > FR_PLAN_MAX_STAGES)
        return fr_json_fail(value, err,
                            "layer_split has %zu stages; at most "
                            "%d",
                            n, FR_PLAN_MAX_STAGES);
    for (size_t i = 0; i < n; i++)
        FR_TRY(read_i32(fr_json_at(value, i), "layer_split",
                        &plan->layer_split[i], err));
    plan->n_split = (int32_t)n;
    return FR_OK;
}

static fr_status read_text(const fr_json_value *value, const char *key,
                           char *out, size_t n, fr_err *err)
{
    const char *text;
    FR_TRY(fr_json_as_string(value, &text, err));
    if (!fr_text_copy(out, n, text))
        return fr_json_fail(value, err, "%s is longer than %zu bytes", key,
                            n - 1);
    return FR_OK;
}

static fr_status read_field(const fr_json_value *value, const field *f,
                            void *owner, fr_err *err)
{
    void *at = (char *)owner + f->offset;
    switch (f->kind) {
    case FIELD_I32:
        return read_i32(value, f->key, at, err);
    case FIELD_I64:
        return fr_json_as_i64(value, at, err);
    case FIELD_U32:
        return read_u32(value, f->key, at, err);
    case FIELD_U64:
        return fr_json_as_u64(value, at, err);
    case FIELD_BOOL:
    case FIELD_SWITCH:
        return fr_json_as_bool(value, at, err);
    case FIELD_DOUBLE:
        return fr_json_as_double(value, at, err);
    case FIELD_NAME:
        return read_name(value, f, at, err);
    case FIELD_SPLIT:
        return read_split(value, owner, err);
    case FIELD_TEXT:
        break;
    }
    return read_text(value, f->key, at, sizeof((fr_job *)0)->data, err);
}

static fr_status read_fields(const fr_json_value *object, const field *fields,
                             size_t n, void *owner, fr_err *err)
{
    const char *known[N_FIELDS_MAX];
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "must be an object, not %s",
                            fr_json_kind_name(fr_json_kind_of(object)));
    for (size_t i = 0; i < n; i++)
        known[i] = fields[i].key;
    FR_TRY(fr_json_check_keys(object, known, n, err));
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *value = fr_json_find(object, fields[i].key);
        if (!value)
            continue;
        fr_status status = read_field(value, &fields[i], owner, err);
        if (status != FR_OK)
            return status;
    }
    return FR_OK;
}

fr_status fr_plan_json_read(const fr_json_value *object, fr_plan *out,
                            fr_err *err)
{
    fr_plan plan;
    fr_plan_init(&plan);
    FR_TRY(read_fields(object, plan_fields, N_PLAN_FIELDS, &plan, err));
    *out = plan;
    return FR_OK;
}

fr_status fr_job_json_read(const fr_json_value *object, fr_job *out,
                           fr_err *err)
{
    fr_job job;
    fr_err broken = {0};
    fr_job_init(&job);
    FR_TRY(read_fields(object, job_fields, N_JOB_FIELDS, &job, err));
    if (fr_job_check(&job, &broken) != FR_OK)
        return fr_json_fail(object, err, "%s", broken.text);
    *out = job;
    return FR_OK;
}

/* ---- writing ------------------------------------------------------------ */

static void write_split(const fr_plan *plan, fr_json_writer *json)
{
    fr_json_key(json, "layer_split");
    fr_json_begin_row(json);
    for (int32_t i = 0; i < plan->n_split; i++)
        fr_json_i64(json, plan->layer_split[i]);
    fr_json_end_array(json);
}

static void write_field(const field *f, const void *owner, fr_json_writer *json)
{
    const void *at = (const char *)owner + f->offset;
    switch (f->kind) {
    case FIELD_I32:
        fr_json_put_i64(json, f->key, *(const int32_t *)at);
        break;
    case FIELD_I64:
        fr_json_put_i64(json, f->key, *(const int64_t *)at);
        break;
    case FIELD_U32:
        fr_json_put_u64(json, f->key, *(const uint32_t *)at);
        break;
    case FIELD_U64:
        fr_json_put_u64(json, f->key, *(const uint64_t *)at);
        break;
    case FIELD_BOOL:
        fr_json_put_bool(json, f->key, *(const bool *)at);
        break;
    case FIELD_SWITCH:
        if (*(const bool *)at)
            fr_json_put_bool(json, f->key, true);
        break;
    case FIELD_DOUBLE:
        fr_json_put_double(json, f->key, *(const double *)at);
        break;
    case FIELD_NAME:
        fr_json_put_string(json, f->key,
                           f->names->name((int)*(const unsigned *)at));
        break;
    case FIELD_SPLIT:
        write_split(owner, json);
        break;
    case FIELD_TEXT:
        fr_json_put_string(json, f->key, at);
        break;
    }
}

static void write_fields(const field *fields, size_t n, const void *owner,
                         fr_json_writer *json)
{
    fr_json_begin_object(json);
    for (size_t i = 0; i < n; i++)
        write_field(&fields[i], owner, json);
    fr_json_end_object(json);
}

void fr_plan_json_write(const fr_plan *plan, fr_json_writer *json)
{
    write_fields(plan_fields, N_PLAN_FIELDS, plan, json);
}

void fr_job_json_write(const fr_job *job, fr_json_writer *json)
{
    write_fields(job_fields, N_JOB_FIELDS, job, json);
}
