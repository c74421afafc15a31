/*
 * Every pipeline schedule: complete, runnable, with the bubble and the peak
 * that the literature gives; orders of small cases written out by hand.
 */
#include "plan/schedule/schedule.h"
#include "tests/check.h"

#include <stdlib.h>

enum { MAX_TASKS = 2048, MAX_STAGES = 64, MAX_MICRO = 64 };

typedef struct replay {
    const fr_schedule *schedule;
    int64_t p, m, v;
    fr_pass_times times;
    fr_task tasks[16][MAX_TASKS];
    double end[3][MAX_STAGES][MAX_MICRO];
} replay;

/* The stage that a chunk is, written down independently: down the ranks, and
 * in V shape up again. */
static int64_t stage_of(const replay *r, int64_t rank, int64_t chunk)
{
    if (r->schedule->is_v && chunk == 1)
        return 2 * r->p - 1 - rank;
    return chunk * r->p + rank;
}

/* When what a task needs is there, -1: not yet. */
static double ready_at(const replay *r, const fr_task *t, int64_t stage)
{
    int64_t top = r->p * r->v - 1;
    switch (t->kind) {
    case FR_TASK_FORWARD:
        return stage == 0 ? 0 : r->end[0][stage - 1][t->micro_batch];
    case FR_TASK_BACKWARD:
        return stage == top ? r->end[0][stage][t->micro_batch]
                            : r->end[1][stage + 1][t->micro_batch];
    case FR_TASK_WEIGHTS:
        break;
    }
    return r->end[1][stage][t->micro_batch];
}

static double duration(const replay *r, const fr_task *t)
{
    double s = t->kind == FR_TASK_FORWARD   ? r->times.forward_s
               : t->kind == FR_TASK_WEIGHTS ? r->times.weights_s
                                            : r->times.input_s;
    if (t->kind == FR_TASK_BACKWARD && !r->schedule->is_split)
        s += r->times.weights_s;
    return s / (double)r->v;
}

/* Makespan; -1: deadlock. */
static double makespan(replay *r)
{
    int64_t next[16] = {0}, n_done = 0;
    int64_t n = (r->schedule->is_split ? 3 : 2) * r->m * r->v;
    double clock[16] = {0}, last = 0;
    for (int k = 0; k < 3 * MAX_STAGES * MAX_MICRO; k++)
        (&r->end[0][0][0])[k] = -1;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int64_t s = 0; s < r->p; s++) {
            if (next[s] == n)
                continue;
            const fr_task *t = &r->tasks[s][next[s]];
            int64_t stage = stage_of(r, s, t->chunk);
            double ready = ready_at(r, t, stage);
            if (ready < 0)
                continue;
            clock[s] = fmax(clock[s], ready) + duration(r, t);
            r->end[t->kind][stage][t->micro_batch] = clock[s];
            last = fmax(last, clock[s]);
            next[s]++;
            n_done++;
            has_moved = true;
        }
    }
    return n_done == n * r->p ? last : -1;
}

/* Each pass once, micro-batches in order; returns the most live ones. */
static int64_t check_rank(const replay *r, const fr_task *tasks)
{
    int64_t next[3][16] = {{0}}, live = 0, peak = 0;
    int64_t n = fr_schedule_n_tasks(r->schedule, r->m, r->v);
    fr_task_kind last =
        r->schedule->is_split ? FR_TASK_WEIGHTS : FR_TASK_BACKWARD;
    for (int64_t i = 0; i < n; i++) {
        const fr_task *t = &tasks[i];
        if (!CHECK(t->chunk >= 0 && t->chunk < r->v))
            return -1;
        CHECK_INT(t->micro_batch, next[t->kind][t->chunk]++);
        live += t->kind == FR_TASK_FORWARD ? 1 : t->kind == last ? -1 : 0;
        peak = live > peak ? live : peak;
        CHECK(live >= 0);
    }
    CHECK_INT(live, 0);
    return peak;
}

static void test_every_entry(void)
{
    /* Equal passes; then what transformers have nearly; then high-entropy. */
    static const fr_pass_times times[] = {
        {1, 1, 1}, {1, 1.25, 0.8}, {2.385, 2.71, 1.618}, {3.1, 2.2, 1.9}};
    replay *r = malloc(sizeof *r);
    int n_cases = 0;
    for (int kind = 0; kind < fr_n_schedules; kind++) {
        const fr_schedule *s = fr_schedules[kind];
        CHECK_STR(s->name,
                  fr_name_of(&fr_schedule_names, (fr_schedule_kind)kind));
        CHECK_INT(fr_name_find(&fr_schedule_names, s->name), kind);
        for (int64_t i = 0; i < 8 * 24 * 4; i++) {
            int64_t p = 1 + i % 8, m = 1 + i / 8 % 24, v = 1 + i / 192;
            if (!fr_schedule_fits(s, p, m, v))
                continue;
            *r = (replay){.schedule = s, .p = p, .m = m, .v = v};
            for (int64_t stage = 0; stage < p; stage++) {
                s->emit(stage, p, m, v, r->tasks[stage]);
                CHECK_INT(check_rank(r, r->tasks[stage]),
                          s->peak_live_micro(stage, p, m, v));
            }
            for (size_t k = 0; k < sizeof times / sizeof times[0]; k++) {
                r->times = times[k];
                double busy =
                    (double)m * (times[k].forward_s + times[k].input_s +
                                 times[k].weights_s);
                CHECK_NEAR(makespan(r), busy + s->bubble_s(p, m, v, &times[k]),
                           1e-12);
            }
            n_cases++;
        }
    }
    CHECK(n_cases > 400);
    free(r);
}

