#!/usr/bin/env python3
"""Starts `tbd-sim serve`, asks it many things well and badly, and fails if it does not stay up, small and polite.

    load.py TBD_SIM [--requests 10000] [--clients 4] [--sanitized]

Prints how long replies took (sliders are meant to be answered within 100 ms; no test knows how busy a machine is) and
what memory was held. Checks: memory stays below 256 MiB, and in the second half of thousands of requests is what it was in the first; whatever is sent, a
plain question is still answered; every refusal is JSON with an error; no file is read; Ctrl-C ends the server, with 130.
"""
import argparse
import concurrent.futures
import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse

SECONDS = 30
MOST_MEMORY = 256  # MiB, of all it keeps
SETTLED = 5000  # requests after which it keeps all it is going to keep
MOST_GROWTH = 1.3  # of memory, which goes up and down as models come and go: of its median


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(self.process.stderr.read())
        self.port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/  \(Ctrl-C ends it\)\n", line).group(1))

    def get(self, target):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", target)
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def raw(self, data):
        """Whatever comes back for these bytes, until the other side ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            heard = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    heard += part
            except (ConnectionResetError, BrokenPipeError):
                pass
            return heard

    def memory(self):
        """Resident, MiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1024

    def end(self):
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=SECONDS)
        return code, time.monotonic() - began, self.process.stderr.read()


def slider(draw):
    """What a slider asks: one scenario, its numbers turned."""
    query = [("model", "resnet50"), ("framework", "mxnet"), ("gpu", "titanxp"), ("batch", draw.randint(1, 256))]
    query.append(("set", f"gpu.memory_bandwidth={draw.randint(100, 2000)} GB/s"))
    query.append(("set", f"gpu.sm_count={draw.randint(8, 120)}"))
    if draw.random() < 0.5:
        query += [("gpus", draw.randint(1, 8)), ("machines", draw.randint(1, 64)), ("network", f"{draw.randint(1, 400)} Gbit/s")]
    return "/report?" + urllib.parse.urlencode(query)


MODELS = ["resnet50", "inception_v3", "seq2seq", "transformer", "faster_rcnn", "deep_speech2", "wgan_gp", "a3c", "vgg16", "bert_base"]
GPUS = ["titanxp", "p4000", "v100_sxm2_16gb", "a100_sxm_80gb", "h100_sxm", "k80", "t4"]


def anything(draw):
    """Lists and sliders of all sorts, some of them impossible."""
    query = {"model": draw.choice(MODELS), "framework": draw.choice(["mxnet", "tensorflow", "pytorch", "cntk"]), "gpu": draw.choice(GPUS),
             "precision": draw.choice(["fp32", "fp32", "tf32", "fp16", "bf16", "amp"]), "batch": 2 ** draw.randint(0, 12)}
    return "/report?" + urllib.parse.urlencode(query)


HOSTILE = ["../../etc/passwd", "/etc/passwd", "/dev/zero", "", "x" * 5000, "\0", "titanxp.yaml\0", "-1", "0", "1e308", "nan", "9" * 400, "{{{{",
           "[[[[", "*a", "&a", "!!python/object", "%s%n", "<script>", "'\"", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
           "x1e300", "+1e300%", "-100%", "x0", "1000000000 GB/s", "1000000000", "0.000001 GB/s", "1 GB", "..", "gpu"]
KEYS = ["model", "framework", "variant", "gpu", "precision", "batch", "gpus", "machines", "network", "kernels", "set", "", "\0", "__proto__"]
CHANGES = ["gpu.memory_bandwidth", "gpu.sm_count", "gpu.boost_clock", "gpu.math.fp32.flops_per_clock_per_sm", "gpu.bus", "gpu.l2_size",
           "gpu.memory_size", "gpu.tdp", "gpu.sources", "gpu", "gpu.", ".", "link.latency", "link.pcie3.bandwidth", "link", "model.layers",
           "framework.execution.kernel", "dataset.samples", "gpu" + ".a" * 500]


def hostile(draw):
    """Queries that nobody means well with."""
    query = []
    for _ in range(draw.randint(1, 4)):
        if draw.random() < 0.6:
            query.append(("set", f"{draw.choice(CHANGES)}={draw.choice(HOSTILE)}"))
        else:
            query.append((draw.choice(KEYS), draw.choice(HOSTILE)))
    return "/report?" + urllib.parse.urlencode(query)


def corpus(draw):
    """Bytes that are hardly HTTP: good requests bent, cut, grown, repeated, and some that are nothing at all."""
    good = b"GET /report?batch=16 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"
    bent = bytearray(good)
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(bent))
        choice = draw.randrange(4)
        if choice == 0:
            bent[place] = draw.randrange(256)
        elif choice == 1:
            del bent[place:place + draw.randint(1, 20)]
        elif choice == 2:
            bent[place:place] = bytes(draw.randrange(256) for _ in range(draw.randint(1, 40)))
        else:
            bent[place:place] = bent[:draw.randint(1, 60)]
        if not bent:
            return b""
    special = [b"\r\n\r\n", b"\n\n\n\n", b"GET", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
               b"GET /" + b"a" * 100000, b"POST /report HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
               b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
               b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
               b"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b"0-," * 2000 + b"0-\r\n\r\n", b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n"]
    return bytes(bent) if draw.random() < 0.7 else draw.choice(special)


