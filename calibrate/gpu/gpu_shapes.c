/* gpu_shapes.c: see gpu_shapes.h. */
#include "calibrate/gpu/gpu_shapes.h"

#include "plan/codec/compressor.h"
#include "program/lower/step/lower.h"

#include <string.h>

/* Attention of plans in tf32 and in f32 has the same key: tf32's is kept,
 * which more plans want. */
static const fr_dtype precisions[] = {FR_DTYPE_BF16, FR_DTYPE_TF32,
                                      FR_DTYPE_F32};
enum { N_PRECISIONS = sizeof precisions / sizeof precisions[0] };

/*
 * Products of more would take the time of all others: some milliseconds each
 * on a large GPU, and each is timed with eight algorithms first.  The rate
 * has settled by then; the fits know the rest.
 */
static double most_flop(const fr_instr *instr, bool is_quick)
{
    double most = instr->dtype == FR_DTYPE_BF16   ? 4e12
                  : instr->dtype == FR_DTYPE_TF32 ? 1e12
                                                  : 4e10;

    return is_quick ? most / 8.0 : most;
}

typedef struct filling {
    fr_shapes *shapes;
    const fr_fingerprint *machine;
    const fr_model *model;
    fr_job job;
    bool is_quick;
} filling;

/* ---- candidate plans ----------------------------------------------------- */

static fr_status add_plan(filling *f, const fr_plan *plan, fr_err *err)
{
    fr_job job = f->job;
    fr_placement placement = {.n_ranks = fr_plan_world(plan)};
    fr_program *program;

    job.global_batch = plan->dp * plan->micro_batch;
    if (fr_plan_check_executable_gpu(plan, f->model, &job, NULL) != FR_OK)
        return FR_OK;
    FR_TRY(fr_lower(f->model, &job, plan, &placement, &program, err));
    return fr_shapes_add_program(f->shapes, program, f->machine, err);
}

/* Adds the widths of activations: micro-batches vary the rows, tp the columns.
 * */
static fr_status add_layers(filling *f, const fr_plan *base, fr_err *err)
{
    const int64_t most_rows = f->is_quick ? 8192 : 32768;
    fr_plan plan = *base;

    for (plan.tp = 1; plan.tp <= (f->is_quick ? 2 : 8); plan.tp *= 2)
        for (plan.micro_batch = 1; plan.micro_batch == 1 ||
                                   plan.micro_batch * f->job.seq <= most_rows;
             plan.micro_batch *= 2) {
            plan.is_sequence_parallel = false;
            FR_TRY(add_plan(f, &plan, err));
            plan.is_sequence_parallel = true;
            if (plan.tp > 1)
                FR_TRY(add_plan(f, &plan, err));
        }
    return FR_OK;
}

/* Adds kernels that work on ranges of parameters: shards of ZeRO 1, codecs,
 * optimizers. */
static fr_status add_ranges(filling *f, const fr_plan *base, fr_err *err)
{
    fr_plan plan = *base;
    fr_optimizer_kind wanted = f->job.optimizer;

    plan.zero_stage = 1;
    for (plan.dp = 2; plan.dp <= 64; plan.dp *= 4)
        FR_TRY(add_plan(f, &plan, err));
    plan = *base;
    plan.dp = 2;
    FR_TRY(add_plan(f, &plan, err));
    for (int kind = 1; kind < fr_n_compressors && !f->is_quick; kind++) {
        plan.compressor = (fr_compressor_kind)kind;
        plan.has_error_feedback = true;
        fr_compressor_mend_number(&plan);
        FR_TRY(add_plan(f, &plan, err));
    }
    for (int kind = 0; kind < FR_OPTIMIZER_N && !f->is_quick; kind++) {
        f->job.optimizer = (fr_optimizer_kind)kind;
        FR_TRY(add_plan(f, base, err));
    }
    f->job.optimizer = wanted;
    return FR_OK;
}

