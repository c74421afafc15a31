/* runlog_case.c: the columns of a row of cases, from what a log said. */
#include "core/base/text.h"
#include "core/numbers/stats.h"
#include "frameworks/log/runlog_format.h"
#include "spec/catalog/catalog.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N_FIRST_MAX = 20, RANKS_MAX = 1 << 24 };

static void put(fr_runlog *log, fr_case_column column, const char *format, ...)
    FR_PRINTF(3, 4);

static void put(fr_runlog *log, fr_case_column column, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(log->field[column], FR_RUNLOG_FIELD, format, args);
    va_end(args);
}

static void put_count(fr_runlog *log, fr_case_column column, int64_t value)
{
    if (value > 0)
        put(log, column, "%lld", (long long)value);
}

/* ---- steps -------------------------------------------------------------- */

/* The first tenth, at most 20 lines, warms up. */
static size_t n_first_of(size_t n)
{
    size_t n_first = (n + 9) / 10;
    n_first = n_first < N_FIRST_MAX ? n_first : N_FIRST_MAX;
    return n > 1 ? n_first : 0;
}

static double steady_median(fr_runlog_values *values)
{
    size_t n_first = n_first_of(values->n);
    return values->n > 0
               ? fr_stats_median(values->at + n_first, values->n - n_first)
               : 0;
}

/* Scales a rate to seconds where a line has no time of its own. */
static void find_times(fr_runlog_reader *reader, double batch, double seq,
                       double world, fr_runlog *log)
{
    static const fr_runlog_measure measures[] = {
        FR_RUNLOG_STEP_S, FR_RUNLOG_SAMPLES_PER_S, FR_RUNLOG_TOKENS_PER_S,
        FR_RUNLOG_TOKENS_PER_S_PER_GPU};
    const double amounts[] = {1, batch, batch * seq,
                              world > 0 ? batch * seq / world : 0};
    for (size_t i = 0; i < FR_LENGTH(measures); i++) {
        fr_runlog_values *values = &reader->values[measures[i]];
        size_t n_first = n_first_of(values->n);
        size_t n = values->n - n_first;
        if (values->n == 0)
            continue;
        double *at = values->at + n_first;
        log->steps.n_lines = values->n_seen;
        log->steps.n_first = n_first * values->stride;
        if (amounts[i] <= 0)
            continue;
        for (size_t k = 0; k < n && i > 0; k++)
            at[k] = amounts[i] / at[k];
        double median_s = fr_stats_median(at, n);
        double mad_s = fr_stats_mad(at, n);
        for (size_t k = 0; k < n; k++)
            log->steps.n_outliers +=
                mad_s > 0 && fabs(at[k] - median_s) > 5 * mad_s;
        log->steps.median_s = median_s;
        log->steps.p5_s = fr_stats_quantile(at, n, 0.05);
        log->steps.p95_s = fr_stats_quantile(at, n, 0.95);
        log->steps.slowest_s = fr_stats_max(at, n);
        return;
    }
}

/* ---- configuration ------------------------------------------------------ */

static int64_t or_one(int64_t value)
{
    return value > 0 ? value : 1;
}

static bool is_said(const fr_runlog_reader *r, fr_runlog_fact fact)
{
    return r->fact[fact][0] != '\0';
}

/* A degree that the log gives, "None" being 1; else it stays unknown. */
static void put_degree(const fr_runlog_reader *r, fr_runlog_fact fact,
                       fr_case_column column, fr_runlog *log)
{
    if (is_said(r, fact))
        put_count(log, column, or_one(fr_runlog_count(r, fact)));
}

