/* run_saver.c: see run_saver.h. */
#include "runtime/run/run_saver.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/launch/launch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message of a rank to the others after each step. */
typedef struct fr_saver_news {
    int32_t signal;     /* that asked to stop; 0: none */
    int32_t is_written; /* fr_checkpoints_is_written() */
    int32_t is_sent;    /* fr_replicas_is_sent() */
} news;

fr_status fr_run_saver_init(const fr_run_options *options,
                            const fr_program *program, fr_transport *transport,
                            int64_t n_steps, fr_run_saver *out, fr_err *err)
{
    const fr_checkpoint_options checkpoint = {
        .dir = options->checkpoint_dir,
        .is_resumed = options->is_resumed,
        .is_async = options->is_checkpoint_async,
        .n_kept = options->n_checkpoints_kept,
        .is_replicated = options->replicate_every > 0,
        .replica_dir = options->replica_dir};

    *out = (fr_run_saver){
        .options = options, .transport = transport, .n_steps = n_steps};
    FR_TRY_CALLOC(out->loss, (size_t)n_steps + 1, err);
    if (options->checkpoint_dir == NULL)
        return FR_OK;
    FR_TRY_CALLOC(out->news, (size_t)transport->world, err);
    return fr_checkpoints_open(&checkpoint, program, transport,
                               &out->checkpoints, err);
}

void fr_run_saver_release(fr_run_saver *saver)
{
    fr_checkpoints_close(saver->checkpoints);
    free(saver->loss);
    free(saver->news);
    *saver = (fr_run_saver){0};
}

/* Takes the losses of the steps before the first one, if the checkpoint has
 * them. */
static void take_losses(fr_run_saver *saver, const double *before)
{
    if (before != NULL && saver->loss != NULL &&
        saver->first_step <= saver->n_steps)
        memcpy(saver->loss, before, (size_t)saver->first_step * sizeof *before);
    else if (saver->first_step > 0) {
        free(saver->loss);
        saver->loss = NULL;
    }
}

fr_status fr_run_saver_resume(fr_run_saver *saver, const fr_state *state,
                              int64_t *first_step, fr_buffer *notes,
                              fr_err *err)
{
    const char *dir = saver->options->checkpoint_dir;
    double *before = NULL;

    if (saver->checkpoints == NULL || !saver->options->is_resumed)
        return FR_OK;
    FR_TRY(fr_checkpoints_load(saver->checkpoints, state, &saver->first_step,
                               &before, notes, err));
    take_losses(saver, before);
    free(before);
    *first_step = saver->first_step;
    if (saver->first_step > saver->n_steps)
        return fr_fail(err, FR_INPUT,
                       "the checkpoint in %s is of step %lld, the run ends at "
                       "step %lld; give --steps %lld or more",
                       dir, (long long)saver->first_step,
                       (long long)saver->n_steps, (long long)saver->first_step);
    return FR_OK;
}

bool fr_run_saver_is_from_memory(const fr_run_saver *saver)
{
    return saver->checkpoints != NULL &&
           fr_checkpoints_is_from_memory(saver->checkpoints);
}

/* Gathers the messages of all ranks. */
static fr_status hear(fr_run_saver *saver, news *out, fr_err *err)
{
    fr_replicas *replicas = fr_checkpoints_replicas(saver->checkpoints);
    bool is_sent = false;
    int32_t signal = fr_launch_held_signal();

    if (signal == 0 && saver->stop_signal != NULL)
        signal = (int32_t)atomic_load(saver->stop_signal);
    if (replicas != NULL)
        FR_TRY(fr_replicas_is_sent(replicas, &is_sent, err));
    const news mine = {.signal = signal,
                       .is_written =
                           fr_checkpoints_is_written(saver->checkpoints),
                       .is_sent = is_sent};
    *out = mine;
    FR_TRY(fr_transport_all_gather(saver->transport, &mine, sizeof mine,
                                   saver->news, err));
    for (int64_t i = 0; i < saver->transport->world; i++) {
        if (saver->news[i].signal > out->signal)
            out->signal = saver->news[i].signal;
        out->is_written = out->is_written && saver->news[i].is_written;
        out->is_sent = out->is_sent && saver->news[i].is_sent;
    }
    return FR_OK;
}

static bool is_due(const fr_run_saver *saver, int64_t n_done)
{
    const int64_t every = saver->options->checkpoint_every;

    return n_done == saver->n_steps || (every > 0 && n_done % every == 0);
}

