/* rank_page.c: a small mapped file per rank. */
#include "runtime/rank/rank_page.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "plan/op/op.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

fr_rank_page *fr_rank_page_open(const char *dir, int64_t rank, bool is_owner)
{
    char path[512];

    if (dir == NULL || !dir[0])
        return NULL;
    int n = snprintf(path, sizeof path, "%s/rank-%lld", dir, (long long)rank);
    if (n < 0 || (size_t)n >= sizeof path)
        return NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC | (is_owner ? O_CREAT : 0), 0600);
    if (fd < 0)
        return NULL;
    off_t size = lseek(fd, 0, SEEK_END);
    if (is_owner ? ftruncate(fd, sizeof(fr_rank_page)) != 0
                 : size < (off_t)sizeof(fr_rank_page)) {
        (void)close(fd);
        return NULL;
    }
    fr_rank_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (page == MAP_FAILED)
        return NULL;
    if (is_owner)
        fr_rank_page_init(page, rank);
    return page;
}

void fr_rank_page_init(fr_rank_page *page, int64_t rank)
{
    const char *job = getenv("PMIX_NAMESPACE");

    page->pid = (int32_t)getpid();
    page->rank = (int32_t)rank;
    page->job = job != NULL ? (uint32_t)strtoul(job, NULL, 10) : 0;
    atomic_store(&page->step, -1);
    atomic_store(&page->op, FR_OP_N);
    atomic_store(&page->beat_ns, fr_clock_ns());
    atomic_store(&page->since_ns, fr_clock_ns());
    atomic_store(&page->waits_for, -1);
    (void)gethostname(page->host, sizeof page->host - 1);
    atomic_store_explicit(&page->state, FR_RANK_RUNNING, memory_order_release);
}

void fr_rank_page_describe(const fr_rank_page *page, char *out, size_t n)
{
    const uint32_t op =
        page != NULL ? atomic_load(&page->op) : (uint32_t)FR_OP_N;

    if (page == NULL || op >= FR_OP_N) {
        (void)snprintf(out, n, "%s",
                       page != NULL ? ", before its first step" : "");
        return;
    }
    const uint32_t layer = atomic_load(&page->layer);
    const int used = snprintf(out, n, ", at step %d in %s",
                              atomic_load(&page->step), fr_op_name((fr_op)op));
    if (layer > 0 && used > 0 && (size_t)used < n)
        (void)snprintf(out + used, n - (size_t)used, " of layer %u", layer - 1);
}

void fr_rank_page_begin_step(fr_rank_page *page, int64_t step)
{
    if (page == NULL)
        return;
    atomic_store_explicit(&page->step, (int32_t)step, memory_order_relaxed);
    atomic_store(&page->since_ns, fr_clock_ns());
    atomic_store(&page->is_in_step, 1);
}

void fr_rank_page_end_step(fr_rank_page *page, double step_s)
{
    const int64_t step_ns = (int64_t)(step_s * 1e9);

    if (page == NULL)
        return;
    if (step_ns > atomic_load(&page->longest_ns))
        atomic_store(&page->longest_ns, step_ns);
    atomic_store(&page->is_in_step, 0);
}

double fr_rank_page_still_s(const fr_rank_page *page)
{
    return atomic_load(&page->is_in_step) != 0
               ? 1e-9 * (double)(fr_clock_ns() - atomic_load(&page->since_ns))
               : 0;
}

void fr_rank_page_join(int64_t rank)
{
    fr_rank_page *page =
        fr_rank_page_open(getenv(FR_STATUS_DIR_ENV), rank, true);

    if (page != NULL)
        atomic_store(&page->state, (uint32_t)FR_RANK_JOINING);
    fr_rank_page_close(page);
}

void fr_rank_page_joined(int64_t rank)
{
    uint32_t before = FR_RANK_JOINING;
    fr_rank_page *page =
        fr_rank_page_open(getenv(FR_STATUS_DIR_ENV), rank, false);

    if (page != NULL)
        (void)atomic_compare_exchange_strong(&page->state, &before,
                                             (uint32_t)FR_RANK_JOINED);
    fr_rank_page_close(page);
}

void fr_rank_page_close(fr_rank_page *page)
{
    if (page != NULL)
        (void)munmap(page, sizeof *page);
}

void fr_rank_page_fail(fr_rank_page *page, const fr_err *err)
{
    if (page == NULL || atomic_load(&page->state) == FR_RANK_FAILED)
        return;
    fr_text_copy_cut(page->failure, sizeof page->failure, err->text);
    page->status = (int32_t)err->status;
    atomic_store_explicit(&page->state, FR_RANK_FAILED, memory_order_release);
}
