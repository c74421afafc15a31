/* plan_changes.c: the knobs of a plan, each turned a little. */
#include "tuner/study/plan_changes.h"

#include "plan/decide/plan_fields.h"
#include "plan/schedule/schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct change_list {
    const fr_plan *from;
    fr_changed_plan *out;
    size_t n, n_max;
} change_list;

static void add(change_list *list, const fr_plan *plan, const char *format, ...)
    FR_PRINTF(3, 4);

static void add(change_list *list, const fr_plan *plan, const char *format, ...)
{
    va_list args;
    if (list->n >= list->n_max)
        return;
    fr_changed_plan *at = &list->out[list->n++];
    at->plan = *plan;
    /* Layers that were dealt to other stages. */
    if (plan->pp != list->from->pp || plan->vpp != list->from->vpp)
        at->plan.n_split = 0;
    if (plan->dp != list->from->dp ||
        plan->micro_batch != list->from->micro_batch)
        at->plan.n_shares = 0;
    va_start(args, format);
    vsnprintf(at->what, sizeof at->what, format, args);
    va_end(args);
}

/* ---- degrees ------------------------------------------------------------- */

static const fr_plan_field_id degrees[] = {FR_PLAN_TP, FR_PLAN_PP, FR_PLAN_CP,
                                           FR_PLAN_DP};

static const fr_field *degree_at(size_t i)
{
    return &fr_plan_fields[degrees[i]].field;
}

/* The schedule that goes with a number of stages and chunks. */
static void mend_schedule(fr_plan *plan)
{
    if (plan->pp == 1)
        plan->vpp = 1;
    if (fr_schedule_has_chunks(fr_schedules[plan->schedule]) != (plan->vpp > 1))
        plan->schedule = fr_schedule_usual(plan->vpp);
    if (plan->tp == 1)
        plan->is_sequence_parallel = false;
}

/* A factor of two from one degree to another. */
static void move_degrees(change_list *list)
{
    for (size_t from = 0; from < FR_LENGTH(degrees); from++)
        for (size_t to = 0; to < FR_LENGTH(degrees); to++) {
            fr_plan plan = *list->from;
            long long a = fr_field_get_i64(degree_at(from), &plan);
            long long b = fr_field_get_i64(degree_at(to), &plan);
            if (from == to || a % 2 != 0)
                continue;
            fr_field_set_i64(degree_at(from), a / 2, &plan);
            fr_field_set_i64(degree_at(to), b * 2, &plan);
            /* Sharded activations cost tensor parallelism nothing. */
            if (list->from->tp == 1 && plan.tp > 1)
                plan.is_sequence_parallel = true;
            mend_schedule(&plan);
            add(list, &plan, "%s %lld -> %lld, %s %lld -> %lld",
                degree_at(from)->key, a, a / 2, degree_at(to)->key, b, b * 2);
        }
}

static void change_experts(change_list *list, const fr_model *model)
{
    fr_plan plan = *list->from;
    if (model->n_experts == 0)
        return;
    plan.ep = 2 * list->from->ep;
    add(list, &plan, "ep %d -> %d", list->from->ep, plan.ep);
    if (list->from->ep % 2 != 0)
        return;
    plan.ep = list->from->ep / 2;
    add(list, &plan, "ep %d -> %d", list->from->ep, plan.ep);
}

/* ---- batch and pipeline -------------------------------------------------- */

static void change_micro_batch(change_list *list)
{
    fr_plan plan = *list->from;
    long long old = (long long)plan.micro_batch;
    plan.micro_batch = 2 * old;
    add(list, &plan, "micro-batch %lld -> %lld", old, 2 * old);
    if (old % 2 != 0)
        return;
    plan.micro_batch = old / 2;
    add(list, &plan, "micro-batch %lld -> %lld", old, old / 2);
}

/* The next numbers of chunks that deal the layers evenly. */
static void change_chunks(change_list *list, const fr_model *model)
{
    const fr_plan *from = list->from;
    if (from->pp == 1)
        return;
    for (int direction = -1; direction <= 1; direction += 2) {
        fr_plan plan = *from;
        do
            plan.vpp += direction;
        while (plan.vpp >= 1 && plan.vpp * plan.pp <= model->n_layers &&
               model->n_layers % (plan.vpp * plan.pp) != 0);
        if (plan.vpp < 1 || plan.vpp * plan.pp > model->n_layers)
            continue;
        mend_schedule(&plan);
        add(list, &plan, "vpp %d -> %d", from->vpp, plan.vpp);
    }
}

static void change_schedule(change_list *list)
{
    const fr_plan *from = list->from;
    for (int i = 0; i < fr_n_schedules && from->pp > 1; i++) {
        fr_plan plan = *from;
        const int32_t n_chunks = fr_schedules[i]->n_chunks;
        plan.schedule = (fr_schedule_kind)i;
        plan.vpp = n_chunks > 0 ? n_chunks : from->vpp;
        if (plan.schedule == from->schedule || (n_chunks == 0 && plan.vpp == 1))
            continue;
        add(list, &plan, "schedule %s -> %s",
            fr_name_of(&fr_schedule_names, from->schedule),
            fr_name_of(&fr_schedule_names, plan.schedule));
    }
}

