/* random_layouts.c: see random_layouts.h. */
#include "tests/contract/runtime/random_layouts.h"

#include "core/numbers/rng.h"
#include "plan/decide/plan_fields.h"
#include "tests/record/random_plans.h"

#include <stdio.h>
#include <string.h>

enum { N_TRIES = 120, N_GRIDS = 40, MAX_CHOICES = 6 };

/* The numbers that are tried; other fields are drawn from their names. */
static const struct {
    int n;
    double value[MAX_CHOICES];
} numbers[FR_PLAN_ITEMS_N] = {
    [FR_PLAN_DP] = {5, {1, 2, 3, 4, 8}},
    [FR_PLAN_TP] = {3, {1, 2, 4}},
    [FR_PLAN_PP] = {4, {1, 2, 3, 4}},
    [FR_PLAN_CP] = {2, {1, 2}},
    [FR_PLAN_EP] = {2, {1, 2}},
    [FR_PLAN_VPP] = {3, {1, 2, 3}},
    [FR_PLAN_MICRO_BATCH] = {4, {1, 2, 3, 4}},
    [FR_PLAN_ZERO] = {4, {0, 1, 2, 3}},
    [FR_PLAN_BUCKET] = {5, {0, 1, 7000, 60000, 25e6}},
    [FR_PLAN_COMPRESSOR_RANK] = {3, {1, 4, 64}},
    [FR_PLAN_COMPRESSOR_DENSITY] = {2, {0.1, 1}},
    [FR_PLAN_NCCL_CHANNELS] = {2, {0, 2}},
    [FR_PLAN_SERVERS] = {2, {0, 1}},
    [FR_PLAN_RECOMPUTE_LAYERS] = {3, {0, 1, 2}},
    [FR_PLAN_ZERO_GROUP] = {3, {0, 2, 4}},
    [FR_PLAN_ZERO_PREFETCH] = {4, {0, 1, 2, 9}},
    [FR_PLAN_ETP] = {2, {0, 1}},
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = {3, {0, 0.4, 1}},
    [FR_PLAN_THREADS] = {6, {1, 1, 1, 1, 1, 2}},
};

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static double pick_of(fr_rng *rng, const double *values, int64_t n)
{
    return values[pick(rng, n)];
}

/* Any layers for each stage that come to the model's; the ends may have none.
 */
static void draw_split(fr_rng *rng, const fr_model *model, fr_plan *plan)
{
    const int32_t n = plan->pp * plan->vpp;

    plan->n_split = 0;
    if (n == 1 || pick(rng, 2) == 0)
        return;
    for (int32_t i = 0; i < n; i++)
        plan->layer_split[i] = i == 0 || i + 1 == n ? 0 : 1;
    for (int64_t left = model->n_layers - (n - 2); left > 0; left--)
        plan->layer_split[pick(rng, n)]++;
    plan->n_split = n;
}

static void draw_shares(fr_rng *rng, const fr_job *job, fr_plan *plan)
{
    plan->n_shares = 0;
    if (pick(rng, 4) != 0)
        random_plans_share(rng, job, plan);
}

/* None, so few that many rows are dropped, so many that some are. */
static void draw_capacity(fr_rng *rng, const fr_model *model, fr_plan *plan)
{
    static const double factors[] = {0, 0.6, 0.8, 1.2};

    if (model->n_experts > 0)
        plan->expert_capacity = pick_of(rng, factors, FR_LENGTH(factors));
}

static void draw_field(fr_rng *rng, const random_layout *l, int id,
                       fr_plan *plan)
{
    const fr_plan_field *row = fr_plan_item_row(id);
    const fr_field *field = &row->field;

    if (id == FR_PLAN_LAYER_SPLIT) {
        draw_split(rng, &l->model, plan);
    } else if (id == FR_PLAN_BATCH_SHARES) {
        draw_shares(rng, &l->job, plan);
    } else if (id == FR_PLAN_EXPERT_CAPACITY) {
        draw_capacity(rng, &l->model, plan);
    } else if (numbers[id].n > 0) {
        fr_field_set(field, pick_of(rng, numbers[id].value, numbers[id].n),
                     plan);
    } else if (field->kind == FR_FIELD_BOOL) {
        fr_field_set(field, (double)pick(rng, 2), plan);
    } else if (field->names == NULL && row->words != NULL) {
        /* A mask of the words. */
        fr_field_set(field, (double)(1 + pick(rng, (int64_t)field->max)), plan);
    } else if (field->names != NULL) {
        int n = 0;
        while (fr_name_at(field->names, n) != NULL)
            n++;
        int i = (int)pick(rng, n);
        if (field->is_offered == NULL || field->is_offered(i))
            fr_field_set(field, i, plan);
    }
}

