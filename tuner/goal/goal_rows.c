/* goal_rows.c: objectives, each a row with its value. */
#include "tuner/goal/goal_rows.h"

#include <math.h>

static double step_of(const fr_goal_point *at)
{
    return at->step.seconds;
}

static double device_seconds_of(const fr_goal_point *at)
{
    return at->scale->n_steps * at->step.seconds * (double)at->run.n_devices /
           at->run.tokens;
}

static double seconds_of(const fr_goal_point *at)
{
    return at->run.outlook.seconds;
}

/* HUGE_VAL where there is no price, or no power. */
static double known(double rate, double amount)
{
    return rate > 0 ? amount : HUGE_VAL;
}

double fr_goal_usd(const fr_goal_point *at)
{
    return known(at->usd_per_h, at->run.outlook.usd);
}

double fr_goal_kwh(const fr_goal_point *at)
{
    return known(at->training_kw, at->run.outlook.kwh);
}

/* The faster of two runs on equally many devices is better, by less than a
 * device. */
static double devices_of(const fr_goal_point *at)
{
    return (double)at->run.n_devices +
           0.5 * at->run.outlook.seconds / at->goal->deadline_s;
}

static double taken_of(const fr_goal_point *at)
{
    return at->taken_frac;
}

const fr_goal_row fr_goal_step = {.name = "step",
                                  .unit = "s",
                                  .summary = "seconds of a step",
                                  .of = FR_GOAL_OF_STEP,
                                  .is_step = true,
                                  .value = step_of};

const fr_goal_row fr_goal_throughput = {.name = "throughput",
                                        .unit = "device s/token",
                                        .summary = "device seconds of a token",
                                        .of = FR_GOAL_OF_STEP,
                                        .weighs_devices = true,
                                        .value = device_seconds_of};

const fr_goal_row fr_goal_time = {.name = "time",
                                  .unit = "s",
                                  .summary = "seconds of the run",
                                  .of = FR_GOAL_OF_RUN,
                                  .value = seconds_of};

const fr_goal_row fr_goal_cost = {.name = "cost",
                                  .unit = "USD",
                                  .summary = "dollars of the run",
                                  .of = FR_GOAL_OF_RUN,
                                  .needs = FR_GOAL_NEEDS_PRICE,
                                  .weighs_devices = true,
                                  .value = fr_goal_usd};

const fr_goal_row fr_goal_energy = {.name = "energy",
                                    .unit = "kWh",
                                    .summary = "energy of the run",
                                    .of = FR_GOAL_OF_RUN,
                                    .needs = FR_GOAL_NEEDS_POWER,
                                    .weighs_devices = true,
                                    .value = fr_goal_kwh};

const fr_goal_row fr_goal_deadline = {
    .name = "deadline",
    .unit = "USD",
    .summary = "dollars of a run that meets the deadline",
    .of = FR_GOAL_OF_RUN,
    .needs = FR_GOAL_NEEDS_DEADLINE | FR_GOAL_NEEDS_PRICE,
    .weighs_devices = true,
    .value = fr_goal_usd};

const fr_goal_row fr_goal_devices = {
    .name = "devices",
    .unit = "devices",
    .summary = "devices of a run that meets the deadline",
    .of = FR_GOAL_OF_RUN,
    .needs = FR_GOAL_NEEDS_DEADLINE,
    .weighs_devices = true,
    .is_whole = true,
    .value = devices_of};

const fr_goal_row fr_goal_loss = {
    .name = "loss",
    .unit = "s",
    .summary = "seconds to the loss that so many tokens reach in small batches",
    .of = FR_GOAL_OF_RUN,
    .needs = FR_GOAL_NEEDS_TOKENS | FR_GOAL_NEEDS_CRITICAL_BATCH,
    .chooses_batch = true,
    .value = seconds_of};

const fr_goal_row fr_goal_headroom = {.name = "headroom",
                                      .unit = "of memory",
                                      .summary =
                                          "share of the memory that is taken",
                                      .of = FR_GOAL_OF_MEMORY,
                                      .value = taken_of};
