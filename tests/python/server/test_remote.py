"""Native files on web servers and in S3: what is read, what it costs, and every way in which a server can fail."""
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
import warnings

import casacore.tables as ct
import h5py
import numpy as np
import pytest

import support
from range_server import RangeServer
from support import DAMAGED, DIFFERENT, DONE, FAILED, H5BRIDGE, UNSUPPORTED, USAGE, h5bridge
from test_cloud import grown                                # noqa: F401, a fixture

DEMO = os.path.join(support.TESTDATA, 'demo', 'demo.ms')
BUCKET = 'archive'
KEYS = ('AKIAIOSFODNN7EXAMPLE', 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with the demo as a file, in the default profile and in that for the cloud."""
    folder = tmp_path_factory.mktemp('remote')
    h5bridge('to-hdf5', DEMO, folder / 'my.h5')
    h5bridge('to-hdf5', '--profile', 'cloud', DEMO, folder / 'cloud.h5')
    return folder


def run(*words, code=DONE, **environment):
    """Runs h5bridge with these environment variables, and none of AWS from outside; nothing it prints may have a secret in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith('AWS_')}
    kept.update(HOME='/nonexistent', H5BRIDGE_HTTP_TIMEOUT='1', NO_PROXY='127.0.0.1', **environment)
    done = subprocess.run([H5BRIDGE, *map(str, words)], env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    assert KEYS[1] not in done.stdout + done.stderr and 'secret' not in done.stdout + done.stderr
    assert 'panicked' not in done.stderr
    return done


# ---- what is read -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('name', ['my.h5', 'cloud.h5'])
def test_verbs(folder, name):
    with RangeServer(folder) as server:
        for verb in ('info', 'digest'):
            assert run(verb, server.url(name)).stdout == run(verb, folder / name).stdout
        assert 'equal' in run('verify', server.url(name)).stderr
        assert 'equal' in run('verify', DEMO, server.url(name)).stderr
        assert 'equal' in run('verify', server.url(name), folder / 'my.h5').stderr


def test_other_verbs(folder, tmp_path):
    """Whatever takes a source takes an address."""
    with RangeServer(folder) as server:
        run('to-ms', server.url('my.h5'), tmp_path / 'my.ms')
        run('to-hdf5', server.url('my.h5'), tmp_path / 'copy.h5')
    assert 'equal' in run('verify', DEMO, tmp_path / 'my.ms').stderr
    assert 'equal' in run('verify', DEMO, tmp_path / 'copy.h5').stderr


def test_requests_of_a_large_file(grown):                   # noqa: F811
    """28 MB: info within 15 requests, and verify reads no byte twice but those of blocks that it shares."""
    _, files = grown
    folder = os.path.dirname(files['cloud'])
    with RangeServer(folder) as server:
        for name in ('cloud.h5', 'default.h5'):
            size = os.path.getsize(os.path.join(folder, name))
            server.reset()
            assert run('info', server.url(name)).stdout == run('info', os.path.join(folder, name)).stdout
            print('%s: info %d requests, %.2f MB' % (name, server.requests, server.bytes / 1e6))
            assert server.requests <= (15 if name == 'cloud.h5' else 60)
            assert server.bytes < size / 3
            server.reset()
            started = time.monotonic()
            assert 'equal' in run('verify', server.url(name)).stderr
            print('%s: verify %d requests, %.2f of %.2f MB, %.2f s'
                  % (name, server.requests, server.bytes / 1e6, size / 1e6, time.monotonic() - started))
            assert server.bytes < 1.2 * size and server.requests < size / 2e5
            server.reset()
            # a column is read without the others
            run('digest', '--columns', 'UVW', server.url(name))
            print('%s: digest of UVW %d requests, %.2f MB' % (name, server.requests, server.bytes / 1e6))
            assert server.bytes < size / 2


def test_package(folder):
    """In the process of Python: values against python-casacore, pictures of the tree, and a callable that publishes."""
    script = '''
import sys, numpy as np, casacore.tables as ct, h5bridge, xarray
url, ms, out = sys.argv[1:]
with h5bridge.open_table(url) as table, ct.table(ms, ack=False) as theirs:
    for name in ("DATA", "TIME", "UVW", "FLAG"):
        assert np.array_equal(table[name][:], theirs.getcol(name)), name
    assert table.path == url and table.nrows == theirs.nrows()
with h5bridge.open_table(url + "/ANTENNA") as table, ct.table(ms + "/ANTENNA", ack=False) as theirs:
    assert list(table["NAME"][:]) == theirs.getcol("NAME")
assert h5bridge.info(url).tables["."].rows == 210
assert h5bridge.verify(url).equal and h5bridge.verify(ms, url).equal
assert h5bridge.digest(url).main == h5bridge.digest(ms).main
tree = xarray.open_datatree(url, engine=h5bridge.xarray.H5bridgeBackend)
assert tree["MAIN/DATA"].shape == (210, 16, 4) and tree["MAIN/DATA"][3].values.shape == (16, 4)
try:
    h5bridge.open_table(url + "x")
    raise SystemExit("opened")
except FileNotFoundError:
    pass
seen = []
h5bridge.to_hdf5(ms, out, publish=lambda path: seen.append((path, h5bridge.verify(path).equal)))
assert seen == [(out, True)]
def fail(path):
    raise ConnectionError("bucket")
try:
    h5bridge.to_hdf5(ms, out, overwrite=True, publish=fail)
    raise SystemExit("no exception")
except ConnectionError:
    assert h5bridge.verify(out).equal
'''
    pytest.importorskip('h5bridge')
    with RangeServer(folder) as server:
        done = subprocess.run([sys.executable, '-W', 'ignore', '-c', script, server.url('my.h5'), DEMO, str(folder / 'published.h5')],
                              capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# ---- damage --------------------------------------------------------------------------------------------------------------

def test_axes_of_msv4(folder, tmp_path):
    """A file by the axes of MSv4: verbs, and the view, which reads what is asked for."""
    xarray = pytest.importorskip('xarray')
    pytest.importorskip('h5bridge', reason='the Python package is not installed: scripts/setup-python', exc_type=ImportError)
    h5bridge('to-hdf5', '--schema', 'msv4', DEMO, folder / 'msv4.h5')
    with RangeServer(folder) as server, warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        for verb in ('info', 'digest'):
            assert run(verb, server.url('msv4.h5')).stdout == run(verb, folder / 'msv4.h5').stdout
        assert 'equal' in run('verify', DEMO, server.url('msv4.h5')).stderr
        run('to-ms', server.url('msv4.h5'), tmp_path / 'my.ms')
        assert 'equal' in run('verify', DEMO, tmp_path / 'my.ms').stderr
        open_set = lambda path: xarray.open_datatree(path, engine='h5bridge', schema='msv4')  # noqa: E731
        with open_set(server.url('msv4.h5')) as far, open_set(str(folder / 'msv4.h5')) as near:
            assert len(far.children) == len(near.children) and near.children
            for ours, theirs in zip(far.subtree, near.subtree):
                xarray.testing.assert_identical(ours.to_dataset().drop_attrs(), theirs.to_dataset().drop_attrs())
            server.reset()
            part = next(iter(far.children.values()))
            part.VISIBILITY[0, 0].values
            assert server.bytes < os.path.getsize(folder / 'msv4.h5') / 2


def test_flipped_byte(folder):
    """The dataset, the chunk and its place in the file are named."""
    with h5py.File(folder / 'my.h5') as file:
        chunk = file['MAIN/DATA'].id.get_chunk_info(0)
        place = chunk.byte_offset + chunk.size // 2
    data = bytearray((folder / 'my.h5').read_bytes())
    data[place] ^= 0x10
    (folder / 'flipped.h5').write_bytes(data)
    with RangeServer(folder) as server:
        done = run('verify', server.url('flipped.h5'), code=DIFFERENT)
        local = run('verify', folder / 'flipped.h5', code=DIFFERENT)
    assert done.stdout == local.stdout
    assert 'DATA' in done.stdout and 'chunk' in done.stdout and 'byte %d' % chunk.byte_offset in done.stdout, done.stdout


@pytest.fixture(scope='module')
def noise(folder):
    """A file without compression: 4000 rows of DATA with 512 bytes, and cells of two shapes."""
    description = ct.maketabdesc([ct.makearrcoldesc('DATA', 0j, valuetype='complex', shape=[16, 4], options=5),
                                  ct.makearrcoldesc('RAGGED', 0j, valuetype='complex', ndim=2)])
    rng = np.random.default_rng(8)
    with ct.table(str(folder / 'noise.ms'), description, nrow=4000, ack=False) as table:
        table.putcol('DATA', rng.normal(size=(4000, 16, 4, 2)).astype('f4').view('c8')[..., 0])
        for row in range(4000):
            table.putcell('RAGGED', row, rng.normal(size=(16, 3 + row % 2, 2)).astype('f4').view('c8')[..., 0])
    h5bridge('to-hdf5', '--compress', 'none', '--digest', folder / 'noise.ms', folder / 'noise.h5')
    assert 'equal' in h5bridge('verify', folder / 'noise.h5').stderr
    return folder / 'noise.h5'


def rows_found(text, column):
    """The rows in which a column begins to differ, by the output of verify: the first, and the one after the last."""
    [found] = re.findall('MAIN %s: cells: [0-9a-f]{64} \\| cells: [0-9a-f]{64}, first in rows (\\d+) to (\\d+)' % column, text)
    return int(found[0]), int(found[1]) + 1


@pytest.mark.parametrize('row', [0, 700, 2047, 2048, 3999])
def test_flipped_byte_that_decodes(folder, noise, row):
    """A byte of a chunk without filters is found within a quarter of a MB, and its chunk is named; every byte is read once."""
    with h5py.File(noise) as file:
        data = file['MAIN/DATA']
        assert data.compression is None and data.id.get_num_chunks() > 1
        chunk = data.id.get_chunk_info_by_coord((row, 0, 0))
        place = chunk.byte_offset + row % data.chunks[0] * 512 + 77
        # the last row as well: the first difference is named
        later = data.id.get_chunk_info_by_coord((3999, 0, 0)).byte_offset + 3999 % data.chunks[0] * 512
        ragged = file['MAIN/RAGGED/values']
        assert ragged.compression is None
        element = ragged.id.get_chunk_info(0).byte_offset + row // 2 * 896 + 5 if row < 2000 else None
    content = bytearray(noise.read_bytes())
    content[place] ^= 0x10
    content[later] ^= 1
    if element:
        content[element] ^= 1
    (folder / 'noise-flipped.h5').write_bytes(content)
    with RangeServer(folder) as server:
        done = run('verify', server.url('noise-flipped.h5'), code=DIFFERENT)
        assert server.bytes < 1.2 * len(content)
    assert done.stdout == run('verify', folder / 'noise-flipped.h5', code=DIFFERENT).stdout
    first, end = rows_found(done.stdout, 'DATA')
    assert first <= row < end and end - first <= 520, done.stdout
    assert 'dataset /MAIN/DATA: ' in done.stdout or 'dataset MAIN/DATA: ' in done.stdout
    numbers = [int(text) for text in re.findall('at bytes? ([0-9]+)', done.stdout)]
    assert min(numbers) <= chunk.byte_offset, done.stdout
    if element:
        first, end = rows_found(done.stdout, 'RAGGED')
        assert first <= row < end and end - first <= 1000, done.stdout
    # with the table at hand, the cell
    with RangeServer(folder) as server:
        done = run('verify', folder / 'noise.ms', server.url('noise-flipped.h5'), code=DIFFERENT)
    assert 'MAIN DATA row %d [' % row in done.stdout, done.stdout


def test_flipped_byte_in_a_bucket(noise, moto):
    url, keys, s3 = moto
    with h5py.File(noise) as file:
        place = file['MAIN/DATA'].id.get_chunk_info(0).byte_offset + 512 * 600
    content = bytearray(noise.read_bytes())
    content[place] ^= 2
    s3.put_object(Bucket=BUCKET, Key='noise.h5', Body=bytes(content))
    done = run('verify', 's3://%s/noise.h5' % BUCKET, code=DIFFERENT, **aws(url, keys))
    first, end = rows_found(done.stdout, 'DATA')
    assert first <= 600 < end and end - first <= 520, done.stdout


def test_not_hdf5(folder):
    (folder / 'text.h5').write_text('no HDF5' * 100)
    (folder / 'empty.h5').write_bytes(b'')
    (folder / 'short.h5').write_bytes((folder / 'my.h5').read_bytes()[:100000])
    with RangeServer(folder) as server:
        assert 'not an HDF5 file' in run('info', server.url('text.h5'), code=DAMAGED).stderr
        run('info', server.url('short.h5'), code=DAMAGED)
        run('info', server.url('empty.h5'), code=FAILED)
        h5bridge('pack', '--single-file', DEMO, folder / 'packed.h5')
        assert 'not a native file' in run('info', server.url('packed.h5'), code=UNSUPPORTED).stderr


def test_no_other_files(folder):
    """A file that names others cannot make its reader open them."""
    (folder / 'raw.bin').write_bytes(bytes(8 * 210))
    shutil.copy(folder / 'my.h5', folder / 'outside.h5')
    with h5py.File(folder / 'outside.h5', 'r+') as file:
        del file['MAIN/TIME']
        file['MAIN'].create_dataset('TIME', (210,), 'f8', external=[(str(folder / 'raw.bin'), 0, 8 * 210)])
    with RangeServer(folder) as server:
        done = run('digest', server.url('outside.h5'), code=UNSUPPORTED)
        assert 'other files are not opened' in done.stdout + done.stderr
        run('digest', '--follow-external', server.url('outside.h5'), code=UNSUPPORTED)


# ---- servers that fail -----------------------------------------------------------------------------------------------

def status(code, **headers):
    return lambda handler, number: handler.refuse(code, **headers)


def after(count, fault):
    """The fault, once COUNT requests were answered."""
    return lambda handler, number: number > count and fault(handler, number)


def cut(handler, _):
    """The beginning of the answer."""
    size = os.path.getsize(handler.path_of())
    first, last = map(int, handler.headers['Range'].removeprefix('bytes=').split('-'))
    handler.send_response(206)
    handler.send_header('Content-Range', 'bytes %d-%d/%d' % (first, min(last, size - 1), size))
    handler.send_header('ETag', handler.tag())
    handler.end_headers()
    handler.wfile.write(bytes(1000))
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


def whole(handler, _):
    """The whole file, as servers send it that know no ranges."""
    handler.send_response(200)
    size = os.path.getsize(handler.path_of())
    handler.send_header('Content-Length', str(size))
    handler.end_headers()
    handler.wfile.write(open(handler.path_of(), 'rb').read())
    return True


def ranged(text, count, **headers):
    def answer(handler, _):
        handler.send_response(206)
        handler.send_header('Content-Range', text)
        handler.send_header('Content-Length', str(count))
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.end_headers()
        handler.wfile.write(bytes(count))
        return True
    return answer


def hang(handler, _):
    time.sleep(6)
    handler.close_connection = True
    return True


def garbage(handler, _):
    handler.wfile.write(b'\xff\x00 no HTTP\r\n\r\n' * 10)
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


FAULTS = {
    'no ranges': (whole, UNSUPPORTED, 'no ranges'),
    '401': (status(401), FAILED, 'refuses access (status 401)'),
    '403': (status(403), FAILED, 'refuses access (status 403)'),
    '404': (status(404), DAMAGED, 'does not exist'),
    '410': (status(410), DAMAGED, 'does not exist'),
    '418': (status(418), FAILED, 'status 418'),
    '500': (status(500), FAILED, 'status 500) (failed 4 times)'),
    '503': (status(503), FAILED, 'status 503) (failed 4 times)'),
    'cut': (cut, FAILED, '(failed 4 times)'),
    'hang': (hang, FAILED, 'in time (failed 4 times)'),
    'garbage': (garbage, FAILED, 'the answer is not HTTP'),
    'another range': (ranged('bytes 5-9/400000', 5), FAILED, 'sent bytes 5 to 9'),
    'wrong length': (ranged('bytes 0-262143/400000', 262150), FAILED, 'sends 262150 bytes'),
    'no length': (ranged('bytes 0-262143/*', 262144), FAILED, 'unknown length'),
    'a huge length': (ranged('bytes 0-262143/18446744073709551615', 262144), FAILED, 'expected bytes 262144 to'),
    'compressed': (ranged('bytes 0-262143/400000', 262144, Content_Encoding='gzip'), UNSUPPORTED, 'compresses'),
    'redirects': (lambda handler, _: handler.refuse(302, Location=handler.path), FAILED, 'redirects more than 5 times'),
}


@pytest.mark.parametrize('name', FAULTS)
def test_faults(folder, name):
    fault, code, message = FAULTS[name]
    started = time.monotonic()
    with RangeServer(folder, fault) as server:
        done = run('info', server.url('my.h5?key=secret'), code=code)
    assert message in done.stderr and 'my.h5?…' in done.stderr, done.stderr
    assert time.monotonic() - started < 15


@pytest.mark.parametrize('name, verb', [('403', 'verify'), ('500', 'verify'), ('cut', 'info'), ('404', 'verify'), ('403', 'info')])
def test_faults_later(folder, name, verb):
    """The same after the first answer: a failure and not a difference, after one series of retries."""
    fault, _, _ = FAULTS[name]
    with RangeServer(folder, after(1, fault)) as server:
        done = run(verb, server.url('my.h5'), code=DAMAGED if name == '404' else FAILED)
        assert server.asked <= 1 + 4, done.stderr


def test_passing_faults(folder):
    """Every second request fails, and nobody notices."""
    for fault in (status(503, Retry_After='0'), cut, garbage):
        with RangeServer(folder, lambda handler, number: number % 2 == 1 and fault(handler, number)) as server:
            assert 'equal' in run('verify', server.url('my.h5')).stderr
            assert server.asked > 2


def test_redirect(folder):
    with RangeServer(folder) as target:
        with RangeServer(folder, lambda handler, _: handler.refuse(302, Location=target.url('my.h5'))) as server:
            assert 'equal' in run('verify', server.url('other.h5')).stderr
            assert target.requests > 0 and server.requests == 0


def test_replaced_while_read(folder):
    """By its tag, by its length, by its date: never a mixture of two files."""
    def replace(handler, number):
        if number == 2:
            shutil.copy(folder / 'cloud.h5', folder / 'changing.h5')
            os.utime(folder / 'changing.h5', (1e9, 1e9))

    shutil.copy(folder / 'my.h5', folder / 'changing.h5')
    with RangeServer(folder, replace) as server:
        done = run('verify', server.url('changing.h5'), code=FAILED)
    assert 'replaced while it was read' in done.stderr

    def other(**headers):
        size = os.path.getsize(folder / 'my.h5')
        def answer(handler, number):
            if number == 1:
                return False
            first, last = map(int, handler.headers['Range'].removeprefix('bytes=').split('-'))
            return ranged('bytes %d-%d/%d' % (first, last, size), last - first + 1, **headers)(handler, number)
        return answer

    # a server that does not look at If-Match
    with RangeServer(folder, other(ETag='"another"')) as server:
        assert 'replaced while it was read' in run('verify', server.url('my.h5'), code=FAILED).stderr


def test_usage(folder):
    for address, message in [('s3://bucket', 's3://BUCKET/KEY'), ('s3:///key', 's3://BUCKET/KEY'), ('https://', 'https://HOST/PATH'),
                             ('https://me:secret@host/my.h5', 'user or password'), ('http://host/my file.h5', '%20')]:
        assert message in run('info', address, code=USAGE).stderr
    run('info', 'http://no-such-host.invalid/my.h5', code=FAILED)
    with RangeServer(folder) as server:
        assert 'h5bridge refs' in run('manifest', server.url('my.h5'), folder / 'x.json', code=UNSUPPORTED).stderr


def test_encryption(folder, tmp_path):
    """A certificate has to be that of the host, and known to the system; no redirection leads away from encryption."""
    openssl = shutil.which('openssl')
    if openssl is None:
        pytest.skip('no openssl')
    key, certificate = tmp_path / 'key.pem', tmp_path / 'certificate.pem'
    subprocess.run([openssl, 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate, '-days', '2',
                    '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE'],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def secure(fault=None):
        server = RangeServer(folder, fault)
        server.scheme = 'https'
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server
    with secure() as server:
        assert 'equal' in run('verify', server.url('my.h5'), SSL_CERT_FILE=str(certificate)).stderr
        assert 'no secure connection' in run('info', server.url('my.h5'), code=FAILED).stderr
    with RangeServer(folder) as plain, secure(lambda handler, _: handler.refuse(302, Location=plain.url('my.h5'))) as server:
        done = run('info', server.url('my.h5'), code=FAILED, SSL_CERT_FILE=str(certificate))
        assert 'without encryption' in done.stderr and plain.asked == 0


# ---- S3 ------------------------------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def moto(folder):
    """The URL of an S3 server that checks signatures, with the files of FOLDER in a bucket, and keys of a user who may read it."""
    moto_server = os.path.join(os.path.dirname(sys.executable), 'moto_server')
    boto3 = pytest.importorskip('boto3')
    import botocore.config
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    url = 'http://127.0.0.1:%d' % port
    # the first requests, which make the bucket and the user, are not checked
    setup = 3 + 2
    environment = {**os.environ, 'INITIAL_NO_AUTH_ACTION_COUNT': str(setup)}
    server = subprocess.Popen([moto_server, '-H', '127.0.0.1', '-p', str(port)], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(('127.0.0.1', port)).close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.1)
        def client(service, key='x', secret='x'):
            signature = botocore.config.Config(signature_version='v4' if service == 'iam' else 's3v4')
            return boto3.client(service, endpoint_url=url, region_name='us-east-1', config=signature,
                                aws_access_key_id=key, aws_secret_access_key=secret)
        iam = client('iam')
        iam.create_user(UserName='reader')
        policy = {'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': 's3:*', 'Resource': '*'}]}
        iam.put_user_policy(UserName='reader', PolicyName='all', PolicyDocument=json.dumps(policy))
        made = iam.create_access_key(UserName='reader')['AccessKey']
        keys = (made['AccessKeyId'], made['SecretAccessKey'])
        s3 = client('s3', *keys)
        s3.create_bucket(Bucket=BUCKET)
        for name, key in [('my.h5', 'my.h5'), ('my.h5', '2026/a b+ü~.h5'), ('cloud.h5', 'cloud.h5'), ('flipped.h5', 'flipped.h5')]:
            if os.path.exists(folder / name):
                s3.put_object(Bucket=BUCKET, Key=key, Body=(folder / name).read_bytes())
        yield url, keys, s3
    finally:
        server.terminate()
        server.wait()


def aws(url, keys):
    return {'AWS_ENDPOINT_URL': url, 'AWS_ACCESS_KEY_ID': keys[0], 'AWS_SECRET_ACCESS_KEY': keys[1]}


def test_s3(moto, tmp_path):
    url, keys, _ = moto
    for key in ('my.h5', '2026/a b+ü~.h5', 'cloud.h5'):
        done = run('verify', DEMO, 's3://%s/%s' % (BUCKET, key), **aws(url, keys))
        assert 'equal' in done.stderr and keys[1] not in done.stderr
    run('info', 's3://%s/none.h5' % BUCKET, code=DAMAGED, **aws(url, keys))
    # the same from files
    (tmp_path / '.aws').mkdir()
    (tmp_path / '.aws' / 'credentials').write_text('[radio]\naws_access_key_id = %s\naws_secret_access_key = %s\n' % keys)
    (tmp_path / '.aws' / 'config').write_text('[profile radio]\nregion = us-east-1\nendpoint_url = %s\n' % url)
    kept = {name: value for name, value in os.environ.items() if not name.startswith('AWS_')}
    done = subprocess.run([H5BRIDGE, '-vv', 'verify', 's3://%s/my.h5' % BUCKET], capture_output=True, text=True, timeout=60,
                          env={**kept, 'HOME': str(tmp_path), 'AWS_PROFILE': 'radio'})
    assert done.returncode == DONE and 'equal' in done.stderr
    signature = 'Signature='
    assert keys[1] not in done.stderr and signature not in done.stderr and 'request for bytes=' in done.stderr


def test_s3_refuses(moto):
    url, keys, _ = moto
    address = 's3://%s/my.h5' % BUCKET
    wrong = run('info', address, code=FAILED, **aws(url, (keys[0], KEYS[1])))
    assert 'status 403' in wrong.stderr and 'do not permit' in wrong.stderr
    unknown = run('info', address, code=FAILED, **aws(url, KEYS))
    assert 'status 403' in unknown.stderr
    anonymous = run('info', address, code=FAILED, AWS_ENDPOINT_URL=url)
    assert 'no keys were found' in anonymous.stderr
    assert 'AWS_PROFILE' in run('info', address, code=USAGE, AWS_PROFILE='none').stderr


def test_s3_presigned(moto):
    """An address with a signature works, and is not shown."""
    url, _, s3 = moto

    def unchecked(count):
        # moto finds signatures in headers only
        request = urllib.request.Request(url + '/moto-api/reset-auth', b'%d' % count, {'Content-Type': 'text/plain'})
        urllib.request.urlopen(request).close()
    unchecked(1000)
    address = s3.generate_presigned_url('get_object', {'Bucket': BUCKET, 'Key': 'my.h5'})
    for words in (['info'], ['info', '--json'], ['-vv', 'verify']):
        done = run(*words, address)
        assert 'Signature' not in done.stdout + done.stderr
    unchecked(0)


def test_s3_other_region(folder):
    headers = {'x_amz_bucket_region': 'eu-west-1'}
    with RangeServer(folder, status(301, **headers)) as server:
        done = run('info', 's3://b/my.h5', code=USAGE, AWS_ENDPOINT_URL=server.url('')[:-1])
        assert 'AWS_REGION=eu-west-1' in done.stderr


# ---- references ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('where', ['file', 'http', 's3'])
def test_references(folder, moto, where):
    """kerchunk's reference file system, zarr and xarray read the values that casacore has, by range from the address."""
    import fsspec
    xarray, zarr = pytest.importorskip('xarray'), pytest.importorskip('zarr')
    url, keys, _ = moto
    secure = {'key': keys[0], 'secret': keys[1], 'endpoint_url': url}
    with RangeServer(folder) as server:
        address = {'file': str(folder / 'my.h5'), 'http': server.url('my.h5'), 's3': 's3://%s/my.h5' % BUCKET}[where]
        refs = json.loads(run('refs', folder / 'my.h5', '--url', address).stdout)
        if where != 'file':
            found = run('refs', address, **(aws(url, keys) if where == 's3' else {})).stdout
            assert json.loads(found)['refs'] == refs['refs']
        files = {found[0] for found in refs['refs'].values() if isinstance(found, list)}
        assert files == {address}
        remote = {'asynchronous': True, **(secure if where == 's3' else {})}
        options = {'fo': refs, 'remote_protocol': where, 'remote_options': remote}
        with warnings.catch_warnings(), ct.table(DEMO, ack=False) as table, ct.table(DEMO + '/ANTENNA', ack=False) as antenna:
            warnings.simplefilter('ignore')
            if where == 'http':
                pytest.importorskip('aiohttp')
            tree = xarray.open_datatree('reference://', engine='zarr', storage_options=options)
            for name in ('DATA', 'TIME', 'UVW', 'FLAG'):
                assert np.array_equal(tree['MAIN'][name].values, table.getcol(name)), name
            assert list(tree['ANTENNA/NAME'].values) == antenna.getcol('NAME')
            filesystem = fsspec.filesystem('reference', asynchronous=True, **options)
            group = zarr.open_group(zarr.storage.FsspecStore(filesystem, read_only=True), mode='r', zarr_format=2)
            assert np.array_equal(group['MAIN/DATA'][5:7], table.getcol('DATA', 5, 2))


def test_references_for_virtualizarr(folder):
    virtualizarr = pytest.importorskip('virtualizarr')
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr.parsers import KerchunkJSONParser
    (folder / 'refs.json').write_text(run('refs', folder / 'my.h5').stdout)
    parser = KerchunkJSONParser(group='MAIN')
    with virtualizarr.open_virtual_dataset('file://%s' % (folder / 'refs.json'), registry=ObjectStoreRegistry({'file://': LocalStore()}),
                                           parser=parser, loadable_variables=[]) as dataset:
        assert dataset['DATA'].shape == (210, 16, 4)


def test_references_of_a_table(folder):
    assert 'h5bridge manifest' in run('refs', DEMO, code=USAGE).stderr
    main = json.loads(run('refs', folder / 'my.h5', '--table', 'MAIN').stdout)
    assert '.zgroup' in main['refs'] and 'DATA/.zarray' in main['refs']


# ---- readers of others ---------------------------------------------------------------------------------------------------

def test_s3fs(moto):
    """The recipes of docs/howto/cloud.md."""
    fsspec = pytest.importorskip('fsspec')
    url, keys, _ = moto
    options = {'key': keys[0], 'secret': keys[1], 'endpoint_url': url}
    with ct.table(DEMO, ack=False) as table:
        filesystem = fsspec.filesystem('s3', **options)
        opened = filesystem.open('%s/cloud.h5' % BUCKET, cache_type='none')
        with h5py.File(opened, page_buf_size=64 << 20) as file:
            assert np.array_equal(file['MAIN/DATA'][10:20], table.getcol('DATA', 10, 10))
        opened = filesystem.open('%s/my.h5' % BUCKET, cache_type='blockcache', block_size=1 << 20)
        with h5py.File(opened) as file:
            assert np.array_equal(file['MAIN/DATA'][10:20], table.getcol('DATA', 10, 10))