/* Stage and rank are each other's inverse, and a V turns at the last rank. */
static void test_stages(void)
{
    for (int kind = 0; kind < fr_n_schedules; kind++)
        for (int32_t p = 1; p <= 6; p++)
            for (int32_t rank = 0; rank < p; rank++)
                for (int32_t chunk = 0; chunk < 2; chunk++) {
                    const fr_schedule *s = fr_schedules[kind];
                    int32_t stage = fr_schedule_stage(s, rank, chunk, p);
                    CHECK_INT(fr_schedule_rank(s, stage, p), rank);
                    CHECK_INT(stage / p, chunk);
                }
    CHECK_INT(fr_schedule_stage(fr_schedules[FR_SCHEDULE_ZB_V], 3, 1, 4), 4);
    CHECK_INT(fr_schedule_stage(fr_schedules[FR_SCHEDULE_ZB_V], 0, 1, 4), 7);
}

/* "F0.3": forward of micro-batch 3 in chunk 0. */
static void check_order(const fr_schedule *s, int64_t stage, int64_t p,
                        int64_t m, int64_t v, const char *wanted)
{
    fr_task tasks[256];
    char text[2048] = "";
    s->emit(stage, p, m, v, tasks);
    for (int64_t i = 0; i < fr_schedule_n_tasks(s, m, v); i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c%d.%d", i ? " " : "",
                 "FBW"[tasks[i].kind], (int)tasks[i].chunk,
                 (int)tasks[i].micro_batch);
    }
    CHECK_STR(text, wanted);
}

static void test_by_hand(void)
{
    const fr_schedule *gpipe = fr_schedules[FR_SCHEDULE_GPIPE];
    const fr_schedule *one = fr_schedules[FR_SCHEDULE_1F1B];
    const fr_schedule *inter = fr_schedules[FR_SCHEDULE_INTERLEAVED];
    check_order(gpipe, 1, 2, 3, 1, "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
    /* Narayanan et al. 2021, figure 4 (top): device 1 and device 4. */
    check_order(one, 0, 4, 5, 1,
                "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 B0.2 B0.3 B0.4");
    check_order(one, 3, 4, 3, 1, "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2");
    check_order(one, 0, 4, 2, 1, "F0.0 F0.1 B0.0 B0.1");
    /* The same, figure 4 (bottom), two chunks, here with two devices. */
    check_order(inter, 1, 2, 2, 2, "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1");
    /* Qi et al. 2024, figure 3 (ZB-H1): devices 1 and 4 of four. */
    check_order(fr_schedules[FR_SCHEDULE_ZB_H1], 0, 4, 5, 1,
                "F0.0 F0.1 F0.2 F0.3 B0.0 W0.0 F0.4 B0.1 W0.1 B0.2 W0.2 B0.3 "
                "W0.3 B0.4 W0.4");
    check_order(fr_schedules[FR_SCHEDULE_ZB_H1], 3, 4, 4, 1,
                "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3 W0.0 W0.1 W0.2 W0.3");
    check_order(fr_schedules[FR_SCHEDULE_ZB_V], 1, 2, 3, 2,
                "F0.0 F1.0 F0.1 F1.1 B1.0 W1.0 F0.2 B0.0 W0.0 F1.2 B1.1 W1.1 "
                "B0.1 B1.2 B0.2 W0.1 W1.2 W0.2");
    check_order(inter, 0, 2, 4, 2,
                "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 "
                "B1.2 B1.3 B0.2 B0.3");
}

static void test_values(void)
{
    /* p 4, m 8: bubble / busy = 3/8, halved by two chunks. */
    CHECK_NEAR(
        fr_schedule_bubble_frac(fr_schedules[FR_SCHEDULE_GPIPE], 4, 8, 1),
        3.0 / 11.0, 1e-12);
    CHECK_NEAR(fr_schedule_bubble_frac(fr_schedules[FR_SCHEDULE_1F1B], 4, 8, 1),
               3.0 / 11.0, 1e-12);
    CHECK_NEAR(
        fr_schedule_bubble_frac(fr_schedules[FR_SCHEDULE_INTERLEAVED], 4, 8, 2),
        3.0 / 19.0, 1e-12);
    CHECK_INT(fr_schedules[FR_SCHEDULE_1F1B]->peak_live_micro(1, 4, 8, 1), 3);
    CHECK_INT(fr_schedules[FR_SCHEDULE_GPIPE]->peak_live_micro(1, 4, 8, 1), 8);
    CHECK(!fr_schedule_fits(fr_schedules[FR_SCHEDULE_INTERLEAVED], 4, 6, 2));
    CHECK(!fr_schedule_fits(fr_schedules[FR_SCHEDULE_1F1B], 4, 6, 2));
}

CHECK_MAIN({"every_entry", test_every_entry}, {"by_hand", test_by_hand},
           {"values", test_values}, {"stages", test_stages})
