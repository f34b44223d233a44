"""Tables that this crate writes, as python-casacore sees them."""
import os

import casacore.tables as ct
import numpy as np
import pytest

from writing import Script, ScriptError, column


def test_keywords_and_subtables(tmp_path):
    path = str(tmp_path / 'x.tab')
    script = Script(path, order='big', type='Measurement Set', subtype='test', readme='one\ntwo\n',
                    keywords={'I': 3, 'F': {'type': 'float', 'shape': [3, 2], 'values': [0, 1, 2, 3, 4, 5]},
                              'R': {'x': 1.5, 'deep': {'b': True, 's': ['a', 'é']}}})
    script.do('subtable', name='SUB', keywords={'K': 'inside'})
    script.close()
    script.close()
    table = ct.table(path, ack=False, readonly=False)
    assert table.info() == {'type': 'Measurement Set', 'subType': 'test', 'readme': 'one\ntwo\n'}
    keywords = table.getkeywords()
    assert list(keywords) == ['I', 'F', 'R', 'SUB']
    assert keywords['I'] == 3 and keywords['F'].dtype == np.float32
    assert keywords['F'].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert keywords['R'] == {'x': 1.5, 'deep': {'b': True, 's': ['a', 'é']}}
    assert ct.table(path + '::SUB', ack=False).getkeywords() == {'K': 'inside'}
    assert table.endianformat() == 'big' and not table.showstructure().startswith('x')
    table.putkeyword('NEW', 'from casacore')
    table.close()
    assert ct.table(path, ack=False).getkeywords()['NEW'] == 'from casacore'


def test_casacore_reads_records_in_cells(tmp_path):
    path = str(tmp_path / 'x.tab')
    with Script(path, columns=[column('R', 'record')]) as script:
        script.add_rows(1)
        script.do('put', column='R', row=0, rows=1, shape=[], values=[{'x': 1, 'y': 'z'}])
    assert ct.table(path, ack=False).getcell('R', 0) == {'x': 1, 'y': 'z'}


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(ScriptError, match='^Exists.*there is a column of this name'):
        Script(tmp_path / 'x.tab', columns=[column('A', 'int'), column('A', 'int')])
    with pytest.raises(ScriptError, match='^Usage.*arrays? .*records'):
        Script(tmp_path / 'x.tab', columns=[column('A', 'record', ndim=1)])
    assert not os.path.exists(tmp_path / 'x.tab')
    (tmp_path / 'there').mkdir()
    with pytest.raises(ScriptError, match='^Exists'):
        Script(tmp_path / 'there')
    script = Script(tmp_path / 'y.tab', columns=[column('B', 'int')])
    with pytest.raises(ScriptError, match='^Usage.*cannot be named'):
        script.do('subtable', name='table.dat')
    with pytest.raises(ScriptError, match='^NotFound.*no column'):
        script.put('A', 0, [1])
    with pytest.raises(ScriptError, match='^Usage.*rows 0..1 exceed the table, which has 0 rows'):
        script.put('B', 0, [1])
    # nothing that was not closed is a table
    with pytest.raises(RuntimeError):
        ct.table(str(tmp_path / 'y.tab'), ack=False)
    script.close()
    assert ct.table(str(tmp_path / 'y.tab'), ack=False).nrows() == 0
