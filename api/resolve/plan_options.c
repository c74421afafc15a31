/* plan_options.c: option values -> fields of a plan and a job. */
#include "api/resolve/plan_options.h"

#include "core/base/text.h"
#include "plan/codec/compressor.h"
#include "plan/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of the compressors, or how those that go by a number are written. */
static void list_compressors(bool is_by_number, const char *between, char *buf,
                             size_t n_buf)
{
    static const char *const numbers[] = {
        [FR_COMPRESSOR_BY_NOTHING] = "",
        [FR_COMPRESSOR_BY_RANK] = ":RANK",
        [FR_COMPRESSOR_BY_DENSITY] = ":DENSITY",
    };
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < fr_n_compressors && used < n_buf; i++) {
        const fr_compressor *at = fr_compressors[i];
        if (is_by_number && at->number == FR_COMPRESSOR_BY_NOTHING)
            continue;
        int n = snprintf(buf + used, n_buf - used, "%s%s%s",
                         used > 0 ? between : "", at->name,
                         is_by_number ? numbers[at->number] : "");
        used += n > 0 ? (size_t)n : 0;
    }
}

/* "topk:0.01", "powersgd:4", "bf16" */
static fr_status apply_compress(const char *text, fr_plan *plan, fr_err *err)
{
    char name[32], number[32] = "", names[256];
    const char *colon = strchr(text, ':');
    size_t n_name = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (n_name >= sizeof name)
        n_name = sizeof name - 1;
    memcpy(name, text, n_name);
    name[n_name] = '\0';
    int kind = fr_name_find(&fr_compressor_names, name);
    if (kind < 0) {
        list_compressors(false, ", ", names, sizeof names);
        return fr_fail(err, FR_USAGE, "--compress '%.80s' is not one of %s",
                       name, names);
    }
    plan->compressor = (fr_compressor_kind)kind;
    if (colon == NULL)
        return FR_OK;
    fr_text_copy_cut(number, sizeof number, colon + 1);
    if (fr_compressor_set_number(number, plan))
        return FR_OK;
    list_compressors(true, " and ", names, sizeof names);
    return fr_fail(err, FR_USAGE, "--compress '%.80s': only %s take a number",
                   text, names);
}

/* "attention,norm" */
static fr_status apply_parts(const char *text, fr_plan *plan, fr_err *err)
{
    uint32_t parts = 0;
    for (const char *at = text;; at++) {
        char name[32];
        size_t n = strcspn(at, ",");
        int part = -1;
        if (n < sizeof name) {
            memcpy(name, at, n);
            name[n] = '\0';
            part = fr_name_find(&fr_recompute_part_names, name);
        }
        if (part < 0)
            return fr_fail(
                err, FR_USAGE,
                "--recompute-parts '%.80s': choose from attention, "
                "norm, activation, mlp, experts, products, latent, with "
                "commas",
                text);
        parts |= 1U << part;
        at += n;
        if (*at == '\0')
            break;
    }
    plan->recompute_parts = parts;
    return FR_OK;
}

static bool is_auto(const fr_request *request, fr_option option)
{
    const char *text = fr_request_text(request, option);
    return text != NULL && strcmp(text, "auto") == 0;
}

bool fr_request_is_split_auto(const fr_request *request)
{
    return is_auto(request, FR_OPT_LAYER_SPLIT);
}

bool fr_request_are_shares_auto(const fr_request *request)
{
    return is_auto(request, FR_OPT_BATCH_SHARES);
}

/* Options that are a list of numbers, or words for one. */
typedef struct listed_option {
    fr_plan_field_id field;
    int32_t n_most;
    const char *each, *example; /* for people */
} listed_option;

static const listed_option listed_options[] = {
    {FR_PLAN_LAYER_SPLIT, FR_PLAN_MAX_STAGES, "layers of each stage",
     "such as 3,3,2"},
    {FR_PLAN_BATCH_SHARES, FR_PLAN_MAX_SHARES,
     "micro-batches of each data-parallel rank", "such as 5,5,2"},
};

