# forerun: one non-recursive makefile.
#
#   make                build/forerun            make demo     see it work
#   make check          all tests                make clean
#   make check-quick    lints, units, a slice of the rest: minutes
#   make fidelity | regret | bench-runtime | bench-images | bench-sim |
#       bench-tuner | bench-tune-jobs | bench-sweep | bench-checkpoint |
#       validate | goodput | record
#   make check-gpu      the GPU backend (tests/gpu/run: 77 without a GPU)
#   make check-san | check-valgrind | check-clang | tidy | fuzz | format
#   make hostile        hostile numbers, files and signals
#   make random-layouts SEED=1 N=1000   random plans run against one process
#   make chaos N_SCRIPTED=200 N_RANDOM=1000   ranks killed, stopped, lost; torn files
#   make reshard        checkpoints of 12 layouts resumed by 12
#   make check-exports REPOSITORIES=folder  what frameworks, whose clones lie
#       there, say of what is exported to them
#
#   CUDA=auto|0|1 MPI=auto|0|1 OPENMP=auto|0|1   0: leave out, 1: fail without
#   SAN=address,undefined  DEBUG=1  WERROR=1  V=1  BUILD=dir  CC=clang

CUDA   ?= auto
MPI    ?= auto
OPENMP ?= auto
BUILD  ?= build
V      ?= 0
Q      := $(if $(filter 1,$(V)),,@)
NPROC  := $(shell nproc 2>/dev/null || echo 2)
comma  := ,
hash   := \#
# Sub-makes of the targets that set things up first.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(NPROC))

# Lower floors first, with the floors that each may include.
FLOORS := $(shell sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
# Files of a floor by pattern, two folders deep.
in_floors = $(foreach f,$(FLOORS),$(wildcard $(f)/$(1) $(f)/*/$(1) \
    $(f)/*/*/$(1)))

# ---- what is on this machine ------------------------------------------------
has_package = $(shell pkg-config --exists $(1) 2>/dev/null && echo yes)
as_system   = $(patsubst -I%,-isystem %,$(1))
can_compile = $(shell printf '$(1)\n' | \
    $(CC) $(2) -xc -fsyntax-only - 2>/dev/null && echo yes)
flags_of    = $(shell pkg-config $(1) $(2) 2>/dev/null)

PKGS := gsl libxml-2.0 libcjson zlib
MISSING_PKGS := $(strip $(foreach p,$(PKGS),$(if \
    $(call has_package,$(p)),,$(p))))

HAVE_MPI := $(if $(filter 0,$(MPI)),,$(call has_package,ompi-c))
MPI_CFLAGS := $(if $(HAVE_MPI),-DFR_HAVE_MPI \
    $(call as_system,$(call flags_of,--cflags,ompi-c)))
MPI_LIBS := $(if $(HAVE_MPI),$(call flags_of,--libs,ompi-c))

HAVE_OPENMP := $(if $(filter 0,$(OPENMP)),,$(call \
    can_compile,$(hash)include <omp.h>,-fopenmp))
OPENMP_FLAGS := $(if $(HAVE_OPENMP),-fopenmp)

# The OpenMP variant shares its team of threads with our own kernels; the
# pthread one would fight them for the cores.
BLAS_LIB_DIR := $(firstword $(wildcard /usr/lib/*/openblas-openmp))
BLAS_INC_DIR := $(firstword $(wildcard /usr/include/*/openblas-openmp))
BLAS_CFLAGS := $(addprefix -isystem ,$(BLAS_INC_DIR))
BLAS_LIBS := $(if $(BLAS_LIB_DIR),-L$(BLAS_LIB_DIR) \
    -Wl$(comma)-rpath$(comma)$(BLAS_LIB_DIR)) -lopenblas

HAVE_HWLOC := $(call has_package,hwloc)
HWLOC_CFLAGS := $(if $(HAVE_HWLOC),-DFR_HAVE_HWLOC \
    $(call as_system,$(call flags_of,--cflags,hwloc)))
HWLOC_LIBS := $(if $(HAVE_HWLOC),$(call flags_of,--libs,hwloc))

# Convolutions (kernels/cpu/images/); it has no pkg-config file.
HAVE_DNNL := $(call can_compile,$(hash)include <oneapi/dnnl/dnnl.h>)
DNNL_CFLAGS := $(if $(HAVE_DNNL),-DFR_HAVE_DNNL)
DNNL_LIBS := $(if $(HAVE_DNNL),-ldnnl)

HAVE_SQLITE := $(call has_package,sqlite3)
SQLITE_CFLAGS := $(if $(HAVE_SQLITE),-DFR_HAVE_SQLITE \
    $(call as_system,$(call flags_of,--cflags,sqlite3)))
SQLITE_LIBS := $(if $(HAVE_SQLITE),$(call flags_of,--libs,sqlite3))

HAVE_YAML := $(call has_package,yaml-0.1)
YAML_CFLAGS := $(if $(HAVE_YAML),-DFR_HAVE_YAML \
    $(call as_system,$(call flags_of,--cflags,yaml-0.1)))
YAML_LIBS := $(if $(HAVE_YAML),$(call flags_of,--libs,yaml-0.1))

HAVE_MICROHTTPD := $(call has_package,libmicrohttpd)
MICROHTTPD_CFLAGS := $(if $(HAVE_MICROHTTPD),-DFR_HAVE_MICROHTTPD \
    $(call as_system,$(call flags_of,--cflags,libmicrohttpd)))
MICROHTTPD_LIBS := $(if $(HAVE_MICROHTTPD),$(call \
    flags_of,--libs,libmicrohttpd))

CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda /usr/lib/cuda) /usr)
NVCC := $(if $(filter 0,$(CUDA)),,$(firstword \
    $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null)))
