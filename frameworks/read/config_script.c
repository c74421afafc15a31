/* config_script.c: see config_script.h. */
#include "frameworks/read/config_script.h"

#include "core/base/text.h"
#include "core/system/fileio.h"

#include <stdio.h>
#include <string.h>

enum { WAYS_MAX = 160, STEPS_MAX = 2000000 };

/* ---- one way ------------------------------------------------------------- */

fr_status fr_config_read_named(const fr_config_request *request,
                               const char *name, char **text, size_t *n_text,
                               fr_err *err)
{
    char folder[2048], path[4096];
    if (request->read_file != NULL)
        return request->read_file(request->context, name, text, n_text, err);
    FR_TRY(fr_path_dir(request->path, folder, sizeof folder, err));
    if (fr_text_starts(name, folder) || name[0] == '/') {
        if (fr_file_read(name, FR_FILE_BYTES_MAX, text, n_text, err) == FR_OK)
            return FR_OK;
    }
    snprintf(path, sizeof path, "%s/%.2000s", folder, name);
    if (name[0] != '/' &&
        fr_file_read(path, FR_FILE_BYTES_MAX, text, n_text, err) == FR_OK)
        return FR_OK;
    snprintf(path, sizeof path, "%s/%.2000s", folder, fr_path_name(name));
    return fr_file_read(path, FR_FILE_BYTES_MAX, text, n_text, err);
}

static fr_status read_named(const void *context, const char *name, char **text,
                            size_t *n_text, fr_err *err)
{
    return fr_config_read_named(context, name, text, n_text, err);
}

static fr_status keep_branches(const fr_shell *shell, fr_script_way *way,
                               fr_err *err)
{
    way->branches.n = 0;
    for (size_t i = 0; i < shell->branches.n; i++) {
        const fr_shell_branch *from = &shell->branches.items[i];
        const fr_shell_unknown *unknown =
            &shell->unknown.items[from->i_unknown];
        fr_script_branch branch = {.site = from->site,
                                   .is_taken = from->is_taken};
        char mend[200], example[64] = "1";
        if (from->example == NULL && unknown->name != NULL)
            snprintf(example, sizeof example, "1, or --set %.40s= for none",
                     unknown->name);
        else if (from->example != NULL && *from->example != '\0' &&
                 strpbrk(from->example, "*?[") == NULL)
            fr_shell_show(shell, from->example, example, sizeof example);
        fr_shell_mend(unknown, example, mend, sizeof mend);
        snprintf(branch.why, sizeof branch.why,
                 "%d: the plan depends on %.100s, %.180s", from->line,
                 unknown->text,
                 unknown->name != NULL
                     ? mend
                     : "which only the machine knows: keep the branch that is "
                       "meant");
        FR_TRY_PUSH(&way->branches, branch, err);
    }
    return FR_OK;
}

fr_status fr_config_run_script(const fr_config_request *request,
                               fr_script_way *way, fr_shell *out, fr_err *err)
{
    const fr_shell_request shell = {.path = request->path,
                                    .text = request->text,
                                    .n_text = request->n_text,
                                    .settings = request->settings,
                                    .n_settings = request->n_settings,
                                    .decisions = way->decisions,
                                    .n_decisions = way->n_decisions,
                                    .read_file = read_named,
                                    .context = request};
    const fr_status status = fr_shell_run(&shell, out, err);
    way->n_steps = out->n_steps;
    FR_TRY(keep_branches(out, way, err));
    return status;
}

/* ---- all ways ------------------------------------------------------------ */

/* The result of one way. */
typedef struct outcome {
    fr_script_way way;
    fr_config config;
    fr_status status;
    fr_err why;
    fr_buffer text; /* the plan as JSON, or the error: outcomes are compared */
} outcome;

static void release(outcome *o)
{
    fr_vec_release(&o->way.branches);
    fr_config_release(&o->config);
    fr_buffer_release(&o->text);
}

static fr_status try_way(const fr_config_request *request,
                         fr_script_read_fn read, const fr_config *like,
                         const bool *decisions, size_t n, outcome *out,
                         fr_err *err)
{
    fr_json_writer writer;
    memset(out, 0, sizeof *out);
    out->way.decisions = decisions;
    out->way.n_decisions = n;
    out->config.framework = like->framework;
    fr_plan_file_init(&out->config.file);
    fr_buffer_init(&out->config.notes);
    fr_buffer_init(&out->text);
    out->status = read(request, &out->way, &out->config, &out->why);
    if (out->status == FR_NO_MEMORY)
        return fr_fail_no_memory(err);
    if (out->status != FR_OK) {
        fr_buffer_puts(&out->text, out->why.text);
    } else {
        fr_json_writer_init(&writer, &out->text);
        fr_plan_file_write(&out->config.file, &writer);
        fr_buffer_printf(&out->text, "%llx",
                         (unsigned long long)out->config.said);
    }
    return fr_buffer_check(&out->text, err);
}

