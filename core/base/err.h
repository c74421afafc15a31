/*
 * err.h: one status type and one error text for the whole program.
 *
 * The function that finds a problem writes it with fr_fail(); callers may put
 * a prefix before it; only cli/ prints it.  An fr_err is untouched on success
 * and the outputs of a function are untouched on failure.
 */
#ifndef FR_CORE_BASE_ERR_H
#define FR_CORE_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* symbol, exit code of the program */
#define FR_STATUS_LIST(X)                                                      \
    X(OK, 0)                                                                   \
    X(FAILURE, 1)                                                              \
    X(NO_MEMORY, 1)                                                            \
    X(IO, 1) /* input or output failed */                                      \
    X(USAGE, 2)                                                                \
    X(INFEASIBLE, 3) /* there is no feasible plan */                           \
    X(CHECK, 4)      /* a check failed */                                      \
    X(INPUT, 5)      /* a bad input file */                                    \
    X(STOPPED, 75)   /* asked to stop, and can go on from a checkpoint */      \
    X(SKIPPED, 77)                                                             \
    X(FINAL, 1)       /* a failure that another try would meet again */        \
    X(INTERRUPTED, 1) /* a user or the caller ended it */                      \
    X(PAUSED, 75)     /* STOPPED by a program that goes on by itself */

/* Items of an array whose size the compiler knows. */
#define FR_LENGTH(array) (sizeof(array) / sizeof(array)[0])

typedef enum fr_status {
#define FR_STATUS_ENUM(symbol, exit_code) FR_##symbol,
    FR_STATUS_LIST(FR_STATUS_ENUM)
#undef FR_STATUS_ENUM
        FR_STATUS_N
} fr_status;

typedef struct fr_err {
    fr_status status;
    char text[2048]; /* "path:line: what; the mend": one line, but for what
                        problems.h gathers */
} fr_err;

#define FR_CHECKED __attribute__((warn_unused_result))
#define FR_PRINTF(format_index, first_index)                                   \
    __attribute__((format(printf, format_index, first_index)))

/* Writes the message (cut to fit, what cannot be printed as \\xNN); err may be
 * NULL.  Mostly called through fr_fail. */
void fr_err_write(fr_err *err, fr_status status, const char *format, ...)
    FR_PRINTF(3, 4);

/*
 * Puts one more line under the text; false, and nothing is written, where it
 * would not leave room for a last line of 100 characters.
 */
bool fr_err_add_line(fr_err *err, const char *format, ...) FR_PRINTF(2, 3);
void fr_err_add_last_line(fr_err *err, const char *format, ...) FR_PRINTF(2, 3);

/* Does such an error of one item of many (a row, a point, a change) end the
 * work on all of them? */
static inline bool fr_status_ends_all(fr_status status)
{
    return status == FR_NO_MEMORY || status == FR_INTERRUPTED;
}

static inline fr_status fr_status_same(fr_status status)
{
    return status;
}

/*
 * fr_status fr_fail(fr_err *err, fr_status status, const char *format, ...):
 * writes the message and returns `status`.  A macro, so that compilers see
 * what comes back and know that outputs are set wherever it is FR_OK.
 */
#define fr_fail(err, status, ...)                                              \
    (fr_err_write((err), (status), __VA_ARGS__), fr_status_same(status))

/* Out of memory is an ordinary error. */
static inline fr_status fr_fail_no_memory(fr_err *err)
{
    return fr_fail(err, FR_NO_MEMORY, "out of memory");
}

/* Puts "prefix: " before the text of an error that is already written. */
void fr_err_prefix(fr_err *err, const char *format, ...) FR_PRINTF(2, 3);

int fr_status_exit_code(fr_status status);

/* Returns from the caller when the expression is not FR_OK. */
#define FR_TRY(expression)                                                     \
    do {                                                                       \
        fr_status try_status_ = (expression);                                  \
        if (try_status_ != FR_OK)                                              \
            return try_status_;                                                \
    } while (0)

/* Zeroed memory for n items at `pointer`; returns from the caller when there
 * is none left. */
#define FR_TRY_CALLOC(pointer, n, err)                                         \
    do {                                                                       \
        (pointer) = calloc((n), sizeof *(pointer));                            \
        if ((pointer) == NULL)                                                 \
            return fr_fail_no_memory(err);                                     \
    } while (0)

/* Jumps to `label` with `status` set when the expression is not FR_OK. */
#define FR_TRY_GOTO(status, expression, label)                                 \
    do {                                                                       \
        (status) = (expression);                                               \
        if ((status) != FR_OK)                                                 \
            goto label;                                                        \
    } while (0)

#endif