/* Copies in memory: what is under way, and the next where it is due. */
static fr_status replicate(fr_run_saver *saver, const fr_state *state,
                           int64_t n_done, bool is_sent, fr_err *err)
{
    fr_replicas *replicas = fr_checkpoints_replicas(saver->checkpoints);
    const double begin_s = fr_clock_s();

    if (is_sent)
        FR_TRY(fr_replicas_finish(replicas, err));
    if (replicas != NULL && n_done < saver->n_steps &&
        n_done % saver->options->replicate_every == 0) {
        FR_TRY(fr_replicas_save(replicas, state, n_done, saver->loss, err));
        saver->cost.n_replicas++;
        saver->cost.replica_bytes = fr_replicas_bytes(replicas);
    }
    saver->cost.replica_s += fr_clock_s() - begin_s;
    return FR_OK;
}

/* A file that could not be written, as on a full disk, does not end the run:
 * all ranks have agreed on that (fr_checkpoints_save()). */
static fr_status forgive(fr_run_saver *saver, fr_status status, int64_t n_done,
                         const fr_err *why, fr_err *err)
{
    char line[700];

    if (status != FR_IO) {
        if (status != FR_OK && err != NULL)
            *err = *why;
        return status;
    }
    fr_text_copy_cut(saver->unsaved, sizeof saver->unsaved, why->text);
    (void)snprintf(line, sizeof line,
                   "WARNING: no checkpoint after step %lld: %.500s; training "
                   "continues without it",
                   (long long)n_done - 1, why->text);
    if (saver->transport->rank == 0 && saver->options->on_note != NULL)
        saver->options->on_note(saver->options->context, line);
    return FR_OK;
}

static fr_status save(fr_run_saver *saver, const fr_state *state,
                      int64_t n_done, bool is_stopped, fr_err *err)
{
    const double begin_s = fr_clock_s();
    fr_err why = {0};

    const fr_status status = fr_checkpoints_save(saver->checkpoints, state,
                                                 n_done, saver->loss, &why);
    if (status == FR_OK) {
        saver->unsaved[0] = '\0';
    } else if (is_stopped) { /* it ends now, and nothing is saved */
        if (err != NULL)
            *err = why;
        return status;
    }
    FR_TRY(forgive(saver, status, n_done, &why, err));
    saver->cost.n_checkpoints += status == FR_OK;
    saver->cost.checkpoint_s += fr_clock_s() - begin_s;
    return FR_OK;
}

/* All is on the disk, so nobody needs copies in memory. */
static fr_status end(fr_run_saver *saver, fr_err *err)
{
    fr_replicas *replicas = fr_checkpoints_replicas(saver->checkpoints);

    fr_err why = {0};

    FR_TRY(forgive(saver, fr_checkpoints_finish(saver->checkpoints, true, &why),
                   saver->n_steps, &why, err));
    return replicas != NULL ? fr_replicas_remove(replicas, err) : FR_OK;
}

fr_status fr_run_saver_step(fr_run_saver *saver, const fr_state *state,
                            int64_t i_step, double loss, fr_err *err)
{
    const int64_t n_done = i_step + 1;
    news all;
    fr_err why = {0};

    if (saver->loss != NULL)
        saver->loss[i_step] = loss;
    if (saver->checkpoints == NULL)
        return FR_OK;
    FR_TRY(hear(saver, &all, err));
    const fr_saving_cost before = saver->cost;
    const bool is_stopped = all.signal != 0 && n_done < saver->n_steps;
    if (all.is_written)
        FR_TRY(forgive(saver,
                       fr_checkpoints_finish(saver->checkpoints, false, &why),
                       n_done, &why, err));
    if (is_due(saver, n_done) || is_stopped)
        FR_TRY(save(saver, state, n_done, is_stopped, err));
    FR_TRY(replicate(saver, state, n_done, all.is_sent, err));
    saver->stall_s = saver->cost.checkpoint_s - before.checkpoint_s +
                     saver->cost.replica_s - before.replica_s;
    if (!is_stopped)
        return FR_OK;
    FR_TRY(end(saver, err));
    return fr_fail(err, FR_STOPPED,
                   "asked to stop, after step %lld; the checkpoint in %s is "
                   "complete: go on with --resume",
                   (long long)i_step, saver->options->checkpoint_dir);
}

fr_status fr_run_saver_end(fr_run_saver *saver, fr_err *err)
{
    return saver->checkpoints != NULL ? end(saver, err) : FR_OK;
}
