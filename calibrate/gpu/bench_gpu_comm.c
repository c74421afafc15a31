/* bench_gpu_comm.c: see bench_gpu_comm.h. */
#include "calibrate/gpu/bench_gpu_comm.h"

#include "calibrate/cpu/ranks.h"
#include "core/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A size that takes longer than this is the last one of its operation. */
static const double slowest_s = 0.1;
/* Small payloads are timed in rows of so many. */
enum { N_ROW = 8, SMALL_BYTES = 1 << 20 };

/* ---- all ranks alike ---------------------------------------------------- */

typedef struct report {
    int32_t status;
    char text[252];
    double seconds;
} rank_report;

fr_status fr_gpu_comm_connect(const fr_gpu_comm_bench *bench,
                              const fr_program *program, bool is_estimated,
                              fr_gpu_links **out, fr_err *err)
{
    const fr_gpu_rig *rig = bench->rig;
    fr_gpu_place place = {.system = rig->system,
                          .gpu = rig->gpu,
                          .transport = rig->transport,
                          .program = program,
                          .slab = rig->arena + rig->flush_bytes,
                          .is_estimated = is_estimated,
                          .timeout_s = rig->timeout_s};
    fr_gpu_links *links = NULL;

    /* Links are made by all ranks together. */
    FR_TRY(fr_transport_agree(rig->transport, fr_gpu_rig_check(rig, err), false,
                              err));
    fr_status status = bench->is_shared
                           ? fr_gpu_links_host_create(&place, &links, err)
                           : fr_gpu_links_comm_create(&place, &links, err);
    status = fr_transport_agree(rig->transport, status, false, err);
    if (status != FR_OK) {
        if (links != NULL)
            links->ops->abort(links);
        fr_gpu_links_destroy(links);
        return status;
    }
    *out = links;
    return FR_OK;
}

fr_status fr_gpu_comm_enqueue(const fr_gpu_comm_set *set, const fr_gpu_rig *rig,
                              fr_gpu_links *links, uint32_t i_instr,
                              fr_gpu_stream stream, fr_err *err)
{
    const fr_instr *instr = &set->program->instrs[i_instr];
    unsigned char *slab = rig->arena + rig->flush_bytes;
    void *src = slab + instr->ref[FR_COMM_SRC].offset_bytes, *dst = src;

    if (instr->ref[FR_COMM_DST].space != FR_SPACE_NONE)
        dst = slab + instr->ref[FR_COMM_DST].offset_bytes;
    if (instr->op == FR_OP_SEND)
        dst = NULL;
    else if (instr->op == FR_OP_RECV)
        src = NULL;
    return links->ops->enqueue(
        links, i_instr, set->axis == FR_AXIS_PP ? FR_LANE_PP_SEND : FR_LANE_DP,
        src, dst, stream, err);
}

/* ---- one group ---------------------------------------------------------- */

typedef struct timed_set {
    const fr_gpu_comm_bench *bench;
    fr_gpu_comm_set *set;
    fr_gpu_links *links;
    rank_report *all; /* [world] */
    bool is_tried;    /* the library has made its connections */
    bool is_dead;
    fr_err why;
} timed_set;

static fr_status time_transfer(timed_set *t, size_t i, double *out_s,
                               fr_err *err)
{
    const fr_gpu_rig *rig = t->bench->rig;
    int side = rig->transport->rank == t->set->members[1];
    const uint32_t first[2] = {t->set->i_instr[side][0],
                               t->set->i_instr[side][i]};

    /* A small transfer comes first, so that both sides begin together. */
    for (int n = 0; n < 2; n++) {
        if (n == 1)
            FR_TRY(fr_gpu_rig_begin(rig, err));
        for (uint32_t k = 0; k < 2; k++)
            FR_TRY(fr_gpu_comm_enqueue(t->set, rig, t->links, first[n] + k,
                                       rig->stream, err));
    }
    FR_TRY(fr_gpu_rig_end(rig, out_s, err));
    *out_s *= 0.5;
    return FR_OK;
}

/* An all-reduce of one element comes first, so that all ranks begin together.
 * */
