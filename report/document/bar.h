/* bar.h: a share as a bar of eighths of a character. */
#ifndef FR_REPORT_DOCUMENT_BAR_H
#define FR_REPORT_DOCUMENT_BAR_H

#include <stddef.h>

/* Characters of the longest bar, and its bytes. */
enum { FR_BAR_CELLS = 24, FR_BAR_BYTES = 4 * FR_BAR_CELLS };

/* The bar of a share in [0, 1] has n_cells characters where the share is 1;
 * writes at most n_buf bytes with the NUL; returns buf. */
const char *fr_bar(double share, int n_cells, char *buf, size_t n_buf);

#endif
