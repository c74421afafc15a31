/*
 * export_slurm.c: a batch script for Slurm (man sbatch, man srun) that starts a
 * program on all nodes.
 */
#include "frameworks/framework_list.h"
#include "frameworks/write/export_job.h"
#include "interop/export/export_list.h"

enum { DAY_MINUTES = 24 * 60 };

static void put_directives(const fr_export_request *request, fr_buffer *out)
{
    char name[64];
    int64_t minutes = fr_export_minutes(request);
    fr_buffer_printf(out, "#SBATCH --job-name=%s\n",
                     fr_export_job_name(request, name, sizeof name));
    fr_buffer_printf(out,
                     "#SBATCH --nodes=%lld\n#SBATCH --ntasks-per-node=%lld\n",
                     (long long)request->n_nodes,
                     (long long)fr_export_tasks_per_node(request));
    if (request->has_gpus)
        fr_buffer_printf(out, "#SBATCH --gres=gpu:%lld\n",
                         (long long)request->n_ranks_per_node);
    fr_buffer_puts(out, "#SBATCH --exclusive\n"
                        "#SBATCH --output=%x-%j.out\n");
    if (request->program->resume_options != NULL)
        fr_buffer_printf(out,
                         "#SBATCH --requeue\n"
                         "#SBATCH --signal=USR1@%.0f\n"
                         "#SBATCH --open-mode=append\n",
                         fr_export_margin_s(request));
    if (minutes > 0)
        fr_buffer_printf(out, "#SBATCH --time=%lld-%02lld:%02lld\n",
                         (long long)(minutes / DAY_MINUTES),
                         (long long)(minutes % DAY_MINUTES / 60),
                         (long long)(minutes % 60));
}

/* Explains the limit, and how a run that is longer continues. */
static void put_limit(const fr_export_request *request, fr_buffer *out)
{
    const int64_t minutes = fr_export_minutes(request);
    const int64_t n = fr_export_submissions(request);
    const bool is_given = request->time_limit_s > 0;
    if (minutes == FR_EXPORT_MINUTES_MAX && !is_given)
        fr_buffer_puts(out, "# --time: the longest that is written\n");
    else if (minutes > 0 && !is_given)
        fr_buffer_puts(out, "# --time: twice what is predicted for all steps, "
                            "and half an hour\n");
    if (minutes > DAY_MINUTES && !is_given)
        fr_buffer_puts(out, "# --time is longer than many clusters allow: "
                            "with --time-limit 24h, export writes a job that "
                            "continues in several submissions\n");
    if (n > 1 && request->program->resume_options != NULL)
        fr_buffer_printf(out,
                         "# The run takes about %lld such limits; it is "
                         "requeued until it is done.\n",
                         (long long)n);
    else if (n > 1)
        fr_buffer_printf(out,
                         "# The run takes about %lld submissions, each from "
                         "the newest checkpoint:\n"
                         "# for i in $(seq %lld); do sbatch "
                         "--dependency=singleton job.sbatch; done\n",
                         (long long)n, (long long)n);
    else if (!fr_export_has_checkpoints(request) &&
             fr_export_run_s(request) > 60 * (double)minutes)
        fr_buffer_puts(out, "# The run takes longer than --time, and the "
                            "program cannot continue from where it ended.\n");
}

static void put_environment(const fr_export_request *request, fr_buffer *out)
{
    fr_export_put_exports(request, out);
    fr_buffer_puts(out, "MASTER_ADDR=$(scontrol show hostnames "
                        "\"$SLURM_JOB_NODELIST\" | sed -n 1p)\n"
                        "export MASTER_ADDR\n"
                        "export MASTER_PORT=29500\n");
    if (fr_export_has_hosts(request))
        fr_buffer_puts(out, "hosts=$(scontrol show hostnames "
                            "\"$SLURM_JOB_NODELIST\" | paste -sd , -)\n");
}

