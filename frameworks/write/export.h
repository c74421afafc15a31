/*
 * export.h: a plan as files of other programs.
 *
 * Two kinds of exporters.  That of a framework, whose row names it, writes what
 * holds the plan: arguments, a configuration, a script.  A launcher
 * (interop/export/) writes what starts it on many nodes: a batch script, a
 * manifest; it is given the exporter whose command it starts.  What can be said
 * of a plan has been checked when an exporter is called: it only writes.
 */
#ifndef FR_FRAMEWORKS_WRITE_EXPORT_H
#define FR_FRAMEWORKS_WRITE_EXPORT_H

#include "core/base/buffer.h"
#include "core/base/vec.h"
#include "frameworks/framework.h"
#include "plan/decide/plan_json.h"
#include "spec/cluster/cluster.h"

typedef struct fr_export_file {
    char name[64]; /* without folders */
    fr_buffer text;
    bool is_executable;
} fr_export_file;

typedef fr_vec(fr_export_file) fr_export_files;

/* The way in which the processes of a program are started. */
typedef enum fr_export_start {
    FR_START_TORCHRUN, /* one torchrun on each node starts a process per device,
                          which finds RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR
                          and MASTER_PORT in its environment */
    FR_START_MPI,      /* one process per rank under mpirun or srun */
    FR_START_NODE      /* one process on each node, for all devices of it */
} fr_export_start;

struct fr_exporter;

/* A variable of the environment by which the user says what no plan holds. */
typedef struct fr_export_setting {
    const char *name, *meaning;
    const char *value; /* the default; NULL: without it nothing is started */
    bool is_path;      /* of a file or folder: the user's is relative to the
                          directory of the call, the default to the folder of
                          the files */
} fr_export_setting;
enum { FR_EXPORT_SETTINGS_MAX = 3 }; /* two, and one without a name */
/* The setting of programs that start a training script of the user's. */
#define FR_EXPORT_SETTING_TRAIN                                                \
    {                                                                          \
        .name = "TRAIN", .meaning = "the training script",                     \
        .value = "train.py", .is_path = true                                   \
    }

/* Parts of a job that a file may lack; steps and learning rate are in each. */
typedef enum fr_export_part {
    FR_EXPORT_CHECKPOINTS,
    FR_EXPORT_DATA,
    FR_EXPORT_TIME_LIMIT,
    FR_EXPORT_PARTS_N
} fr_export_part;

typedef struct fr_export_request {
    const fr_plan_file *file;
    const char *plan_path;     /* as the user named it */
    const fr_cluster *cluster; /* NULL: none is named */
    int version;               /* of the target */
    const char *verdict;       /* of a plan that does not fit; NULL: it fits */
    const char *read_back;     /* text of an fr_read_back; NULL: none */
    /* The verdict on another plan; "": it fits, or is not known.  May be NULL.
     */
    void (*judge)(const struct fr_export_request *request, const fr_plan *plan,
                  char *buf, size_t n_buf);
    const void *judge_context;
    /* The results of fr_export_count_hosts().  Nodes are servers here: a rack
     * of one NVLink domain is several.  Their product is the plan's ranks; 0
     * ranks: they differ, from least_ranks to most_ranks. */
    int64_t n_nodes, n_ranks_per_node;
    int64_t least_ranks, most_ranks;
    bool has_gpus;                     /* a rank is a GPU; else a CPU's cores */
    bool is_one_device;                /* all ranks have the same */
    bool fills_nodes;                  /* no GPU of a node is left out */
    const struct fr_exporter *program; /* of a launcher; else NULL */
    const struct fr_exporter *writer; /* of the files, as fr_export() sets it */
    /* The results of fr_export_choose_job() (export_job.h). */
    double time_limit_s;        /* of a submission; 0: as long as it takes */
    const char *checkpoint_dir; /* NULL: the job has no checkpoints */
    int64_t checkpoint_every;   /* steps */
} fr_export_request;

typedef struct fr_exporter {
    const fr_target *target; /* of a framework, whose checks its plans pass;
                                NULL: it is a launcher */
    const char *name;        /* of a launcher */
    const char *summary;     /* for lists: "ds_config.json of DeepSpeed" */
    /* NULL: made from costs that are measured or modelled (nccl-csv). */
    FR_CHECKED fr_status (*write)(const fr_export_request *request,
                                  fr_export_files *out, fr_err *err);
    /* The program of a launcher that starts only one; NULL: --program says it.
     */
    const struct fr_exporter *program;
    /* For a program: how it is started, and the command of one process (under
     * torchrun: what follows torchrun's own options), without its end of line.
     * It runs in the folder that the files are in, and names them by "$folder",
     * a variable of the launcher's shell: where a node lacks the folder, srun
     * starts its tasks in /tmp (slurmd, "going to /tmp instead"). */
    fr_export_start start;
    /* For FR_START_NODE: its command takes --hosts H0,H1 --node I, by which
     * each process finds the others; without --node, I is mpirun's or Slurm's.
     */
    bool takes_hosts;
    /* For a program; the last has no name. */
    fr_export_setting settings[FR_EXPORT_SETTINGS_MAX];
    /* With these, or where its command has checkpoints, it saves when it gets
     * SIGUSR1, ends with 75, and continues when it is started again; NULL: it
     * cannot. */
    const char *resume_options;
    /* Why its files lack a part of the job, [FR_EXPORT_PARTS_N]; NULL: they
     * have it, or it is the other's, of program and launcher. */
    const char *left[FR_EXPORT_PARTS_N];
    bool may_save; /* a training script of the user's may have checkpoints */
    int n_kept;    /* newest checkpoints that stay; 0: all of them */
    /* For a launcher: its words for the time limit and for the devices of a
     * node; NULL: it has none. */
    const char *limit_word, *devices_word;
    /* Returns whether the files take the data of a job; left[FR_EXPORT_DATA] is
     * for other data.  NULL: it is for all. */
    bool (*takes_data)(const fr_job *job);
    FR_CHECKED fr_status (*put_command)(const fr_export_request *request,
                                        fr_buffer *out, fr_err *err);
} fr_exporter;

