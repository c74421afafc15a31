/*
 * doctor_hosts.h: can the hosts of a hostfile train together?  Each runs a
 * short script through the remote shell that mpirun would use, and its answers
 * are compared with those of this host.
 */
#ifndef FR_CALIBRATE_DOCTOR_DOCTOR_HOSTS_H
#define FR_CALIBRATE_DOCTOR_DOCTOR_HOSTS_H

#include "calibrate/doctor/doctor.h"
#include "runtime/hosts/host_probe.h"

typedef struct fr_host_finding {
    char host[FR_HOST_NAME];
    fr_finding finding;
} fr_host_finding;

typedef fr_vec(fr_host_finding) fr_host_findings;

/* The answers of a host, from lines "key=value" of its script. */
typedef struct fr_host_facts {
    char program[80], plan[80]; /* hashes; "": there is no such file */
    char mpi[80];               /* the first line of mpirun --version */
    double unix_s;              /* 0: not known */
    double shm_bytes, memory_bytes;
    char port[80]; /* "open", "closed"; "": not tried */
} fr_host_facts;

/* Unknown lines, such as greetings of a login shell, are ignored. */
void fr_doctor_read_facts(const char *text, fr_host_facts *out);

/*
 * Adds the findings of one host; `here` has those of this one.  The clock of
 * the other host is known as well as the probe was short.
 */
FR_CHECKED fr_status fr_doctor_judge_host(const fr_host *host,
                                          const fr_host_probe *probe,
                                          const fr_host_facts *here,
                                          double here_unix_s, const char *plan,
                                          fr_host_findings *out, fr_err *err);

/* All hosts; fr_vec_release(out) frees, also after a failure. */
FR_CHECKED fr_status fr_doctor_examine_hosts(const char *hostfile,
                                             const char *program,
                                             const char *plan,
                                             fr_host_findings *out,
                                             fr_err *err);

#endif
