/*
 * test_gpu_model.c: laws that prices of kernels obey on every GPU of the
 * catalogue: more work never takes less, a better device never takes longer,
 * tiles and waves show, sources say what was measured.
 */
#include "cost_models/gpu/gpu_model.h"
#include "spec/catalog/catalog.h"
#include "tests/check.h"

#include <math.h>

static const fr_device_type *device_of(const char *id)
{
    const fr_catalog_device *found = fr_catalog_device_find(id);

    if (!CHECK(found != NULL))
        printf("    no device %s\n", id);
    return found != NULL ? &found->type : &fr_catalog_device_at(0)->type;
}

static fr_gpu_model model_of(const char *id)
{
    fr_gpu_model model;

    fr_gpu_model_init(device_of(id), &model);
    return model;
}

static fr_instr linear(fr_op op, fr_dtype dtype, int64_t m, int64_t n,
                       int64_t k)
{
    return (fr_instr){
        .op = (uint8_t)op, .dtype = (uint8_t)dtype, .dim = {m, n, k, 4}};
}

static fr_instr attention(fr_op op, int64_t b, int64_t t, int64_t n_kv,
                          int64_t d, uint16_t flags)
{
    return (fr_instr){.op = (uint8_t)op,
                      .dtype = FR_DTYPE_F16,
                      .flags = flags,
                      .dim = {b, t, 32, n_kv, d}};
}

static fr_cost ask(const fr_gpu_model *model, const fr_instr *instr)
{
    fr_err err = {0};
    fr_cost cost = {0};

    CHECK_OK(fr_gpu_cost_compute(model, instr, &cost, &err), &err);
    return cost;
}

static double seconds(const fr_gpu_model *model, fr_instr instr)
{
    return ask(model, &instr).work_s;
}

/* Devices of all generations with 16-bit products. */
static const char *const devices[] = {
    "v100-sxm2-32g", "a100-sxm-80g", "h100-sxm", "b200-sxm", "mi300x", "l40s"};
enum { N_DEVICES = sizeof devices / sizeof devices[0] };

static void check_grows(const fr_gpu_model *model, fr_instr instr, int i_dim,
                        int64_t from, int64_t to, int64_t step)
{
    double before_s = 0.0;

    for (int64_t x = from; x <= to; x += step) {
        double now_s;
        instr.dim[i_dim] = x;
        now_s = seconds(model, instr);
        if (!CHECK(now_s >= before_s * (1 - 1e-12)))
            printf("    %s %s dim %d = %lld\n", model->id,
                   fr_op_name((fr_op)instr.op), i_dim, (long long)x);
        before_s = now_s;
    }
}

static void test_more_work_takes_longer(void)
{
    static const fr_op products[] = {FR_OP_LINEAR_FWD,    FR_OP_LINEAR_DGRAD,
                                     FR_OP_LINEAR_WGRAD,  FR_OP_GROUPED_FWD,
                                     FR_OP_GROUPED_DGRAD, FR_OP_GROUPED_WGRAD};

    for (int i = 0; i < N_DEVICES; i++) {
        fr_gpu_model model = model_of(devices[i]);
        for (int p = 0; p < 6; p++)
            for (int dim = 0; dim < 3; dim++)
                check_grows(&model,
                            linear(products[p], FR_DTYPE_F16, 2053, 1531, 1777),
                            dim, 31, 9000, 211);
        for (int flags = 0; flags < 256; flags++) {
            uint16_t all =
                FR_INSTR_NONCAUSAL | FR_INSTR_SAVE_PROBS | FR_INSTR_DROPOUT;
            if (flags & ~all)
                continue;
            for (int op = FR_OP_ATTN_FWD; op <= FR_OP_ATTN_BWD; op++)
                for (int dim = 0; dim < 5; dim++)
                    check_grows(
                        &model,
                        attention((fr_op)op, 3, 1999, 32, 96, (uint16_t)flags),
                        dim, 16, dim == 1 ? 9000 : 300, dim == 1 ? 173 : 7);
        }
    }
}

