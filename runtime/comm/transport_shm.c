/* transport_shm.c: doorbells and the art of waiting. */
#include "runtime/comm/transport_shm.h"

#include "core/base/text.h"
#include "core/system/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { STAGE_SPIN, STAGE_YIELD, STAGE_ANNOUNCE, STAGE_SLEEP };

#define PAUSES_PER_CLOCK 32 /* a look at the clock costs as much as a pause */

uint64_t fr_shm_control_bytes(void)
{
    uint64_t page = 4096;

    return (sizeof(fr_shm_control) + page - 1) / page * page;
}

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void fr_shm_ring(fr_shm_bell *bell)
{
    /* Pairs with the fence of a waiter between its announcement and its last
     * look: one of the two sees the other. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&bell->is_asleep, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&bell->word, 1, memory_order_release);
    (void)syscall(SYS_futex, &bell->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void fr_shm_set_failure(fr_shm_control *control, const char *text)
{
    if (atomic_load_explicit(&control->has_failed, memory_order_relaxed))
        return;
    fr_text_copy_cut(control->failure, sizeof control->failure, text);
    atomic_store_explicit(&control->has_failed, 1, memory_order_release);
}

void fr_waiter_init(fr_waiter *waiter, fr_shm_bell *bell)
{
    *waiter = (fr_waiter){.bell = bell,
                          .spin_ns = 20 * 1000,
                          .yield_ns = 100 * 1000,
                          .sleep_ns = 20 * 1000 * 1000};
}

void fr_waiter_reset(fr_waiter *waiter)
{
    if (waiter->stage >= STAGE_ANNOUNCE)
        atomic_store_explicit(&waiter->bell->is_asleep, 0,
                              memory_order_relaxed);
    waiter->stage = STAGE_SPIN;
    waiter->begin_ns = 0;
    waiter->n_pauses = 0;
}

static void announce(fr_waiter *waiter)
{
    waiter->word =
        atomic_load_explicit(&waiter->bell->word, memory_order_acquire);
    atomic_store_explicit(&waiter->bell->is_asleep, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    waiter->stage = STAGE_SLEEP; /* after one more look by the caller */
}

static void sleep_on_bell(fr_waiter *waiter)
{
    struct timespec limit = {
        .tv_sec = waiter->sleep_ns / 1000000000,
        .tv_nsec = waiter->sleep_ns % 1000000000,
    };

    (void)syscall(SYS_futex, &waiter->bell->word, FUTEX_WAIT, waiter->word,
                  &limit, NULL, 0);
    waiter->stage = STAGE_ANNOUNCE;
}

void fr_waiter_pause(fr_waiter *waiter)
{
    if (waiter->stage == STAGE_SPIN &&
        waiter->n_pauses++ % PAUSES_PER_CLOCK != 0) {
        cpu_relax();
        return;
    }
    waiter->now_ns = fr_clock_ns();
    if (waiter->begin_ns == 0)
        waiter->begin_ns = waiter->now_ns;
    int64_t waited_ns = waiter->now_ns - waiter->begin_ns;
    if (waiter->stage == STAGE_SPIN && waited_ns >= waiter->spin_ns)
        waiter->stage = STAGE_YIELD;
    if (waiter->stage == STAGE_YIELD &&
        waited_ns >= waiter->spin_ns + waiter->yield_ns)
        waiter->stage = STAGE_ANNOUNCE;
    switch (waiter->stage) {
    case STAGE_SPIN:
        cpu_relax();
        break;
    case STAGE_YIELD:
        (void)sched_yield();
        break;
    case STAGE_ANNOUNCE:
        announce(waiter);
        break;
    default:
        sleep_on_bell(waiter);
        break;
    }
}

double fr_waiter_waited_s(const fr_waiter *waiter)
{
    if (waiter->begin_ns == 0)
        return 0;
    return (double)(waiter->now_ns - waiter->begin_ns) * 1e-9;
}
