/* run_line.h: the program in this process, on a line of words. */
#ifndef FR_TESTS_UNIT_CLI_RUN_LINE_H
#define FR_TESTS_UNIT_CLI_RUN_LINE_H

typedef struct line_outcome {
    int exit_code;
    char out[200000];
    char chatter[8000];
} line_outcome;

/* Blanks separate words; what is longer than the room is cut. */
void run_line(const char *line, line_outcome *result);

#endif
