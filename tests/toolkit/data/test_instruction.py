"""Instruction data: what is learned, packing, templates and their errors, JSON lines, and chat templates of tokenizers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from megatron_ms.data.chat import ChatFormat
from megatron_ms.data.conversations import BadSample, Message
from megatron_ms.data.packing import pack
from megatron_ms.data.templates import IGNORE, TemplateFormat, template
from megatron_ms.data.tokenizer import Bytes, load_tokenizer
from megatron_ms.errors import UserError
from tests.toolkit.data import toys

numpy = pytest.importorskip("numpy")
_TALK = [Message("user", "Q"), Message("assistant", "A"), Message("user", "q"), Message("assistant", "a")]


def _learned(tokenizer, sample) -> list[str]:
    """The runs of learned text."""
    runs, held = [], []
    for label in [*sample.labels, IGNORE]:
        if label != IGNORE:
            held.append(label)
        elif held:
            runs.append(tokenizer.decode(held))
            held = []
    return runs


def _lines(made) -> list[dict]:
    return [json.loads(line) for line in made.files[0].read_text().splitlines()]


def test_answers_and_end_tokens_are_learned() -> None:
    tokenizer = Bytes()
    sample = TemplateFormat(template("default"), tokenizer).conversation(_TALK, "S")
    assert tokenizer.decode(sample.ids) == "S\nHuman: Q\nAssistant:A<eos>\nHuman: q\nAssistant:a<eos>"
    assert _learned(tokenizer, sample) == ["A<eos>", "a<eos>"]


def test_one_end_token_is_learned_in_the_place_of_the_next_id(tokenizer: Path) -> None:
    inner = load_tokenizer(str(tokenizer))
    sample = TemplateFormat(template("gemma"), inner).conversation(_TALK, None)
    assert inner.decode(sample.ids).endswith("model\na</s>")
    assert _learned(inner, sample) == ["A</s>", "a</s>"]
    assert (
        sum(one != label for one, label in zip(sample.ids, sample.labels, strict=True) if label != IGNORE)
        == 1
    )


@pytest.mark.parametrize("name", ["qwen", "chatglm3"])
def test_a_tokenizer_without_the_tokens_of_a_template(name: str) -> None:
    with pytest.raises(UserError, match="the tokenizer bytes has no token <|"):
        TemplateFormat(template(name), Bytes()).conversation(_TALK, None)


def test_an_unknown_template_names_all() -> None:
    with pytest.raises(UserError, match="there is no template gpt9; there are: chat, alpaca, baichuan2"):
        template("gpt9")


def test_a_word_in_braces_in_the_data_stays() -> None:
    tokenizer = Bytes()
    sample = TemplateFormat(template("default"), tokenizer).conversation(
        [Message("user", "{content} {round}"), Message("assistant", "{name}")], None
    )
    assert tokenizer.decode(sample.ids) == "Human: {content} {round}\nAssistant:{name}<eos>"


def test_rows_are_full_and_hold_each_sample_once() -> None:
    random = numpy.random.default_rng(0)
    lengths = random.integers(1, 60, 500)
    rows = pack(lengths, 60)
    assert sorted(number for row in rows for number in row) == list(range(500))
    assert max(sum(lengths[row]) for row in rows) <= 60
    for number, row in enumerate(rows[:-1]):
        left = [lengths[sample] for later in rows[number + 1 :] for sample in later]
        assert min(left) > 60 - sum(lengths[row])
    with pytest.raises(ValueError, match="sample 1 has 61 ids, more than the 60 of a row"):
        pack(numpy.array([1, 61]), 60)


@pytest.fixture
def rows(tmp_path) -> str:
    return str(toys.write_rows(tmp_path / "rows.jsonl", toys.ALPACA))


def test_json_lines_have_ids_and_labels(make, rows) -> None:
    (made,) = make(task="instruction", template="default", sources=rows, format="jsonl")
    lines = _lines(made)
    assert len(lines) == len(toys.ALPACA)
    assert {tuple(line) for line in lines} == {("input_ids", "labels")}
    assert Bytes().decode([label for label in lines[-1]["labels"] if label != IGNORE]) == "E<eos>"
    assert sum(len(line["input_ids"]) for line in lines) == made.stamp["counts"]["ids"]


def test_packed_json_lines_have_positions(make, rows) -> None:
    (made,) = make(
        task="instruction", template="default", sources=rows, format="jsonl", pack=True, seq_length=140
    )
    lines = _lines(made)
    assert made.stamp["rows"] == len(lines) < len(toys.ALPACA)
    for line in lines:
        assert len(line["input_ids"]) == len(line["labels"]) == len(line["position_ids"]) < 140
        starts = [place for place, position in enumerate(line["position_ids"]) if position == 0]
        for start, end in zip(starts, [*starts[1:], len(line["input_ids"])], strict=True):
            assert line["position_ids"][start:end] == list(range(end - start))
            assert line["input_ids"][end - 1] == 256


def test_pairs_as_json_lines(make, tmp_path) -> None:
    source = toys.write_rows(tmp_path / "p.jsonl", toys.ALPACA_PAIRS)
    (made,) = make(task="pairs", template="default", sources=str(source), format="jsonl")
    found = [{name: Bytes().decode(ids) for name, ids in line.items()} for line in _lines(made)]
    assert found[1] == {
        "prompt_input_ids": "Human: Bad\n?\nAssistant:",
        "chosen_input_ids": "<think>m</think>M<eos>",
        "rejected_input_ids": "N<eos>",
    }


def test_what_is_left_out_is_counted(make, tmp_path) -> None:
    source = toys.write_rows(tmp_path / "s.jsonl", toys.SHAREGPT)
    (made,) = make(task="instruction", template="default", sources=str(source))
    assert made.stamp["counts"]["samples"] == 2
    assert made.stamp["left_out"] == {
        "message 1 has the role assistant, so questions and answers do not alternate": [f"{source}, line 2"],
        "the last message is not an answer": [f"{source}, line 3"],
    }
    with pytest.raises(UserError, match=r"s\.jsonl, line 2: message 1 has the role assistant"):
        make(
            task="instruction",
            template="default",
            sources=str(source),
            bad="stop",
            output=str(tmp_path / "other"),
        )


def test_too_long_is_dropped_or_cut(make, rows, tmp_path) -> None:
    (made,) = make(task="instruction", template="default", sources=rows, seq_length=60)
    assert made.stamp["counts"]["left out: has 60 ids or more"] == 3
    keys = {"long": "cut", "output": str(tmp_path / "cut"), "format": "jsonl"}
    (made,) = make(task="instruction", template="default", sources=rows, seq_length=60, **keys)
    assert max(len(line["input_ids"]) for line in _lines(made)) == 59
    assert made.stamp["counts"]["samples"] == len(toys.ALPACA)


def test_nothing_usable_is_an_error(make, rows, tmp_path) -> None:
    with pytest.raises(UserError, match="none of the 5 entries can be used: has 3 ids or more"):
        make(task="instruction", template="default", sources=rows, seq_length=3)
    assert not any((tmp_path / "out").iterdir())


def test_the_tokenizers_own_template_gives_what_it_gives(tokenizer: Path) -> None:
    found = load_tokenizer(str(tokenizer))
    sample = ChatFormat(found).conversation(_TALK, "S")
    messages = [{"role": "system", "content": "S"}]
    messages += [{"role": message.role, "content": message.content} for message in _TALK]
    assert sample.ids == found.inner.apply_chat_template(messages, tokenize=True, return_dict=False)
    assert _learned(found, sample) == ["A<|im_end|>\n", "a<|im_end|>\n"]


def test_a_template_that_drops_earlier_thoughts(tokenizer: Path) -> None:
    text = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n"
        "{{ m.content if loop.last else m.content.split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    found = load_tokenizer(str(tokenizer))
    talk = [_TALK[0], Message("assistant", "<think>x</think>A"), *_TALK[2:]]
    sample = ChatFormat(found, given=text).conversation(talk, None)
    assert _learned(found, sample) == ["A<|im_end|>\n", "a<|im_end|>\n"]


def test_a_template_that_marks_answers_itself(tokenizer: Path) -> None:
    text = (
        "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}"
    )
    found = load_tokenizer(str(tokenizer))
    sample = ChatFormat(found, given=text).conversation(_TALK, None)
    assert found.decode(sample.ids) == "user:Q;assistant:A;user:q;assistant:a;"
    assert _learned(found, sample) == ["A", "a"]


def test_a_pair_by_the_tokenizers_template(tokenizer: Path) -> None:
    found = load_tokenizer(str(tokenizer))
    parts = ChatFormat(found).pair(_TALK[:1], Message("assistant", "g"), Message("assistant", "b"), None)
    assert [found.decode(ids) for ids in parts] == [
        "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n",
        "g<|im_end|>\n",
        "b<|im_end|>\n",
    ]


@pytest.mark.parametrize("content", ["{}", '[{"name": 1}]', "[" * 10**5])
def test_a_call_that_is_not_json_spoils_only_its_sample(tokenizer: Path, content: str) -> None:
    talk = [
        Message("user", "Q"),
        Message("function", content),
        Message("observation", "1"),
        Message("assistant", "a"),
    ]
    for form in (ChatFormat(load_tokenizer(str(tokenizer))), TemplateFormat(template("default"), Bytes())):
        with pytest.raises(BadSample, match="is not JSON with `name` and `arguments`"):
            form.conversation(talk, None)


def test_templates_that_do_not_fit(tokenizer: Path) -> None:
    found = load_tokenizer(str(tokenizer))
    with pytest.raises(BadSample, match="the chat template refuses it: no"):
        ChatFormat(found, given="{{ raise_exception('no') }}").conversation(_TALK, None)
    with pytest.raises(UserError, match="changes the text before an answer"):
        ChatFormat(found, given="{{ messages | length }}{{ messages[-1].content }}").conversation(_TALK, None)
    with pytest.raises(UserError, match="only tokenizers of Hugging Face have chat templates"):
        ChatFormat(Bytes())
