/*
 * import_slurm_nodes.c: the nodes that Slurm knows: `scontrol show node` and
 * the NodeName lines of slurm.conf ("NodeName=n[01-16] Gres=gpu:a100:8
 * Sockets=2 RealMemory=1031000"), and tables of `sinfo` with GRES and NODES or
 * NODELIST. Their number, their GPUs, sockets and memory are read; the type of
 * a Gres is whatever the site calls it, so that the model may have to be named.
 */
#include "core/base/text.h"
#include "interop/import/import_hostlist.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 256, TYPE_BYTES = 48 };

typedef struct shape {
    char type[TYPE_BYTES]; /* of the Gres; "": none is said */
    int64_t n_gpus, n_sockets, memory_MiB;
} shape;

typedef struct nodes {
    const fr_import_text *in;
    fr_arena arena;
    shape of_all, at;       /* of all nodes before, of this one */
    int64_t n_nodes, n_at;  /* in all, of this record */
    int64_t n_idle, n_down; /* without GPUs; down or drained */
    int line;               /* of this record */
    bool is_down;
    int i_gres, i_nodes, i_list; /* columns of sinfo, -1: none */
} nodes;

static int64_t number_of(const char *text)
{
    const long long value = strtoll(text, NULL, 10);
    return value > 0 && value < (1LL << 40) ? value : 0;
}

/* "gpu:a100:8(S:0-3)", "gpu:8", "gpu:h100_sxm:4,nvme:1" */
static void read_gres(const char *text, shape *out)
{
    const char *at = strstr(text, "gpu");
    while (at != NULL && at > text && at[-1] != ',')
        at = strstr(at + 1, "gpu");
    if (at == NULL || (at[3] != ':' && at[3] != '='))
        return;
    at += 4;
    const size_t n = strcspn(at, ":,(");
    if (at[n] == ':') {
        char type[TYPE_BYTES] = "";
        memcpy(type, at, n < TYPE_BYTES ? n : TYPE_BYTES - 1);
        fr_text_copy_cut(out->type, sizeof out->type, type);
        at += n + 1;
    }
    out->n_gpus = number_of(at);
}

static fr_status count_names(nodes *s, const char *text, int64_t *out,
                             fr_err *err)
{
    fr_hostlist names = {0};
    fr_status status =
        fr_hostlist_expand(s->in, s->line, text, &s->arena, &names, err);
    *out = (int64_t)names.n;
    fr_vec_release(&names);
    return status;
}

/* The record is whole. */
static fr_status add_record(nodes *s, fr_err *err)
{
    const shape *at = &s->at;
    if (s->n_at == 0)
        return FR_OK;
    if (s->is_down) {
        s->n_down += s->n_at;
    } else if (at->n_gpus == 0) {
        s->n_idle += s->n_at;
    } else if (s->n_nodes > 0 && (at->n_gpus != s->of_all.n_gpus ||
                                  strcmp(at->type, s->of_all.type) != 0)) {
        return fr_import_fail(
            s->in, s->line, err,
            "nodes with %lld GPUs%s%.40s among nodes with "
            "%lld%s%.40s; give the nodes of one kind",
            (long long)at->n_gpus, at->type[0] != '\0' ? " " : "", at->type,
            (long long)s->of_all.n_gpus, s->of_all.type[0] != '\0' ? " " : "",
            s->of_all.type);
    } else {
        s->of_all = *at;
        s->n_nodes += s->n_at;
    }
    s->n_at = 0;
    return FR_OK;
}

static bool is_down_state(const char *state)
{
    return strcasestr(state, "down") != NULL ||
           strcasestr(state, "drain") != NULL ||
           strcasestr(state, "fail") != NULL;
}

/* "Key=value" of a record; NodeName begins one. */
static fr_status read_pair(nodes *s, const char *key, const char *value,
                           int line, fr_err *err)
{
    if (strcasecmp(key, "NodeName") == 0) {
        FR_TRY(add_record(s, err));
        s->line = line;
        memset(&s->at, 0, sizeof s->at);
        s->is_down = false;
        if (strcasecmp(value, "DEFAULT") == 0)
            return FR_OK;
        return count_names(s, value, &s->n_at, err);
    }
    if (strcasecmp(key, "Gres") == 0)
        read_gres(value, &s->at);
    else if (strcasecmp(key, "Sockets") == 0)
        s->at.n_sockets = number_of(value);
    else if (strcasecmp(key, "RealMemory") == 0)
        s->at.memory_MiB = number_of(value);
    else if (strcasecmp(key, "State") == 0)
        s->is_down = is_down_state(value);
    return FR_OK;
}

/* ---- sinfo --------------------------------------------------------------- */

