/*
 * program_check.c: is a program well formed?  The entry, and the checks of
 * every number in it; program_check_memory.c and program_check_order.c judge
 * what it does.
 */
#include "plan/collective/collective.h"
#include "plan/decide/plan_shares.h"
#include "program/ir/check/program_check_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void check_problem(check_report *report, const char *format, ...)
{
    va_list args;
    report->n_problems++;
    if (report->n_problems > 1)
        return;
    va_start(args, format);
    vsnprintf(report->first, sizeof report->first, format, args);
    va_end(args);
}

char *check_place(const fr_program *program, uint32_t i_stage, uint32_t i_call,
                  char *buf, size_t n_buf)
{
    const fr_call *call = &program->rank_programs[i_stage].calls[i_call];
    char layer[24] = "", micro[24] = "";
    if (call->layer >= 0)
        snprintf(layer, sizeof layer, " layer %d", (int)call->layer);
    if (call->micro_batch >= 0)
        snprintf(micro, sizeof micro, " mb %d", (int)call->micro_batch);
    snprintf(buf, n_buf, "stage %u call %u %.32s%s%s", (unsigned)i_stage,
             (unsigned)i_call, program->segments[call->i_segment].name, layer,
             micro);
    return buf;
}

int64_t check_group_size(const fr_plan *plan, int axis)
{
    const int64_t data = (int64_t)plan->dp * plan->cp;
    const int64_t shard = plan->zero_group > 0 ? plan->zero_group : data;
    const int64_t etp = plan->etp > 0 ? plan->etp : plan->tp;
    const int64_t sizes[FR_AXIS_N] = {
        [FR_AXIS_NONE] = 1,
        [FR_AXIS_TP] = plan->tp,
        [FR_AXIS_CP] = plan->cp,
        [FR_AXIS_EP] = plan->ep,
        [FR_AXIS_DP] = data,
        [FR_AXIS_PP] = plan->pp,
        [FR_AXIS_EMBED] = plan->pp > 1 ? 2 : 1,
        [FR_AXIS_MODEL] = (int64_t)plan->tp * plan->pp,
        [FR_AXIS_WORLD] = data * plan->tp * plan->pp,
        [FR_AXIS_SHARD] = shard,
        [FR_AXIS_REPLICA] = data / shard,
        [FR_AXIS_ETP] = etp,
        [FR_AXIS_EDP] = data * plan->tp / (etp * plan->ep),
    };
    return sizes[axis];
}

static const char *wrong_instr(const fr_program *program, const fr_instr *instr)
{
    const int64_t dim_limit = (int64_t)1 << 48;
    const fr_op op = (fr_op)instr->op;
    if (instr->op >= FR_OP_N || instr->dtype >= FR_DTYPE_N ||
        instr->axis >= FR_AXIS_N)
        return "op, dtype or axis is out of range";
    for (int i = 0; i < FR_INSTR_DIMS; i++)
        if (instr->dim[i] < 0 || instr->dim[i] > dim_limit)
            return "a dimension is out of range";
    for (int i = fr_op_n_dims(op); i < FR_INSTR_DIMS; i++)
        if (instr->dim[i] != 0)
            return "a dimension that the operation does not have";
    fr_op_class op_class = fr_op_class_of(op);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        bool is_over = fr_op_access(op, i) == 0;
        bool is_there = instr->ref[i].space != FR_SPACE_NONE;
        if (instr->ref[i].space >= FR_SPACE_N || instr->ref[i].is_sharded > 4 ||
            (instr->ref[i].n_turns > 0 &&
             instr->ref[i].turn >= instr->ref[i].n_turns))
            return "an operand's space or shard is out of range";
        if (is_over && is_there)
            return "an operand too many";
        if (!is_over && !is_there && !fr_op_is_optional(op, i))
            return "an operand is missing";
    }
    if (op_class == FR_OP_CLASS_COLLECTIVE &&
        (instr->algorithm >= fr_n_collectives ||
         fr_collectives[instr->algorithm] == NULL ||
         !fr_collectives[instr->algorithm]->fits(
             (fr_op)instr->op, check_group_size(&program->plan, instr->axis))))
        return "the collective algorithm does not do this";
    if (op_class == FR_OP_CLASS_COLLECTIVE && instr->op != FR_OP_ALL_REDUCE &&
        instr->op != FR_OP_BROADCAST &&
        instr->comm.n % check_group_size(&program->plan, instr->axis) != 0)
        return "the elements do not divide by the group";
    if (instr->shard_axis >= FR_AXIS_N)
        return "the axis of sharded operands is out of range";
    if (op_class == FR_OP_CLASS_P2P &&
        (instr->axis != FR_AXIS_PP || instr->peer < 0 ||
         instr->peer >= program->plan.pp))
        return "the peer is out of range";
    return NULL;
}

