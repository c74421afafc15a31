/*
 * test_session.c: the parts of a caller of api/: its folder of configurations,
 * its wish to cancel, and its number of threads.
 */
#include "core/system/fileio.h"
#include "spec/catalog/config_path.h"
#include "tests/check.h"
#include "tests/unit/api/ask.h"

#include <sys/stat.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- the folder of configurations ---------------------------------------- */

/* The folders and files of another configs/, by their paths. */
typedef struct own_configs {
    char root[CHECK_PATH_BYTES], models[CHECK_PATH_BYTES],
        clusters[CHECK_PATH_BYTES], model[CHECK_PATH_BYTES],
        cluster[CHECK_PATH_BYTES], rows[CHECK_PATH_BYTES];
} own_configs;

static bool copy_config(const char *kind, const char *name, const char *to)
{
    char folder[FR_CONFIG_PATH], from[FR_CONFIG_PATH + 80], *text;
    size_t n;
    fr_err err;
    if (!CHECK_OK(fr_config_dir(NULL, kind, folder, &err), &err))
        return false;
    snprintf(from, sizeof from, "%s/%s", folder, name);
    if (!CHECK_OK(fr_file_read(from, 1 << 20, &text, &n, &err), &err))
        return false;
    const bool is_written = CHECK_OK(fr_file_write(to, text, n, &err), &err);
    free(text);
    return is_written;
}

static bool make_own(own_configs *own)
{
    static const char rows[] =
        "id,source,model,seq,gpu,num_gpus,tp,pp,mbs,gbs,precision,"
        "step_time_s\n"
        "r1,s1,own-model,128,A100-SXM-80GB,2,1,1,4,16,fp32,0.011\n";
    fr_err err;
    const int id = (int)getpid();
    check_tmp_path(own->root, "own-%d", id);
    check_tmp_path(own->models, "own-%d/models", id);
    check_tmp_path(own->clusters, "own-%d/clusters", id);
    check_tmp_path(own->model, "own-%d/models/own-model.json", id);
    check_tmp_path(own->cluster, "own-%d/clusters/own-racks.xml", id);
    check_tmp_path(own->rows, "own-%d/rows.csv", id);
    return CHECK(mkdir(own->root, 0700) == 0) &&
           CHECK(mkdir(own->models, 0700) == 0) &&
           CHECK(mkdir(own->clusters, 0700) == 0) &&
           copy_config("models", "gpt2-tiny.json", own->model) &&
           copy_config("clusters", "dgx-h100-16.xml", own->cluster) &&
           CHECK_OK(fr_file_write(own->rows, rows, sizeof rows - 1, &err),
                    &err);
}

static void remove_own(const own_configs *own)
{
    unlink(own->rows);
    unlink(own->model);
    unlink(own->cluster);
    rmdir(own->models);
    rmdir(own->clusters);
    rmdir(own->root);
}

/* `says`: in the answer, or in the error. */
static void check_ask(const question *of, const char *configs, fr_status wanted,
                      const char *says)
{
    const fr_session session = {.configs = configs};
    fr_status status;
    fr_err err = {FR_OK, ""};
    char *json = ask(of, &session, &status, &err);
    CHECK_INT(status, wanted);
    CHECK_HAS(json != NULL ? json : err.text, says);
    free(json);
}

