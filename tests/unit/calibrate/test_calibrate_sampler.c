/*
 * test_calibrate_sampler.c: a fake machine whose clock obeys a known law, with
 * noise, outliers, slow phases and preemptions: the law must come out; a
 * failure at any call ends in a clean error.
 */
#include "calibrate/sampler.h"
#include "core/numbers/fit.h"
#include "core/numbers/rng.h"
#include "tests/check.h"

#include <math.h>

enum { N_POINTS = 9 };

typedef struct fake_machine {
    double clock_s;
    uint64_t n_calls, fail_at; /* UINT64_MAX: never */
    double alpha_s, beta_s_per_byte;
    double noise; /* relative, half-normal */
    double outlier_frac;
    double preempt_frac;
    double slow_from_s, slow_until_s; /* twice as slow meanwhile */
    double busy_from_s, busy_until_s; /* others have a core meanwhile */
    double chunk_from_s;
} fake_machine;

static double bytes_of(size_t i_point)
{
    return 100.0 * pow(4.0, (double)i_point);
}

static double speed(const fake_machine *machine)
{
    return machine->clock_s >= machine->slow_from_s &&
                   machine->clock_s < machine->slow_until_s
               ? 2.0
               : 1.0;
}

static fr_status count_call(fake_machine *machine, fr_err *err)
{
    if (machine->n_calls++ == machine->fail_at)
        return fr_fail(err, FR_FAILURE, "the fake machine broke");
    return FR_OK;
}

static fr_status fake_run(void *context, size_t i_point, double *out_s,
                          fr_err *err)
{
    fake_machine *machine = context;
    uint64_t n = machine->n_calls;
    double seconds =
        machine->alpha_s + machine->beta_s_per_byte * bytes_of(i_point);
    bool is_preempted = fr_hash_uniform(5, n, 2, 0) < machine->preempt_frac;

    FR_TRY(count_call(machine, err));
    seconds *= 1.0 + machine->noise * fabs(fr_hash_normal(5, n, 0, 0));
    if (fr_hash_uniform(5, n, 1, 0) < machine->outlier_frac)
        seconds *= 9.0;
    if (is_preempted)
        seconds += 0.004;
    seconds *= speed(machine);
    if (machine->clock_s >= machine->busy_from_s &&
        machine->clock_s < machine->busy_until_s)
        seconds *= 7.0 + (double)(n % 5);
    machine->clock_s += seconds;
    *out_s = is_preempted ? -seconds : seconds;
    return FR_OK;
}

static fr_status fake_sentinel(void *context, double *out_s, fr_err *err)
{
    fake_machine *machine = context;

    FR_TRY(count_call(machine, err));
    *out_s = 1e-4 * speed(machine);
    machine->clock_s += *out_s;
    return FR_OK;
}

static double fake_now(void *context)
{
    return ((fake_machine *)context)->clock_s;
}

static fr_sampling schedule_of(fake_machine *machine)
{
    fr_sampling schedule;

    fr_sampling_init(&schedule);
    schedule.now_s = fake_now;
    schedule.now_context = machine;
    schedule.sentinel = fake_sentinel;
    schedule.sentinel_context = machine;
    return schedule;
}

static fake_machine quiet_machine(void)
{
    return (fake_machine){.fail_at = UINT64_MAX,
                          .alpha_s = 2.385e-6,
                          .beta_s_per_byte = 0.0917e-9};
}

static fr_status measure(fake_machine *machine, const fr_sampling *schedule,
                         fr_sample *samples, int *n_disturbed, fr_err *err)
{
    fr_bench bench = {.name = "fake",
                      .context = machine,
                      .n_points = N_POINTS,
                      .run = fake_run};

    return fr_bench_measure(&bench, schedule, samples, n_disturbed, err);
}

