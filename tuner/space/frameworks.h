/*
 * frameworks.h: what a training framework accepts, as rules over a plan.
 *
 * fr_plan_check() says what can be; a framework can do less.  The rules are
 * those of its own argument checks, with their source at each row
 * (frameworks.c).
 */
#ifndef FR_TUNER_SPACE_FRAMEWORKS_H
#define FR_TUNER_SPACE_FRAMEWORKS_H

#include "plan/decide/plan.h"
#include "tuner/space/decision_levels.h"

typedef struct fr_framework_rules fr_framework_rules;

/* NULL: unknown. */
const fr_framework_rules *fr_framework_rules_find(const char *name);
/* Name of the framework with rules i, NULL past the last. */
const char *fr_framework_rules_name(int i);

/*
 * FR_INPUT with the first rule of the decision level that the plan breaks.  A
 * rule of PIPELINE or GRADIENTS looks at nothing of the other one.
 */
FR_CHECKED fr_status fr_framework_check(const fr_framework_rules *framework,
                                        fr_decision_level level,
                                        const fr_plan *plan,
                                        const fr_model *model,
                                        const fr_job *job, fr_err *err);

#endif
