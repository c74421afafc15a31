/*
 * Failures of GPUs, on fake ones: every rank ends in time and names the
 * operation and the step; and the results of a run: checkpoints from the
 * memory of devices, timelines, memory.
 */
#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

#include <stdlib.h>
#include <unistd.h>

static bool says(const gpu_show *show, const char *needle)
{
    for (int i = 0; i < GPU_FAKE_MAX_RANKS; i++)
        if (strstr(show->err[i].text, needle) != NULL)
            return true;
    return false;
}

/* All ranks fail, soon, and one of them says why. */
static void check_fails(gpu_show *show, fr_status status, const char *why)
{
    int64_t world = fr_plan_world(&show->plan);

    if (!gpu_show_perform(show))
        return;
    for (int64_t i = 0; i < world; i++)
        check_that(show->status[i] == status, __FILE__, __LINE__,
                   "rank %d ends with %d: %s", (int)i, (int)show->status[i],
                   show->err[i].text);
    check_that(says(show, why), __FILE__, __LINE__, "nobody says '%s' but: %s",
               why, show->err[0].text);
    check_that(show->took_s < 15, __FILE__, __LINE__, "it took %g s",
               show->took_s);
}

static void set_up_faulty(gpu_show *show, gpu_fake *fake, fr_op op, int kind)
{
    gpu_show_init(show);
    gpu_fake_init(fake, 2);
    show->fake = fake;
    show->plan.dp = 2;
    show->plan.micro_batch = 2;
    show->options.timeout_s = 0.8;
    fake->fault.device = 1;
    fake->fault.op = op;
    /* Later there is a graph, and nothing to enqueue. */
    fake->fault.i_step = kind == GPU_FAKE_ENQUEUE_FAILS ? 0 : 3;
    fake->fault.kind = (unsigned)kind;
}

