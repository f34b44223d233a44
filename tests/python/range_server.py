"""A web server for ranges of one folder's files, which counts requests and bytes, and a file system of fsspec that reads from it."""
import http.client
import http.server
import os
import re
import threading

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem


class RangeServer(http.server.ThreadingHTTPServer):
    """Serves FOLDER; `requests` and `bytes` count the ranges that were sent since `reset`, `ranges` has their first and last bytes.

    `fault`, a function of a Handler and the number of the request, is called before an answer is sent: if it returns true, it has
    sent one of its own.
    """

    scheme = 'http'

    def __init__(self, folder, fault=None):
        super().__init__(('127.0.0.1', 0), Handler)
        self.folder, self.lock, self.fault, self.asked = str(folder), threading.Lock(), fault, 0
        self.reset()

    def reset(self):
        self.requests = self.bytes = 0
        self.ranges = []

    def url(self, name):
        return '%s://127.0.0.1:%d/%s' % (self.scheme, self.server_port, name)

    def handle_error(self, *_):
        """Clients may close connections when they like."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = 1 << 16     # headers and body in one packet: a second one would wait for the receiver

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header('Accept-Ranges', 'bytes')
        self.send_header('Content-Length', str(os.path.getsize(self.path_of())))
        self.end_headers()

    def do_GET(self):
        with self.server.lock:
            self.server.asked += 1
            number = self.server.asked
        if self.server.fault is not None and self.server.fault(self, number):
            return
        if not os.path.isfile(self.path_of()):
            return self.refuse(404)
        tag = self.tag()
        if self.headers.get('If-Match', tag) != tag:
            return self.refuse(412)
        size = os.path.getsize(self.path_of())
        asked = re.fullmatch(r'bytes=([0-9]+)-([0-9]*)', self.headers.get('Range', ''))
        start = int(asked.group(1)) if asked else 0
        end = min(size, int(asked.group(2)) + 1 if asked and asked.group(2) else size)
        with open(self.path_of(), 'rb') as file:
            file.seek(start)
            body = file.read(end - start)
        with self.server.lock:
            self.server.requests += 1
            self.server.bytes += len(body)
            self.server.ranges.append((start, end - 1))
        self.send_response(206 if asked else 200)
        self.send_header('Content-Range', 'bytes %d-%d/%d' % (start, end - 1, size))
        self.send_header('Content-Length', str(len(body)))
        self.send_header('ETag', tag)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, **headers):
        """Sends an answer without content."""
        self.send_response(status)
        for name, value in {'Content-Length': '0', **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        return True

    def path_of(self):
        return os.path.join(self.server.folder, os.path.basename(self.path.split('?')[0]))

    def tag(self):
        """The state of the file, as web servers compute it."""
        found = os.stat(self.path_of())
        return '"%x-%x"' % (found.st_mtime_ns, found.st_size)


class RangeFileSystem(AbstractFileSystem):
    """The files of a RangeServer, as fsspec's own file systems of object stores show them, with fsspec's caches."""

    protocol = 'range'
    cachable = False

    def __init__(self, server):
        super().__init__()
        self.port = server.server_port

    def info(self, path, **_):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request('HEAD', '/' + path)
        size = int(connection.getresponse().headers['Content-Length'])
        return {'name': path, 'size': size, 'type': 'file'}

    def _open(self, path, mode='rb', block_size=None, cache_options=None, **options):
        return RangeFile(self, path, mode, block_size or 'default', cache_options=cache_options, **options)


class RangeFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        connection = http.client.HTTPConnection('127.0.0.1', self.fs.port)
        connection.request('GET', '/' + self.path, headers={'Range': 'bytes=%d-%d' % (start, end - 1)})
        return connection.getresponse().read()
