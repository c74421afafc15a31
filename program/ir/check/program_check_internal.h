/*
 * program_check_internal.h: what the files program_check*.c share; nobody
 * else includes it.  They share nothing with builder.c and lower*.c, which
 * they judge.
 */
#ifndef FR_PROGRAM_IR_CHECK_PROGRAM_CHECK_INTERNAL_H
#define FR_PROGRAM_IR_CHECK_PROGRAM_CHECK_INTERNAL_H

#include "program/ir/program.h"

typedef struct check_report {
    int n_problems;
    char first[900];
    bool is_out_of_memory;
} check_report;

enum { CHECK_MAX_PROBLEMS = 1000 };

void check_problem(check_report *report, const char *format, ...)
    FR_PRINTF(2, 3);

/* "stage 1 call 17 layer_bwd mb 2"; returns buf. */
char *check_place(const fr_program *program, uint32_t i_stage, uint32_t i_call,
                  char *buf, size_t n_buf);

int64_t check_group_size(const fr_plan *plan, int axis);

/* Blocks, races and reads before writes of one rank program, seen by a rank
 * whose coordinate is the first or the last one on every axis. */
void check_memory(const fr_program *program, uint32_t i_stage, bool is_last,
                  check_report *report);
/* Sends and receives, collectives, deadlock. */
void check_order(const fr_program *program, check_report *report);

#endif