CUDA_INC := $(wildcard $(CUDA_HOME)/include)
HAVE_CUDA := $(if $(NVCC),$(call can_compile,$(hash)include \
    <cuda_runtime.h>\n$(hash)include <cublasLt.h>,$(addprefix -I,$(CUDA_INC))))
HAVE_NCCL := $(if $(HAVE_CUDA),$(call can_compile,$(hash)include \
    <nccl.h>,$(addprefix -I,$(CUDA_INC))))
CUDA_CFLAGS := $(if $(HAVE_CUDA),-DFR_HAVE_CUDA \
    $(addprefix -isystem ,$(CUDA_INC))) $(if $(HAVE_NCCL),-DFR_HAVE_NCCL)
# NCCL looks its tuner up in the program (runtime/gpu_comm/nccl_tuner.h).
NCCL_TUNER := -Wl,--export-dynamic-symbol=ncclTunerPlugin_v*
CUDA_LIB_DIR := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
# Ampere is the oldest whose tensor cores know 16-bit floats of this kind;
# what is newer than Hopper compiles Hopper's code when it starts.
NVCC_FLAGS ?= -O3 -std=c++17 \
    -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_90,code=compute_90 \
    -Xcompiler -fPIC,-Wall,-Wextra
# Neither CC nor SAN touches what nvcc compiles, and it takes minutes: builds
# beside this one take its kernels.
KERNELS ?= $(BUILD)

# ---- files ------------------------------------------------------------------
# *_cuda.c, *_nccl.c and *.cu are left out with their library; a *_mpi.c holds
# its own answer for builds without MPI.
ALL_C := $(filter-out cli/main.c,$(call in_floors,*.c))
SRC   := $(filter-out $(if $(HAVE_CUDA),,%_cuda.c) $(if $(HAVE_NCCL),, \
    $(addsuffix /%_nccl.c,runtime calibrate)),$(ALL_C))
CU    := $(if $(HAVE_CUDA),$(call in_floors,*.cu))
GPU_FILES := $(wildcard runtime/*/*_cuda.c kernels/cuda/*_cuda.c \
    kernels/cuda/*.cu kernels/cuda/*/*.cu)
USES_CUDA := $(if $(HAVE_CUDA),$(GPU_FILES))
CUDA_LIBS := $(if $(USES_CUDA),$(addprefix -L,$(CUDA_LIB_DIR)) \
    $(addprefix -Wl$(comma)-rpath$(comma),$(CUDA_LIB_DIR)) \
    -lcudart $(if $(HAVE_NCCL),-lnccl) -lstdc++)