static void test_memory_bound(void)
{
    fr_gpu_model model = model_of("a100-sxm-80g");
    fr_instr add = {.op = FR_OP_ADD, .dim = {1}};
    double small_s, large_s;

    add.ref[0] = add.ref[1] = (fr_ref){.space = FR_SPACE_GRAD};
    check_grows(&model, add, 0, 1, 30000000, 777777);
    /* A tiny kernel costs what the host needs to launch it. */
    small_s = seconds(&model, add);
    CHECK(small_s > 2e-6 && small_s < 1e-5);
    /* A large one most of the memory's bandwidth. */
    add.dim[0] = 1 << 28;
    large_s = seconds(&model, add);
    CHECK(large_s > (double)fr_instr_moved_bytes(&add, 1) / 2039e9);
    CHECK(large_s < 1.5 * (double)fr_instr_moved_bytes(&add, 1) / 2039e9);
    CHECK(ask(&model, &add).memory_frac > 0.6);
    CHECK(ask(&model, &add).memory_frac <= 1.0);
}

/* Each figure of the datasheet by itself. */
static void test_better_device_is_not_slower(void)
{
    const fr_instr instrs[] = {
        linear(FR_OP_LINEAR_FWD, FR_DTYPE_BF16, 4096, 5120, 5120),
        linear(FR_OP_LINEAR_WGRAD, FR_DTYPE_BF16, 333, 512, 700),
        linear(FR_OP_GROUPED_FWD, FR_DTYPE_BF16, 4096, 2048, 1024),
        attention(FR_OP_ATTN_FWD, 2, 4096, 8, 128, 0),
        attention(FR_OP_ATTN_BWD, 2, 4096, 8, 64, 0),
        attention(FR_OP_ATTN_FWD, 2, 1024, 32, 64, FR_INSTR_SAVE_PROBS)};

    for (int i = 0; i < N_DEVICES; i++)
        for (size_t k = 0; k < sizeof instrs / sizeof instrs[0]; k++)
            for (int part = 0; part < 3; part++) {
                fr_device_type type = *device_of(devices[i]);
                double before_s = INFINITY;
                fr_instr instr = instrs[k];
                if (type.id[0] == 'v')
                    instr.dtype = FR_DTYPE_F16;
                for (int step = 0; step < 12; step++) {
                    fr_gpu_model model;
                    double now_s;
                    fr_gpu_model_init(&type, &model);
                    now_s = seconds(&model, instr);
                    CHECK(now_s <= before_s * (1 + 1e-12));
                    before_s = now_s;
                    for (int p = 0; p < type.n_peaks && part == 0; p++)
                        type.peaks[p].flops *= 1.13;
                    if (part == 1)
                        type.memory_Bps *= 1.13;
                    if (part == 2)
                        type.power_w *= 1.13;
                }
            }
}

/* A device that is capped is as fast as one that was made for that power. */
static void test_power_cap(void)
{
    for (int i = 0; i < N_DEVICES; i++) {
        fr_device_type made = *device_of(devices[i]), capped = made;
        fr_gpu_model a, b, free;
        fr_gpu_model_init(&made, &free);
        made.power_w *= 0.713;
        capped.power_cap_w = made.power_w;
        fr_gpu_model_init(&made, &a);
        fr_gpu_model_init(&capped, &b);
        CHECK(fr_gpu_knows_power(&capped));
        for (int math = 0; math < FR_GPU_MATH_N; math++)
            CHECK_NEAR(a.flops[math], b.flops[math], 0);
        CHECK(b.flops[FR_GPU_MATH_F16] < 0.95 * free.flops[FR_GPU_MATH_F16] &&
              b.flops[FR_GPU_MATH_F16] > 0.713 * free.flops[FR_GPU_MATH_F16]);
        capped.power_cap_w = 2 * capped.power_w;
        fr_gpu_model_init(&capped, &b);
        CHECK_NEAR(b.flops[FR_GPU_MATH_F16], free.flops[FR_GPU_MATH_F16], 0);
    }
}

