"""The plugin contract as lines of text: what ``tensorplug.plugin`` offers, and how it is called.

``contracts/v0_1/contract.txt`` holds these lines for version 0.1. After a change that is meant,
``python -m tests.plugins.contract_record`` writes those of the current version again.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType

from tensorplug import plugin
from tensorplug.contract import hooks
from tensorplug.contract.families import modules_of
from tensorplug.contract.spec import REQUIRED

CONTRACTS = Path(__file__).parent / "contracts"
PROJECT = Path(__file__).parents[2] / "core" / "pyproject.toml"
NOT_OURS = ("annotations", "TYPE_CHECKING", "F")


def current_version():
    """Return the name of the current minor version, such as ``v0_1``."""
    version = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["version"]
    major, minor, *_ = version.split(".")
    return f"v{major}_{minor}"


def lines():
    """Return the contract's lines: names, signatures, fields, members, hooks and kernel specs."""
    result = [line for name in plugin.__all__ for line in described(name, getattr(plugin, name))]
    result += [
        f"hook {signature(name, hook)}"
        for name, hook in vars(hooks).items()
        if name.startswith("tensorplug_")
    ]
    return sorted(result)


def described(name, value):
    """Yield the lines of one name of the contract."""
    if value is plugin.specs:
        for spec_name in dir(value):
            yield f"specs.{spec_name} = {kernel_call(getattr(value, spec_name))}"
    elif isinstance(value, ModuleType):
        yield from described_module(name, value)
    elif isinstance(value, type):
        yield from described_class(name, value)
    elif inspect.isroutine(value):
        yield signature(name, value)
    elif isinstance(value, int | float | str):
        yield f"{name} = {value!r}"
    else:
        yield name


def described_module(name, module):
    """Yield the lines of a module: of what it defines, or of the modules in it."""
    if hasattr(module, "__path__"):
        for inner in modules_of(module):
            yield from described_module(name + inner.__name__.removeprefix(module.__name__), inner)
        return
    for member in getattr(module, "__all__", None) or own_names(module):
        value = getattr(module, member)
        if isinstance(value, type):  # its members are those that the contract's own name has
            yield f"{name}.{member}"
        else:
            yield from described(f"{name}.{member}", value)


def own_names(module):
    """Return the public names that a module without ``__all__`` defines itself."""
    return [
        member
        for member, value in vars(module).items()
        if not (member.startswith("_") or member in NOT_OURS or isinstance(value, ModuleType))
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]


def described_class(name, cls):
    """Yield a class with its bases, its fields and its public members."""
    if cls is plugin.Tensor:  # its methods belong to the public functions
        yield f"class {name}"
        return
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(cls, BaseException):
        return
    fields = [field.name for field in dataclasses.fields(cls)] if is_dataclass(cls) else []
    for field in fields:
        if not field.startswith("_"):
            yield f"{name}.{field}"
    if fields:
        yield signature(name, cls)
    ours = [base for base in reversed(cls.__mro__) if base.__module__.startswith("tensorplug")]
    members = {member: value for base in ours for member, value in vars(base).items()}
    for member, value in members.items():
        if member.startswith("_") or member in fields:
            continue
        if inspect.isfunction(value):
            yield signature(f"{name}.{member}", value)
        else:
            yield f"{name}.{member}"


def signature(name, function):
    """Return how ``function`` is called: parameters and defaults, without annotations."""
    parameters = [
        parameter.replace(
            annotation=inspect.Parameter.empty, default=shown_default(parameter.default)
        )
        for parameter in inspect.signature(function).parameters.values()
    ]
    if parameters and parameters[0].name == "self":
        del parameters[0]
    return f"{name}{inspect.Signature(parameters)}"


def shown_default(value):
    """Return a default as it is if its text never changes, else an ellipsis."""
    plain = value is None or isinstance(value, bool | int | float | str | tuple)
    return value if plain or value in (inspect.Parameter.empty, REQUIRED) else ...


def kernel_call(spec):
    """Return the call of a kernel: inputs, attributes with defaults sorted by name, outputs."""
    attributes = [
        name if attribute.default is REQUIRED else f"{name}={attribute.default!r}"
        for name, attribute in sorted(spec.attributes.items())  # by name: so they are passed
    ]
    call = ", ".join([*spec.inputs, *(["*", *attributes] if attributes else [])])
    return f"{spec.name}({call}) -> {', '.join(spec.outputs)}"


if __name__ == "__main__":
    path = CONTRACTS / current_version() / "contract.txt"
    path.write_text("".join(f"{line}\n" for line in lines()), "utf-8")
