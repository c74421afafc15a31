/* cmd_version.c: forerun version: what this binary can do. */
#include "cli/answer.h"
#include "cli/cli.h"

#define FORERUN_VERSION "0.1.0"

/* Features that the build found; the makefile prints the same. */
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
    fr_document answer;
    fr_document_init(&answer, "forerun.version/1");
    fr_json_put_string(&answer.data, "version", FORERUN_VERSION);
    fr_document_printf(&answer, "forerun %s\n", FORERUN_VERSION);
    for (size_t i = 0; i < FR_LENGTH(features); i++) {
        fr_json_put_bool(&answer.data, features[i].name, features[i].is_in);
        fr_document_printf(&answer, "%-7s %s\n", features[i].name,
                           features[i].is_in ? "yes" : "no");
    }
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}