/* The search over ways: every site is turned once. */
typedef struct ways {
    const fr_config_request *request;
    fr_script_read_fn read;
    fr_config *out;
    outcome base;
    fr_vec(uint64_t) sites;
    int n_tried;
    size_t n_steps; /* of all ways */
    fr_err *err;
} ways;

static bool is_new(ways *w, uint64_t site)
{
    for (size_t i = 0; i < w->sites.n; i++)
        if (w->sites.items[i] == site)
            return false;
    return true;
}

static fr_status refuse(const ways *w, const fr_script_branch *branch)
{
    return fr_fail(w->err, FR_INPUT, "%.400s:%s", w->request->path,
                   branch->why);
}

static fr_status turn_from(ways *w, const outcome *from, size_t i_first);

/* The way that differs from `from` in branch i alone; it takes the place of the
 * base where only it starts a training. */
static fr_status turn(ways *w, const outcome *from, size_t i)
{
    const fr_script_branch *branch = &from->way.branches.items[i];
    outcome o;
    bool *decisions = malloc((i + 1) * sizeof *decisions);
    if (decisions == NULL)
        return fr_fail_no_memory(w->err);
    for (size_t k = 0; k <= i; k++)
        decisions[k] = from->way.branches.items[k].is_taken != (k == i);
    w->n_tried++;
    w->n_steps += from->way.n_steps;
    fr_status status =
        try_way(w->request, w->read, w->out, decisions, i + 1, &o, w->err);
    if (status == FR_OK && o.way.end == from->way.end) {
        const bool is_same =
            o.way.end == FR_SCRIPT_NOTHING ||
            strcmp(fr_buffer_text(&o.text), fr_buffer_text(&from->text)) == 0;
        status = is_same ? turn_from(w, &o, i + 1) : refuse(w, branch);
    } else if (status == FR_OK && o.way.end > w->base.way.end) {
        outcome old = w->base; /* `from` may be it: it is released last */
        w->base = o;
        o = old;
    }
    free(decisions);
    if (w->base.way.decisions == decisions)
        w->base.way.decisions = NULL;
    release(&o);
    return status;
}

static fr_status turn_from(ways *w, const outcome *from, size_t i_first)
{
    for (size_t i = i_first; i < from->way.branches.n; i++) {
        const uint64_t site = from->way.branches.items[i].site;
        if (!is_new(w, site))
            continue;
        if (w->n_tried == WAYS_MAX || w->n_steps > STEPS_MAX)
            return fr_fail(w->err, FR_INPUT,
                           "%.400s:1: too many conditions depend on values "
                           "that the script does not set; give --set "
                           "NAME=VALUE",
                           w->request->path);
        FR_TRY_PUSH(&w->sites, site, w->err);
        const fr_script_end end = w->base.way.end;
        FR_TRY(turn(w, from, i));
        if (w->base.way.end != end)
            return FR_OK; /* another base: its branches are turned instead */
    }
    return FR_OK;
}

static fr_status search(ways *w)
{
    fr_script_end end;
    FR_TRY(try_way(w->request, w->read, w->out, NULL, 0, &w->base, w->err));
    do {
        end = w->base.way.end;
        w->sites.n = 0;
        FR_TRY(turn_from(w, &w->base, 0));
    } while (w->base.way.end != end);
    return w->base.status == FR_OK
               ? FR_OK
               : fr_fail(w->err, w->base.status, "%s", w->base.why.text);
}

fr_status fr_config_read_script(const fr_config_request *request,
                                fr_script_read_fn read, fr_config *out,
                                fr_err *err)
{
    ways w = {.request = request, .read = read, .out = out, .err = err};
    fr_status status = search(&w);
    if (status == FR_OK) {
        fr_config_release(out);
        *out = w.base.config;
        memset(&w.base.config, 0, sizeof w.base.config);
        fr_plan_file_init(&w.base.config.file);
        fr_buffer_init(&w.base.config.notes);
    }
    release(&w.base);
    fr_vec_release(&w.sites);
    return status;
}
