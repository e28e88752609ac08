"""A conversation with a model: the earlier messages, and the ids that the model continues."""

from __future__ import annotations

from collections.abc import Callable

from ..data.chat import ChatFormat
from ..data.conversations import Message
from ..data.templates import TemplateFormat, template
from ..data.tokenizer import HuggingFace
from ..errors import UserError
from .engine import Engine


class Conversation:
    """Questions and answers by turns. The model sees the last `generate.history` of them, and the system message."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.messages: list[Message] = []
        keys = engine.keys
        tokenizer = HuggingFace.of(engine.tokenizer, keys.model)
        self.format: ChatFormat | TemplateFormat
        if keys.template is not None:
            self.format = TemplateFormat(template(keys.template), tokenizer, keys.thinking)
        elif engine.tokenizer.chat_template:
            self.format = ChatFormat(tokenizer, keys.thinking)
        else:
            raise UserError(
                f"generate.template: the tokenizer of {keys.model} has no chat template: name one of `data --templates`"
            )

    def ask(self, question: str, on_text: Callable[[str], None]) -> str:
        """Return the answer to a question. ``on_text`` gets its pieces. An interrupted question is forgotten.

        Raises:
            UserError: the question is no text, or too long for the model.
        """
        try:
            question.encode("utf-8")
        except UnicodeEncodeError:  # tokenizers end in an error of their own
            raise UserError("the question has bytes or characters that are not UTF-8 text") from None
        answer = self.engine.stream(self.prompt(question), on_text)
        self.messages += [Message("user", question), Message("assistant", answer)]
        return answer

    def prompt(self, question: str) -> list[int]:
        """The ids of the conversation up to where the answer begins."""
        kept = self.messages[len(self.messages) - 2 * self.engine.keys.history :]
        if self.engine.keys.history == 0:
            kept = []
        asked = [*kept, Message("user", question)]
        empty = Message("assistant", "")
        return self.format.pair(asked, empty, empty, self.engine.keys.system)[0]

    def clear(self) -> None:
        self.messages.clear()
