"""The command `chat`: the prompt is the template's, the history is kept to its length, and the terminal's commands work."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

from megatron_ms import commands
from megatron_ms.errors import UserError
from megatron_ms.inference import web
from megatron_ms.inference.chat import talk
from megatron_ms.inference.conversation import Conversation
from megatron_ms.inference.engine import Engine
from megatron_ms.inference.section import Generate


def _conversation(model_folder, **keys) -> Conversation:
    return Conversation(Engine(Generate(model=str(model_folder), max_new_tokens=6, **keys)))


def test_the_prompt_is_that_of_the_tokenizer(model_folder):
    conversation = _conversation(model_folder, system="Be brief.")
    answer = conversation.ask("Hello?", lambda text: None)
    inner = conversation.engine.tokenizer
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "And?"},
    ]
    text = inner.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert inner.decode(conversation.prompt("And?")) == text


def test_history_is_kept_to_its_length(model_folder):
    conversation = _conversation(model_folder, history=1)
    for question in ("first", "second", "third"):
        conversation.ask(question, lambda text: None)
    text = conversation.engine.tokenizer.decode(conversation.prompt("fourth"))
    assert "third" in text and "second" not in text
    conversation.clear()
    assert "third" not in conversation.engine.tokenizer.decode(conversation.prompt("fourth"))
    none = _conversation(model_folder, history=0)
    none.ask("first", lambda text: None)
    assert "first" not in none.engine.tokenizer.decode(none.prompt("second"))


def test_a_named_template_is_used(model_folder):
    conversation = _conversation(model_folder, template="qwen", system="S")
    text = conversation.engine.tokenizer.decode(conversation.prompt("Q"))
    assert text == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n"


def test_an_interrupted_answer_is_forgotten(model_folder):
    conversation = _conversation(model_folder)

    def stop(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conversation.ask("Hello?", stop)
    assert conversation.messages == []


def test_the_terminal(model_folder):
    conversation = _conversation(model_folder)
    expected = _conversation(model_folder).ask("Hello?", lambda text: None)
    out = io.StringIO()
    talk(conversation, io.StringIO("\nHello?\n/what\n/clear\nHello?\n/exit\nnever asked\n"), out)
    lines = out.getvalue()
    assert lines.startswith(expected + "\n") and lines.endswith(expected + "\n")
    assert "/clear forgets" in lines and "(nothing was said before)" in lines
    assert len(conversation.messages) == 2
    talk(conversation, io.StringIO("Hello?"), out)  # the input ends without a line end, as with Ctrl-D
    assert len(conversation.messages) == 4


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_question_that_cannot_be_asked_does_not_end_the_chat(model_folder):
    """Only a chat whose questions come from a file or a program ends there."""
    conversation = _conversation(model_folder)
    out = io.StringIO()
    talk(conversation, _Terminal(f"Hello?\n{'x' * 400}\n\udcff\nAnd?\n"), out)
    assert "(generate: a prompt has" in out.getvalue() and "are not UTF-8 text)" in out.getvalue()
    assert [one.content for one in conversation.messages if one.role == "user"] == ["Hello?", "And?"]
    for question in ("x" * 400, "\udcff"):
        with pytest.raises(UserError):
            talk(conversation, io.StringIO(question), out)
    with pytest.raises(UserError, match="not UTF-8 text"):
        talk(conversation, io.TextIOWrapper(io.BytesIO(b"caf\xe9\n"), encoding="utf-8"), out)


def test_a_tokenizer_without_a_template_is_named(model_folder, tmp_path, capsys):
    import shutil

    folder = tmp_path / "plain"
    shutil.copytree(model_folder, folder)
    facts = json.loads((folder / "tokenizer_config.json").read_text())
    facts.pop("chat_template")
    (folder / "tokenizer_config.json").write_text(json.dumps(facts))
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    path = tmp_path / "chat.yaml"
    path.write_text(f"generate: {{model: {folder}}}\n")
    assert commands.main(["chat", str(path)]) == 2
    assert "has no chat template" in capsys.readouterr().err
    assert commands.main(["chat", str(path), "generate.template=nothing"]) == 2
    assert "there is no template nothing" in capsys.readouterr().err


@pytest.fixture
def page(model_folder):
    """The address of a page that is served."""
    server = web.bind(0)
    server.conversation = _conversation(model_folder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.url, server
    server.shutdown()
    thread.join()
    server.server_close()


def _open(url: str, body: bytes | None = None, **headers: str):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, "", dict(error.headers)


def test_the_page_streams_answers(page, model_folder):
    url, server = page
    base, _, key = url.partition("?key=")
    status, text, headers = _open(url)
    assert (
        status == 200
        and "<!doctype html>" in text
        and "default-src 'none'" in headers["Content-Security-Policy"]
    )
    assert key not in text
    asked = json.dumps({"question": "Hello?"}).encode()
    expected = _conversation(model_folder).ask("Hello?", lambda text: None)
    assert _open(base + "ask", asked, **{"X-Key": key})[:2] == (200, expected)
    assert len(server.conversation.messages) == 2
    assert _open(base + "clear", b"{}", **{"X-Key": key})[0] == 200
    assert server.conversation.messages == []
    too_long = json.dumps({"question": "x" * 300}).encode()
    assert "the model takes 256" in _open(base + "ask", too_long, **{"X-Key": key})[1]


def test_half_of_a_surrogate_pair_is_told_on_the_page(page):
    url, server = page
    status, text, _ = _open(
        f"http://127.0.0.1:{server.port}/ask", b'{"question": "\\ud800"}', **{"X-Key": server.secret}
    )
    assert status == 200 and "not UTF-8 text" in text


def test_the_page_is_for_its_user_only(page):
    url, server = page
    base, _, key = url.partition("?key=")
    assert server.server_address[0] == "127.0.0.1"
    asked = json.dumps({"question": "Hello?"}).encode()
    assert _open(base)[0] == _open(base + "?key=wrong")[0] == _open(base + "page.html?key=" + key)[0] == 404
    assert _open(base + "ask", asked)[0] == _open(base + "ask", asked, **{"X-Key": "é"})[0] == 403
    assert _open(url, None, Host="attacker.example")[0] == 404
    assert _open(base + "ask", asked, **{"X-Key": key, "Host": "attacker.example"})[0] == 403
    for body in (b"no json", b"[]", b'{"question": 3}', b'{"question": " "}', b"[" * 100_000):
        assert _open(base + "ask", body, **{"X-Key": key})[0] in (400, 404)
    assert _open(base + "else", asked, **{"X-Key": key})[0] == 404
    assert server.conversation.messages == []


def test_a_silent_connection_does_not_hold_the_page(page):
    """Browsers open connections before they have a use for them."""
    url, server = page
    with socket.create_connection(server.server_address):
        started = time.monotonic()
        assert _open(url)[0] == 200
        assert time.monotonic() - started < 10


def test_ctrl_c_ends_a_running_answer(model_folder, monkeypatch):
    """And the program does not wait for the whole answer."""

    class Endless(Conversation):
        def ask(self, question, on_text):
            while True:
                on_text("more ")
                time.sleep(0.01)

    server = web.bind(0)
    conversation = Endless(Engine(Generate(model=str(model_folder))))
    begun, read = threading.Event(), []

    def ask():
        asked = urllib.request.Request(
            server.url.partition("?")[0] + "ask", b'{"question": "Q"}', {"X-Key": server.secret}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            read.append(answer.read(5))
            begun.set()
            read.append(answer.read())

    def interrupted():
        serving = threading.Thread(target=type(server).serve_forever, args=(server,))
        serving.start()
        asking.start()
        assert begun.wait(60)
        server.shutdown()
        serving.join()
        raise KeyboardInterrupt

    asking = threading.Thread(target=ask)
    monkeypatch.setattr(server, "serve_forever", interrupted)
    assert web.serve(server, conversation) == 0
    asking.join(60)
    assert not asking.is_alive() and read[0] == b"more "


def test_a_port_that_is_taken_is_named(page, tmp_path, model_folder, capsys):
    _, server = page
    path = tmp_path / "chat.yaml"
    path.write_text(f"generate: {{model: {model_folder}}}\n")
    port = server.server_address[1]
    assert commands.main(["chat", str(path), "--web", "--port", str(port)]) == 2
    assert f"--port {port}" in capsys.readouterr().err
