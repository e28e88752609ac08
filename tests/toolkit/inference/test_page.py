"""The page of `chat --web` in a real browser."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from megatron_ms.inference import web
from megatron_ms.inference.conversation import Conversation
from megatron_ms.inference.engine import Engine
from megatron_ms.inference.section import Generate
from tests.toolkit.inference.browser import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt install chromium")


class _Scripted(Conversation):
    """A conversation whose answers are scripted, so that the page's own behaviour shows."""

    def ask(self, question, on_text):
        if question == "wait":
            for number in range(6_000):  # until the reader goes away, which raises
                on_text(f"{number} ")
                time.sleep(0.01)
        for piece in ("<b>not bold</b> ", "Grüße ", "世界"):
            on_text(piece)
        return super().ask(question, on_text) if question == "model" else ""


@pytest.fixture
def served(model_folder, tmp_path):
    server = web.bind(0)
    server.conversation = _Scripted(Engine(Generate(model=str(model_folder), max_new_tokens=4)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    browser = Browser(tmp_path / "profile")
    yield browser, server
    browser.close()
    server.shutdown()
    thread.join()
    server.server_close()


def _ask(browser: Browser, question: str) -> None:
    browser.run(f"document.getElementById('question').value = {json.dumps(question)}")
    browser.run("document.getElementById('send').click()")


def test_questions_and_answers_in_a_browser(served):
    browser, server = served
    browser.size(360, 640)
    browser.open(server.url)
    _ask(browser, "Hello <i>there</i>")
    browser.wait("document.querySelectorAll('.model').length === 1 && send.textContent === 'Send'")
    assert browser.run("document.querySelector('.model').textContent") == "<b>not bold</b> Grüße 世界"
    assert browser.run("document.querySelector('.user').textContent") == "Hello <i>there</i>"
    assert browser.run("document.querySelectorAll('#log b, #log i').length") == 0
    assert browser.run("document.documentElement.scrollWidth <= 360")
    _ask(browser, "wait")
    browser.wait(
        "send.textContent === 'Stop' && document.querySelectorAll('.model')[1].textContent.length > 10"
    )
    browser.run("send.click()")
    browser.wait("send.textContent === 'Send'")
    if picture := os.environ.get("MSADAPTER_PICTURE"):
        browser.picture(Path(picture))
    _ask(browser, "model")
    browser.wait("document.querySelectorAll('.model').length === 3 && send.textContent === 'Send'")
    assert len(server.conversation.messages) == 2
    said = browser.run("[...document.querySelectorAll('#log div')].slice(-2).map(box => box.textContent)")
    browser.open(server.url)  # the model still sees what was said, so the page shows it again
    browser.wait("document.querySelectorAll('#log div').length === 2")
    again = browser.run(
        "[...document.querySelectorAll('#log div')].map(box => box.className + ' ' + box.textContent)"
    )
    assert again == [f"user {said[0]}", f"model {server.conversation.messages[1].content}"]
    browser.run("document.getElementById('clear').click()")
    browser.wait("document.querySelectorAll('#log div').length === 0")
    assert server.conversation.messages == []


def test_enter_sends_unless_it_ends_the_input_of_a_word(served):
    """As when a Chinese word is chosen from a list."""
    browser, server = served
    browser.open(server.url)
    browser.run("document.getElementById('question').value = '你好'")
    press = "document.getElementById('question').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: %s}))"
    browser.run(press % "true")
    assert browser.run("document.querySelectorAll('.user').length") == 0
    browser.run(press % "false")
    browser.wait("document.querySelectorAll('.model').length === 1 && send.textContent === 'Send'")
    assert browser.run("document.querySelector('.user').textContent") == "你好"


def test_an_address_without_the_secret_shows_nothing(served):
    browser, server = served
    browser.open(server.url.partition("?")[0])
    assert browser.run("document.getElementById('question')") is None
