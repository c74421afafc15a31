/*
 * validate_shots.h: `validate --shots`: rows of a source learned from, the rest
 * of it predicted.
 */
#ifndef FR_API_ANSWER_VALIDATE_SHOTS_H
#define FR_API_ANSWER_VALIDATE_SHOTS_H

#include "api/request/request.h"
#include "report/document/document.h"
#include "spec/result/shots.h"
#include "spec/result/validation.h"

/* --shots, --draws and --seed into what is asked; FR_USAGE. */
FR_CHECKED fr_status fr_shots_asked(const fr_request *request, fr_shots *out,
                                    fr_err *err);
/* Draws from the rows whose step time is scored. */
FR_CHECKED fr_status fr_shots_draw(const fr_validation *validation,
                                   const fr_log *log, fr_shots *shots,
                                   fr_err *err);

#endif
