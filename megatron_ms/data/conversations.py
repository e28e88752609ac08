"""Instruction data: turns rows in Alpaca form or in ShareGPT form into messages with roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UserError

ALPACA = {
    "instruction": "instruction",
    "input": "input",
    "output": "output",
    "history": "history",
    "system": "system",
    "tools": "tools",
    "chosen": "chosen",
    "rejected": "rejected",
    "messages": "conversations",
}
COLUMNS = tuple(ALPACA)
SHAREGPT_TAGS = {
    "role": "from",
    "content": "value",
    "user": "human",
    "assistant": "gpt",
    "observation": "observation",
    "function": "function_call",
    "system": "system",
}
OPENAI_TAGS = {
    "role": "role",
    "content": "content",
    "user": "user",
    "assistant": "assistant",
    "observation": "tool",
    "function": "function",
    "system": "system",
}
TAGS = tuple(SHAREGPT_TAGS)
FORMS = ("auto", "alpaca", "sharegpt")
_ASKS, _REPLIES = ("user", "observation"), ("assistant", "function")


class BadSample(Exception):
    """A sample that cannot be used. It is counted and left out."""


class MissingKey(Exception):
    """A row has no value under a key that is needed."""

    def __init__(self, key: str, row: Mapping[str, Any]) -> None:
        super().__init__(
            f"there is no key {key!r}; the keys are {', '.join(map(repr, row)) or 'none at all'}"
        )


@dataclass(frozen=True)
class Message:
    """`role` is user, assistant, observation or function."""

    role: str
    content: str


@dataclass(frozen=True)
class Conversation:
    """Questions and answers in turns, beginning with a question. For pairs, the two answers to the last question."""

    messages: list[Message]
    system: str | None = None
    tools: bool = False
    chosen: Message | None = None
    rejected: Message | None = None


@dataclass(frozen=True)
class Layout:
    """How rows are read.

    columns: our name of a column -> the name in the data; None if the data has none. tags: the same for the words inside
    messages; what is absent is recognised. history: how many earlier exchanges are kept; None keeps all.
    """

    form: str = "auto"
    columns: Mapping[str, str | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    history: int | None = None
    pairs: bool = False

    def column(self, name: str, row: Mapping[str, Any]) -> str | None:
        """The name in the data. A column that the configuration does not name has its usual name."""
        if name in self.columns:
            return self.columns[name]
        usual = ALPACA[name]
        if name == "messages" and usual not in row and "messages" in row:
            return "messages"
        if name == "instruction" and usual not in row and "prompt" in row:
            return "prompt"
        return usual

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row.

        Raises:
            MissingKey: a column is absent. BadSample: its content is not a conversation.
        """
        form = self.form
        if form == "auto":
            form = "sharegpt" if self.column("messages", row) in row else "alpaca"
        found = self._sharegpt(row) if form == "sharegpt" else self._alpaca(row)
        return self._with_recent_history(found)

    def _with_recent_history(self, found: Conversation) -> Conversation:
        if self.history is None:
            return found
        last = 1 if self.pairs else 2  # the last question; without pairs its answer too
        kept = found.messages[max(0, len(found.messages) - last - 2 * self.history) :]
        return Conversation(kept, found.system, found.tools, found.chosen, found.rejected)

    def _alpaca(self, row: Mapping[str, Any]) -> Conversation:
        messages = []
        for exchange in self._optional(row, "history") or ():
            if not _is_list(exchange) or len(exchange) != 2:
                raise BadSample("the history is not a list of pairs")
            messages += [
                Message("user", _text(exchange[0], "history")),
                Message("assistant", _text(exchange[1], "history")),
            ]
        question = [_text(self._needed(row, "instruction"), "instruction", empty=True)]
        question.append(_text(self._optional(row, "input"), "input", empty=True))
        messages.append(Message("user", "\n".join(part for part in question if part)))
        system = self._system(row)
        if self.pairs:
            return self._pair(row, messages, system)
        messages.append(Message("assistant", _text(self._needed(row, "output"), "output")))
        return Conversation(messages, system, self._has_tools(row))

    def _sharegpt(self, row: Mapping[str, Any]) -> Conversation:
        given = self._needed(row, "messages")
        if not _is_list(given):
            raise BadSample("the messages are not a list")
        if not len(given):
            raise BadSample("there are no messages")
        read = [self._message(message) for message in given]
        system = self._system(row)
        if read[0].role == "system":
            system, read = read[0].content, read[1:]
        _check_turns(read, self.pairs)
        if self.pairs:
            return self._pair(row, read, system)
        return Conversation(read, system, self._has_tools(row))

    def _message(self, given: Any) -> Message:
        if not isinstance(given, Mapping):
            raise BadSample("a message is not an object with a role and a text")
        usual = SHAREGPT_TAGS if "from" in given else OPENAI_TAGS
        tags = {**usual, **self.tags}
        for tag in ("role", "content"):
            if tags[tag] not in given:
                raise BadSample(f"a message has no {tags[tag]!r}")
        role = given[tags["role"]]
        roles = {tags[name]: name for name in ("user", "assistant", "observation", "function", "system")}
        if role not in roles:
            raise BadSample(
                f"a message has the role {role!r}, which is none of {', '.join(map(repr, roles))}"
            )
        return Message(roles[role], _text(given[tags["content"]], tags["content"]))

    def _pair(self, row: Mapping[str, Any], messages: list[Message], system: str | None) -> Conversation:
        answers = []
        for name in ("chosen", "rejected"):
            given = self._needed(row, name)
            if isinstance(given, Mapping):
                message = self._message(given)
                if message.role not in _REPLIES:
                    raise BadSample(f"{name} is not an answer but has the role {message.role}")
            elif _is_list(given) and len(
                given
            ):  # a whole conversation, of which the last message is the answer
                message = self._message(given[-1])
            else:
                message = Message("assistant", _text(given, name))
            answers.append(message)
        return Conversation(messages, system, self._has_tools(row), *answers)

    def _needed(self, row: Mapping[str, Any], name: str) -> Any:
        column = self.column(name, row)
        if column is None:
            raise UserError(f"data.columns.{name}: must name a column")
        if column not in row:
            raise MissingKey(column, row)
        return row[column]

    def _optional(self, row: Mapping[str, Any], name: str) -> Any:
        column = self.column(name, row)
        if column is not None and column not in row and name in self.columns:
            raise MissingKey(column, row)
        return None if column is None else row.get(column)

    def _system(self, row: Mapping[str, Any]) -> str | None:
        return _text(self._optional(row, "system"), "system", empty=True) or None

    def _has_tools(self, row: Mapping[str, Any]) -> bool:
        given = self._optional(row, "tools")
        return bool(given) and given != "[]"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _text(value: Any, name: str, empty: bool = False) -> str:
    if value is None and empty:
        return ""
    if not isinstance(value, str):
        raise BadSample(f"{name} is not text")
    return value


def _check_turns(messages: Iterable[Message], pairs: bool) -> None:
    """Questions and answers must alternate. An ordinary conversation ends with an answer, that of a pair with a question."""
    count = 0
    for number, message in enumerate(messages):
        if message.role not in (_REPLIES if number % 2 else _ASKS):
            raise BadSample(
                f"message {number + 1} has the role {message.role}, so questions and answers do not alternate"
            )
        count += 1
    if count == 0:
        raise BadSample("there are no messages")
    if count % 2 != int(pairs):
        raise BadSample(
            "the last message is not a question" if pairs else "the last message is not an answer"
        )
