/* run_replicas.c: see run_replicas.h. */
#include "reliability/run_replicas.h"

#include "core/numbers/rng.h"
#include "core/numbers/stats.h"
#include "reliability/checkpoint_interval.h"

#include <math.h>
#include <stdlib.h>

/* A run that takes so many times its undisturbed time is given up, and one
 * that is interrupted so often, and so many times as often as undisturbed steps
 * would be. */
static const double most_times = 50;
static const double most_interruptions = 50000, most_as_often = 4;
static const double day_s = 86400;

/* The uses of random draws.  Each has a separate sequence, so that one more
 * draw of one use changes no other. */
typedef enum draw_use {
    DRAW_FAILURE,
    DRAW_HANG,
    DRAW_NODE,
    DRAW_PRESENCE,
    DRAW_RACK,
    DRAW_SLOW,
    DRAW_MAINTENANCE,
    DRAW_USES
} draw_use;

typedef struct replica {
    const fr_run_conditions *c;
    const fr_run_request *request;
    uint64_t index;
    uint64_t n_drawn[DRAW_USES];
    double now_s;
    double saved_s; /* of undisturbed steps: what is not lost any more */
    double finish_s, end_s;             /* it is given up at end_s ... */
    double most_interruptions;          /* ... or after so many */
    double parts_s[FR_RUN_PARTS];       /* up to the horizon */
    int64_t n_interruptions, n_counted; /* the second: before the horizon */
    double absent_s; /* when the nodes go next; HUGE_VAL: never */
    size_t i_span;   /* of presence: the next */
    double *back_s;  /* [ring_of()]: when nodes in repair are back, a ring */
    size_t n_away, first_away;
    double speed_frac;       /* of steps, with the nodes that are there */
    double slow_factor;      /* of steps, 1: none of the nodes is slow ... */
    double slow_until_s;     /* ... until that is noticed; else HUGE_VAL */
    double maintenance_at_s; /* HUGE_VAL: never */
    uint32_t n_looks;        /* of is_given_up() */
    fr_status status;        /* FR_INTERRUPTED: the caller gives it up */
    fr_err *err;
} replica;

/* Nodes that can be away at once, before the run waits for one. */
static size_t ring_of(const fr_run_conditions *c)
{
    return c->n_spares < 0
               ? 1
               : (size_t)c->n_spares + 1 + c->elastic.n + (size_t)c->rack_nodes;
}

/* Returns the seconds of the clock per second of undisturbed steps. */
static double stretch_of(const replica *r)
{
    return r->slow_factor / r->speed_frac;
}

/* ---- draws --------------------------------------------------------------- */

/* Uniform in (0, 1]. */
static double draw(replica *r, draw_use use)
{
    return 1 - fr_hash_uniform(r->request->seed, r->index, (uint64_t)use,
                               r->n_drawn[use]++);
}

static double draw_exponential(replica *r, draw_use use, double mean)
{
    return -log(draw(r, use)) * mean;
}

/* Returns the time until the next failure. */
static double next_failure_s(replica *r)
{
    const double per_s = r->c->failures_per_s + r->c->racks_per_s;
    return per_s > 0 ? draw_exponential(r, DRAW_FAILURE, 1 / per_s) : HUGE_VAL;
}

static double next_slowdown_s(replica *r)
{
    return r->c->slowdowns_per_s > 0
               ? draw_exponential(r, DRAW_SLOW, 1 / r->c->slowdowns_per_s)
               : HUGE_VAL;
}

/* The length of the next span, of those with nodes and those without. */
static double next_span_s(replica *r, bool is_there)
{
    const fr_run_presence *presence = &r->c->presence;
    if (presence->n > 0)
        return presence->spans_s[r->i_span++ % presence->n];
    if (!is_there)
        return draw_exponential(r, DRAW_PRESENCE, r->c->absence_s);
    return r->c->interruptions_per_s > 0
               ? draw_exponential(r, DRAW_PRESENCE,
                                  1 / r->c->interruptions_per_s)
               : HUGE_VAL;
}

/* Somewhere in the spans, so that no replica is like the other. */
static void begin_presence(replica *r)
{
    const fr_run_presence *presence = &r->c->presence;
    double all_s = 0, at_s = 0;
    for (size_t i = 0; i < presence->n; i++)
        all_s += presence->spans_s[i];
    if (presence->n > 0)
        at_s = draw(r, DRAW_PRESENCE) * all_s;
    while (presence->n > 0 && at_s > presence->spans_s[r->i_span] &&
           r->i_span + 1 < presence->n)
        at_s -= presence->spans_s[r->i_span++];
    /* Among nodes: they go when that span is over; else they went before. */
    r->absent_s = presence->n == 0     ? next_span_s(r, true)
                  : r->i_span % 2 == 0 ? next_span_s(r, true) - at_s
                                       : -at_s;
}

