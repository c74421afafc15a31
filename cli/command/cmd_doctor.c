/* cmd_doctor.c: what this machine lacks for which command, and whether links
 * that were measured are as fast as predicted. */
#include "api/inputs.h"
#include "calibrate/doctor/doctor.h"
#include "calibrate/doctor/doctor_hosts.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/spawn_self.h"
#include "core/document/fields.h"
#include "sim/predict/collective_time.h"

#include <stdlib.h>
#include <string.h>

static const char *const states[FR_FINDING_N] = {[FR_FINDING_OK] = "ok",
                                                 [FR_FINDING_ADVICE] = "advice",
                                                 [FR_FINDING_MISSING] =
                                                     "missing"};

/* One collective that somebody measured, beside its prediction. */
typedef struct link_row {
    const fr_comm_point *point;
    double predicted_s;
} link_row;

typedef struct visit {
    fr_findings findings;
    fr_vec(link_row) links;
    fr_host_findings hosts;
} visit;

/* ---- links --------------------------------------------------------------- */

static int find_op(const char *name)
{
    static const fr_op ops[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                                FR_OP_ALL_GATHER, FR_OP_ALL_TO_ALL,
                                FR_OP_BROADCAST};
    for (size_t i = 0; i < FR_LENGTH(ops); i++)
        if (strcmp(fr_op_name(ops[i]), name) == 0)
            return (int)ops[i];
    return -1;
}

/* FR_OK with *out 0: the cluster has no such group. */
static fr_status predict(const fr_inputs *inputs, const fr_comm_point *point,
                         double *out, fr_err *err)
{
    int op = find_op(point->op);
    int algorithm = fr_name_find(&fr_collective_names, point->algorithm);
    fr_collective_time time;
    fr_err ignored;
    *out = 0;
    if (op < 0 || point->n_group < 2 || point->is_beside)
        return FR_OK;
    int32_t *node_of_rank =
        malloc((size_t)point->n_group * sizeof *node_of_rank);
    if (node_of_rank == NULL)
        return fr_fail_no_memory(err);
    const fr_placement placement = {.n_ranks = point->n_group,
                                    .node_of_rank = node_of_rank};
    const fr_collective_ask ask = {
        .op = (fr_op)op,
        .n_bytes = point->n_bytes,
        .algorithm =
            algorithm > 0 ? (fr_collective_kind)algorithm : FR_COLLECTIVE_AUTO};
    fr_status status = fr_cluster_place(&inputs->cluster, point->n_group, 1, 0,
                                        node_of_rank, &ignored);
    if (status == FR_OK)
        status = fr_collective_time_of(inputs->costs, &inputs->cluster,
                                       &placement, &ask, &time, &ignored);
    if (status == FR_OK)
        *out = time.seconds;
    free(node_of_rank);
    return status == FR_NO_MEMORY ? fr_fail_no_memory(err) : FR_OK;
}

/* The profile's collectives against what the cluster's description gives
 * without them. */
static fr_status compare_links(const fr_inputs *described,
                               const fr_profile *measured, visit *v,
                               fr_err *err)
{
    for (size_t i = 0; i < measured->n_comm; i++) {
        link_row row = {.point = &measured->comm[i]};
        FR_TRY(predict(described, row.point, &row.predicted_s, err));
        if (row.predicted_s > 0)
            FR_TRY_PUSH(&v->links, row, err);
    }
    return FR_OK;
}

/* ---- the answer ---------------------------------------------------------- */

static void put_findings(const visit *v, fr_document *out)
{
    static const fr_column columns[] = {
        {NULL, "check"},     {"", "state"},  {"check", NULL},
        {"found", "found"},  {NULL, "mend"}, {NULL, "needed_for"},
        {"what to do", NULL}};
    fr_table *table =
        fr_document_records(out, "checks", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < v->findings.n; i++) {
        const fr_finding *at = &v->findings.items[i];
        const bool has_mend = at->mend[0] != '\0';
        fr_table_text(table, at->check);
        fr_table_text(table, states[at->state]);
        fr_table_text(table, at->check);
        fr_table_text(table, at->found);
        fr_table_optional(table, at->mend);
        fr_table_optional(table, at->needed_for);
        fr_table_cell(table, "%s%s%s", has_mend ? at->mend : "",
                      has_mend && at->needed_for != NULL ? "; for: " : "",
                      has_mend && at->needed_for != NULL ? at->needed_for : "");
    }
}

static void put_links(const visit *v, fr_document *out)
{
    static const fr_column columns[] = {{"collective", "op"},
                                        {">ranks", "ranks"},
                                        {">size", "bytes"},
                                        {">measured", "measured_s"},
                                        {">predicted", "predicted_s"},
                                        {">ratio", NULL}};
    if (v->links.n > 0)
        fr_document_puts(out, "\nMeasured collectives, and the predictions "
                              "from the description of the cluster:\n");
    fr_table *table =
        fr_document_records(out, "links", columns, FR_LENGTH(columns));
    for (size_t i = 0; i < v->links.n; i++) {
        const link_row *at = &v->links.items[i];
        const double measured_s = at->point->sample.median_s;
        fr_table_text(table, at->point->op);
        fr_table_count(table, at->point->n_group);
        fr_table_bytes(table, (double)at->point->n_bytes);
        fr_table_s(table, measured_s);
        fr_table_s(table, at->predicted_s);
        fr_table_cell(table, "%.2f", measured_s / at->predicted_s);
    }
}

