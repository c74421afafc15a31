/* minmax.h: the smaller and the larger of two values, by their type. */
#ifndef FR_CORE_BASE_MINMAX_H
#define FR_CORE_BASE_MINMAX_H

#include <stdint.h>

#define FR_DEFINE_MINMAX(suffix, type)                                         \
    static inline type fr_min_##suffix(type a, type b)                         \
    {                                                                          \
        return a < b ? a : b;                                                  \
    }                                                                          \
    static inline type fr_max_##suffix(type a, type b)                         \
    {                                                                          \
        return a > b ? a : b;                                                  \
    }

FR_DEFINE_MINMAX(double, double)
FR_DEFINE_MINMAX(i64, int64_t)
FR_DEFINE_MINMAX(u64, uint64_t)

#undef FR_DEFINE_MINMAX

#endif
