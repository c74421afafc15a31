/* Files of images: records, IDX pairs, manifests, the order of epochs, values
 * against their definition, errors. */
#include "core/system/fileio.h"
#include "kernels/cpu/images/conv.h"
#include "program/lower/step/lower.h"
#include "runtime/data/data.h"
#include "runtime/run/run.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHANNELS = 3,
    SIZE = 5,
    PIXELS = SIZE * SIZE,
    BYTES = CHANNELS * PIXELS,
    N_FIRST = 23,
    N_SECOND = 14,
    N_IMAGES = N_FIRST + N_SECOND,
    BATCH = 4
};

static const double mean[] = {0.4914, 0.4822, 0.4465},
                    deviation[] = {0.247, 0.2435, 0.2616};

static const char *path(const char *name)
{
    static char path_of[CHECK_PATH_BYTES];
    check_tmp_path(path_of, "test_image_data.%d.%s", (int)getpid(), name);
    return path_of;
}

/* The first pixel tells which image it is. */
static unsigned char pixel_of(int image, int channel, int pixel)
{
    if (channel == 0 && pixel == 0)
        return (unsigned char)image;
    return (unsigned char)(image * 37 + channel * 101 + pixel * pixel * 7);
}

static int label_of(int image)
{
    return image * 3 % 10;
}

static void write_bytes(const char *name, const unsigned char *bytes, size_t n)
{
    fr_err err = {0};
    CHECK_OK(fr_file_write(path(name), bytes, n, &err), &err);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, (const unsigned char *)text, strlen(text));
}

/* Images [first, first + n), after n_label bytes of which the last one counts.
 */
static void write_records(const char *name, int first, int n, int n_label)
{
    unsigned char bytes[N_IMAGES * (BYTES + 2)], *at = bytes;
    for (int i = first; i < first + n; i++) {
        for (int k = 0; k < n_label; k++)
            *at++ = (unsigned char)(k + 1 == n_label ? label_of(i) : 250);
        for (int k = 0; k < BYTES; k++)
            *at++ = pixel_of(i, k / PIXELS, k % PIXELS);
    }
    write_bytes(name, bytes, (size_t)(at - bytes));
}

static fr_status open_as(const char *name, int64_t n_channels, int64_t n_labels,
                         fr_data **out, fr_err *err)
{
    const fr_model model = {.kind = FR_MODEL_LAYERS,
                            .n_channels = n_channels,
                            .image_size = SIZE,
                            .n_labels = n_labels};
    fr_job job;
    fr_job_init(&job);
    job.seed = 91;
    job.global_batch = BATCH;
    (void)snprintf(job.data, sizeof job.data, "%s", path(name));
    return fr_data_open_images(&job, &model, out, err);
}

static fr_status load(fr_data *data, int64_t i_step, int64_t first, int64_t n,
                      float *out, fr_err *err)
{
    return fr_data_load_images(data, i_step, first, n,
                               (fr_sequence_share){0, 1}, out, err);
}

static void expect_failure(const char *name, int64_t n_channels,
                           int64_t n_labels, const char *words)
{
    fr_data *data = NULL;
    fr_err err = {0};
    CHECK_FAILS(open_as(name, n_channels, n_labels, &data, &err), FR_INPUT,
                &err);
    check_that(strstr(err.text, words) != NULL, __FILE__, __LINE__,
               "'%s' is not in: %s", words, err.text);
}

/* Returns the image whose values these are. */
static int image_in(const float *values, bool is_usual)
{
    const double first = is_usual ? (double)values[0] * deviation[0] + mean[0]
                                  : (double)values[0] * 0.5 + 0.5;
    const int image = (int)lround(255 * first);
    for (int k = 0; k < BYTES; k++) {
        const int c = k % CHANNELS;
        const double pixel = pixel_of(image, c, k / CHANNELS);
        const double want = is_usual ? (pixel / 255 - mean[c]) / deviation[c]
                                     : (pixel / 255 - 0.5) / 0.5;
        CHECK(fabs((double)values[k] - want) < 1e-6);
    }
    return image;
}