/* "auto", "even", "3,3,2".  What auto is needs costs: it is decided later. */
static fr_status apply_list(const fr_request *request, const listed_option *row,
                            fr_plan *plan, uint64_t *pins, fr_err *err)
{
    const fr_option option = fr_option_of_item((int)row->field);
    const fr_field *field = &fr_plan_fields[row->field].field;
    const char *text = fr_request_text(request, option);
    int32_t *list = (int32_t *)(void *)((char *)plan + field->offset);
    int32_t n = 0;
    fr_field_set(field, 0, plan);
    if (is_auto(request, option)) {
        if (fr_request_on(request, FR_OPT_FIXED))
            return fr_fail(err, FR_USAGE,
                           "--%s auto with --fixed: leave out --fixed (then "
                           "each plan has what suits it), or give the %s",
                           field->option, row->each);
        *pins &= ~(UINT64_C(1) << row->field);
    }
    if (is_auto(request, option) || strcmp(text, "even") == 0)
        return FR_OK;
    for (const char *at = text;; at++) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at || value < 0 || value > INT32_MAX ||
            (*end != ',' && *end != '\0') || n == row->n_most)
            return fr_fail(err, FR_USAGE,
                           "--%s '%.80s': auto, even, or the %s, %s",
                           field->option, text, row->each, row->example);
        list[n++] = (int32_t)value;
        at = end;
        if (*at == '\0')
            break;
    }
    memcpy((char *)plan + field->count_offset, &n, sizeof n);
    return FR_OK;
}

/* The value of an option that is neither a text nor a path. */
static void store(const fr_option_value *value, const fr_field *field,
                  void *owner)
{
    if (field->kind == FR_FIELD_DOUBLE)
        fr_field_set(field, value->real, owner);
    else if (field->kind == FR_FIELD_BOOL)
        fr_field_set_i64(field, value->is_on, owner);
    else if (field->is_bytes)
        fr_field_set_i64(field, (int64_t)value->n_bytes, owner);
    else
        fr_field_set_i64(field, value->count, owner);
}

fr_status fr_request_apply_plan(const fr_request *request, fr_plan *plan,
                                uint64_t *pins, fr_err *err)
{
    fr_plan changed = *plan;
    uint64_t given = 0;
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_field *field = &fr_plan_item_row(item)->field;
        if (!fr_request_has(request, FR_OPT_OF_PLAN(i)))
            continue;
        if (item < FR_PLAN_FIELDS_N)
            given |= UINT64_C(1) << item & FR_PINS_ALL;
        if (field->metavar == NULL)
            store(&request->option[FR_OPT_OF_PLAN(i)], field, &changed);
    }
    if (!fr_request_has(request, FR_OPT_SCHEDULE) && changed.vpp > 1 &&
        !fr_schedule_has_chunks(fr_schedules[changed.schedule]))
        changed.schedule = fr_schedule_usual(changed.vpp);
    if (fr_request_has(request, FR_OPT_RECOMPUTE_PARTS))
        FR_TRY(apply_parts(fr_request_text(request, FR_OPT_RECOMPUTE_PARTS),
                           &changed, err));
    if (fr_request_has(request, FR_OPT_COMPRESS))
        FR_TRY(apply_compress(fr_request_text(request, FR_OPT_COMPRESS),
                              &changed, err));
    for (size_t i = 0; i < FR_LENGTH(listed_options); i++)
        if (fr_request_has(request,
                           fr_option_of_item((int)listed_options[i].field)))
            FR_TRY(
                apply_list(request, &listed_options[i], &changed, &given, err));
    *plan = changed;
    if (pins != NULL)
        *pins = given;
    return FR_OK;
}

/* The axis whose range the list of an option is, -1: none. */
static int find_axis(fr_option option)
{
    if (option == FR_OPT_RANKS)
        return FR_SPACE_AXIS_WORLD;
    for (int i = 0; i < FR_SPACE_AXIS_N; i++)
        if (fr_plan_space_axes[i].is_listed &&
            (int)fr_space_axis_fields[i] == fr_option_item(option))
            return i;
    return -1;
}