static void test_law(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    double x[N_POINTS], y[N_POINTS];
    fr_line line;
    fr_err err = {0};
    int n_outliers = 0;

    machine.noise = 0.004;
    machine.outlier_frac = 0.12;
    CHECK_OK(measure(&machine, &schedule, samples, NULL, &err), &err);
    for (size_t i = 0; i < N_POINTS; i++) {
        x[i] = bytes_of(i);
        y[i] = samples[i].median_s;
        CHECK_NEAR(y[i], machine.alpha_s + machine.beta_s_per_byte * x[i],
                   0.01);
        CHECK(samples[i].rel_err <= schedule.target_rel_err);
        n_outliers += samples[i].n_outliers;
    }
    CHECK(n_outliers > 0);
    CHECK_OK(fr_fit_alpha_beta(x, y, N_POINTS, &line, &err), &err);
    CHECK_NEAR(line.a, machine.alpha_s, 0.01);
    CHECK_NEAR(line.b, machine.beta_s_per_byte, 0.01);
}

static void begin_others(void *context)
{
    fake_machine *machine = context;

    machine->chunk_from_s = machine->clock_s;
}

static fr_status end_others(void *context, bool *is_disturbed, fr_err *err)
{
    fake_machine *machine = context;

    *is_disturbed = machine->chunk_from_s < machine->busy_until_s &&
                    machine->clock_s >= machine->busy_from_s;
    return count_call(machine, err);
}

/* Others take time that the sentinel does not see. */
static void test_others(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};
    int n_disturbed = 0;

    schedule.begin_others = begin_others;
    schedule.end_others = end_others;
    schedule.others_context = &machine;
    schedule.n_min = 12;
    machine.busy_from_s = 0.004;
    machine.busy_until_s = 0.052;
    CHECK_OK(measure(&machine, &schedule, samples, &n_disturbed, &err), &err);
    CHECK(n_disturbed > 0);
    for (size_t i = 0; i < N_POINTS; i++) {
        CHECK_NEAR(samples[i].median_s,
                   machine.alpha_s + machine.beta_s_per_byte * bytes_of(i),
                   1e-9);
        CHECK(samples[i].n_samples >= 12);
    }
}

/* Others never stop: each point has the shortest of its samples, and the end
 * comes after the budget and the repeats. */
static void test_others_always(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};
    int n_disturbed = 0;

    schedule.begin_others = begin_others;
    schedule.end_others = end_others;
    schedule.others_context = &machine;
    schedule.budget_s = 0.5;
    schedule.repeat_s = 0.25;
    machine.busy_until_s = 1e9;
    CHECK_OK(measure(&machine, &schedule, samples, &n_disturbed, &err), &err);
    CHECK(n_disturbed >= 6);
    CHECK(machine.clock_s < 0.9);
    for (size_t i = 0; i < N_POINTS; i++) {
        const double quiet_s =
            machine.alpha_s + machine.beta_s_per_byte * bytes_of(i);
        CHECK_NEAR(samples[i].median_s, 7.0 * quiet_s, 1e-9);
        CHECK_INT(samples[i].n_samples, 1);
        CHECK(samples[i].rel_err >= 0.1);
    }
}

/* A slow phase that only the sentinel can tell from slow work. */
static void test_disturbed_phase(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};
    int n_disturbed = 0;

    machine.slow_from_s = 0.004;
    machine.slow_until_s = 0.012;
    schedule.n_min = 12;
    CHECK_OK(measure(&machine, &schedule, samples, &n_disturbed, &err), &err);
    CHECK(n_disturbed > 0);
    for (size_t i = 0; i < N_POINTS; i++)
        CHECK_NEAR(samples[i].median_s,
                   machine.alpha_s + machine.beta_s_per_byte * bytes_of(i),
                   1e-9);
}

static void test_preempted(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};

    machine.preempt_frac = 0.4;
    CHECK_OK(measure(&machine, &schedule, samples, NULL, &err), &err);
    for (size_t i = 0; i < N_POINTS; i++)
        CHECK_NEAR(samples[i].median_s,
                   machine.alpha_s + machine.beta_s_per_byte * bytes_of(i),
                   1e-9);
    /* Nothing else to be had: the shortest, and the end comes. */
    machine = quiet_machine();
    machine.preempt_frac = 1.0;
    schedule.budget_s = 0.5;
    CHECK_OK(measure(&machine, &schedule, samples, NULL, &err), &err);
    CHECK(samples[0].median_s >= 0.004 && samples[0].median_s < 0.009);
    CHECK(samples[0].n_outliers > 0);
}