/* Name of --to: the target's, or its own. */
const char *fr_exporter_name_of(const fr_exporter *exporter);

/*
 * Checks the plan against the target and writes.  FR_INFEASIBLE says what the
 * target cannot.  fr_export_files_release() frees, also after a failure.
 */
FR_CHECKED fr_status fr_export(const fr_exporter *exporter,
                               const fr_export_request *request,
                               fr_export_files *out, fr_err *err);
void fr_export_files_release(fr_export_files *files);

/* Fills in the nodes that `file` takes of `cluster` (NULL: 8 ranks on each).
 * FR_INFEASIBLE when they do not fit. */
FR_CHECKED fr_status fr_export_count_hosts(fr_export_request *request,
                                           fr_err *err);

/* ---- for exporters ------------------------------------------------------- */

/* A new file at the end of *out, empty; NULL: no memory. */
fr_export_file *fr_export_add(fr_export_files *out, const char *name,
                              bool is_executable);

/* Moves a file whose text was made apart to the end of *out; its buffer is then
 * empty. */
FR_CHECKED fr_status fr_export_take(fr_export_files *out, fr_export_file *file,
                                    fr_err *err);

/*
 * Puts the head of every file, as comments behind `prefix` ("# "): the
 * plan, its job, what was predicted, and what the file does not hold of the
 * plan (fr_target_put_notes) and the job.
 */
void fr_export_put_header(const fr_export_request *request,
                          const fr_target *target, const char *prefix,
                          fr_buffer *out);

/* NCCL's environment for what the plan asks of it, as NAME=VALUE pairs. */
typedef struct fr_export_variable {
    char name[32], value[96];
} fr_export_variable;
enum { FR_EXPORT_VARIABLES_MAX = 16 };
/* Returns how many. */
int fr_export_environment(const fr_export_request *request,
                          fr_export_variable out[FR_EXPORT_VARIABLES_MAX]);

/* Behind `before`, NAME=VALUE as a word of a shell. */
void fr_export_put_variable(const fr_export_variable *variable,
                            const char *before, fr_buffer *out);

/* The same as lines "export NAME=VALUE" of a shell script. */
void fr_export_put_exports(const fr_export_request *request, fr_buffer *out);

/* The lines of a text behind `n_indent` blanks, as a block of YAML. */
void fr_export_put_indented(const char *text, int n_indent, fr_buffer *out);

/* ---- the folder: bash code under `set -euo pipefail` --------------------- */

/* In the directory of the call: a path that the user gave in variable NAME
 * becomes absolute; one that is unset stays so. */
void fr_export_put_callers_path(const char *name, fr_buffer *out);
/* The same for all settings of a program, of which required ones are there. */
void fr_export_put_settings(const fr_exporter *program, fr_buffer *out);
/* Sets "$folder" to that of the running script, whatever link it was called by,
 * and goes there. */
void fr_export_put_folder(fr_buffer *out);
/* Sets "$files" to the first n files; ends `script` where "$folder" lacks one
 * of them, else goes there; fr_export_put_folder() with both. */
void fr_export_put_files(const fr_export_files *files, size_t n,
                         fr_buffer *out);
void fr_export_put_files_check(const char *script, fr_buffer *out);
void fr_export_put_launcher_folder(const fr_export_files *files, size_t n,
                                   const char *script, fr_buffer *out);
/* Behind it: defaults of the settings, and all are exported. */
void fr_export_put_defaults(const fr_exporter *program, fr_buffer *out);
/* Ends `script` where the user's TRAIN is no file. */
void fr_export_put_own_script_check(const char *script, fr_buffer *out);

/* ---- what all launchers write -------------------------------------------- */

/* FR_INFEASIBLE where nodes have different numbers of ranks, which `who` cannot
 * say. */
FR_CHECKED fr_status fr_export_check_even(const fr_export_request *request,
                                          const char *who, fr_err *err);
/* The same of torchrun, which starts a process for each GPU that there is where
 * nodes differ and are filled. */
FR_CHECKED fr_status fr_export_check_torchrun(const fr_export_request *request,
                                              fr_err *err);
/* Its --nproc_per_node: a number, or "gpu" where nodes differ.  Returns buf. */
char *fr_export_ranks_word(const fr_export_request *request, char *buf,
                           size_t n_buf);

/* Options by which a task finds those of the other nodes, each behind a blank:
 * torchrun's own, and those of a program that takes hosts. */
typedef struct fr_export_peers {
    const char *torchrun, *program;
} fr_export_peers;

/* Is the program told of the hosts?  On one node there are no others. */
bool fr_export_has_hosts(const fr_export_request *request);

/*
 * The command that one task of a launcher runs: torchrun with the program's
 * command behind it, or that command alone.
 */
FR_CHECKED fr_status fr_export_put_task(const fr_export_request *request,
                                        fr_export_peers peers, fr_buffer *out,
                                        fr_err *err);
/* Tasks that a launcher starts on each node: one for torchrun, or a rank. */
int64_t fr_export_tasks_per_node(const fr_export_request *request);
/* Returns the name of the job: the model, in lower-case letters, digits and
 * '-'. */
char *fr_export_job_name(const fr_export_request *request, char *buf,
                         size_t n_buf);
#endif
