/* compute_key.c: see compute_key.h. */
#include "cost_models/compute/compute_key.h"

#include "core/base/hash.h"
#include "plan/decide/plan.h"
#include "spec/model/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int fr_op_find(const char *name)
{
    for (int op = 0; op < FR_OP_N; op++)
        if (strcmp(fr_op_name((fr_op)op), name) == 0)
            return op;
    return -1;
}

/* Without a reuse distance the space says what is usual in a large model. */
static bool is_far_space(const fr_instr *instr, int i_ref)
{
    bool is_read = fr_op_access((fr_op)instr->op, i_ref) != 'w';

    switch ((fr_space)instr->ref[i_ref].space) {
    case FR_SPACE_WEIGHT:
    case FR_SPACE_GRAD:
    case FR_SPACE_OPT:
    case FR_SPACE_ERROR:
    case FR_SPACE_WIRE:
    case FR_SPACE_INPUT:
    case FR_SPACE_HOST:
        return true;
    case FR_SPACE_SAVED:
        return is_read;
    default:
        return false;
    }
}

/*
 * On a GPU nobody follows what its L2 still has: what one kernel hands to the
 * next is there if all that the next one touches fits.
 */
static char gpu_place_of(const fr_instr *instr, int i_ref,
                         const fr_gpu_print *gpu)
{
    uint64_t all_bytes = 0;

    if (instr->ref[i_ref].space == FR_SPACE_NONE)
        return '-';
    if (is_far_space(instr, i_ref))
        return FR_PROFILE_MEMORY;
    for (int i = 0; i < FR_PROFILE_REFS; i++)
        if (fr_op_access((fr_op)instr->op, i) != 0 &&
            instr->ref[i].space != FR_SPACE_NONE)
            all_bytes += fr_instr_ref_bytes(instr, i, 1);
    return all_bytes <= gpu->l2_bytes ? FR_PROFILE_LLC : FR_PROFILE_MEMORY;
}

static char place_of(const fr_instr *instr, int i_ref,
                     const fr_fingerprint *machine, int n_threads)
{
    const fr_ref *ref = &instr->ref[i_ref];
    double reuse_bytes, near_bytes, llc_bytes;

    if (machine->gpu.name[0] != '\0')
        return gpu_place_of(instr, i_ref, &machine->gpu);
    if (ref->space == FR_SPACE_NONE)
        return '-';
    if (ref->reuse_log2 == 0)
        return is_far_space(instr, i_ref) ? FR_PROFILE_MEMORY : FR_PROFILE_NEAR;
    reuse_bytes = exp2((double)ref->reuse_log2);
    near_bytes = (double)machine->l2_bytes * n_threads;
    llc_bytes = (double)machine->llc_bytes * n_threads /
                (machine->n_cores > 0 ? machine->n_cores : 1);
    if (reuse_bytes <= near_bytes)
        return FR_PROFILE_NEAR;
    return reuse_bytes <= llc_bytes ? FR_PROFILE_LLC : FR_PROFILE_MEMORY;
}

/* The kernels' time does not depend on where in the list a range begins, or
 * whether a result's columns lie apart. */
static void drop_positions(const fr_instr *instr, int64_t *dim)
{
    switch ((fr_op)instr->op) {
    case FR_OP_GRAD_SQSUM:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        dim[FR_DIM(range, first)] = 0;
        break;
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        dim[FR_DIM(compress, first)] = 0;
        break;
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        dim[FR_DIM(linear, n_first)] = 0;
        break;
    default:
        break;
    }
}

static const char *variant_of(const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        return instr->optimizer < FR_OPTIMIZER_N
                   ? fr_name_of(&fr_optimizer_names, instr->optimizer)
                   : "";
    case FR_OP_CAST: /* from elements of so many bytes */
        return instr->scalar >= 4.0 ? "from_32" : "from_16";
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        return instr->compressor < fr_n_compressors
                   ? fr_name_of(&fr_compressor_names, instr->compressor)
                   : "";
    default:
        return "";
    }
}

/* Gradients of parameters that are not float32. */
static const char narrow_grads[] = "+bf16";

static bool has_gradients(fr_op op)
{
    switch (op) {
    case FR_OP_EMBED_BWD:
    case FR_OP_NORM_BWD:
    case FR_OP_HEAD_NORM_BWD:
    case FR_OP_LINEAR_WGRAD:
    case FR_OP_BIAS_GRAD:
    case FR_OP_GRAD_SQSUM:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        return true;
    default:
        return false;
    }
}

/* On CPUs both memories are one, and to the host is no other way than back. */
static fr_instr as_copy(const fr_instr *instr)
{
    fr_instr copy = *instr;

    copy.op = FR_OP_COPY;
    copy.copy.is_to_host = 0;
    return copy;
}

