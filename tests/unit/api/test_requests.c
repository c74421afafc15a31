/*
 * test_requests.c: questions asked without a command line: key by key, with the
 * answers of the command line to the byte, notes for the caller, and errors
 * that name the mend.
 */
#include "api/answer/answers.h"
#include "report/document/renderer.h"
#include "tests/check.h"
#include "tests/unit/api/ask.h"
#include "tests/unit/cli/run_line.h"

typedef struct notes {
    int n;
    char last[512];
} notes;

static void take_note(void *context, const char *text)
{
    notes *taken = context;
    taken->n++;
    snprintf(taken->last, sizeof taken->last, "%s", text);
}

static void test_same_as_command_line(void)
{
    static const question of = {
        "simulate",
        {"llama-3-8b", "dgx-h100:2"},
        {{"tp", "2"}, {"zero", "3"}, {"global-batch", "64"}, {"seq", "4096"}}};
    notes taken = {0};
    const fr_session session = {.note = take_note, .context = &taken};
    fr_status status;
    fr_err err;
    line_outcome line;
    char *json = ask(&of, &session, &status, &err);
    run_line("simulate llama-3-8b dgx-h100:2 --tp 2 --zero 3 --global-batch 64 "
             "--seq 4096 --json",
             &line);
    CHECK_INT(line.exit_code, 0);
    if (CHECK_OK(status, &err)) {
        drop_wall_s(json);
        drop_wall_s(line.out);
        CHECK_STR(json, line.out);
    }
    free(json);
    CHECK_INT(taken.n, 1);
    CHECK_HAS(taken.last, "no --profile");
    CHECK(strstr(taken.last, "forerun:") == NULL);
}

/* Without a session nothing is said, and nothing is printed. */
static void test_silent(void)
{
    static const question of = {"sweep",
                                {"gpt2-124m", "dgx-h100:2"},
                                {{"fixed", "1"}, {"vary", "nodes=1,2"}}};
    fr_status status;
    fr_err err;
    char *json = ask(&of, NULL, &status, &err);
    if (CHECK_OK(status, &err))
        CHECK_HAS(json, "\"forerun.sweep/1\"");
    free(json);
}

static void test_errors(void)
{
    static const struct {
        const char *command;
        setting setting;
        fr_status status;
        const char *says;
    } rows[] = {
        {"simulate", {"tpp", "2"}, FR_USAGE, "did you mean '--tp'"},
        {"simulate", {"vary", "tp=1"}, FR_USAGE, "does not take"},
        {"simulate", {"tp", "two"}, FR_USAGE, "--tp 'two'"},
        {"simulate", {"tp", "3"}, FR_INPUT, "heads"},
        {"tune", {"measure", "2"}, FR_USAGE, "starts processes"},
        {"simulate", {"dp", "32"}, FR_INFEASIBLE, ""},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        fr_status status;
        fr_err err = {FR_OK, ""};
        const question of = {
            rows[i].command, {"llama-3-8b", "dgx-h100:2"}, {rows[i].setting}};
        char *json = ask(&of, NULL, &status, &err);
        CHECK(json == NULL);
        CHECK_INT(status, rows[i].status);
        CHECK_HAS(err.text, rows[i].says);
        free(json);
    }
}

/* A plan that nobody can place is refused, and its answer is whole. */
static void test_answer_of_failure(void)
{
    fr_request request;
    fr_document answer = {0};
    fr_buffer text;
    fr_err err;
    fr_request_init(&request, fr_command_find(fr_commands, "tune"), NULL);
    CHECK_FAILS(fr_request_check(&request, &err), FR_USAGE, &err);
    CHECK_OK(fr_request_add(&request, "llama-3-405b", &err), &err);
    CHECK_OK(fr_request_add(&request, "dgx-h100:1", &err), &err);
    CHECK_OK(fr_request_check(&request, &err), &err);
    CHECK_FAILS(fr_request_add(&request, "third", &err), FR_USAGE, &err);
    CHECK_FAILS(request.command->answer(&request, &answer, &err), FR_INFEASIBLE,
                &err);
    CHECK(answer.has_answer);
    fr_buffer_init(&text);
    CHECK_OK(fr_document_render(&answer, &fr_render_json, NULL, &text, &err),
             &err);
    CHECK_HAS(fr_buffer_text(&text), "\"nearest\"");
    fr_buffer_release(&text);
    fr_document_release(&answer);
}

CHECK_MAIN({"same as the command line", test_same_as_command_line},
           {"silent", test_silent}, {"errors", test_errors},
           {"answer of a failure", test_answer_of_failure})
