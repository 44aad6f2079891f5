"""An asyncio echo: `server PORT`, or `client PORT STREAMS MESSAGES`, which prints a digest of what came back."""

import asyncio
import hashlib
import random
import sys


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(port):
    server = await asyncio.start_server(echo, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def talk(port, seed, messages):
    """Messages of random sizes, each sent and read back at the same time; the end by half-close."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(messages):
        message = rng.randbytes(rng.choice([1, 7, 100, 4096, 65537, 300000]))
        writer.write(message)
        back, _ = await asyncio.gather(reader.readexactly(len(message)), writer.drain())
        assert back == message, "the echo differs"
        digest.update(back)
    writer.write_eof()
    assert await reader.read() == b"", "bytes after the last message"
    writer.close()
    return digest.hexdigest()


async def client(port, streams, messages):
    for result in await asyncio.gather(*(talk(port, seed, messages) for seed in range(streams))):
        print(result)


numbers = [int(word) for word in sys.argv[2:]]
asyncio.run(serve(*numbers) if sys.argv[1] == "server" else client(*numbers))
