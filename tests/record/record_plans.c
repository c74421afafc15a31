/*
 * record_plans.c: what random plans come to, one line each, for comparing two
 * builds: record_plans [SEED [PLANS_PER_SCENE]] > FILE.  A change of structure
 * must leave every line as it is; a change of behaviour shows which plans it
 * touches.  Numbers are exact: times as hexadecimal floats and picoseconds,
 * programs as a hash of every call, instruction, block and tensor, but not of
 * the names of segments, which mean nothing.  `make record` runs it.
 */
#include "core/base/hash.h"
#include "cost_models/gpu/gpu_memory.h"
#include "program/lower/step/lower.h"
#include "sim/bound/estimate.h"
#include "sim/predict/simulate.h"
#include "tests/record/random_plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scene {
    const char *model, *cluster;
    int64_t seq, batch;
    int n_percent; /* of PLANS_PER_SCENE: large models take longer */
} scene;

static const scene scenes[] = {
    {"gpt2-mini", "dgx-h100:64", 128, 256, 100},
    {"gpt2-124m", "cloud-p4d-8", 256, 128, 100},
    {"llama-3-8b", "dgx-h100:64", 2048, 256, 100},
    {"mixtral-8x7b", "selene-like", 2048, 256, 100},
    {"gpt2-1.5b", "mixed-a100-v100", 1024, 64, 100},
    {"gpt2-mini", "torus-64", 256, 128, 40},
    {"bert-large", "dgx-a100:64", 512, 256, 40},
    {"resnet-50", "dgx-a100:8", 1, 512, 30},
    {"deepseek-v3", "dgx-h100:64", 4096, 512, 10},
    {"gpt2-mini", "tests/record/cpu_hosts.xml", 128, 32, 10},
};
enum { N_SCENES = sizeof scenes / sizeof scenes[0] };

/* Field by field: padding bytes have no value. */
typedef struct digest {
    uint64_t hash;
} digest;

static void add(digest *d, uint64_t value)
{
    d->hash = fr_hash_mix(d->hash ^ value) + 0x9e3779b97f4a7c15u;
}

static void add_double(digest *d, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(d, bits);
}

static void add_instr(digest *d, const fr_instr *instr)
{
    const uint64_t values[] = {instr->op,
                               instr->dtype,
                               instr->axis,
                               instr->variant,
                               instr->grad_dtype,
                               instr->protocol,
                               instr->n_channels,
                               instr->flags,
                               (uint64_t)instr->peer,
                               (uint64_t)instr->tag + instr->shard_axis,
                               instr->shard_bytes};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        add(d, values[i]);
    for (int i = 0; i < FR_INSTR_DIMS; i++)
        add(d, (uint64_t)instr->dim[i]);
    add_double(d, instr->scalar);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        add(d, instr->ref[i].space);
        add(d, instr->ref[i].is_sharded + instr->ref[i].turn);
        add(d, instr->ref[i].reuse_log2);
        add(d, instr->ref[i].offset_bytes);
    }
}

static void add_call(digest *d, const fr_program *program,
                     const fr_rank_program *rank_program, const fr_call *call)
{
    const fr_segment *segment = &program->segments[call->i_segment];
    add(d, segment->lane);
    add(d, segment->role == FR_SEGMENT_RECOMPUTE);
    add(d, segment->temp_bytes);
    add(d, segment->n_instrs);
    for (uint32_t k = 0; k < segment->n_instrs; k++)
        add_instr(d, &program->instrs[segment->first_instr + k]);
    add(d, (uint64_t)call->layer);
    add(d, (uint64_t)call->micro_batch);
    add(d, (uint64_t)call->chunk);
    for (uint32_t k = 0; k < call->n_deps; k++)
        add(d, rank_program->deps[call->first_dep + k]);
    for (int space = 0; space < FR_SPACE_N; space++)
        add(d, fr_call_base_bytes(rank_program, call, space));
}

static void add_tensor(digest *d, const fr_tensor *tensor)
{
    const uint64_t values[] = {tensor->first,
                               tensor->n,
                               (uint64_t)tensor->rows,
                               (uint64_t)tensor->cols,
                               (uint64_t)tensor->global_rows,
                               (uint64_t)tensor->global_cols,
                               tensor->sharded_dim,
                               tensor->n_parts,
                               tensor->is_decayed,
                               tensor->is_tied_copy,
                               tensor->init,
                               tensor->id};
    d->hash = fr_hash_text(tensor->name, d->hash);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        add(d, values[i]);
    for (int i = 0; i < 3; i++)
        add(d, (uint64_t)tensor->part_rows[i]);
    add_double(d, tensor->init_std);
}

static uint64_t hash_program(const fr_program *program)
{
    digest d = {(uint64_t)program->n_micro_batches};
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        add(&d, (uint64_t)rank_program->pp);
        add(&d, rank_program->n_parameters);
        add(&d, rank_program->weight_offset_bytes);
        add(&d, rank_program->grad_offset_bytes);
        add(&d, rank_program->step_offset_bytes);
        add(&d, rank_program->slab_bytes);
        for (uint32_t i = 0; i < rank_program->n_calls; i++)
            add_call(&d, program, rank_program, &rank_program->calls[i]);
        for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
            const fr_block *block = &rank_program->blocks[i];
            add(&d, block->kind);
            add(&d, block->is_persistent);
            add(&d, block->offset_bytes);
            add(&d, block->n_bytes);
            add(&d, block->first_call);
            add(&d, block->last_call);
        }
        for (uint32_t i = 0; i < rank_program->n_tensors; i++)
            add_tensor(&d, &rank_program->tensors[i]);
    }
    return d.hash;
}

