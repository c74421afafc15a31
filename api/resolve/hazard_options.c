/* hazard_options.c: see hazard_options.h. */
#include "api/resolve/hazard_options.h"

#include "core/base/units.h"

static fr_status read_rate(const fr_request *request, fr_option option,
                           double *out, fr_err *err)
{
    const char *text = fr_request_text(request, option);
    *out = 0;
    if (text == NULL)
        return FR_OK;
    if (fr_parse_quantity(FR_QUANTITY_BPS, text, 0, out, err) == FR_OK)
        return FR_OK;
    fr_err_prefix(err, "--%s", fr_option_get(option).name);
    return FR_USAGE;
}

fr_status fr_request_make_hazards(const fr_request *request,
                                  fr_run_hazards *out, fr_err *err)
{
    const fr_option_value *v = request->option;
    fr_run_hazards hazards = fr_run_hazards_none();
    hazards.device_mtbf_s = v[FR_OPT_MTBF].real;
    if (fr_request_has(request, FR_OPT_RESTART))
        hazards.restart_s = v[FR_OPT_RESTART].real;
    if (fr_request_has(request, FR_OPT_CHECKPOINT_KIND))
        hazards.checkpoint_kind =
            (fr_checkpoint_kind)v[FR_OPT_CHECKPOINT_KIND].count;
    hazards.every_steps = v[FR_OPT_CHECKPOINT_EVERY].count;
    if (fr_request_has(request, FR_OPT_SPARES))
        hazards.n_spares = v[FR_OPT_SPARES].count;
    if (fr_request_has(request, FR_OPT_REPAIR))
        hazards.repair_s = v[FR_OPT_REPAIR].real;
    FR_TRY(read_rate(request, FR_OPT_STORAGE_WRITE, &hazards.storage.write_Bps,
                     err));
    FR_TRY(read_rate(request, FR_OPT_STORAGE_READ, &hazards.storage.read_Bps,
                     err));
    hazards.is_spot = fr_request_on(request, FR_OPT_SPOT);
    hazards.spot_every_s = v[FR_OPT_SPOT_EVERY].real;
    if (fr_request_has(request, FR_OPT_SPOT_WAIT))
        hazards.spot_wait_s = v[FR_OPT_SPOT_WAIT].real;
    if (fr_request_has(request, FR_OPT_SPOT_TOGETHER))
        hazards.spot_together_frac = v[FR_OPT_SPOT_TOGETHER].real;
    if (fr_request_has(request, FR_OPT_MEETS))
        FR_TRY(fr_run_events_parse(fr_request_text(request, FR_OPT_MEETS),
                                   &hazards.events, err));
    *out = hazards;
    return FR_OK;
}

static void take_rate(const fr_profile *profile, const char *name,
                      double node_Bps, int64_t n_nodes, double *rate_Bps)
{
    const fr_rate_point *found = fr_profile_find_rate(profile, name, 0, 0);
    if (!(*rate_Bps > 0) && !(node_Bps > 0) && found != NULL)
        *rate_Bps = (double)n_nodes * found->rate;
}

void fr_hazards_take_profile(const fr_profile *profile,
                             const fr_cluster *cluster, int64_t n_nodes,
                             fr_run_hazards *hazards)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    if (profile == NULL || fr_profile_is_gpu(profile) ||
        fr_cluster_is_all_gpu(cluster))
        return;
    hazards->measured = profile->running;
    take_rate(profile, "write", node->storage_write_Bps, n_nodes,
              &hazards->storage.write_Bps);
    take_rate(profile, "read", node->storage_read_Bps, n_nodes,
              &hazards->storage.read_Bps);
}
