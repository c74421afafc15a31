/*
 * test_weights.c: weights from and to Hugging Face's files.  Each model of
 * tests/oracle/weights, which PyTorch wrote, has PyTorch's loss in every
 * layout, and what a run without learning writes is what it read.
 */
#include "core/system/fileio.h"
#include "runtime/weights/weight_files.h"
#include "runtime/weights/weights.h"
#include "spec/model/model_json.h"
#include "tests/check.h"
#include "tests/oracle/weights_golden.h"
#include "tests/unit/runtime/gpu_show.h"

#include <stdlib.h>
#include <unistd.h>

#define GOLDENS "tests/oracle/weights/"

static const struct {
    const char *name;
    int dp, tp, pp, ep, zero;
} layouts[] = {
    {"alone", 1, 1, 1, 1, 0},     {"tp2", 1, 2, 1, 1, 0},
    {"dp2 zero1", 2, 1, 1, 1, 1}, {"pp2", 1, 1, 2, 1, 0},
    {"dp2 zero3", 2, 1, 1, 1, 3}, {"tp2 pp2", 1, 2, 2, 1, 0},
    {"tp2 zero3", 2, 2, 1, 1, 3}, {"ep2", 2, 1, 1, 2, 0},
    {"ep2 zero1", 4, 1, 1, 2, 1},
};

static void write_tokens(const char *path, int64_t vocab)
{
    FILE *file = fopen(path, "wb");

    for (int64_t i = 0; file != NULL && i <= WEIGHTS_SEQ; i++) {
        (void)fputc((int)((7 * i * i + 3 * i + 11) % vocab), file);
        (void)fputc(0, file);
    }
    CHECK(file != NULL && fclose(file) == 0);
}

static void init(gpu_show *s, size_t i_layout)
{
    gpu_show_init(s);
    s->plan.micro_batch = 1;
    s->plan.dp = layouts[i_layout].dp;
    s->plan.tp = layouts[i_layout].tp;
    s->plan.pp = layouts[i_layout].pp;
    s->plan.ep = layouts[i_layout].ep;
    s->plan.zero_stage = layouts[i_layout].zero;
    fr_job_init(&s->job);
    s->job.global_batch = 4; /* the file has one window: it comes again */
    s->job.seq = WEIGHTS_SEQ;
    s->job.n_steps = 1;
    s->job.lr = 1e-30; /* weights stay */
    s->job.weight_decay = 0;
    s->options.timeout_s = 20;
    s->options.is_unwatched = true;
}

/* False: the layout is none of this model, or its program or a rank failed. */
static bool perform(gpu_show *s, const char *model_path, bool is_to_be_well)
{
    fr_model model;
    fr_err err = {0};

    if (!CHECK_OK(fr_model_load(NULL, model_path, &model, &err), &err))
        return false;
    check_tmp_path(s->job.data, "test_weights.%d.bin", (int)getpid());
    if (model.vocab > 0)
        write_tokens(s->job.data, model.vocab);
    else
        s->job.data[0] = '\0'; /* images are made up */
    s->model = &model;
    const bool is_ok =
        (s->plan.ep == 1 || model.n_experts > 0) &&
        (s->plan.zero_stage < 3 || model.n_mtp_layers == 0) &&
        CHECK_OK(fr_plan_check_executable(&s->plan, &model, &s->job, &err),
                 &err) &&
        (is_to_be_well ? gpu_show_perform_well(s) : gpu_show_perform(s));
    (void)unlink(s->job.data);
    fr_model_release(&model);
    s->model = NULL;
    return is_ok;
}

/* ---- files --------------------------------------------------------------- */

static float *read_tensor(const fr_safetensors *file, const fr_safetensor *t,
                          size_t *n)
{
    fr_err err = {0};
    *n = 1;
    for (int d = 0; d < t->n_dims; d++)
        *n *= (size_t)t->dim[d];
    float *out = malloc(*n * sizeof *out + 1);
    if (out == NULL ||
        !CHECK_OK(fr_safetensors_read(file, t, 0, *n, out, &err), &err)) {
        free(out);
        return NULL;
    }
    return out;
}

/* A tensor that was read is in what was written, maybe with a prefix.  One
 * less than one more is not the same number. */