/* Two epochs of a set: each image once in each, however batches are cut. */
static void check_epochs(fr_data *data, bool is_usual, bool is_in_order)
{
    float values[BATCH * BYTES], one[BYTES];
    int32_t labels[BATCH];
    int order[2 * N_IMAGES], n_moved = 0, n_other = 0;
    fr_err err = {0};
    for (int64_t step = 0; step * BATCH < 2 * N_IMAGES; step++) {
        CHECK_OK(load(data, step, 0, BATCH, values, &err), &err);
        CHECK_OK(fr_data_load_labels(data, step, 0, BATCH, labels, &err), &err);
        CHECK_OK(load(data, step, 2, 1, one, &err), &err);
        CHECK(memcmp(one, values + 2 * BYTES, sizeof one) == 0);
        for (int i = 0; i < BATCH && step * BATCH + i < 2 * N_IMAGES; i++) {
            const int image = image_in(values + i * BYTES, is_usual);
            CHECK_INT(labels[i], label_of(image));
            order[step * BATCH + i] = image;
        }
    }
    for (int epoch = 0; epoch < 2; epoch++) {
        int n_seen[N_IMAGES] = {0};
        for (int i = 0; i < N_IMAGES; i++) {
            const int image = order[epoch * N_IMAGES + i];
            if (CHECK(image >= 0 && image < N_IMAGES))
                n_seen[image]++;
            n_moved += image != i;
            n_other += image != order[i];
        }
        for (int i = 0; i < N_IMAGES; i++)
            CHECK_INT(n_seen[i], 1);
    }
    CHECK(is_in_order ? n_moved == 0 : n_moved > N_IMAGES);
    CHECK(is_in_order ? n_other == 0 : n_other > N_IMAGES / 2);
}

static void check_set(const char *name, bool is_usual, bool is_in_order)
{
    fr_data *data = NULL;
    fr_err err = {0};
    if (!CHECK_OK(open_as(name, CHANNELS, 10, &data, &err), &err))
        return;
    CHECK(fr_data_has_images(data));
    check_epochs(data, is_usual, is_in_order);
    fr_data_close(data);
}

static void write_manifest(const char *name, const char *members)
{
    char text[2 * CHECK_PATH_BYTES + 512], files[2][CHECK_PATH_BYTES];
    (void)snprintf(files[0], sizeof files[0], "%s", path("first"));
    (void)snprintf(files[1], sizeof files[1], "%s", path("second"));
    (void)snprintf(text, sizeof text,
                   "{\"schema\": \"forerun.images/1\", %s\n"
                   "\"files\": [{\"path\": \"%s\"}, {\"path\": \"%s\"}]}",
                   members, fr_path_name(files[0]), files[1]);
    write_text(name, text);
}

static void test_records(void)
{
    write_records("whole", 0, N_IMAGES, 1);
    check_set("whole", false, false);
    write_records("whole", 0, N_IMAGES, 2);
    check_set("whole", false, false);
    for (int n_label = 1; n_label <= 2; n_label++) {
        write_records("first", 0, N_FIRST, n_label);
        write_records("second", N_FIRST, N_SECOND, n_label);
        write_manifest("set.json", "\"mean\": [0.4914, 0.4822, 0.4465],"
                                   "\"std\": [0.247, 0.2435, 0.2616],");
        check_set("set.json", true, false);
        write_manifest("set.json", "\"shuffle\": \"none\",");
        check_set("set.json", false, true);
    }
}

static void test_bad_records(void)
{
    unsigned char bytes[2 * (BYTES + 1)] = {0};
    for (size_t n = 0; n < sizeof bytes; n++)
        if (n == 0 || (n % (BYTES + 1) != 0 && n % (BYTES + 2) != 0)) {
            write_bytes("short", bytes, n);
            expect_failure("short", CHANNELS, 10, "are not records of");
        }
    write_records("whole", 0, N_IMAGES, 1);
    expect_failure("whole", CHANNELS, 9, "label 9 of image 3, the model has 9");
    expect_failure("whole", CHANNELS + 1, 10, "are not records of");
    expect_failure("whole", 65, 10, "more than 64 channels");
    unsigned char *both = calloc((BYTES + 1) * (BYTES + 2), 1);
    write_bytes("both", both, (BYTES + 1) * (BYTES + 2));
    expect_failure("both", CHANNELS, 10, "say label_bytes in a manifest");
    free(both);
}

