/* target_plans.c: see target_plans.h. */
#include "tests/contract/interop/target_plans.h"

#include "core/base/text.h"
#include "plan/decide/plan_fields.h"

void target_plans_setup(bool has_experts, fr_plan_file *out)
{
    fr_plan_file_init(out);
    fr_model *model = &out->model;
    fr_text_copy(model->name, sizeof model->name, "round-trip");
    model->n_layers = 24;
    model->hidden = 1536;
    model->n_heads = model->n_kv_heads = 16;
    model->head_dim = 96;
    model->ffn_hidden = 6144;
    model->vocab = 50304;
    model->max_seq = 4096;
    /* Llama's form, which all targets have. */
    model->activation = FR_ACTIVATION_SILU;
    model->is_gated_mlp = model->is_rms_norm = model->is_rope = true;
    if (has_experts) {
        model->n_experts = 16;
        model->n_experts_per_token = 2;
        model->expert_ffn_hidden = 2304;
        model->moe_every = 1;
        model->has_qk_norm = true; /* torchtitan's are Qwen3's */
    }
    out->job.seq = 2048;
    out->job.global_batch = 384;
    out->job.lr = 2.385e-4;
    out->job.n_steps = 2385;
}

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

/* A number of the values that the target has, or one of those that plans of
 * this field usually have. */
static double draw(fr_rng *rng, const fr_target_field *row, int id)
{
    static const double buckets[] = {0, 25e6, 4.3e7, 1 << 28, 23852};
    const fr_field *field = &fr_plan_item_row(id)->field;
    int n_names = 0;
    if (row->values != 0) {
        unsigned bit;
        do {
            bit = (unsigned)pick(rng, 64);
        } while ((row->values >> bit & 1) == 0);
        return bit;
    }
    if (row->fate == FR_FATE_REFUSED)
        return field->initial;
    if (field->names != NULL) {
        while (fr_name_at(field->names, n_names) != NULL)
            n_names++;
        return (double)pick(rng, n_names);
    }
    switch (id) {
    case FR_PLAN_BUCKET:
        return buckets[pick(rng, 5)];
    case FR_PLAN_RECOMPUTE_PARTS:
        return (double)(1 + pick(rng, FR_RECOMPUTE_PARTS_ALL));
    case FR_PLAN_ZERO:
    case FR_PLAN_ZERO_PREFETCH:
    case FR_PLAN_RECOMPUTE_LAYERS:
        return (double)pick(rng, 4);
    case FR_PLAN_ETP:
        return (double)pick(rng, 2);
    case FR_PLAN_ZERO_GROUP:
        return pick(rng, 2) ? 0 : (double)(1 << pick(rng, 4));
    case FR_PLAN_OFFLOAD_ACTIVATIONS:
        return 0.25 * (double)pick(rng, 5);
    case FR_FACT(EXPERT_IMBALANCE):
        return 1;
    case FR_PLAN_EXPERT_CAPACITY:
        return 0.625 * (double)pick(rng, 3);
    default:
        break;
    }
    return field->kind == FR_FIELD_BOOL ? (double)pick(rng, 2)
                                        : (double)(1 << pick(rng, 4));
}

bool target_plans_next(fr_rng *rng, const fr_target *target, int version,
                       fr_plan_file *file)
{
    fr_err unused;
    fr_plan *plan = &file->plan;
    for (int trial = 0; trial < 200000; trial++) {
        fr_plan_init(plan);
        for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
            const int id = fr_plan_items[i];
            const fr_field *field = &fr_plan_item_row(id)->field;
            const fr_target_field row = fr_target_item(target, id);
            bool is_always = row.fate == FR_FATE_IMPLIED && row.values != 0;
            if (field->kind != FR_FIELD_LIST && (is_always || pick(rng, 2)))
                fr_field_set(field, draw(rng, &row, id), plan);
        }
        if (fr_plan_check_ranges(plan, &unused) == FR_OK &&
            fr_plan_check(plan, &file->model, &file->job, &unused) == FR_OK &&
            fr_plan_check_lowerable(plan, &file->model, &file->job, &unused) ==
                FR_OK &&
            fr_target_check(target, version, FR_PLAN_BITS_ALL, 0, plan,
                            &file->model, &file->job, &unused) == FR_OK)
            return true;
    }
    return false;
}
