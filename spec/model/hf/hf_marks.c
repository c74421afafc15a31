/* hf_marks.c: see hf_marks.h. */
#include "spec/model/hf/hf_marks.h"

#include "spec/model/hf/hf_type.h"

#include <string.h>

static const fr_hf_mark windows[] = {
    {"sliding_attention", 'w'},
    {"full_attention", 'a'},
};

static fr_status check_count(const fr_json_value *at, const fr_model *model,
                             fr_err *err)
{
    if (model->n_layers < 1 || model->n_layers > FR_MODEL_MOST_MARKS)
        return fr_json_fail(at, err,
                            "%lld layers of several kinds; 1 to %d are read",
                            (long long)model->n_layers, FR_MODEL_MOST_MARKS);
    return FR_OK;
}

fr_status fr_hf_read_marks(const fr_json_value *config, const char *key,
                           const fr_hf_mark *marks, size_t n_marks,
                           fr_model *model, bool *out, fr_err *err)
{
    const fr_json_value *list = fr_json_find(config, key);
    *out = false;
    if (list == NULL || fr_json_kind_of(list) != FR_JSON_ARRAY)
        return FR_OK;
    FR_TRY(check_count(list, model, err));
    if (fr_json_n(list) != (size_t)model->n_layers)
        return fr_json_fail(list, err, "%s has %zu entries for %lld layers",
                            key, fr_json_n(list), (long long)model->n_layers);
    for (size_t i = 0; i < fr_json_n(list); i++) {
        const fr_json_value *at = fr_json_at(list, i);
        const char *word;
        size_t k = 0;
        FR_TRY(fr_json_as_string(at, &word, err));
        while (k < n_marks && strcmp(marks[k].word, word) != 0)
            k++;
        if (k == n_marks)
            return fr_json_fail(at, err, "layer type '%s' is not modelled here",
                                word);
        model->mixers[i] = marks[k].letter;
    }
    model->mixers[fr_json_n(list)] = '\0';
    *out = true;
    return FR_OK;
}

fr_status fr_hf_mark_period(const fr_json_value *config, int64_t period,
                            int64_t offset, char most, char other,
                            fr_model *model, fr_err *err)
{
    FR_TRY(check_count(config, model, err));
    if (period < 1)
        return fr_json_fail(config, err,
                            "the period of layers is %lld; give 1 or more",
                            (long long)period);
    for (int64_t i = 0; i < model->n_layers; i++)
        model->mixers[i] = i % period == offset ? other : most;
    model->mixers[model->n_layers] = '\0';
    return FR_OK;
}

fr_status fr_hf_mark_mlps(const fr_json_value *config, char mlp,
                          fr_model *model, fr_err *err)
{
    FR_TRY(check_count(config, model, err));
    memset(model->mlps, mlp, (size_t)model->n_layers);
    model->mlps[model->n_layers] = '\0';
    return FR_OK;
}

fr_status fr_hf_refuse_other_layers(const fr_json_value *config,
                                    const char *only, fr_err *err)
{
    const fr_json_value *types = fr_json_find(config, "layer_types");
    if (types == NULL || fr_json_kind_of(types) != FR_JSON_ARRAY)
        return FR_OK;
    for (size_t i = 0; i < fr_json_n(types); i++) {
        const char *type;
        const fr_json_value *at = fr_json_at(types, i);
        FR_TRY(fr_json_as_string(at, &type, err));
        if (strcmp(type, only) != 0)
            return fr_json_fail(at, err,
                                "layer type '%s' is not modelled here; only "
                                "%s is",
                                type, only);
    }
    return FR_OK;
}

/* sliding_window_pattern: a period, or a word such as LLLG that is repeated,
 * where G sees all. */
