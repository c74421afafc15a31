/* test_config_accelerate.c: who runs where, as accelerate launch takes it
 * (commands/launch.py, commands/config/config_args.py). */
#include "core/base/buffer.h"
#include "core/system/fileio.h"
#include "frameworks/read/config.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static fr_err err;

/* A file, of a model of 201,326,592 parameters in 4 layers and its vocabulary.
 */
static fr_status read_text(const char *text, int64_t world, fr_config *out)
{
    fr_model model;
    fr_model_init(&model);
    model.n_layers = 4;
    model.hidden = 1024;
    model.n_heads = model.n_kv_heads = 16;
    model.head_dim = 64;
    model.ffn_hidden = 4096;
    model.vocab = 32000;
    model.max_seq = 2048;
    fr_config_request request = {.path = "a.yaml",
                                 .text = text,
                                 .n_text = strlen(text),
                                 .model = &model,
                                 .world = world};
    return fr_config_read(fr_config_find("accelerate"), &request, out, &err);
}

static void check_one(const char *text, int64_t world, const char *note)
{
    fr_config c;
    if (!CHECK_OK(read_text(text, world, &c), &err))
        return;
    CHECK_INT(c.file.plan.dp, 1);
    CHECK_INT(c.file.job.global_batch, c.file.plan.micro_batch);
    CHECK_HAS(fr_buffer_text(&c.notes), note);
    fr_config_release(&c);
}

/* distributed_type NO is one process. */
static void test_single(void)
{
    char *text;
    fr_config c;
    if (CHECK_OK(
            fr_file_read("tests/golden/fixtures/misread/accelerate_no.yaml", 0,
                         &text, NULL, &err),
            &err)) {
        check_one(text, 0, "one process, not 4");
        check_one(text, 16, "one process, not 4");
        free(text);
    }
    check_one("distributed_type: NO\n", 8, "one process, not 8");
    check_one("distributed_type: 'NO'\n", 0, "micro-batch 8");
    check_one("{\"distributed_type\": \"NO\", \"num_processes\": 1}\n", 0,
              "micro-batch 8");
    if (CHECK_OK(
            read_text("distributed_type: MULTI_GPU\nnum_processes: 4\n", 0, &c),
            &err)) {
        CHECK_INT(c.file.plan.dp, 4);
        fr_config_release(&c);
    }
    CHECK_FAILS(
        read_text("distributed_type: MULTI_GPU\nnum_processes: 4\n", 16, &c),
        FR_INPUT, &err);
    CHECK_STR(err.text, "a.yaml:2: num_processes is 4, and there are 16 ranks");
}

static void test_cpu(void)
{
    fr_config c;
    check_one("distributed_type: 'NO'\nuse_cpu: true\nmixed_precision: bf16\n",
              0, "use_cpu: the processes train on CPUs");
    CHECK_FAILS(read_text("distributed_type: MULTI_CPU\nuse_cpu: true\n"
                          "num_processes: 2\nmixed_precision: fp16\n",
                          0, &c),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "a.yaml:2: Accelerate has no fp16 on CPUs");
}

/* FSDP's offload has parameters and gradients on the host as well. */
static void test_offload(void)
{
    fr_config c;
    const char *text = "distributed_type: FSDP\nnum_processes: 4\n"
                       "mixed_precision: bf16\nfsdp_config:\n"
                       "  fsdp_offload_params: %s\n";
    char is[256];
    snprintf(is, sizeof is, text, "true");
    if (CHECK_OK(read_text(is, 0, &c), &err)) {
        char note[64];
        CHECK(c.file.plan.is_optimizer_offloaded);
        snprintf(note, sizeof note, "has %.1f GiB too much",
                 (double)fr_model_parameters(&c.file.model) / 4 * (2 + 2) /
                     (1 << 30));
        CHECK_HAS(fr_buffer_text(&c.notes), note);
        fr_config_release(&c);
    }
    snprintf(is, sizeof is, text, "false");
    if (CHECK_OK(read_text(is, 0, &c), &err)) {
        CHECK(!c.file.plan.is_optimizer_offloaded);
        CHECK(strstr(fr_buffer_text(&c.notes), "too much") == NULL);
        fr_config_release(&c);
    }
}

/* Without megatron_lm_config all its defaults hold. */
static void test_no_part(void)
{
    fr_config c;
    if (CHECK_OK(read_text("distributed_type: MEGATRON_LM\nnum_processes: 3\n",
                           0, &c),
                 &err)) {
        CHECK_INT(c.file.plan.dp, 3);
        CHECK_INT(c.file.plan.tp, 1);
        fr_config_release(&c);
    }
}

CHECK_MAIN({"single", test_single}, {"cpu", test_cpu},
           {"offload", test_offload}, {"no part", test_no_part})
