/*
 * fr_program_check against hand-made mutants of good programs: each kind of
 * damage must be found; and against random damage, which must never crash it.
 */
#include "plan/collective/collective.h"
#include "program/lower/step/lower.h"
#include "tests/check.h"

#include <stdlib.h>

typedef struct base_plan {
    int dp, tp, pp, vpp, zero, recompute, schedule, compressor;
    bool is_sp;
    double away; /* of the activations, on the host */
    bool is_optimizer_away;
} base_plan;

static const base_plan bases[] = {
    {2, 1, 1, 1, 1, 0, 1, 0, false, 0, false},
    {1, 1, 2, 2, 0, 0, 2, 0, false, 0, false},
    {2, 2, 2, 1, 1, 2, 1, 0, true, 0, false},
    {2, 1, 2, 1, 0, 1, 1, 4, false, 0, false},
    {2, 1, 4, 1, 0, 0, 0, 1, false, 0, false},
    {4, 1, 1, 1, 2, 0, 1, 0, false, 0, false},
    {2, 2, 2, 1, 2, 2, 1, 0, true, 0, false},
    {1, 1, 2, 1, 0, 0, 1, 0, false, 0.7, false},
    {2, 1, 1, 1, 1, 0, 1, 0, false, 0, true},
    {2, 1, 1, 1, 3, 0, 1, 0, false, 1, true},
};
enum { N_BASES = sizeof bases / sizeof bases[0] };

static fr_program *make(const base_plan *base)
{
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_program *program = NULL;
    fr_err err = {0};
    fr_model_init(&model);
    model.n_layers = 4;
    model.hidden = 48;
    model.n_heads = model.n_kv_heads = 4;
    model.head_dim = 12;
    model.ffn_hidden = 192;
    model.vocab = 131;
    model.max_seq = 16;
    model.is_tied = true;
    model.has_qkv_bias = model.has_out_bias = model.has_mlp_bias = true;
    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 16;
    fr_plan_init(&plan);
    plan.dp = base->dp;
    plan.tp = base->tp;
    plan.pp = base->pp;
    plan.vpp = base->vpp;
    plan.zero_stage = base->zero;
    plan.recompute = (fr_recompute)base->recompute;
    plan.schedule = (fr_schedule_kind)base->schedule;
    plan.compressor = (fr_compressor_kind)base->compressor;
    plan.compressor_rank = 2;
    plan.has_error_feedback = true;
    plan.is_sequence_parallel = base->is_sp;
    plan.micro_batch = 1;
    plan.bucket_bytes = 60000;
    plan.activation_offload_frac = base->away;
    plan.is_optimizer_offloaded = base->is_optimizer_away;
    CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err), &err);
    CHECK_OK(fr_program_check(program, NULL, &err), &err);
    return program;
}

static bool is_found(const fr_program *program)
{
    fr_err err = {0};
    int n_problems = 0;
    fr_status status = fr_program_check(program, &n_problems, &err);
    CHECK(status == FR_OK ||
          (status == FR_CHECK && n_problems > 0 && err.text[0] != '\0'));
    return status == FR_CHECK;
}

typedef struct tally {
    int n, n_found;
} tally;

static void count(tally *t, const fr_program *program)
{
    t->n++;
    t->n_found += is_found(program);
}

/* Runs `mutate` on every base program; found / tried must reach `share`. */
static void over_bases(void (*mutate)(fr_program *, tally *), double share,
                       const char *name)
{
    tally sum = {0};
    for (int b = 0; b < N_BASES; b++) {
        fr_program *program = make(&bases[b]);
        if (program) {
            mutate(program, &sum);
            CHECK(!is_found(program)); /* the damage was undone */
        }
        fr_program_destroy(program);
    }
    printf("# %s: %d of %d found\n", name, sum.n_found, sum.n);
    CHECK(sum.n > 0 && (double)sum.n_found >= share * sum.n);
}

static void drop_dep(fr_program *program, tally *t)
{
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            fr_call *call = &rank_program->calls[i];
            const char *name = program->segments[call->i_segment].name;
            /* Parameters that are brought before their use wait for their time,
             * too. */
            if (strncmp(name, "fetch", 5) == 0 ||
                strncmp(name, "param_gather", 12) == 0)
                continue;
            for (uint32_t d = 0; d < call->n_deps; d++) {
                uint32_t *deps = &rank_program->deps[call->first_dep],
                         kept = deps[d];
                deps[d] = deps[call->n_deps - 1];
                deps[call->n_deps - 1] = kept;
                call->n_deps--;
                count(t, program);
                call->n_deps++;
                deps[call->n_deps - 1] = deps[d];
                deps[d] = kept;
            }
        }
    }
}

static void test_dropped_dep(void)
{
    over_bases(drop_dep, 1.0, "dropped dep");
}

/* The b-th block, those of the host behind the others; NULL: no more. */
static fr_block *block_at(const fr_rank_program *rank_program, uint32_t b)
{
    if (b < rank_program->n_blocks)
        return &rank_program->blocks[b];
    b -= rank_program->n_blocks;
    return b < rank_program->n_host_blocks ? &rank_program->host_blocks[b]
                                           : NULL;
}

