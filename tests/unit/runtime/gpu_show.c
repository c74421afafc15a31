/* gpu_show.c: threads as ranks of a run. */
#include "tests/unit/runtime/gpu_show.h"

#include "core/system/clock.h"
#include "runtime/comm/transport_tcp.h"
#include "tests/check.h"

const char gpu_show_gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 48, "
    "\"n_head\": 4, \"n_inner\": 176, \"n_positions\": 40, "
    "\"vocab_size\": 259, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

const char gpu_show_llama[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, "
    "\"hidden_size\": 48, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 176, "
    "\"vocab_size\": 259, \"max_position_embeddings\": 40, "
    "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, "
    "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false}";

void gpu_show_init(gpu_show *show)
{
    memset(show, 0, sizeof *show);
    show->model_text = gpu_show_gpt2;
    fr_plan_init(&show->plan);
    show->plan.micro_batch = 4;
    show->plan.n_threads = 1;
    fr_job_init(&show->job);
    show->job.global_batch = 8;
    show->job.seq = 16;
    show->job.n_steps = 6;
    show->job.seed = 20240311;
    show->job.lr = 0.003;
    show->job.clip_norm = 0.7;
    fr_run_options_init(&show->options);
    fr_timeline_init(&show->timeline);
}

typedef struct player {
    gpu_show *show;
    fr_loopback *hub;
    const fr_backend *backend;
    int64_t rank;
} player;

static void *play(void *context)
{
    player *p = context;
    gpu_show *show = p->show;
    fr_transport *transport = NULL;
    fr_run_options options = show->options;
    fr_run_result result = {0};
    fr_err *err = &show->err[p->rank];

    options.backend = p->backend;
    fr_status status =
        show->port > 0
            ? fr_transport_tcp_create("127.0.0.1", show->port, p->rank,
                                      fr_plan_world(&show->plan), 20,
                                      &transport, err)
            : fr_transport_loopback_create(p->hub, p->rank, 20, &transport,
                                           err);
    if (status == FR_OK)
        status =
            fr_run_over(transport, show->program, &options,
                        p->rank == 0 ? &show->timeline : NULL, &result, err);
    fr_transport_destroy(transport);
    show->status[p->rank] = status;
    if (p->rank == 0)
        show->result = result;
    else
        fr_run_result_release(&result);
    return NULL;
}

static void start_ranks(gpu_show *show, fr_loopback *hub,
                        const fr_backend *backend)
{
    int64_t world = fr_plan_world(&show->plan);
    pthread_t threads[GPU_FAKE_MAX_RANKS];
    player players[GPU_FAKE_MAX_RANKS];
    double begin_s = fr_clock_s();

    for (int64_t i = 0; i < world; i++) {
        players[i] = (player){show, hub, backend, i};
        pthread_create(&threads[i], NULL, play, &players[i]);
    }
    for (int64_t i = 0; i < world; i++)
        pthread_join(threads[i], NULL);
    show->took_s = fr_clock_s() - begin_s;
}

bool gpu_show_perform(gpu_show *show)
{
    int64_t world = fr_plan_world(&show->plan);
    fr_placement placement = {.n_ranks = world,
                              .node_of_rank = show->node_of_rank};
    fr_gpu_system system = {0};
    fr_gpu_setup setup = {.system = &system,
                          .is_shared = show->is_shared,
                          .is_launched = show->is_launched,
                          .is_estimated = show->is_estimated};
    fr_backend backend = fr_backend_cpu;
    fr_loopback *hub = NULL;
    fr_model model;
    fr_err err = {0};

    if (show->fake != NULL)
        system = gpu_fake_system(show->fake);
    else if (show->system != NULL)
        system = *show->system;
    if (show->fake != NULL || show->system != NULL)
        backend = fr_gpu_backend(&setup);
    if (!CHECK_OK(show->model != NULL
                      ? fr_model_copy(show->model, &model, &err)
                      : fr_model_parse("tiny", show->model_text,
                                       strlen(show->model_text), &model, &err),
                  &err))
        return false;
    bool is_ok =
        CHECK_OK(fr_lower(&model, &show->job, &show->plan, &placement,
                          &show->program, &err),
                 &err) &&
        CHECK_OK(fr_loopback_create(world, show->node_of_rank, &hub, &err),
                 &err);
    fr_model_release(&model);
    if (is_ok)
        start_ranks(show, hub, &backend);
    fr_loopback_destroy(hub);
    return is_ok;
}

bool gpu_show_perform_well(gpu_show *show)
{
    bool is_ok = gpu_show_perform(show);

    for (int64_t i = 0; is_ok && i < fr_plan_world(&show->plan); i++)
        is_ok = CHECK_OK(show->status[i], &show->err[i]);
    return is_ok;
}

void gpu_show_release(gpu_show *show)
{
    fr_program_destroy(show->program);
    fr_timeline_release(&show->timeline);
    fr_run_result_release(&show->result);
}
