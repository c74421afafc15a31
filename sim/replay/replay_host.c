/* replay_host.c: chains of host and device, when steps are issued. */
#include "sim/replay/replay_host.h"

#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_cost.h"
#include "sim/replay/replay_order.h"

#include <stdlib.h>

/* Stands for a path that does not exist: below every sum a step can have. */
static const int64_t never_ps = INT64_MIN / 4;

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

fr_host_chain fr_host_chain_empty(void)
{
    return (fr_host_chain){.sh_ps = never_ps, .hs_ps = never_ps};
}

void fr_host_chain_add(fr_host_chain *c, int64_t host_ps, int64_t ps,
                       bool is_held)
{
    c->hs_ps = latest(never_ps, fr_ps_add(c->hs_ps, host_ps));
    c->hh_ps = fr_ps_add(c->hh_ps, host_ps);
    c->ss_ps = fr_ps_add(latest(c->ss_ps, c->hs_ps), ps);
    c->sh_ps = fr_ps_add(latest(c->sh_ps, c->hh_ps), ps);
    if (!is_held)
        return;
    c->hs_ps = latest(c->hs_ps, c->ss_ps);
    c->hh_ps = latest(c->hh_ps, c->sh_ps);
    c->is_held = true;
}

void fr_host_chain_append(fr_host_chain *c, const fr_host_chain *next)
{
    const fr_host_chain a = *c, *b = next;
    c->ss_ps =
        latest(fr_ps_add(a.ss_ps, b->ss_ps), fr_ps_add(a.hs_ps, b->sh_ps));
    c->sh_ps =
        latest(fr_ps_add(a.sh_ps, b->ss_ps), fr_ps_add(a.hh_ps, b->sh_ps));
    c->hs_ps =
        latest(fr_ps_add(a.ss_ps, b->hs_ps), fr_ps_add(a.hs_ps, b->hh_ps));
    c->hh_ps =
        latest(fr_ps_add(a.sh_ps, b->hs_ps), fr_ps_add(a.hh_ps, b->hh_ps));
    c->sh_ps = latest(never_ps, c->sh_ps);
    c->hs_ps = latest(never_ps, c->hs_ps);
    c->is_held = a.is_held || b->is_held;
}

int64_t fr_host_chain_device(const fr_host_chain *c, int64_t device_ps,
                             int64_t host_ps)
{
    return latest(fr_ps_add(device_ps, c->ss_ps), fr_ps_add(host_ps, c->sh_ps));
}

int64_t fr_host_chain_host(const fr_host_chain *c, int64_t device_ps,
                           int64_t host_ps)
{
    return latest(fr_ps_add(device_ps, c->hs_ps), fr_ps_add(host_ps, c->hh_ps));
}

/* ---- when steps are issued ----------------------------------------------- */

static uint32_t *steps_of_calls(const fr_rank_program *rank_program,
                                const fr_replay_order *order)
{
    uint32_t *step_of =
        malloc(((size_t)rank_program->n_calls + 1) * sizeof *step_of);
    for (uint32_t s = 0; step_of != NULL && s < order->first[FR_LANE_N]; s++)
        step_of[order->steps[s].first_call] = s;
    return step_of;
}

/* The chain of a call that is replayed instruction by instruction. */
static fr_status add_call(fr_replay_costs *c, int32_t color,
                          const fr_segment *segment, int64_t *host_ps,
                          bool *is_held, fr_err *err)
{
    for (uint32_t k = 0; k < segment->n_instrs; k++) {
        int64_t ps;
        bool is_one_held;
        FR_TRY(fr_replay_cost_host(c, color, segment->first_instr + k,
                                   segment->lane, &ps, &is_one_held, err));
        *host_ps = fr_ps_add(*host_ps, ps);
        *is_held = *is_held || is_one_held;
    }
    return FR_OK;
}

static fr_status fill(fr_replay_costs *c, int32_t color,
                      const fr_rank_program *rank_program,
                      const fr_replay_order *order, const uint32_t *step_of,
                      fr_host_steps *out, fr_err *err)
{
    const fr_replay_loop *loop = &order->loop;
    int64_t since_ps = 0;
    for (uint32_t i = 0; i < rank_program->n_calls;) {
        uint32_t s = step_of[i];
        if (loop->n_calls > 0 && i == loop->first_call) {
            out->n_held_before = out->n_held;
            out->round_ps = -since_ps;
        } else if (loop->n_calls > 0 && i == loop->first_call + loop->n_calls) {
            out->n_held_round = out->n_held - out->n_held_before;
            out->round_ps += since_ps;
        }
        const fr_replay_step *step = &order->steps[s];
        fr_host_step *at = &out->steps[s];
        int64_t host_ps = 0;
        *at = (fr_host_step){.since_ps = since_ps, .n_held = out->n_held};
        if (step->n_calls > 0) {
            const fr_run_cost *run;
            FR_TRY(fr_replay_cost_run(c, color, step, &run, err));
            host_ps = run->chain.hh_ps;
            at->is_held = run->chain.is_held;
        } else {
            const fr_segment *segment =
                &c->program->segments[rank_program->calls[i].i_segment];
            FR_TRY(add_call(c, color, segment, &host_ps, &at->is_held, err));
        }
        since_ps = at->is_held ? 0 : fr_ps_add(since_ps, host_ps);
        out->n_held += at->is_held;
        i += step->n_calls > 0 ? step->n_calls : 1;
    }
    return FR_OK;
}

fr_status fr_host_steps_find(fr_replay_costs *c, int32_t color,
                             const fr_host_steps **out, fr_err *err)
{
    int32_t i_stage = c->layout->program_of_rank[c->fold->rank_of_color[color]];
    const fr_rank_program *rank_program = &c->program->rank_programs[i_stage];
    const fr_replay_order *order = &c->orders[i_stage];
    fr_host_steps *steps = &c->hosts[color];
    *out = steps;
    if (steps->steps != NULL)
        return FR_OK;
    uint32_t *step_of = steps_of_calls(rank_program, order);
    steps->steps =
        calloc((size_t)order->first[FR_LANE_N] + 1, sizeof *steps->steps);
    fr_status status =
        step_of != NULL && steps->steps != NULL
            ? fill(c, color, rank_program, order, step_of, steps, err)
            : fr_fail_no_memory(err);
    free(step_of);
    return status;
}
