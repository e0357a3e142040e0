"""Every guide works as written, and the runner notices when one does not."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tensorplug.errors import BackendUnavailableError
from tensorplug_webgpu import adapters

from . import guide_runner

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = sorted(
    path
    for pattern in ("index.md", "start/*.md", "guides/*.md", "coming_from/*.md")
    for path in DOCS.glob(pattern)
    if path.name != "index.md" or path.parent.name in {"docs", "start"}
    if path.name != "tfjs.md"  # tests/core reads it
)
NEED_AN_ADAPTER = {"gpu_backend_from_nothing.md"}  # of WebGPU
NEED_GCC = {"debug_a_backend.md", "backend_in_c.md"}  # with its sanitizers


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment for guides that install nothing."""
    return guide_runner.make_environment(tmp_path_factory.mktemp("shared") / "environment")


@pytest.fixture
def own_environment(tmp_path):
    return guide_runner.make_environment(tmp_path / "environment")


def follow(text, folder, environment):
    """Follow a guide to its end; return the folder where it worked."""
    with guide_runner.Reader(folder, environment) as reader:
        work = reader.cwd
        for block in guide_runner.blocks(text):
            try:
                reader.follow(block)
            except AssertionError as error:
                raise AssertionError(f"line {block.line}: {error}") from error
    return work


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_guide_does_what_it_says(guide, tmp_path, own_environment):
    text = guide.read_text("utf-8")
    if guide.name in NEED_AN_ADAPTER:
        try:
            adapters.find()
        except BackendUnavailableError as error:
            pytest.skip(str(error))
    if guide.name in NEED_GCC and (sys.platform != "linux" or not shutil.which("gcc")):
        pytest.skip("no GCC")
    assert list(guide_runner.blocks(text))
    follow(text, tmp_path, own_environment)


RIGHT = r"""
```console
$ mkdir folder
$ cd folder
```

Write `data/a.toml`:

```toml file=data/a.toml
a = 1

b = 2
```

Change `data/a.toml`:

```diff file=data/a.toml
-a = 1
+a = 3

@@
 b = 2
+c = 4
```

```sh
this is not run
```

```console
$ cat data/a.toml; echo second >&2
a = 3
...
c = 4
second
$ echo one \
  two; exit 3
one two
[exit code 3]
```

```python
import os
x = 5
```

```python
print(os.path.basename(os.getcwd()), x)
1 / 0
```

```text
folder 5
builtins.ZeroDivisionError: division by zero
```
"""


def test_a_guide_that_is_right(tmp_path, environment):
    work = follow(RIGHT, tmp_path, environment)
    assert (work / "folder/data/a.toml").read_text("utf-8") == "a = 3\n\nb = 2\nc = 4\n"


# A block, and what is wrong with it.
WRONG = {
    "output": ("```console\n$ echo one\ntwo\n```", "printed\n\none"),
    "exit code": ("```console\n$ exit 2\n```", "ended with 2"),
    "no failure": ("```console\n$ true\n[exit code 1]\n```", "ended with 0"),
    "second command": ("```console\n$ true\n$ false\n```", "false\nended with 1"),
    "print": ("```python\nprint(1)\n```", "printed\n\n1"),
    "no print": ("```python\nx = 1\n```\n\n```text\n1\n```", "printed"),
    "error": ("```python\n1 / 0\n```", "ZeroDivisionError"),
    "death": ("```python\nimport os\nos._exit(1)\n```", "the session died"),
    "no such place": (
        "a\n```text file=a\n1\n```\na\n```diff file=a\n-2\n+3\n```",
        "found 0 times",
    ),
    "two such places": (
        "a\n```text file=a\n1\n1\n```\na\n```diff file=a\n-1\n```",
        "found 2 times",
    ),
    "no name": ("```text file=a\n1\n```", "does not name a"),
    "half a line": ("a\n```text file=a\n12\n```\na\n```diff file=a\n-2\n```", "found 0 times"),
    "no diff": ("a\n```text file=a\n1\n```\na\n```diff file=a\n1\n```", "neither kept"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_guide_that_is_wrong(name, tmp_path, environment):
    text, message = WRONG[name]
    with pytest.raises(AssertionError, match=rf"line \d+: (?s:.*){message}"):
        follow(text + "\n", tmp_path, environment)


def test_the_environment_of_a_guide_is_its_own(tmp_path, own_environment):
    package = """
        one/pyproject.toml

        ```toml file=one/pyproject.toml
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        [project]
        name = "of-the-guide"
        version = "1.0"
        dependencies = ["not-there-at-all"]
        [tool.hatch.build.targets.wheel]
        packages = ["of_the_guide.py"]
        ```

        of_the_guide.py

        ```python file=one/of_the_guide.py
        X = 7
        ```

        ```console
        $ pip install ./one
        $ python -c "import of_the_guide, tensorplug; print(of_the_guide.X)"
        7
        $ tensorplug-conformance --version
        suite ...
        ```

        ```python
        import of_the_guide
        print(of_the_guide.X)
        ```

        ```text
        7
        ```
    """.replace("        ", "")
    follow(package, tmp_path, own_environment)
    with pytest.raises(ModuleNotFoundError):
        __import__("of_the_guide")