static bool is_trained(const random_layout *l, const fr_plan *plan)
{
    fr_err ignored;

    if (fr_plan_check(plan, &l->model, &l->job, &ignored) != FR_OK ||
        fr_plan_world(plan) * plan->n_threads > RANDOM_LAYOUT_MAX_RANKS)
        return false;
    /* A token may go to another expert because of rounding to 16 bits. */
    if (l->model.n_experts > 0 && fr_plan_storage_dtype(plan) == FR_DTYPE_BF16)
        return false;
    /* Ranks that route parts of a sequence drop others than one that has all.
     */
    if (plan->expert_capacity > 0 &&
        (plan->cp > 1 || (plan->tp > 1 && plan->is_sequence_parallel)))
        return false;
    /* `run` puts our kernels for others; fake GPUs have those of CPUs. */
    if (l->is_gpu && plan->execution.kernels != FR_KERNELS_OWN)
        return false;
    return (l->is_gpu ? fr_plan_check_executable_gpu(plan, &l->model, &l->job,
                                                     &ignored)
                      : fr_plan_check_executable(plan, &l->model, &l->job,
                                                 &ignored)) == FR_OK;
}

/*
 * From the plan of one rank on: a few fields at a time get any values, and keep
 * them where the plan is then trained.  So no rule of what goes with what is
 * known here, and many decisions meet in one plan.
 */
static void draw_plan(fr_rng *rng, random_layout *l)
{
    for (int i = 0; i < N_GRIDS && fr_plan_world(&l->plan) == 1; i++) {
        fr_plan plan = l->plan;
        draw_field(rng, l, FR_PLAN_DP, &plan);
        draw_field(rng, l, FR_PLAN_TP, &plan);
        draw_field(rng, l, FR_PLAN_PP, &plan);
        if (is_trained(l, &plan))
            l->plan = plan;
    }
    for (int i = 0; i < N_TRIES; i++) {
        fr_plan plan = l->plan;
        for (int64_t k = pick(rng, 3); k >= 0; k--)
            draw_field(rng, l, fr_plan_items[pick(rng, FR_PLAN_ITEMS_N)],
                       &plan);
        if (is_trained(l, &plan))
            l->plan = plan;
    }
}

static void draw_model(fr_rng *rng, fr_model *model)
{
    static const double vocabs[] = {53, 64, 259};
    const int64_t heads = 4 * (1 + pick(rng, 2));

    fr_model_init(model);
    (void)snprintf(model->name, sizeof model->name, "random");
    model->kind = FR_MODEL_DECODER;
    model->n_layers = 2 + pick(rng, 5);
    model->n_heads = heads;
    model->n_kv_heads = pick(rng, 2) ? heads : 4;
    model->head_dim = 4 * (1 + pick(rng, 3));
    model->hidden = heads * model->head_dim;
    model->ffn_hidden = 4 * (7 + pick(rng, 30));
    model->vocab = (int64_t)pick_of(rng, vocabs, 3);
    model->max_seq = 48;
    model->is_gated_mlp = pick(rng, 2);
    model->activation =
        model->is_gated_mlp ? FR_ACTIVATION_SILU : FR_ACTIVATION_GELU_TANH;
    model->is_rms_norm = pick(rng, 2);
    model->is_rope = pick(rng, 2);
    model->is_tied = pick(rng, 2);
    model->has_qkv_bias = pick(rng, 2);
    model->has_out_bias = pick(rng, 2);
    model->has_mlp_bias = pick(rng, 2);
    model->has_final_norm = true;
    model->norm_eps = 1e-5;
    model->rope_theta = 10000;
    model->rope_frac = 1;
}

/* BERT of the same sizes. */
static void make_encoder(fr_model *model)
{
    model->kind = FR_MODEL_ENCODER;
    model->n_kv_heads = model->n_heads;
    model->activation = FR_ACTIVATION_GELU;
    model->is_gated_mlp = model->is_rms_norm = model->is_rope = false;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = true;
    model->is_tied = model->has_embed_norm = model->has_mlm_head = true;
    model->has_final_norm = false;
    model->n_token_types = 2;
}

