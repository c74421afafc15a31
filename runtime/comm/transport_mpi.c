/*
 * transport_mpi.c: ranks joined by MPI.
 *
 * A node is what MPI_COMM_TYPE_SHARED says, cut further by the environment
 * variable FORERUN_NODE_ID (any text: ranks with another value are on another
 * node), so that network namespaces of one machine can stand for nodes.  The
 * slab is a window of MPI-3 shared memory.  MPI is called by one thread at a
 * time (MPI_THREAD_SERIALIZED), and after setup never blocks inside.
 */
#include "core/base/hash.h"
#include "runtime/comm/transport.h"
#include "runtime/rank/rank_page.h"

#include <stdlib.h>
#include <string.h>

#ifdef FR_HAVE_MPI

#include <errno.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>

#define PAGE_BYTES 4096
#define SHM_DIR "/dev/shm" /* where MPI keeps the windows on Linux */

typedef struct mpi_transport {
    fr_transport base;
    MPI_Comm world, node;
    MPI_Win window;
    bool has_window;
    int *world_rank_of_node_rank;
    int n_node;
} mpi_transport;

static fr_status mpi_fail(int code, const char *what, fr_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;

    (void)MPI_Error_string(code, text, &n);
    return fr_fail(err, FR_FAILURE, "MPI: %s: %s", what, text);
}

#define TRY_MPI(call, what)                                                    \
    do {                                                                       \
        int code_ = (call);                                                    \
        if (code_ != MPI_SUCCESS)                                              \
            return mpi_fail(code_, what, err);                                 \
    } while (0)

bool fr_transport_mpi_is_available(void)
{
    return true;
}

void fr_transport_mpi_finish(void)
{
    int is_initialized = 0, is_finalized = 0;

    (void)MPI_Initialized(&is_initialized);
    (void)MPI_Finalized(&is_finalized);
    if (is_initialized && !is_finalized)
        (void)MPI_Finalize();
}

static void mpi_close_slab(fr_transport *transport)
{
    mpi_transport *self = (mpi_transport *)transport;

    if (self->has_window) {
        (void)MPI_Win_unlock_all(self->window);
        (void)MPI_Win_free(&self->window);
    }
    self->has_window = false;
    fr_transport_close_slabs(transport);
}

static void mpi_destroy(fr_transport *transport)
{
    mpi_transport *self = (mpi_transport *)transport;

    mpi_close_slab(transport);
    if (self->node != MPI_COMM_NULL)
        (void)MPI_Comm_free(&self->node);
    if (self->world != MPI_COMM_NULL)
        (void)MPI_Comm_free(&self->world);
    free(self->world_rank_of_node_rank);
    fr_transport_release(transport);
    free(self);
}

static fr_status fail_no_room(uint64_t n_bytes, uint64_t n_free, fr_err *err)
{
    return fr_fail(err, FR_NO_MEMORY,
                   "the ranks of this node need %llu MB of shared memory, %s "
                   "has %llu MB free; enlarge it (mount -o remount,size=N %s) "
                   "or use fewer ranks per node",
                   (unsigned long long)(n_bytes >> 20), SHM_DIR,
                   (unsigned long long)(n_free >> 20), SHM_DIR);
}

/* All ranks of a node at once must fit into what /dev/shm still has: writing
 * beyond it kills a process with SIGBUS instead of an error. */
static fr_status check_shm_room(mpi_transport *self, uint64_t n_bytes,
                                fr_err *err)
{
    struct statvfs fs;
    uint64_t n_total = 0;

    TRY_MPI(
        MPI_Allreduce(&n_bytes, &n_total, 1, MPI_UINT64_T, MPI_SUM, self->node),
        "sum of slabs");
    if (self->n_node < 2 || statvfs(SHM_DIR, &fs) != 0)
        return FR_OK;
    uint64_t n_free = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (n_total <= n_free)
        return FR_OK;
    return fail_no_room(n_total, n_free, err);
}

