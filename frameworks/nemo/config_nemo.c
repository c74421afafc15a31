/* config_nemo.c: configurations of NeMo 1 and NeMo 2. */
#include "frameworks/framework_list.h"
#include "frameworks/nemo/nemo_reader.h"
#include "frameworks/read/yaml_marks.h"

/* Hydra's parts `trainer` and `model`, and a key that only NeMo has; or the
 * trainer of Lightning and Megatron's degrees. */
static bool is_nemo_1(const char *text)
{
    return fr_yaml_find_mark(text, "trainer:") > 0 &&
           ((fr_yaml_find_mark(text, "model:") > 0 &&
             fr_yaml_find_mark(text, "exp_manager:") > 0) ||
            (fr_yaml_find_mark(text, " devices:") > 0 &&
             fr_yaml_find_mark(text, " tensor_model_parallel_size") > 0));
}

static bool looks_like(const char *text, size_t n)
{
    (void)n;
    return fr_nemo_2_looks_like(text) || is_nemo_1(text);
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    return fr_nemo_read_config(
        request,
        fr_nemo_2_looks_like(request->text) ? fr_nemo_2_read : fr_nemo_1_read,
        out, err);
}

const fr_config_format fr_config_nemo = {
    .summary = "the YAML of NeMo 1, and of recipes of NeMo 2",
    .looks_like = looks_like,
    .read = read_config,
};
