/*
 * NCCL on one GPU, through the runtime's table: a communicator of one and a
 * split of it that is wanted by rings (NCCL loads the tuner from this
 * program), sums, an estimate, and the topology that it writes.
 */
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "runtime/backend/gpu_driver.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

#ifdef FR_EMULATED

static void test_alone(void)
{
    SKIP("there is no NCCL for emulated devices");
}

#else

enum { N = 1000 };

typedef struct bench {
    const fr_gpu_system *system;
    fr_gpu *gpu;
    fr_gpu_stream stream;
    fr_gpu_event *event;
    fr_gpu_comm *world, *comm;
    fr_gpu_choices choices;
    void *device, *host;
} bench;

static bool wait(const bench *t, fr_err *err)
{
    double begin_s = fr_clock_s();
    bool is_done = false;

    if (!CHECK_OK(
            t->system->driver->event_record(t->gpu, t->event, t->stream, err),
            err))
        return false;
    while (!is_done && fr_clock_s() - begin_s < 20)
        if (!CHECK_OK(
                t->system->driver->event_query(t->gpu, t->event, &is_done, err),
                err))
            return false;
    CHECK(is_done);
    return is_done;
}

static bool connect(bench *t, fr_err *err)
{
    const fr_gpu_comm_driver *comm = t->system->comm;
    fr_gpu_comm_id id;

    t->choices = (fr_gpu_choices){1,
                                  {{.op = FR_OP_ALL_REDUCE,
                                    .algorithm = FR_COLLECTIVE_RING,
                                    .max_bytes = UINT64_MAX}}};
    return CHECK_OK(comm->make_id(t->system->context, &id, err), err) &&
           CHECK_OK(comm->init(t->gpu, &id, 1, 0, true, 30, &t->world, err),
                    err) &&
           CHECK_OK(comm->split(t->world, 0, 0, &t->choices, &t->comm, err),
                    err);
}

static bool set_up(bench *t, fr_err *err)
{
    const fr_gpu_driver *driver = t->system->driver;
    const uint64_t n_bytes = 2 * N * sizeof(float);

    return CHECK_OK(driver->stream_create(t->gpu, false, &t->stream, err),
                    err) &&
           CHECK_OK(driver->event_create(t->gpu, false, &t->event, err), err) &&
           CHECK_OK(driver->alloc(t->gpu, n_bytes, &t->device, err), err) &&
           CHECK_OK(driver->alloc_host(t->gpu, n_bytes, &t->host, err), err) &&
           connect(t, err);
}

/* A sum over one rank is the operand. */
static void check_sum(bench *t, fr_err *err)
{
    const fr_gpu_driver *driver = t->system->driver;
    float *in = t->host, *out = in + N;
    fr_gpu_exchange exchange = {.op = FR_OP_ALL_REDUCE,
                                .dtype = FR_DTYPE_F32,
                                .n = N,
                                .peer = -1,
                                .src = t->device,
                                .dst = (float *)t->device + N};
    double estimate_s = -1;

    for (int i = 0; i < N; i++)
        in[i] = (float)i * 0.375F;
    CHECK_OK(t->system->comm->estimate(t->comm, &exchange, 1, t->stream,
                                       &estimate_s, err),
             err);
    CHECK(estimate_s >= 0);
    if (CHECK_OK(driver->copy(t->gpu, t->stream, t->device, in,
                              N * sizeof(float), err),
                 err) &&
        CHECK_OK(t->system->comm->enqueue(t->comm, &exchange, t->stream, err),
                 err) &&
        CHECK_OK(driver->copy(t->gpu, t->stream, out, exchange.dst,
                              N * sizeof(float), err),
                 err) &&
        wait(t, err))
        CHECK(memcmp(in, out, N * sizeof(float)) == 0);
    CHECK_OK(t->system->comm->check(t->comm, err), err);
}

static void release(bench *t)
{
    const fr_gpu_driver *driver = t->system->driver;

    t->system->comm->destroy(t->comm);
    t->system->comm->destroy(t->world);
    driver->stream_destroy(t->gpu, t->stream);
    driver->event_destroy(t->gpu, t->event);
    driver->free(t->gpu, t->device);
    driver->free_host(t->gpu, t->host);
    driver->close(t->gpu);
}

static void test_alone(void)
{
    char path[CHECK_PATH_BYTES], why[200];
    fr_err err = {0};
    bench t = {0};
    int n = 0;

    if (fr_gpu_system_cuda(&t.system, &err) != FR_OK ||
        t.system->driver->count(t.system->context, &n, &err) != FR_OK) {
        (void)snprintf(why, sizeof why, "%.190s", err.text);
        SKIP(why);
    }
    if (t.system->comm == NULL)
        SKIP("this build has no NCCL");
    check_tmp_path(path, "test_cuda_nccl.%d.xml", (int)getpid());
    (void)setenv("NCCL_TOPO_DUMP_FILE", path, 0);
    if (!CHECK_OK(t.system->driver->open(t.system->context, 0, &t.gpu, &err),
                  &err))
        return;
    if (set_up(&t, &err))
        check_sum(&t, &err);
    CHECK(fr_file_exists(getenv("NCCL_TOPO_DUMP_FILE")));
    (void)unlink(path);
    release(&t);
}

#endif

CHECK_MAIN({"alone", test_alone})
