/* doctor_checks.h: what the checks of doctor.h share; private to this folder.
 */
#ifndef FR_CALIBRATE_DOCTOR_DOCTOR_CHECKS_H
#define FR_CALIBRATE_DOCTOR_DOCTOR_CHECKS_H

#include "calibrate/doctor/doctor.h"

typedef struct fr_examination {
    const char *root;
    fr_findings *out;
    bool has_failed; /* no memory */
} fr_examination;

typedef void (*fr_check_fn)(fr_examination *at);

/* Adds a finding; the text of what was found comes after `mend`. */
void fr_doctor_add(fr_examination *at, const char *check,
                   fr_finding_state state, const char *needed_for,
                   const char *mend, const char *found, ...) FR_PRINTF(6, 7);

/* The first line of a file below root without its end; false: there is none. */
bool fr_doctor_read(const fr_examination *at, const char *path, char *out,
                    size_t n);
/* Calls `visit` with each entry of a folder below root, sorted; `number` is
 * the visits' own. */
void fr_doctor_fold(fr_examination *at, const char *path,
                    void (*visit)(fr_examination *at, const char *name,
                                  double *number),
                    double *number);
/* Is a program of this name in PATH? */
bool fr_doctor_has_program(const char *name);

/* doctor_machine.c */
void fr_check_cores(fr_examination *at);
void fr_check_clocks(fr_examination *at);
void fr_check_memory(fr_examination *at);
void fr_check_huge_pages(fr_examination *at);
void fr_check_shared_memory(fr_examination *at);
void fr_check_locked_memory(fr_examination *at);
void fr_check_open_files(fr_examination *at);
void fr_check_temporary(fr_examination *at);
/* doctor_network.c */
void fr_check_interfaces(fr_examination *at);
void fr_check_infiniband(fr_examination *at);
/* doctor_software.c */
void fr_check_mpi(fr_examination *at);
void fr_check_blas(fr_examination *at);
void fr_check_convolutions(fr_examination *at);
void fr_check_gpus(fr_examination *at);
void fr_check_cuda(fr_examination *at);
void fr_check_cublaslt(fr_examination *at);
void fr_check_nccl(fr_examination *at);
void fr_check_peer_memory(fr_examination *at);
void fr_check_launchers(fr_examination *at);

/* Sums over this machine, for fr_doctor_compare(). */
int fr_doctor_count_gpus(fr_examination *at);
/* The fastest interface that is up, in bytes per second; 0: none is known. */
double fr_doctor_network_Bps(fr_examination *at);

#endif
