"""Answers: greedy and drawn, of batches, streamed, stopped; the tokens are those of float64."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

import tensorplug as tp
import tensorplug_llm as llm
from tensorplug.errors import ArgumentError
from tensorplug_llm.generation import _Text
from tensorplug_llm.sampling import choose, sampling

from .reference import reference
from .synthetic import BASE, CONTEXT, EPSILON, HEADS, TOKENS, weights, write_gguf

TEXT = np.random.default_rng(1).integers(2, len(TOKENS), 520).tolist()


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def written(kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.gguf"
    return path, write_gguf(path, kind, weights(kind), stored=Kind.Q4_1, embedded=Kind.Q8_0)


@pytest.fixture
def model(written):
    return llm.load(written[0])


def following(kind, held, text, count):
    """Return the tokens that follow a text, each the one with the highest score in float64."""
    text = list(text)
    for _ in range(count):
        scores = reference(kind, held, text, heads=HEADS, base=BASE, epsilon=EPSILON)
        text.append(int(scores[-1].argmax()))
    return text[-count:]


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_tokens_of_a_batch_are_those_of_each_text_alone(kind, written, backend):
    texts = [TEXT[:3], TEXT[:16], TEXT[:40], TEXT]  # the last one takes two calls
    try:
        with tp.use_backend(backend):
            model = llm.load(written[0])
    except tp.errors.BackendUnavailableError as error:
        pytest.skip(str(error))
    tokens = llm.Generation(model, texts)._tokens()
    drawn = np.asarray([next(tokens) for _ in range(4)])
    assert drawn.T.tolist() == [following(kind, written[1], text, 4) for text in texts]


def test_pieces_of_several_prompts_make_their_answers(model):
    prompts = ["the hello", "  a b"]
    answers = llm.generate(model, prompts, max_tokens=20)
    assert len(answers) == 2
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer
        pieces = list(llm.stream(model, prompt, max_tokens=20))
        assert len(pieces) > 1
        assert "".join(pieces) == answer == llm.generate(model, prompt, max_tokens=20)


def test_an_answer_ends_where_it_must(model):
    prompt = model.tokenizer.encode("the hello")
    whole = llm.generate(model, "the hello", max_tokens=20)
    stop = whole[4:6]
    limits = {
        "length of the answer": ({"max_tokens": 3}, prompt, ["length"], 3),
        "end of the context": ({"max_tokens": 99}, TEXT[:1] * (CONTEXT - 2), ["length"], 2),
        "stop word": ({"max_tokens": 20, "stop": ["nowhere", stop]}, prompt, ["stop"], None),
    }
    for name, (options, tokens, reasons, count) in limits.items():
        generation = llm.Generation(model, [tokens], **options)
        text = "".join(pieces[0] for pieces in generation)
        assert generation.reasons == reasons, name
        assert count is None or generation.counts == [count], name
        if name == "stop word":
            assert text == whole[: whole.index(stop)]


def test_the_token_of_an_end_is_no_text(model):
    generation = llm.Generation(model, [[5]], max_tokens=9)
    generation._tokens = lambda: iter([[5], [1], [6]])
    assert len([*generation]) == 2
    assert (generation.reasons, generation.counts) == (["stop"], [2])


@pytest.mark.parametrize(
    ("pieces", "stop", "shown"),
    [
        (["ab", "cd"], (), ["ab", "cd"]),
        (["ab", "cd"], ("bc",), ["a", ""]),  # b is held, since c may follow
        (["ab", "dc"], ("bc",), ["a", "bdc"]),
        (["abc"], ("c", "bc"), ["a"]),
        (["ab", "c", "e"], ("abcd",), ["", "", "abce"]),
    ],
)
def test_stop_words_lie_across_pieces(model, pieces, stop, shown):
    text = _Text(model, stop)
    found, stopped = [], False
    for piece in pieces:
        found.append("")
        for token in model.tokenizer.encode(piece):
            if not stopped:
                part, stopped = text.further(token)
                found[-1] += part
    assert found == shown
    assert stopped == any(word in "".join(pieces) for word in stop)


def test_characters_of_several_bytes_come_whole(model):
    text = _Text(model, ())
    parts = [text.further(token)[0] for token in model.tokenizer.encode("é€")]
    assert [part for part in parts if part] == ["é", "€"]
    assert len(parts) == 5


SCORES = np.log(np.asarray([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]))
RARE = [[False, False, False, False], [False, False, False, True]]


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        ((1.0, 0, 1.0, 1.0), np.exp(SCORES)),
        ((0.5, 0, 1.0, 1.0), np.exp(2 * SCORES)),
        ((1.0, 2, 1.0, 1.0), [[0.5, 0.3, 0, 0], [0, 0, 0.3, 0.5]]),
        ((1.0, 0, 0.6, 1.0), [[0.5, 0.3, 0, 0], [0, 0, 0.3, 0.5]]),
        ((1.0, 3, 0.4, 1.0), [[1, 0, 0, 0], [0, 0, 0, 1]]),
        ((1.0, 0, 1.0, 2.0), [[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.25]]),
        ((0.0, 0, 1.0, 1.0), [[1, 0, 0, 0], [0, 0, 0, 1]]),
        ((0.0, 0, 1.0, 2.0), [[1, 0, 0, 0], [0, 0, 1, 0]]),
    ],
)
def test_tokens_are_drawn_with_their_shares(options, shares):
    scores = tp.asarray(SCORES.astype(np.float32))
    keys = tp.random.split(tp.random.key(0), 4000)
    drawn = tp.vmap(lambda key: choose(scores, tp.asarray(RARE), key, sampling(*options)))(keys)
    assert drawn.dtype is tp.int32
    found = np.stack([np.bincount(row, minlength=4) / 4000 for row in drawn.numpy().T])
    wanted = np.asarray(shares) / np.sum(shares, axis=1, keepdims=True)
    np.testing.assert_allclose(found, wanted, atol=4 * 0.5 / np.sqrt(4000))  # four deviations
    assert not found[wanted == 0].any()


def test_a_key_repeats_an_answer(model):
    options = {"temperature": 2.0, "top_k": 50, "top_p": 0.95, "repetition": 1.3, "max_tokens": 8}
    first, again, other = (
        llm.generate(model, "the hello", key=key, **options) for key in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("prompt", "options", "words"),
    [
        ("", {}, "a prompt has 0 tokens; from 1 to 639 are allowed"),
        ("a" * CONTEXT, {}, "a prompt has 640 tokens"),
        ([], {}, "0 prompts"),
        ("a", {"max_tokens": 0}, "max_tokens=0"),
        ("a", {"temperature": -1.0}, "temperature=-1.0 is out of range"),
        ("a", {"top_p": 0.0}, "top_p=0.0 is"),
        ("a", {"top_k": -1}, "top_k=-1 is"),
        ("a", {"repetition": 0.0}, "repetition=0.0 is"),
    ],
)
def test_refused(model, prompt, options, words):
    with pytest.raises(ArgumentError, match=words):
        llm.generate(model, prompt, **options)
