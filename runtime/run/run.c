/* run.c: a whole training run of one rank: set-up, steps, results. */
#include "runtime/run/run.h"

#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "runtime/launch/launch.h"
#include "runtime/rank/rank_context.h"
#include "runtime/rank/rank_page.h"
#include "runtime/run/executor.h"
#include "runtime/run/gradient_dump.h"
#include "runtime/run/run_saver.h"
#include "runtime/run/run_validation.h"
#include "runtime/watch/step_monitor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything of one run on one rank. */
typedef struct run {
    fr_transport *transport;
    const fr_program *program;
    const fr_rank_program *rank_program;
    fr_run_options options;
    const fr_backend *backend;
    fr_data *data;
    fr_weights *weights; /* that training begins with, NULL: random ones */
    fr_executor *executor;
    fr_run_validation *validation; /* NULL: none is wanted */
    fr_gradient_dump *dump;
    fr_rank_page *page;
    int64_t first_step, n_steps; /* n_steps: until where, from 0 */
    fr_run_saver saver;
    fr_step_monitor *monitor;
    double *loss, *step_s;
} run;

void fr_run_options_init(fr_run_options *options)
{
    *options = (fr_run_options){
        .n_warmup = 2, .trace_steps = 1, .timeout_s = 60, .is_checked = true};
}

void fr_run_result_release(fr_run_result *result)
{
    free(result->loss);
    free(result->loss_before);
    free(result->step_s);
    free(result->stragglers);
    free(result->compute_s);
    free(result->wait_s);
    free(result->evaluations);
    free(result->collectives);
    *result = (fr_run_result){0};
}

static void note_gradients(void *context, const fr_instr_view *view)
{
    fr_gradient_dump_note(((run *)context)->dump, view);
}

static void note_place(const run *r, uint32_t i_call, uint32_t i_instr)
{
    int32_t layer = r->rank_program->calls[i_call].layer;

    atomic_store_explicit(&r->page->call, i_call, memory_order_relaxed);
    atomic_store_explicit(&r->page->layer, (uint32_t)(layer + 1),
                          memory_order_relaxed);
    atomic_store_explicit(&r->page->op, r->program->instrs[i_instr].op,
                          memory_order_relaxed);
}

static void note_status(void *context, int64_t i_step, uint32_t i_call,
                        uint32_t i_instr)
{
    const run *r = context;

    note_place(r, i_call, i_instr);
    atomic_store_explicit(&r->page->step, (int32_t)i_step,
                          memory_order_relaxed);
    atomic_store_explicit(&r->page->since_ns, fr_clock_ns(),
                          memory_order_relaxed);
    atomic_store_explicit(&r->page->waits_for, -1, memory_order_relaxed);
}

static void note_wait(void *context, uint32_t i_call, uint32_t i_instr,
                      int64_t peer)
{
    const run *r = context;

    note_place(r, i_call, i_instr);
    atomic_store_explicit(&r->page->waits_for, (int32_t)peer,
                          memory_order_relaxed);
}

/* The part of the set-up that needs no other rank. */
static fr_status set_up(run *r, fr_err *err)
{
    fr_executor *executor = r->executor;
    size_t n = (size_t)r->n_steps + 1;

    FR_TRY_CALLOC(r->loss, n, err);
    FR_TRY_CALLOC(r->step_s, n, err);
    if (r->options.is_checked)
        FR_TRY(fr_program_check(r->program, NULL, err));
    FR_TRY(fr_rank_data_open(r->program, r->rank_program, r->program->job.data,
                             &r->data, err));
    if (r->data != NULL)
        fr_data_inject(r->data, r->options.faults, r->transport->rank);
    FR_TRY(fr_run_validation_open(executor, &r->validation, err));
    executor->data = r->data;
    if (r->options.init_path != NULL)
        FR_TRY(fr_weights_open(r->options.init_path, r->program, &r->weights,
                               err));
    executor->weights = r->weights;
    if (r->options.save_dir != NULL && r->transport->rank == 0)
        FR_TRY(fr_weights_check_dir(r->options.save_dir, r->program, err));
    executor->watch.context = r;
    if (r->options.is_gradient_dump) {
        FR_TRY(fr_gradient_dump_create(r->program, r->transport->rank, &r->dump,
                                       err));
        executor->watch.on_gradients = note_gradients;
    }
    if (r->options.page != NULL)
        r->page = r->options.page;
    else if (!r->options.is_unwatched)
        r->page = fr_rank_page_open(getenv(FR_STATUS_DIR_ENV),
                                    r->transport->rank, true);
    if (r->page != NULL) {
        executor->watch.on_status = note_status;
        executor->watch.on_wait = note_wait;
        executor->beat_ns = &r->page->beat_ns;
    }
    FR_TRY(fr_step_monitor_create(executor, &r->monitor, err));
    return executor->ops->set_up(executor, err);
}