static fr_status read_pattern(const fr_json_value *config, int64_t period,
                              fr_model *model, fr_err *err)
{
    const fr_json_value *pattern =
        fr_json_find(config, "sliding_window_pattern");
    const char *word;
    if (pattern == NULL || fr_json_kind_of(pattern) != FR_JSON_STRING) {
        FR_TRY(fr_json_get_i64_or(config, "sliding_window_pattern", period,
                                  &period, err));
        return fr_hf_mark_period(config, period, period - 1, 'w', 'a', model,
                                 err);
    }
    FR_TRY(fr_json_as_string(pattern, &word, err));
    if (word[0] == '\0' || strspn(word, "LG") != strlen(word))
        return fr_json_fail(pattern, err,
                            "sliding_window_pattern '%s' is not known; a "
                            "number or letters L and G are",
                            word);
    FR_TRY(check_count(pattern, model, err));
    for (int64_t i = 0; i < model->n_layers; i++)
        model->mixers[i] = word[(size_t)i % strlen(word)] == 'G' ? 'a' : 'w';
    model->mixers[model->n_layers] = '\0';
    return FR_OK;
}

/* One kind alone needs no marks. */
static void drop_marks(fr_model *model)
{
    if (strspn(model->mixers, "a") == strlen(model->mixers)) {
        model->sliding_window = 0;
        model->mixers[0] = '\0';
    } else if (strspn(model->mixers, "w") == strlen(model->mixers)) {
        model->mixers[0] = '\0';
    }
}

fr_status fr_hf_read_windows(const fr_json_value *config, int64_t period,
                             fr_model *model, fr_err *err)
{
    bool is_listed;
    if (model->sliding_window == 0)
        return FR_OK;
    FR_TRY(fr_hf_read_marks(config, "layer_types", windows, FR_LENGTH(windows),
                            model, &is_listed, err));
    if (!is_listed)
        FR_TRY(read_pattern(config, period, model, err));
    drop_marks(model);
    return FR_OK;
}

fr_status fr_hf_read_chunks(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    static const fr_hf_mark marks[] = {
        {"chunked_attention", 'c'},
        {"full_attention", 'a'},
    };
    const fr_json_value *rotated = fr_json_find(config, "no_rope_layers");
    int64_t period;
    bool is_listed;
    if (fr_hf_is_null(config, "attention_chunk_size"))
        return FR_OK;
    FR_TRY(fr_json_get_i64_or(config, "attention_chunk_size", 8192,
                              &model->sliding_window, err));
    FR_TRY(
        fr_json_get_i64_or(config, "no_rope_layer_interval", 4, &period, err));
    FR_TRY(fr_hf_read_marks(config, "layer_types", marks, FR_LENGTH(marks),
                            model, &is_listed, err));
    if (is_listed)
        return FR_OK;
    FR_TRY(fr_hf_mark_period(config, period, period - 1, 'c', 'a', model, err));
    if (rotated == NULL || fr_json_kind_of(rotated) != FR_JSON_ARRAY ||
        fr_json_n(rotated) == 0)
        return FR_OK;
    if (fr_json_n(rotated) != (size_t)model->n_layers)
        return fr_json_fail(rotated, err,
                            "no_rope_layers has %zu entries for %lld layers",
                            fr_json_n(rotated), (long long)model->n_layers);
    for (size_t i = 0; i < fr_json_n(rotated); i++) {
        int64_t is_rotated;
        FR_TRY(fr_json_as_i64(fr_json_at(rotated, i), &is_rotated, err));
        model->mixers[i] = is_rotated != 0 ? 'c' : 'a';
    }
    return FR_OK;
}

fr_status fr_hf_set_shared(const fr_json_value *config, int64_t n_shared,
                           fr_model *model, fr_err *err)
{
    if (n_shared < 0 || n_shared > 1024 || model->expert_ffn_hidden < 0 ||
        model->expert_ffn_hidden > 1 << 28)
        return fr_json_fail(config, err,
                            "%lld shared experts of width %lld are out of "
                            "range",
                            (long long)n_shared,
                            (long long)model->expert_ffn_hidden);
    model->shared_expert_ffn_hidden = n_shared * model->expert_ffn_hidden;
    return FR_OK;
}
