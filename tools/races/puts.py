"""Measure what it costs to put small objects, one after the other and side by side, into moto's S3 server.

    python tools/races/puts.py [COUNT]

The server is a process of its own on the same machine, so that only the processor time says much.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from as2d_cli.system.remote_files import put, reach

BYTES = 3000


def main() -> None:
    """Time the puts one after the other and side by side, and print a line for each."""
    count = int(sys.argv[1]) if sys.argv[1:] else 200
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="secret",
        AWS_DEFAULT_REGION="us-east-1",
    )
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(port)
        import s3fs

        s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"]).mkdir("bucket")
        reach("s3://bucket/texts")
        for at_once in (1, 8):
            began, busy = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(at_once) as pool:
                names = [f"s3://bucket/texts/{at_once}/{number}.txt" for number in range(count)]
                list(pool.map(lambda name: put(name, b"x" * BYTES), names))
            busy, wall = time.process_time() - busy, time.perf_counter() - began
            each = f"{1000 * busy / count:.1f} ms of processor, {1000 * wall / count:.1f} ms"
            print(f"{at_once} at once: {each} each")
    finally:
        server.terminate()
        server.wait()


def _await(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
