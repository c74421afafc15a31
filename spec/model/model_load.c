/* model_load.c: finds a model's file and tells the two formats apart. */
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "spec/catalog/config_path.h"
#include "spec/model/model_json.h"

#include <stdio.h>
#include <string.h>

static fr_status read_any(const fr_json *json, const char *name, fr_model *out,
                          fr_err *err)
{
    const fr_json_value *root = fr_json_root(json);
    if (fr_json_kind_of(root) != FR_JSON_OBJECT)
        return fr_json_fail(root, err, "a model must be an object, not %s",
                            fr_json_kind_name(fr_json_kind_of(root)));
    if (fr_json_find(root, "schema") != NULL)
        return fr_model_from_json(root, out, err);
    if (fr_json_find(root, "model_type") != NULL ||
        fr_json_find(root, "text_config") != NULL)
        return fr_model_from_hugging_face(root, name, out, err);
    return fr_json_fail(root, err,
                        "neither \"schema\": \"forerun.model/1\" nor a Hugging "
                        "Face \"model_type\" is there");
}

fr_status fr_model_parse(const char *name, const char *text, size_t n_text,
                         fr_model *out, fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_json_parse(name, text, n_text, &json, err));
    fr_status status = read_any(json, name, out, err);
    fr_json_destroy(json);
    return status;
}

/* "x/llama/config.json" -> "llama", "x/tiny.json" -> "tiny". */
static void name_of(const char *path, char *out, size_t n)
{
    char dir[FR_CONFIG_PATH];
    const char *last = fr_path_name(path);
    fr_err ignored;
    if (strcmp(last, "config.json") == 0 &&
        fr_path_dir(path, dir, sizeof dir, &ignored) == FR_OK &&
        strcmp(dir, ".") != 0) {
        fr_text_copy_cut(out, n, fr_path_name(dir));
        return;
    }
    fr_text_copy_cut(out, n, last);
    if (fr_text_ends(out, ".json"))
        out[strlen(out) - strlen(".json")] = '\0';
}

fr_status fr_model_load(const char *configs, const char *name_or_path,
                        fr_model *out, fr_err *err)
{
    char path[FR_CONFIG_PATH], name[128];
    fr_json *json;
    FR_TRY(
        fr_config_resolve(configs, name_or_path, "models", ".json", path, err));
    if (fr_dir_exists(path)) {
        size_t n = strlen(path);
        if (n + sizeof "/config.json" > sizeof path)
            return fr_fail(err, FR_INPUT, "%s: path too long", path);
        memcpy(path + n, "/config.json", sizeof "/config.json");
    }
    FR_TRY(fr_json_load(path, &json, err));
    name_of(path, name, sizeof name);
    fr_status status = read_any(json, name, out, err);
    fr_json_destroy(json);
    return status;
}
