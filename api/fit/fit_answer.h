/*
 * fit_answer.h: the treatment of a plan that does not fit: all commands use the
 * same words, and commands that would act on the plan refuse it.
 */
#ifndef FR_API_FIT_FIT_ANSWER_H
#define FR_API_FIT_FIT_ANSWER_H

#include "api/inputs.h"
#include "spec/result/fit_advice.h"

/* Finds the causes and the changes that would help, of a plan whose prediction
 * on the cluster does not fit.  The changes are such that the target of the
 * request (fr_request_executor) can execute, if it can execute the plan. */
FR_CHECKED fr_status fr_fit_answer_find(const fr_request *request,
                                        const fr_inputs *inputs,
                                        const fr_plan_file *file,
                                        const fr_prediction *prediction,
                                        fr_fit_advice *out, fr_err *err);

/*
 * FR_INFEASIBLE where the prediction does not fit: the error is the verdict,
 * the change that would help and --force.  With --force, and where the plan
 * fits, it is FR_OK; *out then has the causes, and a verdict of "" where the
 * plan fits. `inputs` may be NULL: no change is looked for.
 */
FR_CHECKED fr_status fr_fit_answer_check(const fr_request *request,
                                         const fr_inputs *inputs,
                                         const fr_plan_file *file,
                                         const fr_prediction *prediction,
                                         fr_fit_advice *out, fr_err *err);

/* The place where a plan is to run. */
typedef struct fr_fit_place {
    const char *cluster;    /* "": only the prediction in the file is known */
    int64_t ranks_per_node; /* 0: as many as there are cores for */
    /* Returns the memory of a device there, 0: unknown; it is called for plans
     * that do not fit the devices of the cluster.  NULL: no device can be
     * asked.
     */
    uint64_t (*ask_memory_bytes)(void);
} fr_fit_place;

/* Predicts the file's plan on that cluster without notes.  The caller releases
 * *inputs, also after a failure. */
FR_CHECKED fr_status fr_fit_answer_predict(const fr_request *request,
                                           const fr_plan_file *file,
                                           const fr_fit_place *place,
                                           fr_inputs *inputs,
                                           fr_prediction *out, fr_err *err);

/* Is *p the prediction that the file carries?  Digits are lost in the file;
 * costs of a profile that is not given leave the memory as it is. */
bool fr_fit_answer_is_carried(const fr_plan_file *file, const fr_inputs *inputs,
                              const fr_prediction *p);

/*
 * fr_fit_answer_check() of the plan as it is predicted on that cluster.  A plan
 * that cannot be predicted there is not refused: its devices may exist all the
 * same.
 */
FR_CHECKED fr_status fr_fit_answer_check_file(const fr_request *request,
                                              const fr_plan_file *file,
                                              const fr_fit_place *place,
                                              fr_fit_advice *out, fr_err *err);

/*
 * Passes notes on the prediction in a plan file that does not fit; none if the
 * file has no prediction.  Changes that would help are among them if the file's
 * cluster can be loaded and is the same as then.
 */
FR_CHECKED fr_status fr_fit_answer_warn(const fr_request *request,
                                        const fr_plan_file *file, fr_err *err);

#endif
