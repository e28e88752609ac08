"""Writes the error of a worker to a file."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import time
import traceback
import warnings

__all__ = ["ErrorHandler"]

logger = logging.getLogger(__name__)


class ErrorHandler:
    """Writes an error as JSON to the file that the environment variable TORCHELASTIC_ERROR_FILE names, if it is set."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Called before the entry point. Enables a traceback of all threads if the interpreter crashes."""
        try:
            faulthandler.enable(all_threads=True)
        except (
            Exception
        ) as error:  # sys.stderr may be closed, or have no descriptor; the program goes on without
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Write the exception, its traceback and the time in seconds to the error file, if there is one."""
        path = self._get_error_file_path()
        if path:
            trace = "".join(traceback.format_exception(e))
            extra = {"py_callstack": trace, "timestamp": str(int(time.time()))}
            content = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}}
            with open(path, "w") as stream:
                json.dump(content, stream)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copy a worker's error file to this process's error file, with the exit code if it is not 0.

        What an earlier program has left in the latter is logged and replaced.
        """
        with open(rootcause_error_file) as stream:
            content = json.load(stream)
        if error_code:
            self.override_error_code_in_rootcause_data(rootcause_error_file, content, error_code)
        path = self._get_error_file_path()
        if not path:
            logger.error("this process has no error file to which %s could be copied", rootcause_error_file)
            return
        self._rm(path)
        self._write_error_file(path, json.dumps(content))

    def override_error_code_in_rootcause_data(
        self, rootcause_error_file: str, rootcause_error: dict, error_code: int = 0
    ) -> None:
        """Put the exit code into the content of an error file, because a worker that a signal ends cannot know it."""
        message = rootcause_error.get("message")
        if isinstance(message, dict):
            message["errorCode"] = error_code
        else:
            what = "no field `message`" if message is None else "a text as its message"
            logger.warning(
                "%s has %s, so the exit code %s is not written into it",
                rootcause_error_file,
                what,
                error_code,
            )

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        try:
            with open(file_path, "w") as stream:
                stream.write(error_msg)
        except OSError as error:  # the failure that is reported matters more
            warnings.warn(f"Unable to write error to file. {type(error).__name__}: {error}", stacklevel=2)

    def _rm(self, my_error_file: str) -> None:
        """Remove an error file that is there already, and log what was in it.

        A child that was started with the same variable may have written it, before it set its own.
        """
        if not os.path.isfile(my_error_file):
            return
        with open(my_error_file, errors="replace") as stream:
            logger.warning("%s is overwritten. It contained:\n%s", my_error_file, stream.read())
        os.remove(my_error_file)
