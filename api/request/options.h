/*
 * options.h: every option of the program: parser, help and completions come
 * from this list and from the fields of plan and job.  commands.c: whose.
 */
#ifndef FR_API_REQUEST_OPTIONS_H
#define FR_API_REQUEST_OPTIONS_H

#include "api/request/option_list.h"
#include "plan/decide/plan_fields.h"
#include "spec/model/job_fields.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum fr_option_kind {
    FR_OPTION_FLAG,     /* --x, or --no-x */
    FR_OPTION_COUNT,    /* integer in [min, max] */
    FR_OPTION_REAL,     /* finite number in [min, max]; 5k */
    FR_OPTION_SHARE,    /* the same; 20% */
    FR_OPTION_TIME,     /* seconds in [min, max]; 5min */
    FR_OPTION_BYTES,    /* "25MB" */
    FR_OPTION_TEXT,     /* checked by who uses it */
    FR_OPTION_OPTIONAL, /* the same; "" where the next word is an option */
    FR_OPTION_REPEATED, /* the same, and may be given several times */
    FR_OPTION_SETTING,  /* the same: NAME=VALUE */
    FR_OPTION_PATH,     /* completes to files */
    FR_OPTION_CHOICE    /* one of a list of names */
} fr_option_kind;

extern const fr_names fr_backend_names; /* of --backend */

/* In the order of the help text. */
typedef enum fr_option {
#define FR_OPTION_ENUM(symbol, name, letter, kind, metavar, group, names, low, \
                       high, help)                                             \
    FR_OPT_##symbol,
#define FR_OPTION_FIELD(symbol) FR_OPT_##symbol,
    FR_OPTIONS_BEFORE_PLAN(FR_OPTION_ENUM)
        FR_PLAN_OPTION_LIST(FR_OPTION_FIELD, FR_OPTION_FIELD)
            FR_JOB_OPTIONS(FR_OPTION_FIELD) FR_OPTIONS_AFTER_JOB(FR_OPTION_ENUM)
#undef FR_OPTION_ENUM
#undef FR_OPTION_FIELD
                FR_OPT_N
} fr_option;

/* The options of fr_plan_items and of the fields of a job, by their place. */
#define FR_OPT_OF_PLAN(place) ((fr_option)(FR_OPT_DP + (int)(place)))
#define FR_OPT_OF_JOB(id) ((fr_option)(FR_OPT_GLOBAL_BATCH + (int)(id)))

/* Headings of the help text, in order. */
typedef enum fr_option_group {
    FR_GROUP_INPUT,
    FR_GROUP_MACHINE,
    FR_GROUP_SEARCH,
    FR_GROUP_GOAL,
    FR_GROUP_RUN,
    FR_GROUP_PLAN,
    FR_GROUP_JOB,
    FR_GROUP_OUTPUT,
    FR_GROUP_COMMON,
    FR_GROUP_N
} fr_option_group;

const char *fr_option_group_title(fr_option_group group);

typedef struct fr_option_row {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    fr_option_kind kind;
    const char *metavar;
    fr_option_group group;
    const fr_names *names; /* CHOICE */
    double min, max;
    const char *help;
    bool (*is_offered)(int i); /* of names; NULL: all are */
} fr_option_row;

fr_option_row fr_option_get(fr_option option);

/* The item of a plan (plan_fields.h) that an option says, -1: none, and the
 * option of an item that has one. */
int fr_option_item(fr_option option);
fr_option fr_option_of_item(int item);

/* Name i that a CHOICE accepts, NULL past the last. */
const char *fr_option_choice(const fr_option_row *row, int i);

/* "FORERUN_MICRO_BATCH"; returns buf. */
char *fr_option_env_name(fr_option option, char *buf, int n_buf);

#endif