static void test_bad_manifests(void)
{
    static const char *const cases[][2] = {
        {"\"shuffle\": \"ranges\",", ":1: shuffle 'ranges': all or none"},
        {"\"label_bytes\": 3,", ":1: label_bytes is 3"},
        {"\"label_bytes\": 2,", "are not records of 2 bytes of label"},
        {"\"mean\": [0.5],", ":1: mean: 1 numbers, images have 3 channels"},
        {"\"std\": [0.5, 0, 0.5],", ":1: std is 0; give 1e-06 to 1e6"},
        {"\"std\": [0.5, -1e300, 0.5],", ":1: std is -1e+300"},
        {"\"mean\": 0.5,", ":1: 'mean' must be an array"},
        {"\"crop\": 28,", ":1: unknown key 'crop'"},
    };
    write_records("first", 0, N_FIRST, 1);
    write_records("second", N_FIRST, N_SECOND, 1);
    for (size_t i = 0; i < FR_LENGTH(cases); i++) {
        write_manifest("bad.json", cases[i][0]);
        expect_failure("bad.json", CHANNELS, 10, cases[i][1]);
    }
    write_text("bad.json", "{\"schema\": \"forerun.tokens/1\", \"files\": []}");
    expect_failure("bad.json", CHANNELS, 10, "this reads forerun.images/1");
    write_text("bad.json", "{\"schema\": \"forerun.images/1\", \"files\": []}");
    expect_failure("bad.json", CHANNELS, 10, "no files");
}

/* A file that shrinks while it is used is an error, not a signal. */
static void test_shrinks(void)
{
    float values[BATCH * BYTES];
    fr_data *data = NULL;
    fr_err err = {0};
    write_records("shrinks", 0, N_IMAGES, 1);
    if (!CHECK_OK(open_as("shrinks", CHANNELS, 10, &data, &err), &err))
        return;
    CHECK(truncate(path("shrinks"), 1) == 0);
    CHECK_FAILS(load(data, 0, 0, BATCH, values, &err), FR_IO, &err);
    fr_data_close(data);
}

/* ---- IDX ---------------------------------------------------------------- */

static size_t write_idx(const char *name, int n_images, bool is_labels)
{
    unsigned char bytes[16 + N_IMAGES * PIXELS] = {
        0, 0, 8, is_labels ? 1 : 3, 0, 0, 0, (unsigned char)n_images};
    size_t n = 8;
    if (!is_labels) {
        bytes[11] = bytes[15] = SIZE;
        n = 16;
    }
    for (int i = 0; i < n_images; i++)
        for (int k = 0; k < (is_labels ? 1 : PIXELS); k++)
            bytes[n++] =
                (unsigned char)(is_labels ? label_of(i) : pixel_of(i, 0, k));
    write_bytes(name, bytes, n);
    return n;
}

static void test_idx(void)
{
    char text[2 * CHECK_PATH_BYTES + 256], labels[CHECK_PATH_BYTES];
    float values[PIXELS];
    int32_t label;
    fr_data *data = NULL;
    fr_err err = {0};
    const size_t n = write_idx("images", N_IMAGES, false);
    (void)write_idx("labels", N_IMAGES, true);
    (void)snprintf(labels, sizeof labels, "%s", path("labels"));
    (void)snprintf(text, sizeof text,
                   "{\"schema\": \"forerun.images/1\", \"shuffle\": \"none\", "
                   "\"mean\": [0.1307], \"std\": [0.3081], \"files\": "
                   "[{\"path\": \"%s\", \"labels\": \"%s\"}]}",
                   path("images"), labels);
    write_text("idx.json", text);
    if (!CHECK_OK(open_as("idx.json", 1, 10, &data, &err), &err))
        return;
    for (int i = 0; i < N_IMAGES; i++) {
        CHECK_OK(load(data, i / BATCH, i % BATCH, 1, values, &err), &err);
        CHECK_OK(
            fr_data_load_labels(data, i / BATCH, i % BATCH, 1, &label, &err),
            &err);
        CHECK_INT(label, label_of(i));
        for (int k = 0; k < PIXELS; k++)
            CHECK(fabs((double)values[k] -
                       (pixel_of(i, 0, k) / 255.0 - 0.1307) / 0.3081) < 1e-6);
    }
    fr_data_close(data);
    CHECK(truncate(path("images"), (off_t)n - 1) == 0);
    expect_failure("idx.json", 1, 10, "give both files whole");
    (void)write_idx("images", N_IMAGES - 1, false);
    expect_failure("idx.json", 1, 10, "36 images and 37 labels");
    (void)write_idx("images", N_IMAGES, true);
    expect_failure("idx.json", 1, 10, "begins with 0x803, not 0x801");
    (void)snprintf(text, sizeof text,
                   "{\"schema\": \"forerun.images/1\", \"files\": "
                   "[{\"path\": \"%s\", \"labels\": \"%s\"}]}",
                   path("images"), labels);
    write_text("idx.json", text);
    (void)write_idx("images", N_IMAGES, false);
    (void)write_idx("labels", N_IMAGES, true);
    expect_failure("idx.json", 3, 10, "images of 1 x 5 x 5, the model takes 3");
}

