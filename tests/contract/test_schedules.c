/*
 * Every pipeline schedule: complete, runnable, with the bubble and the peak
 * that the literature gives; orders of small cases written out by hand.
 */
#include "plan/schedule.h"
#include "tests/check.h"

#include <stdlib.h>

enum { MAX_TASKS = 2048, MAX_STAGES = 64, MAX_MICRO = 64 };

typedef struct replay {
    int64_t p, m, v;
    fr_task tasks[16][MAX_TASKS];
    double end[2][MAX_STAGES][MAX_MICRO];
} replay;

/* Makespan with forward 1/v and backward 2/v per chunk; -1: deadlock. */
static double makespan(replay *r)
{
    int64_t next[16] = {0}, n = 2 * r->m * r->v, n_done = 0;
    double clock[16] = {0}, last = 0;
    for (int k = 0; k < 2 * MAX_STAGES * MAX_MICRO; k++)
        (&r->end[0][0][0])[k] = -1;
    for (bool has_moved = true; has_moved;) {
        has_moved = false;
        for (int64_t s = 0; s < r->p; s++) {
            if (next[s] == n)
                continue;
            const fr_task *t = &r->tasks[s][next[s]];
            int64_t stage = t->chunk * r->p + s, top = r->p * r->v - 1;
            double ready =
                !t->is_backward
                    ? stage == 0 ? 0 : r->end[0][stage - 1][t->micro_batch]
                : stage == top ? r->end[0][stage][t->micro_batch]
                               : r->end[1][stage + 1][t->micro_batch];
            if (ready < 0)
                continue;
            clock[s] = fmax(clock[s], ready) +
                       (t->is_backward ? 2.0 : 1.0) / (double)r->v;
            r->end[t->is_backward][stage][t->micro_batch] = clock[s];
            last = fmax(last, clock[s]);
            next[s]++;
            n_done++;
            has_moved = true;
        }
    }
    return n_done == n * r->p ? last : -1;
}

/* Each pass once, micro-batches in order; returns the most live ones. */
static int64_t check_rank(const fr_task *tasks, int64_t m, int64_t v)
{
    int64_t next[2][16] = {{0}}, live = 0, peak = 0;
    for (int64_t i = 0; i < 2 * m * v; i++) {
        const fr_task *t = &tasks[i];
        if (!CHECK(t->chunk >= 0 && t->chunk < v))
            return -1;
        CHECK_INT(t->micro_batch, next[t->is_backward][t->chunk]++);
        live += t->is_backward ? -1 : 1;
        peak = live > peak ? live : peak;
        CHECK(live >= 0);
    }
    CHECK_INT(live, 0);
    return peak;
}

static void test_every_entry(void)
{
    replay *r = malloc(sizeof *r);
    int n_cases = 0;
    for (int kind = 0; kind < FR_SCHEDULE_N; kind++) {
        const fr_schedule *s = fr_schedules[kind];
        CHECK_INT(s->kind, kind);
        for (int64_t p = 1; p <= 8; p++)
            for (int64_t m = 1; m <= 24; m++)
                for (int64_t v = 1; v <= 4; v++) {
                    if (!s->fits(p, m, v))
                        continue;
                    *r = (replay){.p = p, .m = m, .v = v};
                    for (int64_t stage = 0; stage < p; stage++) {
                        s->emit(stage, p, m, v, r->tasks[stage]);
                        CHECK_INT(check_rank(r->tasks[stage], m, v),
                                  s->peak_live_micro(stage, p, m, v));
                    }
                    double busy = 3 * (double)m;
                    CHECK_NEAR(1 - busy / makespan(r), s->bubble_frac(p, m, v),
                               1e-9);
                    n_cases++;
                }
    }
    CHECK(n_cases > 400);
    free(r);
}

/* "F0.3": forward of micro-batch 3 in chunk 0. */
static void check_order(const fr_schedule *s, int64_t stage, int64_t p,
                        int64_t m, int64_t v, const char *wanted)
{
    fr_task tasks[256];
    char text[2048] = "";
    s->emit(stage, p, m, v, tasks);
    for (int64_t i = 0; i < 2 * m * v; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c%d.%d", i ? " " : "",
                 tasks[i].is_backward ? 'B' : 'F', (int)tasks[i].chunk,
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
    check_order(inter, 0, 2, 4, 2,
                "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 "
                "B1.2 B1.3 B0.2 B0.3");
}

static void test_values(void)
{
    /* p 4, m 8: bubble / busy = 3/8, halved by two chunks. */
    CHECK_NEAR(fr_schedules[FR_SCHEDULE_GPIPE]->bubble_frac(4, 8, 1),
               3.0 / 11.0, 1e-12);
    CHECK_NEAR(fr_schedules[FR_SCHEDULE_1F1B]->bubble_frac(4, 8, 1), 3.0 / 11.0,
               1e-12);
    CHECK_NEAR(fr_schedules[FR_SCHEDULE_INTERLEAVED]->bubble_frac(4, 8, 2),
               3.0 / 19.0, 1e-12);
    CHECK_INT(fr_schedules[FR_SCHEDULE_1F1B]->peak_live_micro(1, 4, 8, 1), 3);
    CHECK_INT(fr_schedules[FR_SCHEDULE_GPIPE]->peak_live_micro(1, 4, 8, 1), 8);
    CHECK(!fr_schedules[FR_SCHEDULE_INTERLEAVED]->fits(4, 6, 2));
    CHECK(!fr_schedules[FR_SCHEDULE_1F1B]->fits(4, 6, 2));
}

CHECK_MAIN({"every_entry", test_every_entry}, {"by_hand", test_by_hand},
           {"values", test_values})
