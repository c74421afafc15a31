/* Images of files as a vit takes them: every number of every patch in its
 * place, whatever share of the sequence, and a vit that trains on them. */
#include "core/system/fileio.h"
#include "program/lower/step/lower.h"
#include "runtime/data/data.h"
#include "runtime/run/run.h"
#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

#include <math.h>
#include <unistd.h>

enum {
    CHANNELS = 3,
    SIZE = 6,
    PATCH = 2,
    ACROSS = SIZE / PATCH,
    SEQ = 1 + ACROSS * ACROSS,
    NUMBERS = CHANNELS * PATCH * PATCH,
    BYTES = CHANNELS * SIZE * SIZE,
    N_IMAGES = 12,
    BATCH = 4,
    N_LABELS = 4,
    N_STEPS = 30
};

static const char *path(void)
{
    static char path_of[CHECK_PATH_BYTES];
    check_tmp_path(path_of, "test_image_patches.%d", (int)getpid());
    return path_of;
}

static int pixel_of(int image, int channel, int row, int col)
{
    return (image * 11 + channel * 83 + row * 23 + col * 41) % 251;
}

/* An image's label is told by its pixels. */
static bool write_images(void)
{
    unsigned char bytes[N_IMAGES * (1 + BYTES)], *at = bytes;
    fr_err err = {0};
    for (int i = 0; i < N_IMAGES; i++) {
        *at++ = (unsigned char)(i % N_LABELS);
        for (int c = 0; c < CHANNELS; c++)
            for (int row = 0; row < SIZE; row++)
                for (int col = 0; col < SIZE; col++)
                    *at++ = (unsigned char)pixel_of(i, c, row, col);
    }
    return CHECK_OK(fr_file_write(path(), bytes, sizeof bytes, &err), &err);
}

static fr_model vit(void)
{
    fr_model m;
    fr_model_init(&m);
    m.kind = FR_MODEL_ENCODER;
    m.n_layers = 2;
    m.hidden = 16;
    m.n_heads = m.n_kv_heads = 2;
    m.head_dim = 8;
    m.ffn_hidden = 32;
    m.activation = FR_ACTIVATION_GELU;
    m.has_qkv_bias = m.has_out_bias = m.has_mlp_bias = true;
    m.image_size = SIZE;
    m.patch_size = PATCH;
    m.n_channels = CHANNELS;
    m.n_labels = N_LABELS;
    m.max_seq = SEQ;
    return m;
}

static fr_job job_on(const char *data)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = BATCH;
    job.seq = SEQ;
    job.n_steps = N_STEPS;
    job.lr = 0.003;
    job.seed = 5;
    (void)snprintf(job.data, sizeof job.data, "%s", data);
    return job;
}

/* Is it the patch at `position` of the sequence of one of the images? */
static bool is_patch(const float *numbers, int image, int64_t position)
{
    for (int k = 0; k < NUMBERS; k++) {
        double want = 0;
        if (position > 0) {
            const int i = (int)position - 1, c = k / (PATCH * PATCH);
            const int row = i / ACROSS * PATCH + k / PATCH % PATCH;
            const int col = i % ACROSS * PATCH + k % PATCH;
            want = (pixel_of(image, c, row, col) / 255.0 - 0.5) / 0.5;
        }
        if (fabs((double)numbers[k] - want) > 1e-6)
            return false;
    }
    return true;
}

/* Each of n context-parallel ranks has the values of its places. */
static void check_share(fr_data *data, int32_t i_share, int32_t n_shares)
{
    enum { FIRST = 1, N = 2, STEP = 3 };
    const fr_sequence_share share = {i_share, n_shares};
    const int64_t len = fr_sequence_share_len(share, SEQ);
    float numbers[N * SEQ * NUMBERS];
    int32_t labels[N];
    fr_err err = {0};
    CHECK_OK(fr_data_load_images(data, STEP, FIRST, N, share, numbers, &err),
             &err);
    CHECK_OK(fr_data_load_labels(data, STEP, FIRST, N, labels, &err), &err);
    for (int i = 0; i < N; i++) {
        int n_right = 0;
        for (int image = labels[i]; image < N_IMAGES; image += N_LABELS) {
            bool is_it = true;
            for (int64_t t = 0; t < len; t++)
                is_it &= is_patch(numbers + (i * len + t) * NUMBERS, image,
                                  fr_sequence_position(share, len, t));
            n_right += is_it;
        }
        CHECK_INT(n_right, 1);
    }
}