/* One tile more than the multiprocessors can hold costs a wave. */
static void test_waves_show(void)
{
    fr_gpu_model model = model_of("a100-sxm-80g");
    fr_gpu_product p = {.n = 128 * 9,
                        .k = 8192,
                        .groups = 1,
                        .math = FR_GPU_MATH_BF16,
                        .in_bytes = 2,
                        .out_bytes = 2};
    double full_s, over_s, twice_s;

    p.m = 256 * 12; /* 108 tiles of 256 x 128 on 108 multiprocessors */
    full_s = fr_gpu_product_s(&model, &p);
    p.m = 256 * 12 + 8;
    over_s = fr_gpu_product_s(&model, &p);
    p.m = 256 * 24;
    twice_s = fr_gpu_product_s(&model, &p);
    CHECK(over_s > 1.1 * full_s);
    CHECK(over_s < twice_s);
    /* And a tile that is hardly filled costs what a full one does. */
    p.m = 256 * 12 + 60;
    CHECK_NEAR(fr_gpu_product_s(&model, &p), over_s, 0.01);
}

static void test_attention_shapes(void)
{
    fr_gpu_model model = model_of("h100-sxm");
    fr_instr causal = attention(FR_OP_ATTN_FWD, 1, 16384, 32, 128, 0);
    fr_instr full =
        attention(FR_OP_ATTN_FWD, 1, 16384, 32, 128, FR_INSTR_NONCAUSAL);
    double causal_s = seconds(&model, causal);

    /* Half the pairs, and the diagonal. */
    CHECK_NEAR(causal_s / seconds(&model, full), 0.5, 0.06);
    causal.dim[1] = full.dim[1] = 512;
    CHECK(seconds(&model, causal) > 0.6 * seconds(&model, full));
    causal.dim[1] = 16384;
    causal.dim[7] = 1024; /* window */
    CHECK(seconds(&model, causal) < 0.25 * causal_s);
    causal.dim[7] = 16384;
    CHECK_NEAR(seconds(&model, causal), causal_s, 1e-12);
    causal.dim[5] = 64; /* narrower values */
    CHECK(seconds(&model, causal) < causal_s);
    causal.dim[5] = 0;
    /* A rank's fourth of the queries of a sequence: a fourth of the pairs. */
    causal.dim[1] = 4096;
    causal.dim[6] = 16384;
    CHECK_NEAR(seconds(&model, causal), causal_s / 4.0, 0.03);
    /* Older kernels are slower; FlashAttention-2 is Ampere's own. */
    full = attention(FR_OP_ATTN_BWD, 2, 4096, 32, 128, 0);
    causal = full;
    causal.flash_kind = FR_FLASH_2;
    CHECK(seconds(&model, causal) > 1.2 * seconds(&model, full));
    full.flash_kind = FR_FLASH_1;
    CHECK(seconds(&model, full) > 1.2 * seconds(&model, causal));
    /* Apart, the probabilities travel: slower, and dropout slower still. */
    causal = attention(FR_OP_ATTN_FWD, 8, 2048, 32, 64, FR_INSTR_SAVE_PROBS);
    full = attention(FR_OP_ATTN_FWD, 8, 2048, 32, 64, 0);
    CHECK(seconds(&model, causal) > 3.0 * seconds(&model, full));
    full = causal;
    full.flags |= FR_INSTR_DROPOUT;
    CHECK(seconds(&model, full) > 1.2 * seconds(&model, causal));
}

/* The second is 1.7 to 3 times as fast as the first (arXiv 2307.08691, section
 * 4.1), with the same instructions wherever both run. */
static void test_first_flash_attention(void)
{
    static const char *const ids[] = {"a100-sxm-80g", "h100-sxm"};
    for (int i = 0; i < 4; i++) {
        fr_gpu_model model = model_of(ids[i / 2]);
        fr_instr first = attention(i % 2 ? FR_OP_ATTN_BWD : FR_OP_ATTN_FWD, 2,
                                   8192, 32, 128, 0);
        fr_instr second = first;
        first.flash_kind = FR_FLASH_1;
        second.flash_kind = FR_FLASH_2;
        double ratio = seconds(&model, first) / seconds(&model, second);
        CHECK(ratio > 1.5 && ratio < 3.0);
    }
}