static fr_status view_state(void *context, uint64_t offset_bytes,
                            uint64_t n_bytes, const void **out, fr_err *err)
{
    fr_executor *executor = context;

    return executor->ops->view(executor, offset_bytes, n_bytes, out, err);
}

static fr_status store_state(void *context, uint64_t offset_bytes,
                             uint64_t n_bytes, const void *bytes, fr_err *err)
{
    fr_executor *executor = context;

    return executor->ops->store(executor, offset_bytes, n_bytes, bytes, err);
}

static fr_state state_of(const run *r)
{
    const fr_transport *transport = r->transport;

    return (fr_state){.context = r->executor,
                      .memory = r->backend->is_host_memory
                                    ? transport->slab[transport->rank]
                                    : NULL,
                      .view = view_state,
                      .store = store_state};
}

static void tell(const run *r, fr_buffer *notes)
{
    char *save = NULL;
    if (notes->n > 0 && r->options.on_note != NULL)
        for (char *line = strtok_r(notes->data, "\n", &save); line != NULL;
             line = strtok_r(NULL, "\n", &save))
            r->options.on_note(r->options.context, line);
    fr_buffer_release(notes);
}

static fr_status resume(run *r, fr_err *err)
{
    fr_state state = state_of(r);
    fr_buffer notes;

    fr_buffer_init(&notes);
    fr_status status =
        fr_run_saver_resume(&r->saver, &state, &r->first_step, &notes, err);
    tell(r, &notes);
    return status;
}

static fr_status fill_slab(run *r, fr_err *err)
{
    fr_executor *executor = r->executor;

    FR_TRY(fr_run_saver_init(&r->options, r->program, r->transport, r->n_steps,
                             &r->saver, err));
    if (r->page != NULL)
        r->saver.stop_signal = &r->page->stop_signal;
    FR_TRY(executor->ops->connect(executor, err));
    FR_TRY(executor->ops->fill(executor, err));
    return resume(r, err);
}

/* A loss that is no number ends the run, since it would be saved, and trained
 * on for days. */
static fr_status check_loss(const fr_step_record *record, fr_err *err)
{
    if (isfinite(record->loss))
        return FR_OK;
    return fr_fail(err, FR_FINAL,
                   "step %lld: the loss of rank %lld is %s; lower --lr, or "
                   "look at the data and the weights that it began with",
                   (long long)record->step,
                   (long long)(record->bad_rank < 0 ? 0 : record->bad_rank),
                   isnan(record->loss) ? "not a number" : "infinite");
}

/* The loss on other data, where it is due; rank 0 tells. */
static fr_status evaluate(run *r, int64_t n_done, fr_err *err)
{
    const fr_run_evaluation *all;
    char line[96];
    const size_t before = fr_run_validation_losses(r->validation, &all);
    FR_TRY(fr_run_validation_step(r->validation, n_done, r->n_steps, err));
    const size_t n = fr_run_validation_losses(r->validation, &all);
    if (n == before || r->transport->rank != 0 || r->options.on_note == NULL)
        return FR_OK;
    snprintf(line, sizeof line, "after step %lld: validation loss %.4f",
             (long long)n_done - 1, all[n - 1].loss);
    r->options.on_note(r->options.context, line);
    return FR_OK;
}

static fr_status do_step(run *r, int64_t i_step, fr_err *err)
{
    fr_transport *transport = r->transport;
    int64_t i_out = i_step - r->first_step;
    bool is_traced = i_step >= r->n_steps - r->options.trace_steps;
    fr_executor *executor = r->executor;
    fr_state state = state_of(r);
    fr_step_record record;
    double step_s = 0;

    fr_rank_page_begin_step(r->page, i_step);
    FR_TRY(executor->ops->step(executor, i_step, is_traced, &step_s, err));
    fr_rank_page_end_step(r->page, step_s);
    FR_TRY(fr_step_monitor_gather(r->monitor, i_step, step_s, &record, err));
    record.n_steps = r->n_steps;
    r->step_s[i_out] = record.step_s;
    r->loss[i_out] = record.loss;
    if (i_out == 0 && r->dump != NULL) {
        FR_TRY(fr_gradient_dump_write(r->dump, transport,
                                      r->options.gradient_path, err));
    }
    if (transport->rank == 0 && r->options.on_step != NULL) {
        int64_t begin_ns = fr_clock_ns();
        r->options.on_step(r->options.context, &record);
        fr_step_monitor_charge(r->monitor, fr_clock_ns() - begin_ns);
    }
    FR_TRY(check_loss(&record, err));
    FR_TRY(evaluate(r, i_step + 1, err));
    FR_TRY(fr_run_saver_step(&r->saver, &state, i_step, record.loss, err));
    fr_step_monitor_note_saving(r->monitor, r->saver.stall_s);
    return FR_OK;
}

