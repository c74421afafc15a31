/*
 * rounds.h: measures several plans against each other fairly: `forerun run`
 * of every plan in interleaved rounds, a sentinel matrix product before
 * and after each run; a run in which the sentinel moved is repeated.
 */
#ifndef FR_BENCH_ROUNDS_H
#define FR_BENCH_ROUNDS_H

#include "core/base/err.h"
#include "core/document/json.h"

#define FR_ROUNDS_MAX 16

typedef struct fr_contender {
    char name[64];
    char link[16]; /* "shm", or the rate of the emulated network */
    char model[64];
    char options[512];   /* plan options as on the command line */
    char plan_path[512]; /* written by fr_contender_predict */
    double predicted_s, predicted_bytes;
    double measured_s;     /* median over rounds of each run's median step */
    double measured_bytes; /* largest over rounds */
    double round_s[FR_ROUNDS_MAX];
    int n_rounds;
    bool is_oversubscribed; /* more ranks than cores: reported, not scored */
} fr_contender;

typedef struct fr_rounds {
    const char *forerun;   /* path of the program */
    const char *directory; /* for plans; exists */
    const char *hosts;     /* directory that two_hosts.sh filled, or NULL */
    const char *cluster_shm, *cluster_net;
    const char *profile_shm, *profile_net;
    int n_rounds;
    double sentinel_s; /* out: best time of the matrix product */
    double
        sentinel_spread; /* out: worst beside a run that was kept / best - 1 */
    int n_repeated;      /* out: runs thrown away */
} fr_rounds;

/*
 * Reads "name link model option..." lines ('#' comments).  FR_INPUT with
 * path:line.  *out is malloc'ed, the caller frees it.
 */
FR_CHECKED fr_status fr_contenders_load(const char *path, fr_contender **out,
                                        size_t *n, fr_err *err);

/* Writes the plan file of a contender and its prediction. */
FR_CHECKED fr_status fr_contender_predict(const fr_rounds *rounds,
                                          fr_contender *contender, fr_err *err);

/* Runs a shell command and reads its standard output as one JSON object. */
FR_CHECKED fr_status fr_command_json(const char *command, fr_json **out,
                                     fr_err *err);

/* Best of n_tries products of n x n matrices on two threads, seconds. */
FR_CHECKED fr_status fr_sgemm_s(int n, int n_tries, double *out, fr_err *err);

/* Runs all contenders n_rounds times, interleaved. */
FR_CHECKED fr_status fr_rounds_measure(fr_rounds *rounds,
                                       fr_contender *contenders, size_t n,
                                       fr_err *err);

#endif
