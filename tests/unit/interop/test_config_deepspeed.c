/* test_config_deepspeed.c: single keys of a ds_config.json as DeepSpeed 0.19
 * reads them (deepspeed/runtime/config.py, zero/config.py). */
#include "core/base/buffer.h"
#include "core/system/fileio.h"
#include "frameworks/read/config.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static fr_err err;

/* A file, of a model of 1.2 B parameters on 16 ranks. */
static fr_status read_text(const char *text, fr_config *out)
{
    fr_model model;
    fr_model_init(&model);
    model.n_layers = 24;
    model.hidden = 2048;
    model.n_heads = model.n_kv_heads = 16;
    model.head_dim = 128;
    model.ffn_hidden = 8192;
    model.vocab = 32000;
    model.max_seq = 2048;
    fr_config_request request = {.path = "ds.json",
                                 .text = text,
                                 .n_text = strlen(text),
                                 .model = &model,
                                 .world = 16};
    return fr_config_read(fr_config_find("deepspeed"), &request, out, &err);
}

/* A micro-batch, bf16, and these members besides. */
static fr_status read_more(const char *more, fr_config *out)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"train_micro_batch_size_per_gpu\": 2,"
             " \"bf16\": {\"enabled\": true}, %s}",
             more);
    return read_text(text, out);
}

static void check_refused(const char *more, const char *why)
{
    fr_config config;
    CHECK_FAILS(read_more(more, &config), FR_INPUT, &err);
    CHECK_HAS(err.text, why);
}

/* tests/golden/fixtures/misread/FILE. */
static bool read_file(const char *file, fr_config *out)
{
    char path[128], *text;
    snprintf(path, sizeof path, "tests/golden/fixtures/misread/%s", file);
    if (!CHECK_OK(fr_file_read(path, 0, &text, NULL, &err), &err))
        return false;
    const bool is_read = CHECK_OK(read_text(text, out), &err);
    free(text);
    return is_read;
}

/* activation_checkpointing only configures checkpoint(), which the model's code
 * calls. */
static void test_recompute(void)
{
    fr_config c;
    if (read_file("ds_act_ckpt_block.json", &c)) {
        CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_NONE);
        CHECK_HAS(fr_buffer_text(&c.notes), "give --recompute full");
        fr_config_release(&c);
    }
    if (CHECK_OK(read_more("\"activation_checkpointing\": "
                           "{\"cpu_checkpointing\": true}",
                           &c),
                 &err)) {
        CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_NONE);
        CHECK(c.file.plan.activation_offload_frac == 0);
        fr_config_release(&c);
    }
    if (CHECK_OK(read_more("\"pipeline\": {\"stages\": 2, "
                           "\"activation_checkpoint_interval\": 1}",
                           &c),
                 &err)) {
        CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_FULL);
        fr_config_release(&c);
    }
}

static void check_wire(const char *more, fr_dtype grad_dtype,
                       fr_compressor_kind compressor)
{
    fr_config c;
    if (!CHECK_OK(read_more(more, &c), &err))
        return;
    CHECK_INT(c.file.plan.grad_dtype, grad_dtype);
    CHECK_INT(c.file.plan.compressor, compressor);
    fr_config_release(&c);
}

/* The bytes that gradients send: runtime/engine.py, communication_data_type. */
static void test_wire(void)
{
    const fr_compressor_kind none = FR_COMPRESSOR_NONE;
    check_wire("\"train_batch_size\": 32", FR_DTYPE_BF16, none);
    check_wire("\"communication_data_type\": \"fp32\"", FR_DTYPE_F32, none);
    check_wire("\"communication_data_type\": \"FP32\"", FR_DTYPE_F32, none);
    check_wire("\"communication_data_type\": \"fp32\", "
               "\"zero_optimization\": {\"stage\": 2}",
               FR_DTYPE_F32, none);
    check_wire("\"communication_data_type\": \"fp16\"", FR_DTYPE_BF16, none);
    check_wire("\"data_types\": {\"grad_accum_dtype\": \"fp32\"}", FR_DTYPE_F32,
               FR_COMPRESSOR_BF16);
    check_wire("\"data_types\": {\"grad_accum_dtype\": \"fp32\"}, "
               "\"communication_data_type\": \"fp32\"",
               FR_DTYPE_F32, none);
    check_wire("\"data_types\": {\"grad_accum_dtype\": \"fp32\"}, "
               "\"communication_data_type\": \"fp16\"",
               FR_DTYPE_F32, FR_COMPRESSOR_BF16);
    check_refused("\"communication_data_type\": \"int8\"",
                  "give fp32, bf16 or fp16");
}

