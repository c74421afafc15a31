/*
 * estimate_layers.c: what each layer takes and keeps, by lowering one
 * micro-batch of the model without a pipeline and pricing its calls.
 */
#include "sim/estimate_state.h"

#include "core/hash.h"
#include "plan/lower.h"
#include "plan/optimizer.h"

#include <string.h>

typedef enum est_pass {
    EST_FORWARD,
    EST_BACKWARD,
    EST_WEIGHTS,
    EST_REMAKE,
    EST_PASSES
} est_pass;

/* A program of few micro-batches, and its segments' prices. */
typedef struct est_probe {
    fr_program *program;
    int64_t *segment_ps; /* -1: not asked for */
} est_probe;

/* ---- one small program -------------------------------------------------- */

/* The same layers with as few ranks as there can be. */
static void small_plan(const fr_plan *plan, bool is_split, fr_plan *out)
{
    *out = *plan;
    out->dp = plan->ep;
    out->pp = is_split ? 2 : 1;
    out->vpp = 1;
    out->schedule = is_split ? FR_SCHEDULE_ZB_H1 : FR_SCHEDULE_1F1B;
    out->n_split = 0;
    out->zero_stage = 0;
    out->zero_group = 0;
    out->bucket_bytes = 1; /* each unit of parameters by itself */
    out->is_overlap = true;
    out->collective = FR_COLLECTIVE_AUTO;
    out->rank_order = FR_RANK_ORDER_TP_DP_PP;
    out->recompute_layers = 0;
}

static void release_probe(est_probe *probe)
{
    fr_program_destroy(probe->program);
    free(probe->segment_ps);
}

static fr_status init_probe(fr_estimator *e, const fr_plan *plan,
                            bool is_split, est_probe *out, fr_err *err)
{
    fr_plan small;
    fr_job job = *e->job;
    *out = (est_probe){0};
    small_plan(plan, is_split, &small);
    job.global_batch = (is_split ? 2 : 1) * small.micro_batch * small.dp;
    FR_TRY(fr_lower(e->model, &job, &small, NULL, &out->program, err));
    out->segment_ps =
        malloc((out->program->n_segments + 1) * sizeof *out->segment_ps);
    if (out->segment_ps == NULL) {
        release_probe(out);
        return fr_fail_no_memory(err);
    }
    for (uint32_t i = 0; i < out->program->n_segments; i++)
        out->segment_ps[i] = -1;
    return FR_OK;
}

static fr_status price_segment(fr_estimator *e, est_probe *probe,
                               const est_place *place, uint32_t i_segment,
                               int64_t *out_ps, fr_err *err)
{
    const fr_segment *segment = &probe->program->segments[i_segment];
    int64_t *known = &probe->segment_ps[i_segment];
    if (*known < 0) {
        int64_t sum = 0;
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            int64_t ps;
            const fr_instr *instr =
                &probe->program->instrs[segment->first_instr + k];
            FR_TRY(
                est_price(e, instr, (fr_lane)segment->lane, place, &ps, err));
            sum += ps;
        }
        *known = sum;
    }
    *out_ps = *known;
    return FR_OK;
}

/* By the names that lowering gives (lower_layer.c, lower_split.c ...). */
static est_pass pass_of(const fr_segment *segment)
{
    if (segment->is_recompute)
        return EST_REMAKE;
    if (strstr(segment->name, "_fwd") != NULL ||
        strcmp(segment->name, "input") == 0)
        return EST_FORWARD;
    return strstr(segment->name, "_weights") != NULL ? EST_WEIGHTS
                                                     : EST_BACKWARD;
}

static void add_end(const fr_segment *segment, int64_t ps, est_layers *out)
{
    bool is_input = strncmp(segment->name, "embed", 5) == 0 ||
                    strncmp(segment->name, "input", 5) == 0;
    if (!is_input)
        out->head_ps += ps;
    else if (pass_of(segment) == EST_FORWARD)
        out->embed_ps += ps;
    else
        out->embed_back_ps += ps;
}

/* ---- sums --------------------------------------------------------------- */

