/*
 * conv_dnnl.c: see conv.h.
 *
 * Images are channels-last as in the program; weights are PyTorch's there and
 * are brought into the order that the library wants in each call, which is
 * little beside the convolution.  Gradients of weights come out in that order
 * and are added in the program's.
 */
#include "core/base/vec.h"
#include "kernels/cpu/images/conv.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <stdlib.h>

#ifdef FR_HAVE_DNNL

#include <oneapi/dnnl/dnnl.h>

enum { N_DIMS = 4, MOST_ARGS = 6, ALIGN = 64 };

/* Tensors of a convolution: what it reads, weights in the program's order and
 * in the library's, the bias, what it makes, the library's scratch. */
typedef enum conv_tensor {
    IMAGE_IN,
    PLAIN,
    PACKED,
    BIAS,
    IMAGE_OUT,
    SCRATCH,
    N_TENSORS
} conv_tensor;

/* One shape.  Of gradients of images, in is DX, of weights DY is out. */
typedef struct conv_code {
    fr_instr instr; /* op and dimensions; BIAS is there or not */
    bool has_bias;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t main, reorder;
    dnnl_memory_desc_t layout[N_TENSORS];
    dnnl_memory_t memory[N_TENSORS];
    uint64_t n_bytes[N_TENSORS];
} conv_code;

struct fr_convs {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    fr_vec(conv_code) codes;
    unsigned char *room; /* packed weights, their bias, scratch */
    uint64_t room_bytes;
};

bool fr_convs_are_there(void)
{
    return true;
}

fr_status fr_convs_create(fr_convs **out, fr_err *err)
{
    fr_convs *convs;
    FR_TRY_CALLOC(convs, 1, err);
    if (dnnl_engine_create(&convs->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&convs->stream, convs->engine,
                           dnnl_stream_default_flags) == dnnl_success) {
        *out = convs;
        return FR_OK;
    }
    fr_convs_destroy(convs);
    return fr_fail(err, FR_FAILURE, "oneDNN does not start");
}

static void release_code(conv_code *code)
{
    for (int i = 0; i < N_TENSORS; i++)
        if (code->memory[i] != NULL)
            (void)dnnl_memory_destroy(code->memory[i]);
    if (code->main != NULL)
        (void)dnnl_primitive_destroy(code->main);
    if (code->reorder != NULL)
        (void)dnnl_primitive_destroy(code->reorder);
    if (code->desc != NULL)
        (void)dnnl_primitive_desc_destroy(code->desc);
}

void fr_convs_destroy(fr_convs *convs)
{
    if (convs == NULL)
        return;
    for (size_t i = 0; i < convs->codes.n; i++)
        release_code(&convs->codes.items[i]);
    fr_vec_release(&convs->codes);
    if (convs->stream != NULL)
        (void)dnnl_stream_destroy(convs->stream);
    if (convs->engine != NULL)
        (void)dnnl_engine_destroy(convs->engine);
    free(convs->room);
    free(convs);
}

/* ---- making code -------------------------------------------------------- */

static bool is_bias_there(const fr_instr *instr)
{
    if (instr->op == FR_OP_CONV_FWD)
        return instr->ref[FR_CONV_FWD_BIAS].space != FR_SPACE_NONE;
    return instr->op == FR_OP_CONV_WGRAD &&
           instr->ref[FR_CONV_WGRAD_DBIAS].space != FR_SPACE_NONE;
}

static conv_code *find(const fr_convs *convs, const fr_instr *instr,
                       bool has_bias)
{
    for (size_t i = 0; i < convs->codes.n; i++) {
        conv_code *code = &convs->codes.items[i];
        if (code->instr.op == instr->op && code->has_bias == has_bias &&
            memcmp(code->instr.dim, instr->dim, sizeof instr->dim) == 0)
            return code;
    }
    return NULL;
}