/* Keys of dictionaries from which DeepSpeed takes those that it knows; of its
 * pydantic models (extra="forbid") an unknown one is an error. */
static void test_unknown_keys(void)
{
    static const char *const passed[] = {
        "\"_comment\": \"x\"",
        "\"_zero_optimization\": {\"stage\": 1}",
        "\"comms_config\": {\"verbose\": true}",
        "\"my_own_notes\": [1]",
        "\"activation_checkpointing\": {\"remark\": 1}",
        "\"optimizer\": {\"type\": \"AdamW\", \"_comment\": \"x\"}",
        "\"data_types\": {\"_comment\": \"x\"}"};
    fr_config c;
    for (size_t i = 0; i < FR_LENGTH(passed); i++)
        if (CHECK_OK(read_more(passed[i], &c), &err)) {
            CHECK_INT(c.file.plan.zero_stage, 0);
            CHECK_HAS(fr_buffer_text(&c.notes), "passes over a key");
            fr_config_release(&c);
        }
    if (read_file("ds_comment.json", &c)) {
        CHECK_INT(c.file.plan.zero_stage, 2);
        fr_config_release(&c);
    }
    check_refused("\"zero_optimisation\": {\"stage\": 3}",
                  "did you mean 'zero_optimization'");
    check_refused("\"zero_optimization\": {\"_comment\": 1}",
                  "unknown key 'zero_optimization._comment'");
    check_refused("\"fp16\": {\"remark\": 1}", "unknown key 'fp16.remark'");
}

/* zero/config.py: nine fields have an alias stage3_X; populate_by_name. */
static void test_field_names(void)
{
    fr_config c;
    if (read_file("ds_zero3_field_names.json", &c)) {
        CHECK_INT(c.file.plan.zero_stage, 3);
        CHECK(c.file.plan.is_resharded);
        fr_config_release(&c);
    }
    if (CHECK_OK(read_more("\"zero_optimization\": {\"stage\": 3,"
                           "\"prefetch_bucket_size\": 0,"
                           "\"param_persistence_threshold\": 10,"
                           "\"model_persistence_threshold\": 10,"
                           "\"max_reuse_distance\": 1e12,"
                           "\"module_granularity_threshold\": 0,"
                           "\"use_all_reduce_for_fetch_params\": true,"
                           "\"allgather_sequential\": true}",
                           &c),
                 &err)) {
        CHECK_INT(c.file.plan.n_prefetch, 0);
        CHECK(!c.file.plan.is_resharded);
        fr_config_release(&c);
    }
    check_refused("\"zero_optimization\": {\"stage\": 3, "
                  "\"max_reuse_distance\": 1, "
                  "\"stage3_max_reuse_distance\": 2}",
                  "max_reuse_distance is the same field");
    if (CHECK_OK(read_more("\"tensor_parallel\": {\"tensor_parallel\": "
                           "{\"tp_size\": 4}, \"kernel_inject\": false}",
                           &c),
                 &err)) {
        CHECK_INT(c.file.plan.tp, 4);
        fr_config_release(&c);
    }
}

/* hjson.load() of runtime/config.py. */
static void test_hjson(void)
{
    fr_config c;
    const char *text = "// by hand\n"
                       "{\n"
                       "  # of one GPU\n"
                       "  \"train_micro_batch_size_per_gpu\": 3, // three\n"
                       "  bf16: {enabled: true,},\n"
                       "  /* of old: 3 */\n"
                       "  zero_optimization: {\n"
                       "    stage: 2,\n"
                       "  },\n"
                       "}\n";
    CHECK(fr_config_guess(text, strlen(text)) == fr_config_find("deepspeed"));
    if (CHECK_OK(read_text(text, &c), &err)) {
        CHECK_INT(c.file.plan.micro_batch, 3);
        CHECK_INT(c.file.plan.zero_stage, 2);
        CHECK_INT(c.file.plan.precision, FR_DTYPE_BF16);
        fr_config_release(&c);
    }
    CHECK_FAILS(read_text("{\n# x\n\"bf16\": {\"enabled\": 3},}", &c), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "ds.json:3:");
    CHECK_FAILS(read_text("{\"train_batch_size\": 32", &c), FR_INPUT, &err);
    CHECK_HAS(err.text, "ds.json:1: the text ends where");
}

CHECK_MAIN({"recompute", test_recompute}, {"wire", test_wire},
           {"unknown keys", test_unknown_keys},
           {"field names", test_field_names}, {"hjson", test_hjson})
