/*
 * test_cli.c: the command line as a table: what it accepts, what it refuses
 * and with which words, where values come from, what goes to which stream.
 */
#include "cli/cli.h"
#include "cli/glossary.h"
#include "core/document/json.h"
#include "tests/check.h"

#include <stdlib.h>

typedef struct outcome {
    int exit_code;
    char out[120000];
    char chatter[8000];
} outcome;

/* Runs the program in this process; words after "forerun", NULL at the end. */
static const outcome *run(const char *const *words)
{
    static outcome result;
    char *argv[16];
    int argc = 0;
    memset(&result, 0, sizeof result);
    argv[argc++] = (char *)(uintptr_t) "forerun";
    for (; *words != NULL && argc < 16; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    FILE *out = fmemopen(result.out, sizeof result.out - 1, "w");
    FILE *chatter = fmemopen(result.chatter, sizeof result.chatter - 1, "w");
    result.exit_code = fr_cli_main(fr_commands, argc, argv, out, chatter);
    fclose(out);
    fclose(chatter);
    return &result;
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void test_usage_errors(void)
{
    static const struct {
        const char *words[6];
        const char *message;
    } cases[] = {
        {{"simulat", NULL},
         "unknown command 'simulat'; did you mean "
         "'simulate'?"},
        {{"--jsno", NULL}, "unknown option '--jsno'"},
        {{"simulate", "m", "c", "--micro-bach", "2"},
         "did you mean '--micro-batch'?"},
        {{"simulate", "m", "c", "--dp", "two"},
         "--dp 'two' is not a whole number"},
        {{"simulate", "m", "c", "--dp", "0"}, "--dp 0: must be 1 to"},
        {{"simulate", "m", "c", "--dp"}, "--dp needs a value"},
        {{"simulate", "m", "c", "--dp="}, "is not a whole number"},
        {{"simulate", "m", "c", "--bucket", "25"}, "no unit"},
        {{"simulate", "m", "c", "--schedule", "1fb1"}, "did you mean '1f1b'"},
        {{"simulate", "m", "c", "--schedule", "zigzag"},
         "is not one of gpipe, 1f1b, interleaved"},
        {{"simulate", "m", "c", "--lr", "1e999"}, "is not a number"},
        {{"simulate", "m", "c", "--lr", "-1"}, "must be at least 0"},
        {{"simulate", "m", "c", "--no-dp", "1"}, "unknown option '--no-dp'"},
        {{"simulate", "m", "c", "--no-overlap=1"}, "takes no value"},
        {{"simulate", "m", "c", "p", "q"}, "unexpected argument 'q'"},
        {{"simulate", "m"}, "missing argument; usage: forerun simulate"},
        {{"catalog", "--dp", "2"}, "does not take the option '--dp'"},
        {{"completions", "tcsh"}, "give bash, zsh or fish"},
        {{"help", "tun"}, "did you mean 'tune'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const outcome *o = run(cases[i].words);
        CHECK_INT(o->exit_code, 2);
        CHECK_STR(o->out, "");
        CHECK_HAS(o->chatter, cases[i].message);
        CHECK_HAS(o->chatter, "--help'");
    }
    const char *const none[] = {NULL};
    CHECK_INT(run(none)->exit_code, 2);
}

static void test_help_of_every_command(void)
{
    for (const fr_command *c = fr_commands; c->name != NULL; c++) {
        const outcome *o = RUN(c->name, "--help");
        char example[64];
        snprintf(example, sizeof example, "forerun %s", c->name);
        CHECK_INT(o->exit_code, 0);
        CHECK_STR(o->chatter, "");
        CHECK_HAS(o->out, "Examples:");
        CHECK_HAS(strstr(o->out, "Examples:"), example);
        CHECK_HAS(o->out, c->summary);
        char by_name[60000];
        strcpy(by_name, o->out);
        CHECK_STR(RUN("help", c->name)->out, by_name);
        CHECK_HAS(RUN("help")->out, c->summary);
    }
}

/* No line is wider than a terminal. */
static void test_help_width(void)
{
    for (const fr_command *c = fr_commands; c->name != NULL; c++) {
        char text[120000];
        strcpy(text, RUN(c->name, "--help")->out);
        char *examples = strstr(text, "\nExamples:");
        *examples = '\0'; /* commands to be copied may be longer */
        for (char *line = strtok(text, "\n"); line != NULL;
             line = strtok(NULL, "\n"))
            if (!check_that(strlen(line) <= 80, __FILE__, __LINE__,
                            "%s: '%s' has %zu columns", c->name, line,
                            strlen(line)))
                break;
    }
}

/* sweep's --jobs counts trials, that of others threads. */
static bool have_one_taker(fr_option a, fr_option b)
{
    for (const fr_command *c = fr_commands; c->name != NULL; c++)
        if (fr_command_takes(c, a) && fr_command_takes(c, b))
            return true;
    return false;
}

static void test_rows_are_complete(void)
{
    char env[64];
    for (int i = 0; i < FR_OPT_N; i++) {
        const fr_option_row found = fr_option_get((fr_option)i), *row = &found;
        int n_takers = 0;
        CHECK(row->help != NULL && row->help[0] != '\0');
        CHECK((row->kind == FR_OPTION_FLAG) == (row->metavar == NULL));
        CHECK((row->kind == FR_OPTION_CHOICE) == (row->names != NULL));
        for (int k = 0; k < i; k++) {
            CHECK(strcmp(fr_option_get((fr_option)k).name, row->name) != 0 ||
                  !have_one_taker((fr_option)k, (fr_option)i));
            CHECK(row->letter == 0 ||
                  fr_option_get((fr_option)k).letter != row->letter);
        }
        for (const fr_command *c = fr_commands; c->name != NULL; c++)
            n_takers += fr_command_takes(c, (fr_option)i);
        CHECK(n_takers > 0);
    }
    CHECK_STR(fr_option_env_name(FR_OPT_MICRO_BATCH, env, sizeof env),
              "FORERUN_MICRO_BATCH");
}

static void test_sources(void)
{
    fr_err err;
    const char *const words[] = {"m",  "--tp=3", "c",  "--no-overlap",
                                 "-q", "-ofile", "--", "--plan"};
    fr_cli cli = {.request.command = fr_command_find(fr_commands, "simulate")};
    setenv("FORERUN_TP", "7", 1);
    setenv("FORERUN_MICRO_BATCH", "5", 1);
    CHECK_OK(fr_cli_parse(&cli, 8, (char **)(uintptr_t)words, &err), &err);
    CHECK_INT(cli.request.n_positional, 3);
    CHECK_STR(cli.request.positional[2], "--plan");
    CHECK_INT(cli.request.option[FR_OPT_TP].count, 3); /* the flag wins */
    CHECK_INT(cli.request.option[FR_OPT_MICRO_BATCH].count, 5);
    CHECK_INT(cli.request.option[FR_OPT_MICRO_BATCH].source, FR_SOURCE_ENV);
    CHECK(fr_cli_has(&cli, FR_OPT_OVERLAP));
    CHECK(!fr_cli_on(&cli, FR_OPT_OVERLAP));
    CHECK(fr_cli_on(&cli, FR_OPT_QUIET));
    CHECK_STR(fr_cli_text(&cli, FR_OPT_OUTPUT), "file");
    setenv("FORERUN_MICRO_BATCH", "five", 1);
    fr_cli other = {.request.command =
                        fr_command_find(fr_commands, "simulate")};
    CHECK_FAILS(fr_cli_parse(&other, 8, (char **)(uintptr_t)words, &err),
                FR_USAGE, &err);
    CHECK_HAS(err.text, "FORERUN_MICRO_BATCH 'five'");
    unsetenv("FORERUN_TP");
    unsetenv("FORERUN_MICRO_BATCH");
}

static void test_json_is_one_object(void)
{
    static const char *const words[][3] = {
        {"version", "--json", NULL},
        {"help", "--json", NULL},
        {"completions", "bash", "--json"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const outcome *o = RUN(words[i][0], words[i][1], words[i][2]);
        fr_json *json = NULL;
        fr_err err;
        CHECK_INT(o->exit_code, 0);
        if (CHECK_OK(
                fr_json_parse("stdout", o->out, strlen(o->out), &json, &err),
                &err))
            CHECK(fr_json_find(fr_json_root(json), "schema") != NULL);
        fr_json_destroy(json);
    }
}

static void test_completions_parse(void)
{
    FILE *shell = popen("bash -n", "w");
    CHECK(shell != NULL);
    fputs(RUN("completions", "bash")->out, shell);
    CHECK_INT(pclose(shell), 0);
    CHECK_HAS(RUN("completions", "fish")->out, "-l micro-batch -x");
}

/* All references of a term exist: options, commands, other terms. */
static void check_see(const char *see)
{
    char word[64], kind[64];
    for (const char *at = see; at != NULL && *at != '\0';) {
        int n = (int)strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", n, at);
        if (sscanf(word, " forerun %63s", kind) == 1)
            CHECK(fr_command_find(fr_commands, kind) != NULL);
        else if (sscanf(word, " help %63s", kind) == 1)
            CHECK(fr_glossary_find(kind) != NULL);
        else if (CHECK(sscanf(word, " --%63[a-z0-9-]", kind) == 1)) {
            bool is_there = false;
            for (int i = 0; i < FR_OPT_N; i++)
                is_there |= strcmp(fr_option_get((fr_option)i).name, kind) == 0;
            if (!CHECK(is_there))
                printf("    no option --%s\n", kind);
        }
        at += n + (at[n] == ',');
    }
}

static void test_glossary(void)
{
    const char *last = "";
    for (const fr_term *t = fr_glossary; t->name != NULL; t++) {
        CHECK(strcmp(last, t->name) < 0);
        CHECK(fr_glossary_find(t->name) == t);
        check_see(t->see);
        for (const char *at = t->text; *at != '\0';) {
            size_t n = strcspn(at, "\n");
            CHECK(n <= 78);
            at += n + (at[n] != '\0');
        }
        last = t->name;
    }
    CHECK_HAS(RUN("help", "Tensor_Parallel")->out, "--tp");
    CHECK_HAS(RUN("help", "terms")->out, "bubble");
    CHECK_INT(RUN("help", "bubbel")->exit_code, 2);
    CHECK_HAS(RUN("help", "bubbel")->chatter, "'bubble'");
}

CHECK_MAIN({"usage", test_usage_errors}, {"help", test_help_of_every_command},
           {"help_width", test_help_width}, {"rows", test_rows_are_complete},
           {"sources", test_sources}, {"json", test_json_is_one_object},
           {"completions", test_completions_parse}, {"glossary", test_glossary})
