"""numbers_drawn.py: the counter-based generator of core/numbers/rng.h."""


def mix(x):
    x ^= x >> 30
    x = x * 0xbf58476d1ce4e5b9 % 2**64
    x ^= x >> 27
    x = x * 0x94d049bb133111eb % 2**64
    return x ^ x >> 31


def uniform(*words):
    """fr_hash_uniform."""
    x = 0
    for word in words:
        x = mix(((x ^ word) + 0x9e3779b97f4a7c15) % 2**64)
    return (x >> 11) * 2.0**-53
