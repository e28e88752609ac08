"""Chat templates: turn a conversation into ids and labels. The labels are the ids of the answers, and -100 elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import UserError
from .conversations import BadSample, Message
from .tokenizer import Tokenizer

IGNORE = -100
FILE = Path(__file__).with_name("templates.yaml")
THOUGHT = ("<think>", "</think>")
_PLACES = re.compile(r"\{(content|round|name|arguments|calls)\}")

Piece = str | dict[str, str]


@dataclass
class Sample:
    """The ids of a conversation and their labels."""

    ids: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def add(self, ids: Sequence[int], learned: bool) -> None:
        self.ids += ids
        self.labels += ids if learned else [IGNORE] * len(ids)


@dataclass(frozen=True)
class Template:
    """A template of templates.yaml, which explains the fields."""

    name: str
    prefix: tuple[Piece, ...]
    system: tuple[Piece, ...]
    user: tuple[Piece, ...]
    answer: tuple[Piece, ...]
    observation: tuple[Piece, ...]
    function: tuple[Piece, ...]
    separator: tuple[Piece, ...]
    default_system: str
    stop: tuple[str, ...]
    end: str
    in_user: bool
    thoughts: bool
    long: str


def names() -> list[str]:
    return sorted(_templates())


def template(name: str) -> Template:
    """The template of this name.

    Raises:
        UserError: there is none.
    """
    known = _templates()
    if name not in known:
        raise UserError(
            f"data.template: there is no template {name}; there are: chat, {', '.join(sorted(known))}"
        )
    return known[name]


@lru_cache(maxsize=1)
def _templates() -> dict[str, Template]:
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {name: _template(name, facts) for name, facts in content["templates"].items()}


def _template(name: str, facts: Mapping[str, Any]) -> Template:
    def pieces(role: str, default: Any) -> tuple[Piece, ...]:
        value = facts.get(role, default)
        return tuple(value) if isinstance(value, list | tuple) else (value,)

    end = facts.get("end", "own")
    last: list[Piece] = [] if end == "once" else [{"special": "eos"}]
    user = pieces("user", "{content}")
    return Template(
        name=name,
        prefix=pieces("prefix", []),
        system=pieces("system", "{content}"),
        user=user,
        answer=pieces("answer", ["{content}", *last]),
        observation=pieces("observation", user),
        function=pieces("function", ["Action: {name}\nAction Input: {arguments}", *last]),
        separator=pieces("separator", []),
        default_system=facts.get("default_system", ""),
        stop=tuple(facts.get("stop", ())),
        end=end,
        in_user=facts.get("in_user", False),
        thoughts=facts.get("thoughts", False),
        long=facts.get("long", "drop"),
    )


Turns = list[tuple[list[int], list[int]]]


class TemplateFormat:
    """Encodes conversations by a template of templates.yaml.

    thinking: None adds empty thoughts to the question where an answer has none, True has them learned as a part of the
    answer, and False removes all thoughts from answers first. Only templates with thoughts use it.
    """

    def __init__(self, facts: Template, tokenizer: Tokenizer, thinking: bool | None = None) -> None:
        self.facts, self.tokenizer, self.thinking = facts, tokenizer, thinking
        self.long = facts.long
        if facts.end == "stop":
            tokenizer.end_with(facts.stop[0])
        for word in facts.stop:
            tokenizer.recognise(word)
        if tokenizer.eos is None:
            raise UserError(
                f"the tokenizer {tokenizer.name} has no end token, which the template {facts.name} needs"
            )
        self.end_id = tokenizer.eos

    def conversation(
        self, messages: Sequence[Message], system: str | None, limit: int | None = None
    ) -> Sample:
        """The sample of a conversation: questions and answers by turns. With a limit, what is too long is cut."""
        turns = self._turns(self._without_thoughts(messages, range(1, len(messages), 2)), system)
        once = self.facts.end == "once"
        if limit is not None:
            turns = cut(turns, limit - once)
        sample = Sample()
        for number, (question, answer) in enumerate(turns):
            sample.add(question, learned=False)
            if once and number and question:
                sample.labels[-len(question)] = self.end_id
            sample.add(answer, learned=True)
        if once:
            sample.add([self.end_id], learned=True)
        return sample

    def pair(
        self, messages: Sequence[Message], chosen: Message, rejected: Message, system: str | None
    ) -> tuple[list[int], list[int], list[int]]:
        """The ids of the question with everything before it, of the chosen answer, and of the rejected one."""
        found = []
        for answer in (chosen, rejected):
            whole = [*messages, answer]
            if self.facts.thoughts:  # earlier answers lose their thoughts, as they do when the model is used
                earlier = [
                    _without_thought(message) if number % 2 else message
                    for number, message in enumerate(whole[:-1])
                ]
                whole = [*earlier, whole[-1]]
            whole = [*whole[:-1], *self._without_thoughts(whole[-1:], range(1))]
            turns = self._turns(whole, system, add_thoughts_to=len(whole) - 2)
            prompt = [id for question, reply in turns[:-1] for id in question + reply] + turns[-1][0]
            found.append((prompt, turns[-1][1] + ([self.end_id] if self.facts.end == "once" else [])))
        return found[0][0], found[0][1], found[1][1]

    def _without_thoughts(self, messages: Sequence[Message], places: range) -> list[Message]:
        if not self.facts.thoughts or self.thinking is not False:
            return list(messages)
        return [
            _without_thought(message) if number in places else message
            for number, message in enumerate(messages)
        ]

    def _turns(
        self, messages: Sequence[Message], system: str | None, add_thoughts_to: int | None = None
    ) -> Turns:
        """The ids of each question and its answer. Empty thoughts are added to all answers, or to one."""
        facts = self.facts
        system = system or facts.default_system
        turns: Turns = []
        for number in range(0, len(messages) - 1, 2):
            asked, replied = messages[number], messages[number + 1]
            question: list[int] = []
            if number == 0:
                question += self._ids(facts.prefix)
                if system and not facts.in_user:
                    question += self._ids(facts.system, content=system)
            else:
                question += self._ids(facts.separator)
            lead = ""
            if number == 0 and system and facts.in_user:
                lead = "".join(
                    _filled(piece, {"content": system}) for piece in facts.system if isinstance(piece, str)
                )
            question += self._message(asked, lead, number // 2)
            answer = self._message(replied, "", number // 2)
            if (
                facts.thoughts
                and add_thoughts_to in (None, number)
                and not any(word in replied.content for word in THOUGHT)
            ):
                empty = self.tokenizer.encode(f"{THOUGHT[0]}\n\n{THOUGHT[1]}\n\n")
                question, answer = (question, empty + answer) if self.thinking else (question + empty, answer)
            turns.append((question, answer))
        return turns

    def _message(self, message: Message, lead: str, round: int) -> list[int]:
        facts, content = self.facts, lead + message.content
        if message.role == "user":
            return self._ids(facts.user, content=content, round=str(round))
        if message.role == "assistant":
            return self._ids(facts.answer, content=content)
        if message.role == "observation":
            return self._ids(facts.observation, content=content, round=str(round))
        return self._ids(
            facts.function, **_calls(content, any("{calls}" in piece for piece in facts.function))
        )

    def _ids(self, pieces: Sequence[Piece], **values: str) -> list[int]:
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, str):
                if text := _filled(piece, values):
                    ids += self.tokenizer.encode(text)
            elif "token" in piece:
                id = self.tokenizer.id_of(piece["token"])
                if id is None:
                    raise UserError(
                        f"the tokenizer {self.tokenizer.name} has no token {piece['token']}, which the template "
                        f"{self.facts.name} needs: choose the template of the tokenizer's model"
                    )
                ids.append(id)
            elif piece["special"] == "eos":
                ids.append(self.end_id)
            elif self.tokenizer.bos is not None:
                ids.append(self.tokenizer.bos)
        return ids


def _filled(piece: str, values: Mapping[str, str]) -> str:
    """The text of a piece. A place in what was filled in stays as it is."""
    return _PLACES.sub(lambda place: values.get(place[1], place[0]), piece)


def _without_thought(message: Message) -> Message:
    begin, end = map(re.escape, THOUGHT)
    return Message(
        message.role, re.sub(f"{begin}.*?{end}", "", message.content, flags=re.DOTALL).lstrip("\n")
    )


def _calls(content: str, as_blocks: bool) -> dict[str, str]:
    """What a call of a tool fills in: name and arguments of one call, or a block for each of several."""
    thought = re.search(f"{THOUGHT[0]}(.*){THOUGHT[1]}", content, re.DOTALL) if as_blocks else None
    try:
        calls = json.loads(content.replace(thought[0], "") if thought else content)
        calls = calls if isinstance(calls, list) else [calls]
        pairs = [(call["name"], call["arguments"]) for call in calls]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadSample("a call of a tool is not JSON with `name` and `arguments`") from None
    if not as_blocks:
        if len(pairs) != 1:
            raise BadSample("the template has no form for several calls of tools at once")
        return {"name": str(pairs[0][0]), "arguments": json.dumps(pairs[0][1], ensure_ascii=False)}
    texts = [json.dumps({"name": name, "arguments": given}, ensure_ascii=False) for name, given in pairs]
    blocks = "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)
    return {"calls": (thought[0] if thought else "") + blocks}


def cut(turns: Turns, limit: int) -> Turns:
    """Cuts turns so that they have less than `limit` ids: each loses from the longer one of question and answer, or from both.

    Turns for which no room is left are dropped.
    """
    room = limit - 1
    kept: Turns = []
    for question, answer in turns:
        if room <= 0:
            break
        ask, reply = lengths_within(len(question), len(answer), room)
        kept.append((question[:ask], answer[:reply]))
        room -= ask + reply
    return kept


def lengths_within(question: int, answer: int, room: int) -> tuple[int, int]:
    """How many ids of a question and of its answer are kept where there is room for so many."""
    if 2 * answer < room:
        most = room
    elif 2 * question < room:
        most = room - question
    else:
        most = int(room * (answer / (question + answer)))
    reply = min(most, answer)
    return min(max(room - reply, 0), question), reply
