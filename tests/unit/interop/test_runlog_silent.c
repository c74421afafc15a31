/* test_runlog_silent.c: a log gives what it says, and no more. */
#include "core/system/fileio.h"
#include "frameworks/log/runlog.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static fr_err err;

static bool read_text(const char *text, fr_runlog *out)
{
    fr_infile *file;
    if (!CHECK_OK(fr_infile_parse("log", text, strlen(text), &file, &err),
                  &err))
        return false;
    const bool is_read = CHECK_OK(fr_runlog_read(file, out, &err), &err);
    fr_infile_close(file);
    return is_read;
}

static void check_fields(const char *text, const char *tp, const char *pp,
                         const char *vpp, const char *cp, const char *ep,
                         const char *dp)
{
    fr_runlog log;
    if (!read_text(text, &log))
        return;
    CHECK_STR(log.field[FR_CASE_TP], tp);
    CHECK_STR(log.field[FR_CASE_PP], pp);
    CHECK_STR(log.field[FR_CASE_VPP], vpp);
    CHECK_STR(log.field[FR_CASE_CP], cp);
    CHECK_STR(log.field[FR_CASE_EP], ep);
    CHECK_STR(log.field[FR_CASE_DP], dp);
    fr_runlog_release(&log);
}

#define STEP                                                                   \
    " iteration 7/ 20 | elapsed time per iteration (ms): 1100.5 | global "     \
    "batch size: 32 |\n"

static void test_degrees(void)
{
    char *text;
    if (CHECK_OK(fr_file_read("tests/golden/fixtures/misread/"
                              "megatron_tail.log",
                              0, &text, NULL, &err),
                 &err)) {
        check_fields(text, "", "", "", "", "", "");
        free(text);
    }
    check_fields("using world size: 64, data-parallel size: 4, "
                 "tensor-model-parallel size: 8, pipeline-model-parallel "
                 "size: 2\n" STEP,
                 "8", "2", "", "1", "", "4");
    check_fields("using world size: 64, data-parallel size: 4, "
                 "context-parallel size: 2, tensor-model-parallel size: 8, "
                 "pipeline-model-parallel size: 1\n" STEP,
                 "8", "1", "1", "2", "", "4");
    check_fields("  virtual_pipeline_model_parallel_size ............ None\n"
                 "  pipeline_model_parallel_size .................... 4\n"
                 "  expert_model_parallel_size ...................... 1\n" STEP,
                 "", "4", "1", "", "1", "");
}

/* Columns that the caller has filled in are not missing. */
static void test_missing(void)
{
    fr_runlog log;
    if (!read_text(STEP, &log))
        return;
    strcpy(log.field[FR_CASE_GPU], "h100-sxm");
    strcpy(log.field[FR_CASE_NUM_GPUS], "64");
    fr_runlog_note_missing(&log);
    CHECK_HAS(fr_buffer_text(&log.notes),
              "the log is silent on model, mbs, seq, precision, tp, pp, vpp, "
              "cp: fill the columns in");
    fr_runlog_release(&log);
}

CHECK_MAIN({"degrees", test_degrees}, {"missing", test_missing})