/*
 * Takes the pages now, before copies of the state or another program do; 0, or
 * errno.  They are not mapped for longer than a piece takes, so that they do
 * not count twice in what a rank is measured to use (madvise(2):
 * MADV_POPULATE_WRITE since Linux 5.14, else EINVAL, and the check above is all
 * there is).
 */
static int take_pages(unsigned char *base, uint64_t n_bytes)
{
#ifdef MADV_POPULATE_WRITE
    const uint64_t piece = (uint64_t)256 << 10;

    for (uint64_t at = 0; at < n_bytes;) {
        const uint64_t n = n_bytes - at < piece ? n_bytes - at : piece;
        if (madvise(base + at, n, MADV_POPULATE_WRITE) == 0) {
            (void)madvise(base + at, n, MADV_DONTNEED);
            at += n;
        } else if (errno != EINTR)
            return errno == EINVAL || errno == EAGAIN ? 0 : errno;
    }
#else
    (void)base, (void)n_bytes;
#endif
    return 0;
}

/* On all ranks of the node, or on none. */
static fr_status take_window(mpi_transport *self, unsigned char *base,
                             uint64_t n_bytes, fr_err *err)
{
    int code = take_pages(base, n_bytes), worst = 0;
    struct statvfs fs = {0};
    uint64_t n_total = 0;

    TRY_MPI(MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, self->node),
            "shared window");
    TRY_MPI(
        MPI_Allreduce(&n_bytes, &n_total, 1, MPI_UINT64_T, MPI_SUM, self->node),
        "sum of slabs");
    if (worst == 0)
        return FR_OK;
    (void)statvfs(SHM_DIR, &fs);
    return fail_no_room(n_total, (uint64_t)fs.f_bavail * fs.f_frsize, err);
}

/*
 * MPI begins a rank's part anywhere (behind bookkeeping of its own); every
 * process maps the whole at a page boundary, so all agree on what this gives.
 */
static unsigned char *align_window(unsigned char *base)
{
    uintptr_t at = (uintptr_t)base;

    return base + ((at + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES - at);
}

static fr_status mpi_open_slab(fr_transport *transport, uint64_t n_bytes,
                               fr_err *err)
{
    mpi_transport *self = (mpi_transport *)transport;
    uint64_t control_bytes = fr_shm_control_bytes();
    uint64_t window_bytes = control_bytes + n_bytes + PAGE_BYTES;
    MPI_Info info = MPI_INFO_NULL;
    void *mine = NULL;

    transport->slab_bytes = n_bytes;
    transport->is_slab_shared = self->n_node > 1;
    if (!transport->is_slab_shared)
        return fr_transport_open_private(transport, n_bytes, err);
    FR_TRY(check_shm_room(self, window_bytes, err));
    TRY_MPI(MPI_Info_create(&info), "info");
    (void)MPI_Info_set(info, "alloc_shared_noncontig", "true");
    int code = MPI_Win_allocate_shared((MPI_Aint)window_bytes, 1, info,
                                       self->node, &mine, &self->window);
    (void)MPI_Info_free(&info);
    if (code != MPI_SUCCESS)
        return mpi_fail(code, "shared window", err);
    self->has_window = true;
    TRY_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, self->window), "lock");
    for (int i = 0; i < self->n_node; i++) {
        MPI_Aint size = 0;
        int unit = 0;
        unsigned char *base = NULL;
        TRY_MPI(MPI_Win_shared_query(self->window, i, &size, &unit, &base),
                "shared window");
        base = align_window(base);
        int64_t rank = self->world_rank_of_node_rank[i];
        transport->control[rank] = (fr_shm_control *)(void *)base;
        transport->slab[rank] = base + control_bytes;
    }
    return take_window(self,
                       (unsigned char *)transport->control[transport->rank],
                       control_bytes + n_bytes, err);
}

