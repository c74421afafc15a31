/*
 * bench_regret.c: runs every plan of a small space for real and compares the
 * tuner's pick with the true best.  Called by bench/regret.sh, which made the
 * profiles; writes build/regret.json.
 *
 *   bench_regret FORERUN DIR SHM_PROFILE [NET_PROFILE HOSTS_DIR] OUT
 */
#include "bench/rounds.h"
#include "core/base/buffer.h"
#include "core/document/json.h"
#include "core/system/fileio.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The space: one model and batch, everything else free. */
static const char space_options[] = "--global-batch 8 --seq 64 "
                                    "--micro-batch 2 --recompute none "
                                    "--bucket 25MB --rank-order tp-dp-pp";

static const char mini[] = "gpt2-mini";

enum { n_again = 3 }; /* the measured best, once more in fresh rounds */

typedef struct regret_case {
    const char *name, *link, *model;
    const char *pinned; /* that the tuner has no choice of */
    /* So little memory that of the plans only those fit that shard the
     * parameters (ZeRO 3). */
    bool is_tight;
    double headroom; /* of all memory, that stays free then */
    fr_contender *plans;
    size_t n_plans;
    fr_contender finals[n_again + 1]; /* [0] is the tuner's pick */
    size_t n_finals, i_best;
    double regret_frac;
} regret_case;

/* A choice of the plan JSON as the option that makes it. */
static fr_status add_option(const fr_json_value *plan, const char *key,
                            const char *option, fr_buffer *out, fr_err *err)
{
    const fr_json_value *value = fr_json_find(plan, key);
    if (value == NULL)
        return fr_json_fail(plan, err, "no '%s' in the plan", key);
    const char *text;
    int64_t number;
    if (fr_json_kind_of(value) == FR_JSON_STRING) {
        FR_TRY(fr_json_as_string(value, &text, err));
        fr_buffer_printf(out, " --%s %s", option, text);
        return FR_OK;
    }
    FR_TRY(fr_json_as_i64(value, &number, err));
    fr_buffer_printf(out, " --%s %lld", option, (long long)number);
    return FR_OK;
}

static fr_status add_split(const fr_json_value *plan, fr_buffer *out,
                           fr_err *err)
{
    const fr_json_value *split;
    FR_TRY(fr_json_get_array(plan, "layer_split", &split, err));
    for (size_t i = 0; i < fr_json_n(split); i++) {
        int64_t n_layers;
        FR_TRY(fr_json_as_i64(fr_json_at(split, i), &n_layers, err));
        fr_buffer_printf(out, "%s%lld", i == 0 ? " --layer-split " : ",",
                         (long long)n_layers);
    }
    return FR_OK;
}

static fr_status plan_options(const fr_json_value *plan, fr_buffer *out,
                              fr_err *err)
{
    static const char *const keys[][2] = {{"dp", "dp"},
                                          {"tp", "tp"},
                                          {"pp", "pp"},
                                          {"vpp", "vpp"},
                                          {"zero", "zero"},
                                          {"schedule", "schedule"},
                                          {"threads", "threads"},
                                          {"compressor", "compress"},
                                          {"zero_group", "zero-group"},
                                          {"ep", "ep"},
                                          {"cp", "cp"}};
    fr_buffer_puts(out, space_options);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        FR_TRY(add_option(plan, keys[i][0], keys[i][1], out, err));
    FR_TRY(add_split(plan, out, err));
    bool is_overlap, is_sequence_parallel, is_resharded;
    FR_TRY(fr_json_get_bool(plan, "overlap", &is_overlap, err));
    FR_TRY(fr_json_get_bool(plan, "sequence_parallel", &is_sequence_parallel,
                            err));
    FR_TRY(fr_json_get_bool(plan, "zero_reshard", &is_resharded, err));
    if (!is_resharded)
        fr_buffer_puts(out, " --no-zero-reshard");
    if (!is_overlap)
        fr_buffer_puts(out, " --no-overlap");
    if (is_sequence_parallel)
        fr_buffer_puts(out, " --sequence-parallel");
    return fr_buffer_check(out, err);
}

/* Contender i of a tuning's answer: 0 the best, then the alternatives. */
static fr_status add_contender(const fr_json_value *entry, const regret_case *c,
                               fr_contender *out, fr_err *err)
{
    const char *name;
    const fr_json_value *plan;
    memset(out, 0, sizeof *out);
    FR_TRY(fr_json_get_string(entry, "name", &name, err));
    FR_TRY(fr_json_get_object(entry, "plan", &plan, err));
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->link, sizeof out->link, "%s", c->link);
    snprintf(out->model, sizeof out->model, "%s", c->model);
    fr_buffer options;
    fr_buffer_init(&options);
    fr_status status = plan_options(plan, &options, err);
    if (status == FR_OK && options.n >= sizeof out->options)
        status =
            fr_fail(err, FR_FAILURE, "plan '%s' needs too many options", name);
    if (status == FR_OK)
        memcpy(out->options, fr_buffer_text(&options), options.n + 1);
    fr_buffer_release(&options);
    return status;
}

