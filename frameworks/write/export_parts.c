/* export_parts.c: what exporters share. */
#include "core/system/fileio.h"
#include "frameworks/write/export_job.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *fr_exporter_name_of(const fr_exporter *exporter)
{
    return exporter->target != NULL ? exporter->target->name : exporter->name;
}

fr_export_file *fr_export_add(fr_export_files *out, const char *name,
                              bool is_executable)
{
    fr_export_file file = {.is_executable = is_executable};
    snprintf(file.name, sizeof file.name, "%s", name);
    fr_buffer_init(&file.text);
    if (fr_vec_push(out, file) != FR_OK)
        return NULL;
    return &out->items[out->n - 1];
}

fr_status fr_export_take(fr_export_files *out, fr_export_file *file,
                         fr_err *err)
{
    FR_TRY(fr_buffer_check(&file->text, err));
    FR_TRY_PUSH(out, *file, err);
    fr_buffer_init(&file->text);
    return FR_OK;
}

/* A name that others gave: a new line in it would end the comment, and begin a
 * command of the script. */
static void put_on_line(const char *text, fr_buffer *out)
{
    for (const char *c = text; *c != '\0'; c++)
        fr_buffer_putc(out, iscntrl((unsigned char)*c) ? ' ' : *c);
}

/* Notes the operations that NCCL's words name, and those that keep its choice.
 */
static void put_nccl_note(const fr_plan *plan, const char *prefix,
                          fr_buffer *out)
{
    if (plan->collective != FR_COLLECTIVE_DOUBLE_TREE &&
        plan->collective != FR_COLLECTIVE_NVLS)
        return;
    fr_buffer_printf(
        out,
        "%sNCCL_ALGO names operations, which NCCL 2.24 and later read; older "
        "ones choose\n%sby themselves, as all do for those without a name.\n",
        prefix, prefix);
    if (plan->collective == FR_COLLECTIVE_NVLS)
        fr_buffer_printf(out,
                         "%sThe ring is for groups and types that the switches "
                         "do not add.\n",
                         prefix);
}

void fr_export_put_header(const fr_export_request *request,
                          const fr_target *target, const char *prefix,
                          fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    char name[512];
    if (request->verdict != NULL)
        fr_buffer_printf(out, "%s%s\n", prefix, request->verdict);
    fr_buffer_printf(out, "%sWritten by forerun from ", prefix);
    put_on_line(fr_path_name(request->plan_path), out);
    fr_buffer_puts(out, ": ");
    put_on_line(file->model.name, out);
    fr_buffer_printf(out, "\n%sPlan: %s\n", prefix,
                     fr_plan_describe(&file->plan, name, sizeof name));
    if (file->has_prediction)
        fr_buffer_printf(out, "%sPredicted: %.4g s a step, %.4g %s/s\n", prefix,
                         file->prediction.expected_step_s,
                         fr_model_count_of(&file->model, file->job.seq,
                                           file->prediction.samples_per_s),
                         fr_model_counted(&file->model));
    if (request->read_back != NULL)
        fr_buffer_printf(out, "%sRead back: %s\n", prefix, request->read_back);
    fr_export_put_job(request, prefix, out);
    fr_buffer notes;
    fr_buffer_init(&notes);
    fr_target_put_notes(target, &file->plan, prefix, &notes);
    fr_export_put_left(request, prefix, &notes);
    fr_export_put_unknown(request, prefix, &notes);
    /* An empty comment ends the list. */
    if (notes.n > 0)
        fr_buffer_printf(out, "%sNot in this file:\n%s%.*s\n", prefix,
                         fr_buffer_text(&notes), (int)strcspn(prefix, " "),
                         prefix);
    fr_buffer_release(&notes);
    put_nccl_note(&file->plan, prefix, out);
}

/*
 * NCCL_ALGO for a collective algorithm.  All operations have a ring; the others
 * are named by operation: a word without one is for all of them, and since
 * NCCL 2.24 an operation that is left without an algorithm stops the job
 * (NCCL v2.24.3 and v2.30.7, src/graph/tuning.cc parseList, src/enqueue.cc
 * topoGetAlgoInfo).  Broadcast, with which data parallelism starts, has the
 * ring alone, and the halves of an all-reduce have no tree.
 *
 * Switches neither add for groups with one or two members on a node (which
 * depends on the version) nor take the largest of floats
 * (src/transport/nvls.cc ncclNvlsInit, src/include/device.h
 * ncclNvlsSupported): the ring stands beside NVLS for these.  Between nodes it
 * is NVLSTree, as predictions have it; NCCL drops the one of the two that a
 * group cannot have.
 */
