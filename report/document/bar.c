/* bar.c: see bar.h. */
#include "report/document/bar.h"

#include <math.h>
#include <stdio.h>

const char *fr_bar(double share, int n_cells, char *buf, size_t n_buf)
{
    static const char *const eighths[] = {"",  "▏", "▎", "▍",
                                          "▌", "▋", "▊", "▉"};
    double clean = isfinite(share) ? fmin(fmax(share, 0.0), 1.0) : 0.0;
    int n = (int)lround(clean * n_cells * 8);
    size_t used = 0;
    buf[0] = '\0';
    for (; n >= 8 && used + 4 < n_buf; n -= 8)
        used += (size_t)snprintf(buf + used, n_buf - used, "█");
    if (n > 0 && n < 8)
        snprintf(buf + used, n_buf - used, "%s", eighths[n]);
    return buf;
}
