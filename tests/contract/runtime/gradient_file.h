/*
 * gradient_file.h: reads back what gradient_dump.h writes, so that the layouts
 * of a model can be compared.
 */
#ifndef FR_TESTS_CONTRACT_RUNTIME_GRADIENT_FILE_H
#define FR_TESTS_CONTRACT_RUNTIME_GRADIENT_FILE_H

#include "core/base/err.h"

#include <stddef.h>
#include <stdint.h>

typedef struct gradient_tensor {
    char name[48];
    int64_t rows, cols;
    float *at; /* [rows * cols] */
} gradient_tensor;

typedef struct gradient_file {
    gradient_tensor *at; /* sorted by name */
    size_t n;
} gradient_file;

FR_CHECKED fr_status gradient_file_load(const char *path, gradient_file *out,
                                        fr_err *err);
void gradient_file_release(gradient_file *gradients);

#endif
