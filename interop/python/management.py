"""python-ndn as a client of a forwarder's management, and as producer and consumer through it.

Usage: management.py UNIX-SOCKET TCP-PORT UDP-PORT. Prints a line for each cell; ends with 1 if one fails.
"""

import asyncio
import sys

from ndn.app import NDNApp
from ndn.app_support import nfd_mgmt as nfd
from ndn.encoding import Component, Name
from ndn.security import DigestSha256Signer, KeychainDigest
from ndn.transport.stream_face import TcpFace, UnixFace
from ndn.transport.udp_face import UdpFace

PREFIX = "/interop/python"
CONTENT = b"octets from python"
PEER = "udp4://127.0.0.1:9"
TIMEOUT_MS = 4000


def check(cell, condition, seen=""):
    print(f"{'ok' if condition else 'FAILED'}  python-ndn: {cell} {'' if condition else seen}", flush=True)
    if not condition:
        sys.exit(1)


async def command(app, module, verb, **parameters):
    """A command's response, as a dictionary."""
    _, _, content = await app.express_interest(
        nfd.make_command_v2(module, verb, app.face, **parameters),
        app_param=b"",
        signer=DigestSha256Signer(for_interest=True),
        must_be_fresh=True,
        lifetime=TIMEOUT_MS,
    )
    return nfd.parse_response(content)


async def dataset(app, name):
    """A dataset's content; none of those here is longer than a segment."""
    _, _, content = await app.express_interest(
        name, can_be_prefix=True, must_be_fresh=True, lifetime=TIMEOUT_MS
    )
    return bytes(content)


def connect(face):
    return NDNApp(face=face, keychain=KeychainDigest())


async def run(app, task):
    """Runs `task` while `app` is connected."""
    result = {}

    async def after_start():
        try:
            result["value"] = await task(app)
        except BaseException as error:
            result["error"] = error
        finally:
            app.shutdown()

    await app.main_loop(after_start())
    if "error" in result:
        raise result["error"]
    return result.get("value")


async def produce_and_consume(socket, tcp, udp):
    producer = connect(UnixFace(socket))

    async def serve(app):
        def answer(name, _parameters, _application_parameters):
            app.put_data(name, content=CONTENT, freshness_period=1000)

        check("registers a prefix over Unix", await app.register(PREFIX, answer))

        async def fetch(consumer):
            name = f"{PREFIX}/{type(consumer.face).__name__}"
            _, _, content = await consumer.express_interest(name, lifetime=TIMEOUT_MS)
            return bytes(content)

        for face in (UnixFace(socket), TcpFace("127.0.0.1", tcp), UdpFace("127.0.0.1", udp)):
            fetched = await run(connect(face), fetch)
            check(f"fetches from python-ndn over {type(face).__name__}", fetched == CONTENT, fetched)
        rib = nfd.RibStatus.parse(await dataset(app, "/localhost/nfd/rib/list"))
        prefixes = [Name.to_str(entry.name) for entry in rib.entries]
        check("finds its route in rib/list", PREFIX in prefixes, prefixes)
        check("takes the route back", await app.unregister(PREFIX))

    await run(producer, serve)


async def read_datasets(app):
    general = nfd.GeneralStatus.parse(await dataset(app, "/localhost/nfd/status/general"))
    check("reads status/general", general.nfd_version.startswith("namecast-"), general.nfd_version)
    faces = nfd.FaceStatusMsg.parse(await dataset(app, "/localhost/nfd/faces/list")).face_status
    uris = [face.uri for face in faces]
    check("reads faces/list", "internal://management" in uris, uris)
    fib = nfd.FibStatus.parse(await dataset(app, "/localhost/nfd/fib/list"))
    prefixes = [Name.to_str(entry.name) for entry in fib.entries]
    check("reads fib/list", "/localhost/nfd" in prefixes, prefixes)
    choices = nfd.StrategyChoiceMsg.parse(await dataset(app, "/localhost/nfd/strategy-choice/list"))
    names = [Name.to_str(choice.strategy.name) for choice in choices.strategy_choices]
    check("reads strategy-choice/list", names == ["/localhost/nfd/strategy/best-route/v=5"], names)


async def manage(app):
    waiting = asyncio.ensure_future(
        app.express_interest(
            "/localhost/nfd/faces/events", can_be_prefix=True, must_be_fresh=True, lifetime=TIMEOUT_MS
        )
    )
    # The newest event is that of this application's own face, or that an earlier one's is gone.
    name, _, content = await waiting
    newest = Component.to_number(name[-1])
    event = nfd.FaceEventNotification.parse(content).event
    kinds = (nfd.FaceEventKind.CREATED, nfd.FaceEventKind.DESTROYED)
    check("is told of the newest face event", event.face_event_kind in kinds, event)
    following = Name.from_str("/localhost/nfd/faces/events") + [Component.from_sequence_num(newest + 1)]
    waiting = asyncio.ensure_future(app.express_interest(following, lifetime=TIMEOUT_MS))
    created = await command(app, "faces", "create", uri=PEER)
    check("creates a face", created["status_code"] == 200, created)
    face = created["face_id"]
    _, _, content = await waiting
    event = nfd.FaceEventNotification.parse(content).event
    check("is told of that face", (event.face_id, event.uri) == (face, PEER), event)
    updated = await command(app, "faces", "update", face_id=face, flags=2, mask=2)
    check("updates a face", (updated["status_code"], updated["flags"]) == (200, 6), updated)
    marking = await command(app, "faces", "update", face_id=face, default_congestion_threshold=30000)
    check("chooses when a face marks", marking["status_code"] == 200, marking)
    wrong = await command(app, "faces", "update", face_id=face, face_persistency=1)
    check("is refused what the face cannot be", wrong["status_code"] == 409, wrong)
    multicast = await command(app, "faces", "create", uri="udp4://224.0.23.170:56363")
    check("is refused a multicast face", multicast["status_code"] == 406, multicast)
    added = await command(app, "rib", "register", name="/far", face_id=face, cost=7)
    check("adds a route to it", (added["status_code"], added["cost"]) == (200, 7), added)
    chosen = await command(
        app, "strategy-choice", "set", name="/far", strategy=Name.from_str("/localhost/nfd/strategy/multicast")
    )
    check("chooses a strategy", chosen["status_code"] == 200, chosen)
    chosen = await command(app, "strategy-choice", "unset", name="/far")
    check("takes the choice back", chosen["status_code"] == 200, chosen)
    store = await command(app, "cs", "config", capacity=1000, flags=3, mask=3)
    check("configures the content store", (store["status_code"], store["capacity"]) == (200, 1000), store)
    erased = await command(app, "cs", "erase", name=PREFIX)
    check("erases what was cached", (erased["status_code"], erased["count"]) == (200, 3), erased)
    destroyed = await command(app, "faces", "destroy", face_id=face)
    check("destroys the face", destroyed["status_code"] == 200, destroyed)


async def main(socket, tcp, udp):
    await produce_and_consume(socket, tcp, udp)
    await run(connect(UnixFace(socket)), read_datasets)
    await run(connect(UnixFace(socket)), manage)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:4])))