static dnnl_status_t describe(const fr_conv_dims *d, conv_code *code)
{
    const dnnl_dim_t made =
        (d->size + 2 * d->padding - d->kernel) / d->stride + 1;
    const dnnl_dims_t in = {d->batch, d->in, d->size, d->size};
    const dnnl_dims_t out = {d->batch, d->out, made, made};
    const dnnl_dims_t bias = {d->out};
    const dnnl_dims_t grouped = {d->groups, d->out / d->groups,
                                 d->in / d->groups, d->kernel, d->kernel};
    const bool is_grouped = d->groups > 1;
    const dnnl_dim_t *weight = is_grouped ? grouped : grouped + 1;
    const int n_weight = is_grouped ? N_DIMS + 1 : N_DIMS;
    const dnnl_format_tag_t plain = is_grouped ? dnnl_abcde : dnnl_abcd;
    dnnl_memory_desc_t *to = code->layout;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(
        &to[IMAGE_IN], N_DIMS, in, dnnl_f32, dnnl_nhwc);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&to[IMAGE_OUT], N_DIMS, out,
                                              dnnl_f32, dnnl_nhwc);
    if (status == dnnl_success)
        status =
            dnnl_memory_desc_init_by_tag(&to[BIAS], 1, bias, dnnl_f32, dnnl_a);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&to[PLAIN], n_weight, weight,
                                              dnnl_f32, plain);
    if (status == dnnl_success)
        status = dnnl_memory_desc_init_by_tag(&to[PACKED], n_weight, weight,
                                              dnnl_f32, dnnl_format_tag_any);
    return status;
}

/* The operation's descriptor, with that of its forward, which others need. */
static dnnl_status_t choose(const fr_convs *convs, conv_code *code,
                            const_dnnl_primitive_attr_t attr)
{
    const fr_conv_dims *d = &code->instr.conv;
    const dnnl_dims_t stride = {d->stride, d->stride};
    const dnnl_dims_t padding = {d->padding, d->padding};
    const dnnl_memory_desc_t *at = code->layout;
    const dnnl_memory_desc_t *bias = code->has_bias ? &at[BIAS] : NULL;
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_t forward;
    dnnl_status_t status = dnnl_convolution_forward_desc_init(
        &op, dnnl_forward_training, dnnl_convolution_direct, &at[IMAGE_IN],
        &at[PACKED], bias, &at[IMAGE_OUT], stride, padding, padding);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&forward, &op, attr, convs->engine,
                                            NULL);
    if (status != dnnl_success)
        return status;
    if (code->instr.op == FR_OP_CONV_FWD) {
        code->desc = forward;
        return dnnl_success;
    }
    if (code->instr.op == FR_OP_CONV_DGRAD)
        status = dnnl_convolution_backward_data_desc_init(
            &op, dnnl_convolution_direct, &at[IMAGE_IN], &at[PACKED],
            &at[IMAGE_OUT], stride, padding, padding);
    else
        status = dnnl_convolution_backward_weights_desc_init(
            &op, dnnl_convolution_direct, &at[IMAGE_IN], &at[PACKED], bias,
            &at[IMAGE_OUT], stride, padding, padding);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&code->desc, &op, attr,
                                            convs->engine, forward);
    (void)dnnl_primitive_desc_destroy(forward);
    return status;
}

/* Weights to the library's order; gradients back, added to those there. */
static dnnl_status_t make_reorder(const fr_convs *convs, conv_code *code,
                                  dnnl_primitive_attr_t attr)
{
    const bool is_gradient = code->instr.op == FR_OP_CONV_WGRAD;
    const conv_tensor from = is_gradient ? PACKED : PLAIN;
    const conv_tensor to = is_gradient ? PLAIN : PACKED;
    dnnl_primitive_desc_t desc;
    dnnl_post_ops_t sum = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&sum);
    if (status == dnnl_success && is_gradient)
        status = dnnl_post_ops_append_sum(sum, 1.0F);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, sum);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(
            &desc, &code->layout[from], convs->engine, &code->layout[to],
            convs->engine, attr);
    if (sum != NULL)
        (void)dnnl_post_ops_destroy(sum);
    if (status != dnnl_success)
        return status;
    status = dnnl_primitive_create(&code->reorder, desc);
    (void)dnnl_primitive_desc_destroy(desc);
    return status;
}