/* A heading of sinfo: GRES, and NODES or NODELIST. */
static bool read_heading(nodes *s, char **words, int n)
{
    s->i_gres = s->i_nodes = s->i_list = -1;
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], "GRES") == 0)
            s->i_gres = i;
        if (strcmp(words[i], "NODES") == 0)
            s->i_nodes = i;
        if (strcmp(words[i], "NODELIST") == 0)
            s->i_list = i;
    }
    return s->i_gres >= 0 && (s->i_nodes >= 0 || s->i_list >= 0);
}

static fr_status read_sinfo_row(nodes *s, char **words, int n, int line,
                                fr_err *err)
{
    const int i_last = s->i_gres > s->i_nodes ? s->i_gres : s->i_nodes;
    if (n <= i_last || n <= s->i_list)
        return FR_OK;
    FR_TRY(add_record(s, err));
    s->line = line;
    memset(&s->at, 0, sizeof s->at);
    s->is_down = false;
    for (int i = 0; i < n; i++)
        s->is_down |= i != s->i_list && is_down_state(words[i]);
    read_gres(words[s->i_gres], &s->at);
    if (s->i_list < 0) {
        s->n_at = number_of(words[s->i_nodes]);
        return FR_OK;
    }
    return count_names(s, words[s->i_list], &s->n_at, err);
}

/* ---- the file ------------------------------------------------------------ */

static fr_status read_line(nodes *s, char *text, int n_line, bool *is_table,
                           fr_err *err)
{
    char *words[MAX_WORDS];
    text[strcspn(text, "#")] = '\0';
    const int n = fr_import_words(text, words, MAX_WORDS);
    if (*is_table)
        return read_sinfo_row(s, words, n, n_line, err);
    *is_table = read_heading(s, words, n);
    for (int i = 0; i < n && !*is_table; i++) {
        char *equal = strchr(words[i], '=');
        if (equal == NULL)
            continue;
        *equal = '\0';
        FR_TRY(read_pair(s, words[i], equal + 1, n_line, err));
    }
    return FR_OK;
}

static fr_status read_lines(nodes *s, char *text, fr_err *err)
{
    bool is_table = false;
    for (int line = 1; *text != '\0'; line++) {
        char *end = strchr(text, '\n');
        if (end != NULL)
            *end = '\0';
        FR_TRY(read_line(s, text, line, &is_table, err));
        text = end != NULL ? end + 1 : text + strlen(text);
    }
    FR_TRY(add_record(s, err));
    if (s->n_nodes == 0)
        return fr_import_fail(s->in, 1, err,
                              "no node with GPUs: give the output of 'scontrol "
                              "show node' or of 'sinfo -o \"%%D %%G %%N\"'");
    return FR_OK;
}

static fr_status make_nodes(const nodes *s, fr_import *out, fr_err *err)
{
    fr_import_options options = *s->in->options;
    fr_import_text in = *s->in;
    const shape *at = &s->of_all;
    fr_import_node node = {.n_gpus = (int32_t)at->n_gpus,
                           .line = s->line,
                           .n_sockets = (int32_t)at->n_sockets,
                           .host_memory_bytes = (uint64_t)at->memory_MiB << 20};
    if (at->n_gpus > 64 || at->n_sockets > 4096 || s->n_nodes > 1000000)
        return fr_import_fail(s->in, s->line, err,
                              "%lld GPUs in %lld sockets of %lld nodes",
                              (long long)at->n_gpus, (long long)at->n_sockets,
                              (long long)s->n_nodes);
    node.device = at->type[0] != '\0' ? fr_catalog_device_find(at->type) : NULL;
    if (options.n_nodes == 0)
        options.n_nodes = s->n_nodes;
    in.options = &options;
    if (s->n_down > 0)
        fr_import_note(&in, "%lld nodes that are down are left out",
                       (long long)s->n_down);
    if (s->n_idle > 0)
        fr_import_note(&in, "%lld nodes without GPUs are left out",
                       (long long)s->n_idle);
    FR_TRY(fr_import_choose_gpu(&in, &node, err));
    return fr_import_finish(&in, &node, &out->cluster, err);
}

static fr_status read_slurm_nodes(const fr_import_text *in, fr_import *out,
                                  fr_err *err)
{
    nodes s = {.in = in};
    char *copy = malloc(in->n + 1);
    if (copy == NULL)
        return fr_fail_no_memory(err);
    memcpy(copy, in->text, in->n + 1);
    fr_arena_init(&s.arena);
    fr_status status = read_lines(&s, copy, err);
    if (status == FR_OK)
        status = make_nodes(&s, out, err);
    fr_arena_release(&s.arena);
    free(copy);
    return status;
}

const fr_importer fr_import_slurm_nodes = {.name = "slurm-nodes",
                                           .marks = {"NodeName=", "GRES"},
                                           .read = read_slurm_nodes};