/* ---- time ---------------------------------------------------------------- */

static double horizon_of(const replica *r)
{
    return r->request->horizon_s > 0 ? r->request->horizon_s : HUGE_VAL;
}

static void book(replica *r, fr_run_part part, double seconds)
{
    const double left_s = horizon_of(r) - r->now_s;
    r->parts_s[part] += fmax(fmin(seconds, left_s), 0);
    r->now_s += seconds;
}

/* Steps with nodes missing take longer: that is time without these; so do
 * those with a slow one, which the others wait for. */
static void book_steps(replica *r, double steps_s)
{
    const double straggler = r->c->straggler_frac, input = r->c->input_frac,
                 evaluation = r->c->evaluation_frac;
    r->parts_s[FR_RUN_STRAGGLER] +=
        steps_s * (straggler + (r->slow_factor - 1) / r->speed_frac);
    r->parts_s[FR_RUN_INPUT] += steps_s * input;
    r->parts_s[FR_RUN_EVALUATION] += steps_s * evaluation;
    r->parts_s[FR_RUN_USEFUL] += steps_s * (1 - straggler - input - evaluation);
    r->parts_s[FR_RUN_IDLE] += steps_s * (1 / r->speed_frac - 1);
}

static void count_interruption(replica *r)
{
    r->n_interruptions++;
    r->n_counted += r->now_s < horizon_of(r);
}

/* Every 1024 questions the caller is asked, too. */
static bool is_given_up(replica *r)
{
    if (r->status == FR_OK && r->n_looks++ % 1024 == 0)
        r->status = fr_log_check(r->request->log, r->err);
    return r->status != FR_OK || r->now_s >= r->end_s ||
           (double)r->n_interruptions > r->most_interruptions;
}

/* ---- training ------------------------------------------------------------ */

/* The results of a stretch of training; steps are in seconds that they take
 * with all nodes. */
typedef struct stretch {
    double saved_s;   /* steps in checkpoints that can be loaded */
    double unsaved_s; /* steps since */
    double waited_s;  /* for checkpoints */
} stretch;

/* Steps, then a checkpoint, over and over; from the second on it waits until
 * the one before is away.  On the clock. */
typedef struct cycles {
    double steps_s, blocked_s, wait_s;
} cycles;

static cycles cycles_of(const replica *r)
{
    const fr_run_conditions *c = r->c;
    const double steps_s = (double)c->every_steps * c->step_s * stretch_of(r);
    return (cycles){steps_s, c->blocked_s, fmax(c->drain_s - steps_s, 0)};
}

/* Returns the number of checkpoints that are complete after so many seconds. */
static double count_saved(const cycles *of, double seconds)
{
    const double first_s = of->steps_s + of->blocked_s;
    return seconds < first_s
               ? 0
               : 1 + floor((seconds - first_s) / (first_s + of->wait_s));
}

/* The time that n checkpoints take. */
static double waits_of(const cycles *of, double n)
{
    return n * of->blocked_s + fmax(n - 1, 0) * of->wait_s;
}

static stretch train(const replica *r, double seconds)
{
    const fr_run_conditions *c = r->c;
    const cycles of = cycles_of(r);
    const double speed = 1 / stretch_of(r);
    if (c->every_steps == 0)
        return (stretch){.unsaved_s = seconds * speed};
    const double n = count_saved(&of, seconds);
    const double n_safe = count_saved(&of, seconds - c->drain_s);
    const double begun_s = n * of.steps_s + waits_of(&of, n);
    const double steps_s = fmin(seconds - begun_s, of.steps_s);
    return (stretch){.saved_s = n_safe * of.steps_s * speed,
                     .unsaved_s = ((n - n_safe) * of.steps_s + steps_s) * speed,
                     .waited_s = seconds - n * of.steps_s - steps_s};
}

/* Seconds until `left_s` of steps are done, if nothing comes between. */
static double time_of(const replica *r, double left_s)
{
    const cycles of = cycles_of(r);
    const double steps_s = left_s * stretch_of(r);
    if (r->c->every_steps == 0)
        return steps_s;
    return steps_s + waits_of(&of, fmax(ceil(steps_s / of.steps_s) - 1, 0));
}

/* Books training for so long; what of it is lost at its end is unless
 * `is_safe`. */