static void shrink_block(fr_program *program, tally *t)
{
    fr_block *block;
    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        for (uint32_t b = 0;
             (block = block_at(&program->rank_programs[c], b)) != NULL; b++) {
            uint64_t kept = block->n_bytes;
            block->n_bytes -= kept > 4096 ? 1024 : kept / 2;
            count(t, program);
            block->n_bytes = kept;
        }
}

static void test_shrunk_block(void)
{
    over_bases(shrink_block, 1.0, "shrunk block");
}

static void shorten_life(fr_program *program, tally *t)
{
    fr_block *block;
    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        for (uint32_t b = 0;
             (block = block_at(&program->rank_programs[c], b)) != NULL; b++) {
            /* From the front: lives may be longer than the last use. */
            if (block->is_persistent || block->first_call == block->last_call)
                continue;
            block->first_call++;
            count(t, program);
            block->first_call--;
        }
}

static void test_short_life(void)
{
    over_bases(shorten_life, 1.0, "late block");
}

static void wrong_tag(fr_program *program, tally *t)
{
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        fr_instr *instr = &program->instrs[i];
        if (instr->op != FR_OP_SEND && instr->op != FR_OP_RECV)
            continue;
        instr->tag += 1;
        count(t, program);
        instr->tag -= 1;
        instr->dim[0] -= 16;
        count(t, program);
        instr->dim[0] += 16;
        instr->peer = (int16_t)((instr->peer + 1) % program->plan.pp);
        count(t, program);
        instr->peer =
            (int16_t)((instr->peer + program->plan.pp - 1) % program->plan.pp);
    }
}

static void test_wrong_tag(void)
{
    over_bases(wrong_tag, 1.0, "transfer");
}

static void wrong_offset(fr_program *program, tally *t)
{
    for (uint32_t i = 0; i < program->n_instrs; i++)
        for (int k = 0; k < FR_INSTR_REFS; k++) {
            fr_ref *ref = &program->instrs[i].ref[k];
            if (ref->space == FR_SPACE_NONE)
                continue;
            const uint64_t n_bytes = program->rank_programs[0].slab_bytes +
                                     (ref->space == FR_SPACE_HOST
                                          ? program->rank_programs[0].host_bytes
                                          : 0);
            ref->offset_bytes += n_bytes;
            count(t, program);
            ref->offset_bytes -= n_bytes;
        }
}

static void test_wrong_offset(void)
{
    over_bases(wrong_offset, 1.0, "offset outside the slab");
}

static uint64_t *base_of(const fr_rank_program *rank_program, uint32_t i_call,
                         int space)
{
    const fr_call *call = &rank_program->calls[i_call];
    uint64_t *base = &rank_program->bases[call->first_base];
    for (int i = 0; i < space; i++)
        base += call->spaces >> i & 1;
    return call->spaces >> space & 1 ? base : NULL;
}

/* Activations are packed densely, so a shift soon meets foreign memory. */
static void shifted_base(fr_program *program, tally *t)
{
    static const int spaces[] = {FR_SPACE_IN,   FR_SPACE_OUT,   FR_SPACE_SAVED,
                                 FR_SPACE_TEMP, FR_SPACE_INPUT, FR_SPACE_HOST};
    for (uint32_t c = 0; c < program->n_rank_programs; c++)
        for (uint32_t i = 0; i < program->rank_programs[c].n_calls; i++)
            for (size_t s = 0; s < sizeof spaces / sizeof spaces[0]; s++) {
                uint64_t *base =
                    base_of(&program->rank_programs[c], i, spaces[s]);
                if (base == NULL || *base == 0)
                    continue;
                *base += 64;
                count(t, program);
                *base -= 64;
            }
}

static void test_shifted_base(void)
{
    over_bases(shifted_base, 1.0, "base shifted by 64 bytes");
}

/* Only one rank program: the others still do what they did. */
static void swap_collectives(fr_program *program, tally *t)
{
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        fr_rank_program *rank_program = &program->rank_programs[c];
        uint32_t last = UINT32_MAX;
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *segment =
                &program->segments[rank_program->calls[i].i_segment];
            const fr_instr *instr = &program->instrs[segment->first_instr];
            bool is_global =
                instr->axis == FR_AXIS_WORLD || instr->axis == FR_AXIS_MODEL;
            if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COLLECTIVE ||
                !is_global || program->n_rank_programs == 1)
                continue;
            if (last != UINT32_MAX) {
                uint32_t kept = rank_program->calls[i].i_segment;
                rank_program->calls[i].i_segment =
                    rank_program->calls[last].i_segment;
                rank_program->calls[last].i_segment = kept;
                count(t, program);
                rank_program->calls[last].i_segment =
                    rank_program->calls[i].i_segment;
                rank_program->calls[i].i_segment = kept;
            }
            last = i;
        }
    }
}

