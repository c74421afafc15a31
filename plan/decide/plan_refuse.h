/*
 * plan_refuse.h: how the checks of a plan say that something has no program.
 * Inside plan/ only.
 */
#ifndef FR_PLAN_DECIDE_PLAN_REFUSE_H
#define FR_PLAN_DECIDE_PLAN_REFUSE_H

#include "core/base/err.h"

FR_CHECKED static inline fr_status fr_plan_refuse(fr_err *err, const char *what,
                                                  const char *mend)
{
    return fr_fail(err, FR_INPUT, "there are no instructions yet for %s; %s",
                   what, mend);
}

#endif