static void test_configs(void)
{
    own_configs own;
    fr_status status;
    fr_err err;
    if (!make_own(&own))
        return;
    const question both = {
        "simulate", {"own-model", "own-racks"}, {{NULL, NULL}}};
    const question model = {
        "simulate", {"gpt2-tiny", "own-racks"}, {{NULL, NULL}}};
    const question cluster = {
        "simulate", {"own-model", "dgx-h100-16"}, {{NULL, NULL}}};
    const question catalog = {"catalog", {"models"}, {{NULL, NULL}}};
    const question vary_own = {"sweep",
                               {"own-model", "dgx-h100:1"},
                               {{"fixed", "1"}, {"vary", "cluster=own-racks"}}};
    const question vary_other = {
        "sweep",
        {"own-model", "own-racks"},
        {{"fixed", "1"}, {"vary", "cluster=dgx-h100-16"}}};
    const question rows = {"validate", {own.rows}, {{NULL, NULL}}};
    check_ask(&both, own.root, FR_OK, "forerun.prediction/1");
    check_ask(&both, NULL, FR_INPUT, "no name in configs/");
    check_ask(&model, own.root, FR_INPUT, own.root);
    check_ask(&cluster, own.root, FR_INPUT, own.root);
    check_ask(&both, own.models, FR_INPUT, own.models);
    check_ask(&vary_own, own.root, FR_OK, "own-racks");
    check_ask(&vary_other, own.root, FR_USAGE, own.root);
    check_ask(&rows, own.root, FR_OK, "\"scored\": 1");
    check_ask(&rows, NULL, FR_OK, "\"scored\": 0");
    char *json =
        ask(&catalog, &(fr_session){.configs = own.root}, &status, &err);
    if (CHECK_OK(status, &err)) {
        CHECK_HAS(json, "own-model");
        CHECK(strstr(json, "gpt2-tiny") == NULL);
    }
    free(json);
    remove_own(&own);
}

/* ---- cancellation -------------------------------------------------------- */

typedef struct caller {
    int64_t n_asked, cancel_at; /* 0: never */
    int most_threads;           /* of a team that asked */
} caller;

static bool is_cancelled(void *context)
{
    caller *self = context;
    self->n_asked++;
#ifdef _OPENMP
    if (omp_get_num_threads() > self->most_threads)
        self->most_threads = omp_get_num_threads();
#endif
    return self->cancel_at > 0 && self->n_asked >= self->cancel_at;
}

static char measured_path[CHECK_PATH_BYTES];

static const question long_work[] = {
    {"tune", {"gpt2-tiny", "dgx-h100:1"}, {{"global-batch", "8"}}},
    {"tune",
     {"gpt2-tiny", "dgx-h100:1"},
     {{"global-batch", "8"}, {"exact", "1"}, {"quiet", "1"}}},
    {"tune",
     {"gpt2-tiny", "dgx-h100:1"},
     {{"global-batch", "8"}, {"search", "random"}}},
    {"tune", {"gpt2-tiny", "two-hosts-1gbit"}, {{"global-batch", "2"}}},
    {"tune", {"llama-3-405b", "dgx-h100:1"}, {{"global-batch", "8"}}},
    {"sweep", {"gpt2-tiny", "dgx-h100:1"}, {{"vary", "nodes=1,2"}}},
    {"sweep",
     {"gpt2-tiny", "dgx-h100:1"},
     {{"vary", "nodes=1,2"}, {"global-batch", "8"}, {"exact", "1"}}},
    {"sweep",
     {"gpt2-tiny", "dgx-h100:1"},
     {{"vary", "nodes=1,2"}, {"fixed", "1"}}},
    {"goodput",
     {"gpt2-tiny", "dgx-h100:4"},
     {{"dp", "32"},
      {"runs", "30"},
      {"for-days", "20"},
      {"mtbf", "500h"},
      {"spares", "1"},
      {"least-nodes", "3"}}},
    {"validate", {measured_path}, {{"shots", "0,1"}, {"draws", "3"}}},
    {"explain", {"gpt2-tiny", "dgx-h100:2"}, {{"dp", "16"}}},
    {"explain", {"llama-3-8b", "dgx-h100:1"}, {{"dp", "8"}}},
    {"simulate", {"gpt2-tiny", "dgx-h100:1"}, {{NULL, NULL}}},
};

static bool write_measured(void)
{
    static const char rows[] =
        "id,source,model,layers,hidden,heads,seq,gpu,num_gpus,tp,pp,mbs,gbs,"
        "precision,step_time_s\n"
        "r1,s1,gpt-a,4,256,4,128,A100-SXM-80GB,2,1,1,4,16,fp32,0.011\n"
        "r2,s1,gpt-a,4,256,4,128,A100-SXM-80GB,4,1,2,2,16,fp32,0.023\n"
        "r3,s1,gpt-a,4,512,8,128,A100-SXM-80GB,4,2,1,2,16,fp32,0.017\n";
    fr_err err;
    check_tmp_path(measured_path, "measured-%d.csv", (int)getpid());
    return CHECK_OK(fr_file_write(measured_path, rows, sizeof rows - 1, &err),
                    &err);
}

