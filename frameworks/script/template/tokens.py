# ---- tokens: the windows that `forerun run` trains on -----------------------

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(x):
    """The finalizer of splitmix64, of an array of 64-bit words."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hash_words(seed, a, b, c):
    """A 64-bit word for each (a, b, c): whole numbers or arrays of them."""
    x = mix(np.asarray([seed], dtype=np.uint64) + GOLDEN)
    for word in (a, b, c):
        x = mix((x ^ np.asarray(word, dtype=np.uint64)) + GOLDEN)
    return x


def uniform(seed, a, b, c):
    """A number in [0, 1) for each (a, b, c)."""
    words = hash_words(seed, a, b, c) >> np.uint64(11)
    return words.astype(np.float64) * 2.0**-53


class Tokens:
    """
    Sample i of step s is a window of seq + 1 tokens whose place depends on
    (seed, s, i) alone.  A file that ends in .bin holds 16-bit tokens, behind
    llm.c's header of 1024 bytes where it begins with one; any other file is
    bytes, a token each.  Without a file tokens are made up: the next is a
    fixed scramble of the last three times of four, else small ones are
    likelier.
    """

    def __init__(self, path, seed, seq, vocab):
        self.seed, self.seq, self.vocab = seed, seq, vocab
        self.file = None
        if not path:
            return
        if path.endswith(".bin"):
            self.file = np.memmap(path, dtype="<u2", mode="r")
            head = self.file[:6].view("<u4") if len(self.file) >= 512 else [0]
            if head[0] == 20240520:
                self.file = self.file[512:512 + int(head[2])]
        else:
            self.file = np.memmap(path, dtype=np.uint8, mode="r")
        if len(self.file) < seq + 1:
            raise SystemExit(f"{path}: {len(self.file)} tokens, a sample "
                             f"needs {seq + 1}")

    def load(self, step, first, n):
        """Samples first to first + n - 1 of a step: int64[n, seq + 1]."""
        samples = np.arange(first, first + n, dtype=np.uint64)
        draws = hash_words(self.seed, step, samples, 0)
        if self.file is None:
            return self.make_up(draws)
        places = draws % np.uint64(len(self.file) - self.seq)
        windows = [self.file[int(p):int(p) + self.seq + 1] for p in places]
        tokens = np.stack(windows).astype(np.int64)
        if tokens.max() >= self.vocab:
            raise SystemExit(f"token {tokens.max()} of the data, the "
                             f"vocabulary has {self.vocab}")
        return tokens

    def make_up(self, draws):
        t = np.arange(self.seq + 1)
        u = uniform(self.seed, draws[:, None], t, 1)
        v = uniform(self.seed, draws[:, None], t, 2)
        fresh = np.minimum((v * v * self.vocab).astype(np.int64),
                           self.vocab - 1)
        tokens = fresh
        for i in range(1, self.seq + 1):
            follower = (tokens[:, i - 1] * 7 + 3) % self.vocab
            tokens[:, i] = np.where(u[:, i] < 0.75, follower, fresh[:, i])
        return tokens


def normal_rows(seed, tensor, first_row, n_rows, n_columns, std):
    """
    Rows of a matrix as forerun's runtime draws them: number `tensor` of the
    model, by Box and Muller from one hashed word per element.
    """
    key = hash_words(seed, tensor, 0x77656967, 0)
    i = np.arange(n_rows * n_columns, dtype=np.uint64)
    word = mix(key + (i + np.uint64(first_row * n_columns)) * GOLDEN)
    u = ((word >> np.uint64(41)).astype(np.float64) + 0.5) * 2.0**-23
    turn = (word & np.uint64(0xFFFFFF)).astype(np.float64) * 2.0**-24 - 0.5
    normal = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * turn)
    return (std * normal).astype(np.float32).reshape(n_rows, n_columns)
