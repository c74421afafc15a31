/* nccl_rows.c: see nccl_rows.h. */
#include "api/nccl_rows.h"

#include "cost_models/link/nccl_ranges.h"
#include "plan/collective/collective.h"
#include "sim/topology/rank_layout.h"

#include <string.h>

typedef struct finder {
    const fr_plan *plan;
    const fr_program *program;
    const fr_rank_layout *layout;
    const fr_gpu_comm_model *comm;
    fr_nccl_rows *out;
} finder;

static bool is_in_nccl(fr_collective_kind kind)
{
    const fr_nccl_algorithm algorithm = fr_collective_nccl(kind);
    return kind == FR_COLLECTIVE_AUTO || algorithm == FR_NCCL_RING ||
           algorithm == FR_NCCL_TREE || algorithm == FR_NCCL_NVLS;
}

/* The plugin's word for an algorithm of the model. */
static const char *word_of(const char *algorithm, int64_t n_nodes)
{
    if (strcmp(algorithm, "PAT") == 0)
        return "pat";
    if (strcmp(algorithm, "NVLS") == 0)
        return n_nodes > 1 ? "nvls_tree" : "nvls";
    return algorithm; /* ring, tree */
}

static bool is_told(const char *algorithm, fr_collective_kind kind)
{
    if (kind == FR_COLLECTIVE_AUTO)
        return true;
    switch (fr_collective_nccl(kind)) {
    case FR_NCCL_RING:
        return strcmp(algorithm, "ring") == 0;
    case FR_NCCL_NVLS:
        return strcmp(algorithm, "NVLS") == 0;
    default:
        return strcmp(algorithm, "tree") == 0;
    }
}

static fr_protocol protocol_of(const char *name)
{
    return strcmp(name, "LL") == 0      ? FR_PROTOCOL_LL
           : strcmp(name, "LL128") == 0 ? FR_PROTOCOL_LL128
                                        : FR_PROTOCOL_SIMPLE;
}

static bool is_known(const finder *f, fr_op op, const fr_comm_scope *scope)
{
    for (size_t i = 0; i < f->out->rows.n; i++) {
        const fr_nccl_rule *row = &f->out->rows.items[i];
        if (row->op == op && row->n_ranks == scope->n_group &&
            row->n_nodes == scope->n_nodes)
            return true;
    }
    return false;
}

static fr_status add_rows(finder *f, const fr_instr *instr,
                          const fr_comm_scope *scope, fr_err *err)
{
    const fr_plan *plan = f->plan;
    fr_instr asked = *instr;
    fr_nccl_range ranges[FR_NCCL_MAX_RANGES];
    int n = 0;

    if (asked.algorithm == plan->collective)
        asked.flags |= FR_INSTR_GIVEN;
    FR_TRY(fr_nccl_ranges_of(f->comm, &asked, scope, ranges, &n, err));
    for (int i = 0; i < n; i++) {
        fr_protocol protocol = protocol_of(ranges[i].protocol);
        if (!is_told(ranges[i].algorithm, plan->collective) ||
            (plan->protocol != FR_PROTOCOL_AUTO && protocol != plan->protocol))
            return fr_fail(
                err, FR_INPUT,
                "NCCL has no %s by algorithm %s and protocol %s over %lld "
                "ranks on %lld node%s of this kind; choose auto for one of "
                "them",
                fr_op_name((fr_op)instr->op),
                fr_name_of(&fr_collective_names, plan->collective),
                fr_name_of(&fr_protocol_names, plan->protocol),
                (long long)scope->n_group, (long long)scope->n_nodes,
                scope->n_nodes == 1 ? "" : "s");
        fr_nccl_rule row = {.op = (fr_op)instr->op,
                            .min_bytes = ranges[i].min_bytes,
                            .max_bytes = ranges[i].max_bytes,
                            .algorithm =
                                word_of(ranges[i].algorithm, scope->n_nodes),
                            .protocol = protocol,
                            .n_channels = plan->n_channels,
                            .n_nodes = scope->n_nodes,
                            .n_ranks = scope->n_group};
        if (fr_vec_push(&f->out->rows, row) != FR_OK)
            return fr_fail_no_memory(err);
    }
    return FR_OK;
}