static void test_patches(void)
{
    const fr_model model = vit();
    const fr_job job = job_on(path());
    fr_data *data = NULL;
    fr_err err = {0};
    if (!write_images() ||
        !CHECK_OK(fr_data_open_images(&job, &model, &data, &err), &err))
        return;
    check_share(data, 0, 1);
    for (int32_t i = 0; i < 5; i++)
        check_share(data, i, 5);
    fr_data_close(data);
    CHECK(unlink(path()) == 0);
}

static bool train(const char *data, fr_dtype precision, double *loss)
{
    const fr_model model = vit();
    const fr_job job = job_on(data);
    fr_plan plan;
    fr_program *program = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err err = {0};
    fr_plan_init(&plan);
    fr_run_options_init(&options);
    plan.micro_batch = BATCH / 2;
    plan.n_threads = 1;
    plan.precision = precision;
    plan.is_flash = true;
    plan.execution.kernels = FR_KERNELS_OWN;
    const bool is_ok =
        CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err), &err) &&
        CHECK_OK(fr_run(program, &options, NULL, &result, &err), &err);
    if (is_ok)
        memcpy(loss, result.loss, N_STEPS * sizeof *loss);
    fr_run_result_release(&result);
    fr_program_destroy(program);
    return is_ok;
}

static void test_training(void)
{
    double loss[N_STEPS], narrow[N_STEPS], made_up[N_STEPS];
    if (!write_images() || !train(path(), FR_DTYPE_F32, loss) ||
        !train(path(), FR_DTYPE_BF16, narrow) ||
        !train("", FR_DTYPE_F32, made_up))
        return;
    CHECK(loss[N_STEPS - 1] < 0.7 * loss[0]);
    CHECK(fabs(loss[0] - made_up[0]) > 1e-4);
    for (int i = 0; i < N_STEPS; i++)
        CHECK_WITHIN(narrow[i], loss[i], 0.05);
    CHECK(unlink(path()) == 0);
}

/* Losses on `fake`, or on the CPU where it is NULL. */
static bool show_on(gpu_fake *fake, int dp, int pp, bool is_launched,
                    double *loss)
{
    const fr_model model = vit();
    gpu_show show;
    gpu_show_init(&show);
    show.model = &model;
    show.job = job_on(path());
    show.job.n_steps = 6;
    show.plan.micro_batch = 1;
    show.plan.dp = dp;
    show.plan.pp = pp;
    show.fake = fake;
    show.is_launched = is_launched;
    const bool is_ok = gpu_show_perform_well(&show);
    if (is_ok)
        memcpy(loss, show.result.loss, 6 * sizeof *loss);
    gpu_show_release(&show);
    return is_ok;
}

/* The host reads, the device gets copies, also from a graph. */
static void test_gpus(void)
{
    double alone[6], loss[6];
    if (!write_images() || !show_on(NULL, 1, 1, false, alone))
        return;
    for (int way = 0; way < 4; way++) {
        gpu_fake fake;
        gpu_fake_init(&fake, 2);
        const int dp = 1 + way % 2;
        if (show_on(&fake, dp, 3 - dp, way > 1, loss))
            for (int i = 0; i < 6; i++)
                CHECK_NEAR(loss[i], alone[i], 1e-5);
        gpu_fake_release(&fake);
    }
    CHECK(unlink(path()) == 0);
}

CHECK_MAIN({"gpus", test_gpus}, {"patches", test_patches},
           {"training", test_training})
