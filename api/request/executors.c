/* executors.c: see executors.h. */
#include "api/request/executors.h"

enum { FOR_FORERUN, FOR_ANY, FOR_TARGETS };

const char *fr_executor_name(int i)
{
    return i == FOR_FORERUN ? fr_target_runtime(false)->name
           : i == FOR_ANY   ? "any"
                            : fr_target_name(i - FOR_TARGETS);
}

const fr_target *fr_executor_at(int i, bool is_gpu)
{
    return i == FOR_FORERUN ? fr_target_runtime(is_gpu)
           : i == FOR_ANY   ? NULL
                            : fr_target_at(i - FOR_TARGETS);
}
