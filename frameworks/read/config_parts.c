/* config_parts.c: see config_parts.h. */
#include "frameworks/read/config_parts.h"

#include "core/base/text.h"
#include "frameworks/framework_plan.h"

#include <string.h>
#include <strings.h>

enum { LONGEST_USUAL_SEQ = 8192, KEYS_MAX = 96 };

/* A list of keys, and the texts that messages need. */
typedef struct key_list {
    const char *where;
    const fr_config_key *keys;
    size_t n;
    bool is_open; /* the framework passes over keys that it does not know */
    fr_buffer *notes;
} key_list;

/* People comment a key out by a sign before it. */
static bool is_remark(const char *key)
{
    return *key == '_' || *key == '#' || *key == '/' || *key == '$' ||
           strncasecmp(key, "comment", 7) == 0;
}

static fr_status take_unknown(const fr_json_value *value, const char *key,
                              const key_list *list, fr_err *err)
{
    const char *names[KEYS_MAX];
    char hint[FR_HINT_MAX];
    size_t n = list->n < KEYS_MAX ? list->n : KEYS_MAX;
    for (size_t i = 0; i < n; i++)
        names[i] = list->keys[i].name;
    const char *nearest = fr_text_nearest(key, names, n);
    if (!list->is_open || (nearest != NULL && !is_remark(key)))
        return fr_json_fail(value, err, "unknown key '%s%.80s'%s", list->where,
                            key, fr_text_hint(nearest, hint));
    fr_buffer_printf(list->notes,
                     "line %d: %s%.80s is not read: the framework passes over "
                     "a key that it does not know\n",
                     fr_json_line(value), list->where, key);
    return FR_OK;
}

static fr_status check_key(const fr_json_value *value, const char *key,
                           const key_list *list, fr_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->keys[i].name, key) != 0)
            continue;
        if (list->keys[i].why != NULL)
            fr_buffer_printf(list->notes, "line %d: %s%s is not read: %s\n",
                             fr_json_line(value), list->where, key,
                             list->keys[i].why);
        return FR_OK;
    }
    return take_unknown(value, key, list, err);
}

static fr_status check_keys(const fr_json_value *object, const key_list *list,
                            fr_err *err)
{
    if (object == NULL)
        return FR_OK;
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "%.80s must be an object, not %s",
                            *list->where != '\0' ? list->where : "the file",
                            fr_json_kind_name(fr_json_kind_of(object)));
    for (size_t i = 0; i < fr_json_n(object); i++)
        FR_TRY(check_key(fr_json_at(object, i), fr_json_key_at(object, i), list,
                         err));
    return FR_OK;
}

fr_status fr_config_check_keys(const fr_json_value *object, const char *where,
                               const fr_config_key *keys, size_t n,
                               fr_buffer *notes, fr_err *err)
{
    const key_list list = {
        .where = where, .keys = keys, .n = n, .notes = notes};
    return check_keys(object, &list, err);
}

fr_status fr_config_check_known_keys(const fr_json_value *object,
                                     const char *where,
                                     const fr_config_key *keys, size_t n,
                                     fr_buffer *notes, fr_err *err)
{
    const key_list list = {
        .where = where, .keys = keys, .n = n, .is_open = true, .notes = notes};
    return check_keys(object, &list, err);
}

fr_status fr_config_read_bool(const fr_json_value *object, const char *key,
                              bool *out, fr_err *err)
{
    const fr_json_value *value = fr_json_find(object, key);
    return value == NULL ? FR_OK : fr_json_as_bool(value, out, err);
}

fr_status fr_config_take_model(const fr_config_request *request,
                               const char *said, const char *known,
                               fr_config *out, fr_err *err)
{
    if (request->model != NULL)
        return fr_model_copy(request->model, &out->file.model, err);
    if (known != NULL) {
        fr_buffer_printf(&out->notes,
                         "its model '%.80s' is %s; --model names another\n",
                         said, known);
        return fr_model_load(request->configs, known, &out->file.model, err);
    }
    if (said != NULL)
        return fr_fail(err, FR_INPUT,
                       "%s:1: its model is '%.80s'; name the one that is "
                       "meant: --model llama-3-8b (forerun catalog models)",
                       request->path, said);
    return fr_fail(err, FR_INPUT,
                   "%s:1: such a file does not say which model it trains; "
                   "give --model llama-3-8b (forerun catalog models)",
                   request->path);
}

void fr_config_take_seq(const fr_config_request *request, fr_config *out)
{
    const fr_model *model = &out->file.model;
    fr_job *job = &out->file.job;
    if (request->seq > 0) {
        job->seq = request->seq;
        return;
    }
    if (model->max_seq > 0)
        job->seq = model->max_seq < LONGEST_USUAL_SEQ ? model->max_seq
                                                      : LONGEST_USUAL_SEQ;
    fr_buffer_printf(&out->notes,
                     "sequences of %lld tokens: the file does not say; give "
                     "--seq\n",
                     (long long)job->seq);
}

void fr_config_take_kernels(const fr_framework *framework, fr_config *out)
{
    fr_plan *plan = &out->file.plan;
    plan->is_flash = !framework->facts->is_unfused;
    fr_framework_run_plan(framework, 0, plan);
    fr_buffer_printf(&out->notes,
                     "kernels %s, fused attention %s: as %s has them; "
                     "--kernels, --flash-attention, --flash-kind say "
                     "otherwise\n",
                     fr_name_of(&fr_kernel_set_names, plan->execution.kernels),
                     plan->is_flash ? fr_name_of(&fr_flash_kind_names,
                                                 plan->execution.flash_kind)
                                    : "off",
                     framework->name);
}

int64_t fr_config_other_ranks(const fr_plan *plan)
{
    return (int64_t)plan->tp * plan->pp * plan->cp;
}

fr_status fr_config_take_dp(const fr_config_request *request, int64_t world,
                            fr_config *out, fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    int64_t others = fr_config_other_ranks(plan);
    if (world == 0)
        world = request->world;
    if (world == 0 && request->lacks_world != NULL)
        *request->lacks_world = true;
    if (world == 0)
        return fr_fail(err, FR_INPUT,
                       "%s:1: the file does not say how many ranks there are; "
                       "give --ranks N",
                       request->path);
    if (world % others != 0 || world / others > INT32_MAX)
        return fr_fail(err, FR_INPUT,
                       "%s:1: %lld ranks do not divide by tp %d x pp %d x cp "
                       "%d; give a multiple of %lld as --ranks",
                       request->path, (long long)world, plan->tp, plan->pp,
                       plan->cp, (long long)others);
    plan->dp = (int32_t)(world / others);
    return FR_OK;
}

void fr_config_release(fr_config *config)
{
    fr_plan_file_release(&config->file);
    fr_buffer_release(&config->notes);
}