/* Chunks of a stage: one without a pipeline, else what the log says. */
static void put_chunks(const fr_runlog_reader *r, fr_runlog *log)
{
    const int64_t pp = fr_runlog_count(r, FR_RUNLOG_PP);
    const int64_t n_each = fr_runlog_count(r, FR_RUNLOG_VSTAGE_LAYERS);
    int64_t vpp = fr_runlog_count(r, FR_RUNLOG_VPP);
    if (vpp == 0 && n_each > 0 && pp > 1)
        vpp = fr_runlog_count(r, FR_RUNLOG_LAYERS) / pp / n_each;
    if (pp == 1 || is_said(r, FR_RUNLOG_VPP) ||
        is_said(r, FR_RUNLOG_VSTAGE_LAYERS))
        put_count(log, FR_CASE_VPP, pp > 1 ? or_one(vpp) : 1);
    if (pp > 1 && r->format == &fr_runlog_megatron)
        put(log, FR_CASE_SCHEDULE, "%s", vpp > 1 ? "interleaved" : "1F1B");
}

/* World and dp, each from the other where it is not said and all other degrees
 * are: those of tensor and pipeline, and of context where their product leaves
 * room for it. */
static void put_degrees(const fr_runlog_reader *r, fr_runlog *log,
                        int64_t *world_out, int64_t *dp_out)
{
    int64_t tp = or_one(fr_runlog_count(r, FR_RUNLOG_TP));
    int64_t pp = or_one(fr_runlog_count(r, FR_RUNLOG_PP));
    int64_t cp = or_one(fr_runlog_count(r, FR_RUNLOG_CP));
    int64_t world = fr_runlog_count(r, FR_RUNLOG_WORLD);
    int64_t dp = fr_runlog_count(r, FR_RUNLOG_DP);
    int64_t shard = fr_runlog_count(r, FR_RUNLOG_SHARD);
    double of_gpu = r->last[FR_RUNLOG_TOKENS_PER_S_PER_GPU];
    int64_t n_copies = or_one(fr_runlog_count(r, FR_RUNLOG_REPLICATE));
    double n_all = (double)tp * (double)pp * (double)cp;
    double dp_all = (double)shard * (double)n_copies;
    double from_rates =
        of_gpu > 0 ? r->last[FR_RUNLOG_TOKENS_PER_S] / of_gpu : 0;
    int64_t n_model = n_all < RANKS_MAX ? tp * pp * cp : 1;
    if (dp == 0 && dp_all < RANKS_MAX)
        dp = shard * n_copies;
    const bool is_dp_said = dp > 0;
    const bool is_split_said =
        is_said(r, FR_RUNLOG_TP) && is_said(r, FR_RUNLOG_PP);
    if (world == 0 && (double)dp * n_all < RANKS_MAX)
        world = dp * n_model;
    if (world == 0 && from_rates < RANKS_MAX)
        world = llround(from_rates);
    if (dp == 0 && world % n_model == 0)
        dp = world / n_model;
    put_count(log, FR_CASE_NUM_GPUS, world);
    if (is_dp_said || is_split_said)
        put_count(log, FR_CASE_DP, dp);
    put_degree(r, FR_RUNLOG_TP, FR_CASE_TP, log);
    put_degree(r, FR_RUNLOG_PP, FR_CASE_PP, log);
    put_degree(r, FR_RUNLOG_CP, FR_CASE_CP, log);
    put_degree(r, FR_RUNLOG_EP, FR_CASE_EP, log);
    put_chunks(r, log);
    put_count(log, FR_CASE_ETP, fr_runlog_count(r, FR_RUNLOG_ETP));
    /* Versions without context parallelism do not name it. */
    if (is_dp_said && is_split_said && !is_said(r, FR_RUNLOG_CP) &&
        world == dp * tp * pp)
        put_count(log, FR_CASE_CP, 1);
    *world_out = world;
    *dp_out = dp;
}