static dnnl_status_t make_code(const fr_convs *convs, conv_code *code)
{
    dnnl_primitive_attr_t attr = NULL, plain = NULL;
    dnnl_status_t status = describe(&code->instr.conv, code);
    const bool is_gradient = code->instr.op == FR_OP_CONV_WGRAD;
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(
            attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = choose(convs, code, attr);
    if (status == dnnl_success) {
        code->layout[PACKED] = *dnnl_primitive_desc_query_md(
            code->desc,
            is_gradient ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
            0);
        code->layout[SCRATCH] = *dnnl_primitive_desc_query_md(
            code->desc, dnnl_query_scratchpad_md, 0);
        status = dnnl_primitive_create(&code->main, code->desc);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&plain);
    if (status == dnnl_success)
        status = make_reorder(convs, code, plain);
    for (int i = 0; i < N_TENSORS && status == dnnl_success; i++) {
        code->n_bytes[i] = dnnl_memory_desc_get_size(&code->layout[i]);
        status = dnnl_memory_create(&code->memory[i], &code->layout[i],
                                    convs->engine, DNNL_MEMORY_NONE);
    }
    if (attr != NULL)
        (void)dnnl_primitive_attr_destroy(attr);
    if (plain != NULL)
        (void)dnnl_primitive_attr_destroy(plain);
    return status;
}

static uint64_t in_lines(uint64_t n_bytes)
{
    return (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static fr_status make_room(fr_convs *convs, const conv_code *code, fr_err *err)
{
    const uint64_t n_bytes = in_lines(code->n_bytes[PACKED]) +
                             in_lines(code->n_bytes[BIAS]) +
                             in_lines(code->n_bytes[SCRATCH]);
    if (n_bytes <= convs->room_bytes)
        return FR_OK;
    unsigned char *room = aligned_alloc(ALIGN, n_bytes);
    if (room == NULL)
        return fr_fail_no_memory(err);
    memset(room, 0xff, n_bytes); /* touched now */
    free(convs->room);
    convs->room = room;
    convs->room_bytes = n_bytes;
    return FR_OK;
}

fr_status fr_convs_add(fr_convs *convs, const fr_instr *instr, fr_err *err)
{
    const fr_conv_dims *d = &instr->conv;
    conv_code code = {.instr = *instr, .has_bias = is_bias_there(instr)};
    if (find(convs, instr, code.has_bias) != NULL)
        return FR_OK;
    if (make_code(convs, &code) != dnnl_success) {
        release_code(&code);
        return fr_fail(err, FR_FAILURE,
                       "oneDNN has no %s of %lld to %lld channels, %lld x %lld "
                       "pixels, kernel %lld",
                       fr_op_name((fr_op)instr->op), (long long)d->in,
                       (long long)d->out, (long long)d->size,
                       (long long)d->size, (long long)d->kernel);
    }
    fr_status status = make_room(convs, &code, err);
    if (status == FR_OK && fr_vec_push(&convs->codes, code) != FR_OK)
        status = fr_fail_no_memory(err);
    if (status != FR_OK)
        release_code(&code);
    return status;
}

/* ---- running ------------------------------------------------------------ */

typedef struct conv_run {
    const fr_convs *convs;
    const conv_code *code;
    dnnl_exec_arg_t args[MOST_ARGS];
    int n_args;
    bool is_ok;
} conv_run;

static void point(conv_run *run, conv_tensor tensor, void *at)
{
    run->is_ok = run->is_ok && dnnl_memory_set_data_handle_v2(
                                   run->code->memory[tensor], at,
                                   run->convs->stream) == dnnl_success;
}

static void give(conv_run *run, int name, conv_tensor tensor)
{
    run->args[run->n_args++] =
        (dnnl_exec_arg_t){name, run->code->memory[tensor]};
}

static void execute(conv_run *run, dnnl_primitive_t primitive)
{
    run->is_ok =
        run->is_ok &&
        dnnl_primitive_execute(primitive, run->convs->stream, run->n_args,
                               run->args) == dnnl_success &&
        dnnl_stream_wait(run->convs->stream) == dnnl_success;
    run->n_args = 0;
}

static void reorder(conv_run *run, conv_tensor from, conv_tensor to)
{
    give(run, DNNL_ARG_FROM, from);
    give(run, DNNL_ARG_TO, to);
    execute(run, run->code->reorder);
}

static conv_run begin(const fr_kernel_call *call, bool has_bias)
{
    conv_run run = {.convs = call->convs,
                    .code = find(call->convs, call->instr, has_bias),
                    .is_ok = true};
    unsigned char *room = run.convs->room;
    point(&run, PACKED, room);
    room +=
        in_lines(run.code->n_bytes[PACKED]) + in_lines(run.code->n_bytes[BIAS]);
    point(&run, SCRATCH, room);
    return run;
}

/* A kernel cannot fail: what could not be made is no number, and ends the
 * run by its loss. */
static void end(const conv_run *run, float *made, uint64_t n_bytes)
{
    if (!run->is_ok)
        memset(made, 0xff, n_bytes);
}

void fr_kernel_conv_fwd(const fr_kernel_call *call)
{
    void *bias = call->ptr[FR_CONV_FWD_BIAS];
    conv_run run = begin(call, bias != NULL);
    point(&run, IMAGE_IN, call->ptr[FR_CONV_FWD_X]);
    point(&run, PLAIN, call->ptr[FR_CONV_FWD_W]);
    point(&run, IMAGE_OUT, call->ptr[FR_CONV_FWD_Y]);
    reorder(&run, PLAIN, PACKED);
    give(&run, DNNL_ARG_SRC, IMAGE_IN);
    give(&run, DNNL_ARG_WEIGHTS, PACKED);
    give(&run, DNNL_ARG_DST, IMAGE_OUT);
    give(&run, DNNL_ARG_SCRATCHPAD, SCRATCH);
    if (bias != NULL) {
        point(&run, BIAS, bias);
        give(&run, DNNL_ARG_BIAS, BIAS);
    }
    execute(&run, run.code->main);
    end(&run, call->ptr[FR_CONV_FWD_Y], run.code->n_bytes[IMAGE_OUT]);
}

void fr_kernel_conv_dgrad(const fr_kernel_call *call)
{
    conv_run run = begin(call, false);
    point(&run, IMAGE_IN, call->ptr[FR_CONV_DGRAD_DX]);
    point(&run, PLAIN, call->ptr[FR_CONV_DGRAD_W]);
    point(&run, IMAGE_OUT, call->ptr[FR_CONV_DGRAD_DY]);
    reorder(&run, PLAIN, PACKED);
    give(&run, DNNL_ARG_DIFF_DST, IMAGE_OUT);
    give(&run, DNNL_ARG_WEIGHTS, PACKED);
    give(&run, DNNL_ARG_DIFF_SRC, IMAGE_IN);
    give(&run, DNNL_ARG_SCRATCHPAD, SCRATCH);
    execute(&run, run.code->main);
    end(&run, call->ptr[FR_CONV_DGRAD_DX], run.code->n_bytes[IMAGE_IN]);
}

void fr_kernel_conv_wgrad(const fr_kernel_call *call)
{
    float *bias = call->ptr[FR_CONV_WGRAD_DBIAS];
    conv_run run = begin(call, bias != NULL);
    float *made = (float *)(void *)(run.convs->room +
                                    in_lines(run.code->n_bytes[PACKED]));
    point(&run, IMAGE_IN, call->ptr[FR_CONV_WGRAD_X]);
    point(&run, PLAIN, call->ptr[FR_CONV_WGRAD_DW]);
    point(&run, IMAGE_OUT, call->ptr[FR_CONV_WGRAD_DY]);
    give(&run, DNNL_ARG_SRC, IMAGE_IN);
    give(&run, DNNL_ARG_DIFF_DST, IMAGE_OUT);
    give(&run, DNNL_ARG_DIFF_WEIGHTS, PACKED);
    give(&run, DNNL_ARG_SCRATCHPAD, SCRATCH);
    if (bias != NULL) {
        point(&run, BIAS, made);
        give(&run, DNNL_ARG_DIFF_BIAS, BIAS);
    }
    execute(&run, run.code->main);
    reorder(&run, PACKED, PLAIN);
    if (bias != NULL)
        fr_floats_add(bias, made, call->instr->conv.out);
    end(&run, call->ptr[FR_CONV_WGRAD_DW], run.code->n_bytes[PLAIN]);
}

#else

bool fr_convs_are_there(void)
{
    return false;
}

fr_status fr_convs_create(fr_convs **out, fr_err *err)
{
    (void)out;
    return fr_fail(err, FR_FAILURE,
                   "convolutions need oneDNN, which this build has not: "
                   "apt-get install libdnnl-dev, then make");
}

void fr_convs_destroy(fr_convs *convs)
{
    (void)convs;
}

fr_status fr_convs_add(fr_convs *convs, const fr_instr *instr, fr_err *err)
{
    (void)convs;
    (void)instr;
    (void)err;
    return FR_OK;
}

/* Never called: no program with them gets as far. */
void fr_kernel_conv_fwd(const fr_kernel_call *call)
{
    (void)call;
}

void fr_kernel_conv_dgrad(const fr_kernel_call *call)
{
    (void)call;
}

void fr_kernel_conv_wgrad(const fr_kernel_call *call)
{
    (void)call;
}

#endif
