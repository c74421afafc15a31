# forerun: one non-recursive makefile.
# make            build/forerun          make check   all tests
# make CUDA=0     leave the GPU backend out; =1 fail if it cannot be built
# make SAN=address,undefined   DEBUG=1   V=1   BUILD=dir   CC=clang

CUDA   ?= auto
MPI    ?= auto
OPENMP ?= auto
BUILD  ?= build
V      ?= 0
Q       = $(if $(filter 1,$(V)),,@)

FLOORS := core spec plan cost_models sim tuner runtime calibrate report cli

PKGS   := gsl libxml-2.0 libcjson
CFLAGS_WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
    -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPT    := $(if $(DEBUG),-O1 -g3,-O2 -g)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. $(OPT) $(CFLAGS_WARN) \
    -ffp-contract=off $(SANFLAGS) $(shell pkg-config --cflags $(PKGS) | \
    sed 's/-I/-isystem /g') $(OPENMP_CFLAGS) $(MPI_CFLAGS) $(BLAS_CFLAGS) $(CFLAGS)
LIBS = $(shell pkg-config --libs $(PKGS) | sed 's/-lgslcblas//') \
    $(BLAS_LIBS) $(MPI_LIBS) $(OPENMP_LIBS) -lm -lpthread

OPENMP_CFLAGS := -fopenmp
OPENMP_LIBS   := -fopenmp
MPI_CFLAGS := $(shell pkg-config --cflags ompi-c 2>/dev/null | sed 's/-I/-isystem /g') -DFR_HAVE_MPI
MPI_LIBS   := $(shell pkg-config --libs ompi-c 2>/dev/null)
BLAS_DIR   := $(firstword $(wildcard /usr/lib/*/openblas-openmp))
BLAS_CFLAGS := $(addprefix -isystem ,$(wildcard /usr/include/*/openblas-openmp))
BLAS_LIBS  := $(if $(BLAS_DIR),-L$(BLAS_DIR) -Wl$(comma)-rpath$(comma)$(BLAS_DIR)) -lopenblas
comma := ,

SRC := $(filter-out cli/main.c,$(foreach f,$(FLOORS),$(wildcard $(f)/*.c)))
OBJ := $(SRC:%.c=$(BUILD)/%.o)
LIB := $(BUILD)/libforerun.a
TEST_SRC := $(wildcard tests/unit/test_*.c tests/contract/test_*.c)
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
BENCH_BIN := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))

.PHONY: all check clean unit
all: $(BUILD)/forerun

$(BUILD)/forerun: $(BUILD)/cli/main.o $(LIB)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

$(LIB): $(OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Kernels: loops that vectorise; neither option changes a result.
$(BUILD)/runtime/kernels_%.o $(BUILD)/runtime/%_blas.o: \
    CFLAGS_ALL += $(if $(DEBUG),,-O3) -fno-math-errno -fno-trapping-math

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(LIB)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIB)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

unit: $(TEST_BIN)

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.SECONDARY:
