#!/usr/bin/env python3
"""Writes a MeasurementSet slowly with casacore, as a correlator would: two sources, a band shape, interference, flags, and an
antenna that fails now and then.

    growing_ms.py OUT.ms [INTEGRATIONS] [SECONDS]

INTEGRATIONS of 8 antennas, 64 channels and 4 correlations (default 100000), one each SECONDS (default 0.5).
"""
import os
import shutil
import sys
import time

import casacore.tables
import numpy

ANTENNAS, CHANNELS, CORRELATIONS = 8, 64, 4
LIGHT = 299792458.
INTERVAL = 8.           # seconds of TIME between integrations
START = 5.3e9


def create(path):
    """A MeasurementSet without rows, with its subtables."""
    tiled = {'dataManagerType': 'TiledShapeStMan', 'ndim': 2}
    columns = casacore.tables.required_ms_desc('MAIN')
    columns.update(casacore.tables.maketabdesc([casacore.tables.makearrcoldesc(
        'DATA', 0, valuetype='complex', ndim=2, datamanagertype='TiledShapeStMan', datamanagergroup='TiledDATA')]))
    columns['FLAG'].update(dataManagerGroup='TiledFLAG', **tiled)
    managers = {'*%d' % number: {
        'NAME': 'Tiled' + name, 'TYPE': 'TiledShapeStMan', 'SEQNR': number, 'COLUMNS': [name],
        'SPEC': {'DEFAULTTILESHAPE': numpy.array([CORRELATIONS, CHANNELS, 256], numpy.int32)},
    } for number, name in enumerate(['DATA', 'FLAG'])}
    return casacore.tables.default_ms(path, tabdesc=columns, dminfo=managers)


def fill(path, name, rows, columns=None, cells=None):
    """Adds rows to a subtable: whole columns, and cells that are the same in each row."""
    table = casacore.tables.table(path + '/' + name, readonly=False, ack=False)
    table.addrows(rows)
    for column, values in (columns or {}).items():
        table.putcol(column, values)
    for column, value in (cells or {}).items():
        for row in range(rows):
            table.putcell(column, row, value)
    table.close()


def main():
    path = sys.argv[1]
    integrations = int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.5
    if os.path.exists(path):
        shutil.rmtree(path)
    random = numpy.random.default_rng(1)
    table = create(path)

    angle, radius = 2.4 * numpy.arange(ANTENNAS), 80 * 1.6 ** numpy.arange(ANTENNAS)
    position = numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle), numpy.zeros(ANTENNAS)], axis=1)
    frequency = 1e9 + 4e6 * numpy.arange(CHANNELS)
    width = numpy.full(CHANNELS, 4e6)
    fill(path, 'ANTENNA', ANTENNAS, {
        'NAME': ['m%03d' % number for number in range(ANTENNAS)], 'POSITION': position + 5e6,
        'DISH_DIAMETER': numpy.full(ANTENNAS, 13.5)})
    fill(path, 'SPECTRAL_WINDOW', 1, cells={
        'CHAN_FREQ': frequency, 'NUM_CHAN': CHANNELS, 'NAME': 'L', 'REF_FREQUENCY': frequency[0], 'CHAN_WIDTH': width,
        'EFFECTIVE_BW': width, 'RESOLUTION': width})
    fill(path, 'POLARIZATION', 1, cells={
        'NUM_CORR': CORRELATIONS, 'CORR_TYPE': numpy.array([9, 10, 11, 12], numpy.int32),
        'CORR_PRODUCT': numpy.array([[0, 0], [0, 1], [1, 0], [1, 1]], numpy.int32)})
    fill(path, 'DATA_DESCRIPTION', 1)
    direction = numpy.array([[1.2, 0.5]])
    fill(path, 'FIELD', 2, {'NAME': ['calibrator', 'target']},
         {name: direction for name in ('PHASE_DIR', 'DELAY_DIR', 'REFERENCE_DIR')})
    fill(path, 'OBSERVATION', 1, cells={'TELESCOPE_NAME': 'DEMO'})

    first, second = (pair.astype(numpy.int32) for pair in numpy.triu_indices(ANTENNAS))
    count = len(first)
    auto = first == second
    shape = (count, CHANNELS, CORRELATIONS)
    edge = numpy.minimum(numpy.arange(CHANNELS), numpy.arange(CHANNELS)[::-1])
    band = (1 + 0.2 * numpy.sin(numpy.linspace(0, 9, CHANNELS))) * numpy.clip(edge / 6, 0.1, 1)
    weight = numpy.ones((count, CORRELATIONS), numpy.float32)
    begin = time.monotonic()
    for number in range(integrations):
        turn = 2 * numpy.pi * number / 2000
        x, y, _ = (position[second] - position[first]).T
        u = x * numpy.cos(turn) - y * numpy.sin(turn)
        v = 0.6 * (x * numpy.sin(turn) + y * numpy.cos(turn))
        field = number // 60 % 2
        flux, east, north = [(8., 0., 0.), (2., 4e-4, -2e-4)][field]
        fringe = numpy.exp(2j * numpy.pi * (u * east + v * north)[:, None] * frequency / LIGHT)
        data = 0.5 * (random.standard_normal(shape) + 1j * random.standard_normal(shape))
        data[:, :, [0, 3]] += numpy.where(auto[:, None], 60, flux * fringe)[:, :, None] * band[:, None]
        flag = numpy.zeros(shape, bool)
        if random.random() < 0.4:
            data[:, 20:24] += 40 * random.random((count, 1, 1))
            flag[:, 20:24] = number % 3 > 0
        dead = (first == 5) | (second == 5)
        if number // 45 % 3 == 1:
            data[dead], flag[dead] = 0, True
        table.addrows(count)
        rows = {'startrow': number * count, 'nrow': count}
        now = numpy.full(count, START + INTERVAL * number)
        for column, values in {
                'DATA': data.astype(numpy.complex64), 'FLAG': flag, 'UVW': numpy.stack([u, v, 0 * u], axis=1),
                'WEIGHT': weight, 'SIGMA': weight, 'TIME': now, 'TIME_CENTROID': now,
                'INTERVAL': numpy.full(count, INTERVAL), 'EXPOSURE': numpy.full(count, INTERVAL),
                'ANTENNA1': first, 'ANTENNA2': second, 'SCAN_NUMBER': numpy.full(count, 1 + number // 60, numpy.int32),
                'FIELD_ID': numpy.full(count, field, numpy.int32)}.items():
            table.putcol(column, values, **rows)
        table.flush()
        time.sleep(max(0., begin + (number + 1) * seconds - time.monotonic()))
    table.close()


main()