static void check_fault(fr_op op, int kind, const char *why)
{
    gpu_show show;
    gpu_fake fake;

    set_up_faulty(&show, &fake, op, kind);
    check_fails(&show, FR_FAILURE, why);
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

static void test_kernel_fails(void)
{
    check_fault(FR_OP_GELU_BWD, GPU_FAKE_KERNEL_FAILS,
                "rank 1: step 3: an illegal memory access");
    check_fault(FR_OP_GELU_BWD, GPU_FAKE_ENQUEUE_FAILS,
                "rank 1: step 0, gelu_bwd: invalid configuration");
}

static void test_rank_hangs(void)
{
    /* Rank 1's kernel never ends: it finds out, unless rank 0, alone in a
     * reduction, is the first. */
    check_fault(FR_OP_LINEAR_WGRAD, GPU_FAKE_RANK_HANGS, "0.8 s");
    /* The collective itself. */
    check_fault(FR_OP_ALL_REDUCE, GPU_FAKE_RANK_HANGS, "all_reduce over");
}

/* One rank alone, in a step that is launched and in one that is a graph. */
static void test_kernel_hangs(void)
{
    for (int64_t i_step = 0; i_step < 4; i_step += 3) {
        char why[64];
        gpu_show show;
        gpu_fake fake;

        (void)snprintf(why, sizeof why, "rank 0: step %d, call ", (int)i_step);
        set_up_faulty(&show, &fake, FR_OP_GELU_BWD, GPU_FAKE_RANK_HANGS);
        fake.fault.device = 0;
        fake.fault.i_step = i_step;
        show.plan.dp = 1;
        check_fails(&show, FR_FAILURE, why);
        CHECK(says(&show, "bwd"));
        CHECK(says(&show, "a kernel has not ended after 0.8 s"));
        CHECK_INT(atomic_load(&fake.n_abandoned), 1);
        gpu_show_release(&show);
        gpu_fake_release(&fake);
    }
}

/* A step of thousands of launches behind a kernel that hangs: the host is never
 * so far ahead that a launch waits for it, which nobody would see. */
static void test_long_step_hangs(void)
{
    gpu_show show;
    gpu_fake fake;

    set_up_faulty(&show, &fake, FR_OP_GELU_BWD, GPU_FAKE_RANK_HANGS);
    fake.fault.device = 0;
    fake.fault.i_step = 1;
    show.is_launched = true;
    show.plan.dp = 1;
    show.plan.micro_batch = 1;
    show.job.global_batch = 64;
    check_fails(&show, FR_FAILURE, "rank 0: step 1, call ");
    CHECK(show.program->rank_programs[0].n_calls > 500);
    CHECK(atomic_load(&fake.most_pending) > 64);
    CHECK(atomic_load(&fake.most_pending) < 1000);
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

/* A device that keeps what is page-locked, as one that was given up, and calls
 * the host when the run is over. */
typedef struct late_host {
    gpu_fake fake;
    void (*fn)(void *context); /* of the first call */
    void *context;
    void *blocks[GPU_FAKE_RANGES];
    int n_blocks;
} late_host;

static fr_status call_late(fr_gpu *gpu, fr_gpu_stream stream,
                           void (*fn)(void *context), void *context,
                           fr_err *err)
{
    late_host *late = (late_host *)(void *)gpu->fake;

    (void)stream;
    (void)err;
    if (late->fn == NULL) {
        late->fn = fn;
        late->context = context;
    }
    return FR_OK;
}

static void keep_host(fr_gpu *gpu, void *host)
{
    late_host *late = (late_host *)(void *)gpu->fake;

    if (host != NULL)
        late->blocks[late->n_blocks++] = host;
}

/* Bytes of all page-locked memory. */
static uint64_t sum_of(const gpu_fake *fake)
{
    uint64_t sum = 0;

    for (int i = 0; i < GPU_FAKE_RANGES; i++)
        for (uint64_t k = 0; k < fake->pinned[i].n_bytes; k++)
            /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
            sum = 31 * sum + ((const unsigned char *)fake->pinned[i].begin)[k];
    return sum;
}

/* A step of the optimizer on the host that begins after the run does nothing.
 */
static void test_late_step_on_host(void)
{
    gpu_show show;
    late_host late = {0};

    set_up_faulty(&show, &late.fake, FR_OP_GELU_BWD, GPU_FAKE_KERNEL_FAILS);
    late.fake.driver.call_host = call_late;
    late.fake.driver.free_host = keep_host;
    late.fake.fault.device = 0;
    show.plan.dp = 1;
    show.plan.is_optimizer_offloaded = true;
    check_fails(&show, FR_FAILURE, "an illegal memory access");
    gpu_show_release(&show);
    if (CHECK(late.fn != NULL)) {
        uint64_t sum = sum_of(&late.fake);
        late.fn(late.context);
        CHECK(sum_of(&late.fake) == sum);
    }
    for (int i = 0; i < late.n_blocks; i++)
        free(late.blocks[i]);
    gpu_fake_release(&late.fake);
}

static void test_library_fails(void)
{
    check_fault(FR_OP_ALL_REDUCE, GPU_FAKE_LIBRARY_FAILS,
                "remote process exited");
}

static void test_transfer_hangs(void)
{
    gpu_show show;
    gpu_fake fake;

    set_up_faulty(&show, &fake, FR_OP_SEND, GPU_FAKE_RANK_HANGS);
    show.plan.dp = 1;
    show.plan.pp = 2;
    /* Either side may be the first to give up. */
    check_fails(&show, FR_FAILURE, "over pp (call");
    CHECK(says(&show, "waited 0.8 s for rank "));
    CHECK(atomic_load(&fake.n_aborted) > 0);
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

/* A load of a kernel waits for work that may wait for another rank: all kernels
 * have been loaded when the first exchange begins. */
static void test_loaded(void)
{
    gpu_show show;
    gpu_fake fake;

    gpu_show_init(&show);
    gpu_fake_init(&fake, 4);
    show.fake = &fake;
    show.plan.dp = show.plan.pp = 2;
    show.plan.zero_stage = 1;
    show.plan.micro_batch = 2;
    show.plan.bucket_bytes = 4096;
    CHECK(gpu_show_perform_well(&show));
    CHECK_INT(atomic_load(&fake.n_late_loads), 0);
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

static void test_devices(void)
{
    gpu_show show;
    gpu_fake fake;

    gpu_show_init(&show);
    gpu_fake_init(&fake, 0);
    show.fake = &fake;
    check_fails(&show, FR_FAILURE, "no driver");
    gpu_show_release(&show);
    gpu_fake_release(&fake);

    gpu_show_init(&show);
    gpu_fake_init(&fake, 1);
    show.fake = &fake;
    show.plan.dp = 2;
    check_fails(&show, FR_INFEASIBLE, "2 ranks on ");
    CHECK(says(&show, "shows them 1 GPU (ranks 0 and 1 share 0000:00:00.0)"));
    gpu_show_release(&show);
    gpu_fake_release(&fake);

    gpu_show_init(&show);
    gpu_fake_init(&fake, 2);
    fake.memory_bytes = 100000;
    show.fake = &fake;
    check_fails(&show, FR_NO_MEMORY, "for the slab");
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

/* Ranks that share a device copy by streams that wait for no other rank. */
static void test_shared_offload(void)
{
    for (int is_optimizer = 0; is_optimizer < 2; is_optimizer++) {
        gpu_show show;
        gpu_fake fake;

        gpu_show_init(&show);
        gpu_fake_init(&fake, 1);
        show.fake = &fake;
        show.is_shared = true;
        show.plan.dp = 2;
        show.plan.is_optimizer_offloaded = is_optimizer != 0;
        show.plan.activation_offload_frac = is_optimizer ? 0 : 0.5;
        check_fails(&show, FR_INPUT, "leave --share-gpu or the offload out");
        gpu_show_release(&show);
        gpu_fake_release(&fake);
    }
}

static void test_no_kernel(void)
{
    gpu_show show;
    gpu_fake fake;

    gpu_show_init(&show);
    gpu_fake_init(&fake, 1);
    show.fake = &fake;
    show.plan.execution.kernels = FR_KERNELS_EAGER;
    show.plan.precision = FR_DTYPE_BF16;
    check_fails(&show, FR_INPUT, "there is no kernel yet for elementwise");
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

static void perform_part(gpu_fake *fake, const char *dir, int64_t n_steps,
                         bool is_resumed, gpu_show *show)
{
    gpu_show_init(show);
    show->fake = fake;
    show->plan.dp = 2;
    show->plan.zero_stage = 1;
    show->options.n_steps = n_steps;
    show->options.checkpoint_dir = dir;
    show->options.is_resumed = is_resumed;
    (void)gpu_show_perform_well(show);
}

/* On devices, and gone on with on the CPU. */
static void test_checkpoint(void)
{
    char dir[CHECK_PATH_BYTES], command[CHECK_PATH_BYTES + 16];
    gpu_show whole, first, second, cpu;
    gpu_fake fake;

    check_tmp_path(dir, "test_gpu_run.%d", (int)getpid());
    gpu_fake_init(&fake, 2);
    perform_part(&fake, NULL, 6, false, &whole);
    perform_part(&fake, dir, 3, false, &first);
    perform_part(NULL, dir, 6, true, &cpu);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    CHECK(system(command) == 0);
    gpu_show_release(&first);
    perform_part(&fake, dir, 3, false, &first);
    perform_part(&fake, dir, 6, true, &second);
    CHECK(system(command) == 0);
    CHECK_INT(second.result.resumed_from_step, 3);
    CHECK_INT(cpu.result.resumed_from_step, 3);
    if (whole.result.loss != NULL && second.result.loss != NULL &&
        cpu.result.loss != NULL) {
        CHECK(memcmp(whole.result.loss + 3, second.result.loss,
                     3 * sizeof(double)) == 0);
        CHECK_NEAR(cpu.result.loss[2], whole.result.loss[5], 1e-6);
    }
    gpu_show_release(&whole);
    gpu_show_release(&first);
    gpu_show_release(&second);
    gpu_show_release(&cpu);
    gpu_fake_release(&fake);
}

/* A span for every instruction of every rank, in the order of its lane. */
static void test_timeline(void)
{
    gpu_show show;
    gpu_fake fake;
    size_t n_expected = 0;

    gpu_show_init(&show);
    gpu_fake_init(&fake, 2);
    show.fake = &fake;
    show.plan.pp = 2;
    show.plan.micro_batch = 2;
    show.options.trace_steps = 2;
    if (gpu_show_perform_well(&show)) {
        for (uint32_t c = 0; c < 2; c++)
            for (uint32_t i = 0; i < show.program->rank_programs[c].n_calls;
                 i++)
                n_expected +=
                    2 *
                    show.program
                        ->segments
                            [show.program->rank_programs[c].calls[i].i_segment]
                        .n_instrs;
        CHECK_INT(show.timeline.n, n_expected);
        for (size_t i = 1; i < show.timeline.n; i++) {
            const fr_span *a = &show.timeline.at[i - 1];
            const fr_span *b = &show.timeline.at[i];
            CHECK(b->begin_ps >= 0 && b->end_ps >= b->begin_ps);
            if (a->rank == b->rank && a->lane == b->lane && a->step == b->step)
                CHECK(b->begin_ps >= a->end_ps);
        }
        CHECK(show.result.step_s_median > 0);
    }
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

/* Ranks that meet over sockets, with communicators and through the host. */
static void test_sockets(void)
{
    double loss[2] = {0};

    for (int is_shared = 0; is_shared < 2; is_shared++) {
        gpu_show show;
        gpu_fake fake;
        gpu_show_init(&show);
        gpu_fake_init(&fake, is_shared ? 1 : 4);
        show.fake = &fake;
        show.is_shared = is_shared != 0;
        show.port = 22000 + is_shared + (int)(getpid() % 20000);
        show.plan.dp = show.plan.pp = 2;
        show.plan.micro_batch = 2;
        if (gpu_show_perform_well(&show))
            loss[is_shared] = show.result.loss[5];
        gpu_show_release(&show);
        gpu_fake_release(&fake);
    }
    CHECK(loss[0] > 0);
    CHECK_NEAR(loss[0], loss[1], 1e-6);
}

/* A rank that fails informs the others at once, long before their limit. */
static void test_announcement(void)
{
    gpu_show show;
    gpu_fake fake;

    set_up_faulty(&show, &fake, FR_OP_GELU_BWD, GPU_FAKE_KERNEL_FAILS);
    show.options.timeout_s = 60;
    show.port = 22002 + (int)(getpid() % 20000);
    check_fails(&show, FR_FAILURE, "rank 1: step 3: an illegal memory access");
    CHECK_STR(show.err[0].text, show.err[1].text);
    gpu_show_release(&show);
    gpu_fake_release(&fake);
}

CHECK_MAIN({"kernel_fails", test_kernel_fails}, {"rank_hangs", test_rank_hangs},
           {"kernel_hangs", test_kernel_hangs},
           {"long_step_hangs", test_long_step_hangs},
           {"late_step_on_host", test_late_step_on_host},
           {"library_fails", test_library_fails},
           {"transfer_hangs", test_transfer_hangs}, {"loaded", test_loaded},
           {"devices", test_devices}, {"no_kernel", test_no_kernel},
           {"shared_offload", test_shared_offload},
           {"checkpoint", test_checkpoint}, {"timeline", test_timeline},
           {"sockets", test_sockets}, {"announcement", test_announcement})