# The CUDA kernels and their hosts once more, for the CPU: tests of them need
# no GPU (tests/gpu/emulator).
EMULATED := $(BUILD)/emulated
EMULATED_SRC := $(wildcard kernels/cuda/*.cu kernels/cuda/*/*.cu \
    tests/gpu/emulator/*.c \
    tests/gpu/emulator/*.cc) $(filter-out %/cublaslt_cuda.c,$(wildcard \
    kernels/cuda/*.c))
EMULATED_OBJ := $(EMULATED_SRC:%=$(EMULATED)/%.o)
GPU_TEST_SRC := $(wildcard tests/gpu/test_*.c)
EMULATED_BIN := $(GPU_TEST_SRC:%.c=$(EMULATED)/%)
GPU_REPORT := $(BUILD)/tests/gpu/gpu_report
RECORDER := $(BUILD)/tests/record/record_plans
RANDOM_EXPORTS := $(BUILD)/tests/record/random_exports
GPU_TEST_BIN := $(if $(USES_CUDA),$(GPU_TEST_SRC:%.c=$(BUILD)/%))

CU_OBJ := $(CU:%.cu=$(KERNELS)/%.cu.o)
OBJ := $(SRC:%.c=$(BUILD)/%.o) $(CU_OBJ) \
    $(BUILD)/spec/cluster/cluster_xsd.o \
    $(BUILD)/frameworks/script/script_templates.o
LIB := $(BUILD)/libforerun.a
# One copy of the library for all tests: a program with the whole of it is 35
# MB, under sanitizers 70, takes a second to be linked, and there are 170.
TEST_LIB := $(BUILD)/libforerun.so

TEST_SRC  := $(wildcard tests/unit/*/test_*.c tests/contract/*/test_*.c)
TEST_BIN  := $(TEST_SRC:%.c=$(BUILD)/%)
BENCH_SRC := $(wildcard bench/bench_*.c bench/fidelity/bench_*.c \
    bench/fit/bench_*.c bench/checkpoint/bench_*.c)
BENCH_BIN := $(BENCH_SRC:%.c=$(BUILD)/%)
FUZZ_SRC  := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN  := $(FUZZ_SRC:%.c=$(BUILD)/%)
# What several programs of one folder share.
BENCH_AIDS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out \
    bench/bench_% bench/fidelity/bench_%,$(wildcard bench/*.c \
    bench/fidelity/*.c)))
TEST_AIDS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(TEST_SRC),$(wildcard \
    tests/unit/*.c tests/unit/*/*.c tests/contract/*/*.c \
    tests/contract/*/*/*.c \
    tests/record/random_plans.c tests/record/export_plans.c)))

# ---- flags ------------------------------------------------------------------
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion \
    -Wstrict-prototypes -Wmissing-prototypes -Wvla $(if $(WERROR),-Werror) \
    $(if $(HAVE_OPENMP),,-Wno-unknown-pragmas)
# Lines for backtraces; the rest of what debuggers know takes a tenth of a build.
OPT      := $(if $(DEBUG),-O1 -g3,-O2 -g1)
# Undefined behaviour ends the program: a fuzzer sees nothing else.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
    -fno-sanitize-recover=undefined)
CFLAGS_ALL = -std=c11 -D_GNU_SOURCE -I. $(OPT) $(WARNINGS) \
    -ffp-contract=off $(SANFLAGS) \
    $(call as_system,$(call flags_of,--cflags,$(PKGS))) $(OPENMP_FLAGS) \
    $(MPI_CFLAGS) $(BLAS_CFLAGS) $(HWLOC_CFLAGS) $(SQLITE_CFLAGS) $(YAML_CFLAGS) \
    $(CUDA_CFLAGS) -fPIC -fno-semantic-interposition $(CFLAGS)
# Expanded once, not for every file.
CFLAGS_ALL := $(CFLAGS_ALL)
# GSL without its slow BLAS: OpenBLAS answers for it.
LIBS := $(filter-out -lgslcblas,$(call flags_of,--libs,$(PKGS))) \
    $(BLAS_LIBS) $(DNNL_LIBS) $(MPI_LIBS) $(HWLOC_LIBS) $(SQLITE_LIBS) $(YAML_LIBS) \
    $(MICROHTTPD_LIBS) $(CUDA_LIBS) \
    $(OPENMP_FLAGS) -lm -lpthread $(NCCL_TUNER)
# Archives behind all that uses them; the shared library is two or three folders
# above the tests that load it.
LINK = $(Q)$(CC) $(SANFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) \
    $(filter %.a,$^) $(if $(filter %.so,$|),-L$(BUILD) -lforerun -Wl$(comma)-z$(comma)now \
    '-Wl$(comma)-rpath$(comma)$$ORIGIN/../..:$$ORIGIN/../../..') $(LIBS)

# ---- building ---------------------------------------------------------------
.PHONY: all lib unit clean features format
all: $(BUILD)/forerun
lib: $(LIB)
unit: $(TEST_BIN)

# Changes when the compiler, a flag or what was found does: all is made anew.
FLAGS_NOW := $(CC) $(CFLAGS_ALL) $(LDFLAGS) $(LIBS)
ifneq ($(FLAGS_NOW),$(shell cat $(BUILD)/flags 2>/dev/null))
$(BUILD)/flags: FORCE
endif
NVCC_NOW := $(NVCC) $(NVCC_FLAGS)
ifneq ($(NVCC_NOW),$(shell cat $(KERNELS)/nvcc_flags 2>/dev/null))
$(KERNELS)/nvcc_flags: FORCE
endif
.PHONY: FORCE
FORCE:
$(BUILD)/flags:
	@$(MAKE) --no-print-directory features
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' >$@
$(KERNELS)/nvcc_flags:
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(NVCC_NOW))' >$@

found = $(if $(1),yes$(2),no $(3))
features:
	@echo "building in $(BUILD) with:"
	@echo "  MPI       $(call found,$(HAVE_MPI),,$(if $(filter \
	    0,$(MPI)),(MPI=0),(apt-get install libopenmpi-dev openmpi-bin)))"
	@echo "  OpenMP    $(call found,$(HAVE_OPENMP),,$(if $(filter \
	    0,$(OPENMP)),(OPENMP=0),(apt-get install libomp-dev for clang)))"
	@echo "  OpenBLAS  $(if $(BLAS_LIB_DIR),yes (openmp variant),$(strip \
	    system's) (apt-get install libopenblas-openmp-dev for the fast one))"
	@echo "  oneDNN    $(call found,$(HAVE_DNNL),,(apt-get install \
	    libdnnl-dev to train convolutions))"
	@echo "  hwloc     $(call found,$(HAVE_HWLOC),,(apt-get install \
	    libhwloc-dev))"
	@echo "  SQLite    $(call found,$(HAVE_SQLITE),,(apt-get install \
	    libsqlite3-dev to import nsys))"
	@echo "  libyaml   $(call found,$(HAVE_YAML),,(apt-get install \
	    libyaml-dev to import accelerate))"
	@echo "  microhttpd $(call found,$(HAVE_MICROHTTPD),,(apt-get install \
	    libmicrohttpd-dev for run --prometheus))"
	@echo "  CUDA      $(call found,$(HAVE_CUDA),,$(if $(filter \
	    0,$(CUDA)),(CUDA=0),(apt-get install nvidia-cuda-toolkit)))"
	@echo "  NCCL      $(call found,$(HAVE_NCCL),,$(if $(filter \
	    0,$(CUDA)),(CUDA=0),(apt-get install libnccl-dev)))"
	@echo "  GPU backend: $(if $(GPU_FILES),$(if \
	    $(HAVE_CUDA),built,left out),not written yet$(strip ,) CPU only)"
	$(if $(MISSING_PKGS),@echo "missing: $(MISSING_PKGS):" \
	    "run ./setup.sh" >&2; exit 1)
	$(if $(and $(filter 1,$(MPI)),$(if $(HAVE_MPI),,1)),\
	    @echo "MPI=1: there is no MPI" >&2; exit 1)
	$(if $(and $(filter 1,$(OPENMP)),$(if $(HAVE_OPENMP),,1)),\
	    @echo "OPENMP=1: $(CC) has no OpenMP" >&2; exit 1)
	$(if $(and $(filter 1,$(CUDA)),$(if $(USES_CUDA),,1)),\
	    @echo "CUDA=1: the GPU backend cannot be built" >&2; exit 1)

$(BUILD)/forerun: $(BUILD)/cli/main.o $(LIB)
	$(LINK)

$(LIB): $(OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/libforerun.so: $(OBJ)
	$(Q)$(CC) -shared $(SANFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The schema of cluster files is compiled in.
$(BUILD)/spec/cluster/cluster_xsd.c: configs/schema/cluster.xsd
	@mkdir -p $(@D)
	$(Q)(echo '#include "spec/cluster/cluster_reader.h"'; \
	    echo 'const unsigned char fr_cluster_xsd[] = {'; \
	    od -An -v -tu1 $< | sed 's/\([0-9][0-9]*\)/\1,/g'; \
	    echo '0};'; \
	    echo 'const size_t fr_cluster_xsd_n = sizeof fr_cluster_xsd - 1;' \
	    ) >$@
$(BUILD)/spec/cluster/cluster_xsd.o: $(BUILD)/spec/cluster/cluster_xsd.c $(BUILD)/flags
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# So are the templates of scripts.
SCRIPTS := $(wildcard frameworks/script/template/*.py)
$(BUILD)/frameworks/script/script_templates.c: $(SCRIPTS)
	@mkdir -p $(@D)
	$(Q)(echo '#include "frameworks/script/export_script.h"'; \
	    for f in $(SCRIPTS); do n=$$(basename $$f .py); \
	    echo "static const unsigned char text_of_$$n[] = {"; \
	    od -An -v -tu1 $$f | sed 's/\([0-9][0-9]*\)/\1,/g'; \
	    echo '0};'; done; \
	    echo 'const fr_script_template fr_script_templates[] = {'; \
	    for f in $(SCRIPTS); do n=$$(basename $$f .py); \
	    echo "{\"$$n.py\", text_of_$$n, sizeof text_of_$$n - 1},"; done; \
	    echo '{0}};') >$@
$(BUILD)/frameworks/script/script_templates.o: \
    $(BUILD)/frameworks/script/script_templates.c $(BUILD)/flags
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(CU_OBJ): $(KERNELS)/%.cu.o: %.cu $(KERNELS)/nvcc_flags
	@mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCC_FLAGS) $(if $(WERROR),-Xcompiler -Werror) -I. -MMD \
	    -c -o $@ $<

$(BUILD)/cli/watch/metrics_microhttpd.o: CFLAGS_ALL += $(MICROHTTPD_CFLAGS)
$(BUILD)/kernels/cpu/images/conv_dnnl.o: CFLAGS_ALL += $(DNNL_CFLAGS)

# Kernels: loops that vectorise; neither option changes a result.
$(BUILD)/kernels/cpu/%.o $(BUILD)/kernels/cuda/%.o: \
    CFLAGS_ALL += $(if $(DEBUG),,-O3) -fno-math-errno -fno-trapping-math

# Allocation fails on purpose in this one, so all of it is in one program.
NO_MEMORY := $(BUILD)/tests/unit/core/test_no_memory
$(NO_MEMORY): LDFLAGS += $(foreach f,malloc calloc \
    realloc strdup cJSON_ParseWithLength,-Wl$(comma)--wrap=$(f))

$(NO_MEMORY): %: %.o $(TEST_AIDS) $(LIB)
	$(LINK)
# Behind |: a program of tests is linked again when its own objects change; that
# the library has all its symbols is checked when it starts (-z now).
$(filter-out $(NO_MEMORY),$(TEST_BIN)): %: %.o $(TEST_AIDS) | $(TEST_LIB)
	$(LINK)

# The emulation's own cuda_runtime.h comes before the toolkit's.
EMULATED_FLAGS := -DFR_EMULATED -Itests/gpu/emulator
CXX_FLAGS := -std=c++17 -I. $(OPT) -Wall -Wextra -Wshadow \
    -Wno-unknown-pragmas $(if $(WERROR),-Werror) -ffp-contract=off $(SANFLAGS)
$(EMULATED)/%.c.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CC) $(EMULATED_FLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(EMULATED)/%.cc.o: %.cc $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(EMULATED_FLAGS) $(CXX_FLAGS) -MMD -MP -c -o $@ $<
$(EMULATED)/%.cu.o: %.cu $(BUILD)/flags
	@mkdir -p $(@D)
	$(Q)$(CXX) $(EMULATED_FLAGS) $(CXX_FLAGS) -MMD -MP -c -o $@ -x c++ $<
$(EMULATED_BIN): %: %.c.o $(EMULATED_OBJ) $(TEST_AIDS) | $(TEST_LIB)
	$(LINK) -lstdc++

# They go to another machine (tests/gpu/pack).
$(GPU_TEST_BIN): %: %.o $(TEST_AIDS) $(LIB)
	$(LINK)
$(GPU_REPORT): %: %.o $(LIB)
	$(LINK)
$(RECORDER) $(RANDOM_EXPORTS): %: %.o $(BUILD)/tests/record/random_plans.o \
    $(BUILD)/tests/record/export_plans.o $(LIB)
	$(LINK)

$(BENCH_BIN): %: %.o $(BENCH_AIDS) $(LIB)
	$(LINK)

# The fit of `make fit-gpu`, which no command needs.
$(BUILD)/tests/unit/cost_models/test_gpu_fit $(BUILD)/tests/fuzz/fuzz_kernels: \
    $(BUILD)/bench/gpu_fit.o $(BUILD)/bench/gpu_rows.o

# In `make check` a fuzz target is a program that replays its corpus; in
# `make fuzz` libFuzzer brings the main.
$(FUZZ_BIN): %: %.o $(if $(FUZZER),$(LIB),$(BUILD)/tests/fuzz/corpus.o \
    | $(TEST_LIB))
	$(LINK)

clean:
	rm -rf $(BUILD)

# ---- tests ------------------------------------------------------------------
.PHONY: check check-now check-san check-valgrind check-clang check-gpu tidy
.PHONY: fuzz test-programs gpu-programs
check:
	@./setup.sh check
	@$(MAKE) --no-print-directory $(PARALLEL) check-now

test-programs: $(BUILD)/forerun $(TEST_BIN) $(EMULATED_BIN) $(FUZZ_BIN) \
    $(GPU_TEST_BIN) $(GPU_REPORT) $(RANDOM_EXPORTS)
gpu-programs: $(BUILD)/forerun $(GPU_TEST_BIN) $(GPU_REPORT)

check-now: test-programs
	@CHECK_SLICE= BUILD=$(BUILD) tests/run.sh lint golden usability exports $(TEST_BIN) \
	    $(EMULATED_BIN) $(FUZZ_BIN)

# After a change: lints, all units, and of the contracts and the golden cases
# those rows that CHECK_SLICE leaves (tests/check.h).
.PHONY: check-quick
CHECK_SLICE ?= 8
check-quick: $(BUILD)/forerun $(TEST_BIN)
	@CHECK_SLICE=$(CHECK_SLICE) BUILD=$(BUILD) tests/run.sh lint golden \
	    $(TEST_BIN)

# Where MPI runs, whole stacks, which take half as long again: its plugins are
# gone when leaks are looked for, so that only their callers can be named.
san_options = \
    ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:fast_unwind_on_malloc=$(1) \
    LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
check-san:
	@$(MAKE) --no-print-directory $(PARALLEL) BUILD=$(BUILD)-san \
	    KERNELS=$(BUILD) SAN=address,undefined DEBUG=1 CFLAGS=-g1 check-san-now
.PHONY: check-san-now
# Every eighth row of long tables, as in check-quick.
# Without the corpora, with which fuzzers begin under the same sanitizers, and
# the fit of bench/, which takes two minutes under them.
SAN_BIN = $(filter-out %/test_gpu_fit,$(filter $(BUILD)/tests/unit/%,$(TEST_BIN)))
SAN_MPI_BIN = $(filter $(BUILD)/tests/unit/launch/%,$(SAN_BIN))
check-san-now: $(BUILD)/forerun $(SAN_BIN)
	@$(call san_options,1) BUILD=$(BUILD) BUDGET_TIMES=3 TEST_TIMEOUT=600 \
	    CHECK_SLICE=8 tests/run.sh $(filter-out $(SAN_MPI_BIN),$(SAN_BIN))
	@$(call san_options,0) BUILD=$(BUILD) BUDGET_TIMES=3 TEST_TIMEOUT=600 tests/run.sh \
	    $(SAN_MPI_BIN)

# Unit tests without OpenMP, BLAS and MPI, which valgrind knows too little of.
VALGRIND_SRC = $(filter-out tests/unit/runtime/% /dev/null,$(shell \
    grep -LE \
    '"(runtime|calibrate|tuner|cli)/|<mpi.h>' \
    $(wildcard tests/unit/*/test_*.c) /dev/null))
