/* predict_busy.c: see predict_busy.h. */
#include "sim/predict/predict_busy.h"

#include "sim/engine/virtual_time.h"

#include <math.h>
#include <stdlib.h>

/* Sets *out_ps to what a call of a segment computes on a rank of the colour. */
static fr_status sum_segment(fr_replay_context *context, int32_t color,
                             const fr_segment *segment, int64_t *out_ps,
                             fr_err *err)
{
    const fr_program *program = context->layout.program;
    *out_ps = 0;
    for (uint32_t k = 0; k < segment->n_instrs; k++) {
        const uint32_t i_instr = segment->first_instr + k;
        int64_t ps;
        if (fr_instr_communicates(&program->instrs[i_instr]))
            continue;
        FR_TRY(fr_replay_cost_solo(&context->costs, color, i_instr, &ps, err));
        *out_ps = fr_ps_add(*out_ps, ps);
    }
    return FR_OK;
}

/* The same of all calls of a step; segment_ps[n_segments] is scratch. */
static fr_status sum_calls(fr_replay_context *context, int32_t color,
                           int64_t *segment_ps, int64_t *out_ps, fr_err *err)
{
    const fr_program *program = context->layout.program;
    const int32_t rank = context->fold.rank_of_color[color];
    const fr_rank_program *own =
        &program->rank_programs[context->layout.program_of_rank[rank]];
    const fr_repeat *repeat = &own->repeat;
    for (uint32_t i = 0; i < program->n_segments; i++)
        segment_ps[i] = -1;
    *out_ps = 0;
    for (uint32_t i = 0; i < own->n_calls; i++) {
        const uint32_t s = own->calls[i].i_segment;
        const bool is_repeated =
            i >= repeat->first_call && i - repeat->first_call < repeat->period;
        if (program->segments[s].lane != FR_LANE_COMPUTE)
            continue;
        if (segment_ps[s] < 0)
            FR_TRY(sum_segment(context, color, &program->segments[s],
                               &segment_ps[s], err));
        fr_ps_add_times(out_ps, 1 + (is_repeated ? program->n_repeats : 0),
                        segment_ps[s]);
    }
    return FR_OK;
}

fr_status fr_predict_busy(fr_replay_context *context, fr_prediction *out,
                          fr_err *err)
{
    const fr_rank_layout *layout = &context->layout;
    const int32_t node = fr_rank_layout_node(layout, 0);
    double busy_s = 0, n_ranks = 0;
    int64_t *segment_ps;
    out->busy_frac = 1;
    if (fr_cluster_device(layout->cluster, node)->kind != FR_DEVICE_GPU ||
        !(out->step_s > 0))
        return FR_OK;
    FR_TRY_CALLOC(segment_ps, layout->program->n_segments + 1, err);
    fr_status status = FR_OK;
    for (int32_t c = 0; status == FR_OK && c < context->fold.n_colors; c++) {
        const double n = context->fold.n_alike[c];
        int64_t ps = 0;
        status = sum_calls(context, c, segment_ps, &ps, err);
        busy_s += n * 1e-12 * (double)ps;
        n_ranks += n;
    }
    free(segment_ps);
    if (n_ranks > 0)
        out->busy_frac = fmin(1, busy_s / n_ranks / out->step_s);
    return status;
}