/* What the compute lane does for micro-batch 0, layer by layer. */
static fr_status add_passes(fr_estimator *e, est_probe *probe,
                            const est_place *place, est_layers *out,
                            fr_err *err)
{
    int64_t *sums[EST_PASSES] = {out->forward_ps, out->backward_ps,
                                 out->weights_ps, out->remake_ps};
    for (uint32_t c = 0; c < probe->program->n_classes; c++) {
        const fr_class *klass = &probe->program->classes[c];
        for (uint32_t i = 0; i < klass->n_calls; i++) {
            const fr_call *call = &klass->calls[i];
            const fr_segment *segment =
                &probe->program->segments[call->i_segment];
            int64_t ps;
            if (segment->lane != FR_LANE_COMPUTE || call->micro_batch != 0)
                continue;
            FR_TRY(price_segment(e, probe, place, call->i_segment, &ps, err));
            if (call->layer < 0)
                add_end(segment, ps, out);
            else
                sums[pass_of(segment)][call->layer + 1] += ps;
        }
    }
    return FR_OK;
}

/* Ranges of parameters come in the order of backward: the last norm and the
 * head, layers from the last (experts before the rest), the embedding. */
static void add_parameters(const fr_estimator *e, const fr_program *program,
                           est_layers *out)
{
    int32_t layer = e->n_layers;
    const fr_class *klass = &program->classes[0];
    for (uint32_t i = 0; i < klass->n_calls; i++) {
        const fr_segment *segment =
            &program->segments[klass->calls[i].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + k];
            uint64_t n = (uint64_t)instr->dim[0];
            if (instr->op == FR_OP_GRAD_SQSUM)
                out->sqsum = *instr;
            if (instr->op == FR_OP_OPT_NORMS) {
                out->opt_norms = *instr;
                out->has_norms = true;
            }
            if (instr->op != FR_OP_OPT_STEP)
                continue;
            out->opt_step = *instr;
            if (instr->axis == FR_AXIS_EDP) {
                out->n_expert[layer] = n;
                continue;
            }
            if (layer == e->n_layers && out->n_final == 0)
                out->n_final = n;
            else if (layer > 0)
                out->n_dense[layer--] = n;
            else
                out->n_embed = n;
        }
    }
}

/* What forward leaves until backward, and the rest of the peak. */
static fr_status add_memory(const fr_program *program, est_layers *out,
                            fr_err *err)
{
    const fr_class *klass = &program->classes[0];
    uint64_t parts[FR_MEMORY_N], peak, kept = 0;
    uint32_t i_head = 0;
    for (uint32_t i = 0; i < klass->n_calls; i++) {
        const fr_call *call = &klass->calls[i];
        const fr_segment *segment = &program->segments[call->i_segment];
        if (segment->lane == FR_LANE_COMPUTE && call->micro_batch == 0 &&
            pass_of(segment) == EST_FORWARD)
            i_head = i;
    }
    for (uint32_t i = 0; i < klass->n_blocks; i++) {
        const fr_block *block = &klass->blocks[i];
        if (block->is_persistent || block->kind != FR_MEMORY_ACTIVATIONS)
            continue;
        const fr_call *call = &klass->calls[block->first_call];
        if (call->layer < 0 && block->first_call <= i_head)
            out->stream_bytes = block->n_bytes;
        if (block->first_call > i_head)
            continue;
        out->plain_bytes[call->layer + 1] += block->n_bytes;
        if (block->last_call <= i_head)
            continue;
        out->kept_bytes[call->layer + 1] += block->n_bytes;
        kept += block->n_bytes;
    }
    out->kept_bytes[1] += out->kept_bytes[0]; /* the embedding's */
    out->plain_bytes[1] += out->plain_bytes[0];
    out->kept_bytes[0] = out->plain_bytes[0] = 0;
    FR_TRY(fr_class_peak(klass, parts, &peak, err));
    uint64_t live =
        parts[FR_MEMORY_ACTIVATIONS] + parts[FR_MEMORY_BUFFERS];
    out->scratch_bytes = live > kept ? live - kept : 0;
    return FR_OK;
}

static void sum_up(int32_t n, est_layers *out)
{
    for (int32_t i = 1; i <= n; i++) {
        out->forward_ps[i] += out->forward_ps[i - 1];
        out->backward_ps[i] += out->backward_ps[i - 1];
        out->weights_ps[i] += out->weights_ps[i - 1];
        out->n_dense[i] += out->n_dense[i - 1];
        out->n_expert[i] += out->n_expert[i - 1];
        out->kept_bytes[i] += out->kept_bytes[i - 1];
        out->plain_bytes[i] += out->plain_bytes[i - 1];
        out->remake_ps[i] += out->remake_ps[i - 1];
    }
}

