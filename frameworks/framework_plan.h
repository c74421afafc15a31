/*
 * framework_plan.h: what a framework does with a plan that nobody told it
 * otherwise, as fields of that plan.  A row of measurements and --framework
 * go through the same functions, so that both predict the same.
 */
#ifndef FR_FRAMEWORKS_FRAMEWORK_PLAN_H
#define FR_FRAMEWORKS_FRAMEWORK_PLAN_H

#include "frameworks/framework.h"
#include "plan/decide/plan_fields.h"

/* A field that was given, of the set `given`. */
#define FR_GIVEN(symbol) (UINT64_C(1) << FR_PLAN_##symbol)

/*
 * Sets the fields that a framework with facts decides by itself and `given`
 * does not have: dtype and reduction of gradients, overlap, what goes with
 * ZeRO; and how it executes all that, but for the `facts` that were given.
 * Degrees, precision and ZeRO stage must stand; is_flash says whether the
 * device has fused attention.
 */
void fr_framework_set_plan(const fr_framework *framework, uint64_t given,
                           fr_execution_bits facts, fr_plan *plan);

/* Returns the facts of execution that the framework's configuration has keys
 * for, or refuses. */
fr_execution_bits fr_framework_said_facts(const fr_framework *framework,
                                          const fr_plan *plan);

/* Sets the other facts, those that the framework (it has facts) decides by
 * itself, but for `given`: the plan is then as the framework executes its
 * files.
 */
void fr_framework_run_plan(const fr_framework *framework,
                           fr_execution_bits given, fr_plan *plan);

/* Rows of the embedding: tokenizers' vocabularies are padded by some. */
int64_t fr_framework_vocab(const fr_framework *framework, const fr_plan *plan,
                           const fr_model *model);

/* Dropout of the recipe for a model of that name (GPT and BERT have one). */
double fr_framework_dropout(const fr_framework *framework,
                            const char *model_name);

#endif
