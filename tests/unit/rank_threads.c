/* rank_threads.c: see rank_threads.h. */
#include "tests/unit/rank_threads.h"

#include "tests/check.h"

#include <pthread.h>

static const char model_text[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, "
    "\"n_head\": 2, \"n_inner\": 96, \"n_positions\": 16, "
    "\"vocab_size\": 53, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

typedef struct player {
    const fr_program *program;
    fr_loopback *hub;
    rank_part_fn part;
    void *context;
    int64_t rank;
    rank_threads *out;
} player;

static void *play(void *context)
{
    const player *p = context;
    fr_err *err = &p->out->err[p->rank];
    fr_transport *transport = NULL;
    fr_status status =
        fr_transport_loopback_create(p->hub, p->rank, 20, &transport, err);

    if (status == FR_OK)
        status = p->part(p->context, p->program, p->rank, transport, err);
    p->out->status[p->rank] = status;
    fr_transport_destroy(transport);
    return NULL;
}

static void play_all(const player *all, int64_t world)
{
    pthread_t threads[RANK_THREADS_MAX];
    player players[RANK_THREADS_MAX];

    for (int64_t i = 0; i < world; i++) {
        players[i] = *all;
        players[i].rank = i;
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int64_t i = 0; i < world; i++)
        pthread_join(threads[i], NULL);
}

bool rank_threads_play(const fr_plan *plan, const fr_job *job,
                       const int32_t *node_of_rank, rank_part_fn part,
                       void *context, rank_threads *out)
{
    const int64_t world = fr_plan_world(plan);
    const fr_placement placement = {.n_ranks = world,
                                    .node_of_rank = node_of_rank};
    fr_program *program = NULL;
    fr_loopback *hub = NULL;
    fr_model model;
    fr_err err = {0};

    *out = (rank_threads){0};
    if (!CHECK_OK(fr_model_parse("tiny", model_text, sizeof model_text - 1,
                                 &model, &err),
                  &err))
        return false;
    const bool is_ok =
        CHECK_OK(fr_lower(&model, job, plan, &placement, &program, &err),
                 &err) &&
        CHECK_OK(fr_loopback_create(world, node_of_rank, &hub, &err), &err);
    fr_model_release(&model);
    if (is_ok)
        play_all(&(player){program, hub, part, context, 0, out}, world);
    if (is_ok)
        fr_loopback_destroy(hub);
    fr_program_destroy(program);
    return is_ok;
}

bool rank_threads_are_well(const fr_plan *plan, const rank_threads *ranks)
{
    bool is_ok = true;

    for (int64_t i = 0; i < fr_plan_world(plan); i++)
        is_ok = CHECK_OK(ranks->status[i], &ranks->err[i]) && is_ok;
    return is_ok;
}
