# `make demo` and `make test` do all their set-up; DEVICE=cuda installs a CUDA build of torch instead of the CPU one (CUDA=cu126 or
# cu130; by itself the one for this machine's cards) and compiles gsplat's kernels. Afterwards plain `make` keeps that environment.
PYTHON ?= python3
CORES ?= $(shell nproc)
PIP_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
# a set-up that has begun counts: plain `make` goes on with it
PRESENT := $(patsubst ready-%,%,$(patsubst making-%,%,$(notdir $(wildcard $(VENV)/ready-cu* $(VENV)/making-cu*))))
BUILDS := $(patsubst envs/torch-%.txt,%,$(wildcard envs/torch-*.txt))
DEVICE ?= $(if $(PRESENT),cuda,cpu)
ifeq ($(DEVICE),cuda)
CUDA ?= $(or $(firstword $(PRESENT)),$(shell $(PYTHON) -m fujinsplat.core.gpu))
BUILD := $(or $(CUDA),$(error no torch build for these GPUs: see above))
else
BUILD := $(DEVICE)
endif
ifeq ($(filter $(BUILD),$(BUILDS)),)
$(error there is no build "$(BUILD)": choose DEVICE=cpu or DEVICE=cuda, and with cuda $(patsubst %,CUDA=%,$(filter cu%,$(BUILDS))) or none)
endif
READY := $(VENV)/ready-$(BUILD)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS)
DEMO := --config build=main scenes="[Kogarashi,Hayate,Yamase]"

.PHONY: setup demo test torture bench lint format schema clean

setup: $(READY)

demo: $(READY)
	$(BIN)/snakemake --cores $(CORES) $(DEMO)
	@$(BIN)/fujinsplat report highlights results/demo

test: $(READY)
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest --numprocesses $(CORES) --dist worksteal --durations 15

# random kills, damaged files and cheating opens for MINUTES; prints counts and what was lost
MINUTES ?= 10
torture: $(READY)
	$(BIN)/python -m benchmarks.torture $(MINUTES)

bench: $(READY)
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint
	$(BIN)/lint-imports
	$(BIN)/basedpyright --level error

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

schema: $(READY)
	$(BIN)/fujinsplat config schema > fujinsplat/config.schema.json

# The stamp is written last: an interrupted set-up starts again. An environment of another build is made anew: pip takes one build of
# torch for as good as another.
$(READY): envs/lock.txt envs/torch-$(BUILD).txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "FujinSplat needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) for $(BUILD) (once; about three minutes and 2 GB$(if $(filter cpu,$(BUILD)),,; with CUDA 8 GB and longer)) ..."
	@rm -rf $(if $(filter-out $(READY),$(wildcard $(VENV)/ready-* $(VENV)/making-*)),$(if $(wildcard $(VENV)/making-$(BUILD)),,$(VENV)))
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/ready-* $(VENV)/making-* && touch $(VENV)/making-$(BUILD)
	@$(PIP) --no-deps --requirement envs/lock.txt 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; exit 1; }
	@$(PIP) $(if $(filter cpu,$(BUILD)),--no-deps) --requirement envs/torch-$(BUILD).txt 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; \
	  echo "torch's $(BUILD) build was not found: pass PyTorch's own $(BUILD) wheel index, as its 'Start Locally' page prints it: make $(MAKECMDGOALS) DEVICE=$(DEVICE) PIP_FLAGS='--extra-index-url ...'"; exit 1; }
	@$(PIP) --no-deps --no-build-isolation --editable . 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; exit 1; }
	@echo "Compiling the kernels ..." && $(BIN)/python -m fujinsplat.warmup
	@rm -f $(VENV)/making-* && touch $@

clean:
	rm -rf results data/demo logs .snakemake
