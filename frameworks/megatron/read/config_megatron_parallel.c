/* config_megatron_parallel.c: how arguments of Megatron-LM split a model over
 * ranks. */
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/read/config_parts.h"
#include "plan/schedule/schedule.h"

#include <ctype.h>
#include <string.h>

/* ---- layouts ------------------------------------------------------------- */

/*
 * "Et*3|(tt|)*29,m|L" (transformer/pipeline_parallel_layer_layout.py,
 * parse_str_to_list): a bracket and its count are written out, then a letter
 * and its count.
 */
enum { LONGEST_LAYOUT = 1 << 16 };

static fr_status repeat(fr_buffer *out, const char *text, size_t n,
                        long long count, fr_err *err)
{
    if (count < 0 || count > LONGEST_LAYOUT ||
        out->n + n * (size_t)count > LONGEST_LAYOUT)
        return fr_fail(err, FR_INPUT, "a layout of too many layers");
    for (long long i = 0; i < count; i++)
        fr_buffer_append(out, text, n);
    return FR_OK;
}

/* The count after "*" at `p`, 1 where there is none; *p moves behind it. */
static long long take_count(const char **p)
{
    char *end;
    if (**p != '*')
        return 1;
    long long n = strtoll(*p + 1, &end, 10);
    *p = end;
    return n;
}

/* First brackets, then letters. */
static fr_status write_out(const char *text, bool brackets, fr_buffer *out,
                           fr_err *err)
{
    for (const char *p = text; *p != '\0';) {
        const char *from = p;
        size_t n = 1;
        if (*p == ',' || isspace((unsigned char)*p) != 0) {
            p++;
            continue;
        }
        if (brackets && *p == '(') {
            const char *close = strchr(p, ')');
            if (close == NULL)
                return fr_fail(err, FR_INPUT, "a bracket is left open");
            from = p + 1;
            n = (size_t)(close - from);
            p = close + 1;
        } else {
            p++;
        }
        bool is_counted = !brackets || from[-1 + (from == text)] == '(';
        FR_TRY(repeat(out, from, n, is_counted ? take_count(&p) : 1, err));
    }
    return fr_buffer_check(out, err);
}

static fr_status count_stages(const char *text, fr_plan *plan, fr_err *err)
{
    int32_t i = 0, n = 0;
    for (const char *c = text;; c++) {
        if (*c == 't') {
            n++;
        } else if (*c == '|' || *c == '\0') {
            if (i == FR_PLAN_MAX_STAGES)
                return fr_fail(err, FR_INPUT, "more than %d stages",
                               FR_PLAN_MAX_STAGES);
            plan->layer_split[i++] = n;
            n = 0;
        } else if (strchr("EmL", *c) == NULL) {
            return fr_fail(err, FR_INPUT,
                           "'%c' is no layer; give E, t, m, L and |", *c);
        }
        if (*c == '\0')
            break;
    }
    plan->n_split = i;
    return FR_OK;
}

static fr_status read_layout(const char *text, fr_plan *plan, fr_err *err)
{
    fr_buffer once, all;
    fr_buffer_init(&once);
    fr_buffer_init(&all);
    fr_status status = write_out(text, true, &once, err);
    if (status == FR_OK)
        status = write_out(fr_buffer_text(&once), false, &all, err);
    if (status == FR_OK)
        status = count_stages(fr_buffer_text(&all), plan, err);
    fr_buffer_release(&once);
    fr_buffer_release(&all);
    return status;
}

/* ---- stages -------------------------------------------------------------- */

/* A split that is the plan's own without one is none. */
static void drop_even_split(const fr_model *model, fr_plan *plan)
{
    fr_plan even = *plan;
    even.n_split = 0;
    for (int32_t i = 0; i < plan->n_split; i++)
        if (plan->layer_split[i] != fr_plan_even_layers(&even, model, i))
            return;
    plan->n_split = 0;
}