static void test_gradients_of_weights(void)
{
    fr_gpu_model model = model_of("h100-sxm");
    fr_instr forward = linear(FR_OP_LINEAR_FWD, FR_DTYPE_BF16, 64, 8192, 8192);
    fr_instr wgrad = linear(FR_OP_LINEAR_WGRAD, FR_DTYPE_BF16, 64, 8192, 8192);

    /* Few rows: the weights of 2 bytes against gradients of 4 read and
     * written. */
    CHECK(seconds(&model, wgrad) > 2.5 * seconds(&model, forward));
    wgrad.ref[3] = (fr_ref){.space = FR_SPACE_GRAD};
    wgrad.dim[0] = forward.dim[0] = 8192;
    forward.op = FR_OP_LINEAR_WGRAD;
    CHECK(seconds(&model, wgrad) > seconds(&model, forward));
}

static void check_source(const char *id, fr_instr instr, fr_cost_source source)
{
    fr_gpu_model model = model_of(id);
    fr_cost cost = ask(&model, &instr);

    CHECK_INT(cost.source, source);
    CHECK(cost.latency_s == 0.0 && cost.cores == 1.0);
    CHECK(cost.rel_err > 0.0 && cost.rel_err < 0.5);
    if (source == FR_COST_EXTRAPOLATED)
        CHECK(cost.rel_err > fr_gpu_constants_fitted.guess_err);
}

static void test_sources(void)
{
    fr_instr p16 = linear(FR_OP_LINEAR_FWD, FR_DTYPE_F16, 4096, 4096, 4096);
    fr_instr p8 = linear(FR_OP_LINEAR_FWD, FR_DTYPE_FP8, 4096, 4096, 4096);
    fr_instr flash = attention(FR_OP_ATTN_FWD, 1, 4096, 32, 128, 0);
    fr_instr layer = {.op = FR_OP_LAYER_FWD,
                      .dtype = FR_DTYPE_F16,
                      .dim = {1 << 26},
                      .scalar = 1e11};
    fr_gpu_model model;
    fr_err err = {0};
    fr_cost cost;

    check_source("h100-sxm", p16, FR_COST_FITTED);
    check_source("h100-nvl", p8, FR_COST_FITTED);
    check_source("v100-pcie-32g", p16, FR_COST_FITTED);
    check_source("l40s", p16, FR_COST_EXTRAPOLATED);
    check_source("mi300x", p8, FR_COST_EXTRAPOLATED);
    check_source("b200-sxm", flash, FR_COST_FITTED);
    check_source("mi300x", flash, FR_COST_EXTRAPOLATED);
    check_source("a100-sxm-80g", layer, FR_COST_EXTRAPOLATED);
    check_source("v100-sxm2-32g", layer, FR_COST_FITTED);
    model = model_of("a100-sxm-80g");
    CHECK_FAILS(fr_gpu_cost_compute(&model, &p8, &cost, &err), FR_INFEASIBLE,
                &err);
    CHECK_HAS(err.text, "fp8");
    /* Pascal and Volta have one of the two formats of 16 bits, TPUs the
     * other. */
    p8.dtype = FR_DTYPE_BF16;
    model = model_of("p100-sxm2-16g");
    CHECK_FAILS(fr_gpu_cost_compute(&model, &p8, &cost, &err), FR_INFEASIBLE,
                &err);
    model = model_of("v100-sxm2-32g");
    CHECK_FAILS(fr_gpu_cost_compute(&model, &p8, &cost, &err), FR_INFEASIBLE,
                &err);
    model = model_of("tpu-v4");
    CHECK_FAILS(fr_gpu_cost_compute(&model, &p16, &cost, &err), FR_INFEASIBLE,
                &err);
    CHECK_OK(fr_gpu_cost_compute(&model, &p8, &cost, &err), &err);
    p8.op = FR_OP_ALL_REDUCE;
    CHECK(fr_gpu_cost_compute(&model, &p8, &cost, &err) == FR_FAILURE);
}

