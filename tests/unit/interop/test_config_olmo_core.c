/* test_config_olmo_core.c: config.json of runs of OLMo-core (allenai/OLMo-core
 * at fa6c5014).  The texts are of our own; sizes are those of olmo2_7B
 * (nn/transformer/config.py). */
#include "spec/model/model_traits.h"
#include "tests/unit/interop/config_text.h"

static fr_err err;

#define BLOCK(mixer)                                                           \
    "{\"_CLASS_\": \"olmo_core.internal.ExperimentConfig\",\n"                 \
    "\"model\": {\"d_model\": 4096, \"vocab_size\": 100352,\n"                 \
    " \"n_layers\": 32, \"block\": {\"name\": \"reordered_norm\",\n"           \
    "  \"" mixer "\": {\"n_heads\": 32, \"bias\": false,\n"                    \
    "   \"rope\": {\"theta\": 500000}, \"backend\": \"flash_2\",\n"            \
    "   \"qk_norm\": {\"name\": \"rms\"}"
#define FEED                                                                   \
    "},\n  \"feed_forward\": {\"hidden_size\": 11008, \"bias\": false}}},\n"
#define TRAINING                                                               \
    "\"data_loader\": {\"global_batch_size\": 4194304},\n"                     \
    "\"init_seed\": 12536,\n"                                                  \
    "\"trainer\": {\"max_duration\": {\"value\": 8388608,\n"                   \
    "  \"unit\": \"tokens\"}},\n"                                              \
    "\"train_module\": {\"rank_microbatch_size\": 8192,\n"                     \
    " \"max_sequence_length\": 4096, \"compile_model\": true,\n"               \
    " \"max_grad_norm\": 1.25, \"optim\": {\n"                                 \
    "  \"_CLASS_\": \"olmo_core.optim.SkipStepAdamWConfig\",\n"                \
    "  \"lr\": 0.0003, \"weight_decay\": 0.05, \"betas\": [0.9, 0.96]},\n"     \
    " \"scheduler\": {\"warmup_steps\": 2000},\n"

static void test_dense(void)
{
    fr_config c;
    if (!config_text_read(
            BLOCK("attention") FEED TRAINING
            " \"dp_config\": {\"name\": \"hsdp\", \"num_replicas\": 16,\n"
            "  \"param_dtype\": \"bfloat16\", \"reduce_dtype\": \"float32\"},\n"
            " \"ac_config\": {\"mode\": \"selected_modules\",\n"
            "  \"modules\": [\"blocks.*.feed_forward\"]},\n"
            " \"tp_config\": null}}\n",
            "olmo-core", 256, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_job *job = &c.file.job;
    CHECK_INT(plan->dp, 256);
    CHECK_INT(plan->zero_stage, 3);
    CHECK_INT(plan->zero_group, 16);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_SELECTIVE);
    CHECK_INT(plan->recompute_parts, FR_RECOMPUTE_PART_MLP);
    CHECK_INT(plan->execution.kernels, FR_KERNELS_COMPILED);
    CHECK_INT(plan->execution.flash_kind, FR_FLASH_2);
    CHECK_INT(plan->micro_batch, 2); /* 8192 tokens */
    CHECK_INT(job->global_batch, 1024);
    CHECK_INT(job->seq, 4096);
    CHECK_INT(job->n_steps, 3); /* 2 and what is begun */
    CHECK_INT(job->seed, 12536);
    CHECK_NEAR(job->beta2, 0.96, 1e-12);
    CHECK_NEAR(job->clip_norm, 1.25, 1e-12);
    /* allenai/OLMo-2-1124-7B, as its card counts. */
    CHECK_INT(fr_model_parameters(&c.file.model), 7298617344);
    CHECK(fr_model_has(&c.file.model, FR_TRAIT_OUTPUT_NORMS));
    fr_config_release(&c);
}

/* Olmo 3: windows in three of four layers, of which the last has none. */
static void test_windows(void)
{
    fr_config c;
    if (!config_text_read(
            BLOCK("sequence_mixer") ",\n   \"sliding_window\": {\"pattern\": "
                                    "[4096, 4096, 4096, -1],\n"
                                    "    \"force_full_attention_on_first_layer"
                                    "\": false}" FEED TRAINING
                                    " \"cp_config\": {\"degree\": 2},\n"
                                    " \"dp_config\": {\"name\": \"fsdp\"}}}\n",
            "olmo-core", 16, &c, &err))
        return;
    CHECK_INT(c.file.plan.cp, 2);
    CHECK_INT(c.file.plan.dp, 8);
    CHECK_INT(c.file.plan.zero_group, 0);
    CHECK_INT(c.file.plan.precision, FR_DTYPE_F32);
    CHECK_INT(c.file.model.sliding_window, 4096);
    CHECK(strncmp(c.file.model.mixers, "wwwawwwa", 8) == 0);
    fr_config_release(&c);
}

static void test_refused(void)
{
    config_text_refused(BLOCK("attention") FEED TRAINING
                        " \"pp_config\": {\"degree\": 4}}}\n",
                        "olmo-core", "train_module.pp_config.degree 4");
    config_text_refused(BLOCK("attention") FEED "\"train_module\": {}}\n",
                        "olmo-core", "no train_module.max_sequence_length");
    config_text_refused("{\"_CLASS_\": \"olmo_core.X\", \"train_module\": "
                        "{\"max_sequence_length\": 4096}}",
                        "olmo-core", "give --model");
    config_text_refused(BLOCK("attention") FEED
                        "\"data_loader\": {\"global_batch_size\": 4194304},\n"
                        "\"train_module\": {\"max_sequence_length\": 4096,\n"
                        " \"rank_microbatch_size\": 5000}}\n",
                        "olmo-core",
                        "rank_microbatch_size 5000: its tokens are no whole");
}

CHECK_MAIN({"dense", test_dense}, {"windows", test_windows},
           {"refused", test_refused})
