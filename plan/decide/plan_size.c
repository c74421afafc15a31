/* plan_size.c: whether the bytes of a step can be counted in 64 bits, and its
 * program written at all. */
#include "plan/codec/compressor.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_fields.h"
#include "plan/schedule/schedule.h"

#include <math.h>

/*
 * At most what one sequence keeps of one layer, and what its ends keep: every
 * activation in four bytes and twice, as gradients have them, too.  The parts
 * are those of Korthikanti et al., arXiv 2205.05198, section 4.1.
 */
static double sequence_bytes(const fr_plan *plan, const fr_model *model,
                             const fr_job *job)
{
    double most = 0, seq = (double)job->seq;
    if (model->kind == FR_MODEL_LAYERS) {
        for (size_t i = 0; i < model->n_layer_entries; i++)
            most += ((double)model->layers[i].activation_bytes +
                     (double)model->layers[i].output_bytes) *
                    (double)model->layers[i].repeat;
        return 2.0 * most;
    }
    double heads = (double)model->n_heads * (double)model->head_dim;
    double experts =
        (double)model->n_experts_per_token * (double)model->expert_ffn_hidden;
    double width = 8.0 * (double)model->hidden + 4.0 * heads +
                   4.0 * (double)model->ffn_hidden +
                   4.0 * (double)model->shared_expert_ffn_hidden +
                   4.0 * experts + (double)model->n_experts;
    double scores = plan->is_flash ? 0.0 : 3.0 * (double)model->n_heads * seq;
    double ends = (double)model->hidden + 3.0 * (double)model->vocab;
    double layers = (double)model->n_layers + (double)model->n_mtp_layers;
    return 8.0 * seq * (layers * (width + scores) + ends);
}

/*
 * Calls of a step's program, which has one for each pass of a micro-batch over
 * a layer: a kilobyte and more each, with what a replay keeps of it.
 */
fr_status fr_plan_check_calls(const fr_plan *plan, const fr_model *model,
                              int64_t n_micro, double most, fr_err *err)
{
    double n_calls = 2.0 * (double)n_micro *
                     ((double)model->n_layers + (double)model->n_mtp_layers +
                      2.0 * plan->pp * plan->vpp);
    if (n_calls <= most)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "%lld micro-batches are about %.3g passes over layers in a "
                   "step that does not come to repeat itself, more than %.0f; "
                   "choose a larger micro_batch, more dp or a smaller "
                   "global_batch",
                   (long long)n_micro, n_calls, most);
}

fr_status fr_plan_check_size(const fr_plan *plan, const fr_model *model,
                             const fr_job *job, fr_err *err)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const int64_t n_micro = fr_plan_micro_batches(plan, job);
    const int64_t n_live =
        schedule->peak_live_micro(0, plan->pp, n_micro, plan->vpp);
    double bytes = sequence_bytes(plan, model, job) *
                   (double)plan->micro_batch * fmax(1.0, (double)n_live) /
                   plan->tp;
    if (bytes < 0x1p62)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "about %.2g bytes of activations (micro_batch %lld x seq "
                   "%lld, %lld micro-batches at once) are more than 2^62; "
                   "choose a smaller micro_batch or seq",
                   bytes, (long long)plan->micro_batch, (long long)job->seq,
                   (long long)n_live);
}
