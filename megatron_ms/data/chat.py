"""Encodes conversations by a tokenizer's own chat template, which is a program in the language Jinja."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import UserError
from .conversations import BadSample, Message
from .templates import IGNORE, Sample
from .tokenizer import HuggingFace, Tokenizer

_ROLES = {"user": "user", "assistant": "assistant", "observation": "tool"}


class ChatFormat:
    """Encodes conversations by a chat template. Its text is `given`, or else the tokenizer's own.

    An answer begins where the template's prompt for it ends. What the template writes behind an answer is learned with it,
    because the model has to end its answers. A template that marks answers itself (`{% generation %}`) decides alone.
    """

    long = "drop"

    def __init__(self, tokenizer: Tokenizer, thinking: bool | None = None, given: str | None = None) -> None:
        if not isinstance(tokenizer, HuggingFace):
            raise UserError(
                f"data.template: chat: only tokenizers of Hugging Face have chat templates, not {tokenizer.name}"
            )
        if given is not None:
            tokenizer.inner.chat_template = given
        if not isinstance(tokenizer.inner.chat_template, str):
            raise UserError(
                f"data.template: chat: the tokenizer {tokenizer.name} has no chat template: name one of `--templates`"
            )
        self.tokenizer = tokenizer
        self._inner = tokenizer.inner
        self._options = {} if thinking is None else {"enable_thinking": thinking}

    def conversation(
        self, messages: Sequence[Message], system: str | None, limit: int | None = None
    ) -> Sample:
        """The sample of a conversation. With a limit, the end of a sample that is too long is cut."""
        given = _given(messages, system)
        first = len(given) - len(messages)
        if "{% generation" in self._inner.chat_template or "{%- generation" in self._inner.chat_template:
            sample = self._marked(given)
        else:
            text = self._text(given)
            answers = [
                self._range(text, given, place)
                for place in range(first, len(given))
                if given[place]["role"] == "assistant"
            ]
            sample = self._labelled(text, answers)
        if limit is not None and len(sample.ids) >= limit:
            sample = Sample(sample.ids[: limit - 1], sample.labels[: limit - 1])
        return sample

    def pair(
        self, messages: Sequence[Message], chosen: Message, rejected: Message, system: str | None
    ) -> tuple[list[int], list[int], list[int]]:
        """The ids of the question with everything before it, of the chosen answer, and of the rejected one."""
        given = _given(messages, system)
        prompt = self._text(given, prompt=True)
        answers = []
        for answer in (chosen, rejected):
            text = self._text([*given, *_given([answer], None)])
            if not text.startswith(prompt):
                raise self._unfit()
            answers.append(self.tokenizer.encode(text[len(prompt) :]))
        return self.tokenizer.encode(prompt), answers[0], answers[1]

    def _text(self, given: list[dict[str, Any]], prompt: bool = False) -> str:
        return self._apply(given, tokenize=False, add_generation_prompt=prompt)

    def _apply(self, given: list[dict[str, Any]], **options: Any) -> Any:
        from jinja2 import TemplateError

        try:
            return self._inner.apply_chat_template(given, **options, **self._options)
        except TemplateError as error:
            raise BadSample(f"the chat template refuses it: {error}") from None

    def _marked(self, given: list[dict[str, Any]]) -> Sample:
        found = self._apply(given, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        ids = list(found["input_ids"])
        learned = found["assistant_masks"]
        return Sample(ids, [id if own else IGNORE for id, own in zip(ids, learned, strict=True)])

    def _range(self, text: str, given: list[dict[str, Any]], place: int) -> tuple[int, int]:
        """Where the answer stands in the text of the whole conversation."""
        prompt = self._text(given[:place], prompt=True)
        until = self._text(given[: place + 1])
        if not text.startswith(prompt) or not until.startswith(prompt):
            raise self._unfit()
        if text.startswith(until):
            return len(prompt), len(until)
        # The template writes an answer differently when more follows, for example without its thoughts.
        answer = given[place]["content"].strip()
        answer = answer.rpartition("</think>")[2].strip()
        begin, last = text.find(answer, len(prompt)), until.rfind(answer)
        behind = until[last + len(answer) :]
        end = begin + len(answer)
        if not answer or begin < 0 or last < 0 or not text.startswith(behind, end):
            raise self._unfit()
        return len(prompt), end + len(behind)

    def _labelled(self, text: str, answers: list[tuple[int, int]]) -> Sample:
        """Encodes the text as a whole where the tokenizer tells the place of each id, and else piece by piece."""
        sample = Sample()
        if not self._inner.is_fast:
            at = 0
            for begin, end in answers:
                sample.add(self.tokenizer.encode(text[at:begin]), learned=False)
                sample.add(self.tokenizer.encode(text[begin:end]), learned=True)
                at = end
            sample.add(self.tokenizer.encode(text[at:]), learned=False)
            return sample
        found = self._inner(text, add_special_tokens=False, return_offsets_mapping=True)
        waiting = list(answers)
        for id, (start, _) in zip(found["input_ids"], found["offset_mapping"], strict=True):
            while waiting and start >= waiting[0][1]:
                waiting.pop(0)
            sample.add([id], learned=bool(waiting) and start >= waiting[0][0])
        return sample

    def _unfit(self) -> UserError:
        return UserError(
            f"data.template: the chat template of {self.tokenizer.name} changes the text before an answer, so that "
            "answers in the middle of a conversation cannot be learned: set data.history: 0, or use a named template"
        )


def _given(messages: Sequence[Message], system: str | None) -> list[dict[str, Any]]:
    """The messages as chat templates expect them."""
    found: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        if message.role != "function":
            found.append({"role": _ROLES[message.role], "content": message.content})
            continue
        try:
            calls = json.loads(message.content)
            calls = calls if isinstance(calls, list) else [calls]
            functions = [{"name": call["name"], "arguments": call["arguments"]} for call in calls]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise BadSample("a call of a tool is not JSON with `name` and `arguments`") from None
        wrapped = [{"type": "function", "function": function} for function in functions]
        found.append({"role": "assistant", "content": "", "tool_calls": wrapped})
    return found
