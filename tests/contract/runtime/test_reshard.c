/*
 * Checkpoints are of global tensors: twelve layouts of a decoder with tied
 * ends, and twelve of one with experts.
 *
 * Each layout trains two steps and leaves a checkpoint; its tensors, put
 * together, are those of one process to rounding.  Converted to another layout
 * they are the same to the bit, and that layout trains on from the other's own
 * files with the losses of one process.  In the test suite each layout is
 * converted to the next one; `make reshard` (RESHARD=all) does all pairs.
 */
#include "program/lower/step/lower.h"
#include "runtime/checkpoint/checkpoint_convert.h"
#include "runtime/comm/transport.h"
#include "runtime/run/run.h"
#include "tests/check.h"
#include "tests/contract/runtime/layouts/layout_rows.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_LAYOUTS = 12, N_FAMILIES = 2, N_BEFORE = 2, N_STEPS = 4 };

#define ADAMW .optimizer = FR_OPTIMIZER_ADAMW

static const layout_row gpt2[N_LAYOUTS] = {
    {.name = "alone", .micro_batch = 8, ADAMW},
    {.name = "dp4 zero1", .dp = 4, .zero = 1, .micro_batch = 2, ADAMW},
    {.name = "tp4", .tp = 4, .micro_batch = 8, ADAMW},
    {.name = "pp2 interleaved",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .schedule = FR_SCHEDULE_INTERLEAVED,
     ADAMW},
    {.name = "dp4 zero3 groups of 2",
     .dp = 4,
     .zero = 3,
     .zero_group = 2,
     .micro_batch = 2,
     ADAMW},
    {.name = "pp2 zb-v",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_ZB_V,
     ADAMW},
    {.name = "tp2 dp2 zero2",
     .tp = 2,
     .dp = 2,
     .zero = 2,
     .micro_batch = 4,
     ADAMW},
    {.name = "pp4 1f1b", .pp = 4, .micro_batch = 2, ADAMW},
    {.name = "cp2 dp2 zero3",
     .cp = 2,
     .dp = 2,
     .zero = 3,
     .micro_batch = 2,
     .is_flash = true,
     ADAMW},
    {.name = "tp2 pp2", .tp = 2, .pp = 2, .micro_batch = 4, ADAMW},
    {.name = "dp2 pp2 zero3",
     .dp = 2,
     .pp = 2,
     .zero = 3,
     .micro_batch = 2,
     ADAMW},
    {.name = "dp2 small buckets",
     .dp = 2,
     .micro_batch = 4,
     .bucket_bytes = 40000,
     ADAMW},
};

#define MIXTRAL .family = LAYOUT_MIXTRAL, .optimizer = FR_OPTIMIZER_ADAMW

static const layout_row mixtral[N_LAYOUTS] = {
    {.name = "alone", .micro_batch = 8, MIXTRAL},
    {.name = "ep2 zero1",
     .dp = 2,
     .ep = 2,
     .zero = 1,
     .micro_batch = 4,
     MIXTRAL},
    {.name = "tp2", .tp = 2, .micro_batch = 4, MIXTRAL},
    {.name = "dp4 ep2 zero2",
     .dp = 4,
     .ep = 2,
     .zero = 2,
     .micro_batch = 1,
     MIXTRAL},
    {.name = "pp2 zb-v",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_ZB_V,
     MIXTRAL},
    {.name = "tp2 ep2", .dp = 2, .tp = 2, .ep = 2, .micro_batch = 2, MIXTRAL},
    {.name = "pp2 ep2",
     .dp = 2,
     .pp = 2,
     .ep = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_1F1B,
     MIXTRAL},
    {.name = "pp4", .pp = 4, .micro_batch = 2, MIXTRAL},
    {.name = "ep2", .dp = 2, .ep = 2, .micro_batch = 2, MIXTRAL},
    {.name = "dp4", .dp = 4, .micro_batch = 2, MIXTRAL},
    {.name = "dp2 zero3", .dp = 2, .zero = 3, .micro_batch = 2, MIXTRAL},
    {.name = "tp2 pp2", .tp = 2, .pp = 2, .micro_batch = 4, MIXTRAL},
};

static const layout_row *const families[N_FAMILIES] = {gpt2, mixtral};

/* All elements of all tensors, of parameters and of state, in one order. */
typedef struct whole {
    fr_tensor_slices slices; /* of whole tensors; at_bytes: in `bytes` */
    unsigned char *bytes;
    uint64_t n_bytes;
} whole;

static void whole_release(whole *w)
{
    fr_vec_release(&w->slices);
    free(w->bytes);
}

/* ---- training ----------------------------------------------------------- */