check-valgrind: test-programs
	@WRAP="valgrind -q --error-exitcode=99 --leak-check=full" \
	    BUILD=$(BUILD) TEST_TIMEOUT=900 tests/run.sh \
	    $(VALGRIND_SRC:%.c=$(BUILD)/%)

# clang reads all C (its warnings need no code), and compiles the loops that are
# to become vectors; C++ and CUDA do not ask for CC.
check-clang:
	@$(MAKE) --no-print-directory $(PARALLEL) BUILD=$(BUILD)-clang \
	    KERNELS=$(BUILD) CC=clang WERROR=1 check-clang-now
	@echo "clang: no warnings"
.PHONY: check-clang-now
READ = xargs -P $(NPROC) -n 8 $(CC) $(CFLAGS_ALL) -fsyntax-only
check-clang-now: $(filter $(BUILD)/kernels/cpu/%,$(OBJ))
	$(Q)printf '%s\n' $(SRC) cli/main.c $(patsubst $(BUILD)/%.o,%.c,$(TEST_AIDS) \
	    $(BENCH_AIDS) $(addsuffix .o,$(TEST_BIN) $(BENCH_BIN) $(FUZZ_BIN) \
	    $(GPU_REPORT) $(RANDOM_EXPORTS))) | \
	$(READ) $(MICROHTTPD_CFLAGS) $(DNNL_CFLAGS)
	$(Q)printf '%s\n' $(filter %.c,$(EMULATED_SRC)) \
	    $(patsubst $(EMULATED)/%,%.c,$(EMULATED_BIN)) | \
	    $(READ) $(EMULATED_FLAGS)