static fr_status read_tuning(const fr_json_value *root, regret_case *out,
                             fr_err *err)
{
    const fr_json_value *best, *others;
    FR_TRY(fr_json_get_object(root, "best", &best, err));
    FR_TRY(fr_json_get_array(root, "alternatives", &others, err));
    out->n_plans = 1 + fr_json_n(others);
    out->plans = calloc(out->n_plans, sizeof *out->plans);
    if (out->plans == NULL)
        return fr_fail_no_memory(err);
    FR_TRY(add_contender(best, out, &out->plans[0], err));
    for (size_t i = 1; i < out->n_plans; i++)
        FR_TRY(
            add_contender(fr_json_at(others, i - 1), out, &out->plans[i], err));
    return FR_OK;
}

static fr_status tune(const fr_rounds *rounds, const regret_case *c,
                      fr_json **out, fr_err *err)
{
    bool is_shm = strcmp(c->link, "shm") == 0;
    char command[2048];
    snprintf(command, sizeof command,
             "'%s' tune '%s' '%s' %s %s%s --min-headroom %.9f --profile '%s' "
             "--top 1000 --json",
             rounds->forerun, c->model,
             is_shm ? rounds->cluster_shm : rounds->cluster_net, space_options,
             c->pinned, is_shm ? "" : " --allow lossy", c->headroom,
             is_shm ? rounds->profile_shm : rounds->profile_net);
    return fr_command_json(command, out, err);
}

/* The least memory of plans with ZeRO 3 (1) and of others (0), so far. */
static fr_status note_memory(const fr_json_value *entry, double least[2],
                             double *capacity, fr_err *err)
{
    const fr_json_value *plan, *prediction, *memory;
    double peak;
    int64_t zero;
    FR_TRY(fr_json_get_object(entry, "plan", &plan, err));
    FR_TRY(fr_json_get_i64(plan, "zero", &zero, err));
    FR_TRY(fr_json_get_object(entry, "prediction", &prediction, err));
    FR_TRY(fr_json_get_object(prediction, "memory", &memory, err));
    FR_TRY(fr_json_get_double(memory, "peak_bytes", &peak, err));
    FR_TRY(fr_json_get_double(memory, "capacity_bytes", capacity, err));
    if (peak < least[zero == 3])
        least[zero == 3] = peak;
    return FR_OK;
}

/* A limit in the middle between the least that ZeRO 3 takes and that of all
 * others. */
static fr_status find_limit(const fr_json_value *root, regret_case *c,
                            fr_err *err)
{
    const fr_json_value *best, *others;
    double least[2] = {HUGE_VAL, HUGE_VAL}, capacity;
    FR_TRY(fr_json_get_object(root, "best", &best, err));
    FR_TRY(fr_json_get_array(root, "alternatives", &others, err));
    FR_TRY(note_memory(best, least, &capacity, err));
    for (size_t i = 0; i < fr_json_n(others); i++)
        FR_TRY(note_memory(fr_json_at(others, i), least, &capacity, err));
    if (!(least[1] < least[0]) || isinf(least[0]))
        return fr_fail(err, FR_FAILURE,
                       "%s: ZeRO 3 takes %.0f bytes, other plans %.0f", c->name,
                       least[1], least[0]);
    c->headroom = 1 - (least[0] + least[1]) / 2 / capacity;
    return FR_OK;
}

static fr_status tune_all(const fr_rounds *rounds, regret_case *out,
                          fr_err *err)
{
    fr_status status = FR_OK;
    for (int pass = out->is_tight ? 0 : 1; status == FR_OK && pass < 2;
         pass++) {
        fr_json *json = NULL;
        FR_TRY(tune(rounds, out, &json, err));
        status = pass == 0 ? find_limit(fr_json_root(json), out, err)
                           : read_tuning(fr_json_root(json), out, err);
        fr_json_destroy(json);
    }
    return status;
}

static int by_measured(const void *a, const void *b)
{
    double x = ((const fr_contender *)a)->measured_s;
    double y = ((const fr_contender *)b)->measured_s;
    return x < y ? -1 : x > y;
}

/* The pick and the fastest few others, for fresh rounds. */
static void choose_finals(regret_case *c)
{
    c->finals[0] = c->plans[0];
    c->n_finals = 1;
    fr_contender pick = c->plans[0];
    qsort(c->plans, c->n_plans, sizeof *c->plans, by_measured);
    for (size_t i = 0; i < c->n_plans && i < n_again; i++)
        if (strcmp(c->plans[i].name, pick.name) != 0)
            c->finals[c->n_finals++] = c->plans[i];
    for (size_t i = 0; i < c->n_finals; i++)
        c->finals[i].n_rounds = 0;
}

