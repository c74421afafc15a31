/*
 * collective_rows.h: the rows of tests/validate/collectives.csv, and the
 * catalogue clusters that they ran on.
 */
#ifndef FR_TESTS_COLLECTIVE_ROWS_H
#define FR_TESTS_COLLECTIVE_ROWS_H

#include "tests/check.h"

#include <stdlib.h>

#define CSV "tests/validate/collectives.csv"
enum { N_COLUMNS = 17, LINE = 1024 };
enum { SOURCE, REF, ROW, VERIFIED, OP, TOOL, NODES, GPUS, GPU, INTRA, INTER };
enum { ALGO = 11, SIZE, TIME, ALGBW, BUSBW, NOTES };

/* A guess for rows that name no hardware: eight A100, four HDR ports (their
 * busbw ends at 92 GB/s). */
CHECK_MAYBE_UNUSED
static const char hdr_4[] =
    "<cluster name=\"hdr\"><node-type id=\"n\" like=\"dgx-a100\">"
    "<nic count=\"4\" bandwidth=\"200Gb/s\" latency=\"5us\"/></node-type>"
    "<group id=\"n\" node-type=\"n\" count=\"4\"/>"
    "<fabric kind=\"switch\"/></cluster>";

/*
 * The rows time a call from the host while the GPU waits for it: Python with
 * events around each call, or one thread that launches eight kernels in turn.
 * That time of the host is no part of a step, whose kernels are queued ahead.
 * One number for all rows: between H200's 40 us and B200's 48 us below 512 KB
 * (44 us on A100) and the 19 us that nccl-tests needs with a process per GPU.
 */
static const double host_call_s = 25e-6;

/* The columns that distinguish rows, and the devices that they ran on. */
typedef struct machine {
    const char *label;
    const char *source, *gpu, *op;
    int nodes;           /* 0: any */
    const char *cluster; /* name or XML */
    bool is_guess;       /* the rows do not say: printed, not scored */
} machine;

CHECK_MAYBE_UNUSED
static const machine machines[] = {
    {"A100, ring", "ml-eng", "A100-SXM", "all_reduce", 1, "dgx-a100:1", false},
    {"H200, NVLS", "ml-eng", "H200-SXM", "all_reduce", 1, "dgx-h200:1", false},
    {"B200, NVLS", "ml-eng", "B200", "all_reduce", 1, "dgx-b200:1", false},
    {"4 x B200, EFA", "ml-eng", "B200", "all_reduce", 4, "p6-b200.48xlarge:4",
     false},
    /* Galvatron's A100 (arXiv 2211.13878, section 5); so fast is no other. */
    {"Galvatron", "Galv", "", "all_reduce", 1, "dgx-a100:1", false},
    {"Galvatron a2a", "Galv", "", "all_to_all", 1, "dgx-a100:1", false},
    {"4 nodes, guess", "ml-eng", "not stated", "all_reduce", 4, hdr_4, true},
};

enum { N_MACHINES = sizeof machines / sizeof machines[0] };

/* One line of CSV into fields, quotes taken off; the number of fields. */
CHECK_MAYBE_UNUSED
static int split(char *line, char *fields[N_COLUMNS])
{
    int n = 0;
    char *at = line;
    while (n < N_COLUMNS) {
        char *to = at;
        bool is_quoted = *at == '"';
        char *from = at + is_quoted;
        fields[n++] = to;
        while (*from && (is_quoted || *from != ',')) {
            if (*from == '"' && is_quoted && *++from != '"')
                is_quoted = false;
            else
                *to++ = *from++;
        }
        at = from + 1;
        bool is_last = *from == '\0';
        *to = '\0';
        if (is_last)
            break;
    }
    return n;
}

/* Galvatron's bandwidths are means over sizes that it does not state, and on
 * several nodes of a network that it does not name; B200's first two rows on
 * four nodes print 0.01 and 0.04 GB/s. */
typedef enum flaw { USABLE, NO_SIZE, NO_DIGITS } flaw;

/* Seconds; 0 and why when the row does not say. */
CHECK_MAYBE_UNUSED
static double measured_s(char *const *row, flaw *why)
{
    double bus = atof(row[BUSBW]), n = atof(row[GPUS]);
    *why = USABLE;
    if (row[SIZE][0] == '\0')
        *why = NO_SIZE;
    else if (row[TIME][0] == '\0' && bus < 0.1)
        *why = NO_DIGITS;
    if (*why != USABLE)
        return 0;
    if (row[TIME][0] != '\0')
        return atof(row[TIME]) * 1e-6;
    return atof(row[SIZE]) * 2.0 * (n - 1) / n / (bus * 1e9);
}

CHECK_MAYBE_UNUSED
static int machine_of(char *const *row)
{
    for (int i = 0; i < N_MACHINES; i++)
        if (strncmp(row[SOURCE], machines[i].source,
                    strlen(machines[i].source)) == 0 &&
            strncmp(row[GPU], machines[i].gpu, strlen(machines[i].gpu)) == 0 &&
            strcmp(row[OP], machines[i].op) == 0 &&
            (machines[i].nodes == 0 || machines[i].nodes == atoi(row[NODES])))
            return i;
    return -1;
}

#endif
