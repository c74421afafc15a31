/* spot_trace.c: see spot_trace.h. */
#include "interop/trace/spot_trace.h"

#include "core/document/json.h"

/* One more tick with or without the nodes. */
static fr_status add_tick(bool is_there, double gap_s, fr_spot_spans *out,
                          fr_err *err)
{
    const bool was_there = out->n % 2 == 1;
    if (out->n == 0 && !is_there)
        FR_TRY_PUSH(out, 0.0, err); /* the first span has nodes */
    if (out->n == 0 || (out->n > 0 && was_there != is_there))
        FR_TRY_PUSH(out, 0.0, err);
    out->items[out->n - 1] += gap_s;
    return FR_OK;
}

static fr_status read_ticks(const fr_json_value *root, int64_t n_nodes,
                            fr_spot_spans *out, fr_err *err)
{
    const fr_json_value *metadata, *data;
    double gap_s;
    int64_t most = 0;
    FR_TRY(fr_json_get_object(root, "metadata", &metadata, err));
    FR_TRY(fr_json_get_double(metadata, "gap_seconds", &gap_s, err));
    FR_TRY(fr_json_get_array(root, "data", &data, err));
    if (!(gap_s > 0 && gap_s <= 1e9))
        return fr_json_fail(metadata, err,
                            "'gap_seconds' is %g; give seconds above 0", gap_s);
    for (size_t i = 0; i < fr_json_n(data); i++) {
        int64_t n;
        FR_TRY(fr_json_as_i64(fr_json_at(data, i), &n, err));
        if (n < 0)
            return fr_json_fail(fr_json_at(data, i), err,
                                "%lld nodes; give 0 or more", (long long)n);
        most = n > most ? n : most;
        FR_TRY(add_tick(n >= n_nodes, gap_s, out, err));
    }
    if (most < n_nodes)
        return fr_json_fail(data, err,
                            "there are %lld nodes at most, and the plan needs "
                            "%lld; choose a plan of fewer, or another trace",
                            (long long)most, (long long)n_nodes);
    if (out->n % 2 == 1)
        FR_TRY_PUSH(out, 0.0, err);
    return FR_OK;
}

fr_status fr_spot_trace_load(const char *path, int64_t n_nodes,
                             fr_spot_spans *out, fr_err *err)
{
    fr_json *json;
    *out = (fr_spot_spans){0};
    FR_TRY(fr_json_load(path, &json, err));
    fr_status status = read_ticks(fr_json_root(json), n_nodes, out, err);
    fr_json_destroy(json);
    if (status != FR_OK)
        fr_vec_release(out);
    return status;
}