typedef struct bench {
    fr_model model;
    fr_cluster cluster;
    fr_job job;
    fr_cost_model *costs;
    fr_estimator *estimator;
    bool is_gpu;
} bench;

static fr_status open_scene(const scene *s, bench *b, fr_err *err)
{
    FR_TRY(fr_model_load(NULL, s->model, &b->model, err));
    FR_TRY(fr_cluster_load(NULL, s->cluster, &b->cluster, err));
    FR_TRY(fr_cost_model_create(NULL, &b->cluster, &b->costs, err));
    fr_job_init(&b->job);
    b->job.seq = s->seq;
    b->job.global_batch = s->batch;
    b->is_gpu = b->cluster.devices[0].kind == FR_DEVICE_GPU;
    if (!b->is_gpu)
        return FR_OK;
    return fr_estimator_create(&b->model, &b->job, &b->cluster, b->costs,
                               &b->estimator, err);
}

static void close_scene(bench *b)
{
    fr_estimator_destroy(b->estimator);
    fr_cost_model_destroy(b->costs);
    fr_cluster_release(&b->cluster);
    fr_model_release(&b->model);
}

static void print_estimate(const bench *b, const fr_plan *plan)
{
    fr_estimate e;
    fr_err why;
    if (b->estimator == NULL)
        return; /* estimates are of GPUs */
    if (fr_estimate_plan(b->estimator, plan, &e, &why) != FR_OK)
        printf(" estimate refused (%s)", why.text);
    else
        printf(" bound %a estimate %a peak %llu least %llu of %llu",
               e.lower_bound_s, e.estimate_s, (unsigned long long)e.peak_bytes,
               (unsigned long long)e.least_bytes,
               (unsigned long long)e.capacity_bytes);
}

static void print_prediction(const fr_prediction *p)
{
    printf(" step %.0f ps", 1e12 * p->step_s);
    for (int i = 0; i < FR_PART_N; i++)
        printf(" %.0f", 1e12 * p->breakdown_s[i]);
    printf(" memory %llu %llu %llu %llu mfu %a usd %a\n",
           (unsigned long long)p->memory.peak_bytes,
           (unsigned long long)p->memory.allocated_bytes,
           (unsigned long long)p->memory.reserved_bytes,
           (unsigned long long)p->memory.device_bytes, p->mfu,
           p->cost.usd_per_hour);
}

/* One plan, whose line it ends; false: it is refused. */
static bool record_plan(const bench *b, const fr_plan *plan)
{
    char text[256];
    fr_err err;
    fr_program *program = NULL;
    fr_prediction prediction;
    int64_t n = fr_plan_world(plan);
    int32_t *node_of_rank = malloc((size_t)n * sizeof *node_of_rank);
    printf("%s", fr_plan_describe(plan, text, sizeof text));
    print_estimate(b, plan);
    fr_placement placement = {
        .n_ranks = n,
        .node_of_rank = node_of_rank,
        .by_framework =
            b->is_gpu && fr_gpu_is_by_framework(plan, &b->cluster.devices[0])};
    fr_status status =
        fr_cluster_place(&b->cluster, n, 1, 0, node_of_rank, &err);
    if (status == FR_OK)
        status = fr_lower(&b->model, &b->job, plan, &placement, &program, &err);
    if (status != FR_OK) {
        printf(" refused: %s\n", err.text);
    } else {
        printf(" program %016llx", (unsigned long long)hash_program(program));
        status = fr_simulate(program, b->costs, &b->cluster, &placement, NULL,
                             &prediction, &err);
        if (status != FR_OK)
            printf(" not simulated: %s\n", err.text);
        else
            print_prediction(&prediction);
    }
    fr_program_destroy(program);
    free(node_of_rank);
    return status == FR_OK;
}

static fr_status record_scene(const scene *s, uint64_t seed, int n_plans,
                              fr_err *err)
{
    bench b = {0};
    fr_rng *rng = NULL;
    fr_status status = open_scene(s, &b, err);
    if (status == FR_OK)
        status = fr_rng_create(seed, &rng, err);
    int n_wanted = n_plans * s->n_percent / 100, n_done = 0;
    for (int i = 0; status == FR_OK && n_done < n_wanted && i < 8 * n_wanted;
         i++) {
        fr_plan plan;
        random_plans_next(rng, &b.model, fr_cluster_slots(&b.cluster), &plan);
        printf("%s %d ", s->model, i);
        n_done += record_plan(&b, &plan);
    }
    fr_rng_destroy(rng);
    close_scene(&b);
    return status;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 2385;
    int n_plans = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2254;
    fr_err err;
    for (int i = 0; i < N_SCENES; i++)
        if (record_scene(&scenes[i], seed + (uint64_t)i, n_plans, &err) !=
            FR_OK) {
            fprintf(stderr, "record_plans: %s: %s\n", scenes[i].model,
                    err.text);
            return 1;
        }
    return 0;
}