/* ---- runs ---------------------------------------------------------------- */

enum { N_STEPS = 6 };

static const char model_text[] =
    "{\"schema\": \"forerun.model/1\", \"name\": \"tiny\", \"kind\": "
    "\"layers\", \"image_size\": 5, \"n_channels\": 3, \"layers\": ["
    "{\"name\": \"stem\", \"ops\": [{\"op\": \"conv\", \"channels\": 8, "
    "\"kernel\": 3, \"padding\": 1}, {\"op\": \"batch_norm\"}, "
    "{\"op\": \"relu\"}]}, {\"name\": \"head\", \"ops\": ["
    "{\"op\": \"linear\", \"channels\": 10, \"bias\": true}]}]}";

static bool train(const char *data, const char *eval_data, double *loss,
                  double *eval_loss)
{
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_program *program = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err err = {0};

    fr_job_init(&job);
    fr_plan_init(&plan);
    fr_run_options_init(&options);
    job.global_batch = plan.micro_batch = BATCH;
    job.seq = 1;
    job.n_steps = N_STEPS;
    job.lr = 0.01;
    (void)snprintf(job.data, sizeof job.data, "%s", data);
    plan.n_threads = 1;
    plan.execution.kernels = FR_KERNELS_OWN;
    options.eval_data = eval_data;
    options.eval_every = 2;
    if (!CHECK_OK(fr_model_parse("tiny", model_text, sizeof model_text - 1,
                                 &model, &err),
                  &err))
        return false;
    const bool is_ok =
        CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err), &err) &&
        CHECK_OK(fr_run(program, &options, NULL, &result, &err), &err) &&
        CHECK_INT(result.n_evaluations, eval_data != NULL ? N_STEPS / 2 : 0);
    if (is_ok)
        memcpy(loss, result.loss, N_STEPS * sizeof *loss);
    for (size_t i = 0; is_ok && i < result.n_evaluations; i++)
        eval_loss[i] = result.evaluations[i].loss;
    fr_run_result_release(&result);
    fr_program_destroy(program);
    fr_model_release(&model);
    return is_ok;
}

/* Other images tell another loss, and training goes on as if nothing had been.
 */
static void test_validation(void)
{
    double alone[N_STEPS], loss[N_STEPS], made_up[N_STEPS];
    double of_others[N_STEPS / 2], of_own[N_STEPS / 2];
    char own[CHECK_PATH_BYTES], others[CHECK_PATH_BYTES];

    if (!fr_convs_are_there())
        SKIP("oneDNN is not in this build");
    write_records("first", 0, N_FIRST, 1);
    write_records("second", N_FIRST, N_SECOND, 1);
    (void)snprintf(own, sizeof own, "%s", path("first"));
    (void)snprintf(others, sizeof others, "%s", path("second"));
    if (!train(own, NULL, alone, NULL) || !train(own, own, loss, of_own))
        return;
    CHECK(memcmp(alone, loss, sizeof alone) == 0);
    if (!train(own, others, loss, of_others) ||
        !train("", others, made_up, of_others))
        return;
    CHECK(memcmp(alone, loss, sizeof alone) == 0);
    CHECK(made_up[0] < alone[0] || made_up[0] > alone[0]);
    for (int i = 0; i < N_STEPS / 2; i++) {
        CHECK(of_own[i] > 0 && of_own[i] < 20 && of_others[i] > 0);
        CHECK(of_own[i] < of_others[i] || of_own[i] > of_others[i]);
    }
}

static void test_cleanup(void)
{
    static const char *const names[] = {
        "whole",    "first",   "second", "set.json", "short",   "both",
        "bad.json", "shrinks", "images", "labels",   "idx.json"};
    for (size_t i = 0; i < FR_LENGTH(names); i++)
        CHECK(unlink(path(names[i])) == 0);
}

CHECK_MAIN({"records", test_records}, {"bad_records", test_bad_records},
           {"bad_manifests", test_bad_manifests}, {"shrinks", test_shrinks},
           {"idx", test_idx}, {"validation", test_validation},
           {"cleanup", test_cleanup})
