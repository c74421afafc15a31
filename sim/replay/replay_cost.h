/*
 * replay_cost.h: what instructions and runs of calls cost the ranks of a
 * colour, each asked for once and kept.
 *
 * Costs depend on the node's type and slowness and on where the groups sit.
 * Ranks with the same of all that are of one kind and share the costs of
 * instructions; those of runs are kept by colour.
 *
 * A run takes the sum of what its instructions take one after the other when
 * nothing but their like runs beside them, in whole picoseconds, and uses
 * cores, ports and networks as they do on average.
 */
#ifndef FR_SIM_REPLAY_REPLAY_COST_H
#define FR_SIM_REPLAY_REPLAY_COST_H

#include "sim/replay/replay_host.h"
#include "sim/replay/replay_links.h"
#include "sim/replay/replay_order.h"
#include "spec/result/prediction.h"

/* Errors with one key are the same everywhere, others are independent: an
 * operation on a type of device, or a kind of link. */
typedef uint16_t fr_error_key;

typedef struct fr_instr_cost {
    int64_t latency_ps;
    int64_t solo_ps; /* latency and work */
    int64_t host_ps; /* before, on its rank's host */
    bool is_known, has_work;
    uint8_t source; /* fr_cost_source */
    fr_error_key error_key;
    float rel_err;
    fr_demand demand;
} fr_instr_cost;

/* Costs of transfers between nodes of certain types, or within one. */
typedef struct fr_transfer_costs {
    uint32_t node_types;
    bool is_same_node;
    fr_instr_cost *instrs; /* [n_instrs] */
} fr_transfer_costs;

typedef struct fr_run_error {
    fr_error_key key;
    double ps; /* one standard error */
} fr_run_error;

typedef struct fr_run_cost {
    int64_t solo_ps;
    int64_t compute_ps; /* of that: not communication */
    int64_t part_ps[FR_PART_N];
    double compute_squares; /* sum of ps^2 between two meetings, of the parts
                               that draw their jitter by themselves */
    uint32_t i_collective;  /* the first; UINT32_MAX: none */
    uint32_t part_instr[FR_PART_N]; /* one instruction of each part */
    fr_vec(fr_run_error) errors;
    uint8_t source;
    fr_host_chain chain;
    fr_demand demand;
} fr_run_cost;

typedef struct fr_replay_costs {
    const fr_program *program;
    const fr_cost_model *model;
    const fr_rank_layout *layout;
    const fr_fold *fold;
    const fr_fabric_uses *fabric;
    int n_threads;
    fr_actors colors;        /* one actor per colour, for what a run takes */
    fr_replay_links links;   /* of them */
    fr_replay_order *orders; /* [n_rank_programs] */
    int32_t n_kinds;
    int32_t *kind_of_color;
    fr_instr_cost **instrs;              /* [n_kinds][n_instrs] */
    fr_vec(fr_transfer_costs) transfers; /* by types of nodes */
    fr_run_cost ***runs;  /* [n_colors][runs of the rank program] */
    fr_host_steps *hosts; /* [n_colors] */
} fr_replay_costs;

/* Prepares the costs; borrows all but `out`. */
FR_CHECKED fr_status fr_replay_costs_init(const fr_rank_layout *layout,
                                          const fr_cost_model *model,
                                          const fr_fold *fold,
                                          const fr_fabric_uses *fabric,
                                          fr_replay_costs *out, fr_err *err);
void fr_replay_costs_release(fr_replay_costs *costs);

/* Finds the cost of an instruction other than a transfer for a rank of the
 * colour on a lane. */
FR_CHECKED fr_status fr_replay_cost_instr(fr_replay_costs *costs, int32_t color,
                                          uint32_t i_instr, int lane,
                                          const fr_instr_cost **out,
                                          fr_err *err);
/* Finds the cost of a send of `rank` to its peer. */
FR_CHECKED fr_status fr_replay_cost_transfer(fr_replay_costs *costs,
                                             uint32_t i_instr, int lane,
                                             int32_t rank, int32_t peer,
                                             const fr_instr_cost **out,
                                             fr_err *err);
/* Finds the time of an instruction of a run that overlaps only instructions of
 * the same kind. */
FR_CHECKED fr_status fr_replay_cost_solo(fr_replay_costs *costs, int32_t color,
                                         uint32_t i_instr, int64_t *out_ps,
                                         fr_err *err);
/* Finds the time that the host needs to issue an instruction, and whether the
 * host is held there. */
FR_CHECKED fr_status fr_replay_cost_host(fr_replay_costs *costs, int32_t color,
                                         uint32_t i_instr, int lane,
                                         int64_t *out_ps, bool *is_held,
                                         fr_err *err);
/* Finds the cost of a run of the colour's program. */
FR_CHECKED fr_status fr_replay_cost_run(fr_replay_costs *costs, int32_t color,
                                        const fr_replay_step *step,
                                        const fr_run_cost **out, fr_err *err);

#endif
