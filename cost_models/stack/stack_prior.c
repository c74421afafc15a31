/* stack_prior.c: how far stacks are from what is predicted of them. */
#include "cost_models/stack/stack.h"

#include <string.h>

/* `make fit-stack` prints the rows: the first is fitted to all sources of
 * tests/validate/, each further one to all but the source that it names. */
static const struct {
    const char *without;
    fr_stack_prior prior;
} priors[] = {
#include "cost_models/stack/stack_prior.inc"
};

const fr_stack_prior *fr_stack_prior_without(const char *source)
{
    for (size_t i = 1; i < FR_LENGTH(priors); i++)
        if (strcmp(priors[i].without, source) == 0)
            return &priors[i].prior;
    return &priors[0].prior;
}
