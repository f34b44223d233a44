"""Times the decoding of a Dysco column: python-casacore's getcol and the example read_column, in turns, in one run.

A table of the given size is made once per normalisation; each reader opens it anew every round, by as many rows at a time,
on a warm page cache. The time is that of the calls that read, without opening the table. Shown are the fastest rounds, by the
clock and in processor time (of read_column with opening), which means more when other programs are running.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
READER = os.environ.get('READ_COLUMN', os.path.join(ROOT, 'target', 'release', 'examples', 'read_column'))
ANTENNAS, CHANNELS, CORRELATIONS = 30, 64, 4


def make(path, normalization, bits, integrations):
    import numpy as np
    import casacore.tables as tables
    pairs = np.array([(i, j) for i in range(ANTENNAS) for j in range(i, ANTENNAS)], dtype='i4')
    scalars = [tables.makescacoldesc(name, 0) for name in ('ANTENNA1', 'ANTENNA2', 'FIELD_ID', 'DATA_DESC_ID')]
    cell = dict(ndim=2, shape=[CHANNELS, CORRELATIONS], options=5)
    arrays = [tables.makearrcoldesc('DATA', 0j, valuetype='complex', **cell),
              tables.makearrcoldesc('WEIGHT_SPECTRUM', 0., valuetype='float', **cell)]
    spec = dict(distribution='TruncatedGaussian', normalization=normalization, distributionTruncation=2.5,
                dataBitCount=np.int32(bits), weightBitCount=np.int32(12), studentTNu=0.)
    managers = {'*%d' % (i + 1): dict(TYPE='DyscoStMan', NAME=name + '_dm', SPEC=spec, COLUMNS=[name])
                for i, name in enumerate(('DATA', 'WEIGHT_SPECTRUM'))}
    table = tables.table(path, tables.maketabdesc(scalars + [tables.makescacoldesc('TIME', 0.)] + arrays),
                         len(pairs) * integrations, dminfo=managers, ack=False)
    table.putcol('ANTENNA1', np.tile(pairs[:, 0], integrations))
    table.putcol('ANTENNA2', np.tile(pairs[:, 1], integrations))
    table.putcol('TIME', np.repeat(np.arange(integrations) * 10. + 5e9, len(pairs)))
    random = np.random.default_rng(1)
    shape = len(pairs), CHANNELS, CORRELATIONS
    for i in range(integrations):
        first = i * len(pairs)
        data = random.normal(size=shape) + 1j * random.normal(size=shape)
        table.putcol('DATA', data.astype('c8'), first, len(pairs))
        table.putcol('WEIGHT_SPECTRUM', random.uniform(1, 9, size=shape).astype('f4'), first, len(pairs))
    table.close()


def with_casacore(path, column, step):
    """Seconds that getcol takes for all rows, in a process of its own: by the clock, of the processor."""
    code = ('import sys, time, casacore.tables as tables\n'
            't = tables.table(sys.argv[1], ack=False); step = int(sys.argv[3]); '
            'start, cpu = time.perf_counter(), time.process_time()\n'
            'for row in range(0, t.nrows(), step): t.getcol(sys.argv[2], row, min(step, t.nrows() - row))\n'
            'print(time.perf_counter() - start, time.process_time() - cpu)')
    output = subprocess.check_output([sys.executable, '-c', code, path, column, str(step)])
    return [float(word) for word in output.split()]


def with_h5bridge(path, column, step, threads):
    def cpu():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = cpu()
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads))
    output = subprocess.check_output([READER, path, column, str(step)], env=environment)
    return [float(output.split()[-2]), cpu() - before]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', nargs='?', default=os.path.join(tempfile.gettempdir(), 'h5bridge-dysco'))
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--megabytes', type=int, default=100, help='of decoded DATA')
    parser.add_argument('--step', type=float, default=2, help='megabytes of DATA that are read at a time')
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    baselines = ANTENNAS * (ANTENNAS + 1) // 2
    integrations = max(2, round(args.megabytes * 1e6 / (baselines * CHANNELS * CORRELATIONS * 8)))
    print('MB/s, fastest of %d rounds      by the clock                              processor' % args.rounds)
    print('%-24s %9s %9s %9s %6s %6s %9s %9s %6s' % (
        'column', 'casacore', '1 thread', '2 threads', 'ratio', 'ratio', 'casacore', 'h5bridge', 'ratio'))
    for normalization, bits in (('AF', 8), ('AF', 10), ('RF', 8), ('RF', 4), ('Row', 16)):
        path = os.path.join(args.folder, '%s%d_%d.tab' % (normalization, bits, args.megabytes))
        if not os.path.exists(path):
            make(path + '.new', normalization, bits, integrations)
            os.rename(path + '.new', path)
        for column, size in (('DATA', 8), ('WEIGHT_SPECTRUM', 4)):
            megabytes = integrations * baselines * CHANNELS * CORRELATIONS * size / 1e6
            step = baselines * max(1, round(args.step * 1e6 / (baselines * CHANNELS * CORRELATIONS * 8)))
            rounds = [(with_casacore(path, column, step), with_h5bridge(path, column, step, 1),
                       with_h5bridge(path, column, step, 2)) for _ in range(args.rounds)]
            (peer, peer_cpu), (one, one_cpu), (two, _) = (
                [min(seconds) for seconds in zip(*times)] for times in zip(*rounds))
            print('%-24s %9.0f %9.0f %9.0f %6.1f %6.1f %9.0f %9.0f %6.1f' % (
                '%s %d bits %s' % (normalization, bits, column[:6]), megabytes / peer, megabytes / one, megabytes / two,
                peer / one, peer / two, megabytes / peer_cpu, megabytes / one_cpu, peer_cpu / one_cpu), flush=True)


if __name__ == '__main__':
    main()
