/*
 * prediction_fields.h: the members of a prediction as JSON has them, in plan
 * files and in answers.
 */
#ifndef FR_SPEC_RESULT_PREDICTION_FIELDS_H
#define FR_SPEC_RESULT_PREDICTION_FIELDS_H

#include "core/document/fields.h"

enum {
    FR_PREDICTION_TIMES_N = 10,
    FR_PREDICTION_MEMORY_N = 14,
    FR_PREDICTION_AFTER_MEMORY = FR_PREDICTION_TIMES_N + 1,
    FR_PREDICTION_FIELDS_N = 13,
    /* The members of memory that the peak rank's memory consists of. */
    FR_PREDICTION_FIRST_PART = 3,
    FR_PREDICTION_PARTS_N = 10
};

/* Memory's members, and all: times first, then groups and the source. */
extern const fr_field fr_prediction_memory[FR_PREDICTION_MEMORY_N];
extern const fr_field fr_prediction_fields[FR_PREDICTION_FIELDS_N];

#endif