tidy:
	$(Q)printf '%s\n' $(SRC) cli/main.c | xargs -P $(NPROC) -n 4 \
	    tests/lint/tidy.sh '$(filter-out -fopenmp,$(CFLAGS_ALL))'

FUZZ_S ?= 20
# Where files are read, and what readers call; a missing folder fails to link.
FUZZED_FLOORS := core spec plan frameworks cost_models/base cost_models/compute \
    cost_models/gpu sim/engine reliability simgrid runtime/weights interop
fuzz:
	@$(MAKE) --no-print-directory $(PARALLEL) BUILD=$(BUILD)-fuzz \
	    FLOORS="$(FUZZED_FLOORS)" CUDA=0 CC=clang \
	    SAN=address,undefined,fuzzer-no-link FUZZER=1 \
	    LDFLAGS=-fsanitize=fuzzer CFLAGS='-g1 -Wno-pass-failed' DEBUG=1 fuzz-now
.PHONY: fuzz-now
fuzz-now: $(FUZZ_BIN)
	@BUILD=$(BUILD) FUZZ_S=$(FUZZ_S) tests/fuzz/run.sh $(FUZZ_BIN)

# What hostile users and files do; HOSTILE="numbers documents leaving".
.PHONY: hostile
hostile: $(BUILD)/forerun
	@tests/hostile/run.sh $(HOSTILE)