static void book_training(replica *r, double seconds, bool is_safe)
{
    const stretch all = train(r, seconds);
    const double kept_s = all.saved_s + (is_safe ? all.unsaved_s : 0);
    if (r->now_s + seconds <= horizon_of(r)) {
        book_steps(r, kept_s);
        r->parts_s[FR_RUN_CHECKPOINT] += all.waited_s;
        r->parts_s[FR_RUN_LOST] +=
            (all.saved_s + all.unsaved_s - kept_s) * stretch_of(r);
    } else if (r->now_s < horizon_of(r)) {
        /* At the horizon nothing is lost so far. */
        const stretch part = train(r, horizon_of(r) - r->now_s);
        book_steps(r, part.saved_s + part.unsaved_s);
        r->parts_s[FR_RUN_CHECKPOINT] += part.waited_s;
    }
    r->now_s += seconds;
    r->saved_s += kept_s;
}

/* ---- interruptions ------------------------------------------------------- */

static bool has_presence(const fr_run_conditions *c)
{
    return c->presence.n > 0 || c->interruptions_per_s > 0;
}

/* Waits until the nodes are there, if they have gone meanwhile. */
static void wait_for_nodes(replica *r)
{
    while (r->now_s >= r->absent_s) {
        const double back_s = r->absent_s + next_span_s(r, false);
        r->absent_s = back_s + next_span_s(r, true);
        if (back_s > r->now_s)
            book(r, FR_RUN_IDLE, back_s - r->now_s);
    }
}

/* Nodes in repair that are back by now are there again. */
static void take_back(replica *r)
{
    const size_t n_ring = ring_of(r->c);
    while (r->n_away > 0 && r->back_s[r->first_away] <= r->now_s) {
        r->first_away = (r->first_away + 1) % n_ring;
        r->n_away--;
    }
}

/* Returns the speed of steps with n_away nodes in repair; 0: the run cannot
 * continue. */
static double speed_of(const replica *r, size_t n_away)
{
    const fr_run_elastic *elastic = &r->c->elastic;
    if (r->c->n_spares < 0 || n_away <= (size_t)r->c->n_spares)
        return 1;
    const size_t n_missing = n_away - (size_t)r->c->n_spares;
    return n_missing <= elastic->n ? elastic->speed_frac[n_missing - 1] : 0;
}

/* Returns the time at which enough nodes are back to make the run faster;
 * HUGE_VAL: it has all nodes.  Nodes return in the order in which they left. */
static double next_return_s(const replica *r)
{
    const size_t n_ring = ring_of(r->c);
    for (size_t i = 1; r->speed_frac < 1 && i <= r->n_away; i++)
        if (speed_of(r, r->n_away - i) > r->speed_frac)
            return r->back_s[(r->first_away + i - 1) % n_ring];
    return HUGE_VAL;
}

/* Goes on with the nodes that are there, once there are enough. */
static void use_nodes(replica *r)
{
    take_back(r);
    while (!(speed_of(r, r->n_away) > 0)) {
        book(r, FR_RUN_IDLE, r->back_s[r->first_away] - r->now_s);
        take_back(r);
    }
    const double speed_frac = speed_of(r, r->n_away);
    if (speed_frac != r->speed_frac)
        book(r, FR_RUN_REPLAN, r->c->elastic.replan_s);
    r->speed_frac = speed_frac;
}

/* Nodes are away for repair: spares take their places, or the run goes on
 * without them, or waits for the first that come back. */
static void replace_nodes(replica *r, int64_t n)
{
    const size_t n_ring = ring_of(r->c);
    take_back(r);
    for (int64_t i = 0; i < n; i++)
        r->back_s[(r->first_away + r->n_away++) % n_ring] =
            r->now_s + r->c->repair_s;
    use_nodes(r);
}

/* Draws the number of nodes that the present failure takes away; 0: none. */
static int64_t draw_lost_nodes(replica *r)
{
    const fr_run_conditions *c = r->c;
    const double per_s = c->failures_per_s + c->racks_per_s;
    if (c->racks_per_s > 0 && draw(r, DRAW_RACK) * per_s <= c->racks_per_s)
        return c->rack_nodes;
    return draw(r, DRAW_NODE) <= c->node_frac;
}

/* From a failure until steps go on; others may come meanwhile. */
static void restart(replica *r, double start_s)
{
    while (!is_given_up(r)) {
        wait_for_nodes(r);
        const double failure_s = next_failure_s(r);
        const double until_s = fmin(failure_s, r->absent_s - r->now_s);
        if (start_s <= until_s) {
            book(r, FR_RUN_RESTART, start_s);
            return;
        }
        book(r, FR_RUN_RESTART, until_s);
        count_interruption(r);
        start_s = r->c->restart_s;
    }
}

