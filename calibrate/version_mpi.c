/* version_mpi.c: what MPI says of itself (versions.h). */
#include "calibrate/versions.h"

#ifdef FR_HAVE_MPI
#include <mpi.h>
#include <stdio.h>
#include <string.h>

void fr_version_mpi(char *out, size_t n)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n_text;

    /* Allowed before MPI_Init. */
    if (MPI_Get_library_version(text, &n_text) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    snprintf(out, n, "%s", text);
}
#else
void fr_version_mpi(char *out, size_t n)
{
    if (n > 0)
        out[0] = '\0';
}
#endif