static fr_status time_collective(timed_set *t, size_t i, double *out_s,
                                 fr_err *err)
{
    const fr_gpu_rig *rig = t->bench->rig;
    int n = t->set->points[i].n_bytes <= SMALL_BYTES ? N_ROW : 1;

    FR_TRY(fr_gpu_comm_enqueue(t->set, rig, t->links, t->set->i_align,
                               rig->stream, err));
    FR_TRY(fr_gpu_rig_begin(rig, err));
    for (int k = 0; k < n; k++)
        FR_TRY(fr_gpu_comm_enqueue(t->set, rig, t->links, t->set->i_instr[0][i],
                                   rig->stream, err));
    FR_TRY(fr_gpu_rig_end(rig, out_s, err));
    *out_s /= n;
    return FR_OK;
}

/*
 * Small ones take less time than the host takes to enqueue them, so that the
 * stream is held meanwhile.  Not the first ones: the library makes connections
 * then, and may wait for the device.
 */
static fr_status time_own(timed_set *t, size_t i, double *out_s, fr_err *err)
{
    const fr_gpu_rig *rig = t->bench->rig;
    fr_status status = t->is_tried ? fr_gpu_rig_hold(rig, err) : FR_OK;

    if (status == FR_OK)
        status = t->set->axis == FR_AXIS_PP ? time_transfer(t, i, out_s, err)
                                            : time_collective(t, i, out_s, err);
    fr_gpu_rig_release(rig);
    return status == FR_OK ? t->links->ops->check(t->links, err) : status;
}

/*
 * The member that began last saw the shortest time, which is that of the
 * operation.  Of a round trip the sender's time counts.
 */
static fr_status run_point(void *context, size_t i_point, double *out_s,
                           fr_err *err)
{
    timed_set *t = context;
    fr_transport *transport = t->bench->rig->transport;
    rank_report own = {.seconds = INFINITY};
    fr_err why = {0};
    bool is_member = fr_gpu_comm_set_has(t->set, transport->rank);
    bool is_timed = is_member && (t->set->axis != FR_AXIS_PP ||
                                  transport->rank == t->set->members[0]);
    double seconds = 0.0;

    *out_s = 1e-9;
    if (t->is_dead)
        return FR_OK;
    FR_TRY(fr_ranks_barrier(transport, err));
    if (is_member)
        own.status = (int32_t)time_own(t, i_point, &seconds, &why);
    if (is_timed && own.status == FR_OK)
        own.seconds = seconds;
    fr_text_copy_cut(own.text, sizeof own.text, why.text);
    FR_TRY(fr_transport_all_gather(transport, &own, sizeof own, t->all, err));
    *out_s = INFINITY;
    for (int64_t i = 0; i < transport->world; i++) {
        *out_s = fmin(*out_s, t->all[i].seconds);
        if (t->all[i].status != FR_OK && !t->is_dead) {
            t->is_dead = true;
            (void)fr_fail(&t->why, (fr_status)t->all[i].status, "%s",
                          t->all[i].text);
        }
    }
    if (t->is_dead)
        *out_s = 1e-9;
    return FR_OK;
}

/* Runs every size once, the smallest first, and drops those that would take too
 * long. */
static fr_status try_sizes(timed_set *t, fr_err *err)
{
    fr_gpu_comm_set *set = t->set;
    size_t n = 0;
    bool is_over = false;

    for (size_t i = 0; i < set->n_points && !t->is_dead; i++) {
        double seconds;
        bool is_next =
            i == 0 || strcmp(set->points[i].op, set->points[i - 1].op) != 0;
        is_over = is_over && !is_next;
        if (is_over)
            continue;
        FR_TRY(run_point(t, i, &seconds, err));
        is_over = seconds > slowest_s;
        set->points[n] = set->points[i];
        for (int side = 0; side < 2; side++)
            set->i_instr[side][n] = set->i_instr[side][i];
        n++;
    }
    set->n_points = n;
    return FR_OK;
}

static fr_status keep(void *context, size_t i_point, const fr_sample *sample,
                      fr_profile *profile, fr_err *err)
{
    const timed_set *t = context;
    fr_comm_point point = t->set->points[i_point];

    point.sample = *sample;
    return t->is_dead ? FR_OK : fr_profile_add_comm(profile, &point, err);
}