/*
 * The folder of the files.  slurmd runs a copy of the script in a folder of its
 * own, where the program's files are not.  `scontrol show job` has the script
 * that sbatch was given as an absolute path (man sbatch, "SCRIPT PATH
 * RESOLUTION") in Command=, with the job's arguments behind blanks, which are
 * those of the copy; a job from a pipe has none.  It stays when a job is
 * requeued.
 */
static void put_folder(const fr_export_files *files, size_t n_files,
                       fr_buffer *out)
{
    fr_export_put_files(files, n_files, out);
    fr_buffer_puts(
        out, "script=$(realpath -- \"${BASH_SOURCE[0]}\")\n"
             "# Slurm runs a copy of this script; Command= is the file that "
             "sbatch was given.\n"
             "if [ ! -e \"${script%/*}/${files[0]}\" ] && [ -n "
             "\"${SLURM_JOB_ID:-}\" ]; then\n"
             "    script=$(scontrol show job \"$SLURM_JOB_ID\" | sed -n 's/^ "
             "*Command=//p')\n"
             "    script=${script%%$'\\n'*}\n"
             "    [ $# = 0 ] || script=${script%\" $*\"}\n"
             "    case $script in\n"
             "    /*) ;;\n"
             "    *) script=${JOB_DIR:?job.sbatch came from a pipe: set "
             "JOB_DIR to its folder}/job.sbatch ;;\n"
             "    esac\n"
             "    script=$(realpath -m -- \"$script\")\n"
             "fi\n"
             "folder=$(dirname -- \"$script\")\n");
    fr_export_put_files_check("job.sbatch", out);
}

/* A program that saves when it is asked to stop ends with 75, and is started
 * again. */
static void put_end(const fr_export_request *request, fr_buffer *out)
{
    if (request->program->resume_options == NULL) {
        fr_buffer_putc(out, '\n');
        return;
    }
    /* The command of a run that has checkpoints names them already. */
    if (request->checkpoint_dir == NULL)
        fr_buffer_printf(out, " %s", request->program->resume_options);
    fr_buffer_puts(out, " || code=$?\n"
                        "# 75: asked to stop, by Slurm before the time is over "
                        "or the node goes, and saved.\n"
                        "if [ \"$code\" = 75 ]; then\n"
                        "    scontrol requeue \"$SLURM_JOB_ID\"\n"
                        "fi\n"
                        "exit \"$code\"\n");
}

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    const size_t n_files = out->n;
    FR_TRY(fr_export_check_even(request, "Slurm", err));
    fr_export_file *file = fr_export_add(out, "job.sbatch", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_puts(text, "#!/bin/bash\n");
    put_directives(request, text);
    fr_export_put_header(request, program->target, "# ", text);
    put_limit(request, text);
    fr_buffer_puts(text, "set -euo pipefail\n\n");
    fr_export_put_settings(program, text);
    put_folder(out, n_files, text);
    fr_export_put_defaults(program, text);
    put_environment(request, text);
    if (program->resume_options != NULL)
        fr_buffer_puts(text, "code=0\n");
    fr_buffer_printf(text, "srun --kill-on-bad-exit=1 %s",
                     program->start == FR_START_MPI && !request->has_gpus
                         ? "--mpi=pmix "
                         : "");
    FR_TRY(fr_export_put_task(
        request,
        (fr_export_peers){.torchrun = " --rdzv_backend c10d --rdzv_id "
                                      "\"$SLURM_JOB_ID\" --rdzv_endpoint "
                                      "\"$MASTER_ADDR:$MASTER_PORT\"",
                          .program = " --hosts \"$hosts\""},
        text, err));
    fr_buffer_puts(text, " \"$@\"");
    put_end(request, text);
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_slurm = {
    .name = "slurm",
    .summary = "a batch script for sbatch",
    .limit_word = "--time",
    .devices_word = "--gres",
    .write = write_script,
};

const fr_exporter fr_exporter_forerun_slurm = {
    .name = "forerun-slurm",
    .summary = "the same for forerun's own runtime",
    .limit_word = "--time",
    .devices_word = "--gres",
    .program = &fr_exporter_forerun,
    .write = write_script,
};