static fr_status save_weights(run *r, fr_err *err)
{
    const fr_state state = state_of(r);

    return r->options.save_dir == NULL
               ? FR_OK
               : fr_weights_save(r->options.save_dir, r->program, r->transport,
                                 &state, r->options.save_shard_bytes, err);
}

static fr_status train(run *r, fr_err *err)
{
    FR_TRY(fr_step_monitor_begin(r->monitor, r->first_step, r->n_steps, err));
    for (int64_t i = r->first_step; i < r->n_steps; i++)
        FR_TRY(do_step(r, i, err));
    return fr_run_saver_end(&r->saver, err);
}

static fr_status gather_timeline(run *r, fr_timeline *timeline, fr_err *err)
{
    fr_executor *executor = r->executor;
    size_t n = executor->ops->copy_spans(executor, NULL);
    uint64_t *first = calloc((size_t)r->transport->world + 1, sizeof *first);
    fr_span *mine = malloc((n + 1) * sizeof *mine);
    unsigned char *all = NULL;
    fr_status status = FR_OK;

    if (first == NULL || mine == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK) {
        (void)executor->ops->copy_spans(executor, mine);
        status = fr_transport_gather(r->transport, mine, n * sizeof *mine, &all,
                                     first, err);
    }
    if (status == FR_OK && r->transport->rank == 0 && timeline != NULL) {
        size_t n_all = first[r->transport->world] / sizeof(fr_span);
        for (size_t i = 0; i < n_all && status == FR_OK; i++) {
            fr_span span;
            memcpy(&span, all + i * sizeof span, sizeof span);
            status = fr_timeline_add(timeline, span, err);
        }
        timeline->n_ranks = (int32_t)r->transport->world;
    }
    free(all);
    free(mine);
    free(first);
    return status;
}

static fr_status gather_memory(run *r, fr_run_result *out, fr_err *err)
{
    fr_transport *transport = r->transport;
    fr_executor *executor = r->executor;
    uint64_t mine[3] = {
        0, executor->baseline_bytes,
        r->rank_program->slab_bytes +
            (r->backend->is_host_memory ? r->rank_program->host_bytes : 0)};
    uint64_t(*all)[3] = calloc((size_t)transport->world, sizeof mine);

    if (all == NULL)
        return fr_fail_no_memory(err);
    fr_status status = executor->ops->peak(executor, &mine[0], err);
    if (status == FR_OK)
        status =
            fr_transport_all_gather(transport, mine, sizeof mine, all, err);
    for (int64_t i = 0; status == FR_OK && i < transport->world; i++) {
        if (all[i][0] <= out->peak_bytes)
            continue;
        out->peak_bytes = all[i][0];
        out->baseline_bytes = all[i][1];
        out->slab_bytes = all[i][2];
    }
    free(all);
    return status;
}

/* Warm-up steps and steps that tracing slows do not count, unless there are no
 * others. */
static fr_status summarise(run *r, fr_run_result *out, double *scratch,
                           fr_err *err)
{
    int64_t n = out->n_steps;
    int64_t n_skipped = r->options.n_warmup < n ? r->options.n_warmup : 0;
    int64_t n_traced = r->backend->is_slow_traced ? r->options.trace_steps : 0;
    int64_t n_kept = n - n_skipped;

    if (n_traced < n_kept)
        n_kept -= n_traced;
    FR_TRY(fr_step_monitor_busy(r->monitor, r->step_s, n_skipped,
                                n_skipped + n_kept, &out->busy, err));
    if (n_kept == 0)
        return FR_OK;
    memcpy(scratch, r->step_s + n_skipped, (size_t)n_kept * sizeof *scratch);
    fr_stats_sort(scratch, (size_t)n_kept);
    out->step_s_median = fr_stats_quantile_sorted(scratch, (size_t)n_kept, 0.5);
    out->step_s_p5 = fr_stats_quantile_sorted(scratch, (size_t)n_kept, 0.05);
    out->step_s_p95 = fr_stats_quantile_sorted(scratch, (size_t)n_kept, 0.95);
    return FR_OK;
}

