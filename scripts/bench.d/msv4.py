"""msv4.py [--times N] [--runs N] [--native] [--files]: opening and reading a MeasurementSet as MSv4, beside xradio's engine and xarray-ms.

--files measures making files instead, beside xradio's converter and Zarr of xarray-ms.

Each run is a process of its own; medians of RUNS in turn. Seconds without imports; processor seconds and peak memory of the whole process.
MSV4_PYTHON is the interpreter of the peers (scripts/requirements-msv4.txt); without it only h5bridge is measured.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

CODE = '''
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
import numpy, xarray
kind, path = sys.argv[1:]
if kind == "h5bridge":
    import h5bridge.xarray
    options = dict(engine=h5bridge.xarray.H5bridgeBackend, schema="msv4")
elif kind == "xradio":
    import xradio.measurement_set
    options = dict(engine="xradio_msv2")
else:
    import xarray_ms
    options = dict(engine="xarray-ms:msv2", auto_corrs=True)
# what xarray imports for the first variable, and engines, are looked for once
xarray.Variable("x", [0])
try:
    xarray.open_dataset("/nowhere", engine="h5netcdf")
except Exception:
    pass
found, last = {}, time.perf_counter()
def lap(name):
    global last
    now = time.perf_counter()
    found[name], last = now - last, time.perf_counter()
tree = xarray.open_datatree(path, **options)
lap("open")
part = next(iter(tree.children.values()))
total = 0.0
for first in range(0, part.sizes["time"], 10):
    total += float(numpy.abs(part.VISIBILITY[first:first + 10].values).sum())
lap("all")
part.VISIBILITY[:, :, 10].values
lap("one channel")
part.VISIBILITY[:, 3].values
lap("one baseline")
used = resource.getrusage(resource.RUSAGE_SELF)
found.update(cpu=used.ru_utime + used.ru_stime, peak=used.ru_maxrss / 1024, total=total)
print(json.dumps(found))
'''


def measured(python, kind, path):
    done = subprocess.run([python, '-c', CODE, kind, path], capture_output=True, text=True)
    if done.returncode:
        print('%s: %s' % (kind, done.stderr.strip().splitlines()[-1]), file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


CONVERT = '''
import sys, warnings
warnings.simplefilter("ignore")
kind, path, out = sys.argv[1:]
if kind == "xradio":
    from xradio.measurement_set import convert_msv2_to_processing_set
    convert_msv2_to_processing_set(in_file=path, out_file=out)
else:
    import xarray, xarray_ms
    xarray.open_datatree(path, engine="xarray-ms:msv2", auto_corrs=True).to_zarr(out, consolidated=True, compute=True)
'''


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def made(words, out):
    """Seconds, processor seconds, peak in MB and output in MB of a command that makes OUT."""
    shutil.rmtree(out, ignore_errors=True) if os.path.isdir(out) else os.path.exists(out) and os.remove(out)
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        print('%s: %s' % (' '.join(words[:3]), said.strip().splitlines()[-1:]), file=sys.stderr)
        return None
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, size(out) / 1e6


def files(path, folder, peers, runs):
    """Prints what making files takes; medians of RUNS in turn."""
    cases = {}
    for compress in 'none', 'auto':
        for schema in 'native', 'msv4':
            out = os.path.join(folder, 'out.h5')
            words = [os.environ['H5BRIDGE'], 'to-hdf5', path, out, '--schema', schema, '--compress', compress, '--digest', '--quiet']
            cases['to-hdf5 %s, %s' % (schema, compress)] = words, out
    for kind in ('xradio', 'xarray-ms') if peers else ():
        out = os.path.join(folder, kind + '.ps.zarr')    # xradio's ending
        cases[kind] = [peers, '-c', CONVERT, kind, path, out], out
    found = {name: [] for name in cases}
    for _ in range(runs):
        for name, (words, out) in cases.items():
            found[name].append(made(words, out))
    print('%-24s %8s %8s %8s %10s' % ('', 'seconds', 'CPU s', 'peak MB', 'output MB'))
    for name, rows in found.items():
        if None not in rows:
            print('%-24s %8.2f %8.2f %8.0f %10.0f' % (name, *map(statistics.median, zip(*rows))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--times', type=int, default=210, help='integrations of 406 baselines, 64 channels and 4 correlations (210: 260 MB)')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--native', action='store_true', help='of a native HDF5 file as well')
    parser.add_argument('--files', action='store_true', help='making files')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'bench.ms')
        subprocess.run([sys.executable, os.path.join(HERE, 'make_ms.py'), path, str(options.times), '28', '64'], check=True)
        peers = os.environ.get('MSV4_PYTHON')
        if options.files:
            files(path, folder, peers, options.runs)
            return
        cases = [('h5bridge', sys.executable, path)]
        if options.native:
            native = os.path.join(folder, 'bench.h5')
            subprocess.run([os.environ['H5BRIDGE'], 'to-hdf5', '--compress', 'none', '--quiet', path, native], check=True)
            cases.append(('h5bridge, native file', sys.executable, native))
        if peers:
            cases += [(kind, peers, path) for kind in ('xradio', 'xarray-ms')]
        runs = {name: [] for name, _, _ in cases}
        for _ in range(options.runs):
            for name, python, of in cases:
                runs[name].append(measured(python, name.partition(',')[0], of))
        print('%-22s %8s %8s %12s %13s %8s %8s' % ('', 'open s', 'all s', 'one channel', 'one baseline', 'CPU s', 'peak MB'))
        for name, found in runs.items():
            if None in found:
                continue
            median = {key: statistics.median(run[key] for run in found) for key in found[0]}
            print('%-22s %8.3f %8.2f %12.3f %13.3f %8.1f %8.0f' % (name, median['open'], median['all'], median['one channel'],
                                                                   median['one baseline'], median['cpu'], median['peak']))
        totals = {round(found[0]['total'], -1) for found in runs.values() if None not in found}
        if len(totals) > 1:
            sys.exit('the engines read different values: %s' % totals)


if __name__ == '__main__':
    main()
