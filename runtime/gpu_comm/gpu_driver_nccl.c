/*
 * gpu_driver_nccl.c: the communicators of gpu_driver.h are NCCL's, 2.18 and
 * later.
 *
 * They are non-blocking: a call may return before it is done, and everything
 * else on the communicator has to wait until ncclCommGetAsyncError says so.
 * Single operations stand in a group of their own and are polled even when
 * they return success, which they may do too early (NVIDIA/nccl issue 1495).
 */
#include "core/system/clock.h"
#include "runtime/backend/gpu_driver.h"
#include "runtime/gpu_comm/nccl_tuner.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL 2.18 or later is needed (ncclCommSplit)"
#endif

struct fr_gpu_comm {
    ncclComm_t nccl;
    double timeout_s;
    int n_ranks, position;
    fr_gpu_choices *choices; /* borrowed; NULL: none */
    void *word;              /* of the device: operand of barriers */
    void *handle;            /* of the memory that was registered */
};

/* Fails with NCCL's own words and what it logged last. */
static fr_status fail(ncclResult_t code, ncclComm_t comm, const char *what,
                      fr_err *err)
{
    const char *detail = ncclGetLastError(comm);

    if (detail == NULL || !detail[0])
        return fr_fail(err, FR_FAILURE, "NCCL: %s: %s", what,
                       ncclGetErrorString(code));
    return fr_fail(err, FR_FAILURE, "NCCL: %s: %s (%s)", what,
                   ncclGetErrorString(code), detail);
}

/* Waits until the communicator has done what it was asked for. */
static fr_status settle(ncclComm_t comm, ncclResult_t code, double timeout_s,
                        const char *what, fr_err *err)
{
    double begin_s = fr_clock_s();
    ncclResult_t state = ncclInProgress;

    if (code != ncclSuccess && code != ncclInProgress)
        return fail(code, comm, what, err);
    for (;;) {
        code = ncclCommGetAsyncError(comm, &state);
        if (code == ncclSuccess && state == ncclSuccess)
            return FR_OK;
        if (code != ncclSuccess || state != ncclInProgress)
            return fail(code != ncclSuccess ? code : state, comm, what, err);
        double waited_s = fr_clock_s() - begin_s;
        if (waited_s > timeout_s)
            return fr_fail(err, FR_FAILURE, "NCCL: %s: not done after %.3g s",
                           what, timeout_s);
        if (waited_s > 1e-4)
            fr_sleep_s(2e-5);
    }
}

static void nccl_version(char *out, size_t n)
{
    int code = 0;

    (void)ncclGetVersion(&code);
    (void)snprintf(out, n, "%d.%d.%d", code / 10000, code / 100 % 100,
                   code % 100);
}

static fr_status nccl_make_id(void *context, fr_gpu_comm_id *out, fr_err *err)
{
    ncclUniqueId id;
    ncclResult_t code = ncclGetUniqueId(&id);

    (void)context;
    _Static_assert(sizeof id == sizeof *out, "an id has 128 bytes");
    if (code != ncclSuccess)
        return fail(code, NULL, "id", err);
    memcpy(out, &id, sizeof *out);
    return FR_OK;
}

static void nccl_abort(fr_gpu_comm *comm)
{
    if (comm == NULL)
        return;
    if (comm->nccl != NULL)
        (void)ncclCommAbort(comm->nccl);
    /* The word stays: freeing memory waits for a device that may hang. */
    free(comm);
}

static void nccl_destroy(fr_gpu_comm *comm)
{
    fr_err ignored;

    if (comm == NULL)
        return;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    if (comm->handle != NULL)
        (void)ncclCommDeregister(comm->nccl, comm->handle);
#endif
    if (settle(comm->nccl, ncclCommFinalize(comm->nccl), comm->timeout_s, "end",
               &ignored) == FR_OK)
        (void)ncclCommDestroy(comm->nccl);
    else
        (void)ncclCommAbort(comm->nccl);
    (void)cudaFree(comm->word);
    free(comm);
}