# N random plans of each backend, real CPUs and fake GPUs, against one process;
# a short set is in `make check`.
.PHONY: random-layouts
SEED ?= 1
N ?= 1000
random-layouts: $(BUILD)/tests/contract/runtime/test_random_layouts
	@RANDOM_LAYOUTS="$(SEED) 0 $(N)" $<

# Elastic runs of a tiny model whose ranks are killed, stopped and lost and whose
# checkpoints are torn: tests/chaos/run.sh.  chaos-short: 60 of them.
.PHONY: chaos chaos-short
N_SCRIPTED ?= 200
N_RANDOM ?= 1000
chaos: $(BUILD)/forerun
	@BUILD=$(BUILD) tests/chaos/run.sh $(N_SCRIPTED) $(N_RANDOM)
chaos-short: $(BUILD)/forerun
	@BUILD=$(BUILD) tests/chaos/run.sh short || [ $$? = 77 ]

# Twelve layouts by twelve, of two models: checkpoints of each resumed by each;
# a part is in `make check`.
.PHONY: reshard
reshard: $(BUILD)/tests/contract/runtime/test_reshard
	@RESHARD=all $<

# What frameworks say of plans that are taken to them: tests/exports/README.md.
.PHONY: check-exports
check-exports: $(BUILD)/forerun $(RANDOM_EXPORTS)
	@BUILD=$(BUILD) REPOSITORIES="$(REPOSITORIES)" tests/exports/run.sh

