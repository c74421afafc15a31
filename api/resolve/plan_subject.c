/* plan_subject.c: see plan_subject.h. */
#include "cli/subject/plan_subject.h"

#include "cli/option/framework_options.h"
#include "cli/option/no_effect.h"
#include "cli/option/plan_choice.h"
#include "cli/option/plan_options.h"
#include "cli/option/usual_job.h"
#include "cli/subject/config_choice.h"
#include "cli/subject/plan_words.h"
#include "core/base/text.h"
#include "plan/decide/plan_json.h"

#include <stdlib.h>
#include <string.h>

fr_status fr_plan_subject_check(const fr_cli *cli, fr_err *err)
{
    if (fr_cli_has(cli, FR_OPT_FROM) && cli->n_positional > 1)
        return fr_fail(err, FR_USAGE,
                       "--from takes a CLUSTER alone: forerun %s --from FILE "
                       "CLUSTER --model NAME",
                       cli->command->name);
    if (cli->option[FR_OPT_MODEL].source == FR_SOURCE_FLAG &&
        !fr_cli_has(cli, FR_OPT_FROM))
        return fr_fail(err, FR_USAGE, "--model goes with --from alone");
    return FR_OK;
}

const char *fr_plan_subject_cluster(const fr_cli *cli)
{
    if (fr_cli_has(cli, FR_OPT_FROM))
        return cli->positional[0];
    return cli->n_positional > 1 ? cli->positional[1] : NULL;
}

/* A plan file, or what a framework runs today. */
static fr_status load_file(const fr_cli *cli, const fr_inputs *inputs,
                           fr_plan_file *out, fr_err *err)
{
    fr_config config;
    if (!fr_cli_has(cli, FR_OPT_FROM))
        return fr_as_input(fr_plan_file_load(cli->positional[0], out, err),
                           err);
    FR_TRY(fr_config_choice_from(cli, NULL, fr_cluster_slots(&inputs->cluster),
                                 &config, err));
    fr_buffer_release(&config.notes);
    *out = config.file; /* handed over */
    return FR_OK;
}

/* Options over what the file says. */
static fr_status load_plan(const fr_cli *cli, const fr_inputs *inputs,
                           fr_plan_file *out, fr_err *err)
{
    const fr_cluster *cluster = &inputs->cluster;
    FR_TRY(load_file(cli, inputs, out, err));
    if (fr_plan_subject_cluster(cli) == NULL)
        return FR_OK;
    int64_t n_ranks = fr_plan_world(&out->plan);
    FR_TRY(fr_cli_apply_job(cli, &out->model, &out->job, err));
    FR_TRY(fr_cli_apply_plan(cli, &out->plan, NULL, err));
    fr_cli_apply_framework(cli, cluster, &out->plan, &out->job, &out->model);
    if (fr_cli_framework(cli, cluster) != NULL)
        fr_text_copy_cut(out->framework, sizeof out->framework,
                         fr_cli_framework(cli, cluster)->name);
    FR_TRY(fr_plan_choice_balance(cli, inputs, &out->model, &out->job,
                                  &out->plan, err));
    fr_plan_choice_note(cli, cluster, &out->plan);
    fr_note_no_effect(cli, &out->job, &out->model, cluster);
    if (fr_plan_world(&out->plan) != n_ranks) {
        free(out->node_of_rank); /* they stood elsewhere */
        out->node_of_rank = NULL;
    }
    return fr_usual_ranks(cli, inputs, true, &out->plan, err);
}

static fr_status load_model(const fr_cli *cli, const fr_inputs *inputs,
                            fr_plan_file *out, fr_err *err)
{
    fr_plan_choice choice = {0};
    fr_status status = fr_plan_choice_load(cli, cli->positional[0], NULL,
                                           inputs, &choice, err);
    if (status == FR_OK)
        fr_usual_plan(cli, inputs, &choice);
    if (status == FR_OK)
        status = fr_usual_ranks(cli, inputs, false, &choice.plan, err);
    if (status == FR_OK)
        status = fr_plan_choice_balance(cli, inputs, &choice.model, &choice.job,
                                        &choice.plan, err);
    if (status != FR_OK) {
        fr_plan_choice_release(&choice);
        return status;
    }
    out->model = choice.model; /* handed over */
    out->job = choice.job;
    memcpy(out->framework, choice.framework, sizeof out->framework);
    out->plan = choice.plan;
    return FR_OK;
}

fr_status fr_plan_subject_load(const fr_cli *cli, const fr_inputs *inputs,
                               fr_plan_file *out, fr_err *err)
{
    const bool is_plan = fr_plan_subject_cluster(cli) == NULL ||
                         fr_cli_has(cli, FR_OPT_FROM) ||
                         fr_plan_words_is_plan(cli->positional[0]);
    return is_plan ? load_plan(cli, inputs, out, err)
                   : load_model(cli, inputs, out, err);
}
