/*
 * lower_pass.h: a layer's pass, forward or backward, that is cut into several
 * calls, with collectives beside some of them.
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_PASS_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_PASS_H

#include "program/lower/segment/lower_emit.h"

enum { LOWER_PASS_CALLS = 160, LOWER_PIECES = 128, LOWER_NO_PIECE = 255 };

/* A call of a pass; pieces that it reads and makes. */
typedef struct lower_pass_call {
    fr_lane lane;
    uint32_t i_segment;
    uint8_t in, out;
    bool is_added;                        /* to the piece that it makes */
    bool has_saved, has_carry, has_input; /* on other lanes: read; EP: both */
} lower_pass_call;

struct lower_pass {
    char name[24];
    uint16_t n_calls;
    uint8_t n_pieces;
    lower_pass_call calls[LOWER_PASS_CALLS];
    uint64_t piece_bytes[LOWER_PIECES];
    uint64_t carry_bytes;
};

/* Instructions that are written between begin and end belong to the pass.  Its
 * scratch begins at first_bytes of CARRY. */
void lower_pass_begin(lower_context *context, lower_pass *pass,
                      const char *name, const char *direction,
                      uint64_t first_bytes);
void lower_pass_end(lower_context *context);
/* Begins the next call on the rank's own lane: the pieces that it reads and
 * makes. */
void lower_pass_compute(lower_context *context, uint8_t in, uint8_t out);
/* Around an exchange of experts' tokens from src to dst (lane EP). */
bool lower_is_exchange_overlapped(const lower_context *context);
void lower_pass_exchange(lower_context *context, fr_ref src, fr_ref dst);

#endif
