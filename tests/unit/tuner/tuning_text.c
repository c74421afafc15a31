/* tuning_text.c: the report of tune without wall times. */
#include "tests/unit/tuner/tuning_text.h"

#include "report/tuning_report.h"

char *tuning_text(fr_tuning *tuning)
{
    fr_buffer text;
    fr_json_writer json;
    fr_tuned_list *lists[] = {&tuning->alternatives, &tuning->layouts,
                              &tuning->pareto};
    tuning->wall_s = 0;
    tuning->best.prediction.sim.wall_s = 0;
    tuning->robust.prediction.sim.wall_s = 0;
    for (int i = 0; i < FR_BASELINE_N; i++)
        tuning->baselines[i].tuned.prediction.sim.wall_s = 0;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            lists[k]->at[i].prediction.sim.wall_s = 0;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_json_begin_object(&json);
    fr_report_tuning_json(tuning, &json);
    fr_json_end_object(&json);
    return text.data;
}
