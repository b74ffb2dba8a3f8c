"""Certificates: whom a client trusts, and what it shows, against real servers."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from datetime import timedelta
from ipaddress import ip_network

import pytest
from aiohttp import web

from tocsin import OperatorError, TryLater

LOOPBACK = (ip_network("127.0.0.1/32"),)
NOT_VALID = "127.0.0.1: TLS certificate not valid"


@pytest.fixture
def serve(aiohttp_server):
    """Serve over TLS on 127.0.0.1, and return the port."""

    async def answer(request):
        certificate = request.transport.get_extra_info("peercert")
        return web.Response(text="known" if certificate else "unknown")

    async def serve(context):
        application = web.Application()
        application.router.add_get("/", answer)
        return (await aiohttp_server(application, ssl=context)).port

    return serve


async def _reason(client, port):
    with pytest.raises(TryLater) as caught:
        await client.request("POST", f"https://127.0.0.1:{port}/")  # a GET is tried twice
    return re.sub(r", port \d+", "", str(caught.value))


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(make_client, serve, authority):
    port = await serve(authority.server("127.0.0.1"))
    reason = await _reason(make_client(allow_networks=LOOPBACK), port)
    assert reason == f"{NOT_VALID} (unable to get local issuer certificate)"


async def test_a_self_signed_certificate_is_not_accepted(make_client, serve, self_signed):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed)
    reason = await _reason(make_client(allow_networks=LOOPBACK), await serve(context))
    assert reason == f"{NOT_VALID} (self-signed certificate)"


async def test_a_self_signed_certificate_is_accepted_as_its_own_authority(
    make_client, serve, self_signed
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed)
    client = make_client(allow_networks=LOOPBACK, ca_file=self_signed)
    response = await client.request("GET", f"https://127.0.0.1:{await serve(context)}/")
    assert response.status == 200


async def test_an_authority_that_is_named_is_trusted(make_client, serve, authority, dns):
    dns["siem.example"] = [["127.0.0.1"]]
    port = await serve(authority.server("127.0.0.1", "siem.example"))
    client = make_client(allow_networks=LOOPBACK, ca_file=authority.file)
    for host in ("127.0.0.1", "siem.example"):
        assert (await client.request("GET", f"https://{host}:{port}/")).status == 200


async def test_an_authority_that_is_named_is_trusted_instead_of_all_others(
    make_client, serve, authority, stranger
):
    port = await serve(authority.server("127.0.0.1"))
    client = make_client(allow_networks=LOOPBACK, ca_file=stranger.file)
    assert (await _reason(client, port)).startswith(NOT_VALID)


async def test_an_expired_certificate_is_not_accepted(make_client, serve, authority):
    port = await serve(authority.server("127.0.0.1", age=timedelta(days=2)))
    client = make_client(allow_networks=LOOPBACK, ca_file=authority.file)
    assert await _reason(client, port) == f"{NOT_VALID} (certificate has expired)"


async def test_a_certificate_for_another_name_is_not_accepted(make_client, serve, authority, dns):
    dns["siem.example"] = [["127.0.0.1"]]
    port = await serve(authority.server("other.example"))
    client = make_client(allow_networks=LOOPBACK, ca_file=authority.file)
    for host in ("127.0.0.1", "siem.example"):
        with pytest.raises(TryLater, match="certificate is not valid for"):
            await client.request("GET", f"https://{host}:{port}/")


# --- certificates of the client


@pytest.fixture
def demanding(authority):
    """A server that talks only to who shows a certificate of the authority."""
    context = authority.server("127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.file)
    return context


async def test_a_client_certificate_is_shown(make_client, serve, authority, demanding):
    port = await serve(demanding)
    certificate = authority.issue("tocsin")
    client = make_client(
        allow_networks=LOOPBACK, ca_file=authority.file, client_certificate=certificate
    )
    response = await client.request("GET", f"https://127.0.0.1:{port}/")
    assert response.body == b"known"


async def test_the_key_may_be_in_a_file_of_its_own(make_client, serve, authority, demanding):
    certificate, key = authority.issue_apart("tocsin")
    client = make_client(
        allow_networks=LOOPBACK,
        ca_file=authority.file,
        client_certificate=certificate,
        client_key=key,
    )
    response = await client.request("GET", f"https://127.0.0.1:{await serve(demanding)}/")
    assert response.body == b"known"


def _accept_one(server, context):
    """Shake hands with one client, and keep the line until it is gone: a reset hides alerts."""
    connection, _ = server.accept()
    with connection.dup() as kept:
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(connection, server_side=True)
        while kept.recv(65_536):
            pass


@pytest.mark.parametrize(
    ("version", "alert"),
    [
        (ssl.TLSVersion.TLSv1_2, "alert handshake failure"),
        (ssl.TLSVersion.TLSv1_3, "alert certificate required"),
    ],
)
async def test_a_server_that_demands_a_certificate_says_so_to_who_shows_none(
    make_client, authority, demanding, version, alert
):
    demanding.minimum_version = demanding.maximum_version = version
    client = make_client(allow_networks=LOOPBACK, ca_file=authority.file)
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = asyncio.create_task(asyncio.to_thread(_accept_one, server, demanding))
        reason = await _reason(client, server.getsockname()[1])
        await accepting
    assert reason.startswith("127.0.0.1: TLS handshake failed (")
    assert reason.endswith(f"{alert})")


async def test_a_server_that_demands_a_certificate_takes_none_of_a_stranger(
    make_client, serve, authority, stranger, demanding
):
    port = await serve(demanding)
    client = make_client(
        allow_networks=LOOPBACK,
        ca_file=authority.file,
        client_certificate=stranger.issue("tocsin"),
    )
    with pytest.raises(TryLater):
        await client.request("GET", f"https://127.0.0.1:{port}/")


# --- files that do not serve


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no certificate")
    return str(path)


@pytest.mark.parametrize("setting", ["ca_file", "client_certificate"])
def test_a_file_without_a_certificate_is_named(make_client, text_file, tmp_path, setting):
    for path, found in [
        (text_file, ("no certificate or crl found; ", "the file has different content; ")),
        (str(tmp_path / "absent.pem"), "No such file or directory; "),
        (str(tmp_path), "Is a directory; "),
    ]:
        with pytest.raises(OperatorError) as caught:
            make_client(**{setting: path})
        begins = [
            f"{setting}: {path}: {words}"
            for words in ([found] if isinstance(found, str) else found)
        ]
        assert str(caught.value).startswith(tuple(begins))
        assert "; use a" in str(caught.value)


def test_a_key_that_does_not_belong_to_its_certificate_is_refused(
    make_client, authority, write_key
):
    certificate, key = authority.issue("tocsin"), write_key()
    with pytest.raises(OperatorError, match="key values mismatch; use") as caught:
        make_client(client_certificate=certificate, client_key=key)
    assert f"client_certificate: {certificate} with client_key {key}:" in str(caught.value)


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(
    make_client, authority, write_key
):
    with pytest.raises(OperatorError, match="without a passphrase"):
        make_client(client_certificate=authority.issue("x"), client_key=write_key(b"secret"))


def test_a_certificate_without_its_key_is_refused(make_client, authority):
    with pytest.raises(OperatorError, match=r"client_certificate: .*its private key"):
        make_client(client_certificate=authority.file)


def test_a_key_that_is_missing_is_named(make_client, authority, tmp_path):
    path = tmp_path / "absent.pem"
    with pytest.raises(OperatorError, match=r"client_key: .*: No such file"):
        make_client(client_certificate=authority.issue("x"), client_key=str(path))


def test_a_key_without_a_certificate_is_refused(make_client, write_key):
    with pytest.raises(OperatorError, match="client_certificate is missing"):
        make_client(client_key=write_key())