static void put_batch(const fr_runlog_reader *r, int64_t dp, fr_runlog *log,
                      int64_t *batch_out)
{
    int64_t batch = fr_runlog_count(r, FR_RUNLOG_GBS);
    int64_t mbs = fr_runlog_count(r, FR_RUNLOG_MBS);
    int64_t n_accum = fr_runlog_count(r, FR_RUNLOG_ACCUM);
    int64_t seq = fr_runlog_count(r, FR_RUNLOG_SEQ);
    double rate = r->last[FR_RUNLOG_SAMPLES_PER_S],
           step_s = r->last[FR_RUNLOG_STEP_S];
    bool is_small = mbs < 1 << 20 && n_accum < 1 << 20 && dp < 1 << 20;
    if (r->last[FR_RUNLOG_BATCH] > 0 && r->last[FR_RUNLOG_BATCH] < 1e12)
        batch = llround(r->last[FR_RUNLOG_BATCH]);
    if (batch == 0 && seq > 0)
        batch = fr_runlog_count(r, FR_RUNLOG_GBS_TOKENS) / seq;
    if (batch == 0 && mbs > 0 && dp > 0 && n_accum > 0 && is_small)
        batch = mbs * dp * n_accum;
    /* Composer's rates are of the same steps. */
    if (batch == 0 && r->format == &fr_runlog_foundry && rate > 0 &&
        step_s > 0 && rate * step_s < 1e12)
        batch = llround(rate * step_s);
    put_count(log, FR_CASE_GBS, batch);
    put_count(log, FR_CASE_MBS, mbs);
    if (batch == 0 || mbs == 0)
        put_count(log, FR_CASE_GRAD_ACCUM, n_accum);
    put_count(log, FR_CASE_SEQ, seq);
    *batch_out = batch;
}

/* A model of Megatron's arguments has no name: its family has what the
 * columns have no place for. */
static void put_family(const fr_runlog_reader *r, fr_runlog *log)
{
    bool is_llama = fr_runlog_is(r, FR_RUNLOG_GATED) &&
                    strcmp(fr_runlog_text(r, FR_RUNLOG_NORM), "RMSNorm") == 0;
    bool is_rope = strcmp(fr_runlog_text(r, FR_RUNLOG_ROPE), "rope") == 0;
    const char *bias = fr_runlog_text(r, FR_RUNLOG_BIAS);
    put(log, FR_CASE_MODEL, "%s%s%s%s%s", is_llama ? "Llama" : "GPT",
        !is_llama && is_rope ? " rope" : "",
        !is_llama && fr_runlog_is(r, FR_RUNLOG_UNTIED) ? " untie" : "",
        !is_llama && strcmp(bias, "False") == 0 ? " disable bias" : "",
        fr_runlog_is(r, FR_RUNLOG_QK_NORM) ? " qk layernorm" : "");
    if (fr_runlog_is(r, FR_RUNLOG_LATENT))
        put(log, FR_CASE_ARCH, "MLA");
}