static void test_budget(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};

    machine.noise = 0.3; /* never tight */
    schedule.budget_s = 0.01;
    schedule.target_rel_err = 1e-6;
    CHECK_OK(measure(&machine, &schedule, samples, NULL, &err), &err);
    for (size_t i = 0; i < N_POINTS; i++)
        CHECK(samples[i].n_samples + samples[i].n_outliers >= 3);
    CHECK(machine.clock_s < 0.1);
}

static void test_fail_at_every_call(void)
{
    fake_machine whole = quiet_machine();
    fr_sampling schedule = schedule_of(&whole);
    fr_sample samples[N_POINTS];
    fr_err err = {0};

    schedule.n_min = 3;
    CHECK_OK(measure(&whole, &schedule, samples, NULL, &err), &err);
    for (uint64_t k = 0; k < whole.n_calls; k++) {
        fake_machine machine = quiet_machine();
        fr_sample untouched[N_POINTS] = {{.n_samples = 77}};
        schedule.now_context = schedule.sentinel_context = &machine;
        machine.fail_at = k;
        CHECK_FAILS(measure(&machine, &schedule, untouched, NULL, &err),
                    FR_FAILURE, &err);
        CHECK_HAS(err.text, "fake");
        CHECK_INT(untouched[0].n_samples, 77);
        CHECK_INT(machine.n_calls, k + 1);
    }
}

/* Rank 0, all of whose executions were interrupted, wants 100 rounds. */
static fr_status share_of_rank_0(void *context, void *bytes, size_t n_bytes,
                                 fr_err *err)
{
    int *n_shared = context;
    const int i_share = (*n_shared)++ % 3; /* todo, any, spoilt */

    (void)err;
    if (i_share < 2)
        memset(bytes, *n_shared < 3 * 100, n_bytes);
    return FR_OK;
}

static void test_more_than_it_keeps(void)
{
    fake_machine machine = quiet_machine();
    fr_sampling schedule = schedule_of(&machine);
    fr_sample samples[N_POINTS];
    fr_err err = {0};
    int n_shared = 0;

    schedule.share = share_of_rank_0;
    schedule.share_context = &n_shared;
    CHECK_OK(measure(&machine, &schedule, samples, NULL, &err), &err);
    CHECK(n_shared > 3 * 99);
    for (size_t i = 0; i < N_POINTS; i++) {
        CHECK_INT(samples[i].n_samples, schedule.n_max);
        CHECK_NEAR(samples[i].median_s,
                   machine.alpha_s + machine.beta_s_per_byte * bytes_of(i),
                   1e-9);
    }
}

static void test_sample_of(void)
{
    double one[] = {0.25};
    double some[] = {1.02, 0.99, 1.00, 1.01, 7.30, 1.00, 0.98, 1.03};
    fr_sample sample = fr_sample_of(one, 1);

    CHECK(sample.median_s == 0.25);
    CHECK(sample.rel_err >= 0.1);
    sample = fr_sample_of(some, 8);
    CHECK_NEAR(sample.median_s, 1.00, 1e-12);
    CHECK_INT(sample.n_outliers, 1);
    CHECK_INT(sample.n_samples, 7);
    CHECK(sample.rel_err > 0.0 && sample.rel_err < 0.03);
}

CHECK_MAIN({"law", test_law}, {"disturbed_phase", test_disturbed_phase},
           {"others", test_others}, {"others_always", test_others_always},
           {"preempted", test_preempted},
           {"more_than_it_keeps", test_more_than_it_keeps},
           {"budget", test_budget},
           {"fail_at_every_call", test_fail_at_every_call},
           {"sample_of", test_sample_of})