/* MPI_Request is a pointer or an int, depending on the implementation. */
static fr_status keep_request(MPI_Request mpi, fr_message *request, fr_err *err)
{
    if (sizeof mpi <= sizeof request->handle) {
        request->handle = NULL;
        memcpy(&request->handle, &mpi, sizeof mpi);
        return FR_OK;
    }
    return fr_fail(err, FR_FAILURE, "MPI: unknown kind of request");
}

/* Requests are waited for in mpi_test, which the checker does not see.
 * NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */
static fr_status mpi_isend(fr_transport *transport, int64_t peer, int tag,
                           const void *bytes, uint64_t n_bytes,
                           fr_message *request, fr_err *err)
{
    mpi_transport *self = (mpi_transport *)transport;
    MPI_Request mpi = MPI_REQUEST_NULL;

    TRY_MPI(MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, (int)peer, tag,
                      self->world, &mpi),
            "send");
    return keep_request(mpi, request, err);
}

static fr_status mpi_irecv(fr_transport *transport, int64_t peer, int tag,
                           void *bytes, uint64_t n_bytes, fr_message *request,
                           fr_err *err)
{
    mpi_transport *self = (mpi_transport *)transport;
    MPI_Request mpi = MPI_REQUEST_NULL;

    TRY_MPI(MPI_Irecv(bytes, (int)n_bytes, MPI_BYTE, (int)peer, tag,
                      self->world, &mpi),
            "receive");
    return keep_request(mpi, request, err);
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static fr_status mpi_test(fr_transport *transport, fr_message *request,
                          bool *is_done, fr_err *err)
{
    MPI_Request mpi = MPI_REQUEST_NULL;
    int flag = 0;

    (void)transport;
    memcpy(&mpi, &request->handle, sizeof mpi);
    TRY_MPI(MPI_Test(&mpi, &flag, MPI_STATUS_IGNORE), "test");
    if (flag)
        request->handle = NULL;
    *is_done = flag != 0;
    return FR_OK;
}

static fr_status mpi_probe(fr_transport *transport, int64_t peer, int tag,
                           bool *is_there, fr_err *err)
{
    mpi_transport *self = (mpi_transport *)transport;
    int flag = 0;

    TRY_MPI(MPI_Iprobe((int)peer, tag, self->world, &flag, MPI_STATUS_IGNORE),
            "probe");
    *is_there = flag != 0;
    return FR_OK;
}

static const fr_transport_ops mpi_ops = {
    .name = "mpi",
    .destroy = mpi_destroy,
    .open_slab = mpi_open_slab,
    .close_slab = mpi_close_slab,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .probe = mpi_probe,
    .test = mpi_test,
};

static fr_status ensure_mpi(fr_err *err)
{
    int is_initialized = 0, is_finalized = 0, level = MPI_THREAD_SINGLE;

    TRY_MPI(MPI_Initialized(&is_initialized), "init");
    TRY_MPI(MPI_Finalized(&is_finalized), "init");
    if (is_finalized)
        return fr_fail(err, FR_FAILURE, "MPI has already ended");
    if (!is_initialized)
        TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level),
                "init");
    TRY_MPI(MPI_Query_thread(&level), "init");
    if (level < MPI_THREAD_SERIALIZED)
        return fr_fail(err, FR_FAILURE,
                       "this MPI has no thread support "
                       "(MPI_THREAD_SERIALIZED); install another build");
    return FR_OK;
}

