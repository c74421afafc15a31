/*
 * check.h: the test programs' only tool.
 *
 *     static void test_sum(void) { CHECK(1 + 1 == 2); }
 *     CHECK_MAIN({"sum", test_sum}, {"other", test_other})
 *
 * Each failed check prints one line with file:line and the test goes on; the
 * program exits 0 (all passed), 1 (something failed) or 77 (every test was
 * skipped).  `prog NAME...` runs just those tests, `prog --list` prints their
 * names.  The last line is "# P passed, F failed, S skipped".
 */
#ifndef FR_TESTS_CHECK_H
#define FR_TESTS_CHECK_H

#include "core/base/err.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check_test {
    const char *name;
    void (*run)(void);
} check_test;

/* One for all files of a test program (weak: the linker keeps one). */
typedef struct check_counts {
    int n_failed_checks;
    char skipped[256];
} check_counts;
__attribute__((weak)) check_counts check_state;

#define CHECK(condition)                                                       \
    check_that((condition), __FILE__, __LINE__, "%s", #condition)

/* |a - b| <= rel * max(|a|, |b|); rel 0: equal. */
#define CHECK_NEAR(a, b, rel)                                                  \
    check_near((double)(a), (double)(b), (double)(rel), __FILE__, __LINE__,    \
               #a " near " #b)
/* |a - b| <= tolerance */
#define CHECK_WITHIN(a, b, tolerance)                                          \
    check_within((double)(a), (double)(b), (double)(tolerance), __FILE__,      \
                 __LINE__, #a " near " #b)
#define CHECK_INT(a, b)                                                        \
    check_int((long long)(a), (long long)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_STR(a, b) check_str((a), (b), __FILE__, __LINE__, #a " == " #b)
/* `needle` is somewhere in `text`. */
#define CHECK_HAS(text, needle) check_has((text), (needle), __FILE__, __LINE__)
/* The expression is FR_OK; else the text of *err (fr_err *) is printed. */
#define CHECK_OK(expression, err)                                              \
    check_status((expression), FR_OK, (err), __FILE__, __LINE__, #expression)
/* The expression is that failure, and err says something in one line. */
#define CHECK_FAILS(expression, expected, err)                                 \
    check_status((expression), (expected), (err), __FILE__, __LINE__,          \
                 #expression)
/* Leaves the test (not an inner function); counted, never passed. */
#define SKIP(reason)                                                           \
    do {                                                                       \
        snprintf(check_state.skipped, sizeof check_state.skipped, "%s",        \
                 (reason));                                                    \
        return;                                                                \
    } while (0)

#define CHECK_MAYBE_UNUSED __attribute__((unused))

/* The folder in which tests may write: TMPDIR, else /tmp. */
CHECK_MAYBE_UNUSED static const char *check_tmp_dir(void)
{
    const char *dir = getenv("TMPDIR");
    return dir != NULL && dir[0] != '\0' ? dir : "/tmp";
}

/* A path in that folder, its last part by a format. */
enum { CHECK_PATH_BYTES = 256 };

CHECK_MAYBE_UNUSED
FR_PRINTF(2, 3)
static void check_tmp_path(char path[CHECK_PATH_BYTES], const char *format, ...)
{
    va_list args;
    int n = snprintf(path, CHECK_PATH_BYTES, "%.160s/", check_tmp_dir());
    va_start(args, format);
    vsnprintf(path + n, CHECK_PATH_BYTES - (size_t)n, format, args);
    va_end(args);
}

/* CHECK_SLICE=n of the environment, else 1: long tests try each n-th row of
 * their tables (`make check-quick`). */
CHECK_MAYBE_UNUSED static size_t check_slice(void)
{
    const char *slice = getenv("CHECK_SLICE");
    long n = slice != NULL ? strtol(slice, NULL, 10) : 1;
    return n > 1 ? (size_t)n : 1;
}

CHECK_MAYBE_UNUSED static bool check_in_slice(size_t i)
{
    return i % check_slice() == 0;
}

/* Returns the number of draws that are tried of n random ones: 1 at least. */
CHECK_MAYBE_UNUSED static size_t check_slice_of(size_t n)
{
    return (n + check_slice() - 1) / check_slice();
}

CHECK_MAYBE_UNUSED
FR_PRINTF(4, 5)
static bool check_that(bool is_true, const char *file, int line,
                       const char *format, ...)
{
    va_list args;
    if (is_true)
        return true;
    check_state.n_failed_checks++;
    printf("%s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    return false;
}

CHECK_MAYBE_UNUSED static bool check_near(double a, double b, double rel,
                                          const char *file, int line,
                                          const char *what)
{
    double larger = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    bool is_near = fabs(a - b) <= rel * larger || (isinf(a) && a == b);
    return check_that(is_near, file, line, "%s: %.17g and %.17g (rel %g)", what,
                      a, b, larger > 0 ? fabs(a - b) / larger : 0.0);
}

CHECK_MAYBE_UNUSED static bool check_within(double a, double b,
                                            double tolerance, const char *file,
                                            int line, const char *what)
{
    return check_that(fabs(a - b) <= tolerance, file, line,
                      "%s: %.17g and %.17g differ by %g", what, a, b,
                      fabs(a - b));
}

CHECK_MAYBE_UNUSED static bool check_int(long long a, long long b,
                                         const char *file, int line,
                                         const char *what)
{
    return check_that(a == b, file, line, "%s: %lld and %lld", what, a, b);
}

CHECK_MAYBE_UNUSED static bool check_str(const char *a, const char *b,
                                         const char *file, int line,
                                         const char *what)
{
    bool is_equal = a && b ? strcmp(a, b) == 0 : a == b;
    return check_that(is_equal, file, line, "%s: '%s' and '%s'", what,
                      a ? a : "(null)", b ? b : "(null)");
}

CHECK_MAYBE_UNUSED static bool check_has(const char *text, const char *needle,
                                         const char *file, int line)
{
    return check_that(text && strstr(text, needle), file, line,
                      "'%s' has no '%s'", text ? text : "(null)", needle);
}

CHECK_MAYBE_UNUSED static bool check_status(fr_status status,
                                            fr_status expected,
                                            const fr_err *err, const char *file,
                                            int line, const char *what)
{
    const char *text = err && status != FR_OK ? err->text : "";
    if (!check_that(status == expected, file, line, "%s: status %d, not %d: %s",
                    what, (int)status, (int)expected, text))
        return false;
    if (expected == FR_OK || !err)
        return true;
    return check_that(err->status == expected && err->text[0] != '\0' &&
                          !strchr(err->text, '\n'),
                      file, line, "%s: err is not one line of status %d: '%s'",
                      what, (int)expected, text);
}

CHECK_MAYBE_UNUSED static bool check_is_asked(const char *name, int argc,
                                              char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

CHECK_MAYBE_UNUSED static int check_run(const check_test *tests, size_t n,
                                        int argc, char **argv)
{
    int n_passed = 0, n_failed = 0, n_skipped = 0;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < n; i++)
            printf("%s\n", tests[i].name);
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!check_is_asked(tests[i].name, argc, argv))
            continue;
        check_state.n_failed_checks = 0;
        check_state.skipped[0] = '\0';
        tests[i].run();
        if (check_state.n_failed_checks) {
            n_failed++;
            printf("FAIL %s (%d checks)\n", tests[i].name,
                   check_state.n_failed_checks);
        } else if (check_state.skipped[0]) {
            n_skipped++;
            printf("SKIP %s: %s\n", tests[i].name, check_state.skipped);
        } else {
            n_passed++;
        }
    }
    printf("# %d passed, %d failed, %d skipped\n", n_passed, n_failed,
           n_skipped);
    if (n_failed || n_passed + n_skipped == 0)
        return 1;
    return n_passed ? 0 : 77;
}

#define CHECK_MAIN(...)                                                        \
    int main(int argc, char **argv)                                            \
    {                                                                          \
        static const check_test tests[] = {__VA_ARGS__};                       \
        return check_run(tests, sizeof tests / sizeof tests[0], argc, argv);   \
    }

#endif
