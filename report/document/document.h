/*
 * document.h: an answer, before it is known how it will be shown.  A command
 * builds it once, in the order in which it is to be read; a renderer
 * (renderer.h) makes text, JSON, CSV or Markdown of it.
 *
 * Headings, lines and charts are for readers.  The members of the JSON object
 * are written to `data`, and only renderers for programs show them.  A table
 * with a key is for both.  Lines keep their places among each other, and so do
 * data; between the two there is no order.  Failure is sticky: build freely,
 * and look at fr_document_check() once, which rendering does too.
 */
#ifndef FR_REPORT_DOCUMENT_DOCUMENT_H
#define FR_REPORT_DOCUMENT_DOCUMENT_H

#include "core/document/json.h"
#include "report/document/table.h"

typedef enum fr_node_kind {
    FR_NODE_HEADING,
    FR_NODE_LINE,     /* a sentence, or more than one; "" is a blank line */
    FR_NODE_VERBATIM, /* lines that are neither wrapped nor changed */
    FR_NODE_TABLE,
    FR_NODE_PLOT,
    FR_NODE_LANES,
    FR_NODE_OPEN, /* of a container of data */
    FR_NODE_VALUE,
    FR_NODE_CLOSE
} fr_node_kind;

typedef struct fr_plot_point {
    double x, y;
    bool is_marked; /* the knee */
} fr_plot_point;

/* A curve on doubly logarithmic axes. */
typedef struct fr_plot {
    const char *x_title, *y_title;
    size_t n;
    fr_plot_point *points; /* ordered by x */
    double ideal_slope;    /* of the guide y = slope * x */
} fr_plot;

/* The kind of work in a span of a lane; charts.c has a glyph and a title for
 * each. */
typedef enum fr_lane_use {
    FR_USE_IDLE,
    FR_USE_FORWARD,
    FR_USE_BACKWARD,
    FR_USE_OPTIMIZER,
    FR_USE_COMMUNICATION,
    FR_USE_WAITING,
    FR_USE_OTHER,
    FR_USE_N
} fr_lane_use;

typedef struct fr_lane_span {
    int64_t begin_ps, end_ps;
    fr_lane_use use;
} fr_lane_span;

typedef struct fr_lane_row {
    int32_t rank;
    const char *name; /* of the lane */
    fr_vec(fr_lane_span) spans;
} fr_lane_row;

/* A step: a row for each rank and lane. */
typedef struct fr_lanes {
    int64_t end_ps;
    size_t n;
    fr_lane_row *rows;
    int64_t n_others; /* ranks that have no row */
    bool is_folded;   /* one rank stands for all that do the same */
} fr_lanes;

typedef struct fr_node {
    fr_node_kind kind;
    const char *key;   /* OPEN, VALUE: of an object's member, else NULL */
    const char *text;  /* HEADING, LINE, VERBATIM, VALUE */
    bool is_string;    /* VALUE: else a number, true, false or null */
    char container;    /* OPEN: '{', '[' or 'r', as fr_json_writer has them */
    union {            /* by the kind */
        size_t indent; /* LINE: of its further lines; 0: found in the line */
        fr_table *table;
        fr_plot *plot;
        fr_lanes *lanes;
    };
} fr_node;

/* Sets of those whom a part of an answer is for. */
typedef enum fr_audience {
    FR_FOR_READERS = 1,
    FR_FOR_DATA = 2,
    FR_FOR_ALL = 3
} fr_audience;

typedef struct fr_document {
    /* Parts that are added are for this audience; builders may set it for a
     * while, and set it back. */
    fr_audience audience;
    fr_json_writer data; /* the answer's object is open in it */
    fr_vec(fr_node) nodes;
    fr_arena arena;  /* of the nodes' texts */
    fr_buffer line;  /* the line that has not ended */
    const char *key; /* of the value that is due */
    fr_table lost;   /* takes the cells of tables that had no room */
    bool has_failed;
    /* An answer that is shown although the request fails, such as the nearest
     * plan where none fits. */
    bool has_answer;
    /* Its tables have none of the columns that one may ask for, which is then
     * no error. */
    bool ignores_columns;
} fr_document;

/* Opens the object of the answer with its schema; NULL: without one.  The
 * document must stay where it is in memory. */
void fr_document_init(fr_document *document, const char *schema);
void fr_document_release(fr_document *document); /* takes a zeroed one */
/* FR_OK, or FR_NO_MEMORY where a part of it is missing. */
FR_CHECKED fr_status fr_document_check(const fr_document *document,
                                       fr_err *err);

/* The table of a node, NULL where it is of another kind. */
static inline fr_table *fr_node_table(const fr_node *node)
{
    return node->kind == FR_NODE_TABLE ? node->table : NULL;
}

/* Adds each line of a text as a string to the open array of the data; the same
 * as an array of its own. */
void fr_document_add_lines(fr_document *document, const char *text);
void fr_document_put_lines(fr_document *document, const char *key,
                           const char *text);

/* The title of the answer, or of what follows. */
void fr_document_heading(fr_document *document, const char *format, ...)
    FR_PRINTF(2, 3);
/* Text for readers; each '\n' ends a line, and two are a blank line. */
void fr_document_printf(fr_document *document, const char *format, ...)
    FR_PRINTF(2, 3);
void fr_document_puts(fr_document *document, const char *text);
/* A line whose further lines are indented by that. */
void fr_document_hanging(fr_document *document, const char *text,
                         size_t indent);
void fr_document_verbatim(fr_document *document, const char *text);

/*
 * A table at this place, which the document owns; never NULL.  Rows may be
 * added until it is rendered.  Records are the array `key` of the data too,
 * where key is not NULL: an object for each row.
 */
fr_table *fr_document_table(fr_document *document, const char *const *headings);
fr_table *fr_document_records(fr_document *document, const char *key,
                              const fr_column *columns, size_t n);

/* The document owns the chart, made by malloc with all that it points at but
 * the names; NULL is a failure. */
void fr_document_plot(fr_document *document, fr_plot *plot);
void fr_document_lanes(fr_document *document, fr_lanes *lanes);
void fr_lanes_destroy(fr_lanes *lanes); /* takes NULL */

#endif