typedef struct show {
    fr_program *program;
    fr_loopback *hub;
    fr_run_options options;
    double loss[N_STEPS];
    fr_status status[LAYOUT_MAX_RANKS];
    fr_err err[LAYOUT_MAX_RANKS];
} show;

typedef struct player {
    show *s;
    int64_t rank;
} player;

static void *play(void *context)
{
    const player *p = context;
    show *s = p->s;
    fr_err *err = &s->err[p->rank];
    fr_transport *transport = NULL;
    fr_run_result result = {0};
    fr_status status =
        fr_transport_loopback_create(s->hub, p->rank, 20, &transport, err);

    if (status == FR_OK)
        status =
            fr_run_over(transport, s->program, &s->options, NULL, &result, err);
    s->status[p->rank] = status;
    for (int64_t i = 0; p->rank == 0 && i < result.n_steps; i++)
        s->loss[result.resumed_from_step + i] = result.loss[i];
    fr_run_result_release(&result);
    fr_transport_destroy(transport);
    return NULL;
}

static fr_program *lower(const layout_row *row)
{
    const fr_job job = layout_job(row, N_STEPS);
    const fr_plan plan = layout_plan(row, LAYOUT_CPU);
    const fr_placement placement = {.n_ranks = fr_plan_world(&plan)};
    fr_program *program = NULL;
    fr_model model;
    fr_err err = {0};

    if (!CHECK_OK(layout_model(row, &model, &err), &err))
        return NULL;
    CHECK_OK(fr_lower(&model, &job, &plan, &placement, &program, &err), &err);
    fr_model_release(&model);
    return program;
}

/* Trains up to n_steps, from the checkpoint in `dir` where it has one. */
static bool train(const layout_row *row, const char *dir, int64_t n_steps,
                  double loss[N_STEPS])
{
    const int world = layout_world(row);
    pthread_t threads[LAYOUT_MAX_RANKS];
    player players[LAYOUT_MAX_RANKS];
    show s = {.program = lower(row)};
    fr_err err = {0};
    bool is_ok = true;

    if (s.program == NULL ||
        !CHECK_OK(fr_loopback_create(world, NULL, &s.hub, &err), &err))
        return false;
    fr_run_options_init(&s.options);
    s.options.checkpoint_dir = dir;
    s.options.is_resumed = true;
    s.options.n_steps = n_steps;
    for (int i = 0; i < world; i++) {
        players[i] = (player){&s, i};
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int i = 0; i < world; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < world; i++)
        is_ok = CHECK_OK(s.status[i], &s.err[i]) && is_ok;
    memcpy(loss, s.loss, sizeof s.loss);
    fr_loopback_destroy(s.hub);
    fr_program_destroy(s.program);
    return is_ok;
}

/* ---- checkpoints -------------------------------------------------------- */

static const char *dir_of(const char *what, int i, char dir[CHECK_PATH_BYTES])
{
    check_tmp_path(dir, "test_reshard.%d.%s-%d", (int)getpid(), what, i);
    return dir;
}

static void remove_dir(const char *dir)
{
    char command[CHECK_PATH_BYTES + 16];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    CHECK(system(command) == 0);
}

/* Whole tensors by the layout of one process, which has no part of any. */
static bool read_whole(const layout_row *any, const char *dir, int64_t n_done,
                       whole *out)
{
    const layout_row alone = layout_alone(any);
    fr_program *program = lower(&alone);
    fr_shard_reader *reader = NULL;
    fr_err err = {0};

    *out = (whole){0};
    if (program == NULL)
        return false;
    bool is_ok =
        CHECK_OK(fr_tensor_slices_held(program, 0, &out->slices, &err), &err) &&
        CHECK_OK(fr_shard_reader_open(dir, n_done, &reader, &err), &err);
    for (size_t i = 0; i < out->slices.n; i++) {
        out->slices.items[i].at_bytes = out->n_bytes;
        out->n_bytes += fr_tensor_slice_bytes(&out->slices.items[i]);
    }
    out->bytes = calloc(out->n_bytes + 1, 1);
    for (size_t i = 0; is_ok && i < out->slices.n; i++) {
        const fr_tensor_slice *slice = &out->slices.items[i];
        is_ok = CHECK_OK(fr_shard_reader_get(
                             reader, slice, out->bytes + slice->at_bytes, &err),
                         &err);
    }
    fr_shard_reader_close(reader);
    fr_program_destroy(program);
    return is_ok;
}

/* Within rounding of what one process has: an element of another place would
 * be far from it. */
