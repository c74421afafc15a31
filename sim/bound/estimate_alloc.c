/* estimate_alloc.c: the arrays of a set of layers. */
#include "sim/bound/estimate_state.h"

#include <stdlib.h>

void est_layers_destroy(est_layers *layers)
{
    if (layers == NULL)
        return;
    for (int k = 0; k < EST_KINDS; k++) {
        free(layers->times[k].forward_ps);
        free(layers->times[k].backward_ps);
        free(layers->times[k].weights_ps);
        free(layers->times[k].recompute_ps);
    }
    free(layers->n_dense);
    free(layers->n_expert);
    free(layers->kept_bytes);
    free(layers->plain_bytes);
    free(layers->pending_bytes);
    free(layers->handed_bytes);
    free(layers->layer_scratch_bytes);
    free(layers);
}

static bool alloc_times(size_t n, est_times *out)
{
    out->forward_ps = calloc(n, sizeof *out->forward_ps);
    out->backward_ps = calloc(n, sizeof *out->backward_ps);
    out->weights_ps = calloc(n, sizeof *out->weights_ps);
    out->recompute_ps = calloc(n, sizeof *out->recompute_ps);
    return out->forward_ps != NULL && out->backward_ps != NULL &&
           out->weights_ps != NULL && out->recompute_ps != NULL;
}

est_layers *est_layers_create(int32_t n_layers)
{
    size_t n = (size_t)n_layers + 1;
    est_layers *out = calloc(1, sizeof *out);
    if (out == NULL)
        return NULL;
    bool is_ok = true;
    for (int k = 0; k < EST_KINDS; k++)
        is_ok = alloc_times(n, &out->times[k]) && is_ok;
    out->n_dense = calloc(n, sizeof *out->n_dense);
    out->n_expert = calloc(n, sizeof *out->n_expert);
    out->kept_bytes = calloc(n, sizeof *out->kept_bytes);
    out->plain_bytes = calloc(n, sizeof *out->plain_bytes);
    out->pending_bytes = calloc(n, sizeof *out->pending_bytes);
    out->handed_bytes = calloc(n, sizeof *out->handed_bytes);
    out->layer_scratch_bytes = calloc(n, sizeof *out->layer_scratch_bytes);
    if (!is_ok || out->n_dense == NULL || out->n_expert == NULL ||
        out->kept_bytes == NULL || out->plain_bytes == NULL ||
        out->pending_bytes == NULL || out->handed_bytes == NULL ||
        out->layer_scratch_bytes == NULL) {
        est_layers_destroy(out);
        return NULL;
    }
    return out;
}
