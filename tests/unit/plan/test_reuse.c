/* test_reuse.c: reuse distances against a naive count, on real programs. */
#include "program/ir/reuse.h"
#include "program/lower/step/lower.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

enum { PAGE = 4096 };

/* Every touch of a page in order, kept in one long list. */
typedef struct trace {
    uint32_t *page;
    size_t n, cap;
} trace;

static void touch(trace *t, uint32_t page)
{
    if (t->n == t->cap) {
        t->cap = t->cap > 0 ? 2 * t->cap : 1024;
        t->page = realloc(t->page, t->cap * sizeof *t->page);
        if (t->page == NULL)
            abort();
    }
    t->page[t->n++] = page;
}

/* Distinct pages after the last touch of `page`; -1: never touched. */
static double naive_distance(const trace *t, uint32_t page, uint32_t n_pages)
{
    char *is_seen = calloc(n_pages, 1);
    double n = 0.0;

    if (is_seen == NULL)
        abort();
    for (size_t i = t->n; i-- > 0;) {
        if (t->page[i] == page) {
            free(is_seen);
            return n * PAGE;
        }
        n += !is_seen[t->page[i]];
        is_seen[t->page[i]] = 1;
    }
    free(is_seen);
    return -1.0;
}

static bool span_of(const fr_rank_program *rank_program, const fr_call *call,
                    const fr_instr *instr, int i, uint32_t *first,
                    uint32_t *last)
{
    uint64_t n = instr->ref[i].space == FR_SPACE_NONE
                     ? 0
                     : fr_instr_ref_bytes(instr, i, 1);
    uint64_t begin =
        fr_call_base_bytes(rank_program, call, instr->ref[i].space) +
        instr->ref[i].offset_bytes;

    if (n == 0)
        return false;
    *first = (uint32_t)(begin / PAGE);
    *last = (uint32_t)((begin + n - 1) / PAGE);
    return true;
}

/* Walks a step; sums log2 distances of operand 0 of instruction `wanted`. */
static void walk(const fr_program *program, trace *t, uint32_t wanted,
                 double *sum, int *n)
{
    const fr_rank_program *rank_program = &program->rank_programs[0];
    uint32_t n_pages = (uint32_t)(rank_program->slab_bytes / PAGE) + 2;

    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_call *call = &rank_program->calls[c];
        const fr_segment *s = &program->segments[call->i_segment];
        for (uint32_t k = 0; k < s->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[s->first_instr + k];
            uint32_t first, last;
            if (sum != NULL && s->first_instr + k == wanted &&
                span_of(rank_program, call, instr, 0, &first, &last) &&
                last < first + 4)
                for (uint32_t p = first; p <= last; p++, ++*n)
                    *sum += log2(naive_distance(t, p, n_pages) + 2.0);
            for (int i = 0; i < FR_INSTR_REFS; i++)
                if (span_of(rank_program, call, instr, i, &first, &last))
                    for (uint32_t p = first; p <= last; p++)
                        touch(t, p);
        }
    }
}

static fr_program *lower_tiny(fr_model *model)
{
    fr_err err = {0};
    fr_job job;
    fr_plan plan;
    fr_program *program = NULL;

    CHECK_OK(fr_model_load(NULL, "configs/models/gpt2-tiny.json", model, &err),
             &err);
    fr_job_init(&job);
    job.global_batch = 2;
    job.seq = 16;
    fr_plan_init(&plan);
    plan.micro_batch = 1;
    CHECK_OK(fr_lower(model, &job, &plan, NULL, &program, &err), &err);
    return program;
}

static void test_against_naive(void)
{
    fr_err err = {0};
    fr_model model;
    fr_program *program = lower_tiny(&model);
    int n_checked = 0;

    if (program == NULL)
        return;
    CHECK_OK(fr_program_mark_reuse(program, &err), &err);
    CHECK(program->rank_programs[0].slab_bytes < (uint64_t)4096 * PAGE);
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        trace t = {0};
        double sum = 0.0;
        int n = 0;
        walk(program, &t, i, NULL, NULL);
        walk(program, &t, i, &sum, &n);
        free(t.page);
        if (n == 0)
            continue;
        n_checked++;
        CHECK_WITHIN(program->instrs[i].ref[0].reuse_log2, sum / n, 0.51);
    }
    CHECK(n_checked > 20);
    fr_program_destroy(program);
    fr_model_release(&model);
}

/* Data that are used again at once are near; optimizer state comes once a
 * step. */
static void test_order(void)
{
    fr_err err = {0};
    fr_model model;
    fr_program *program = lower_tiny(&model);
    int far = 0, near = 255;

    if (program == NULL)
        return;
    CHECK_OK(fr_program_mark_reuse(program, &err), &err);
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[i];
        if (instr->op == FR_OP_OPT_STEP)
            far =
                instr->ref[2].reuse_log2 > far ? instr->ref[2].reuse_log2 : far;
        if (instr->op == FR_OP_GELU_FWD)
            near = instr->ref[0].reuse_log2 < near ? instr->ref[0].reuse_log2
                                                   : near;
    }
    CHECK(near < far);
    fr_program_destroy(program);
    fr_model_release(&model);
}

CHECK_MAIN({"against_naive", test_against_naive}, {"order", test_order})