static fr_status fill(fr_estimator *e, const fr_plan *plan,
                      const est_place *place, bool is_split, est_layers *out,
                      fr_err *err)
{
    est_probe probe;
    FR_TRY(init_probe(e, plan, false, &probe, err));
    add_parameters(e, probe.program, out);
    fr_status status = add_memory(probe.program, out, err);
    if (status == FR_OK && !is_split)
        status = add_passes(e, &probe, place, out, err);
    release_probe(&probe);
    if (status != FR_OK)
        return status;
    if (is_split) {
        FR_TRY(init_probe(e, plan, true, &probe, err));
        status = add_passes(e, &probe, place, out, err);
        release_probe(&probe);
    }
    sum_up(e->n_layers, out);
    return status;
}

/* ---- all of them -------------------------------------------------------- */

void est_layers_destroy(est_layers *layers)
{
    if (layers == NULL)
        return;
    free(layers->forward_ps);
    free(layers->backward_ps);
    free(layers->weights_ps);
    free(layers->n_dense);
    free(layers->n_expert);
    free(layers->kept_bytes);
    free(layers->plain_bytes);
    free(layers->remake_ps);
    free(layers);
}

static est_layers *new_layers(int32_t n_layers)
{
    size_t n = (size_t)n_layers + 1;
    est_layers *out = calloc(1, sizeof *out);
    if (out == NULL)
        return NULL;
    out->forward_ps = calloc(n, sizeof *out->forward_ps);
    out->backward_ps = calloc(n, sizeof *out->backward_ps);
    out->weights_ps = calloc(n, sizeof *out->weights_ps);
    out->n_dense = calloc(n, sizeof *out->n_dense);
    out->n_expert = calloc(n, sizeof *out->n_expert);
    out->kept_bytes = calloc(n, sizeof *out->kept_bytes);
    out->plain_bytes = calloc(n, sizeof *out->plain_bytes);
    out->remake_ps = calloc(n, sizeof *out->remake_ps);
    if (!out->plain_bytes || !out->remake_ps || !out->forward_ps || !out->backward_ps || !out->weights_ps ||
        !out->n_dense || !out->n_expert || !out->kept_bytes) {
        est_layers_destroy(out);
        return NULL;
    }
    return out;
}

static uint64_t key_of(const fr_plan *plan, const est_place *place,
                       bool is_split)
{
    uint64_t imbalance;
    memcpy(&imbalance, &plan->expert_imbalance, sizeof imbalance);
    uint64_t flags = (uint64_t)plan->is_flash | (uint64_t)is_split << 1 |
                     (uint64_t)plan->is_sequence_parallel << 2 |
                     (uint64_t)plan->is_tp_overlap << 3;
    const uint64_t words[] = {
        place->layer_key,
        (uint64_t)plan->tp << 32 | (uint64_t)plan->cp,
        (uint64_t)plan->ep << 32 | (uint64_t)plan->etp,
        (uint64_t)plan->micro_batch,
        imbalance,
        (uint64_t)plan->recompute |
            (uint64_t)plan->recompute_parts << 8 |
            (uint64_t)plan->flash_kind << 16 | (uint64_t)plan->kernels << 24 |
            (uint64_t)plan->cp_kind << 32 | (uint64_t)plan->precision << 40 |
            (uint64_t)plan->grad_dtype << 48 | flags << 56};
    return fr_hash_bytes(words, sizeof words, 3);
}

fr_status est_layers_find(fr_estimator *e, const fr_plan *plan,
                          const est_place *place, const est_layers **out,
                          fr_err *err)
{
    bool is_split = plan->schedule == FR_SCHEDULE_ZB_H1 ||
                    plan->schedule == FR_SCHEDULE_ZB_V;
    uint64_t key = key_of(plan, place, is_split);
    const int64_t *known = est_map_find(&e->layers, key);
    if (known != NULL) {
        *out = e->all_layers.items[*known];
        return FR_OK;
    }
    est_layers *layers = new_layers(e->n_layers);
    if (layers == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fill(e, plan, place, is_split, layers, err);
    if (status == FR_OK && fr_vec_push(&e->all_layers, layers) != FR_OK)
        status = fr_fail_no_memory(err);
    if (status != FR_OK) {
        est_layers_destroy(layers);
        return status;
    }
    *out = layers;
    return est_map_add(&e->layers, key, (int64_t)e->all_layers.n - 1, err);
}
