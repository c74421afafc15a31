/* charts.h: curves and lanes drawn with characters. */
#ifndef FR_REPORT_DOCUMENT_CHARTS_H
#define FR_REPORT_DOCUMENT_CHARTS_H

#include "report/document/document.h"
#include "report/document/layout.h"

void fr_plot_draw(const fr_plot *plot, const fr_layout *layout, fr_buffer *out);
/* As wide as the layout. */
void fr_lanes_draw(const fr_lanes *lanes, const fr_layout *layout,
                   fr_buffer *out);

#endif
