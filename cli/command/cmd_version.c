/* cmd_version.c: forerun version: what this binary can do. */
#include "cli/answer.h"
#include "cli/cli.h"

#define FORERUN_VERSION "0.1.0"

/* What the build found; the makefile prints the same. */
static const struct {
    const char *name;
    bool is_in;
} features[] = {
#ifdef FR_HAVE_MPI
    {"mpi", true},
#else
    {"mpi", false},
#endif
#ifdef _OPENMP
    {"openmp", true},
#else
    {"openmp", false},
#endif
#ifdef FR_HAVE_CUDA
    {"cuda", true},
#else
    {"cuda", false},
#endif
};

FR_COMMAND_FUNCTION(version)
{
    size_t n = FR_LENGTH(features);
    if (fr_cli_on(cli, FR_OPT_JSON)) {
        fr_answer answer;
        fr_json_writer *json = fr_answer_begin(&answer, "forerun.version/1");
        fr_json_put_string(json, "version", FORERUN_VERSION);
        for (size_t i = 0; i < n; i++)
            fr_json_put_bool(json, features[i].name, features[i].is_in);
        return fr_answer_print(&answer, cli, err);
    }
    fprintf(cli->out, "forerun %s\n", FORERUN_VERSION);
    for (size_t i = 0; i < n; i++)
        fprintf(cli->out, "%-7s %s\n", features[i].name,
                features[i].is_in ? "yes" : "no");
    return FR_OK;
}