fr_status fr_request_apply_ranges(const fr_request *request,
                                  fr_axis_range out[FR_SPACE_AXIS_N],
                                  fr_err *err)
{
    memset(out, 0, FR_SPACE_AXIS_N * sizeof *out);
    for (int o = 0; o < FR_OPT_N; o++) {
        const fr_option_value *v = &request->option[o];
        /* The others are choices of the run. */
        if (v->n_list == 0 || o == FR_OPT_SPARES || o == FR_OPT_LEAST_NODES)
            continue;
        int axis = find_axis((fr_option)o);
        if (axis < 0)
            return fr_fail(err, FR_USAGE,
                           "--%s '%.80s': this option takes one value",
                           fr_option_get((fr_option)o).name, v->text);
        out[axis].n = v->n_list;
        memcpy(out[axis].at, v->list, sizeof v->list);
    }
    return FR_OK;
}

/* --steps and --tokens both say how long the run is.  A flag goes before the
 * environment, and each before the other of a plan file. */
static fr_status apply_length(const fr_request *request, fr_job *job,
                              fr_err *err)
{
    const fr_option_source steps = request->option[FR_OPT_STEPS].source;
    const fr_option_source tokens = request->option[FR_OPT_TOKENS].source;
    if (steps != FR_SOURCE_UNSET && steps == tokens)
        return fr_fail(err, FR_USAGE,
                       "--tokens %.40s and --steps %.40s both say how long "
                       "the run is: give one of them",
                       fr_request_text(request, FR_OPT_TOKENS),
                       fr_request_text(request, FR_OPT_STEPS));
    if (steps > tokens)
        job->tokens = 0;
    return FR_OK;
}

fr_status fr_request_apply_job(const fr_request *request, const fr_model *model,
                               fr_job *job, fr_err *err)
{
    fr_job changed = *job;
    for (int i = 0; i < FR_JOB_OPTIONS_N; i++)
        if (fr_request_has(request, FR_OPT_OF_JOB(i)) &&
            fr_job_fields[i].kind != FR_FIELD_TEXT)
            store(&request->option[FR_OPT_OF_JOB(i)], &fr_job_fields[i],
                  &changed);
    const char *data = fr_request_text(request, FR_OPT_DATA);
    if (data != NULL && !fr_text_copy(changed.data, sizeof changed.data, data))
        return fr_fail(err, FR_USAGE, "--data: the path is too long");
    FR_TRY(apply_length(request, &changed, err));
    fr_job_count_steps(&changed, model);
    *job = changed;
    return FR_OK;
}

void fr_note_long_seq(const fr_request *request, const fr_model *model,
                      const fr_job *job)
{
    if (model->kind == FR_MODEL_DECODER && model->is_rope &&
        model->max_seq > 0 && job->seq > model->max_seq)
        fr_request_note(request,
                        "warning: seq %lld is beyond the %lld positions that "
                        "%s was made for",
                        (long long)job->seq, (long long)model->max_seq,
                        model->name);
}

int32_t fr_default_threads(const fr_cluster *cluster, int64_t n_ranks)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    if (device->kind != FR_DEVICE_CPU || n_ranks < 1)
        return 1;
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    int64_t n_per_node = (n_ranks + n_nodes - 1) / n_nodes;
    int64_t n_threads = device->n_cores / n_per_node;
    return n_threads > 1 ? (int32_t)n_threads : 1;
}

/* Have all devices that so many ranks take a peak of it? */
static bool all_have(const fr_cluster *cluster, int64_t n_ranks,
                     const char *dtype)
{
    const int64_t n_nodes = fr_cluster_nodes_of_ranks(cluster, n_ranks, 1);
    for (int64_t node = 0; node < n_nodes; node++)
        if (!(fr_device_peak_flops(fr_cluster_device(cluster, node), dtype) >
              0))
            return false;
    return true;
}

fr_dtype fr_default_precision(const fr_cluster *cluster, int64_t n_ranks)
{
    if (all_have(cluster, n_ranks, "bf16"))
        return FR_DTYPE_BF16;
    return all_have(cluster, n_ranks, "fp16") ? FR_DTYPE_F16 : FR_DTYPE_F32;
}