/* Creates the state of a communicator beyond NCCL's; takes `nccl` even when it
 * fails. */
static fr_status wrap(ncclComm_t nccl, double timeout_s, fr_gpu_comm **out,
                      fr_err *err)
{
    fr_gpu_comm *comm = calloc(1, sizeof *comm);

    if (comm == NULL) {
        (void)ncclCommAbort(nccl);
        return fr_fail_no_memory(err);
    }
    comm->nccl = nccl;
    comm->timeout_s = timeout_s;
    ncclResult_t code = ncclCommCount(nccl, &comm->n_ranks);
    if (code == ncclSuccess)
        code = ncclCommUserRank(nccl, &comm->position);
    if (code == ncclSuccess &&
        (cudaMalloc(&comm->word, sizeof(int32_t)) != cudaSuccess ||
         cudaMemset(comm->word, 0, sizeof(int32_t)) != cudaSuccess))
        code = ncclUnhandledCudaError;
    if (code != ncclSuccess) {
        fr_status status = fail(code, nccl, "communicator", err);
        nccl_abort(comm);
        return status;
    }
    *out = comm;
    return FR_OK;
}

static fr_status nccl_init(fr_gpu *gpu, const fr_gpu_comm_id *id, int32_t world,
                           int32_t rank, bool has_choices, double timeout_s,
                           fr_gpu_comm **out, fr_err *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t nccl = NULL;
    ncclUniqueId name;

    (void)gpu; /* NCCL takes the current device */
    /* The program is its own tuner, unless the user has another. */
    if (has_choices)
        (void)setenv("NCCL_TUNER_PLUGIN", "STATIC_PLUGIN", 0);
    memcpy(&name, id, sizeof name);
    config.blocking = 0;
    ncclResult_t code =
        ncclCommInitRankConfig(&nccl, world, name, rank, &config);
    if (nccl == NULL)
        return fail(code, NULL, "communicator of all ranks", err);
    fr_status status =
        settle(nccl, code, timeout_s, "communicator of all ranks", err);
    if (status != FR_OK) {
        (void)ncclCommAbort(nccl);
        return status;
    }
    return wrap(nccl, timeout_s, out, err);
}

static fr_status nccl_split(fr_gpu_comm *parent, int32_t colour, int32_t key,
                            fr_gpu_choices *choices, fr_gpu_comm **out,
                            fr_err *err)
{
    const char *what = "communicator of a group";
    ncclComm_t nccl = NULL;
    bool is_member = colour != FR_GPU_NO_COLOUR;

    fr_nccl_tuner_use(choices);
    ncclResult_t code =
        ncclCommSplit(parent->nccl, is_member ? colour : NCCL_SPLIT_NOCOLOR,
                      key, &nccl, NULL);
    fr_status status = settle(parent->nccl, code, parent->timeout_s, what, err);
    if (status == FR_OK && is_member && nccl != NULL)
        status = settle(nccl, ncclSuccess, parent->timeout_s, what, err);
    fr_nccl_tuner_use(NULL);
    if (status != FR_OK || !is_member) {
        if (nccl != NULL)
            (void)ncclCommAbort(nccl);
        if (status == FR_OK)
            *out = NULL;
        return status;
    }
    if (nccl == NULL)
        return fail(ncclInternalError, parent->nccl, what, err);
    FR_TRY(wrap(nccl, parent->timeout_s, out, err));
    (*out)->choices = choices;
    return FR_OK;
}

static fr_status nccl_check(fr_gpu_comm *comm, fr_err *err)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t code = ncclCommGetAsyncError(comm->nccl, &state);

    if (code == ncclSuccess &&
        (state == ncclSuccess || state == ncclInProgress))
        return FR_OK;
    return fail(code != ncclSuccess ? code : state, comm->nccl,
                "asynchronous error", err);
}

/* ncclBfloat16, which older headers (2.22 is one) show to C++ alone. */
static const ncclDataType_t type_bf16 = (ncclDataType_t)9;

