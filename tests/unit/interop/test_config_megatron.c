/* test_config_megatron.c: what single arguments of Megatron-LM come to. */
#include "core/base/buffer.h"
#include "frameworks/read/config.h"
#include "tests/check.h"

#include <string.h>

static fr_err err;

/* Arguments of a model of 8 layers and 16 experts, and these besides. */
static fr_status read_more(const char *more, fr_config *out)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_buffer_printf(&text,
                     "torchrun --nproc_per_node 8 pretrain_gpt.py "
                     "--num-layers 8 --hidden-size 256 "
                     "--num-attention-heads 4 --max-position-embeddings 512 "
                     "--seq-length 512 --micro-batch-size 1 --vocab-size 1024 "
                     "--num-experts 16 --bf16 %s\n",
                     more);
    fr_config_request request = {
        .path = "m.sh", .text = fr_buffer_text(&text), .n_text = text.n};
    fr_status status =
        fr_config_read(fr_config_find("megatron"), &request, out, &err);
    fr_buffer_release(&text);
    return status;
}

/* The layers with experts that a --moe-layer-freq comes to, as "00011111". */
static void check_layers(const char *value, const char *layers)
{
    char more[256];
    fr_config config;
    snprintf(more, sizeof more, "--moe-layer-freq '%s'", value);
    if (!CHECK_OK(read_more(more, &config), &err))
        return;
    for (int i = 0; i < 8; i++)
        CHECK_INT(fr_model_layer_is_moe(&config.file.model, i),
                  layers[i] == '1');
    fr_config_release(&config);
}

static void check_refused(const char *more, const char *why)
{
    fr_config config;
    CHECK_FAILS(read_more(more, &config), FR_INPUT, &err);
    CHECK_HAS(err.text, why);
}

/* The forms of moe_freq_type's own help (arguments.py, core 0.19). */
static void test_layers(void)
{
    check_layers("1", "11111111");
    check_layers("[0]*3+[1]*5", "00011111");
    check_layers("([0]*3+[1]*5)", "00011111");
    check_layers("([0]+[1]*7)", "01111111");
    check_layers("[0]+[1]*7", "01111111");
    check_layers("[0,0,0,1,1,1,1,1]", "00011111");
    check_layers("[0,1]*4", "01010101");
    check_layers("([0]*1+[1]*1)*4", "01010101");
    check_layers("2*([0]*3+[1])", "00010001");
    check_layers("[0]*0+[1]*(4*2)", "11111111");
    check_layers("[0,0,0,1,0,1,0,1]", "00010101");
    check_layers("[0]*7+[1]", "00000001");
    check_layers("[0]*8", "00000000");
}

static void test_layers_refused(void)
{
    static const char *const none[] = {
        "2",
        "[0]*3",
        "[0]*3+[1]*6",
        "[0]*3+1",
        "[0]*[1]",
        "([0]*3+[1]*5",
        "[0,2]*4",
        "[0]*3+[1]*5)",
        "[0]*99999999999999999999",
        "[0]-[1]",
        "[0]*-1+[1]*8",
        "[0]*1000*1000*1000*1000*0+[1]*8",
        "[1",
        "",
        "((((((((((((((((((([1]*8)))))))",
        "[0] * 3+[1]",
        "1*1*1048576*2",
    };
    char more[256];
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        snprintf(more, sizeof more, "--moe-layer-freq '%s'", none[i]);
        check_refused(more, "a list of a 0 or 1 for each layer");
    }
    check_refused("--moe-layer-freq '[1,0]*4'", "or every k-th");
    check_refused("--moe-layer-freq '([1]*3+[0])*2'", "or every k-th");
}

static void test_router(void)
{
    fr_config config;
    if (!CHECK_OK(
            read_more("--moe-router-topk 4 --moe-router-score-function sigmoid "
                      "--moe-router-num-groups 8 --moe-router-group-topk 2 "
                      "--moe-router-topk-scaling-factor 2.385 "
                      "--moe-router-enable-expert-bias",
                      &config),
            &err))
        return;
    const fr_model *model = &config.file.model;
    CHECK(model->has_sigmoid_router && model->has_router_bias);
    CHECK(!model->has_softmax_over_all);
    CHECK_INT(model->n_expert_groups, 8);
    CHECK_INT(model->n_chosen_groups, 2);
    CHECK_NEAR(model->routed_scale, 2.385, 1e-12);
    CHECK(strstr(fr_buffer_text(&config.notes), "router") == NULL);
    fr_config_release(&config);
    if (!CHECK_OK(read_more("--moe-router-topk 2 --moe-router-pre-softmax "
                            "--moe-router-num-groups 4 "
                            "--moe-router-group-topk 1",
                            &config),
                  &err))
        return;
    CHECK(model->has_softmax_over_all && !model->has_sigmoid_router);
    CHECK_HAS(fr_buffer_text(&config.notes),
              "sum of their best 2 scores, here of 1");
    fr_config_release(&config);
    check_refused("--moe-router-score-function sqrtsoftplus", "not modelled");
    check_refused("--moe-router-enable-expert-bias", "asks for");
    check_refused("--moe-router-group-topk 2", "--moe-router-num-groups");
    check_refused("--moe-router-num-groups 3 --moe-router-group-topk 2",
                  "--moe-router-num-groups");
}