static void put_model(const fr_runlog_reader *r, fr_runlog *log)
{
    int64_t hidden = fr_runlog_count(r, FR_RUNLOG_HIDDEN);
    int64_t ffn = fr_runlog_count(r, FR_RUNLOG_FFN);
    int64_t ratio = fr_runlog_count(r, FR_RUNLOG_EXPANSION);
    int64_t moe_ffn = fr_runlog_count(r, FR_RUNLOG_MOE_FFN);
    int64_t shared = fr_runlog_count(r, FR_RUNLOG_SHARED_FFN);
    bool is_argued = fr_runlog_text(r, FR_RUNLOG_GATED)[0] != '\0';
    bool is_grouped = !is_argued || fr_runlog_is(r, FR_RUNLOG_IS_GROUPED);
    if (fr_runlog_text(r, FR_RUNLOG_MODEL)[0] != '\0')
        put(log, FR_CASE_MODEL, "%s", fr_runlog_text(r, FR_RUNLOG_MODEL));
    else if (r->format == &fr_runlog_foundry)
        put(log, FR_CASE_MODEL, "MPT");
    else if (is_argued)
        put_family(r, log);
    put_count(log, FR_CASE_LAYERS, fr_runlog_count(r, FR_RUNLOG_LAYERS));
    put_count(log, FR_CASE_HIDDEN, hidden);
    put_count(log, FR_CASE_HEADS, fr_runlog_count(r, FR_RUNLOG_HEADS));
    if (is_grouped)
        put_count(log, FR_CASE_KV_HEADS,
                  fr_runlog_count(r, FR_RUNLOG_KV_HEADS));
    put_count(log, FR_CASE_FFN,
              ffn > 0 || hidden > 1 << 30 || ratio > 1 << 20 ? ffn
                                                             : ratio * hidden);
    if (is_argued)
        put(log, FR_CASE_FFN_MATRICES,
            fr_runlog_is(r, FR_RUNLOG_GATED) ? "3" : "2");
    int64_t vocab = fr_runlog_count(r, FR_RUNLOG_PADDED_VOCAB);
    put_count(log, FR_CASE_VOCAB,
              vocab > 0 ? vocab : fr_runlog_count(r, FR_RUNLOG_VOCAB));
    put_count(log, FR_CASE_EXPERTS, fr_runlog_count(r, FR_RUNLOG_EXPERTS));
    if (log->field[FR_CASE_EXPERTS][0] == '\0')
        return;
    put_count(log, FR_CASE_TOPK, fr_runlog_count(r, FR_RUNLOG_TOPK));
    put_count(log, FR_CASE_MOE_FFN, moe_ffn);
    if (shared > 0 && moe_ffn > 0)
        put_count(log, FR_CASE_SHARED_EXPERTS, shared / moe_ffn);
}

static void put_recompute(const fr_runlog_reader *r, fr_runlog *log)
{
    const char *how = fr_runlog_text(r, FR_RUNLOG_RECOMPUTE);
    const char *method = fr_runlog_text(r, FR_RUNLOG_RECOMPUTE_METHOD);
    char modules[FR_RUNLOG_FIELD], *to = modules;
    const char *from = fr_runlog_text(r, FR_RUNLOG_RECOMPUTE_MODULES);
    for (; *from != '\0'; from++)
        if (strchr("[]'\"", *from) == NULL)
            *to++ = *from;
    *to = '\0';
    if (r->fact[FR_RUNLOG_RECOMPUTE][0] == '\0')
        return; /* the log is silent */
    if (strcasecmp(how, "true") == 0)
        put(log, FR_CASE_RECOMPUTE, "full");
    else if (*how == '\0' || strcasecmp(how, "false") == 0)
        put(log, FR_CASE_RECOMPUTE, "none");
    else if (strcmp(how, "full") == 0 && *method != '\0')
        put(log, FR_CASE_RECOMPUTE, "full (%.40s %.20s)", method,
            fr_runlog_text(r, FR_RUNLOG_RECOMPUTE_LAYERS));
    else if (strcmp(how, "selective") == 0 && modules[0] != '\0')
        put(log, FR_CASE_RECOMPUTE, "selective (%.120s)", modules);
    else
        put(log, FR_CASE_RECOMPUTE, "%.100s", how);
}

static void put_precision(const fr_runlog_reader *r, fr_runlog *log)
{
    const char *fp8 = fr_runlog_text(r, FR_RUNLOG_FP8);
    const char *recipe = fr_runlog_text(r, FR_RUNLOG_FP8_RECIPE);
    const char *said = fr_runlog_text(r, FR_RUNLOG_PRECISION);
    bool is_fp8 = *fp8 != '\0' && strcmp(fp8, "False") != 0;
    if (is_fp8)
        put(log, FR_CASE_PRECISION, "%s",
            strcmp(recipe, "mxfp8") == 0        ? "MXFP8"
            : strcmp(recipe, "tensorwise") == 0 ? "FP8 tensorwise"
            : strcmp(recipe, "delayed") == 0    ? "FP8 delayed"
                                                : "FP8");
    else if (*said != '\0')
        put(log, FR_CASE_PRECISION, "%.60s%s%.60s", said,
            fr_runlog_text(r, FR_RUNLOG_MIXED)[0] != '\0' ? " MP=" : "",
            fr_runlog_text(r, FR_RUNLOG_MIXED));
    else if (fr_runlog_is(r, FR_RUNLOG_BF16))
        put(log, FR_CASE_PRECISION, "bf16");
    else if (fr_runlog_is(r, FR_RUNLOG_FP16))
        put(log, FR_CASE_PRECISION, "fp16");
    else if (fr_runlog_text(r, FR_RUNLOG_BF16)[0] != '\0')
        put(log, FR_CASE_PRECISION, "fp32");
}