static bool find_type(fr_dtype dtype, ncclDataType_t *out)
{
    switch (dtype) {
    case FR_DTYPE_F32:
    case FR_DTYPE_TF32:
        *out = ncclFloat32;
        return true;
    case FR_DTYPE_BF16:
        *out = type_bf16;
        return true;
    case FR_DTYPE_F16:
        *out = ncclFloat16;
        return true;
    case FR_DTYPE_F64:
        *out = ncclFloat64;
        return true;
    case FR_DTYPE_I32:
        *out = ncclInt32;
        return true;
    case FR_DTYPE_U8:
    case FR_DTYPE_FP8: /* moved, never added */
        *out = ncclUint8;
        return true;
    default:
        return false;
    }
}

/* Sends every part to its member, inside an NCCL group. */
static ncclResult_t all_to_all(const fr_gpu_comm *comm,
                               const fr_gpu_exchange *e, ncclDataType_t type,
                               cudaStream_t stream)
{
    uint64_t part = e->n / (uint64_t)comm->n_ranks;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    return ncclAlltoAll(e->src, e->dst, part, type, comm->nccl, stream);
#else
    uint64_t part_bytes = part * fr_dtype_bytes(e->dtype);
    ncclResult_t code = ncclSuccess;
    for (int i = 0; i < comm->n_ranks; i++) {
        const char *src = (const char *)e->src + (uint64_t)i * part_bytes;
        char *dst = (char *)e->dst + (uint64_t)i * part_bytes;
        code = ncclSend(src, part, type, i, comm->nccl, stream);
        if (code == ncclSuccess || code == ncclInProgress)
            code = ncclRecv(dst, part, type, i, comm->nccl, stream);
        if (code != ncclSuccess && code != ncclInProgress)
            break;
    }
    return code;
#endif
}

/* Sends to the next member and receives from the one before, inside an NCCL
 * group. */
static ncclResult_t shift(const fr_gpu_comm *comm, const fr_gpu_exchange *e,
                          ncclDataType_t type, cudaStream_t stream)
{
    int n = comm->n_ranks;
    ncclResult_t code = ncclSend(e->src, e->n, type, (comm->position + 1) % n,
                                 comm->nccl, stream);

    if (code != ncclSuccess && code != ncclInProgress)
        return code;
    return ncclRecv(e->dst, e->n, type, (comm->position + n - 1) % n,
                    comm->nccl, stream);
}

static ncclResult_t ask(const fr_gpu_comm *comm, const fr_gpu_exchange *e,
                        ncclDataType_t type, cudaStream_t stream)
{
    ncclRedOp_t reduction = e->is_max ? ncclMax : ncclSum;
    uint64_t part = e->n / (uint64_t)comm->n_ranks;

    switch (e->op) {
    case FR_OP_ALL_REDUCE:
        return ncclAllReduce(e->src, e->dst, e->n, type, reduction, comm->nccl,
                             stream);
    case FR_OP_REDUCE_SCATTER:
        return ncclReduceScatter(e->src, e->dst, part, type, reduction,
                                 comm->nccl, stream);
    case FR_OP_ALL_GATHER:
        return ncclAllGather(e->src, e->dst, part, type, comm->nccl, stream);
    case FR_OP_BROADCAST:
        return ncclBroadcast(e->src, e->dst, e->n, type, e->peer, comm->nccl,
                             stream);
    case FR_OP_BARRIER:
        return ncclAllReduce(comm->word, comm->word, 1, ncclInt32, ncclMax,
                             comm->nccl, stream);
    case FR_OP_ALL_TO_ALL:
        return all_to_all(comm, e, type, stream);
    case FR_OP_SHIFT:
        return shift(comm, e, type, stream);
    case FR_OP_SEND:
        return ncclSend(e->src, e->n, type, e->peer, comm->nccl, stream);
    case FR_OP_RECV:
        return ncclRecv(e->dst, e->n, type, e->peer, comm->nccl, stream);
    default:
        return ncclInvalidArgument;
    }
}