/* ---- memory -------------------------------------------------------------- */

static void change_memory(change_list *list)
{
    const fr_plan *from = list->from;
    for (int i = 0; i <= 3 && from->dp > 1; i++) {
        fr_plan plan = *from;
        plan.zero_stage = i;
        if (i != from->zero_stage)
            add(list, &plan, "zero %d -> %d", from->zero_stage, i);
    }
    for (int i = 0; i < FR_RECOMPUTE_N; i++) {
        fr_plan plan = *from;
        plan.recompute = (fr_recompute)i;
        if (plan.recompute != from->recompute)
            add(list, &plan, "recompute %s -> %s",
                fr_name_of(&fr_recompute_names, from->recompute),
                fr_name_of(&fr_recompute_names, plan.recompute));
    }
}

/* ---- switches ------------------------------------------------------------ */

static void flip(change_list *list, fr_plan_field_id id)
{
    const fr_field *field = &fr_plan_fields[id].field;
    fr_plan plan = *list->from;
    bool is_on = fr_field_get_i64(field, &plan) == 0;
    fr_field_set_i64(field, is_on, &plan);
    add(list, &plan, "%s %s", is_on ? "with" : "without", field->option);
}

static void change_switches(change_list *list, const fr_cluster *cluster)
{
    const fr_plan *from = list->from;
    if (from->tp > 1) {
        flip(list, FR_PLAN_SEQUENCE_PARALLEL);
        flip(list, FR_PLAN_TP_OVERLAP);
    }
    if (from->ep > 1)
        flip(list, FR_PLAN_EP_OVERLAP);
    if (from->dp > 1)
        flip(list, FR_PLAN_OVERLAP);
    if (from->dp > 1 && (from->zero_stage == 1 || from->zero_stage == 2))
        flip(list, FR_PLAN_GATHER_OVERLAP);
    if (from->dp > 1 && from->zero_stage == 3)
        flip(list, FR_PLAN_ZERO_RESHARD);
    if (fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU)
        flip(list, FR_PLAN_OFFLOAD_OPTIMIZER);
    if (from->activation_offload_frac > 0) {
        fr_plan plan = *from;
        plan.activation_offload_frac = 0;
        add(list, &plan, "without %s",
            fr_plan_fields[FR_PLAN_OFFLOAD_ACTIVATIONS].field.option);
    }
}

static void change_buckets(change_list *list)
{
    fr_plan plan = *list->from;
    double mb = 1e-6 * (double)plan.bucket_bytes;
    if (plan.dp == 1 || plan.zero_stage > 1 || !plan.is_overlap ||
        plan.bucket_bytes == 0)
        return;
    plan.bucket_bytes = list->from->bucket_bytes * 4;
    add(list, &plan, "bucket %g MB -> %g MB", mb, 4 * mb);
    plan.bucket_bytes = list->from->bucket_bytes / 4;
    add(list, &plan, "bucket %g MB -> %g MB", mb, mb / 4);
}

static void change_order(change_list *list, const fr_cluster *cluster)
{
    const fr_plan *from = list->from;
    int n_wide = (from->tp > 1) + (from->dp > 1) + (from->pp > 1);
    for (int i = 0; i < FR_RANK_ORDER_N; i++) {
        fr_plan plan = *from;
        plan.rank_order = (fr_rank_order)i;
        if (i == (int)from->rank_order || n_wide < 2 ||
            fr_cluster_n_nodes(cluster) == 1)
            continue;
        add(list, &plan, "rank-order %s",
            fr_name_of(&fr_rank_order_names, plan.rank_order));
    }
}

static void change_compressor(change_list *list)
{
    const fr_plan *from = list->from;
    for (int i = 0; i < fr_n_compressors && from->dp > 1; i++) {
        fr_plan plan = *from;
        plan.compressor = (fr_compressor_kind)i;
        if (plan.compressor != from->compressor)
            add(list, &plan, "compress %s",
                fr_name_of(&fr_compressor_names, plan.compressor));
    }
}

size_t fr_plan_changes(const fr_plan *plan, const fr_model *model,
                       const fr_cluster *cluster, bool allow_lossy,
                       fr_changed_plan *out, size_t n_max)
{
    change_list list = {plan, out, 0, n_max};
    move_degrees(&list);
    change_experts(&list, model);
    change_micro_batch(&list);
    change_chunks(&list, model);
    change_schedule(&list);
    change_memory(&list);
    change_switches(&list, cluster);
    change_buckets(&list);
    change_order(&list, cluster);
    if (allow_lossy)
        change_compressor(&list);
    return list.n;
}