def quantile(times, part):
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


class Checks:
    def __init__(self):
        self.failed = 0

    def expect(self, condition, what):
        if not condition:
            self.failed += 1
            print(f"FAILED: {what}", file=sys.stderr)


def timed(server, target):
    began = time.perf_counter()
    status, body = server.get(target)
    return time.perf_counter() - began, status, body


def check_sliders(server, checks, count):
    draw = random.Random(1)
    server.get(slider(draw))
    times = []
    for _ in range(count):
        took, status, body = timed(server, slider(draw))
        checks.expect(status == 200, f"a slider was answered {status}: {body[:200]}")
        times.append(took)
    median, most = quantile(times, 0.5), quantile(times, 0.99)
    print(f"sliders, one after another: {count} replies of {len(body)} bytes, median {1000 * median:.1f} ms, 99 % within {1000 * most:.1f} ms")


def one_request(server, draw):
    kind = draw.random()
    if kind < 0.8:
        return timed(server, slider(draw))
    if kind < 0.85:
        return timed(server, "/")
    if kind < 0.95:
        return timed(server, anything(draw))
    return timed(server, hostile(draw))


def check_load(server, checks, count, clients):
    """Requests in ten parts, so that memory is seen to settle."""
    draws = [random.Random(100 + client) for client in range(clients)]
    memory, times = [], []
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for _ in range(10):
            shares = [pool.submit(lambda draw: [one_request(server, draw) for _ in range(count // 10 // clients)], draw) for draw in draws]
            for share in shares:
                for took, status, body in share.result():
                    times.append(took)
                    checks.expect(status in (200, 400, 431), f"answered {status}: {body[:200]}")
                    if status != 200:
                        checks.expect("error" in json.loads(body), "a refusal says nothing")
            memory.append(server.memory())
    print(f"load of {clients} clients: {len(times)} replies, median {1000 * quantile(times, 0.5):.1f} ms, 99 % within "
          f"{1000 * quantile(times, 0.99):.1f} ms, longest {1000 * max(times):.0f} ms; memory after each tenth, MiB: "
          + " ".join(f"{one:.0f}" for one in memory))
    return memory


def check_fuzz(server, checks, count):
    draw = random.Random(7)
    longest = 0
    for _ in range(count):
        took, status, body = timed(server, hostile(draw))
        longest = max(longest, took)
        checks.expect(status in (200, 400, 431), f"a hostile query was answered {status}: {body[:200]}")
        checks.expect(b"root:" not in body, "a file was read")
        heard = server.raw(corpus(draw))
        checks.expect(not heard or heard.startswith(b"HTTP/1.1 "), f"not HTTP: {heard[:60]}")
        if heard and not re.match(rb"HTTP/1\.1 [12]00 ", heard):
            checks.expect(b'{"error":' in heard or b"HEAD" in heard, f"a refusal says nothing: {heard[:200]}")
        checks.expect(b" 500 " not in heard[:20], f"a bug: {heard[-200:]}")
    print(f"fuzzing: {count} hostile queries, {count} requests that are hardly HTTP; longest reply {1000 * longest:.0f} ms, memory {server.memory():.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--sanitized", action="store_true", help="a sanitizer keeps what was freed: memory is not checked")
    arguments = parser.parse_args()
    checks = Checks()
    server = Server(arguments.program)
    try:
        check_sliders(server, checks, max(50, arguments.requests // 50))
        memory = check_load(server, checks, arguments.requests, arguments.clients)
        check_fuzz(server, checks, arguments.requests // 10)
        if not arguments.sanitized:
            half = len(memory) // 2
            flat = quantile(memory[half:], 0.5) < MOST_GROWTH * quantile(memory[:half], 0.5)
            checks.expect(flat or arguments.requests < SETTLED, "memory grows with requests")
            checks.expect(max(memory) < MOST_MEMORY, "more memory than it may keep")
            checks.expect(server.memory() < MOST_GROWTH * max(memory), "memory grows with hostile requests")
        status, _ = server.get("/report?batch=8")
        checks.expect(status == 200, "no answer any more")
        checks.expect(server.process.poll() is None, "the server ended")
    finally:
        code, took, said = server.end()
    print(f"Ctrl-C: exit code {code} after {1000 * took:.0f} ms")
    checks.expect(code == 130 and took < SECONDS and said == "tbd-sim: interrupted\n", f"Ctrl-C: {code}, {took:.1f} s, {said!r}")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
