/* doctor.c: the table of checks. */
#include "calibrate/doctor/doctor_checks.h"

static const fr_check_fn checks[] = {
    fr_check_cores,        fr_check_clocks,        fr_check_memory,
    fr_check_huge_pages,   fr_check_shared_memory, fr_check_locked_memory,
    fr_check_open_files,   fr_check_temporary,     fr_check_interfaces,
    fr_check_infiniband,   fr_check_mpi,           fr_check_blas,
    fr_check_convolutions, fr_check_gpus,          fr_check_cuda,
    fr_check_cublaslt,     fr_check_nccl,          fr_check_peer_memory,
    fr_check_launchers,
};

fr_status fr_doctor_examine(const char *root, fr_findings *out, fr_err *err)
{
    fr_examination at = {.root = root, .out = out};
    for (size_t i = 0; i < FR_LENGTH(checks); i++)
        checks[i](&at);
    return at.has_failed ? fr_fail_no_memory(err) : FR_OK;
}