void fr_compute_key(const fr_instr *instr, const fr_fingerprint *fingerprint,
                    int n_threads, fr_compute_point *out)
{
    fr_op op = (fr_op)instr->op;

    if (op == FR_OP_HOST_COPY && fingerprint->gpu.name[0] == '\0') {
        const fr_instr copy = as_copy(instr);
        fr_compute_key(&copy, fingerprint, n_threads, out);
        return;
    }
    memset(out, 0, sizeof *out);
    snprintf(out->op, sizeof out->op, "%s", fr_op_name(op));
    snprintf(out->dtype, sizeof out->dtype, "%s",
             fr_dtype_name((fr_dtype)instr->dtype));
    snprintf(out->variant, sizeof out->variant, "%s%s", variant_of(instr),
             has_gradients(op) && instr->grad_dtype == FR_DTYPE_BF16
                 ? narrow_grads
                 : "");
    out->flags = instr->flags &
                 (FR_INSTR_RMS | FR_INSTR_ACCUMULATE | FR_INSTR_SAVE_PROBS);
    for (int i = 0; i < FR_PROFILE_DIMS; i++)
        out->dim[i] = instr->dim[i];
    drop_positions(instr, out->dim);
    for (int i = 0; i < FR_PROFILE_REFS && fr_op_access(op, i) != 0; i++)
        out->where[i] = place_of(instr, i, fingerprint, n_threads);
    out->n_threads = n_threads;
    out->flop = fr_instr_flop(instr);
    out->moved_bytes = fr_instr_moved_bytes(instr, 1);
}

bool fr_compute_key_is_alike(const fr_compute_point *a,
                             const fr_compute_point *b)
{
    return a->flags == b->flags && strcmp(a->op, b->op) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 &&
           strcmp(a->variant, b->variant) == 0;
}

bool fr_compute_key_same_fit(const fr_compute_point *a,
                             const fr_compute_point *b)
{
    return a->n_threads == b->n_threads && a->n_busy == b->n_busy &&
           fr_compute_key_is_alike(a, b);
}

bool fr_compute_key_same_shape(const fr_compute_point *a,
                               const fr_compute_point *b)
{
    return memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
           fr_compute_key_is_alike(a, b);
}

/* Letters of the places up to the last operand that is there: an operation
 * may have got operands since a profile was measured. */
static size_t n_places(const fr_compute_point *key)
{
    size_t n = strlen(key->where);
    while (n > 0 && key->where[n - 1] == '-')
        n--;
    return n;
}

bool fr_compute_key_equal(const fr_compute_point *a, const fr_compute_point *b)
{
    const size_t n = n_places(a);
    return fr_compute_key_same_shape(a, b) && n_places(b) == n &&
           memcmp(a->where, b->where, n) == 0;
}

uint64_t fr_compute_key_hash(const fr_compute_point *key)
{
    uint64_t hash = fr_hash_text(key->op, key->flags);

    hash = fr_hash_bytes(key->dim, sizeof key->dim, hash);
    hash = fr_hash_text(key->dtype, hash);
    hash = fr_hash_text(key->variant, hash);
    return fr_hash_bytes(key->where, n_places(key), hash);
}

static int find_variant(fr_op op, const char *name)
{
    if (op == FR_OP_OPT_NORMS || op == FR_OP_OPT_STEP)
        return fr_name_find(&fr_optimizer_names, name);
    if (op == FR_OP_COMPRESS || op == FR_OP_DECOMPRESS)
        return fr_name_find(&fr_compressor_names, name);
    return 0;
}

bool fr_compute_key_instr(const fr_compute_point *key, fr_instr *out)
{
    fr_instr instr;
    char name[FR_PROFILE_NAME], *narrow;
    int op = fr_op_find(key->op),
        dtype = fr_name_find(&fr_dtype_names, key->dtype);

    if (op < 0 || dtype < 0)
        return false;
    memset(&instr, 0, sizeof instr);
    instr.op = (uint8_t)op;
    instr.dtype = (uint8_t)dtype;
    instr.flags = (uint16_t)key->flags;
    snprintf(name, sizeof name, "%s", key->variant);
    narrow = strstr(name, narrow_grads);
    if (narrow != NULL) {
        *narrow = '\0';
        instr.grad_dtype = FR_DTYPE_BF16;
    }
    if (name[0] != '\0') {
        int variant = find_variant((fr_op)op, name);
        if (variant < 0)
            return false;
        instr.variant = (uint8_t)variant;
    }
    if (op == FR_OP_CAST)
        instr.scalar = strcmp(name, "from_32") == 0 ? 4.0 : 2.0;
    for (int i = 0; i < FR_PROFILE_DIMS; i++)
        instr.dim[i] = key->dim[i];
    for (int i = 0; i < FR_PROFILE_REFS && key->where[i] != '\0'; i++)
        instr.ref[i].space = key->where[i] == '-' ? FR_SPACE_NONE : FR_SPACE_IN;
    *out = instr;
    return true;
}
