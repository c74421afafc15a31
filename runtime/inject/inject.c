/* inject.c: see inject.h. */
#include "runtime/inject/inject.h"

#include "core/numbers/rng.h"
#include "core/system/clock.h"

#include <signal.h>

#define LEAST_SLEEP_NS 200000 /* shorter sleeps are far from exact */

void fr_inject_begin_step(fr_inject *inject, int64_t i_step)
{
    if (inject->faults == NULL)
        return;
    const int64_t rank = inject->rank;
    if (fr_faults_at(inject->faults, FR_FAULT_KILL, rank, i_step) != NULL ||
        fr_faults_at(inject->faults, FR_FAULT_LOSE, rank, i_step) != NULL)
        (void)raise(SIGKILL);
    inject->is_hung =
        fr_faults_at(inject->faults, FR_FAULT_HANG, rank, i_step) != NULL;
    const fr_fault *slow =
        fr_faults_at(inject->faults, FR_FAULT_SLOW, rank, i_step);
    inject->factor = slow != NULL ? slow->factor : 1;
    inject->owed_ns = 0;
}

void fr_inject_settle(fr_inject *inject)
{
    if (inject->owed_ns < LEAST_SLEEP_NS)
        return;
    int64_t begin_ns = fr_clock_ns();
    fr_sleep_s(1e-9 * (double)inject->owed_ns);
    /* A sleep that was too long is made good by the next one. */
    inject->owed_ns -= fr_clock_ns() - begin_ns;
}

void fr_inject_slow(fr_inject *inject, int64_t ran_ns)
{
    inject->owed_ns += (int64_t)((inject->factor - 1) * (double)ran_ns);
    if (inject->owed_ns >= 10 * LEAST_SLEEP_NS)
        fr_inject_settle(inject);
}

bool fr_inject_holds_back(fr_inject *inject, int i_thread)
{
    const double put_off = 0.5, asleep = 0.02, longest_s = 200e-6;

    if (inject->shake_seed == 0)
        return false;
    const uint64_t i = inject->n_shaken[i_thread]++;
    const double drawn = fr_hash_uniform(
        inject->shake_seed, (uint64_t)inject->rank, (uint64_t)i_thread, i);
    if (drawn < asleep)
        fr_sleep_s(drawn / asleep * longest_s);
    return drawn < put_off;
}