/* The answer shows the collectives of rank 0. */
static fr_status note_collectives(const run *r, fr_run_result *out, fr_err *err)
{
    const fr_executor *executor = r->executor;
    size_t n = executor->ops->copy_collectives != NULL
                   ? executor->ops->copy_collectives(executor, NULL)
                   : 0;

    if (n == 0)
        return FR_OK;
    FR_TRY_CALLOC(out->collectives, n, err);
    out->n_collectives =
        executor->ops->copy_collectives(executor, out->collectives);
    return FR_OK;
}

/* Records the slow ranks and the shares of the ranks' times. */
static fr_status note_ranks(const run *r, fr_run_result *out, fr_err *err)
{
    const fr_straggler_list *found = fr_step_monitor_stragglers(r->monitor);
    const size_t world = (size_t)r->transport->world;

    if (found == NULL)
        return FR_OK;
    FR_TRY_CALLOC(out->stragglers, found->n + 1, err);
    FR_TRY_CALLOC(out->compute_s, world, err);
    FR_TRY_CALLOC(out->wait_s, world, err);
    if (found->n > 0)
        memcpy(out->stragglers, found->items,
               found->n * sizeof *out->stragglers);
    out->n_stragglers = found->n;
    out->monitoring_s = fr_step_monitor_cost_s(r->monitor);
    if (fr_step_monitor_means(r->monitor, out->compute_s, out->wait_s))
        return FR_OK;
    free(out->compute_s);
    free(out->wait_s);
    out->compute_s = out->wait_s = NULL;
    return FR_OK;
}

static fr_status note_evaluations(const run *r, fr_run_result *out, fr_err *err)
{
    const fr_run_evaluation *all;
    const size_t n = fr_run_validation_losses(r->validation, &all);

    if (n == 0)
        return FR_OK;
    FR_TRY_CALLOC(out->evaluations, n, err);
    memcpy(out->evaluations, all, n * sizeof *all);
    out->n_evaluations = n;
    return FR_OK;
}

static fr_status collect(run *r, fr_timeline *timeline, fr_run_result *out,
                         fr_err *err)
{
    fr_run_result result = {
        .backend = r->backend->name,
        .n_steps = r->n_steps - r->first_step,
        .world_size = r->transport->world,
        .resumed_from_step = r->first_step,
        .is_from_memory = fr_run_saver_is_from_memory(&r->saver),
        .saving = r->saver.cost,
        .is_oversubscribed = r->executor->is_oversubscribed};

    FR_TRY(gather_memory(r, &result, err)); /* gathering takes memory too */
    FR_TRY(gather_timeline(r, timeline, err));
    for (int64_t i = 0; i < r->transport->world; i++)
        if (r->transport->node_of_rank[i] >= result.n_nodes)
            result.n_nodes = r->transport->node_of_rank[i] + 1;
    if (r->transport->rank != 0)
        return FR_OK;
    double *scratch = malloc(((size_t)r->n_steps + 1) * sizeof *scratch);
    fr_status status = scratch != NULL ? note_collectives(r, &result, err)
                                       : fr_fail_no_memory(err);
    if (status == FR_OK)
        status = note_ranks(r, &result, err);
    if (status == FR_OK)
        status = summarise(r, &result, scratch, err);
    if (status != FR_OK) {
        free(scratch);
        fr_run_result_release(&result);
        return status;
    }
    free(scratch);
    FR_TRY(note_evaluations(r, &result, err));
    memcpy(result.unsaved, r->saver.unsaved, sizeof result.unsaved);
    result.loss = r->loss;
    result.step_s = r->step_s;
    result.loss_before = r->saver.loss;
    r->saver.loss = NULL;
    r->loss = r->step_s = NULL;
    *out = result;
    return FR_OK;
}

static void tear_down(run *r)
{
    fr_step_monitor_destroy(r->monitor);
    fr_executor_destroy(r->executor);
    fr_run_saver_release(&r->saver);
    fr_data_close(r->data);
    fr_run_validation_close(r->validation);
    fr_weights_close(r->weights);
    fr_gradient_dump_destroy(r->dump);
    if (r->page != r->options.page)
        fr_rank_page_close(r->page);
    free(r->loss);
    free(r->step_s);
}

