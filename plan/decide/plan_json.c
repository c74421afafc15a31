/* plan_json.c: plan and job as JSON objects, by their tables of fields. */
#include "plan/decide/plan_json.h"

#include "plan/decide/plan_fields.h"
#include "spec/model/job_fields.h"

/* The tables stand in the order of the help text.  Keys stand in the order of
 * the members. */
static void sort_by_offset(fr_field *fields, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        fr_field moved = fields[i];
        size_t k = i;
        for (; k > 0 && fields[k - 1].offset > moved.offset; k--)
            fields[k] = fields[k - 1];
        fields[k] = moved;
    }
}

/* n items from the first on: a plan's fields, and behind them its facts. */
static void list_items(int first, int n, fr_field *out)
{
    for (int i = 0; i < n; i++)
        out[i] = fr_plan_item_row(first + i)->field;
    sort_by_offset(out, (size_t)n);
}

static void list_job_fields(fr_field out[FR_JOB_FIELDS_N])
{
    for (int i = 0; i < FR_JOB_FIELDS_N; i++)
        out[i] = fr_job_fields[i];
    sort_by_offset(out, FR_JOB_FIELDS_N);
}

fr_status fr_plan_json_read(const fr_json_value *decisions,
                            const fr_json_value *execution, fr_plan *out,
                            fr_err *err)
{
    fr_plan plan;
    fr_field fields[FR_PLAN_ITEMS_N];
    const bool is_apart = execution != NULL;
    const int n = is_apart ? (int)FR_PLAN_FIELDS_N : (int)FR_PLAN_ITEMS_N;
    fr_plan_init(&plan);
    list_items(0, n, fields);
    FR_TRY(fr_fields_read(decisions, fields, (size_t)n, &plan, err));
    list_items(FR_PLAN_FIELDS_N, FR_EXECUTION_FIELDS_N, fields);
    if (is_apart)
        FR_TRY(fr_fields_read(execution, fields, FR_EXECUTION_FIELDS_N, &plan,
                              err));
    *out = plan;
    return FR_OK;
}

fr_status fr_job_json_read(const fr_json_value *object, fr_job *out,
                           fr_err *err)
{
    fr_job job;
    fr_field fields[FR_JOB_FIELDS_N];
    fr_err broken = {0};
    fr_job_init(&job);
    list_job_fields(fields);
    FR_TRY(fr_fields_read(object, fields, FR_JOB_FIELDS_N, &job, err));
    if (fr_job_check(&job, &broken) != FR_OK)
        return fr_json_fail(object, err, "%s", broken.text);
    *out = job;
    return FR_OK;
}

void fr_plan_json_put(const fr_plan *plan, fr_json_writer *json)
{
    fr_field fields[FR_PLAN_ITEMS_N];
    list_items(0, FR_PLAN_FIELDS_N, fields);
    fr_json_key(json, "plan");
    fr_fields_write(fields, FR_PLAN_FIELDS_N, plan, json);
    list_items(FR_PLAN_FIELDS_N, FR_EXECUTION_FIELDS_N, fields);
    fr_json_key(json, "execution");
    fr_fields_write(fields, FR_EXECUTION_FIELDS_N, plan, json);
}

void fr_job_json_write(const fr_job *job, fr_json_writer *json)
{
    fr_field fields[FR_JOB_FIELDS_N];
    list_job_fields(fields);
    fr_fields_write(fields, FR_JOB_FIELDS_N, job, json);
}