format:
	clang-format -i $(call in_floors,*.[ch]) $(wildcard bench/*.[ch] bench/*/*.[ch] \
	    tests/*.[ch] tests/*/*.[ch] tests/*/*/*.[ch])

# ---- demonstrations and benchmarks ------------------------------------------
# Each is a script of its own; it prints a table and leaves JSON in $(BUILD).
.PHONY: demo demo-now fidelity regret bench-runtime bench-sim bench-tuner
.PHONY: bench-sweep bench-tune-jobs bench-checkpoint bench-images
.PHONY: validate bench-programs
bench-programs: $(BUILD)/forerun $(BENCH_BIN)

run_script = $(if $(wildcard $(1)),BUILD=$(BUILD) $(1),\
    echo "make $@: $(1) does not exist yet" >&2; exit 1)

demo:
	@./setup.sh demo
	@$(MAKE) --no-print-directory $(PARALLEL) demo-now
demo-now: bench-programs
	@$(call run_script,bench/demo.sh)
fidelity: bench-programs
	@$(call run_script,bench/fidelity/fidelity.sh)
regret: bench-programs
	@$(call run_script,bench/regret.sh)
bench-runtime: bench-programs
	@$(call run_script,bench/runtime.sh)
bench-images: $(BUILD)/forerun
	@$(call run_script,bench/images/images.sh)