static void fail(replica *r)
{
    const fr_run_conditions *c = r->c;
    count_interruption(r);
    if (c->hang_frac > 0 && draw(r, DRAW_HANG) <= c->hang_frac)
        book(r, FR_RUN_RESTART, c->hang_s);
    const int64_t n_lost = c->n_spares >= 0 ? draw_lost_nodes(r) : 0;
    if (n_lost > 0)
        replace_nodes(r, n_lost);
    restart(r, c->restart_s);
}

/* ---- one run ------------------------------------------------------------- */

/* The next event; of two events at the same time the first in this list. */
typedef enum event {
    EVENT_FINISH,
    EVENT_RETURN, /* of nodes that make it faster */
    EVENT_ABSENCE,
    EVENT_FAILURE,
    EVENT_SLOW,
    EVENT_SLOW_SEEN,
    EVENT_MAINTENANCE,
    EVENTS
} event;

static event next_event(replica *r, double *after_s)
{
    const double at_s[EVENTS] = {
        [EVENT_FINISH] = time_of(r, r->request->work_s - r->saved_s),
        [EVENT_RETURN] = next_return_s(r) - r->now_s,
        [EVENT_ABSENCE] = r->absent_s - r->now_s,
        [EVENT_FAILURE] = next_failure_s(r),
        [EVENT_SLOW] = next_slowdown_s(r),
        [EVENT_SLOW_SEEN] = r->slow_until_s - r->now_s,
        [EVENT_MAINTENANCE] = r->maintenance_at_s - r->now_s};
    event first = EVENT_FINISH;
    for (int i = 1; i < EVENTS; i++)
        if (fmax(at_s[i], 0) < fmax(at_s[first], 0))
            first = (event)i;
    *after_s = fmax(at_s[first], 0);
    return first;
}

/* All is saved, and then something changes. */
static void save_and_stop(replica *r, double after_s)
{
    book_training(r, after_s, true);
    book(r, FR_RUN_CHECKPOINT, r->c->blocked_s + r->c->drain_s);
}

/* The next cycle of steps begins there, as if what is done were saved. */
static void slow_down(replica *r, double after_s)
{
    book_training(r, after_s, true);
    r->slow_factor = r->c->slow_factor;
    r->slow_until_s = r->now_s + r->c->slow_s;
}

static void replace_slow(replica *r, double after_s)
{
    save_and_stop(r, after_s);
    r->slow_factor = 1;
    r->slow_until_s = HUGE_VAL;
    restart(r, r->c->restart_s);
}

static void maintain(replica *r, double after_s)
{
    save_and_stop(r, after_s);
    book(r, FR_RUN_MAINTENANCE, r->c->maintenance_s);
    const double every_s = r->c->maintenance_every_s;
    const double n_passed = floor((r->now_s - r->maintenance_at_s) / every_s);
    r->maintenance_at_s += (n_passed + 1) * every_s;
    restart(r, r->c->restart_s);
}

static void happen(replica *r, event what, double after_s)
{
    const fr_run_conditions *c = r->c;
    const double save_s = c->blocked_s + c->drain_s;
    switch (what) {
    case EVENT_FINISH:
        book_training(r, after_s, true);
        r->finish_s = r->now_s;
        return;
    case EVENT_RETURN:
        save_and_stop(r, after_s);
        use_nodes(r);
        restart(r, c->restart_s);
        return;
    case EVENT_ABSENCE:
        /* With notice the nodes stay until all is saved. */
        book_training(r, after_s, save_s <= c->notice_s);
        count_interruption(r);
        restart(r, c->restart_s);
        return;
    case EVENT_FAILURE:
        book_training(r, after_s, false);
        fail(r);
        return;
    case EVENT_SLOW:
        slow_down(r, after_s);
        return;
    case EVENT_SLOW_SEEN:
        replace_slow(r, after_s);
        return;
    case EVENT_MAINTENANCE:
        maintain(r, after_s);
        return;
    case EVENTS:
        return;
    }
}