static void put_hosts(const visit *v, fr_document *out)
{
    static const fr_column columns[] = {{"host", "host"}, {"check", "check"},
                                        {"", "state"},    {"found", "found"},
                                        {NULL, "mend"},   {"what to do", NULL}};
    if (v->hosts.n > 0)
        fr_document_puts(out, "\n");
    fr_table *table =
        fr_document_records(out, "hosts", columns, FR_LENGTH(columns));
    for (size_t i = 0; i < v->hosts.n; i++) {
        const fr_finding *at = &v->hosts.items[i].finding;
        fr_table_text(table, v->hosts.items[i].host);
        fr_table_text(table, at->check);
        fr_table_text(table, states[at->state]);
        fr_table_text(table, at->found);
        fr_table_optional(table, at->mend);
        fr_table_text(table, at->mend);
    }
}

static fr_status print(const fr_cli *cli, const visit *v, fr_err *err)
{
    fr_document answer;
    fr_document_init(&answer, "forerun.doctor/1");
    put_findings(v, &answer);
    put_hosts(v, &answer);
    put_links(v, &answer);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

static fr_status check_missing(const visit *v, fr_err *err)
{
    int n_missing = 0;
    const char *first = NULL;
    for (size_t i = 0; i < v->findings.n; i++)
        if (v->findings.items[i].state == FR_FINDING_MISSING) {
            n_missing++;
            first = first != NULL ? first : v->findings.items[i].check;
        }
    for (size_t i = 0; i < v->hosts.n; i++)
        if (v->hosts.items[i].finding.state == FR_FINDING_MISSING)
            return fr_fail(err, FR_CHECK, "host %s: %s: %s",
                           v->hosts.items[i].host,
                           v->hosts.items[i].finding.check,
                           v->hosts.items[i].finding.found);
    if (n_missing == 0)
        return FR_OK;
    return fr_fail(err, FR_CHECK, "%d missing, first of them: %s", n_missing,
                   first);
}

static fr_status examine_hosts(const fr_cli *cli, visit *v, fr_err *err)
{
    const char *hostfile = fr_cli_text(cli, FR_OPT_HOSTFILE);
    const char *plan =
        cli->request.n_positional > 1 ? cli->request.positional[1] : NULL;
    char self[4096];
    if (hostfile == NULL)
        return plan == NULL ? FR_OK
                            : fr_fail(err, FR_USAGE,
                                      "PLAN is compared with that of other "
                                      "hosts; name them with --hostfile FILE");
    if (!fr_self_find(self, sizeof self))
        return fr_fail(err, FR_FAILURE, "this program does not find itself");
    return fr_doctor_examine_hosts(hostfile, self, plan, &v->hosts, err);
}

static fr_status examine(const fr_cli *cli, visit *v, fr_profile *profile,
                         fr_inputs *inputs, fr_err *err)
{
    const char *path = fr_cli_text(cli, FR_OPT_PROFILE);
    FR_TRY(fr_doctor_examine("", &v->findings, err));
    FR_TRY(examine_hosts(cli, v, err));
    if (cli->request.n_positional == 0 && path != NULL)
        return fr_fail(err, FR_USAGE,
                       "--profile is compared with a cluster; name it");
    if (cli->request.n_positional == 0)
        return FR_OK;
    FR_TRY(fr_as_input(fr_cluster_load(fr_request_configs(&cli->request),
                                       cli->request.positional[0],
                                       &inputs->cluster, err),
                       err));
    inputs->has_cluster = true;
    FR_TRY(fr_doctor_compare("", &inputs->cluster, &v->findings, err));
    if (path == NULL)
        return FR_OK;
    FR_TRY(fr_as_input(fr_profile_load(path, profile, err), err));
    FR_TRY(fr_cost_model_create(NULL, &inputs->cluster, &inputs->costs, err));
    return compare_links(inputs, profile, v, err);
}

FR_COMMAND_FUNCTION(doctor)
{
    visit v = {0};
    fr_profile profile = {0};
    fr_inputs inputs = {0};
    fr_status status = examine(cli, &v, &profile, &inputs, err);
    if (status == FR_OK)
        status = print(cli, &v, err);
    if (status == FR_OK)
        status = check_missing(&v, err);
    fr_vec_release(&v.findings);
    fr_vec_release(&v.links);
    fr_vec_release(&v.hosts);
    fr_profile_release(&profile);
    fr_inputs_release(&inputs);
    return status;
}