/* Asks a caller that cancels at question `at`; returns how often it was asked.
 */
static int64_t ask_caller(const question *of, int64_t at, int n_threads,
                          fr_status wanted)
{
    caller self = {.cancel_at = at};
    const fr_log log = {.is_cancelled = is_cancelled, .context = &self};
    const fr_session session = {.log = &log, .n_threads = n_threads};
    fr_status status;
    fr_err err = {FR_OK, ""};
    char *json = ask(of, &session, &status, &err);
    if (!CHECK_INT(status, wanted))
        printf("%s %s, at %lld: %s\n", of->command, of->words[0], (long long)at,
               err.text);
    if (wanted == FR_INTERRUPTED) {
        CHECK(json == NULL);
        CHECK_STR(err.text, "the caller has cancelled the work");
    }
    free(json);
    return self.n_asked;
}

/* However late the caller cancels, there is no answer, and the work ends. */
static void test_cancel(void)
{
    enum { ASKED_AFTERWARDS = 64 };
    if (!write_measured())
        return;
    for (size_t i = 0; i < FR_LENGTH(long_work); i++) {
        const question *of = &long_work[i];
        const fr_status usual =
            strcmp(of->words[0], "llama-3-405b") == 0 ? FR_INFEASIBLE : FR_OK;
        const int64_t n = ask_caller(of, 0, 1, usual);
        const int64_t at[] = {1, 2, n / 3 + 1, n / 2 + 1, n};
        CHECK(n >= (strcmp(of->command, "simulate") == 0 ? 1 : 5));
        for (size_t k = 0; k < FR_LENGTH(at); k++) {
            if (at[k] > n)
                continue;
            const int64_t n_asked = ask_caller(of, at[k], 1, FR_INTERRUPTED);
            CHECK(n_asked < at[k] + ASKED_AFTERWARDS);
        }
        ask_caller(of, n / 2 + 1, 2, FR_INTERRUPTED);
    }
    unlink(measured_path);
}

/* ---- threads ------------------------------------------------------------- */

/* Returns the answer, and the largest team that asked the caller. */
static char *ask_threads(const question *of, int n_threads, int *most)
{
    caller self = {.most_threads = 0};
    const fr_log log = {.is_cancelled = is_cancelled, .context = &self};
    const fr_session session = {.log = &log, .n_threads = n_threads};
    fr_status status;
    fr_err err;
    char *json = ask(of, &session, &status, &err);
    if (CHECK_OK(status, &err))
        drop_wall_s(json);
    *most = self.most_threads;
    return json;
}

static void test_threads(void)
{
    static const question of[] = {
        {"tune", {"gpt2-tiny", "dgx-h100:1"}, {{"global-batch", "8"}}},
        {"sweep", {"gpt2-tiny", "dgx-h100:1"}, {{"vary", "nodes=1,2,3"}}},
        {"validate", {measured_path}, {{"shots", "0,1"}}},
        {"explain", {"gpt2-tiny", "dgx-h100:2"}, {{"dp", "16"}}},
    };
    static const question with_jobs = {"tune",
                                       {"gpt2-tiny", "dgx-h100:1"},
                                       {{"global-batch", "8"}, {"jobs", "2"}}};
    int most;
#ifndef _OPENMP
    SKIP("built without OpenMP");
#endif
    if (!write_measured())
        return;
    for (size_t i = 0; i < FR_LENGTH(of); i++) {
        char *alone = ask_threads(&of[i], 1, &most);
        CHECK_INT(most, 1);
        char *team = ask_threads(&of[i], 3, &most);
        CHECK_INT(most, 3);
        if (CHECK(alone != NULL && team != NULL))
            CHECK_STR(alone, team);
        free(alone);
        free(team);
    }
    free(ask_threads(&with_jobs, 3, &most));
    CHECK_INT(most, 2);
    unlink(measured_path);
}

CHECK_MAIN({"configurations", test_configs}, {"cancel", test_cancel},
           {"threads", test_threads})