static void put_sharding(const fr_runlog_reader *r, fr_runlog *log)
{
    const char *fsdp = fr_runlog_text(r, FR_RUNLOG_FSDP);
    const char *zero = fr_runlog_text(r, FR_RUNLOG_ZERO);
    int64_t shard = fr_runlog_count(r, FR_RUNLOG_SHARD);
    bool is_fsdp = *fsdp != '\0' && strcmp(fsdp, "False") != 0;
    if (is_fsdp && fr_runlog_count(r, FR_RUNLOG_REPLICATE) > 1)
        put(log, FR_CASE_ZERO_STAGE, "HYBRID_SHARD over %lld",
            (long long)shard);
    else if (is_fsdp)
        put(log, FR_CASE_ZERO_STAGE, "%.60s",
            strcmp(fsdp, "True") == 0 ? "FSDP" : fsdp);
    else if (fr_runlog_is(r, FR_RUNLOG_DISTRIBUTED_OPTIMIZER))
        put(log, FR_CASE_ZERO_STAGE, "1 (distributed optimizer)");
    else if (*zero >= '0' && *zero <= '3')
        put(log, FR_CASE_ZERO_STAGE, "%c", *zero);
    else if (fr_runlog_text(r, FR_RUNLOG_DISTRIBUTED_OPTIMIZER)[0] != '\0')
        put(log, FR_CASE_ZERO_STAGE, "0");
}

static void put_other(const fr_runlog_reader *r, fr_runlog *log)
{
    static const struct {
        fr_runlog_fact fact;
        const char *name;
    } switches[] = {{FR_RUNLOG_OVERLAP_GRAD, "overlap_grad_reduce"},
                    {FR_RUNLOG_OVERLAP_PARAM, "overlap_param_gather"},
                    {FR_RUNLOG_TP_OVERLAP, "tp_comm_overlap"}};
    static const struct {
        fr_runlog_fact fact;
        const char *name;
    } words[] = {{FR_RUNLOG_CUDA_GRAPHS, "CUDA graphs"},
                 {FR_RUNLOG_DEEPEP, "deepep"},
                 {FR_RUNLOG_EP_OVERLAP, "1f1b overlap"},
                 {FR_RUNLOG_COMPILED, "compile"},
                 {FR_RUNLOG_OFFLOAD, "optimizer offload"}};
    fr_buffer text;
    double dropout;
    fr_buffer_init(&text);
    for (size_t i = 0; i < FR_LENGTH(switches); i++)
        if (fr_runlog_text(r, switches[i].fact)[0] != '\0')
            fr_buffer_printf(
                &text, "%s%s=%s", text.n > 0 ? "; " : "", switches[i].name,
                fr_runlog_is(r, switches[i].fact) ? "True" : "False");
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (fr_runlog_is(r, words[i].fact))
            fr_buffer_printf(&text, "%s%s", text.n > 0 ? "; " : "",
                             words[i].name);
    if (fr_runlog_parse_number(fr_runlog_text(r, FR_RUNLOG_DROPOUT),
                               &dropout) &&
        dropout == 0)
        fr_buffer_printf(&text, "%sdropout=0", text.n > 0 ? "; " : "");
    put(log, FR_CASE_OTHER_OPTS, "%s", fr_buffer_text(&text));
    fr_buffer_release(&text);
    if (fr_runlog_text(r, FR_RUNLOG_SP)[0] != '\0')
        put(log, FR_CASE_SP, fr_runlog_is(r, FR_RUNLOG_SP) ? "yes" : "no");
    if (fr_runlog_is(r, FR_RUNLOG_FLASH))
        put(log, FR_CASE_FLASH_ATTN, "yes");
}