static const char *nccl_algorithm(const fr_export_request *request)
{
    const fr_plan *plan = &request->file->plan;
    switch (plan->collective) {
    case FR_COLLECTIVE_RING:
        return "Ring";
    case FR_COLLECTIVE_DOUBLE_TREE:
        return "allreduce:Tree";
    case FR_COLLECTIVE_NVLS:
        return request->n_nodes > 1 ? "allreduce:NVLS,NVLSTree,Ring"
               : plan->zero_stage > 0
                   ? "allreduce:NVLS,Ring;allgather:NVLS,Ring;"
                     "reducescatter:NVLS,Ring"
                   : "allreduce:NVLS,Ring";
    default:
        return NULL;
    }
}

static const char *nccl_protocol(fr_protocol protocol)
{
    static const char *const words[FR_PROTOCOL_N] = {
        [FR_PROTOCOL_LL] = "LL",
        [FR_PROTOCOL_LL128] = "LL128",
        [FR_PROTOCOL_SIMPLE] = "Simple"};
    return words[protocol];
}

static void add(fr_export_variable *variable, const char *name,
                const char *value)
{
    snprintf(variable->name, sizeof variable->name, "%s", name);
    snprintf(variable->value, sizeof variable->value, "%s", value);
}

int fr_export_environment(const fr_export_request *request,
                          fr_export_variable out[FR_EXPORT_VARIABLES_MAX])
{
    const fr_plan *plan = &request->file->plan;
    const char *algorithm = nccl_algorithm(request);
    const char *protocol = nccl_protocol(plan->protocol);
    char text[32];
    int n = 0;
    if (algorithm != NULL)
        add(&out[n++], "NCCL_ALGO", algorithm);
    if (plan->collective == FR_COLLECTIVE_SHARP)
        add(&out[n++], "NCCL_COLLNET_ENABLE", "1");
    if (protocol != NULL)
        add(&out[n++], "NCCL_PROTO", protocol);
    if (plan->n_channels > 0) {
        snprintf(text, sizeof text, "%d", plan->n_channels);
        add(&out[n++], "NCCL_MIN_CTAS", text);
        add(&out[n++], "NCCL_MAX_CTAS", text);
    }
    return n;
}

void fr_export_put_variable(const fr_export_variable *variable,
                            const char *before, fr_buffer *out)
{
    const char *quote = strchr(variable->value, ';') != NULL ? "'" : "";
    fr_buffer_printf(out, "%s%s=%s%s%s", before, variable->name, quote,
                     variable->value, quote);
}

void fr_export_put_exports(const fr_export_request *request, fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n = fr_export_environment(request, variables);
    for (int i = 0; i < n; i++) {
        fr_export_put_variable(&variables[i], "export ", out);
        fr_buffer_putc(out, '\n');
    }
}

void fr_export_put_indented(const char *text, int n_indent, fr_buffer *out)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        if (n > 0) {
            fr_buffer_fill(out, ' ', (size_t)n_indent);
            fr_buffer_append(out, text, n);
        }
        fr_buffer_putc(out, '\n');
        text += n + (text[n] != '\0');
    }
}

int64_t fr_export_tasks_per_node(const fr_export_request *request)
{
    return request->program->start == FR_START_MPI ? request->n_ranks_per_node
                                                   : 1;
}

bool fr_export_has_hosts(const fr_export_request *request)
{
    return request->program->takes_hosts && request->n_nodes > 1;
}

fr_status fr_export_put_task(const fr_export_request *request,
                             fr_export_peers peers, fr_buffer *out, fr_err *err)
{
    fr_export_request of = *request;
    char ranks[24];
    of.program = NULL;
    if (request->program->start == FR_START_NODE)
        FR_TRY(fr_export_check_even(
            request, fr_exporter_name_of(request->program), err));
    if (request->program->start == FR_START_TORCHRUN)
        FR_TRY(fr_export_check_torchrun(request, err));
    if (request->program->start == FR_START_TORCHRUN)
        fr_buffer_printf(out, "torchrun --nnodes %lld --nproc_per_node %s%s ",
                         (long long)request->n_nodes,
                         fr_export_ranks_word(request, ranks, sizeof ranks),
                         request->n_nodes > 1 ? peers.torchrun : "");
    FR_TRY(request->program->put_command(&of, out, err));
    if (fr_export_has_hosts(request))
        fr_buffer_puts(out, peers.program);
    return FR_OK;
}

char *fr_export_job_name(const fr_export_request *request, char *buf,
                         size_t n_buf)
{
    const char *name = fr_path_name(request->file->model.name);
    size_t n = 0;
    for (const char *c = name; *c != '\0' && n + 1 < n_buf && n < 50; c++) {
        bool is_plain = isalnum((unsigned char)*c) != 0;
        if (is_plain)
            buf[n++] = (char)tolower((unsigned char)*c);
        else if (n > 0 && buf[n - 1] != '-')
            buf[n++] = '-';
    }
    while (n > 0 && buf[n - 1] == '-')
        n--;
    buf[n] = '\0';
    if (n == 0)
        snprintf(buf, n_buf, "forerun");
    return buf;
}