/* Tells the neighbours and the supervisor at once. */
static void announce_failure(const run *r, const fr_err *err)
{
    const fr_transport *transport = r->transport;

    fr_rank_page_fail(r->page, err);
    if (transport->ops->announce != NULL)
        transport->ops->announce(r->transport, err->text);
    if (transport->control[transport->rank] == NULL)
        return;
    fr_shm_set_failure(transport->control[transport->rank], err->text);
    for (int64_t rank = 0; rank < transport->world; rank++)
        if (transport->control[rank] != NULL)
            for (int bell = 0; bell < FR_BELL_N; bell++)
                fr_shm_ring(&transport->control[rank]->bell[bell]);
}

fr_status fr_run_over(fr_transport *transport, const fr_program *program,
                      const fr_run_options *options, fr_timeline *timeline,
                      fr_run_result *out, fr_err *err)
{
    fr_err local = {0};
    run r = {.transport = transport,
             .program = program,
             .rank_program = fr_program_of_rank(program, transport->rank),
             .options = *options};
    fr_run_result result = {0};

    r.backend = options->backend != NULL ? options->backend : &fr_backend_cpu;
    r.n_steps = options->n_steps > 0 ? options->n_steps : program->job.n_steps;
    transport->timeout_s = options->timeout_s;
    fr_status status = fr_executor_open(r.backend, transport, program,
                                        &r.options, &r.executor, &local);
    if (status == FR_OK)
        status =
            fr_transport_agree(transport, set_up(&r, &local), true, &local);
    if (status == FR_OK)
        status =
            fr_transport_agree(transport, fill_slab(&r, &local), true, &local);
    if (status == FR_OK)
        status = train(&r, &local);
    if (status == FR_OK)
        status = save_weights(&r, &local);
    if (status == FR_OK)
        status = collect(&r, timeline, &result, &local);
    if (status == FR_STOPPED) /* all ranks do, and nobody waits */
        fr_rank_page_fail(r.page, &local);
    else if (status != FR_OK)
        announce_failure(&r, &local);
    else if (r.page != NULL) {
        atomic_store(&r.page->beat_ns, fr_clock_ns());
        atomic_store(&r.page->state, FR_RANK_FINISHED);
    }
    tear_down(&r);
    if (status != FR_OK) {
        if (err != NULL)
            *err = local;
        return status;
    }
    transport->ops->close_slab(transport);
    *out = result;
    return FR_OK;
}

fr_status fr_run(const fr_program *program, const fr_run_options *options,
                 fr_timeline *timeline, fr_run_result *out, fr_err *err)
{
    fr_transport *transport = NULL;
    int64_t world = fr_plan_world(&program->plan);

    if (world > 1 && getenv(FR_STATUS_DIR_ENV) != NULL)
        fr_launch_follow_parent();
    if (world > 1)
        FR_TRY(fr_transport_mpi_create(world, options->timeout_s, &transport,
                                       err));
    else
        FR_TRY(fr_transport_alone_create(options->timeout_s, &transport, err));
    if (transport == NULL) /* more ranks were started than the plan has */
        return FR_OK;
    fr_status status =
        fr_run_over(transport, program, options, timeline, out, err);
    /* Among others that is collective, and after a failure it would hang. */
    if (status == FR_OK || world == 1)
        fr_transport_destroy(transport);
    return status;
}

fr_status fr_run_join(int64_t world, int64_t *rank, int32_t *node_of_rank,
                      fr_err *err)
{
    fr_transport *transport = NULL;
    fr_run_options defaults;
    int64_t own_rank = 0;

    fr_run_options_init(&defaults);
    if (world > 1) {
        FR_TRY(fr_transport_mpi_create(world, defaults.timeout_s, &transport,
                                       err));
        if (transport == NULL)
            return fr_fail(err, FR_USAGE,
                           "more ranks were started than the plan has (%lld)",
                           (long long)world);
        own_rank = transport->rank;
    }
    for (int64_t i = 0; node_of_rank != NULL && i < world; i++)
        node_of_rank[i] = transport != NULL ? transport->node_of_rank[i] : 0;
    if (rank != NULL)
        *rank = own_rank;
    fr_transport_destroy(transport);
    return FR_OK;
}

void fr_run_leave(void)
{
    fr_transport_mpi_finish();
}
