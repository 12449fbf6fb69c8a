"""Tests of responses of every size: a page has a size limit, and no response takes memory in proportion to its size."""

import asyncio
import json
import os
import re
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.client import HTTPResponse
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from programs import BIN, isolated_environment
from server_child import ServerChild
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.records import UserDataRecord
from torc_framework.server.http.answer_room import READS_OF_ADDRESS, AnswerRoom
from torc_framework.server.http.endpoint_results import RequestError, SlicedObject
from torc_framework.server.http.responses import MAX_IN_MEMORY_BYTES, sliced_response

MIB = 1024 * 1024
CACHE = 64 * MIB
"""What SQLite keeps of the database in memory, once for each connection."""


def memory(child: ServerChild, name: str = "VmHWM") -> int:
    """Return how much memory the server has, or has had at most, in bytes."""
    lines = Path(f"/proc/{child.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def spooled(child: ServerChild) -> list[str]:
    """Return the server's open files that have no name; the server may close files meanwhile."""
    names = []
    for link in Path(f"/proc/{child.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            names.append(str(link.readlink()))
    return [name for name in names if name.endswith("(deleted)")]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server that was just started, with one workflow of 60 MiB."""
    with ServerChild(tmp_path_factory.mktemp("large"), "--log-level", "warning") as child:
        with TorcClient(child.url.removesuffix("/torc-service/v1")) as client:
            jobs = [{"name": f"j{n}", "command": "x" * 1000} for n in range(5_000)]
            plan = {"workflow": {"name": "large", "user": "ann"}, "jobs": jobs}
            stored = client._call(dict, "POST", "/workflows/from_plan", body=plan)
            for n in range(60):
                client.create(UserDataRecord(workflow_id=stored["id"], name=f"u{n}", data=[f"{n:02}" * (MIB // 2)]))
        child.stop()
        child.port = 0
        child.start()
        yield child
        assert child.stop() == 0
        assert "level=error" not in child.log


def test_a_page_ends_at_a_number_of_bytes(api: Any, server: str) -> None:
    """With one record at least; the next page goes on there, and clients get all."""
    workflow_id = api.workflow()
    sizes = [1, 17, 6, 6, 6, 1]
    for n, size in enumerate(sizes):
        api.ok("POST", "/user_data", {"workflow_id": workflow_id, "name": f"u{n}", "data": "x" * (size * MIB)})
    told = []
    for offset in (0, 2, 5, 1, 6):
        page = api.ok("GET", "/user_data", workflow_id=workflow_id, offset=offset)
        assert page["count"] == len(page["items"])
        told.append((page["count"], page["total_count"], page["has_more"]))
    assert told == [(2, 6, True), (3, 6, True), (1, 6, False), (1, 6, True), (0, 6, False)]
    with TorcClient(server) as client:
        for limit, wanted in ((None, sizes), (4, sizes[:4])):
            found = client.iterate(UserDataRecord, workflow_id=workflow_id, limit=limit)
            assert [len(record.data) // MIB for record in found] == wanted


def test_a_large_export_takes_little_memory(large: ServerChild, make_api: Any) -> None:
    """The document is whole, with its length; it goes through a file that is gone afterwards."""
    api = make_api(large.url)
    workflow_id = api.ok("GET", "/workflows")["items"][0]["id"]
    before = memory(large)
    answer = api.raw("GET", f"/workflows/{workflow_id}/export")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert int(headers["content-length"]) > 60 * MIB
    assert memory(large) - before < CACHE + 24 * MIB
    document = answer.body
    assert [job["name"] for job in document["jobs"]] == [f"j{n}" for n in range(5_000)]
    assert [record["data"] for record in document["user_data"]] == [[f"{n:02}" * (MIB // 2)] for n in range(60)]
    assert document["files"] == []
    assert not spooled(large)


def test_a_saved_export_takes_little_memory_of_the_client(large: ServerChild, make_api: Any, tmp_path: Path) -> None:
    """The command needs no more than one that asks for little; the file is what the server sends."""
    api = make_api(large.url)
    workflow_id = api.ok("GET", "/workflows")["items"][0]["id"]
    environment = {**isolated_environment(tmp_path), "TORC_API_URL": large.url}
    peaks = []
    for command in (["list", "--all-users"], ["export", str(workflow_id), "--output", str(tmp_path / "large.json")]):
        process = subprocess.Popen([BIN / "torc", "workflows", *command], env=environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(used.ru_maxrss * 1024)
    assert peaks[1] - peaks[0] < 16 * MIB
    saved = json.loads((tmp_path / "large.json").read_bytes())
    sent = api.ok("GET", f"/workflows/{workflow_id}/export")
    assert {**saved, "exported_at": None} == {**sent, "exported_at": None}


def test_a_reader_that_does_not_read_costs_a_file(large: ServerChild, make_api: Any) -> None:
    """The file is closed when that reader is gone; others are served meanwhile."""
    api = make_api(large.url)
    workflow_id = api.ok("GET", "/workflows")["items"][0]["id"]
    before = memory(large, "VmRSS")
    path = f"/torc-service/v1/workflows/{workflow_id}/export"
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", urlsplit(large.url).port or 0)) as reader:
        reader.sendall(request)
        assert reader.recv(12) == b"HTTP/1.1 200"
        assert len(spooled(large)) == 1
        assert memory(large, "VmRSS") - before < CACHE + 24 * MIB
        assert api.ok("GET", "/ping") == {"status": "ok"}
    eventually(lambda: not spooled(large), "the file of the answer goes with its reader")


def begun(child: ServerChild, path: str, count: int) -> list[socket.socket]:
    """Send a request on each of some connections that have hardly any buffer."""
    readers = []
    for _ in range(count):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", child.port))
        reader.sendall(f"GET /torc-service/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        readers.append(reader)
    return readers


def test_readers_that_do_not_read_take_little_memory(tmp_path: Path, make_api: Any) -> None:
    """Neither while their answers are made nor after; small answers are sent meanwhile, and what is read is whole."""
    with ServerChild(tmp_path, "--log-level", "warning") as child:
        api = make_api(child.url)
        workflow_id = api.workflow()
        big = api.ok("POST", "/user_data", {"workflow_id": workflow_id, "name": "big", "data": "x" * (20 * MIB)})["id"]
        jobs = [{"workflow_id": workflow_id, "name": f"j{n}", "command": "c" * 300} for n in range(3_000)]
        for n in range(20):
            api.ok("POST", "/events", {"workflow_id": workflow_id, "data": {"n": n, "text": "x" * MIB}})
        api.ok("POST", "/bulk_jobs", {"jobs": jobs})
        child.stop()
        child.port = 0
        child.start()
        api = make_api(child.url)
        before = memory(child)
        paths = [f"/user_data/{big}", f"/user_data?workflow_id={workflow_id}", f"/jobs?workflow_id={workflow_id}"]
        paths += [f"/workflows/{workflow_id}/export", f"/workflows/{workflow_id}/events/stream?last_event_id=0"]
        readers = {path: begun(child, path, 6) for path in paths}
        assert api.ok("GET", f"/jobs/{api.ok('GET', '/jobs', workflow_id=workflow_id, limit=1)['items'][0]['id']}")
        for several in readers.values():
            for reader in several:
                reader.settimeout(300)
                assert reader.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"
        assert memory(child) - before < 4 * CACHE + 550 * MIB
        answer = HTTPResponse(readers[paths[0]][0])
        answer.begin()
        assert json.loads(answer.read())["data"] == "x" * (20 * MIB)
        stream = HTTPResponse(readers[paths[-1]][0])
        stream.begin()
        numbers = [json.loads(line[5:])["data"]["n"] for line in islice(filter(_is_data, stream), 20)]
        assert numbers == [*range(20)]
        assert len(spooled(child)) > 6
        answer.close()
        stream.close()
        for reader in chain.from_iterable(readers.values()):
            reader.close()
        eventually(lambda: not spooled(child), "the files of the answers go with their readers")


def _has_files(child: ServerChild, count: int) -> bool:
    return len(spooled(child)) == count


def _is_data(line: bytes) -> bool:
    return line.startswith(b"data:")


def test_an_address_that_leaves_much_unread_gets_no_further_large_answers(tmp_path: Path, make_api: Any) -> None:
    """Until it has read them, or its connections are closed; others, and small answers, are not affected."""
    with ServerChild(tmp_path, "--unread-mib-per-address", "30", "--log-level", "warning") as child:
        api = make_api(child.url)
        workflow_id = api.workflow()
        body = {"workflow_id": workflow_id, "name": "big", "data": "x" * (20 * MIB)}
        path = f"/user_data/{api.ok('POST', '/user_data', body)['id']}"
        readers = []
        for n in range(1, 3):
            readers += begun(child, path, 1)
            eventually(partial(_has_files, child, n), "the answer is in a file")
        refused = api.call("GET", path)
        assert refused.status == 503
        assert re.fullmatch(r"clients at 127.0.0.1 have not read \d\d MiB of .*; read those first", refused.message)
        assert api.ok("GET", f"/workflows/{workflow_id}")["id"] == workflow_id
        assert len(api.ok("PUT", path, {})["data"]) == 20 * MIB, "a change is carried out and answered"
        readers[0].settimeout(60)
        left = 20 * MIB
        while left > 0:
            left -= len(readers[0].recv(MIB))
        eventually(lambda: len(spooled(child)) == 1, "the answer was read")
        assert len(api.ok("GET", path)["data"]) == 20 * MIB
        for reader in readers:
            reader.close()


def test_places_for_reads() -> None:
    """Each address has some, and room for large answers; one that has none left does not keep others waiting."""

    async def look() -> None:
        room, held = AnswerRoom(0), list[str]()

        async def read(address: str, size: int, end: asyncio.Event) -> None:
            async with room.place(address, size):
                held.append(f"{address} {size // MIB}")
                try:
                    await end.wait()
                finally:
                    held.remove(f"{address} {size // MIB}")

        async def settled() -> list[str]:
            for _ in range(10):
                await asyncio.sleep(0)
            return sorted(held)

        first, rest = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(read("a", 60 * MIB, first)), asyncio.create_task(read("a", 20 * MIB, rest))]
        tasks += [asyncio.create_task(read("a", 0, rest)) for _ in range(READS_OF_ADDRESS)]
        tasks += [asyncio.create_task(read(address, 32 * MIB, rest)) for address in "bcde"]
        small = ["a 0"] * (READS_OF_ADDRESS - 1)
        assert await settled() == [*small, "a 60", "b 32", "c 32", "d 32"]
        first.set()
        assert await settled() == [*small, "a 20", "b 32", "c 32", "d 32"]
        tasks[1].cancel()
        assert await settled() == [*small, "a 0", "b 32", "c 32", "d 32", "e 32"]
        waiting = asyncio.create_task(read("b", MIB, rest))
        await settled()
        room.close()
        with pytest.raises(RequestError, match="the server ends"):
            await waiting
        rest.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await settled() == []

    asyncio.run(look())


@pytest.mark.parametrize("count", [0, 1, 64, 65, 200, 100_000])
def test_pieces_are_the_same_json(count: int) -> None:
    """Lists and iterators of slices, among fields of other kinds, below and above the size for a file."""
    items = [{"id": n, "name": f'"{n}"\n'} for n in range(count)]
    slices = (items[start : start + 7] for start in range(0, count, 7))
    fields = {"items": items, "text": "a\u20acb", "more": slices, "count": count, "none": None, "empty": []}
    response = sliced_response(SlicedObject(fields), {"Warning": "w"})
    assert response.headers["warning"] == "w"
    assert response.headers["content-type"] == "application/json"
    if count < 100_000:
        content = bytes(response.body)
    else:
        file = vars(response)["_file"]
        content = file.read()
        file.close()
        assert len(content) > MAX_IN_MEMORY_BYTES
    assert int(response.headers["content-length"]) == len(content)
    whole = {**fields, "more": items}
    assert content.decode() == json.dumps(whole, separators=(",", ":"), ensure_ascii=False)


def test_no_room_for_an_answer_is_told() -> None:
    """As a full disk, with the folder."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_IN_MEMORY_BYTES, hard))
    try:
        with pytest.raises(RequestError, match="no space for the response in /") as refused:
            sliced_response(SlicedObject({"items": ["x" * MIB] * 3}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused.value.status == 507