static const char *wrong_call(const fr_program *program,
                              const fr_rank_program *rank_program,
                              uint32_t i_call)
{
    const fr_call *call = &rank_program->calls[i_call];
    if (call->i_segment >= program->n_segments)
        return "segment out of range";
    if (call->first_dep > rank_program->n_deps ||
        call->n_deps > rank_program->n_deps - call->first_dep)
        return "dependencies out of range";
    for (uint32_t i = 0; i < call->n_deps; i++)
        if (rank_program->deps[call->first_dep + i] >= i_call)
            return "depends on a call that is not earlier";
    uint32_t n_bases = (uint32_t)__builtin_popcount(call->spaces);
    if (call->spaces >> FR_SPACE_N != 0 ||
        call->first_base > rank_program->n_bases ||
        n_bases > rank_program->n_bases - call->first_base)
        return "bases out of range";
    for (uint32_t i = 0; i < n_bases; i++)
        if (rank_program->bases[call->first_base + i] >
            rank_program->slab_bytes + rank_program->host_bytes)
            return "a base lies outside the slab";
    return NULL;
}

static void check_block(const fr_rank_program *rank_program,
                        const fr_block *block, uint64_t begin, uint64_t end,
                        check_report *report)
{
    if (block->kind >= FR_MEMORY_N || block->first_call > block->last_call ||
        block->last_call >= rank_program->n_calls ||
        block->offset_bytes < begin || block->offset_bytes > end ||
        block->n_bytes > end - block->offset_bytes)
        check_problem(report,
                      "stage %d block at %llu: kind, life or place is out of "
                      "range",
                      rank_program->pp,
                      (unsigned long long)block->offset_bytes);
}

static void check_rank_program(const fr_program *program, uint32_t i_stage,
                               check_report *report)
{
    const fr_rank_program *rank_program = &program->rank_programs[i_stage];
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const char *wrong = wrong_call(program, rank_program, i);
        if (wrong != NULL)
            check_problem(report, "stage %u call %u: %s", (unsigned)i_stage,
                          (unsigned)i, wrong);
    }
    const uint64_t slab = rank_program->slab_bytes;
    for (uint32_t i = 0; i < rank_program->n_blocks; i++)
        check_block(rank_program, &rank_program->blocks[i], 0, slab, report);
    for (uint32_t i = 0; i < rank_program->n_host_blocks; i++)
        check_block(rank_program, &rank_program->host_blocks[i], slab,
                    slab + rank_program->host_bytes, report);
    for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
        const fr_tensor *tensor = &rank_program->tensors[i];
        const fr_tensor *before = i > 0 ? tensor - 1 : NULL;
        if (tensor->first > rank_program->n_parameters ||
            tensor->n > rank_program->n_parameters - tensor->first ||
            (before != NULL && tensor->first < before->first + before->n))
            check_problem(report, "stage %u tensor %.47s: out of place",
                          (unsigned)i_stage, tensor->name);
    }
}

static void check_structure(const fr_program *program, check_report *report)
{
    const int32_t n_classes = fr_plan_n_share_classes(&program->plan);
    if (program->n_rank_programs != (uint32_t)(program->plan.pp * n_classes))
        check_problem(report,
                      "%u rank programs for pp %d and %d kinds of share",
                      (unsigned)program->n_rank_programs, (int)program->plan.pp,
                      (int)n_classes);
    for (uint32_t i = 0; i < program->n_segments; i++) {
        const fr_segment *segment = &program->segments[i];
        if (segment->lane >= FR_LANE_N ||
            segment->first_instr > program->n_instrs ||
            segment->n_instrs > program->n_instrs - segment->first_instr)
            check_problem(report, "segment %u %.32s: out of range", (unsigned)i,
                          segment->name);
    }
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const char *wrong = wrong_instr(program, &program->instrs[i]);
        if (wrong != NULL)
            check_problem(report, "instruction %u %s: %s", (unsigned)i,
                          fr_op_name((fr_op)program->instrs[i].op), wrong);
    }
    for (uint32_t i = 0; i < program->n_rank_programs; i++)
        check_rank_program(program, i, report);
}

fr_status fr_program_check(const fr_program *program, int *n_problems,
                           fr_err *err)
{
    check_report report = {0};
    check_structure(program, &report);
    for (uint32_t i = 0; report.n_problems == 0 && i < program->n_rank_programs;
         i++) {
        check_memory(program, i, false, &report);
        /* Sharded operands: the last coordinate sees the other end. */
        if (report.n_problems == 0)
            check_memory(program, i, true, &report);
    }
    /* Bad memory does not hide a bad order. */
    check_report structure = {0};
    check_structure(program, &structure);
    if (structure.n_problems == 0)
        check_order(program, &report);
    if (report.is_out_of_memory)
        return fr_fail_no_memory(err);
    if (n_problems != NULL)
        *n_problems = report.n_problems;
    if (report.n_problems > 0)
        return fr_fail(err, FR_CHECK, "%s", report.first);
    return FR_OK;
}
