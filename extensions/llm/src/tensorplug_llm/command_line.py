"""The command ``tensorplug-llm``: ``chat``, ``generate`` and ``serve``.

The exit status is 0 if all went well, 1 if the model or an argument is wrong, 2 if the command is.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rich.console import Console

import tensorplug as tp
from tensorplug.errors import TensorplugError
from tensorplug_llm.generation import Generation
from tensorplug_llm.model import Model, load

if TYPE_CHECKING:
    from collections.abc import Sequence


def run() -> None:
    """Run the command of this process, and exit."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit status."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    try:
        with nullcontext() if options.backend is None else tp.use_backend(options.backend):
            with console.status(f"Reading {options.model}"):
                model = load(options.model)
            options.command(console, model, options)
    except (TensorplugError, OSError) as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tensorplug-llm", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command, told in (
        ("chat", _chat, "talk to a model; end with Ctrl-D, end an answer with Ctrl-C"),
        ("generate", _generate, "go on with a text"),
        ("serve", _serve, "answer HTTP requests in the form of OpenAI"),
    ):
        one = commands.add_parser(name, help=told, description=told)
        one.set_defaults(command=command)
        one.add_argument("model", help="a GGUF file, or a folder in Hugging Face's layout")
        one.add_argument("--backend", metavar="NAME", help="where to run: cpu, opencl:1")
        if name == "serve":
            one.add_argument("--host", default="127.0.0.1", help="%(default)s by default")
            one.add_argument("--port", type=int, default=8000, help="%(default)s by default")
            continue
        if name == "generate":
            one.add_argument("prompt")
        else:
            one.add_argument("--system", metavar="TEXT", help="what the model is told first")
        for option, type, default, help in (
            ("max-tokens", int, 512, "of an answer"),
            ("temperature", float, 0.7 if name == "chat" else 0.0, "0: the most likely token"),
            ("top-k", int, 0, "draw among so many tokens; 0: all"),
            ("top-p", float, 0.95, "draw among the fewest tokens with this probability"),
            ("repetition", float, 1.1, "above 1, repeated tokens become less likely"),
            ("key", int, 0, "of the random numbers"),
        ):
            one.add_argument(
                f"--{option}", type=type, default=default, help=f"{help} (%(default)s)"
            )
        one.add_argument("--stop", action="append", default=[], help="a text that ends an answer")
    return parser


def _chat(console: Console, model: Model, options: argparse.Namespace) -> None:
    messages = [{"role": "system", "content": options.system}] if options.system else []
    while True:
        try:
            asked = console.input("[bold]> [/bold]")
        except EOFError:
            console.print()
            return
        messages.append({"role": "user", "content": asked})
        prompt = model.tokenizer.encode(model.tokenizer.conversation(messages), start=False)
        answer = _answer(console, model, prompt, options)
        messages.append({"role": "assistant", "content": answer})


def _generate(console: Console, model: Model, options: argparse.Namespace) -> None:
    _answer(console, model, model.tokenizer.encode(options.prompt), options)


def _answer(console: Console, model: Model, prompt: list[int], options: argparse.Namespace) -> str:
    """Print an answer as it comes, then its speed; return it. Ctrl-C ends it."""
    names = ("max_tokens", "temperature", "top_k", "top_p", "repetition", "key", "stop")
    generation = Generation(model, [prompt], **{name: getattr(options, name) for name in names})
    pieces, start = iter(generation), time.perf_counter()
    text: list[str] = []
    try:
        with console.status(f"Reading {len(prompt)} tokens"):
            text += next(pieces)
        first = time.perf_counter()
        console.print(text[0], end="", markup=False, soft_wrap=True)
        for (piece,) in pieces:
            text.append(piece)
            console.print(piece, end="", markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        if not text:
            raise
    console.print()
    (count,), seconds = generation.counts, time.perf_counter() - first
    speed = f"{(count - 1) / seconds:.1f} tokens/s, " if count > 1 else ""
    console.print(
        f"{speed}{count} tokens; the first one after {first - start:.2f} s, "
        f"for a prompt of {len(prompt)}",
        style="dim",
    )
    return "".join(text)


def _serve(console: Console, model: Model, options: argparse.Namespace) -> None:
    try:
        import uvicorn  # of the extra [server]

        from tensorplug_llm.server import application
    except ImportError as error:
        raise tp.errors.PackageNotInstalledError(
            f"{error.name} is not installed. Try: pip install 'tensorplug-llm[server]'"
        ) from error
    console.print(f"Serving {model.name} at http://{options.host}:{options.port}/v1")
    uvicorn.run(application(model), host=options.host, port=options.port, log_level="warning")