static fr_status measure(timed_set *t, double budget_s, fr_err *err)
{
    fr_sampling schedule = t->bench->schedule;
    fr_bench table = {
        .name = "communication", .context = t, .run = run_point, .keep = keep};

    FR_TRY(try_sizes(t, err));
    t->is_tried = true;
    table.n_points = t->set->n_points;
    schedule.budget_s = budget_s;
    schedule.target_rel_err = 0.02;
    schedule.n_min = 3;
    schedule.n_max = 31;
    if (t->is_dead)
        return FR_OK;
    return fr_bench_profile(&table, &schedule,
                            t->bench->rig->transport->rank == 0,
                            t->bench->profile, err);
}

/* Keeps the times that the library itself expects of the same collectives.
 * They are kept next to the measurements and never mixed with them. */
static fr_status keep_estimates(const fr_gpu_comm_bench *bench,
                                const fr_gpu_comm_set *set, fr_gpu_links *links,
                                fr_err *err)
{
    size_t n =
        links->ops->describe != NULL ? links->ops->describe(links, NULL) : 0;
    fr_collective_note *notes = calloc(n + 1, sizeof *notes);
    fr_status status = notes != NULL ? FR_OK : fr_fail_no_memory(err);

    if (n > 0 && notes != NULL)
        (void)links->ops->describe(links, notes);
    for (size_t i = 0; status == FR_OK && i < n; i++) {
        fr_comm_point point = {.n_group = (int32_t)notes[i].n_group,
                               .n_bytes = notes[i].n_bytes,
                               .is_async = true,
                               .sample = {.median_s = notes[i].estimate_s,
                                          .rel_err = 1,
                                          .n_samples = 1}};
        if (notes[i].estimate_s <= 0)
            continue;
        fr_text_copy_cut(point.op, sizeof point.op, fr_op_name(notes[i].op));
        fr_text_copy_cut(point.algorithm, sizeof point.algorithm,
                         FR_PROFILE_NCCL_ESTIMATE);
        fr_text_copy_cut(point.scope, sizeof point.scope, set->points[0].scope);
        status = fr_profile_add_comm(bench->profile, &point, err);
    }
    free(notes);
    return status;
}

static void log_left_out(const fr_gpu_comm_bench *bench,
                         const fr_gpu_comm_set *set, const char *why)
{
    if (bench->rig->transport->rank == 0)
        fr_log_write(bench->rig->log, FR_LOG_WARNING,
                     "%s of %lld ranks on %lld node%s left out: %s",
                     set->axis == FR_AXIS_PP ? "transfers" : "collectives",
                     (long long)set->n_members, (long long)set->n_nodes,
                     set->n_nodes == 1 ? "" : "s", why);
}

/* Streams have left what was aborted before its memory goes.  A device that
 * does not come to that is given up. */
static void end_links(const fr_gpu_rig *rig, fr_gpu_links *links,
                      bool is_broken)
{
    fr_err ignored;

    if (is_broken) {
        links->ops->abort(links);
        fr_status status =
            fr_gpu_rig_finish(rig, rig->stream, rig->end, &ignored);
        if (status == FR_OK)
            status = fr_gpu_rig_finish(rig, rig->comm_stream, rig->comm_end,
                                       &ignored);
        (void)status; /* later calls fail, too */
    }
    fr_gpu_links_destroy(links);
}

static fr_status time_group(const fr_gpu_comm_bench *bench,
                            fr_gpu_comm_set *set, double budget_s, bool is_last,
                            fr_err *err)
{
    timed_set t = {.bench = bench, .set = set};
    fr_status status = FR_OK;
    fr_err why = {0};

    FR_TRY_CALLOC(t.all, (size_t)bench->rig->transport->world, err);
    if (fr_gpu_comm_connect(bench, set->program, true, &t.links, &why) !=
        FR_OK) {
        log_left_out(bench, set, why.text);
    } else {
        bool is_well = true;
        bench->rig->links = t.links;
        status = measure(&t, budget_s, err);
        if (status == FR_OK && !t.is_dead && bench->rig->transport->rank == 0)
            status = keep_estimates(bench, set, t.links, err);
        if (t.is_dead)
            log_left_out(bench, set, t.why.text);
        else if (status == FR_OK && is_last)
            is_well = fr_gpu_bench_overlap(bench, set, t.links);
        bench->rig->links = NULL;
        end_links(bench->rig, t.links,
                  t.is_dead || !is_well || status != FR_OK);
    }
    free(t.all);
    return status;
}