/* ---- the row ------------------------------------------------------------ */

static void put_measured(fr_runlog_reader *r, fr_runlog *log)
{
    double tflops = steady_median(&r->values[FR_RUNLOG_TFLOPS]);
    double per_gpu = steady_median(&r->values[FR_RUNLOG_TOKENS_PER_S_PER_GPU]);
    double samples = steady_median(&r->values[FR_RUNLOG_SAMPLES_PER_S]);
    double allocated = r->last[FR_RUNLOG_ALLOCATED_GIB];
    double reserved = r->last[FR_RUNLOG_RESERVED_GIB];
    if (log->steps.median_s > 0)
        put(log, FR_CASE_STEP_TIME_S, "%.6g", log->steps.median_s);
    else if (per_gpu > 0)
        put(log, FR_CASE_TOKENS_PER_S_PER_GPU, "%.6g", per_gpu);
    else if (samples > 0)
        put(log, FR_CASE_SAMPLES_PER_S, "%.6g", samples);
    if (tflops > 0 && r->format->tflops_kind != NULL) {
        put(log, FR_CASE_TFLOPS_PER_GPU, "%.5g", tflops);
        put(log, FR_CASE_TFLOPS_KIND, "%s", r->format->tflops_kind);
    }
    if (allocated > 0 || reserved > 0) {
        put(log, FR_CASE_PEAK_MEM_GIB, "%.5g",
            allocated > 0 ? allocated : reserved);
        put(log, FR_CASE_MEM_KIND, "%s, %s",
            allocated > 0 ? "allocated" : "reserved",
            r->is_both ? "rank 0" : r->format->memory_kind);
    }
}

/* "NVIDIA H100 80GB HBM3" is a device of the catalogue. */
static void put_gpu(const fr_runlog_reader *r, fr_runlog *log)
{
    const char *product = fr_runlog_text(r, FR_RUNLOG_GPU);
    const fr_catalog_device *device =
        *product != '\0' ? fr_catalog_device_find_product(product) : NULL;
    if (device != NULL)
        put(log, FR_CASE_GPU, "%s", device->type.id);
    else
        put(log, FR_CASE_GPU, "%s", product);
    put(log, FR_CASE_GPU_MEM_GB, "%s", fr_runlog_text(r, FR_RUNLOG_GPU_MEM_GB));
}

static void put_notes(const fr_runlog_reader *r, fr_runlog *log)
{
    const fr_runlog_steps *steps = &log->steps;
    if (r->n_ramp > 0)
        fr_buffer_printf(&log->notes,
                         "%llu steps before the last global batch are left "
                         "out\n",
                         (unsigned long long)r->n_ramp);
    if (r->format->note != NULL)
        fr_buffer_printf(&log->notes, "%s\n", r->format->note);
    else if (steps->n_lines == 1)
        fr_buffer_puts(&log->notes, "one step only: what warms up is in it\n");
    if (steps->n_outliers > 0)
        fr_buffer_printf(&log->notes,
                         "%llu of %llu steady steps are outliers, the slowest "
                         "takes %.4g s; the median stands\n",
                         (unsigned long long)steps->n_outliers,
                         (unsigned long long)(steps->n_lines - steps->n_first),
                         steps->slowest_s);
    if (r->n_bad > 0)
        fr_buffer_printf(&log->notes,
                         "%llu numbers make no sense and are left out\n",
                         (unsigned long long)r->n_bad);
}