static void run_replica(replica *r)
{
    const fr_run_conditions *c = r->c;
    const double work_s = r->request->work_s;
    r->end_s = fmax((work_s + c->start_s + c->restart_s) * most_times,
                    r->request->horizon_s);
    r->most_interruptions =
        most_interruptions +
        most_as_often * work_s *
            (c->failures_per_s + c->racks_per_s + c->interruptions_per_s);
    r->absent_s = r->slow_until_s = r->maintenance_at_s = HUGE_VAL;
    if (has_presence(c))
        begin_presence(r);
    if (c->maintenance_every_s > 0)
        r->maintenance_at_s =
            draw(r, DRAW_MAINTENANCE) * c->maintenance_every_s;
    r->finish_s = HUGE_VAL;
    restart(r, c->start_s);
    while (!is_given_up(r) && isinf(r->finish_s)) {
        double after_s;
        const event what = next_event(r, &after_s);
        happen(r, what, after_s);
    }
}

/* ---- all of them --------------------------------------------------------- */

static double goodput_of(const replica *r, double *total_s)
{
    *total_s = 0;
    for (int part = 0; part < FR_RUN_PARTS; part++)
        *total_s += r->parts_s[part];
    return *total_s > 0 ? r->parts_s[FR_RUN_USEFUL] / *total_s : 0;
}

typedef struct samples {
    double *goodput, *finish_days; /* [n_runs] */
    double *back_s;
} samples;

static void add_replica(const replica *r, int64_t i, samples *s,
                        fr_goodput *out)
{
    double total_s;
    const double n = (double)r->request->n_runs;
    s->goodput[i] = goodput_of(r, &total_s);
    s->finish_days[i] = r->finish_s / day_s;
    out->n_unfinished += isinf(r->finish_s);
    out->goodput += s->goodput[i] / n;
    out->finish_days_mean += s->finish_days[i] / n;
    out->interruptions += (double)r->n_counted / n;
    for (int part = 0; part < FR_RUN_PARTS; part++)
        out->waterfall[part] += r->parts_s[part] / total_s / n;
}

/* Runs that were given up come last: no interpolation with those. */
static double finish_at(const samples *s, int64_t n, double p)
{
    const size_t i = (size_t)ceil(p * (double)(n - 1));
    return isinf(s->finish_days[i])
               ? HUGE_VAL
               : fr_stats_quantile_sorted(s->finish_days, (size_t)n, p);
}

static void summarize(const samples *s, int64_t n, fr_goodput *out)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += pow(s->goodput[i] - out->goodput, 2);
    if (n > 1)
        out->goodput_standard_error =
            sqrt(squares / (double)(n - 1) / (double)n);
    fr_stats_sort(s->goodput, (size_t)n);
    fr_stats_sort(s->finish_days, (size_t)n);
    out->goodput_p5 = fr_stats_quantile_sorted(s->goodput, (size_t)n, 0.05);
    out->goodput_p95 = fr_stats_quantile_sorted(s->goodput, (size_t)n, 0.95);
    out->finish_days = (fr_spread){finish_at(s, n, 0.05), finish_at(s, n, 0.5),
                                   finish_at(s, n, 0.95)};
}

static fr_status run_all(const fr_run_conditions *c,
                         const fr_run_request *request, samples *s,
                         fr_goodput *out, fr_err *err)
{
    for (int64_t i = 0; i < request->n_runs; i++) {
        replica r = {.c = c,
                     .request = request,
                     .index = (uint64_t)i,
                     .back_s = s->back_s,
                     .speed_frac = 1,
                     .slow_factor = 1,
                     .err = err};
        run_replica(&r);
        FR_TRY(r.status);
        add_replica(&r, i, s, out);
    }
    summarize(s, request->n_runs, out);
    out->expected_goodput = fr_run_expected_goodput(c);
    return FR_OK;
}

fr_status fr_run_replicas(const fr_run_conditions *conditions,
                          const fr_run_request *request, fr_goodput *out,
                          fr_err *err)
{
    samples s = {0};
    fr_status status = FR_OK;
    FR_TRY(fr_run_conditions_check(conditions, err));
    if (!(request->work_s > 0) || !isfinite(request->work_s) ||
        request->n_runs < 1)
        return fr_fail(err, FR_INPUT, "a run without steps, or no run at all");
    const size_t n_ring = ring_of(conditions);
    s.goodput = calloc((size_t)request->n_runs, sizeof *s.goodput);
    s.finish_days = calloc((size_t)request->n_runs, sizeof *s.finish_days);
    s.back_s = calloc(n_ring, sizeof *s.back_s);
    *out = (fr_goodput){.n_runs = request->n_runs};
    if (s.goodput == NULL || s.finish_days == NULL || s.back_s == NULL)
        status = fr_fail_no_memory(err);
    else
        status = run_all(conditions, request, &s, out, err);
    free(s.goodput);
    free(s.finish_days);
    free(s.back_s);
    return status;
}