/* ---- all groups --------------------------------------------------------- */

static int64_t node_end(const fr_transport *transport)
{
    int64_t rank = 1;

    while (rank < transport->world &&
           transport->node_of_rank[rank] == transport->node_of_rank[0])
        rank++;
    return rank;
}

enum { MOST_GROUPS = 40 };

/* Every rank makes the same list. */
static int list_groups(const fr_transport *transport, fr_gpu_comm_group *out)
{
    int64_t world = transport->world, n_first = node_end(transport);
    int n = 0;

    for (int64_t g = 2; g < world && n < MOST_GROUPS - 4; g *= 2)
        if (world % g == 0)
            out[n++] =
                (fr_gpu_comm_group){.axis = FR_AXIS_TP, .n_group = (int32_t)g};
    if (n_first > 1 && n_first < world && world % n_first == 0)
        out[n++] = (fr_gpu_comm_group){.axis = FR_AXIS_DP,
                                       .n_group = (int32_t)n_first};
    if (n_first > 1)
        out[n++] = (fr_gpu_comm_group){.axis = FR_AXIS_PP, .stage = {0, 1}};
    if (n_first < world)
        out[n++] = (fr_gpu_comm_group){
            .axis = FR_AXIS_PP,
            .stage = {(int32_t)n_first - 1, (int32_t)n_first}};
    out[n++] =
        (fr_gpu_comm_group){.axis = FR_AXIS_TP, .n_group = (int32_t)world};
    return n;
}

static uint64_t most_bytes_of(const fr_gpu_comm_bench *bench)
{
    const uint64_t wanted = (uint64_t)(bench->is_quick ? 64 : 256) << 20;
    uint64_t room =
        (bench->rig->arena_bytes - bench->rig->flush_bytes) / 2 - 8192;

    return wanted < room ? wanted : room;
}

/* The smallest arena of all ranks decides. */
static fr_status agree_on_bytes(const fr_gpu_comm_bench *bench, uint64_t *out,
                                fr_err *err)
{
    fr_transport *transport = bench->rig->transport;
    uint64_t own = most_bytes_of(bench);
    uint64_t *all;

    FR_TRY_CALLOC(all, (size_t)transport->world, err);
    fr_status status =
        fr_transport_all_gather(transport, &own, sizeof own, all, err);
    for (int64_t i = 0; status == FR_OK && i < transport->world; i++)
        own = all[i] < own ? all[i] : own;
    free(all);
    *out = own;
    return status;
}

fr_status fr_gpu_bench_comm(const fr_gpu_comm_bench *bench, fr_err *err)
{
    fr_transport *transport = bench->rig->transport;
    fr_gpu_comm_group groups[MOST_GROUPS];
    uint64_t most_bytes;

    if (transport->world < 2)
        return FR_OK;
    int n = list_groups(transport, groups);
    FR_TRY(agree_on_bytes(bench, &most_bytes, err));
    if (bench->is_shared) /* the mirror of the devices' memory */
        FR_TRY(fr_ranks_open_slab(transport, 2 * most_bytes + 16384, err));
    else
        FR_TRY(fr_gpu_bench_comm_memory(bench, err));
    for (int i = 0; i < n; i++) {
        fr_gpu_comm_set set;
        groups[i].most_bytes = most_bytes;
        groups[i].is_quick = bench->is_quick;
        FR_TRY(fr_gpu_comm_set_init(transport, &groups[i], &set, err));
        fr_log_progress(bench->rig->log, (double)i / n, "communication");
        fr_status status = time_group(bench, &set, bench->schedule.budget_s / n,
                                      i + 1 == n, err);
        fr_gpu_comm_set_release(&set);
        FR_TRY(status);
    }
    fr_log_progress_end(bench->rig->log);
    if (bench->is_shared)
        transport->ops->close_slab(transport);
    return FR_OK;
}