/* Mixtral, or Qwen's, of the same sizes. */
static void make_experts(fr_rng *rng, fr_model *model)
{
    model->is_gated_mlp = true;
    model->has_mlp_bias = false;
    model->activation = FR_ACTIVATION_SILU;
    model->n_experts = 4 + 2 * pick(rng, 3);
    model->n_experts_per_token = 1 + pick(rng, 3);
    model->expert_ffn_hidden = 4 * (5 + pick(rng, 20));
    model->moe_every = 1 + pick(rng, 2);
    model->has_softmax_over_all = pick(rng, 2);
    if (pick(rng, 2) == 0)
        return;
    model->shared_expert_ffn_hidden = 4 * (5 + pick(rng, 20));
    model->has_shared_expert_gate = pick(rng, 2);
}

/* Over sequences, lest it depends on what a micro-batch is. */
static void make_balanced(fr_model *model)
{
    model->router_aux_coef = 0.2;
    model->is_aux_by_sequence = true;
}

/* DeepSeek's attention, and its router where there are experts. */
static void make_latent(fr_model *model)
{
    model->is_rope = true;
    model->n_kv_heads = model->n_heads;
    model->kv_lora_rank = 12;
    model->q_lora_rank = model->n_layers % 2 == 0 ? 20 : 0;
    model->qk_nope_head_dim = 6;
    model->qk_rope_head_dim = 4;
    model->v_head_dim = 8;
    model->head_dim = 10;
    if (model->n_experts == 0)
        return;
    model->has_sigmoid_router = model->has_router_bias = true;
    model->n_expert_groups = 2;
    model->n_chosen_groups = model->n_experts_per_token > 2 ? 2 : 1;
    model->routed_scale = 1.7;
}

static void draw_job(fr_rng *rng, fr_job *job)
{
    static const double batches[] = {6, 8, 12, 16};
    static const double rates[FR_OPTIMIZER_N] = {[FR_OPTIMIZER_SGD] = 0.03,
                                                 [FR_OPTIMIZER_LARS] = 0.5,
                                                 [FR_OPTIMIZER_LAMB] = 0.02,
                                                 [FR_OPTIMIZER_ADAMW] = 0.003};
    fr_job_init(job);
    job->global_batch = (int64_t)pick_of(rng, batches, 4);
    job->seq = 8 * (1 + pick(rng, 4));
    job->n_steps = 4;
    job->seed = (uint64_t)pick(rng, 1 << 30);
    job->optimizer = (fr_optimizer_kind)pick(rng, FR_OPTIMIZER_N);
    job->lr = rates[job->optimizer];
    if (job->optimizer == FR_OPTIMIZER_SGD ||
        job->optimizer == FR_OPTIMIZER_LARS)
        job->beta1 = 0.9;
    job->trust_coefficient = 0.01;
    job->clip_norm = pick(rng, 3) ? 0.7 : 0;
    job->weight_decay = pick(rng, 2) ? 0.1 : 0;
    job->warmup_steps = pick(rng, 3);
    job->lr_schedule = (fr_lr_schedule)pick(rng, FR_LR_N);
}

fr_status random_layout_draw(uint64_t seed, uint64_t i, bool is_gpu,
                             random_layout *out, fr_err *err)
{
    fr_rng *rng = NULL;

    FR_TRY(fr_rng_create(fr_hash_u64(seed, i, is_gpu, 0), &rng, err));
    memset(out, 0, sizeof *out);
    draw_model(rng, &out->model);
    /* By its number, so that the others stay as they were. */
    if (i % 6 == 5)
        make_encoder(&out->model);
    if (i % 6 == 3)
        make_experts(rng, &out->model);
    if (i % 12 == 9 || i % 12 == 1)
        make_latent(&out->model);
    if (out->model.n_experts > 0 && i % 4 == 3)
        make_balanced(&out->model);
    out->model.has_pooler = i % 12 == 11;
    if (out->model.is_rope && i % 4 == 1)
        out->model.n_mtp_layers = 1;
    draw_job(rng, &out->job);
    *out = random_layout_alone(out);
    out->is_gpu = is_gpu;
    if (is_gpu || pick(rng, 3) == 0) {
        /* Fields that 16 bits and dropout need; other fields may take them away
         * again. */
        out->plan.is_flash = true;
        out->plan.execution.kernels = FR_KERNELS_OWN;
        if (pick(rng, 3) != 0 && out->model.n_experts == 0)
            out->plan.precision = FR_DTYPE_BF16;
        if (pick(rng, 2) == 0)
            out->job.dropout = 0.3;
    }
    draw_plan(rng, out);
    const int64_t n_nodes = 1 + pick(rng, 3), is_dealt = pick(rng, 2);
    const int64_t world = fr_plan_world(&out->plan);
    for (int64_t r = 0; r < world; r++)
        out->node_of_rank[r] =
            (int32_t)(is_dealt ? r % n_nodes : r * n_nodes / world);
    fr_rng_destroy(rng);
    return FR_OK;
}

