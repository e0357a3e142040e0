"""An HTTP server in the form of OpenAI: /v1/models and /v1/chat/completions.

Requests are answered one after the other: a batch of one has all processors.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from tensorplug.errors import ArgumentError, TensorplugError
from tensorplug_llm.generation import Generation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from tensorplug_llm.model import Model

# By OpenAI's names: ours. 1 is the default of OpenAI for the temperature.
_OPTIONS: Final = {
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "key",
}
_TYPES: Final = {"max_tokens": int, "temperature": int | float, "top_p": int | float, "key": int}


def application(model: Model) -> Starlette:
    """Return the server as an ASGI application, which ``uvicorn.run`` takes.

    Args:
        model: that answers, with a chat template.

    """
    turn = asyncio.Lock()

    async def models(_: Request) -> Response:
        entry = {"id": model.name, "object": "model", "created": 0, "owned_by": "tensorplug"}
        return JSONResponse({"object": "list", "data": [entry]})

    async def chat(request: Request) -> Response:
        try:
            body = json.loads(await request.body())
            prompt, generation = _asked(model, body)
        except (TensorplugError, ValueError) as error:
            told = {"message": str(error), "type": "invalid_request_error"}
            return JSONResponse({"error": told}, status_code=400)
        frame = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.name,
        }

        async def pieces() -> AsyncIterator[str]:
            async with turn:
                async for (piece,) in iterate_in_threadpool(iter(generation)):
                    yield piece

        if body.get("stream"):
            return StreamingResponse(
                _events(frame, pieces(), generation), media_type="text/event-stream"
            )
        text = "".join([piece async for piece in pieces()])
        (count,), (reason,) = generation.counts, generation.reasons
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": reason,
        }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": count}
        usage["total_tokens"] = sum(usage.values())
        return JSONResponse(
            {**frame, "object": "chat.completion", "choices": [choice], "usage": usage}
        )

    routes = [
        Route("/v1/models", models),
        Route("/v1/chat/completions", chat, methods=["POST"]),
    ]
    return Starlette(routes=routes)


def _asked(model: Model, body: Any) -> tuple[list[int], Generation]:
    """Return the tokens of the prompt, and its answer to come."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise ArgumentError("the body must be a JSON object with a list of messages")
    if body.get("n", 1) != 1:
        raise ArgumentError(f"n={body['n']}: there is one answer to a request")
    messages = [_message(message) for message in body["messages"]]
    options = {ours: body[name] for name, ours in _OPTIONS.items() if body.get(name) is not None}
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, _TYPES[name]):
            raise ArgumentError(f"{name}={value!r} is not a number of the right type")
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or not all(isinstance(word, str) for word in stop):
        raise ArgumentError("stop must be a text or a list of texts")
    prompt = model.tokenizer.encode(model.tokenizer.conversation(messages), start=False)
    return prompt, Generation(model, [prompt], stop=stop, **{"temperature": 1.0, **options})


def _message(message: Any) -> dict[str, str]:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):  # parts, each with a type
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    if not isinstance(content, str) or not isinstance(message.get("role"), str):
        raise ArgumentError("a message must have a role and a content, as texts")
    return {"role": message["role"], "content": content}


async def _events(
    frame: dict[str, Any], pieces: AsyncIterator[str], generation: Generation
) -> AsyncIterator[str]:
    """Yield an answer as server-sent events."""

    def event(delta: dict[str, str], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        body = {**frame, "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(body)}\n\n"

    yield event({"role": "assistant", "content": ""})
    async for piece in pieces:
        if piece:
            yield event({"content": piece})
    yield event({}, generation.reasons[0])
    yield "data: [DONE]\n\n"
