/* explain_row.c: see explain_row.h. */
#include "api/answer/explain_row.h"

#include "core/base/text.h"
#include "core/base/units.h"

#include <stdio.h>
#include <string.h>

/* Columns that are read together, and what they became. */
typedef struct reading {
    fr_case_column columns[8];
    int n;
    char text[256];
} reading;

enum { N_READINGS = 7 };

static void read_hardware(const fr_case_setup *s, reading out[N_READINGS])
{
    char a[FR_FORMAT_MAX];
    const fr_device_type *device = &s->cluster.devices[0];
    const fr_node_type *node = &s->cluster.node_types[0];
    int n_hosts = node->n_hosts > 0 ? node->n_hosts : 1;
    out[0] = (reading){
        .columns = {FR_CASE_GPU, FR_CASE_GPU_MEM_GB, FR_CASE_DEVICE}, .n = 3};
    snprintf(out[0].text, sizeof out[0].text, "%s, %s", device->id,
             fr_format_bytes(a, sizeof a, (double)device->memory_bytes));
    out[1] = (reading){.columns = {FR_CASE_GPUS_PER_NODE, FR_CASE_INTRA_NODE,
                                   FR_CASE_NVLINK_GBPS, FR_CASE_NODE},
                       .n = 4};
    snprintf(out[1].text, sizeof out[1].text,
             "%s: %d devices, %s of %s a device and direction", node->id,
             (int)node->n_devices, fr_intra_kind_name(node->intra_kind),
             fr_format_Bps(a, sizeof a, node->intra_Bps));
    out[2] = (reading){
        .columns = {FR_CASE_INTER_NODE, FR_CASE_NICS, FR_CASE_NIC_GBPS},
        .n = 3};
    snprintf(out[2].text, sizeof out[2].text, "%d NICs a server, %s, %s each",
             (int)(node->n_nics / n_hosts), fr_nic_kind_name(node->nic_kind),
             fr_format_Bps(a, sizeof a, node->nic_Bps));
}

static void read_training(const fr_case_setup *s, reading out[N_READINGS])
{
    char a[FR_FORMAT_MAX], plan[160];
    const fr_model *m = &s->model;
    out[3] = (reading){.columns = {FR_CASE_FRAMEWORK}, .n = 1};
    snprintf(out[3].text, sizeof out[3].text, "the habits of %s",
             s->framework != NULL ? s->framework : "none");
    out[4] =
        (reading){.columns = {FR_CASE_MODEL, FR_CASE_ARCH, FR_CASE_LAYERS,
                              FR_CASE_HIDDEN, FR_CASE_HEADS, FR_CASE_KV_HEADS,
                              FR_CASE_FFN, FR_CASE_VOCAB},
                  .n = 8};
    snprintf(out[4].text, sizeof out[4].text,
             "%lld layers of %lld, %lld heads (%lld of keys), MLP %lld, "
             "vocabulary %lld, sequence %lld",
             (long long)m->n_layers, (long long)m->hidden,
             (long long)m->n_heads, (long long)m->n_kv_heads,
             (long long)m->ffn_hidden, (long long)m->vocab,
             (long long)s->job.seq);
    out[5] = (reading){.columns = {FR_CASE_SCHEDULE, FR_CASE_ZERO_STAGE,
                                   FR_CASE_RECOMPUTE, FR_CASE_PRECISION,
                                   FR_CASE_FLASH_ATTN, FR_CASE_OTHER_OPTS,
                                   FR_CASE_MBS, FR_CASE_GBS},
                       .n = 8};
    snprintf(out[5].text, sizeof out[5].text, "%s, batch %lld",
             fr_plan_describe(&s->plan, plan, sizeof plan),
             (long long)s->job.global_batch);
    out[6] =
        (reading){.columns = {FR_CASE_STEP_TIME_S, FR_CASE_TOKENS_PER_S_PER_GPU,
                              FR_CASE_SAMPLES_PER_S, FR_CASE_TFLOPS_PER_GPU},
                  .n = 4};
    snprintf(out[6].text, sizeof out[6].text, "%s a step%s%s",
             s->measured_s > 0 ? fr_format_s(a, sizeof a, s->measured_s)
                               : "no time",
             s->why_unscored_step[0] != '\0' ? "; not scored: " : "",
             s->why_unscored_step);
}

/* The cells of a reading that are filled; one without any shows its last. */
static void put_reading(const fr_case *row, const reading *at, fr_table *table,
                        fr_json_writer *json)
{
    bool is_first = true;
    fr_json_begin_object(json);
    fr_json_open_object(json, "cells");
    for (int k = 0; k < at->n; k++) {
        const fr_case_column column = at->columns[k];
        const char *cell = row->field[column];
        const char *name = fr_case_column_name(column);
        if (cell[0] != '\0')
            fr_json_put_string(json, name, cell);
        if (cell[0] == '\0' && !(k + 1 == at->n && is_first))
            continue;
        fr_table_text(table, name);
        fr_table_cell(table, "%.120s", cell);
        fr_table_text(table, is_first ? at->text : "");
        is_first = false;
    }
    fr_json_end_object(json);
    fr_json_put_string(json, "read_as", at->text);
    fr_json_end_object(json);
}

static void build(const fr_case *row, const reading *readings, fr_document *out)
{
    static const fr_column columns[] = {
        {"column", "column"}, {"cell", "cell"}, {"read as", "read_as"}};
    char name[160];
    fr_document_init(out, "forerun.row/1");
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    fr_json_put_string(&out->data, "id", fr_case_name(row, name, sizeof name));
    fr_json_open_array(&out->data, "readings");
    for (int i = 0; i < N_READINGS; i++)
        put_reading(row, &readings[i], table, &out->data);
    fr_json_end_array(&out->data);
}

fr_status fr_explain_row(const fr_request *request, const fr_case *rows,
                         size_t n, fr_document *out, fr_err *err)
{
    const char *id = fr_request_text(request, FR_OPT_EXPLAIN_ROW);
    const fr_case *row = NULL;
    char name[160];
    fr_case_setup setup;
    reading readings[N_READINGS];
    for (size_t i = 0; i < n && row == NULL; i++)
        if (fr_text_equal(fr_case_name(&rows[i], name, sizeof name), id))
            row = &rows[i];
    if (row == NULL)
        return fr_fail(err, FR_INPUT,
                       "--explain-row: no row is called '%.80s'; --rows "
                       "lists them",
                       id);
    FR_TRY(fr_case_read(fr_request_configs(request), row, &setup, err));
    read_hardware(&setup, readings);
    read_training(&setup, readings);
    fr_case_setup_release(&setup);
    build(row, readings, out);
    return FR_OK;
}