random_layout random_layout_alone(const random_layout *layout)
{
    random_layout alone = *layout;

    fr_plan_init(&alone.plan);
    alone.plan.micro_batch = 1;
    alone.plan.n_threads = 1;
    alone.is_gpu = false;
    alone.plan.is_flash = alone.job.dropout > 0;
    if (fr_plan_storage_dtype(&layout->plan) == FR_DTYPE_BF16) {
        alone.plan.precision = FR_DTYPE_BF16;
        alone.plan.execution.kernels = FR_KERNELS_OWN;
        alone.plan.is_flash = true;
    }
    /* The rows that have room are decided within a micro-batch. */
    if (layout->plan.expert_capacity > 0) {
        alone.plan.expert_capacity = layout->plan.expert_capacity;
        alone.plan.micro_batch = layout->plan.micro_batch;
    }
    memset(alone.node_of_rank, 0, sizeof alone.node_of_rank);
    return alone;
}

enum {
    SIMPLER_NODES = FR_PLAN_ITEMS_N,
    SIMPLER_CLIP,
    SIMPLER_DECAY,
    SIMPLER_TIED,
    SIMPLER_N
};

bool random_layout_simpler(const random_layout *l, int k, random_layout *out)
{
    random_layout less = *l, alone = random_layout_alone(l);

    const int item = k < FR_PLAN_ITEMS_N ? fr_plan_items[k] : k;

    switch (item) {
    case SIMPLER_NODES:
        memset(less.node_of_rank, 0, sizeof less.node_of_rank);
        break;
    case SIMPLER_CLIP:
        less.job.clip_norm = 0;
        break;
    case SIMPLER_DECAY:
        less.job.weight_decay = 0;
        break;
    case SIMPLER_TIED:
        less.model.is_tied = false;
        break;
    case FR_PLAN_EXPERT_CAPACITY:
        less.plan.expert_capacity = 0;
        break;
    case FR_FACT(KERNELS):
    case FR_PLAN_FLASH_ATTENTION:
        if (l->is_gpu)
            break;
        /* fall through */
    default:
        if (k >= SIMPLER_N)
            return false;
        fr_field_set(&fr_plan_item_row(item)->field,
                     fr_field_get(&fr_plan_item_row(item)->field, &alone.plan),
                     &less.plan);
    }
    *out = is_trained(&less, &less.plan) ? less : *l;
    return true;
}

void random_layout_describe(const random_layout *l, char *buf, size_t n_buf)
{
    const fr_model *m = &l->model;
    const fr_job *j = &l->job;
    char plan[512];
    int n = snprintf(
        buf, n_buf,
        "%s%s; %s batch %lld x %lld clip %g decay %g drop %g; %lld layers of "
        "%lld, "
        "heads %lld/%lld, ffn %lld, vocab %lld%s%s%s%s%s%s%s; nodes",
        l->is_gpu ? "gpu " : "", fr_plan_describe(&l->plan, plan, sizeof plan),
        fr_name_of(&fr_optimizer_names, j->optimizer),
        (long long)j->global_batch, (long long)j->seq, j->clip_norm,
        j->weight_decay, j->dropout, (long long)m->n_layers,
        (long long)m->hidden, (long long)m->n_heads, (long long)m->n_kv_heads,
        (long long)m->ffn_hidden, (long long)m->vocab,
        m->is_tied ? " tied" : "", m->is_rope ? " rope" : "",
        m->is_rms_norm ? " rms" : "", m->is_gated_mlp ? " gated" : "",
        m->has_qkv_bias ? " qkv-bias" : "", m->has_out_bias ? " out-bias" : "",
        m->has_mlp_bias ? " mlp-bias" : "");

    if (m->n_experts > 0 && n > 0 && (size_t)n + 64 < n_buf)
        n += snprintf(buf + n, n_buf - (size_t)n,
                      "; %lld experts of %lld, %lld each%s%s",
                      (long long)m->n_experts, (long long)m->expert_ffn_hidden,
                      (long long)m->n_experts_per_token,
                      m->shared_expert_ffn_hidden > 0 ? ", shared" : "",
                      m->router_aux_coef > 0 ? ", balanced" : "");

    if (m->n_mtp_layers > 0 && n > 0 && (size_t)n + 64 < n_buf)
        n += snprintf(buf + n, n_buf - (size_t)n, "; predicts later");

    for (int64_t r = 0;
         r < fr_plan_world(&l->plan) && n > 0 && (size_t)n + 4 < n_buf; r++)
        n += snprintf(buf + n, n_buf - (size_t)n, " %d", l->node_of_rank[r]);
}
