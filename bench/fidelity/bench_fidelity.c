/*
 * bench_fidelity.c: predicted beside measured for a list of plans.  Prints a
 * table, writes build/fidelity.json (keys: docs/validation.md); called by
 * bench/fidelity/fidelity.sh, which made the profiles.
 *
 *   bench_fidelity CASES FORERUN DIR SHM_PROFILE [NET_PROFILE HOSTS_DIR] OUT
 */
#include "bench/fidelity/learned.h"
#include "bench/rounds.h"
#include "core/base/buffer.h"
#include "core/document/json.h"
#include "core/numbers/stats.h"
#include "core/system/fileio.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct fidelity_scores {
    double mape, worst_ape, concordance, memory_mape;
    size_t n_pairs, n_scored;
    fr_learned_scores learned;
} fidelity_scores;

static double rel_err(double predicted, double measured)
{
    return (predicted - measured) / measured;
}

/* Pairs are compared within one model and link: others nobody would mix up. */
static void count_pairs(const fr_contender *list, size_t n, size_t *n_right,
                        size_t *n_pairs)
{
    *n_right = *n_pairs = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            const fr_contender *a = &list[i], *b = &list[j];
            if (a->is_oversubscribed || b->is_oversubscribed ||
                strcmp(a->model, b->model) != 0)
                continue;
            if (fabs(a->measured_s - b->measured_s) <=
                0.05 * fmin(a->measured_s, b->measured_s))
                continue;
            (*n_pairs)++;
            *n_right += (a->measured_s < b->measured_s) ==
                        (a->predicted_s < b->predicted_s);
        }
    }
}

static fr_status score(const fr_contender *list, size_t n, fidelity_scores *out,
                       fr_err *err)
{
    fidelity_scores s = {0};
    for (size_t i = 0; i < n; i++) {
        if (list[i].is_oversubscribed)
            continue;
        double ape = fabs(rel_err(list[i].predicted_s, list[i].measured_s));
        s.mape += ape;
        s.worst_ape = fmax(s.worst_ape, ape);
        s.memory_mape +=
            fabs(rel_err(list[i].predicted_bytes, list[i].measured_bytes));
        s.n_scored++;
    }
    s.mape /= (double)s.n_scored;
    s.memory_mape /= (double)s.n_scored;
    size_t n_right;
    count_pairs(list, n, &n_right, &s.n_pairs);
    s.concordance = s.n_pairs ? (double)n_right / (double)s.n_pairs : 1.0;
    *out = s;
    return fr_learned_score(list, n, &out->learned, err);
}

static double round_spread(const fr_contender *c)
{
    return (fr_stats_max(c->round_s, (size_t)c->n_rounds) -
            fr_stats_min(c->round_s, (size_t)c->n_rounds)) /
           c->measured_s;
}

static void print_table(const fr_contender *list, size_t n,
                        const fidelity_scores *s, const fr_rounds *rounds)
{
    printf("%-14s %-6s %-10s %11s %11s %7s %7s %10s %7s\n", "plan", "link",
           "model", "predicted", "measured", "error", "spread", "memory",
           "error");
    for (size_t i = 0; i < n; i++) {
        const fr_contender *c = &list[i];
        printf("%-14s %-6s %-10s %8.2f ms %8.2f ms %+6.1f%% %6.1f%% "
               "%6.1f MiB %+6.1f%%%s\n",
               c->name, c->link, c->model, c->predicted_s * 1e3,
               c->measured_s * 1e3,
               100 * rel_err(c->predicted_s, c->measured_s),
               100 * round_spread(c), c->measured_bytes / 1048576,
               100 * rel_err(c->predicted_bytes, c->measured_bytes),
               c->is_oversubscribed ? "  oversubscribed, not scored" : "");
    }
    printf("\n%zu plans, %d rounds: step time MAPE %.1f %%, worst %.1f %%; "
           "%.1f %% of %zu pairs ranked right; memory MAPE %.1f %%\n",
           s->n_scored, rounds->n_rounds, 100 * s->mape, 100 * s->worst_ape,
           100 * s->concordance, s->n_pairs, 100 * s->memory_mape);
    printf("once %d of them are known: the others MAPE %.1f %%, worst %.1f %% "
           "in the middle of %d draws, 90 %% intervals of +- %.1f %% hold "
           "%.1f %%\n",
           FR_LEARNED_KNOWN, 100 * s->learned.mape, 100 * s->learned.worst,
           FR_LEARNED_DRAWS, 100 * s->learned.half_width_median,
           100 * s->learned.coverage_90);
    printf("sentinel spread %.1f %%, %d runs repeated\n",
           100 * rounds->sentinel_spread, rounds->n_repeated);
}

