/* hazard_options.c: see hazard_options.h. */
#include "cli/option/hazard_options.h"

#include "core/base/units.h"

static fr_status read_rate(const fr_cli *cli, fr_option option, double *out,
                           fr_err *err)
{
    const char *text = fr_cli_text(cli, option);
    *out = 0;
    if (text == NULL)
        return FR_OK;
    if (fr_parse_quantity(FR_QUANTITY_BPS, text, 0, out, err) == FR_OK)
        return FR_OK;
    fr_err_prefix(err, "--%s", fr_option_get(option).name);
    return FR_USAGE;
}

fr_status fr_cli_make_hazards(const fr_cli *cli, fr_run_hazards *out,
                              fr_err *err)
{
    const fr_option_value *v = cli->option;
    fr_run_hazards hazards = fr_run_hazards_none();
    hazards.device_mtbf_s = v[FR_OPT_MTBF].real;
    if (fr_cli_has(cli, FR_OPT_RESTART))
        hazards.restart_s = v[FR_OPT_RESTART].real;
    if (fr_cli_has(cli, FR_OPT_CHECKPOINT_KIND))
        hazards.checkpoint_kind =
            (fr_checkpoint_kind)v[FR_OPT_CHECKPOINT_KIND].count;
    hazards.every_steps = v[FR_OPT_CHECKPOINT_EVERY].count;
    if (fr_cli_has(cli, FR_OPT_SPARES))
        hazards.n_spares = v[FR_OPT_SPARES].count;
    if (fr_cli_has(cli, FR_OPT_REPAIR))
        hazards.repair_s = v[FR_OPT_REPAIR].real;
    FR_TRY(
        read_rate(cli, FR_OPT_STORAGE_WRITE, &hazards.storage.write_Bps, err));
    FR_TRY(read_rate(cli, FR_OPT_STORAGE_READ, &hazards.storage.read_Bps, err));
    hazards.is_spot = fr_cli_on(cli, FR_OPT_SPOT);
    hazards.spot_every_s = v[FR_OPT_SPOT_EVERY].real;
    if (fr_cli_has(cli, FR_OPT_SPOT_WAIT))
        hazards.spot_wait_s = v[FR_OPT_SPOT_WAIT].real;
    if (fr_cli_has(cli, FR_OPT_SPOT_TOGETHER))
        hazards.spot_together_frac = v[FR_OPT_SPOT_TOGETHER].real;
    if (fr_cli_has(cli, FR_OPT_MEETS))
        FR_TRY(fr_run_events_parse(fr_cli_text(cli, FR_OPT_MEETS),
                                   &hazards.events, err));
    *out = hazards;
    return FR_OK;
}