static void check_tensor(const fr_safetensors *file, const fr_safetensor *t,
                         const fr_weight_files *written, const char *model)
{
    const double tolerance = strcmp(model, "gemma") == 0 ? 1e-7 : 0;
    const fr_safetensors *other = NULL;
    char longer[256];
    size_t n, n_other, n_wrong = 0;
    snprintf(longer, sizeof longer, "transformer.%s", t->name);
    const fr_safetensor *same = fr_weight_files_find(written, t->name, &other);
    if (same == NULL)
        same = fr_weight_files_find(written, longer, &other);
    check_that(same != NULL, __FILE__, __LINE__, "%s: no %s was written", model,
               t->name);
    if (same == NULL || !CHECK_INT(same->n_dims, t->n_dims) ||
        !CHECK_INT(same->dim[0], t->dim[0]) ||
        !CHECK_INT(same->dim[1], t->dim[1]) ||
        !CHECK_INT(same->dim[2], t->dim[2]))
        return;
    float *a = read_tensor(file, t, &n);
    float *b = read_tensor(other, same, &n_other);
    for (size_t i = 0; a != NULL && b != NULL && i < n; i++)
        n_wrong += !(fabs((double)a[i] - (double)b[i]) <= tolerance);
    check_that(n_wrong == 0, __FILE__, __LINE__, "%s: %zu of %zu of %s differ",
               model, n_wrong, n, t->name);
    free(a);
    free(b);
}

/* A tensor that is a copy of another one is read, not written. */
static bool is_copy(const char *name)
{
    return strstr(name, "shared_head.head") != NULL ||
           strstr(name, "layers.2.embed_tokens") != NULL;
}

static void check_same(const char *read, const char *dir, const char *model)
{
    fr_weight_files first = {0}, second = {0};
    fr_err err = {0};
    if (CHECK_OK(fr_weight_files_open(read, &first, &err), &err) &&
        CHECK_OK(fr_weight_files_open(dir, &second, &err), &err))
        for (size_t f = 0; f < first.all.n; f++)
            for (size_t i = 0; i < first.all.items[f].n; i++) {
                const fr_safetensor *t = &first.all.items[f].tensors[i];
                if (strcmp(t->dtype, "U8") != 0 && !is_copy(t->name) &&
                    !(strcmp(model, "bert") == 0 &&
                      strstr(t->name, "pooler") != NULL))
                    check_tensor(&first.all.items[f], t, &second, model);
            }
    fr_weight_files_close(&first);
    fr_weight_files_close(&second);
}

static void remove_dir(const char *dir)
{
    char command[CHECK_PATH_BYTES + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    CHECK_INT(system(command), 0);
}

/* ---- tests --------------------------------------------------------------- */

static void test_families(void)
{
    char dir[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES];
    check_tmp_path(dir, "test_weights.%d", (int)getpid());
    for (size_t i = 0; i < sizeof weights_goldens / sizeof *weights_goldens;
         i++)
        for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
            const char *name = weights_goldens[i].name;
            gpu_show s;
            init(&s, l);
            snprintf(path, sizeof path, GOLDENS "%s", name);
            s.options.init_path = path;
            s.options.save_dir = dir;
            if (!perform(&s, path, true)) {
                gpu_show_release(&s);
                continue;
            }
            const double loss = s.result.loss[0];
            gpu_show_release(&s);
            check_that(fabs(loss - weights_goldens[i].loss) <=
                           2e-6 * weights_goldens[i].loss,
                       __FILE__, __LINE__, "%s %s: loss %.9g, not %.9g", name,
                       layouts[l].name, loss, weights_goldens[i].loss);
            check_same(path, dir, name);
            remove_dir(dir);
        }
}

/* Shards, an index and the configuration; what an earlier run left goes. */
static void test_shards(void)
{
    static const struct {
        uint64_t shard_bytes;
        bool is_sharded;
    } cases[] = {{0, false}, {7000, true}, {0, false}};
    char dir[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES + 64];
    check_tmp_path(dir, "test_weights.%d", (int)getpid());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu_show s;
        init(&s, 5);
        s.options.init_path = i == 0 ? GOLDENS "qwen2_moe" : dir;
        s.options.save_dir = dir;
        s.options.save_shard_bytes = cases[i].shard_bytes;
        const bool is_ok = perform(&s, GOLDENS "qwen2_moe", true);
        gpu_show_release(&s);
        if (!is_ok)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, FR_WEIGHT_FILE);
        CHECK_INT(fr_file_exists(path), !cases[i].is_sharded);
        snprintf(path, sizeof path, "%s/%s", dir, FR_WEIGHT_INDEX);
        CHECK_INT(fr_file_exists(path), cases[i].is_sharded);
        check_same(GOLDENS "qwen2_moe", dir, "qwen2_moe");
    }
    remove_dir(dir);
}

