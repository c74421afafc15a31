/*
 * target.h: the programs that a plan can be taken to, and what each can be
 * told of one.  `tune --for` searches what a target allows, `export --to`
 * writes it: both ask these tables, one file target_NAME.c each.
 *
 * A target says of every field of a plan what becomes of it, and has rules
 * over several fields: the checks of its own source, each with where it
 * stands.
 */
#ifndef FR_FRAMEWORKS_TARGET_H
#define FR_FRAMEWORKS_TARGET_H

#include "core/base/buffer.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_json.h"
#include "spec/cluster/cluster.h"

/* The treatment of a field. */
typedef enum fr_target_fate {
    FR_FATE_UNSAID,    /* a row that was forgotten; a test finds a field's */
    FR_FATE_WRITTEN,   /* `how` names the flag, key or argument */
    FR_FATE_IMPLIED,   /* the target does so untold; `how` says why */
    FR_FATE_PREDICTED, /* only a prediction knows it: nothing to launch */
    FR_FATE_REFUSED,   /* what it cannot; `how` says what is missing */
    FR_FATE_N
} fr_target_fate;

typedef struct fr_target_field {
    fr_target_fate fate;
    const char *how;
    /* The values that the target can have, bit v for value v of a number, an
     * enum or a switch, bit 63 for 63 and above.  0: all of them, of a REFUSED
     * field that of fr_plan_init() alone.  A field that is part of a decision
     * not taken (fr_plan_field_is_used) is never refused. */
    uint64_t values;
    const char *why; /* `values` are no more; NULL: `how` */
    bool is_in_code; /* the training script has it, and no file that is read */
} fr_target_field;

typedef struct fr_target_rule {
    const char *text;   /* what is asked for: "pp 1 with ZeRO 2 and 3" */
    const char *source; /* file and function of the target, or its page */
    /* All fields that it looks at; a mend is looked for among their values, and
     * those of `facts`.  0: of the model, the job and facts alone. */
    uint64_t fields;
    bool (*holds)(const fr_plan *plan, const fr_model *model,
                  const fr_job *job);
    /* The first and the last version with it, as places of the list of
     * versions; 0 in `until`: all later ones. */
    int since, until;
    fr_execution_bits facts; /* of execution that it looks at */
} fr_target_rule;

/* `until` of a rule of the first version alone. */
enum { FR_TARGET_FIRST_ALONE = -1 };

/* Holds the rule for this version? */
bool fr_target_rule_is_of(const fr_target_rule *rule, int version);

struct fr_framework;

typedef struct fr_target {
    const char *name;    /* of --to and --for */
    const char *summary; /* what is written, for lists */
    /* Oldest first, NULL at the end; the last is what --version is without
     * being given.  NULL: it has no versions. */
    const char *const *versions;
    /* [FR_PLAN_FIELDS_N]; NULL: a plan file itself, which holds all. */
    const fr_target_field *fields;
    /* [FR_EXECUTION_FIELDS_N]; a fact that is UNSAID, or all with NULL, is
     * PREDICTED: the target has no key for it. */
    const fr_target_field *facts;
    const fr_target_rule *rules; /* text NULL at the end */
    bool has_tpus; /* runs on TPUs too; what has fields and not this: no */
    /* The rules of the target that it runs on hold too (megatron-bridge:
     * megatron); NULL: none. */
    const struct fr_target *base;
    /* The bit of a runtime of ours in plan_refusals.h; 0: other targets. */
    unsigned runtime;
    /* Programs of which one runs a plan, NULL at the end; the fields and rules
     * of that one hold too, and their versions are those of this target.
     * backend_of() looks at backend_fields alone.  NULL: it has none. */
    const struct fr_target *const *backends;
    const struct fr_target *(*backend_of)(const fr_plan *plan);
    uint64_t backend_fields;
    /* The framework whose kernels a backend has; NULL: those of the target's
     * own. */
    const struct fr_framework *executes_as;
} fr_target;

/* Forerun's own backend for CPUs or GPUs; not among the names. */
const fr_target *fr_target_runtime(bool is_gpu);

/* Returns the backend that runs the plan, or the target itself if it has none.
 */
const fr_target *fr_target_backend(const fr_target *target,
                                   const fr_plan *plan);

/* Is a field not in the files that a reader reads: is it an argument of the
 * training script, a variable of the environment, or of predictions alone?
 * Facts of execution that no key has are those of the framework. */
bool fr_target_is_elsewhere(const fr_target *target, int item);

/* Returns the first field or fact (FR_PLAN_X, FR_FACT(X)) in which a plan that
 * was read from a target's files differs from the plan that they were written
 * from; -1: none, but for those that are elsewhere or have no effect. */
int fr_target_difference(const fr_target *target, const fr_plan_file *was,
                         const fr_plan *is);

/* Place of the newest version in the list. */
int fr_target_newest(const fr_target *target);
/* Place of a version; NULL is the newest.  FR_USAGE names those that there are.
 */
FR_CHECKED fr_status fr_target_version(const fr_target *target,
                                       const char *version, int *out,
                                       fr_err *err);

/* Returns the treatment of an item (plan_fields.h) by a target that has fields.
 */
fr_target_field fr_target_item(const fr_target *target, int item);
/* Can the target have its value, or is the item without effect?  Rules are not
 * asked. */
bool fr_target_has(const fr_target *target, int item, const fr_plan *plan);

/*
 * FR_INPUT with the first field or rule that the plan breaks ("deepspeed asks
 * for pp 1 with ZeRO 2 and 3").  Looks at the fields in `asked`, and at the
 * rules that look at one of them and at none outside `asked` | `known`: a
 * search asks for what it has just decided, others for FR_PLAN_BITS_ALL.  Facts
 * of execution, which nobody decides, are looked at with the degrees.
 */
FR_CHECKED fr_status fr_target_check(const fr_target *target, int version,
                                     uint64_t asked, uint64_t known,
                                     const fr_plan *plan, const fr_model *model,
                                     const fr_job *job, fr_err *err);

/* FR_INFEASIBLE where the target does not run on such a device. */
FR_CHECKED fr_status fr_target_check_device(const fr_target *target,
                                            const fr_device_type *device,
                                            fr_err *err);

/*
 * target_nearest.c: the plan with the fewest changed fields that the target can
 * have and that is legal, on the same number of ranks; where more than four
 * have to change, one that is near.  False: none was found.  Ties go to the
 * change that comes first in the order of fields and values.
 */
bool fr_target_nearest(const fr_target *target, int version,
                       const fr_plan *plan, const fr_model *model,
                       const fr_job *job, fr_plan *out);

/*
 * A line for each field that is IMPLIED or PREDICTED, in use, and not what
 * fr_plan_init() has, each line after `prefix`: what a file says of what it
 * does not hold.
 */
void fr_target_put_notes(const fr_target *target, const fr_plan *plan,
                         const char *prefix, fr_buffer *out);

#endif
