"""How the result of a call, or its error, comes back to the caller."""

from __future__ import annotations

import contextlib
import pickle
import sys
import traceback

from ...futures import Future
from .agent import Message, record
from .payload import unpacked


class RemoteException(Exception):
    """An error of a function that another worker has run: the text of the error there, and its class."""

    def __init__(self, msg: str, exception_type: type):
        super().__init__(msg, exception_type)
        self.msg, self.exception_type = msg, exception_type

    def raised(self) -> Exception:
        """Return the error that the caller gets: one of the same class, with the worker and the place in its text."""
        text = self.msg
        with contextlib.suppress(
            UnicodeDecodeError
        ):  # PyTorch's callers get what `repr` has escaped without escapes
            text = text.encode("latin-1", "backslashreplace").decode("unicode_escape")
        try:
            return self.exception_type(text)
        except BaseException as error:
            return RuntimeError(
                f"Failed to create original exception type. Error msg was {error} Original exception on remote side "
                f"was {text}"
            )


def failure(worker, error: Exception) -> RemoteException:
    """Return what a caller is told of an error. It is also printed here, where whoever mends the function will look."""
    text = f"On {worker}:\n{error!r}\n{''.join(traceback.format_exception(error))}"
    print(text, file=sys.stderr)
    return RemoteException(text, type(error))


def answer(value, context, serialize) -> Message:
    """Return the message with the result of a call, which ``serialize`` pickles.

    Its tensors belong to ``context``, if that is not None.
    """
    if isinstance(value, RemoteException):
        try:
            kind = pickle.dumps(value.exception_type)
            pickle.loads(kind)
        except Exception:
            kind = pickle.dumps(RuntimeError)
        return Message("failed", (value.msg, kind))
    data, tensors = serialize(value)
    message = Message("result", (), data, tensors)
    if context is not None:
        record(message, context)
    return message


def value_of(answers: Future, references) -> Future:
    """Return a future of the value in an answer. Errors of the function are raised by it as its caller gets them."""
    result: Future = Future()

    def arrived(future):
        try:
            message = future.wait()
            if message.kind == "failed":
                text, kind = message.fields
                try:
                    cls = pickle.loads(kind)
                except Exception:  # the class is known on the other worker only
                    cls = RuntimeError
                raise RemoteException(text, cls).raised()
            value = unpacked(message.data, message.tensors, references)
        except Exception as error:
            result._fail(error)
        except BaseException as error:  # KeyboardInterrupt of the function there
            result._fail(RuntimeError(str(error)))
        else:
            result.set_result(value)

    answers.add_done_callback(arrived)
    return result