bench-checkpoint: $(BUILD)/bench/checkpoint/bench_checkpoint
	@dir=$$(mktemp -d) && $< $$dir | tee $(BUILD)/bench-checkpoint.json; rm -rf $$dir
bench-sim: bench-programs
	@$(call run_script,bench/sim.sh)
bench-tuner: bench-programs
	@$(call run_script,bench/tuner.sh)
bench-tune-jobs: $(BUILD)/forerun
	@$(call run_script,bench/tune_jobs.sh)
bench-sweep: bench-programs
	@$(call run_script,bench/sweep.sh)
validate: bench-programs $(BUILD)/tests/contract/sim/test_scaling
	@$(call run_script,tests/validate/run.sh)
# Runs of weeks against published ones; TRACES="a.json ...": spot traces, as
# SkyPilot publishes them, that are replayed as well.
.PHONY: goodput
goodput: $(BUILD)/forerun
	@tests/validate/runs.py $(BUILD)/forerun tests/golden/fixtures/spot.json \
	    $(TRACES)
	@tests/validate/stragglers.py $(BUILD)/forerun
	@tests/validate/storage.py $(BUILD)/forerun
# Runs on this machine whose ranks are killed, hung and slow and whose data come
# slowly, against what goodput --inject predicts of them.
.PHONY: goodput-injected
goodput-injected: $(BUILD)/forerun
	@tests/validate/injected.py $(BUILD)/forerun
# The loader of the runtime on two files of 1 GiB, as storage is and throttled.
.PHONY: data
data: $(BUILD)/forerun
	@tests/validate/loader.py $(BUILD)/forerun
# What this build answers, exactly: to compare two builds.
.PHONY: record
record: $(BUILD)/forerun $(RECORDER)
	@$(call run_script,tests/record/run.sh)
# The constants of cost_models/gpu/gpu_constants.c, from measured kernels.
.PHONY: fit-gpu
fit-gpu: $(BUILD)/bench/bench_gpu_fit
	@$(BUILD)/bench/bench_gpu_fit configs/kernels/published.csv
# How far stacks are from what is predicted of them, from the sources of
# tests/validate/: all of them, then all but one of them each.
.PHONY: fit-stack
fit-stack: $(BUILD)/forerun $(BUILD)/bench/fit/bench_stack_fit
	@BUILD=$(BUILD) BOUNDS="scored>=1" tests/validate/run.sh \
	    >$(BUILD)/validate.txt
	@$(BUILD)/bench/fit/bench_stack_fit $(BUILD)/validate.json \
	    >$(BUILD)/stack_prior.inc
	@mv $(BUILD)/stack_prior.inc cost_models/stack/stack_prior.inc
# The script ends with 77 where there is no GPU; make says so ("Error 77") and
# ends with 2 itself: who wants to tell the two apart calls tests/gpu/run.
check-gpu: $(if $(USES_CUDA),gpu-programs)
	@BUILD=$(BUILD) tests/gpu/run

-include $(OBJ:.o=.d) $(TEST_BIN:=.d) $(BENCH_BIN:=.d) $(FUZZ_BIN:=.d)
-include $(GPU_REPORT:=.d) $(RECORDER:=.d) $(RANDOM_EXPORTS:=.d) $(EMULATED_OBJ:.o=.d) $(EMULATED_BIN:=.c.d) $(GPU_TEST_BIN:=.d)
-include $(TEST_AIDS:.o=.d) $(BENCH_AIDS:.o=.d) $(BUILD)/cli/main.d
.SECONDARY:
