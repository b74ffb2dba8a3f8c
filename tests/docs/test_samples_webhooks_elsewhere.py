"""Samples of the webhooks page in other languages than Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from webhook_samples import BODY, CURRENT, NO_SECRET, OLDER, SECRET, headers, samples

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def node_program(tmp_path_factory):
    """Return the command of the JavaScript sample."""
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no Node.js here")
    folder = tmp_path_factory.mktemp("node")
    [sample] = samples("js")
    (folder / "verify.mjs").write_text(sample, encoding="utf-8")
    (folder / "run.mjs").write_text(
        'import { verify } from "./verify.mjs";\n'
        "const [secret, headers, body] = JSON.parse(process.argv[2]);\n"
        "console.log(JSON.stringify(verify(secret, headers, Buffer.from(body))));\n",
        encoding="utf-8",
    )
    return [node, str(folder / "run.mjs")]


def go_tool(name):
    """Return the path of a program of Go, that of `.ci/components` before the machine's."""
    unpacked = ROOT / ".components/go/usr/bin"
    if (path := shutil.which(name, path=f"{unpacked}{os.pathsep}{os.environ['PATH']}")) is None:
        pytest.skip("there is no Go here; run .ci/components")
    return path


GO_MAIN = """package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"example.com/receiver/webhooks"
)

func main() {
	var secret, body string
	var headers map[string]string
	if err := json.Unmarshal([]byte(os.Args[1]), &[]any{&secret, &headers, &body}); err != nil {
		panic(err)
	}
	header := http.Header{}
	for name, value := range headers {
		header.Set(name, value)
	}
	event, err := webhooks.Verify(secret, header, []byte(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(event)
}
"""


@pytest.fixture(scope="module")
def go_program(tmp_path_factory):
    """Return the command of the Go sample."""
    go, folder = go_tool("go"), tmp_path_factory.mktemp("go")
    [sample] = samples("go")
    (folder / "webhooks").mkdir()
    (folder / "webhooks/verify.go").write_text(sample, encoding="utf-8")
    (folder / "main.go").write_text(GO_MAIN, encoding="utf-8")
    (folder / "go.mod").write_text("module example.com/receiver\n\ngo 1.19\n", encoding="utf-8")
    alone = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    own = {"HOME": str(folder), "GOCACHE": str(folder / "cache"), "PATH": os.environ["PATH"]}
    command = [go, "build", "-o", str(folder / "run"), "."]
    subprocess.run(command, cwd=folder, env=alone | own, check=True)
    return [str(folder / "run")]


@pytest.fixture(params=["node_program", "go_program"])
def run(request):
    """Return a sample in another language, for the receiver of the current secret."""
    command = request.getfixturevalue(request.param)

    def run(sent, body, secret=SECRET):
        given = json.dumps([secret, sent, body.decode()])
        return subprocess.run([*command, given], capture_output=True, text=True, check=False)

    return run


def test_other_languages_accept_a_good_signature(run):
    answer = run(headers(*OLDER, *CURRENT), BODY)
    assert json.loads(answer.stdout) == json.loads(BODY), answer.stderr


@pytest.mark.parametrize(
    ("sent", "body", "words"),
    [
        (lambda: headers(*OLDER), BODY, "the signature is wrong"),
        (lambda: headers(*CURRENT), BODY + b" ", "the signature is wrong"),
        (lambda: headers(*CURRENT) | {"webhook-signature": "v1, v1a, ,"}, BODY, "is wrong"),
        (lambda: headers(*CURRENT) | {"webhook-timestamp": "soon"}, BODY, "too old|is wrong"),
        (lambda: headers(*CURRENT, moment=time.time() - 900), BODY, "too old"),
        (lambda: headers(*CURRENT, moment=time.time() + 900), BODY, "too old"),
    ],
    ids=["another key", "another body", "no signature", "no time", "old", "early"],
)
def test_other_languages_refuse_what_is_not_to_be_trusted(run, sent, body, words):
    # signed now: what was signed when tests were collected is too old after five minutes
    answer = run(sent(), body)
    assert answer.returncode == 1
    assert re.search(words, answer.stderr)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_other_languages_refuse_what_lacks_a_header(run, name):
    sent = headers(*CURRENT)
    del sent[name]
    answer = run(sent, BODY)
    assert answer.returncode == 1
    assert re.search("too old|the signature is wrong", answer.stderr)


def test_other_languages_let_nobody_in_without_a_secret(run):
    answer = run(headers(NO_SECRET), BODY, secret="whsec_")
    assert (answer.returncode, "there is no secret" in answer.stderr) == (1, True)


def test_the_go_sample_is_formatted_as_go_formats():
    [sample] = samples("go")
    formatted = subprocess.run(
        [go_tool("gofmt")], input=sample, capture_output=True, text=True, check=True
    )
    assert formatted.stdout == sample