/* Other properties of experts that change a prediction or are noted. */
static void test_experts(void)
{
    fr_config config;
    if (CHECK_OK(read_more("--moe-router-fusion --moe-permute-fusion "
                           "--moe-aux-loss-coeff 0.02385 "
                           "--moe-router-load-balancing-type seq_aux_loss",
                           &config),
                 &err)) {
        CHECK(config.file.plan.execution.is_routing_fused);
        CHECK(config.file.model.is_aux_by_sequence);
        CHECK_NEAR(config.file.model.router_aux_coef, 0.02385, 1e-12);
        CHECK(strstr(fr_buffer_text(&config.notes), "-fusion") == NULL);
        CHECK(strstr(fr_buffer_text(&config.notes), "alone") == NULL);
        fr_config_release(&config);
    }
    if (CHECK_OK(read_more("--moe-permute-fusion "
                           "--moe-router-load-balancing-type sinkhorn",
                           &config),
                 &err)) {
        CHECK(!config.file.plan.execution.is_routing_fused);
        CHECK_HAS(fr_buffer_text(&config.notes),
                  "--moe-permute-fusion without --moe-router-fusion");
        CHECK_HAS(fr_buffer_text(&config.notes),
                  "aux_loss and seq_aux_loss alone");
        fr_config_release(&config);
    }
}

/* num_microbatches_calculator.py sorts by tokens; the last stays. */
static void test_batch_schedule(void)
{
    fr_config config;
    static const char *const schedules[] = {"'0:16 2.4B:320 12B:1536'",
                                            "0:16,12b:1.536K,2.4B:320"};
    for (int i = 0; i < 2; i++) {
        char more[128];
        snprintf(more, sizeof more, "--step-batch-size-schedule %s",
                 schedules[i]);
        if (!CHECK_OK(read_more(more, &config), &err))
            continue;
        CHECK_INT(config.file.job.global_batch, 1536);
        CHECK_HAS(fr_buffer_text(&config.notes), "its last batch, 1536\n");
        fr_config_release(&config);
    }
    if (CHECK_OK(read_more("--global-batch-size 64 "
                           "--step-batch-size-schedule '0:16 1M:320'",
                           &config),
                 &err)) {
        CHECK_INT(config.file.job.global_batch, 320);
        CHECK_HAS(fr_buffer_text(&config.notes), "takes no --global-batch");
        fr_config_release(&config);
    }
    check_refused("--step-batch-size-schedule 16", "give tokens and batches");
    check_refused("--step-batch-size-schedule 0:", "give tokens and batches");
    check_refused("--step-batch-size-schedule 0:0", "give tokens and batches");
    check_refused("--step-batch-size-schedule 0:8T", "give tokens and batches");
    check_refused("--step-batch-size-schedule ''", "give tokens and batches");
}

/* Every argument that is not read is named, however many there are. */
static void test_rest(void)
{
    char more[4096], name[32];
    fr_config config;
    more[0] = '\0';
    for (int i = 0; i < 60; i++)
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 "--my-note-%d %d ", i, i);
    if (!CHECK_OK(read_more(more, &config), &err))
        return;
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "--my-note-%d", i);
        CHECK_HAS(fr_buffer_text(&config.notes), name);
    }
    fr_config_release(&config);
}

/* Files as their frameworks' examples have them, reduced to the keys. */
static void test_relatives(void)
{
    static const struct {
        const char *text, *framework;
    } rows[] = {
        {"trainer:\n  num_nodes: 2\n  devices: 8\nmodel:\n"
         "  tensor_model_parallel_size: 4\n  num_layers: 16\n",
         "NeMo 1"},
        {"_target_: nemo.collections.llm.recipes\n"
         "strategy:\n  tensor_model_parallel_size: 4\n",
         "NeMo 2: its names mean other things than Megatron-LM's; import it "
         "as nemo"},
        {"work_group: team\nmodules:\n  pre_trainer:\n    overrides:\n"
         "      tensor_model_parallel_size: 4\n",
         "Primus"},
        {"pipe_parallel_size: 1\nmodel_parallel_size: 1\nnum_layers: 12\n",
         "GPT-NeoX"},
        {"actor_rollout_ref:\n  actor:\n    megatron:\n"
         "      tensor_model_parallel_size: 4\ntrainer:\n  nnodes: 1\n",
         "verl, which is not read"},
        {"policy:\n  megatron_cfg:\n    tensor_model_parallel_size: 2\n"
         "    _target_: nemo_automodel.X\n",
         "NeMo-RL, which is not read"},
        {"model_name_or_path: a/b\nstage: sft\n"
         "tensor_model_parallel_size: 2\n",
         "LLaMA-Factory, which is not read"},
        {"general:\n  run: x\nparallelism:\n  dp: 8\ntokens:\n"
         "  sequence_length: 2048\n",
         "nanotron"},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        fr_config config;
        const fr_config_request request = {.path = "m.yaml",
                                           .text = rows[i].text,
                                           .n_text = strlen(rows[i].text),
                                           .world = 16};
        CHECK_FAILS(
            fr_config_read(fr_config_find("megatron"), &request, &config, &err),
            FR_INPUT, &err);
        CHECK_HAS(err.text, rows[i].framework);
        /* Without a name, the reader that it is for, or Megatron's refusal. */
        const fr_framework *found =
            fr_config_guess(rows[i].text, strlen(rows[i].text));
        CHECK(found != NULL &&
              (found == fr_config_find("megatron")) ==
                  (strstr(rows[i].framework, "not read") != NULL));
    }
}

CHECK_MAIN({"layers", test_layers}, {"layers_refused", test_layers_refused},
           {"router", test_router}, {"experts", test_experts},
           {"batch_schedule", test_batch_schedule}, {"rest", test_rest},
           {"relatives", test_relatives})
