/*
 * host_probe.h: runs a short shell script on each host of a hostfile, through
 * the remote shell that mpirun would use, on all hosts at once; and the reason
 * why one cannot be used, in a few words.
 */
#ifndef FR_RUNTIME_HOSTS_HOST_PROBE_H
#define FR_RUNTIME_HOSTS_HOST_PROBE_H

#include "runtime/hosts/hostfile.h"

/* Exit codes of the script of fr_hosts_explain(). */
enum { FR_PROBE_NO_MPI = 97, FR_PROBE_NO_PROGRAM = 98 };

typedef struct fr_host_probe {
    bool is_local;   /* mpirun starts ranks there without a remote shell */
    bool is_unknown; /* the name has no address */
    bool is_late;    /* no answer within the time */
    bool is_ssh;     /* the remote shell is ssh */
    int code;        /* exit code of the remote shell, 127: there is none */
    double begin_s, end_s;    /* fr_clock_s() */
    char agent[FR_HOST_NAME]; /* the remote shell's name */
    char out[4096], err[1024];
} fr_host_probe;

/*
 * Probes each host: out[hosts->n].  The faults of a host stand in its probe;
 * FR_FAILURE and FR_NO_MEMORY are of this machine.
 */
FR_CHECKED fr_status fr_hosts_probe(const fr_hosts *hosts, const char *script,
                                    double limit_s, fr_host_probe *out,
                                    fr_err *err);

/* Sets *reason to the reason why ranks cannot be started on the host, and
 * *mend to what helps; false: they can. */
bool fr_host_reason(const fr_host_probe *probe, const char *program,
                    char reason[160], char mend[200]);

/*
 * FR_FAILURE with the first host of the file that cannot be used and the
 * reason; FR_OK: all can, or nothing is known.
 */
FR_CHECKED fr_status fr_hosts_explain(const char *hostfile, const char *program,
                                      double limit_s, fr_err *err);

#endif
