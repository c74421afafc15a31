/*
 * others.h: the processor time that other processes take from the ranks of one
 * machine.  The first rank of each machine reads the counters
 * (core/system/processors.h) and the clocks of all ranks of the machine.
 */
#ifndef FR_RUNTIME_WATCH_OTHERS_H
#define FR_RUNTIME_WATCH_OTHERS_H

#include "core/system/processors.h"
#include "runtime/comm/transport.h"

typedef struct fr_others fr_others;

/* Collective.  `set` has the processors on which this rank's threads may run;
 * those of a machine are the ones of all its ranks. */
FR_CHECKED fr_status fr_others_create(fr_transport *transport,
                                      const fr_processor_set *set,
                                      fr_others **out, fr_err *err);
void fr_others_destroy(fr_others *others); /* takes NULL */

/* Begins an interval here; nothing on ranks that do not read. */
void fr_others_begin(fr_others *others);

/* The seconds since the interval began; -1: this rank does not read. */
double fr_others_elapsed_s(const fr_others *others);

/*
 * Sets *out to the shares since the interval began, and begins the next one.
 * False: not known, because this rank does not read, or the kernel does not
 * count, or a rank's clock cannot be read (another PID namespace).
 */
bool fr_others_end(fr_others *others, fr_processor_share *out);

/* The ranks of this machine. */
int32_t fr_others_n_ranks(const fr_others *others);

#endif
