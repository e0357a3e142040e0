"""The command, and the server: on a small model with random weights."""

from __future__ import annotations

import io
import json

import pytest

import tensorplug_llm as llm
from tensorplug_llm.command_line import main

from .synthetic import TEMPLATE, weights, write_gguf


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "small.gguf"
    write_gguf(path, "llama", weights("llama"))
    return path


@pytest.fixture
def client(path):
    pytest.importorskip("starlette")
    testing = pytest.importorskip("starlette.testclient", exc_type=(ImportError, RuntimeError))
    server = pytest.importorskip("tensorplug_llm.server")
    return testing.TestClient(server.application(llm.load(path)))


ASKED = [{"role": "user", "content": "the hello"}]
PROMPT = "<|start|>user\nthe hello<|end|><|start|>assistant\n"  # by TEMPLATE


def whole(path, **options):
    return llm.generate(llm.load(path), PROMPT, **options)


def test_generate_prints_the_answer_and_the_speed(path, capsys):
    options = ["--max-tokens", "7", "--repetition", "1", "--top-p", "1", "--backend", "cpu"]
    assert main(["generate", str(path), "the hello", *options]) == 0
    answer, speed = capsys.readouterr().out.rsplit("\n", 2)[:2]
    assert answer == llm.generate(llm.load(path), "the hello", max_tokens=7)
    assert " tokens/s, 7 tokens; the first one after" in speed


def test_chat_goes_on_until_the_input_ends(path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("the hello\nhe\n"))
    options = ["--max-tokens", "5", "--repetition", "1", "--temperature", "0"]
    assert main(["chat", str(path), *options]) == 0
    shown = capsys.readouterr().out
    first = whole(path, max_tokens=5)
    second = f"{PROMPT}{first}<|end|><|start|>user\nhe<|end|><|start|>assistant\n"
    assert shown.startswith(f"> {first}\n")
    assert f"> {llm.generate(llm.load(path), second, max_tokens=5)}\n" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "{path}", "a", "--top-p", "2"], "top_p=2.0 is out of range"),
        (["generate", "nowhere.gguf", "a"], "No such file"),
        (["generate", "{path}", "a", "--backend", "none"], "none"),
    ],
)
def test_errors_are_one_line(path, capsys, arguments, words):
    assert main([text.replace("{path}", str(path)) for text in arguments]) == 1
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_models_are_listed(client):
    (entry,) = client.get("/v1/models").json()["data"]
    assert (entry["id"], entry["object"]) == ("small.gguf", "model")


def test_an_answer_as_a_whole(client, path):
    body = {"messages": ASKED, "max_tokens": 6, "temperature": 0}
    found = client.post("/v1/chat/completions", json=body)
    assert found.status_code == 200
    (choice,) = found.json()["choices"]
    answer = whole(path, max_tokens=6)
    assert choice["message"] == {"role": "assistant", "content": answer}
    assert choice["finish_reason"] == "length"
    count = len(llm.load(path).tokenizer.encode(PROMPT))
    assert found.json()["usage"] == {
        "prompt_tokens": count,
        "completion_tokens": 6,
        "total_tokens": count + 6,
    }


def test_an_answer_in_pieces(client, path):
    answer = whole(path, max_tokens=12)
    parts = [{"type": "text", "text": "the "}, {"type": "text", "text": "hello"}]
    body = {
        "messages": [{"role": "user", "content": parts}],
        "max_completion_tokens": 12,
        "temperature": 0,
        "stop": answer[5:7],
        "stream": True,
    }
    found = client.post("/v1/chat/completions", json=body)
    assert found.headers["content-type"].startswith("text/event-stream")
    *events, done, end = found.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    choices = [json.loads(event.removeprefix("data: "))["choices"][0] for event in events]
    assert choices[0]["delta"]["role"] == "assistant"
    text = "".join(choice["delta"].get("content", "") for choice in choices)
    assert text == answer[: answer.index(answer[5:7])]
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [
        "stop"
    ]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[", "Expecting value"),
        ("{}", "a list of messages"),
        ({"messages": [{"role": "user"}]}, "a role and a content"),
        ({"messages": ASKED, "n": 2}, "n=2"),
        ({"messages": ASKED, "max_tokens": "9"}, "max_tokens='9'"),
        ({"messages": ASKED, "temperature": -1}, "temperature=-1 is out of range"),
        ({"messages": ASKED, "stop": 3}, "stop must be"),
        ({"messages": [{"role": "user", "content": "a" * 700}]}, "from 1 to 639"),
    ],
)
def test_requests_that_are_refused(client, body, words):
    text = body if isinstance(body, str) else json.dumps(body)
    found = client.post("/v1/chat/completions", content=text)
    assert found.status_code == 400
    assert words in found.json()["error"]["message"]


def test_a_conversation_has_the_form_of_its_template(path):
    assert TEMPLATE
    assert llm.load(path).tokenizer.conversation(ASKED) == PROMPT