/* Every operation has a price on every device, in a dtype that it has. */
static void test_all_operations(void)
{
    for (size_t i = 0; i < fr_catalog_n_devices(); i++) {
        fr_gpu_model model;
        const fr_device_type *type = &fr_catalog_device_at(i)->type;
        const fr_dtype dtype =
            fr_device_peak_flops(type, "bf16") > 0   ? FR_DTYPE_BF16
            : fr_device_peak_flops(type, "fp16") > 0 ? FR_DTYPE_F16
                                                     : FR_DTYPE_F32;
        fr_gpu_model_init(type, &model);
        for (int op = 0; op < FR_OP_N; op++) {
            fr_instr instr = {.op = (uint8_t)op,
                              .dtype = (uint8_t)dtype,
                              .dim = {64, 128, 8, 8, 64},
                              .scalar = 2};
            if (op == FR_OP_COMPRESS || op == FR_OP_DECOMPRESS) {
                instr.compressor = FR_COMPRESSOR_INT8;
                instr.compress.n_payloads = 1;
            }
            if (op == FR_OP_CONV_FWD || op == FR_OP_CONV_DGRAD ||
                op == FR_OP_CONV_WGRAD)
                instr.conv = (fr_conv_dims){64, 128, 8, 64, 3, 1, 1, 1};
            fr_op_class op_class = fr_op_class_of((fr_op)op);
            fr_cost cost;
            if (op_class != FR_OP_CLASS_COMPUTE)
                continue;
            cost = ask(&model, &instr);
            CHECK(isfinite(cost.work_s) && cost.work_s > 1e-6);
            CHECK(cost.work_s < 1.0);
        }
    }
}

/* A generation that a file does not name is told from what it can do. */
static void test_generations(void)
{
    fr_device_type type = *device_of("h100-sxm");

    CHECK_INT(fr_gpu_generation_of(&type), FR_GPU_HOPPER);
    type.generation[0] = '\0';
    CHECK_INT(fr_gpu_generation_of(&type), FR_GPU_HOPPER);
    type = *device_of("b200-sxm");
    type.generation[0] = '\0';
    CHECK_INT(fr_gpu_generation_of(&type), FR_GPU_BLACKWELL);
    type = *device_of("gb300");
    type.generation[0] = '\0';
    CHECK_INT(fr_gpu_generation_of(&type), FR_GPU_BLACKWELL_ULTRA);
    type = *device_of("v100-sxm2-16g");
    type.generation[0] = '\0';
    CHECK_INT(fr_gpu_generation_of(&type), FR_GPU_VOLTA);
    CHECK_INT(fr_gpu_generation_of(device_of("tpu-v4")), FR_GPU_OTHER);
}

/* bf16 and fp16 have peaks of their own: neither takes the other's. */
static void test_peaks_of_16_bits(void)
{
    fr_device_type device = *device_of("h100-sxm");
    fr_gpu_model model;

    for (int i = 0; i < 2; i++) {
        fr_dtype dtype = i == 0 ? FR_DTYPE_BF16 : FR_DTYPE_F16;
        fr_instr product = linear(FR_OP_LINEAR_FWD, dtype, 8192, 8192, 8192);
        fr_device_type slow = device, odd = device;
        for (int k = 0; k < device.n_peaks; k++) {
            if (strcmp(device.peaks[k].dtype, i == 0 ? "bf16" : "fp16") == 0)
                slow.peaks[k].flops /= 10.0;
            if (strcmp(device.peaks[k].dtype, i == 0 ? "fp16" : "bf16") == 0)
                odd.peaks[k].flops *= 10.0;
        }
        fr_gpu_model_init(&device, &model);
        double usual_s = seconds(&model, product);
        fr_gpu_model_init(&odd, &model);
        CHECK_NEAR(seconds(&model, product), usual_s, 1e-12);
        fr_gpu_model_init(&slow, &model);
        CHECK(seconds(&model, product) > 3.0 * usual_s);
    }
}

CHECK_MAIN({"peaks_of_16_bits", test_peaks_of_16_bits},
           {"more work takes longer", test_more_work_takes_longer},
           {"memory bound", test_memory_bound},
           {"better device is not slower", test_better_device_is_not_slower},
           {"power cap", test_power_cap}, {"waves show", test_waves_show},
           {"attention shapes", test_attention_shapes},
           {"first flash attention", test_first_flash_attention},
           {"gradients of weights", test_gradients_of_weights},
           {"sources", test_sources}, {"all operations", test_all_operations},
           {"generations", test_generations})