static fr_status write_json(const char *path, const fr_contender *list,
                            size_t n, const fidelity_scores *s,
                            const fr_rounds *rounds, fr_err *err)
{
    fr_buffer buffer;
    fr_json_writer w;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", "forerun.fidelity/1");
    fr_json_put_double(&w, "mape", s->mape);
    fr_json_put_double(&w, "worst_ape", s->worst_ape);
    fr_json_put_double(&w, "concordance", s->concordance);
    fr_json_put_double(&w, "memory_mape", s->memory_mape);
    fr_json_open_object(&w, "learned");
    fr_json_put_i64(&w, "known", FR_LEARNED_KNOWN);
    fr_json_put_i64(&w, "draws", FR_LEARNED_DRAWS);
    fr_json_put_double(&w, "mape", s->learned.mape);
    fr_json_put_double(&w, "worst_ape_median", s->learned.worst);
    fr_json_put_double(&w, "coverage_90", s->learned.coverage_90);
    fr_json_put_double(&w, "half_width_median", s->learned.half_width_median);
    fr_json_end_object(&w);
    fr_json_put_i64(&w, "rounds", rounds->n_rounds);
    fr_json_put_i64(&w, "repeated", rounds->n_repeated);
    fr_json_put_double(&w, "sentinel_spread", rounds->sentinel_spread);
    fr_json_key(&w, "rows");
    fr_json_begin_array(&w);
    for (size_t i = 0; i < n; i++) {
        const fr_contender *c = &list[i];
        fr_json_begin_object(&w);
        fr_json_put_string(&w, "name", c->name);
        fr_json_put_string(&w, "plan", c->options);
        fr_json_put_string(&w, "model", c->model);
        fr_json_put_string(&w, "link", c->link);
        fr_json_put_double(&w, "predicted_s", c->predicted_s);
        fr_json_put_double(&w, "measured_s", c->measured_s);
        fr_json_put_double(&w, "rel_err",
                           rel_err(c->predicted_s, c->measured_s));
        fr_json_put_double(&w, "predicted_bytes", c->predicted_bytes);
        fr_json_put_double(&w, "measured_bytes", c->measured_bytes);
        fr_json_put_bool(&w, "oversubscribed", c->is_oversubscribed);
        fr_json_put_doubles(&w, "rounds_s", c->round_s, (size_t)c->n_rounds);
        fr_json_end_object(&w);
    }
    fr_json_end_array(&w);
    fr_json_end_object(&w);
    fr_buffer_putc(&buffer, '\n');
    return fr_file_write_buffer(path, &buffer, err);
}

static fr_status fidelity(const char *cases, fr_rounds *rounds, const char *out,
                          fr_err *err)
{
    fr_contender *list;
    size_t n, n_kept = 0;
    FR_TRY(fr_contenders_load(cases, &list, &n, err));
    for (size_t i = 0; i < n; i++)
        if (rounds->hosts != NULL || strcmp(list[i].link, "shm") == 0)
            list[n_kept++] = list[i];
    if (n_kept < n)
        printf("no network namespaces here: %zu plans left out\n", n - n_kept);
    n = n_kept;
    fr_status status = FR_OK;
    for (size_t i = 0; status == FR_OK && i < n; i++)
        status = fr_contender_predict(rounds, &list[i], err);
    if (status == FR_OK)
        status = fr_rounds_measure(rounds, list, n, err);
    fidelity_scores s;
    if (status == FR_OK)
        status = score(list, n, &s, err);
    if (status == FR_OK) {
        print_table(list, n, &s, rounds);
        status = write_json(out, list, n, &s, rounds, err);
    }
    free(list);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 6 && argc != 8) {
        fprintf(stderr, "usage: bench_fidelity CASES FORERUN DIR SHM_PROFILE "
                        "[NET_PROFILE HOSTS_DIR] OUT\n");
        return 2;
    }
    fr_rounds rounds = {.forerun = argv[2],
                        .directory = argv[3],
                        .cluster_shm = "this-machine",
                        .cluster_net = "two-hosts-1gbit",
                        .profile_shm = argv[4],
                        .n_rounds = 5};
    if (argc == 8) {
        rounds.profile_net = argv[5];
        rounds.hosts = argv[6];
    }
    if (getenv("ROUNDS") != NULL)
        rounds.n_rounds = atoi(getenv("ROUNDS"));
    if (rounds.n_rounds < 1 || rounds.n_rounds > FR_ROUNDS_MAX) {
        fprintf(stderr, "bench_fidelity: ROUNDS must be 1 to %d\n",
                FR_ROUNDS_MAX);
        return 2;
    }
    fr_err err = {0};
    if (fidelity(argv[1], &rounds, argv[argc - 1], &err) != FR_OK) {
        fprintf(stderr, "bench_fidelity: %s\n", err.text);
        return fr_status_exit_code(err.status);
    }
    return 0;
}