static void test_swapped(void)
{
    /* Under ZeRO norm and loss are both one double over WORLD: swapping them
     * in one rank program sends each into the other, which only their meaning
     * tells; so those pairs are not damage that this check can see. */
    tally sum = {0};
    for (int b = 0; b < N_BASES; b++) {
        fr_program *program = make(&bases[b]);
        if (program && program->plan.zero_stage == 0)
            swap_collectives(program, &sum);
        fr_program_destroy(program);
    }
    printf("# swapped collectives: %d of %d found\n", sum.n_found, sum.n);
    CHECK(sum.n > 0);
    CHECK_INT(sum.n_found, sum.n);
}

static void change_collective(fr_program *program, tally *t)
{
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        fr_instr *instr = &program->instrs[i];
        if (instr->op != FR_OP_ALL_REDUCE || program->n_rank_programs == 1 ||
            (instr->axis != FR_AXIS_WORLD && instr->axis != FR_AXIS_MODEL &&
             instr->axis != FR_AXIS_EMBED))
            continue;
        instr->dim[0] += 2;
        count(t, program);
        instr->dim[0] -= 2;
        uint8_t algorithm = instr->algorithm;
        instr->algorithm = FR_COLLECTIVE_TREE;
        count(t, program);
        instr->algorithm = algorithm;
        instr->flags ^= FR_INSTR_MAX;
        count(t, program);
        instr->flags ^= FR_INSTR_MAX;
    }
}

static void test_changed_collective(void)
{
    over_bases(change_collective, 1.0, "one member differs");
}

/* A call that does nothing: what it should have written is missing. */
static void drop_call(fr_program *program, tally *t)
{
    uint32_t nothing = program->n_segments;
    fr_segment *segments =
        realloc(program->segments, (nothing + 1) * sizeof *segments);
    if (!CHECK(segments != NULL))
        return;
    program->segments = segments;
    program->n_segments++;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            uint32_t kept = rank_program->calls[i].i_segment;
            const char *name = segments[kept].name;
            /* Makes something that somebody reads in this step. */
            if (strncmp(name, "zero", 4) && strncmp(name, "layer_f", 7) &&
                strncmp(name, "embed_f", 7) && strncmp(name, "recv", 4) &&
                strncmp(name, "send", 4) && strncmp(name, "load", 4) &&
                strncmp(name, "offload", 7) && strncmp(name, "fetch", 5) &&
                strncmp(name, "grad_offload", 12))
                continue;
            segments[nothing] = segments[kept];
            segments[nothing].n_instrs = 0;
            rank_program->calls[i].i_segment = nothing;
            count(t, program);
            rank_program->calls[i].i_segment = kept;
        }
    }
    program->n_segments--;
}

static void test_dropped_call(void)
{
    over_bases(drop_call, 1.0, "dropped call");
}

/* Random bytes over random fields. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void damage(void *array, size_t n_bytes, uint64_t *random)
{
    uint8_t *bytes = array;
    uint64_t r = next_random(random);
    if (n_bytes == 0)
        return;
    size_t at = (size_t)(r >> 16) % n_bytes;
    if (r % 3 == 0)
        bytes[at] ^= (uint8_t)(1U << (r >> 8 & 7));
    else
        bytes[at] = (uint8_t)(r % 3 == 1 ? 0xff : r >> 8);
}

static void test_random_damage(void)
{
    uint64_t random = 0x853c49e6748fea9bU;
    int n_found = 0, n = 300;
    for (int i = 0; i < n; i++) {
        fr_program *program = make(&bases[i % N_BASES]);
        if (!program)
            return;
        fr_rank_program *rank_program =
            &program->rank_programs[next_random(&random) %
                                    program->n_rank_programs];
        for (int k = 0; k < 1 + i % 3; k++) {
            switch (next_random(&random) % 6) {
            case 0:
                damage(program->instrs,
                       program->n_instrs * sizeof *program->instrs, &random);
                break;
            case 1:
                damage(program->segments,
                       program->n_segments * sizeof *program->segments,
                       &random);
                break;
            case 2:
                damage(rank_program->deps,
                       rank_program->n_deps * sizeof *rank_program->deps,
                       &random);
                break;
            case 3:
                damage(rank_program->blocks,
                       rank_program->n_blocks * sizeof *rank_program->blocks,
                       &random);
                break;
            case 4:
                damage(rank_program->tensors,
                       rank_program->n_tensors * sizeof *rank_program->tensors,
                       &random);
                break;
            default:
                damage(rank_program->calls,
                       rank_program->n_calls * sizeof *rank_program->calls,
                       &random);
                break;
            }
        }
        n_found += is_found(program);
        fr_program_destroy(program);
    }
    printf("# random damage: %d of %d found\n", n_found, n);
    CHECK(n_found > n / 4);
}

CHECK_MAIN({"dropped_dep", test_dropped_dep},
           {"shrunk_block", test_shrunk_block}, {"short_life", test_short_life},
           {"wrong_tag", test_wrong_tag}, {"wrong_offset", test_wrong_offset},
           {"shifted_base", test_shifted_base}, {"swapped", test_swapped},
           {"changed_collective", test_changed_collective},
           {"dropped_call", test_dropped_call},
           {"random_damage", test_random_damage})