static int count_parts(const char *dir)
{
    char command[CHECK_PATH_BYTES + 64];
    int n = -1;
    snprintf(command, sizeof command, "ls '%s' | grep -c '[.]part$'", dir);
    FILE *listed = popen(command, "r");
    if (listed != NULL && fscanf(listed, "%d", &n) != 1)
        n = -1;
    if (listed != NULL)
        (void)pclose(listed);
    return n;
}

/* A save that ends among shards of the names of older ones: no index says that
 * the mixture is a model, and nothing else is left of it. */
static void test_interrupted_shards(void)
{
    char dir[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES + 64],
        command[2 * CHECK_PATH_BYTES + 64];
    check_tmp_path(dir, "test_weights.%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        gpu_show s;
        init(&s, 5);
        s.options.init_path = GOLDENS "qwen2_moe";
        s.options.save_dir = dir;
        s.options.save_shard_bytes = 7000;
        (void)perform(&s, GOLDENS "qwen2_moe", i == 0);
        gpu_show_release(&s);
        snprintf(path, sizeof path, "%s/%s", dir, FR_WEIGHT_INDEX);
        CHECK_INT(fr_file_exists(path), i == 0);
        CHECK_INT(count_parts(dir), 0);
        /* The second shard cannot take its name. */
        snprintf(command, sizeof command,
                 "cd '%s' && f=$(ls model-00002-*) && rm $f && mkdir -p $f/x",
                 dir);
        CHECK_INT(i == 0 ? system(command) : 0, 0);
    }
    remove_dir(dir);
}

/* The model that is written with the weights is the same when it is read. */
static void test_configs(void)
{
    char path[CHECK_PATH_BYTES];
    for (size_t i = 0; i < sizeof weights_goldens / sizeof *weights_goldens;
         i++) {
        fr_model model, again;
        fr_buffer config, first, second;
        fr_json_writer json;
        fr_err err = {0};
        snprintf(path, sizeof path, GOLDENS "%s", weights_goldens[i].name);
        if (!CHECK_OK(fr_model_load(NULL, path, &model, &err), &err))
            continue;
        fr_buffer_init(&config);
        fr_json_writer_init(&json, &config);
        fr_model_to_hugging_face(&model, &json);
        if (CHECK_OK(
                fr_model_parse(model.name, config.data, config.n, &again, &err),
                &err)) {
            fr_buffer_init(&first);
            fr_json_writer_init(&json, &first);
            fr_model_to_json(&model, &json);
            fr_buffer_init(&second);
            fr_json_writer_init(&json, &second);
            fr_model_to_json(&again, &json);
            CHECK_STR(first.data, second.data);
            fr_buffer_release(&first);
            fr_buffer_release(&second);
            fr_model_release(&again);
        }
        fr_buffer_release(&config);
        fr_model_release(&model);
    }
}

/* ---- what is refused ----------------------------------------------------- */

/* A file that is cut anywhere is refused in one line that names it. */
static void test_cut(void)
{
    char path[CHECK_PATH_BYTES], *bytes;
    size_t n;
    fr_err err = {0};
    check_tmp_path(path, "test_weights.%d.safetensors", (int)getpid());
    if (!CHECK_OK(fr_file_read(GOLDENS "llama/model-00001-of-00003.safetensors",
                               0, &bytes, &n, &err),
                  &err))
        return;
    CHECK_OK(fr_file_write(path, bytes, n, &err), &err);
    for (size_t at = n; at-- > 0;) {
        fr_safetensors file;
        CHECK_INT(truncate(path, (off_t)at), 0);
        if (CHECK_FAILS(fr_safetensors_open(path, &file, &err), FR_INPUT, &err))
            CHECK_HAS(err.text, path);
    }
    (void)unlink(path);
    free(bytes);
}