fr_status fr_runlog_finish(fr_runlog_reader *r, fr_runlog *out, fr_err *err)
{
    int64_t world, dp, batch;
    const char *name = fr_infile_name(r->lines.stream);
    if (r->format == NULL)
        return fr_fail(err, FR_INPUT,
                       "%s: no step of a known framework; Megatron-LM, "
                       "DeepSpeed, torchtitan, NeMo, nanotron, llm-foundry, "
                       "the Trainer of Hugging Face, torchtune and Lightning "
                       "are known",
                       name);
    fr_runlog *log;
    FR_TRY_CALLOC(log, 1, err);
    fr_buffer_init(&log->notes);
    log->format = r->framework->name;
    put(log, FR_CASE_FRAMEWORK, "%s",
        r->is_both ? "Megatron-DeepSpeed" : r->format->cell);
    put_degrees(r, log, &world, &dp);
    put_batch(r, dp, log, &batch);
    put_model(r, log);
    put_recompute(r, log);
    put_precision(r, log);
    put_sharding(r, log);
    put_other(r, log);
    put_gpu(r, log);
    find_times(r, (double)batch, (double)fr_runlog_count(r, FR_RUNLOG_SEQ),
               (double)world, log);
    put_measured(r, log);
    put_notes(r, log);
    fr_status status = fr_buffer_check(&log->notes, err);
    if (status == FR_OK && log->steps.n_lines == 0)
        status = fr_fail(err, FR_INPUT,
                         "%s: no step with a time that makes sense", name);
    if (status == FR_OK)
        *out = *log;
    else
        fr_buffer_release(&log->notes);
    free(log);
    return status;
}

void fr_runlog_note_missing(fr_runlog *log)
{
    static const fr_case_column wanted[] = {
        FR_CASE_MODEL, FR_CASE_GPU, FR_CASE_NUM_GPUS,  FR_CASE_MBS,
        FR_CASE_GBS,   FR_CASE_SEQ, FR_CASE_PRECISION, FR_CASE_TP,
        FR_CASE_PP,    FR_CASE_VPP, FR_CASE_CP};
    bool is_first = true;
    for (size_t i = 0; i < FR_LENGTH(wanted); i++)
        if (log->field[wanted[i]][0] == '\0') {
            fr_buffer_printf(&log->notes, "%s%s",
                             is_first ? "the log is silent on " : ", ",
                             fr_case_column_name(wanted[i]));
            is_first = false;
        }
    if (!is_first)
        fr_buffer_puts(&log->notes, ": fill the columns in\n");
}

void fr_runlog_release(fr_runlog *log)
{
    fr_buffer_release(&log->notes);
    memset(log, 0, sizeof *log);
}

/* ---- CSV ---------------------------------------------------------------- */

void fr_runlog_write(const fr_runlog *logs, size_t n, fr_buffer *out)
{
    bool is_used[FR_CASE_COLUMN_N] = {false};
    static const fr_case_column always[] = {
        FR_CASE_ID,  FR_CASE_MODEL, FR_CASE_GPU, FR_CASE_NUM_GPUS,
        FR_CASE_MBS, FR_CASE_GBS,   FR_CASE_SEQ, FR_CASE_STEP_TIME_S};
    for (size_t i = 0; i < FR_LENGTH(always); i++)
        is_used[always[i]] = true;
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < FR_CASE_COLUMN_N; c++)
            is_used[c] |= logs[i].field[c][0] != '\0';
    for (int c = 0; c < FR_CASE_COLUMN_N; c++)
        if (is_used[c])
            fr_buffer_printf(out, "%s%s", c > 0 ? "," : "",
                             fr_case_column_name((fr_case_column)c));
    fr_buffer_putc(out, '\n');
    for (size_t i = 0; i < n; i++) {
        for (int c = 0; c < FR_CASE_COLUMN_N; c++) {
            if (!is_used[c])
                continue;
            if (c > 0)
                fr_buffer_putc(out, ',');
            fr_buffer_put_csv(out, logs[i].field[c]);
        }
        fr_buffer_putc(out, '\n');
    }
}