static fr_status add_precision(filling *f, fr_dtype precision, fr_err *err)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.precision = precision;
    plan.grad_dtype = FR_DTYPE_F32;
    plan.is_flash = true;
    plan.execution.kernels = FR_KERNELS_OWN;
    plan.n_threads = 1;
    plan.micro_batch = 1;
    FR_TRY(add_layers(f, &plan, err));
    FR_TRY(add_ranges(f, &plan, err));
    if (precision != FR_DTYPE_BF16)
        return FR_OK;
    plan.grad_dtype = FR_DTYPE_BF16;
    FR_TRY(add_plan(f, &plan, err));
    plan.micro_batch = 4;
    return add_plan(f, &plan, err);
}

static fr_status add_case(filling *f, const fr_calibrate_case *one, fr_err *err)
{
    f->model = one->model;
    f->job = *one->job;
    for (int i = 0; i < N_PRECISIONS; i++)
        FR_TRY(add_precision(f, precisions[i], err));
    return FR_OK;
}

/* ---- grids -------------------------------------------------------------- */

/* A known shape with other dimensions: the first of its op and dtype. */
static const fr_shape *find_like(const fr_shapes *shapes, fr_op op,
                                 fr_dtype dtype)
{
    for (size_t i = 0; i < shapes->list.n; i++)
        if (shapes->list.items[i].instr.op == op &&
            shapes->list.items[i].instr.dtype == dtype)
            return &shapes->list.items[i];
    return NULL;
}

static fr_status add_like(filling *f, const fr_shape *like, const int64_t *dim,
                          int n_dims, fr_err *err)
{
    fr_shape shape = *like;

    for (int i = 0; i < n_dims; i++)
        shape.instr.dim[i] = dim[i];
    fr_compute_key(&shape.instr, f->machine, 1, &shape.key);
    return fr_shapes_add(f->shapes, &shape, err);
}

static fr_status add_products(filling *f, fr_op op, fr_dtype dtype, fr_err *err)
{
    static const int64_t rows[] = {2048, 512, 8192};
    static const int64_t columns[] = {1024, 4096, 16384};
    int n_rows = f->is_quick ? 1 : 3, n_columns = f->is_quick ? 2 : 3;

    for (int m = 0; m < n_rows; m++)
        for (int n = 0; n < n_columns; n++)
            for (int k = 0; k < n_columns; k++) {
                const fr_shape *like = find_like(f->shapes, op, dtype);
                const int64_t dim[] = {rows[m], columns[n], columns[k]};
                if (like != NULL)
                    FR_TRY(add_like(f, like, dim, 3, err));
            }
    return FR_OK;
}

static fr_status add_attention(filling *f, fr_op op, fr_dtype dtype,
                               fr_err *err)
{
    static const int64_t head_dims[] = {64, 128};
    const int64_t longest = f->is_quick ? 2048 : 8192;

    for (int64_t seq = 512; seq <= longest; seq *= 2)
        for (int i = 0; i < 2; i++) {
            const fr_shape *like = find_like(f->shapes, op, dtype);
            const int64_t dim[] = {1, seq, 16, 16, head_dims[i]};
            if (like != NULL)
                FR_TRY(add_like(f, like, dim, 5, err));
        }
    return FR_OK;
}

static fr_status add_grids(filling *f, fr_err *err)
{
    static const fr_op products[] = {FR_OP_LINEAR_FWD, FR_OP_LINEAR_DGRAD,
                                     FR_OP_LINEAR_WGRAD};

    for (int i = 0; i < N_PRECISIONS; i++) {
        for (int k = 0; k < 3; k++)
            FR_TRY(add_products(f, products[k], precisions[i], err));
        FR_TRY(add_attention(f, FR_OP_ATTN_FWD, precisions[i], err));
        FR_TRY(add_attention(f, FR_OP_ATTN_BWD, precisions[i], err));
    }
    return FR_OK;
}

/* Drops shapes that take too long; only products and attention count their
 * flop. */
static void drop_long(filling *f)
{
    fr_shapes *shapes = f->shapes;
    size_t n = 0;

    for (size_t i = 0; i < shapes->list.n; i++)
        if ((double)shapes->list.items[i].key.flop <=
            most_flop(&shapes->list.items[i].instr, f->is_quick))
            shapes->list.items[n++] = shapes->list.items[i];
    shapes->list.n = n;
}