/* A plugin does not see which axis a communicator is of. */
static void note_other(finder *f, const fr_instr *instr,
                       const fr_comm_scope *scope)
{
    char line[160];

    (void)snprintf(line, sizeof line,
                   "%s over %s, %lld ranks on %lld node%s, gets the same\n",
                   fr_op_name((fr_op)instr->op),
                   fr_axis_name((fr_axis)instr->axis),
                   (long long)scope->n_group, (long long)scope->n_nodes,
                   scope->n_nodes == 1 ? "" : "s");
    if (strstr(fr_buffer_text(&f->out->also), line) == NULL)
        fr_buffer_puts(&f->out->also, line);
}

/* Every group of the axis: they may stand differently. */
static fr_status visit(finder *f, const fr_instr *instr, bool is_data,
                       fr_err *err)
{
    const fr_rank_groups *axis = &f->layout->axes[instr->axis];

    if (fr_collective_is_of_data((fr_axis)instr->axis) != is_data ||
        fr_nccl_csv_op((fr_op)instr->op) == NULL)
        return FR_OK;
    for (int32_t g = 0; g < axis->n_groups; g++) {
        const fr_comm_scope *scope = &axis->scopes[g];
        bool has_rows = is_known(f, (fr_op)instr->op, scope);
        if (scope->n_group < 2)
            continue;
        if (!is_data && has_rows)
            note_other(f, instr, scope);
        if (is_data && !has_rows)
            FR_TRY(add_rows(f, instr, scope, err));
    }
    return FR_OK;
}

static fr_status find(finder *f, fr_err *err)
{
    const fr_program *program = f->program;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < program->n_instrs; i++) {
            const fr_instr *instr = &program->instrs[i];
            if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE)
                FR_TRY(visit(f, instr, pass == 0, err));
        }
    if (f->out->rows.n == 0)
        return fr_fail(err, FR_INPUT,
                       "the plan reduces no gradients; choose dp 2 or more");
    return fr_buffer_check(&f->out->also, err);
}

static fr_status check(const fr_plan *plan, const fr_cluster *cluster,
                       fr_err *err)
{
    if (fr_cluster_device(cluster, 0)->kind == FR_DEVICE_CPU)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' is of CPUs, which have no NCCL",
                       cluster->name);
    if (!fr_collective_has_choice(plan))
        return fr_fail(err, FR_INPUT,
                       "the plan leaves algorithm, protocol and channels to "
                       "NCCL; give --collective, --nccl-protocol or "
                       "--nccl-channels");
    if (plan->collective == FR_COLLECTIVE_SHARP)
        return fr_fail(err, FR_INPUT,
                       "NCCL takes sharp by NCCL_COLLNET_ENABLE=1 and its "
                       "plugin of the network, not by rows of a tuner; "
                       "exports of launchers set it");
    if (!is_in_nccl(plan->collective))
        return fr_fail(err, FR_INPUT,
                       "NCCL has no %s; choose collective ring, double-tree, "
                       "nvls or auto",
                       fr_name_of(&fr_collective_names, plan->collective));
    return FR_OK;
}

fr_status fr_nccl_rows_make(fr_inputs *inputs, const fr_plan_file *file,
                            fr_nccl_rows *out, fr_err *err)
{
    fr_program *program = NULL;
    fr_gpu_comm_model *comm = NULL;
    fr_rank_layout layout = {0};
    int32_t *nodes = NULL;
    fr_status status;

    *out = (fr_nccl_rows){0};
    fr_buffer_init(&out->also);
    FR_TRY(check(&file->plan, &inputs->cluster, err));
    nodes = malloc((size_t)fr_plan_world(&file->plan) * sizeof *nodes);
    if (nodes == NULL)
        return fr_fail_no_memory(err);
    FR_TRY_GOTO(status,
                fr_inputs_lower_file(inputs, file, nodes, &program, err), out);
    FR_TRY_GOTO(status,
                fr_rank_layout_init(program, &inputs->cluster, nodes, false,
                                    &layout, err),
                out);
    FR_TRY_GOTO(status, fr_gpu_comm_create(&inputs->cluster, NULL, &comm, err),
                out);
    finder f = {&file->plan, program, &layout, comm, out};
    status = find(&f, err);
out:
    fr_gpu_comm_destroy(comm);
    fr_rank_layout_release(&layout);
    fr_program_destroy(program);
    free(nodes);
    return status;
}

void fr_nccl_rows_release(fr_nccl_rows *rows)
{
    fr_vec_release(&rows->rows);
    fr_buffer_release(&rows->also);
}
