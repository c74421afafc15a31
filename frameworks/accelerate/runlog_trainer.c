/*
 * runlog_trainer.c: the Trainer of Hugging Face, which runs on Accelerate: what
 * it prints at the end of training, and the same in trainer_state.json
 * (transformers, trainer.py, _inner_training_loop; trainer_utils.py,
 * speed_metrics).  Its lines of steps have no time.
 */
#include "frameworks/log/runlog_format.h"

#include <string.h>

/* "  Instantaneous batch size per device = 8". */
static void read_trainer(fr_runlog_reader *reader, const char *line)
{
    static const struct {
        const char *word;
        fr_runlog_fact fact;
    } sizes[] = {
        {"Instantaneous batch size per device = ", FR_RUNLOG_MBS},
        {"Total train batch size (w. parallel, distributed & accumulation) = ",
         FR_RUNLOG_GBS},
        {"Gradient Accumulation steps = ", FR_RUNLOG_ACCUM},
    };
    for (size_t i = 0; i < FR_LENGTH(sizes); i++) {
        const char *at = strstr(line, sizes[i].word);
        if (at == NULL)
            continue;
        at += strlen(sizes[i].word);
        fr_runlog_set(reader, sizes[i].fact, at, strspn(at, "0123456789"));
    }
}

/* A dictionary, JSON, and the aligned table of log_metrics(). */
#define RATES(word, blanks, measure, is_inverse)                               \
    {"'" word "': ", measure, 1, is_inverse},                                  \
        {"\"" word "\": ", measure, 1, is_inverse},                            \
    {                                                                          \
        word blanks "= ", measure, 1, is_inverse                               \
    }

const fr_runlog_format fr_runlog_trainer = {
    .what = "the Trainer of Hugging Face",
    .cell = "Hugging Face Trainer",
    .step_mark = "train_steps_per_second",
    .numbers = {RATES("train_steps_per_second", "   ", FR_RUNLOG_STEP_S, true),
                RATES("train_samples_per_second", " ", FR_RUNLOG_SAMPLES_PER_S,
                      false)},
    .note = "the mean over the whole run, with its start, evaluations and "
            "checkpoints",
    .is_weak = true,
    .read = read_trainer,
};
