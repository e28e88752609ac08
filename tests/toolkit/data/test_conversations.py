"""Rows in Alpaca and ShareGPT form become messages, and rows that are not conversations are reported."""

from __future__ import annotations

import pytest

from megatron_ms.data.conversations import BadSample, Layout, Message, MissingKey


def _said(layout: Layout, row: dict) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in layout.read(row).messages]


def test_alpaca_with_history_system_and_tools() -> None:
    row = {
        "instruction": "Q",
        "input": "more",
        "output": "A",
        "history": [["q", "a"]],
        "system": "S",
        "tools": "x",
    }
    found = Layout().read(row)
    assert [(message.role, message.content) for message in found.messages] == [
        ("user", "q"),
        ("assistant", "a"),
        ("user", "Q\nmore"),
        ("assistant", "A"),
    ]
    assert (found.system, found.tools) == ("S", True)
    assert not Layout().read({**row, "tools": "[]"}).tools


def test_own_names_of_columns() -> None:
    layout = Layout(columns={"instruction": "q", "input": None, "output": "a"})
    assert _said(layout, {"q": "Q", "a": "A", "input": "unused"}) == [("user", "Q"), ("assistant", "A")]


def test_sharegpt_and_openai_messages() -> None:
    sharegpt = {
        "conversations": [
            {"from": "system", "value": "S"},
            {"from": "human", "value": "Q"},
            {"from": "gpt", "value": "A"},
        ]
    }
    openai = {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": "A"},
        ]
    }
    own = {"talk": [{"who": "me", "what": "Q"}, {"who": "it", "what": "A"}]}
    assert _said(Layout(), sharegpt) == _said(Layout(), openai) == [("user", "Q"), ("assistant", "A")]
    assert Layout().read(sharegpt).system == Layout().read(openai).system == "S"
    tags = {"role": "who", "content": "what", "user": "me", "assistant": "it"}
    layout = Layout(form="sharegpt", columns={"messages": "talk"}, tags=tags)
    assert _said(layout, own) == [("user", "Q"), ("assistant", "A")]


@pytest.mark.parametrize(("history", "first"), [(0, "3"), (1, "2"), (5, "1")])
def test_only_so_much_history(history: int, first: str) -> None:
    row = {"instruction": "3", "output": "c", "history": [["1", "a"], ["2", "b"]]}
    assert _said(Layout(history=history), row)[0] == ("user", first)
    talk = [{"from": who, "value": text} for who, text in zip(["human", "gpt"] * 3, "1a2b3c", strict=True)]
    assert _said(Layout(history=history), {"conversations": talk})[0] == ("user", first)
    pair = {
        "conversations": talk[:-1],
        "chosen": {"from": "gpt", "value": "c"},
        "rejected": {"from": "gpt", "value": "d"},
    }
    assert _said(Layout(history=history, pairs=True), pair)[0] == ("user", first)


def test_pairs_in_three_forms() -> None:
    answers = Message("assistant", "good"), Message("assistant", "bad")
    rows = [
        {"instruction": "Q", "chosen": "good", "rejected": "bad"},
        {"prompt": "Q", "chosen": "good", "rejected": "bad"},
        {
            "conversations": [{"from": "human", "value": "Q"}],
            "chosen": {"from": "gpt", "value": "good"},
            "rejected": {"from": "gpt", "value": "bad"},
        },
        {
            "prompt": "Q",
            "chosen": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "good"}],
            "rejected": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "bad"}],
        },
    ]
    for row in rows:
        found = Layout(pairs=True).read(row)
        assert (found.chosen, found.rejected) == answers
        assert found.messages == [Message("user", "Q")]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"instruction": "Q", "output": None}, "output is not text"),
        ({"instruction": "Q", "output": "A", "history": ["x"]}, "the history is not a list of pairs"),
        ({"conversations": []}, "there are no messages"),
        ({"conversations": "x"}, "the messages are not a list"),
        ({"conversations": [{"from": "system", "value": "S"}]}, "there are no messages"),
        ({"conversations": [{"from": "human"}]}, "a message has no 'value'"),
        (
            {"conversations": [{"from": "cat", "value": "x"}]},
            "a message has the role 'cat', which is none of 'human'",
        ),
        ({"conversations": [{"from": "gpt", "value": "x"}]}, "message 1 has the role assistant"),
        ({"conversations": [{"from": "human", "value": "x"}]}, "the last message is not an answer"),
    ],
)
def test_what_is_no_conversation(row: dict, words: str) -> None:
    with pytest.raises(BadSample) as caught:
        Layout().read(row)
    assert words in str(caught.value)


def test_a_missing_column_names_those_that_exist() -> None:
    with pytest.raises(MissingKey, match="there is no key 'output'; the keys are 'instruction', 'answer'"):
        Layout().read({"instruction": "Q", "answer": "A"})
    with pytest.raises(MissingKey, match="there is no key 'old'"):
        Layout(columns={"history": "old"}).read({"instruction": "Q", "output": "A"})