/* Layers of the first and last pipeline ranks; -1: as the others. */
static fr_status split_ends(const fr_megatron_flags *flags, int64_t first,
                            int64_t last, const fr_model *model, fr_plan *plan,
                            fr_err *err)
{
    int64_t rest = model->n_layers, n_middle = plan->pp;
    if (first >= 0) {
        rest -= first;
        n_middle--;
    }
    if (last >= 0) {
        rest -= last;
        n_middle--;
    }
    bool is_even = n_middle > 0 ? rest % n_middle == 0 : rest == 0;
    int64_t middle = n_middle > 0 ? rest / n_middle : 0;
    if (rest < 0 || n_middle < 0 || !is_even ||
        (int64_t)plan->pp * plan->vpp > FR_PLAN_MAX_STAGES)
        return fr_fail(err, FR_INPUT,
                       "%s:1: %lld layers do not divide over pp %d with such "
                       "a first and last stage",
                       flags->path, (long long)model->n_layers, plan->pp);
    plan->n_split = plan->pp * plan->vpp;
    for (int32_t i = 0; i < plan->n_split; i++) {
        int32_t rank = i % plan->pp;
        int64_t n = rank == 0 && first >= 0             ? first
                    : rank + 1 == plan->pp && last >= 0 ? last
                                                        : middle;
        if (n % plan->vpp != 0)
            return fr_fail(err, FR_INPUT,
                           "%s:1: %lld layers of a pipeline rank do not divide "
                           "by %d virtual stages",
                           flags->path, (long long)n, plan->vpp);
        plan->layer_split[i] = (int32_t)(n / plan->vpp);
    }
    return FR_OK;
}

/* Embedding and loss count as a layer each, on their ends. */
static void count_ends(fr_megatron_flags *flags, const fr_model *model,
                       const fr_plan *plan, int64_t *first, int64_t *last)
{
    bool of_embedding =
        fr_megatron_has(flags, "account-for-embedding-in-pipeline-split");
    bool of_loss = fr_megatron_has(flags, "account-for-loss-in-pipeline-split");
    int64_t each = (model->n_layers + of_embedding + of_loss) / plan->pp;
    if (of_embedding)
        *first = each - 1;
    if (of_loss)
        *last = each - 1;
}

static fr_status read_chunks(fr_megatron_flags *flags, const fr_model *model,
                             fr_plan *plan, fr_err *err)
{
    int64_t per_chunk = 0;
    FR_TRY(fr_megatron_i32(flags, "num-virtual-stages-per-pipeline-rank", 1,
                           &plan->vpp, err));
    FR_TRY(fr_megatron_i64(flags, "num-layers-per-virtual-pipeline-stage", 1,
                           &per_chunk, err));
    if (per_chunk == 0)
        return FR_OK;
    int64_t vpp = model->n_layers / plan->pp / per_chunk;
    if (vpp < 1 || vpp > FR_PLAN_MAX_STAGES ||
        vpp * per_chunk * plan->pp != model->n_layers)
        return fr_megatron_refuse(
            flags,
            fr_megatron_find(flags, "num-layers-per-virtual-pipeline-stage"),
            "does not divide the layers of a pipeline rank", err);
    plan->vpp = (int32_t)vpp;
    return FR_OK;
}

static fr_status read_stages(fr_megatron_flags *flags, const fr_model *model,
                             fr_plan *plan, fr_err *err)
{
    const fr_megatron_flag *layout =
        fr_megatron_find(flags, "pipeline-model-parallel-layout");
    int64_t first = -1, last = -1;
    if (plan->pp > FR_PLAN_MAX_STAGES)
        return fr_fail(err, FR_INPUT, "%s:1: pipelines of more than %d stages",
                       flags->path, FR_PLAN_MAX_STAGES);
    if (layout != NULL) {
        fr_err why;
        if (layout->n_values == 0)
            return fr_megatron_refuse(flags, layout, "give its value", err);
        if (read_layout(layout->values[0].text, plan, &why) != FR_OK)
            return fr_megatron_refuse(flags, layout, why.text, err);
        if (plan->n_split % plan->pp != 0)
            return fr_megatron_refuse(flags, layout,
                                      "its stages are no multiple of the "
                                      "pipeline ranks",
                                      err);
        plan->vpp = plan->n_split / plan->pp;
    } else {
        FR_TRY(read_chunks(flags, model, plan, err));
    }
    FR_TRY(fr_megatron_i64(flags, "decoder-first-pipeline-num-layers", 1,
                           &first, err));
    FR_TRY(fr_megatron_i64(flags, "decoder-last-pipeline-num-layers", 1, &last,
                           err));
    count_ends(flags, model, plan, &first, &last);
    if (plan->pp > 1 && layout == NULL && (first >= 0 || last >= 0))
        FR_TRY(split_ends(flags, first, last, model, plan, err));
    if (plan->pp == 1)
        plan->n_split = 0;
    plan->schedule = fr_schedule_usual(plan->pp > 1 ? plan->vpp : 1);
    drop_even_split(model, plan);
    return FR_OK;
}