/* Headers before eight bytes of elements. */
static void test_headers(void)
{
#define T(name, dtype, shape, offsets)                                         \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape               \
    ", \"data_offsets\": " offsets "}"
    static const struct {
        const char *header, *reason;
    } cases[] = {
        {"{" T("a", "F32", "[2]", "[0, 8]") "}", NULL},
        {"{" T("a", "F32", "[1]", "[0, 4]") ", " T("b", "F32", "[]",
                                                   "[4, 8]") "}",
         NULL},
        {"{" T("a", "I64", "[1]", "[0, 8]") ", " T("b", "F32", "[0, 3]",
                                                   "[8, 8]") "}",
         NULL},
        {"{" T("a", "F32", "[3]", "[0, 12]") "}", "it was cut"},
        {"{" T("a", "F32", "[1]", "[0, 8]") "}", "does not fit"},
        {"{" T("a", "F32", "[2]", "[8, 0]") "}", "ends before"},
        {"{" T("a", "F32", "[2]", "[0, 8, 8]") "}", "not two"},
        {"{" T("a", "F32", "[1]", "[4, 8]") "}", "a hole"},
        {"{" T("a", "F32", "[1]", "[0, 4]") "}", "4 bytes after"},
        {"{" T("a", "F32", "[2]", "[0, 8]") ", " T("b", "F32", "[1]",
                                                   "[4, 8]") "}",
         "tensor 'b': it overlaps"},
        {"{" T("a", "F32", "[2]", "[0, 18446744073709551615]") "}", "was cut"},
        {"{" T("a", "F32", "[4294967296, 4294967296]", "[0, 8]") "}",
         "too large"},
        {"{" T("a", "F32", "[4611686018427387906]", "[0, 8]") "}",
         "does not fit"},
        {"{" T("a", "F32", "[-2]", "[0, 8]") "}", "weights:1"},
        {"{" T("a", "F32", "[2.5]", "[0, 8]") "}", "weights:1"},
        {"{" T("a", "F9", "[2]", "[0, 8]") "}", "dtype is not known"},
        {"{" T("a\\n", "F32", "[2]", "[0, 8]") "}", "plain text"},
        {"{\"a\": 7}", "weights:1"},
        {"[]", "not an object"},
        {"{", "weights:1"},
        {"", "weights:1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_safetensors file;
        fr_err err = {0};
        fr_status status =
            fr_safetensors_parse("weights", cases[i].header,
                                 strlen(cases[i].header), 8, &file, &err);
        if (cases[i].reason == NULL) {
            if (CHECK_OK(status, &err))
                fr_safetensors_close(&file);
        } else if (CHECK_FAILS(status, FR_INPUT, &err)) {
            CHECK_HAS(err.text, cases[i].reason);
            CHECK(strchr(err.text, '\n') == NULL);
        }
    }
}

/* Files of another model. */
static void test_wrong(void)
{
    static const struct {
        const char *model, *weights, *reason;
    } cases[] = {
        {"llama", "qwen2/model.safetensors.index.json",
         "no tensor 'lm_head.weight'"},
        {"qwen3", "mistral", "no tensor 'model.layers.0.self_attn.q_norm"},
        {"gemma", "qwen3", "is none of model gemma"},
        {"mistral", "qwen3", "has the shape [24, 16], the model's is [16, 16]"},
        {"llama", "llama/model-00001-of-00003.safetensors", "no tensor"},
        {"gpt2", "gemma", "no tensor 'transformer.wte.weight'"},
        {"llama", "llama/config.json", "weight_map"},
        {"llama", "nowhere", "no such file"},
        {"llama", "../weights_golden.h", "no safetensors file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char model[CHECK_PATH_BYTES], path[CHECK_PATH_BYTES];
        gpu_show s;
        init(&s, 0);
        snprintf(model, sizeof model, GOLDENS "%s", cases[i].model);
        snprintf(path, sizeof path, GOLDENS "%s", cases[i].weights);
        s.options.init_path = path;
        if (perform(&s, model, false)) {
            CHECK(s.status[0] == FR_INPUT || s.status[0] == FR_IO);
            CHECK_HAS(s.err[0].text, cases[i].reason);
        }
        gpu_show_release(&s);
    }
}

CHECK_MAIN({"families", test_families}, {"shards", test_shards},
           {"interrupted_shards", test_interrupted_shards},
           {"configs", test_configs}, {"cut", test_cut},
           {"headers", test_headers}, {"wrong", test_wrong})