/* Splits the world into nodes; each is called by its first rank. */
static fr_status find_nodes(mpi_transport *self, fr_err *err)
{
    MPI_Comm shared = MPI_COMM_NULL;
    fr_transport *base = &self->base;
    const char *id = getenv("FORERUN_NODE_ID");
    int color = (int)(fr_hash_text(id != NULL ? id : "", 0) & 0x7fffffff);
    int my_rank = (int)base->rank, node_rank = 0;

    TRY_MPI(MPI_Comm_split_type(self->world, MPI_COMM_TYPE_SHARED, my_rank,
                                MPI_INFO_NULL, &shared),
            "split");
    TRY_MPI(MPI_Comm_split(shared, color, my_rank, &self->node), "split");
    (void)MPI_Comm_free(&shared);
    TRY_MPI(MPI_Comm_size(self->node, &self->n_node), "size");
    TRY_MPI(MPI_Comm_rank(self->node, &node_rank), "rank");
    self->world_rank_of_node_rank = malloc((size_t)self->n_node * sizeof(int));
    if (self->world_rank_of_node_rank == NULL)
        return fr_fail_no_memory(err);
    TRY_MPI(MPI_Allgather(&my_rank, 1, MPI_INT, self->world_rank_of_node_rank,
                          1, MPI_INT, self->node),
            "all-gather");
    return fr_transport_find_nodes(
        base, (uint64_t)self->world_rank_of_node_rank[0], err);
}

static fr_status join(mpi_transport *self, MPI_Comm parent, fr_err *err)
{
    TRY_MPI(MPI_Comm_dup(parent, &self->world), "communicator");
    (void)MPI_Comm_set_errhandler(self->world, MPI_ERRORS_RETURN);
    FR_TRY(find_nodes(self, err));
    /* All of the above waits for the others, without a limit. */
    fr_rank_page_joined(self->base.rank);
    return FR_OK;
}

/* Ranks that come early leave the processors to those that are on their way:
 * MPI itself waits by looking again and again. */
static fr_status await_all(fr_err *err)
{
    const struct timespec nap = {.tv_nsec = 200000};
    MPI_Request all = MPI_REQUEST_NULL;
    int are_here = 0;

    TRY_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &all), "barrier");
    TRY_MPI(MPI_Test(&all, &are_here, MPI_STATUS_IGNORE), "barrier");
    while (!are_here) {
        (void)nanosleep(&nap, NULL);
        TRY_MPI(MPI_Test(&all, &are_here, MPI_STATUS_IGNORE), "barrier");
    }
    return FR_OK;
}

fr_status fr_transport_mpi_create(int64_t world, double timeout_s,
                                  fr_transport **out, fr_err *err)
{
    int n_ranks = 0, rank = 0;
    MPI_Comm parent = MPI_COMM_NULL;

    FR_TRY(ensure_mpi(err));
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, &n_ranks), "size");
    TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "rank");
    if (n_ranks < world)
        return fr_fail(err, FR_FAILURE,
                       "the plan needs %lld ranks, MPI started %d; start it "
                       "with mpirun -np %lld",
                       (long long)world, n_ranks, (long long)world);
    FR_TRY(await_all(err));
    TRY_MPI(MPI_Comm_split(MPI_COMM_WORLD, rank < world ? 0 : MPI_UNDEFINED,
                           rank, &parent),
            "split");
    if (parent == MPI_COMM_NULL) {
        *out = NULL;
        return FR_OK;
    }
    mpi_transport *self = calloc(1, sizeof *self);
    if (self == NULL) {
        (void)MPI_Comm_free(&parent);
        return fr_fail_no_memory(err);
    }
    self->base.ops = &mpi_ops;
    self->base.timeout_s = timeout_s;
    self->world = self->node = MPI_COMM_NULL;
    fr_status status = fr_transport_init(&self->base, rank, world, err);
    if (status == FR_OK)
        status = join(self, parent, err);
    (void)MPI_Comm_free(&parent);
    if (status != FR_OK) {
        mpi_destroy(&self->base);
        return status;
    }
    *out = &self->base;
    return FR_OK;
}

#else

bool fr_transport_mpi_is_available(void)
{
    return false;
}

void fr_transport_mpi_finish(void)
{
}

fr_status fr_transport_mpi_create(int64_t world, double timeout_s,
                                  fr_transport **out, fr_err *err)
{
    (void)timeout_s;
    (void)out;
    return fr_fail(err, FR_USAGE,
                   "%lld ranks need MPI, which was left out of this build; "
                   "apt-get install libopenmpi-dev openmpi-bin and make again",
                   (long long)world);
}

#endif
