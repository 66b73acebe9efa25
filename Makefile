# `make demo` and `make test` do all their set-up; DEVICE=cuda installs the CUDA build of torch instead of the CPU one.
PYTHON ?= python3
DEVICE ?= cpu
CORES ?= $(shell nproc)
PIP_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready-$(DEVICE)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS)
DEMO := --config build=main scenes="[Kogarashi,Hayate,Yamase]"

.PHONY: setup demo test bench lint format schema clean

setup: $(READY)

demo: $(READY)
	$(BIN)/snakemake --cores $(CORES) $(DEMO)
	@$(BIN)/fujinsplat report highlights results/demo

test: $(READY)
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE $(BIN)/pytest --numprocesses $(CORES) --dist worksteal

bench: $(READY)
	$(BIN)/python -m benchmarks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile rules

schema: $(READY)
	$(BIN)/fujinsplat config schema > fujinsplat/config.schema.json

# The stamp is written last: an interrupted set-up starts again.
$(READY): envs/lock.txt envs/torch-$(DEVICE).txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "FujinSplat needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up $(VENV) (once; about three minutes and 2 GB) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@rm -f $(VENV)/ready-*
	@$(PIP) --no-deps --requirement envs/lock.txt 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; exit 1; }
	@$(PIP) $(if $(filter cpu,$(DEVICE)),--no-deps) --requirement envs/torch-$(DEVICE).txt 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; \
	  echo "torch's $(DEVICE) build was not found: pass PyTorch's own $(DEVICE) wheel index, as its 'Start Locally' page prints it: make $(MAKECMDGOALS) PIP_FLAGS='--extra-index-url ...'"; exit 1; }
	@$(PIP) --no-deps --no-build-isolation --editable . 2>$(VENV)/pip.log || { tail -5 $(VENV)/pip.log; exit 1; }
	@echo "Compiling the CPU kernels ..." && $(BIN)/python -m fujinsplat.compile
	@touch $@

clean:
	rm -rf results data/demo logs .snakemake
