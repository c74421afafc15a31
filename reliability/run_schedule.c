/* run_schedule.c: see run_schedule.h. */
#include "reliability/run_schedule.h"

#include <math.h>

/* Steps that are not safe yet. */
typedef struct pending {
    double parts_s[FR_RUN_PARTS];
    int64_t n;
} pending;

typedef struct walk {
    const fr_fault_schedule *s;
    fr_schedule_result *out;
    double now_s;
    int64_t step, saved, reached; /* reached: begun at least once */
    int64_t n_places;
    pending since, writing; /* the last save, that is on its way ... */
    double written_at_s;    /* ... until then */
    int64_t writing_step;
} walk;

static void book(walk *w, fr_run_part part, double seconds)
{
    w->out->parts_s[part] += seconds;
    w->now_s += seconds;
}

static void keep(walk *w, pending *steps)
{
    for (int part = 0; part < FR_RUN_PARTS; part++)
        w->out->parts_s[part] += steps->parts_s[part];
    *steps = (pending){0};
}

static void lose(walk *w, pending *steps)
{
    for (int part = 0; part < FR_RUN_PARTS; part++)
        w->out->parts_s[FR_RUN_LOST] += steps->parts_s[part];
    w->out->n_lost_steps += steps->n;
    *steps = (pending){0};
}

/* Completes the write that is under way if its time has come, or waits for it
 * if `is_waited`. */
static void arrive(walk *w, bool is_waited)
{
    if (w->writing.n == 0)
        return;
    if (is_waited && w->written_at_s > w->now_s)
        book(w, FR_RUN_CHECKPOINT, w->written_at_s - w->now_s);
    if (w->written_at_s > w->now_s)
        return;
    keep(w, &w->writing);
    w->saved = w->writing_step;
}

static void save(walk *w)
{
    arrive(w, true);
    book(w, FR_RUN_CHECKPOINT, w->s->blocked_s);
    w->writing = w->since;
    w->since = (pending){0};
    w->writing_step = w->step;
    w->written_at_s = w->now_s + w->s->drain_s;
    arrive(w, false);
}

static void start_again(walk *w)
{
    w->out->n_restarts++;
    w->step = w->saved;
    book(w, FR_RUN_RESTART, w->s->restart_s);
}

static fr_status change_places(walk *w, int64_t by, fr_err *err)
{
    w->n_places += by;
    book(w, FR_RUN_REPLAN, w->s->replan_s);
    return w->n_places > 0
               ? FR_OK
               : fr_fail(err, FR_FAILURE, "no place is left after step %lld",
                         (long long)w->step);
}

static int64_t count(const walk *w, fr_fault_kind kind)
{
    return fr_faults_count(w->s->faults, kind, w->step) -
           fr_faults_count(w->s->faults, kind, w->step - 1);
}

/* Applies the faults at the first begin of this step.  *is_begun: the step
 * runs. */
static fr_status meet(walk *w, bool *is_begun, fr_err *err)
{
    const int64_t n_lost = count(w, FR_FAULT_LOSE);
    const int64_t n_back = count(w, FR_FAULT_JOIN);
    const bool is_hung = count(w, FR_FAULT_HANG) > 0;
    const bool fails = is_hung || n_lost > 0 || count(w, FR_FAULT_KILL) > 0;

    *is_begun = !fails && n_back == 0;
    w->reached = w->step;
    if (*is_begun)
        return FR_OK;
    if (fails) {
        arrive(w, false);
        lose(w, &w->writing);
        lose(w, &w->since);
        if (is_hung)
            book(w, FR_RUN_RESTART, w->s->hang_s);
    } else {
        save(w);
        arrive(w, true);
    }
    if (n_back != n_lost)
        FR_TRY(change_places(w, n_back - n_lost, err));
    start_again(w);
    return FR_OK;
}

static fr_status take_step(walk *w, fr_err *err)
{
    fr_schedule_step cost = {0};

    FR_TRY(w->s->price(w->s->context, w->n_places, w->step, &cost, err));
    const double useful_s =
        cost.step_s - cost.straggler_s - cost.input_s - cost.idle_s;
    w->since.parts_s[FR_RUN_USEFUL] += useful_s;
    w->since.parts_s[FR_RUN_STRAGGLER] += cost.straggler_s;
    w->since.parts_s[FR_RUN_INPUT] += cost.input_s;
    w->since.parts_s[FR_RUN_IDLE] += cost.idle_s;
    w->since.n++;
    w->now_s += cost.step_s;
    w->step++;
    arrive(w, false);
    return FR_OK;
}

/* The last step is saved in any case. */
static bool is_due(const fr_fault_schedule *s, int64_t n_done)
{
    return s->every_steps > 0 &&
           (n_done % s->every_steps == 0 || n_done == s->n_steps);
}

fr_status fr_schedule_walk(const fr_fault_schedule *s, fr_schedule_result *out,
                           fr_err *err)
{
    fr_schedule_result result = {0};
    walk w = {.s = s, .out = &result, .reached = -1, .n_places = s->n_places};

    book(&w, FR_RUN_RESTART, s->start_s);
    while (w.step < s->n_steps) {
        bool is_begun = true;
        if (w.step > w.reached)
            FR_TRY(meet(&w, &is_begun, err));
        if (!is_begun)
            continue;
        FR_TRY(take_step(&w, err));
        if (is_due(s, w.step))
            save(&w);
    }
    arrive(&w, true);
    keep(&w, &w.since);
    book(&w, FR_RUN_RESTART, s->end_s);
    result.wall_s = w.now_s;
    *out = result;
    return FR_OK;
}