/* ---- the rest ------------------------------------------------------------ */

/* Its factor may be -1, None: nothing is dropped. */
static fr_status read_capacity(fr_megatron_flags *flags, fr_plan *plan,
                               fr_err *err)
{
    const char *policy;
    double factor = 0;
    const fr_megatron_flag *flag =
        fr_megatron_find(flags, "moe-expert-capacity-factor");
    FR_TRY(fr_megatron_real(flags, "moe-expert-capacity-factor", &factor, err));
    FR_TRY(fr_megatron_word(flags, "moe-token-drop-policy", "probs", &policy,
                            err));
    bool is_padded = fr_megatron_has(flags, "moe-pad-expert-input-to-capacity");
    if (!(factor > 0))
        return FR_OK;
    if (strcmp(policy, "probs") != 0)
        return fr_megatron_refuse(flags, flag,
                                  "tokens are dropped by their probability; "
                                  "take --moe-token-drop-policy probs",
                                  err);
    plan->expert_capacity = factor;
    plan->is_expert_padded = is_padded;
    return FR_OK;
}

/* A plan has both or none of what Megatron-LM fuses (--moe-router-fusion from
 * core 0.14, --moe-permute-fusion from 0.11). */
static void read_fusion(fr_megatron_flags *flags, fr_config *out)
{
    bool of_router = fr_megatron_has(flags, "moe-router-fusion");
    bool of_order = fr_megatron_has(flags, "moe-permute-fusion");
    if (out->file.model.n_experts == 0)
        return;
    out->file.plan.execution.is_routing_fused = of_router && of_order;
    out->said |= FR_EXECUTION_BIT(ROUTING_FUSED);
    if (of_router != of_order)
        fr_buffer_printf(&out->notes,
                         "--moe-%s-fusion without --moe-%s-fusion: routing is "
                         "predicted without either\n",
                         of_router ? "router" : "permute",
                         of_router ? "permute" : "router");
}

static fr_status read_experts(fr_megatron_flags *flags, fr_config *out,
                              fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const char *dispatcher;
    FR_TRY(fr_megatron_read_rows(flags, "expert parallel", &out->file, err));
    FR_TRY(fr_megatron_word(flags, "moe-token-dispatcher-type", "allgather",
                            &dispatcher, err));
    bool is_told = fr_megatron_has(flags, "moe-enable-deepep");
    is_told = fr_megatron_has(flags, "moe-flex-dispatcher-backend") || is_told;
    plan->expert_dispatch = is_told || strcmp(dispatcher, "flex") == 0
                                ? FR_DISPATCH_BY_NODE
                                : FR_DISPATCH_ALL_TO_ALL;
    FR_TRY(read_capacity(flags, plan, err));
    read_fusion(flags, out);
    if (out->file.model.n_experts == 0)
        plan->expert_dispatch = FR_DISPATCH_ALL_TO_ALL;
    else if (strcmp(dispatcher, "allgather") == 0)
        fr_buffer_puts(&out->notes, "tokens are gathered on all ranks "
                                    "(allgather): predicted as all-to-all\n");
    return FR_OK;
}

fr_status fr_megatron_read_parallel(fr_megatron_flags *flags,
                                    const fr_config_request *request,
                                    fr_config *out, fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    fr_job *job = &out->file.job;
    FR_TRY(fr_megatron_read_rows(flags, "parallel", &out->file, err));
    plan->is_sequence_parallel = plan->is_sequence_parallel && plan->tp > 1;
    FR_TRY(read_stages(flags, &out->file.model, plan, err));
    FR_TRY(fr_megatron_read_rows(flags, "context", &out->file, err));
    FR_TRY(read_experts(flags, out, err));
    FR_TRY(fr_megatron_read_rows(flags, "order", &out->file, err));
    if (fr_megatron_has(flags, "seq-length"))
        FR_TRY(fr_megatron_i64(flags, "seq-length", 1, &job->seq, err));
    else
        fr_config_take_seq(request, out);
    return fr_config_take_dp(request, request->world > 0 ? 0 : flags->world,
                             out, err);
}