static fr_status measure_case(fr_rounds *rounds, regret_case *c, fr_err *err)
{
    FR_TRY(tune_all(rounds, c, err));
    for (size_t i = 0; i < c->n_plans; i++) {
        /* File names must not hold blanks. */
        fr_contender unnamed = c->plans[i];
        snprintf(unnamed.name, sizeof unnamed.name, "regret%zu", i);
        FR_TRY(fr_contender_predict(rounds, &unnamed, err));
        memcpy(c->plans[i].plan_path, unnamed.plan_path,
               sizeof unnamed.plan_path);
        c->plans[i].predicted_s = unnamed.predicted_s;
    }
    int n_rounds = rounds->n_rounds;
    rounds->n_rounds = 1;
    FR_TRY(fr_rounds_measure(rounds, c->plans, c->n_plans, err));
    choose_finals(c);
    rounds->n_rounds = n_rounds;
    FR_TRY(fr_rounds_measure(rounds, c->finals, c->n_finals, err));
    for (size_t i = 1; i < c->n_finals; i++)
        if (c->finals[i].measured_s < c->finals[c->i_best].measured_s)
            c->i_best = i;
    c->regret_frac =
        c->finals[0].measured_s / c->finals[c->i_best].measured_s - 1;
    return FR_OK;
}

static void print_case(const regret_case *c)
{
    printf("\n%s: %zu plans, all run; the fastest:\n", c->name, c->n_plans);
    printf("  %-44s %11s %11s\n", "plan", "predicted", "measured");
    for (size_t i = 0; i < c->n_plans && i < 8; i++)
        printf("  %-44s %8.2f ms %8.2f ms\n", c->plans[i].name,
               c->plans[i].predicted_s * 1e3, c->plans[i].measured_s * 1e3);
    printf("  again, in fresh rounds:\n");
    for (size_t i = 0; i < c->n_finals; i++)
        printf("  %-44s %8.2f ms %8.2f ms%s%s\n", c->finals[i].name,
               c->finals[i].predicted_s * 1e3, c->finals[i].measured_s * 1e3,
               i == 0 ? "  the tuner's pick" : "",
               i == c->i_best ? "  the best" : "");
    printf("  regret %.1f %%\n", 100 * c->regret_frac);
}

static void put_plan(fr_json_writer *w, const char *key, const fr_contender *c)
{
    fr_json_key(w, key);
    fr_json_begin_object(w);
    fr_json_put_string(w, "name", c->name);
    fr_json_put_double(w, "predicted_s", c->predicted_s);
    fr_json_put_double(w, "measured_s", c->measured_s);
    fr_json_end_object(w);
}

static fr_status write_json(const char *path, const regret_case *cases,
                            size_t n, fr_err *err)
{
    fr_buffer buffer;
    fr_json_writer w;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.regret/1");
    fr_json_key(&w, "cases");
    fr_json_begin_array(&w);
    for (size_t i = 0; i < n; i++) {
        fr_json_begin_object(&w);
        fr_json_put_string(&w, "name", cases[i].name);
        fr_json_put_string(&w, "link", cases[i].link);
        fr_json_put_string(&w, "model", cases[i].model);
        fr_json_put_double(&w, "headroom", cases[i].headroom);
        fr_json_put_u64(&w, "plans", cases[i].n_plans);
        put_plan(&w, "picked", &cases[i].finals[0]);
        put_plan(&w, "best", &cases[i].finals[cases[i].i_best]);
        fr_json_put_double(&w, "regret_frac", cases[i].regret_frac);
        fr_json_end_object(&w);
    }
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    fr_buffer_putc(&buffer, '\n');
    return fr_file_write_buffer(path, &buffer, err);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7) {
        fprintf(stderr, "usage: bench_regret FORERUN DIR SHM_PROFILE "
                        "[NET_PROFILE HOSTS_DIR] OUT\n");
        return 2;
    }
    fr_rounds rounds = {.forerun = argv[1],
                        .directory = argv[2],
                        .cluster_shm = "this-machine",
                        .cluster_net = "two-hosts-1gbit",
                        .profile_shm = argv[3],
                        .n_rounds = 5};
    regret_case cases[] = {
        {.name = "shm", .link = "shm", .model = mini, .pinned = ""},
        {.name = "moe",
         .link = "shm",
         .model = "bench/models/mixtral-mini.json",
         .pinned = ""},
        {.name = "memory",
         .link = "shm",
         .model = mini,
         .pinned = "--dp 2 --tp 1 --pp 1",
         .is_tight = true},
        {.name = "1gbit", .link = "1gbit", .model = mini, .pinned = ""}};
    const size_t n_all = sizeof cases / sizeof cases[0];
    size_t n_cases = argc == 7 ? n_all : n_all - 1;
    if (n_cases == n_all) {
        rounds.profile_net = argv[4];
        rounds.hosts = argv[5];
    } else {
        printf("no network namespaces here: the slow link is left out\n");
    }
    fr_err err = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < n_cases; i++) {
        status = measure_case(&rounds, &cases[i], &err);
        if (status == FR_OK)
            print_case(&cases[i]);
    }
    if (status == FR_OK)
        status = write_json(argv[argc - 1], cases, n_cases, &err);
    for (size_t i = 0; i < n_cases; i++)
        free(cases[i].plans);
    if (status != FR_OK)
        fprintf(stderr, "bench_regret: %s\n", err.text);
    return fr_status_exit_code(status);
}