static void compare_near(const char *name, const whole *mine, const whole *own)
{
    double worst = 0;

    for (size_t i = 0; i < own->slices.n; i++) {
        const fr_tensor_slice *slice = &own->slices.items[i];
        const uint64_t n = fr_tensor_slice_bytes(slice) / sizeof(float);
        const float *a =
            (const float *)(const void *)(mine->bytes + slice->at_bytes);
        const float *b =
            (const float *)(const void *)(own->bytes + slice->at_bytes);
        double most = 1e-12, far = 0;
        for (uint64_t k = 0; k < n; k++) {
            most = fmax(most, fabs((double)b[k]));
            far = fmax(far, fabs((double)a[k] - b[k]));
        }
        /* Adam turns rounding of the smallest gradients into steps. */
        worst = fmax(worst, slice->what == 0 ? far / 0.01 : far / most);
    }
    check_that(worst < 0.05, __FILE__, __LINE__, "%s: a tensor differs by %.3g",
               name, worst);
}

static void check_conversion(const layout_row *from, const layout_row *to,
                             const char *dir, const whole *tensors)
{
    char path[CHECK_PATH_BYTES], name[128];
    fr_program *program = lower(to);
    fr_shard_reader *reader = NULL;
    whole after;
    fr_err err = {0};

    (void)snprintf(name, sizeof name, "%s to %s", from->name, to->name);
    dir_of("converted", 0, path);
    if (program != NULL &&
        CHECK_OK(fr_shard_reader_open(dir, N_BEFORE, &reader, &err), &err) &&
        CHECK_OK(fr_checkpoint_convert(reader, dir, program, path, &err),
                 &err) &&
        read_whole(to, path, N_BEFORE, &after)) {
        check_that(after.n_bytes == tensors->n_bytes &&
                       memcmp(after.bytes, tensors->bytes, after.n_bytes) == 0,
                   __FILE__, __LINE__, "%s: other tensors", name);
        whole_release(&after);
    }
    fr_shard_reader_close(reader);
    fr_program_destroy(program);
    remove_dir(path);
}

/* The other layout goes on from the very files. */
static void check_resumption(const layout_row *from, const layout_row *to,
                             const char *dir, const double *undisturbed)
{
    char path[CHECK_PATH_BYTES], command[3 * CHECK_PATH_BYTES];
    double loss[N_STEPS];

    dir_of("resumed", 0, path);
    (void)snprintf(command, sizeof command, "cp -r '%s' '%s'", dir, path);
    if (CHECK(system(command) == 0) && train(to, path, N_STEPS, loss))
        for (int i = N_BEFORE; i < N_STEPS; i++)
            check_that(fabs(loss[i] - undisturbed[i]) <= 1e-4 * undisturbed[i],
                       __FILE__, __LINE__,
                       "%s to %s: step %d: loss %.9g, alone %.9g", from->name,
                       to->name, i, loss[i], undisturbed[i]);
    remove_dir(path);
}

static void check_family(const layout_row rows[N_LAYOUTS])
{
    const char *wish = getenv("RESHARD");
    const bool is_all = wish != NULL && strcmp(wish, "all") == 0;
    char dir[CHECK_PATH_BYTES], alone_dir[CHECK_PATH_BYTES];
    double undisturbed[N_STEPS], loss[N_STEPS];
    whole alone, tensors;
    int n_pairs = 0;

    dir_of("undisturbed", 0, alone_dir);
    if (!train(&rows[0], alone_dir, N_STEPS, undisturbed))
        return;
    remove_dir(alone_dir);
    if (!train(&rows[0], alone_dir, N_BEFORE, loss) ||
        !read_whole(&rows[0], alone_dir, N_BEFORE, &alone))
        return;
    for (int i = 0; i < N_LAYOUTS; i++) {
        dir_of("layout", i, dir);
        if (train(&rows[i], dir, N_BEFORE, loss) &&
            read_whole(&rows[i], dir, N_BEFORE, &tensors)) {
            compare_near(rows[i].name, &tensors, &alone);
            for (int k = 0; k < N_LAYOUTS; k++)
                if (is_all || k == (i + 1) % N_LAYOUTS) {
                    check_conversion(&rows[i], &rows[k], dir, &tensors);
                    check_resumption(&rows[i], &rows[k], dir, undisturbed);
                    n_pairs++;
                }
            whole_release(&tensors);
        }
        remove_dir(dir);
    }
    whole_release(&alone);
    remove_dir(alone_dir);
    if (is_all)
        printf("# %d pairs of layouts\n", n_pairs);
}

static void test_dense(void)
{
    check_family(families[0]);
}

static void test_experts(void)
{
    check_family(families[1]);
}

CHECK_MAIN({"dense", test_dense}, {"experts", test_experts})