static fr_status nccl_enqueue(fr_gpu_comm *comm,
                              const fr_gpu_exchange *exchange,
                              fr_gpu_stream stream, fr_err *err)
{
    ncclDataType_t type = ncclFloat32;

    if (!find_type(exchange->dtype, &type))
        return fr_fail(err, FR_CHECK, "NCCL has no %s",
                       fr_dtype_name(exchange->dtype));
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess)
        return fail(code, comm->nccl, "group", err);
    ncclResult_t asked = ask(comm, exchange, type, stream);
    ncclResult_t ended = ncclGroupEnd();
    if (asked != ncclSuccess && asked != ncclInProgress)
        return fail(asked, comm->nccl, "enqueue", err);
    return settle(comm->nccl, ended, comm->timeout_s, "enqueue", err);
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)

/* The group is planned and not launched; NCCL answers in microseconds. */
static fr_status simulate(const fr_gpu_comm *alike,
                          const fr_gpu_exchange *exchange, cudaStream_t stream,
                          double *out_s, fr_err *err)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    ncclDataType_t type = ncclFloat32;

    *out_s = 0;
    if (!find_type(exchange->dtype, &type))
        return FR_OK;
    ncclResult_t code = ncclGroupStart();
    if (code != ncclSuccess)
        return fail(code, alike->nccl, "group", err);
    ncclResult_t asked = ask(alike, exchange, type, stream);
    ncclResult_t ended = ncclGroupSimulateEnd(&info);
    if (asked != ncclSuccess || ended != ncclSuccess)
        return fail(asked != ncclSuccess ? asked : ended, alike->nccl,
                    "estimate", err);
    if (info.estimatedTime > 0) /* not said: negative or NaN */
        *out_s = 1e-6 * (double)info.estimatedTime;
    return FR_OK;
}

/*
 * On a non-blocking communicator the group would be launched in earnest
 * (groupLaunchNonBlocking of src/group.cc, NCCL 2.22 to 2.28, drops what it
 * should simulate): so the same ranks meet in a blocking one for a while.
 */
static fr_status nccl_estimate(fr_gpu_comm *comm, const fr_gpu_exchange *list,
                               size_t n, fr_gpu_stream stream, double *out_s,
                               fr_err *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    fr_gpu_comm alike = *comm;

    alike.nccl = NULL;
    config.blocking = 1;
    fr_nccl_tuner_use(comm->choices);
    ncclResult_t code =
        ncclCommSplit(comm->nccl, 0, comm->position, &alike.nccl, &config);
    fr_status status =
        settle(comm->nccl, code, comm->timeout_s, "estimate", err);
    fr_nccl_tuner_use(NULL);
    for (size_t i = 0; status == FR_OK && i < n; i++)
        status = simulate(&alike, &list[i], stream, &out_s[i], err);
    if (alike.nccl != NULL)
        (void)ncclCommDestroy(alike.nccl);
    return status;
}

#else

static fr_status nccl_estimate(fr_gpu_comm *comm, const fr_gpu_exchange *list,
                               size_t n, fr_gpu_stream stream, double *out_s,
                               fr_err *err)
{
    (void)comm;
    (void)list;
    (void)stream;
    (void)err;
    for (size_t i = 0; i < n; i++)
        out_s[i] = 0;
    return FR_OK;
}

#endif

/* Best effort: where registering does nothing it costs nothing. */
static fr_status nccl_register(fr_gpu_comm *comm, void *memory,
                               uint64_t n_bytes, fr_err *err)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    if (ncclCommRegister(comm->nccl, memory, n_bytes, &comm->handle) !=
        ncclSuccess)
        comm->handle = NULL;
#else
    (void)comm;
    (void)memory;
    (void)n_bytes;
#endif
    (void)err;
    return FR_OK;
}

const fr_gpu_comm_driver fr_gpu_comm_driver_nccl = {
    .name = "nccl",
    .version = nccl_version,
    .make_id = nccl_make_id,
    .init = nccl_init,
    .split = nccl_split,
    .destroy = nccl_destroy,
    .abort = nccl_abort,
    .check = nccl_check,
    .enqueue = nccl_enqueue,
    .estimate = nccl_estimate,
    .register_memory = nccl_register,
};
