"""Writes a MeasurementSet that grows: a bandpass, fringes, interference, flags, a dead antenna, two fields, scans.

    growing_ms.py OUT.ms INTEGRATIONS ANTENNAS CHANNELS SECONDS

SECONDS pass between two integrations. The same arguments give the same values.
"""
import sys
import time

import casacore.tables as ct
import numpy as np

START = 5.2e9      # seconds of MJD
STEP = 8.0         # seconds between two integrations
CORRELATIONS = 4   # XX, XY, YX, YY


def describe(channels):
    wanted = ct.required_ms_desc('MAIN')
    wanted.update(ct.maketabdesc([ct.makearrcoldesc('DATA', 0, valuetype='complex', ndim=2, datamanagertype='TiledShapeStMan',
                                                    datamanagergroup='TiledDATA', keywords={'QuantumUnits': ['Jy']})]))
    wanted['FLAG'].update({'dataManagerType': 'TiledShapeStMan', 'dataManagerGroup': 'TiledFLAG', 'ndim': 2})
    wanted['UVW'].update({'dataManagerType': 'TiledColumnStMan', 'dataManagerGroup': 'TiledUVW', 'ndim': 1, 'shape': [3],
                          'option': 5})

    def tiled(manager, name, number, column, *tile):
        return {'NAME': name, 'TYPE': manager, 'SEQNR': number, 'SPEC': {'DEFAULTTILESHAPE': np.array(tile, np.int32)},
                'COLUMNS': [column]}
    managers = {'*1': tiled('TiledShapeStMan', 'TiledDATA', 0, 'DATA', CORRELATIONS, channels, 64),
                '*2': tiled('TiledShapeStMan', 'TiledFLAG', 1, 'FLAG', CORRELATIONS, channels, 512),
                '*3': tiled('TiledColumnStMan', 'TiledUVW', 2, 'UVW', 3, 1024)}
    return wanted, managers


def fill_subtables(out, positions, frequencies, integrations):
    def subtable(name, rows):
        table = ct.table(out + '/' + name, readonly=False, ack=False)
        table.addrows(rows)
        return table
    with subtable('ANTENNA', len(positions)) as table:
        table.putcol('NAME', ['m%03d' % number for number in range(len(positions))])
        table.putcol('POSITION', positions + 5e6)
        table.putcol('DISH_DIAMETER', np.full(len(positions), 13.5))
    with subtable('SPECTRAL_WINDOW', 1) as table:
        table.putcell('CHAN_FREQ', 0, frequencies)
        table.putcell('NUM_CHAN', 0, len(frequencies))
        table.putcell('NAME', 0, 'L')
        table.putcell('REF_FREQUENCY', 0, frequencies[0])
        for column in ('CHAN_WIDTH', 'EFFECTIVE_BW', 'RESOLUTION'):
            table.putcell(column, 0, np.full(len(frequencies), frequencies[1] - frequencies[0]))
    with subtable('POLARIZATION', 1) as table:
        table.putcell('NUM_CORR', 0, CORRELATIONS)
        table.putcell('CORR_TYPE', 0, np.array([9, 10, 11, 12], np.int32))
        table.putcell('CORR_PRODUCT', 0, np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32))
    subtable('DATA_DESCRIPTION', 1).close()
    with subtable('FIELD', 2) as table:
        table.putcol('NAME', ['J0408-6545', 'target'])
        for row in range(2):
            for column in ('PHASE_DIR', 'DELAY_DIR', 'REFERENCE_DIR'):
                table.putcell(column, row, np.array([[1.2, 0.5]]))
    with subtable('OBSERVATION', 1) as table:
        table.putcell('TELESCOPE_NAME', 0, 'TEST')
        table.putcell('TIME_RANGE', 0, np.array([START, START + STEP * integrations]))


def main(out, integrations, antennas, channels, pause):
    random = np.random.default_rng(7)
    wanted, managers = describe(channels)
    table = ct.default_ms(out, tabdesc=wanted, dminfo=managers)
    first, second = np.triu_indices(antennas)
    angle, radius = 2.4 * np.arange(antennas), 60 * 1.35 ** np.arange(antennas) % 3000
    positions = np.stack([radius * np.cos(angle), radius * np.sin(angle), random.normal(0, 3, antennas)], 1)
    frequencies = 0.9e9 + np.arange(channels) * (0.75e9 / channels)
    fill_subtables(out, positions, frequencies, integrations)
    edge = np.minimum(np.arange(channels), channels - 1 - np.arange(channels)) / (channels / 16)
    band = (1 + 0.3 * np.sin(np.linspace(0, 3 * np.pi, channels))) * np.clip(edge, 0.1, 1)
    interference = [(channels // 5, channels // 5 + 3, 1.0), (channels // 2, channels // 2 + 6, 0.4),
                    (int(channels * 0.8), int(channels * 0.8) + 1, 1.0)]
    gain = np.exp(1j * random.uniform(-0.3, 0.3, antennas)) * random.uniform(0.8, 1.2, antennas)
    dead = 5 % antennas
    rows = len(first)
    table.flush()
    began = time.time()
    for number in range(integrations):
        turn = 2 * np.pi * number / 3000
        x, y, z = (positions[second] - positions[first]).T
        u, v, w = x * np.cos(turn) - y * np.sin(turn), (x * np.sin(turn) + y * np.cos(turn)) * 0.6, z + 0.2 * x
        scan, field = 1 + number // 60, (number // 60) % 2
        flux, east, north = (8.0, 0, 0) if field == 0 else (2.0, 4e-4, -2e-4)
        phase = np.exp(2j * np.pi * (u * east + v * north)[:, None] * frequencies / 299792458)
        visibility = flux * phase * band * (gain[first] * gain[second].conj())[:, None]
        visibility[first == second] = 60 * band
        shape = rows, channels, CORRELATIONS
        data = (random.standard_normal(shape, np.float32) + 1j * random.standard_normal(shape, np.float32)) * np.float32(0.7)
        data += visibility[:, :, None] * [1, 0.02, 0.02, 0.95]
        flag = np.zeros(shape, bool)
        for low, high, chance in interference:
            if random.random() < chance:
                data[:, low:high] += 40 * random.random((rows, 1, 1)) * (1 + 1j)
                flag[:, low:high] = number % 3 != 0
        if number % 40 == 17:
            data += 15 * np.exp(2j * np.pi * random.random())
        if (number // 45) % 3 == 1:
            data[(first == dead) | (second == dead)] = 0
            flag[(first == dead) | (second == dead)] = True
        table.addrows(rows)
        at = {'startrow': number * rows, 'nrow': rows}
        ones = np.ones((rows, CORRELATIONS), np.float32)
        for column, values in {
                'DATA': data.astype(np.complex64), 'FLAG': flag, 'UVW': np.stack([u, v, w], 1), 'WEIGHT': ones, 'SIGMA': ones,
                'TIME': np.full(rows, START + STEP * number), 'TIME_CENTROID': np.full(rows, START + STEP * number),
                'INTERVAL': np.full(rows, STEP), 'EXPOSURE': np.full(rows, STEP), 'ANTENNA1': first.astype(np.int32),
                'ANTENNA2': second.astype(np.int32), 'SCAN_NUMBER': np.full(rows, scan, np.int32),
                'FIELD_ID': np.full(rows, field, np.int32)}.items():
            table.putcol(column, values, **at)
        table.flush()
        time.sleep(max(0, began + (number + 1) * pause - time.time()))
    table.close()


if __name__ == '__main__':
    main(sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5]))
