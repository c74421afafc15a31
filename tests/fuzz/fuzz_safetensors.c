/* fuzz_safetensors.c: of what opens, every element can be read. */
#include "runtime/weights/safetensors.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_last(const fr_safetensors *file, const fr_safetensor *tensor)
{
    uint64_t n = 1;
    float last;
    fr_err err = {0};

    for (int i = 0; i < tensor->n_dims && i < FR_SAFETENSOR_DIMS; i++)
        n *= (uint64_t)tensor->dim[i];
    if (tensor->n_dims > FR_SAFETENSOR_DIMS || n == 0 ||
        fr_safetensors_check_dtype(file, tensor, &err) != FR_OK)
        return;
    if (fr_safetensors_read(file, tensor, n - 1, 1, &last, &err) != FR_OK ||
        fr_safetensors_find(file, tensor->name) != tensor)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[64];
    fr_safetensors file;
    fr_err err = {0};
    int fd = memfd_create("input", 0);

    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fr_status status = fr_safetensors_open(path, &file, &err);
    fuzz_check_error(status, &err);
    for (size_t i = 0; status == FR_OK && i < file.n; i++)
        read_last(&file, &file.tensors[i]);
    if (status == FR_OK)
        fr_safetensors_close(&file);
    (void)close(fd);
    return 0;
}
