"""A web server for ranges of one folder's files, which counts requests and bytes, and a file system of fsspec that reads from it."""
import http.client
import http.server
import os
import re
import threading

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem


class RangeServer(http.server.ThreadingHTTPServer):
    """Serves FOLDER; `requests` and `bytes` count the ranges that were sent since `reset`."""

    def __init__(self, folder):
        super().__init__(('127.0.0.1', 0), Handler)
        self.folder, self.lock = str(folder), threading.Lock()
        self.reset()

    def reset(self):
        self.requests = self.bytes = 0

    def url(self, name):
        return 'http://127.0.0.1:%d/%s' % (self.server_port, name)

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
        self.send_response(206 if asked else 200)
        self.send_header('Content-Range', 'bytes %d-%d/%d' % (start, end - 1, size))
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def path_of(self):
        return os.path.join(self.server.folder, os.path.basename(self.path))


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