/* ---- cold and warm ------------------------------------------------------ */

static bool set_places(fr_shape *shape, char place)
{
    bool is_other = false;

    for (char *c = shape->key.where; *c != '\0'; c++) {
        is_other = is_other || (*c != '-' && *c != place);
        if (*c != '-')
            *c = place;
    }
    return is_other;
}

/* Adds, for each operation that is no product, the smallest and the largest
 * shape that fits into the L2, with all operands there and with none. */
static fr_status add_places(filling *f, fr_err *err)
{
    size_t n_known = f->shapes->list.n;

    for (size_t i = 0; i < n_known; i++) {
        fr_shape shape = f->shapes->list.items[i];
        bool is_first = true, is_last = true;
        if (shape.key.flop > 0 && shape.instr.op <= FR_OP_LINEAR_WGRAD &&
            shape.instr.op >= FR_OP_LINEAR_FWD)
            continue;
        if (fr_shape_bytes(&shape) > f->machine->gpu.l2_bytes / 2)
            continue;
        for (size_t k = 0; k < n_known; k++) {
            const fr_shape *other = &f->shapes->list.items[k];
            if (!fr_compute_key_is_alike(&other->key, &shape.key) ||
                fr_shape_bytes(other) > f->machine->gpu.l2_bytes / 2)
                continue;
            is_first =
                is_first && other->key.moved_bytes >= shape.key.moved_bytes;
            is_last =
                is_last && other->key.moved_bytes <= shape.key.moved_bytes;
        }
        if (!is_first && !is_last)
            continue;
        if (set_places(&shape, FR_PROFILE_LLC))
            FR_TRY(fr_shapes_add(f->shapes, &shape, err));
        if (set_places(&shape, FR_PROFILE_MEMORY))
            FR_TRY(fr_shapes_add(f->shapes, &shape, err));
    }
    return FR_OK;
}

/* ---- held out ----------------------------------------------------------- */

static bool has_rows(const fr_shapes *shapes, const fr_shape *like,
                     int64_t rows)
{
    fr_compute_point key = like->key;

    key.dim[0] = rows;
    for (size_t i = 0; i < shapes->list.n; i++)
        if (fr_compute_key_same_shape(&shapes->list.items[i].key, &key))
            return true;
    return false;
}

/* Half-way between two shapes that differ by a factor of two in their rows:
 * of each op and dtype so many. */
static fr_status add_held_out(filling *f, int n_wanted, fr_err *err)
{
    int n_added[FR_OP_N][FR_DTYPE_N] = {{0}};
    size_t n_known = f->shapes->list.n;

    for (size_t i = n_known; i-- > 0;) {
        fr_shape shape = f->shapes->list.items[i];
        int *n = &n_added[shape.instr.op][shape.instr.dtype];
        int64_t rows = shape.instr.dim[0];
        if (*n >= n_wanted || fr_shape_free_dim((fr_op)shape.instr.op) < 0 ||
            rows % 2 != 0 || !has_rows(f->shapes, &shape, 2 * rows))
            continue;
        shape.instr.dim[0] = rows / 2 * 3;
        fr_compute_key(&shape.instr, f->machine, 1, &shape.key);
        shape.key.is_held_out = true;
        *n += 1;
        FR_TRY(fr_shapes_add(f->shapes, &shape, err));
    }
    return FR_OK;
}

fr_status fr_gpu_shapes_fill(fr_shapes *shapes,
                             const fr_calibrate_options *options,
                             const fr_fingerprint *machine, fr_err *err)
{
    filling f = {
        .shapes = shapes, .machine = machine, .is_quick = options->is_quick};

    for (size_t i = 0; i < options->n_cases; i++)
        FR_TRY(add_case(&f, &options->cases[i], err));
    FR_TRY(add_grids(&f, err));
    drop_long(&f);
    FR_TRY(add_places(&f, err));
    return add_held_out(&f, options->is_quick ? 1 : 3, err);
}
