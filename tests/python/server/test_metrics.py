"""`serve --metrics`: what Prometheus's own parser reads of a server and a live file."""
import json
import subprocess
import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

import support
from live_rows import writer


def samples(url, token):
    request = urllib.request.Request(url + 'metrics', headers={'Authorization': 'Bearer ' + token})
    with urllib.request.urlopen(request, timeout=20) as answer:
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    assert all(family.name.startswith('h5bridge_serve_') and family.documentation.endswith('.') for family in families)
    return {(sample.name[len('h5bridge_serve_'):], *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_live_file(tmp_path):
    name = 'li"ve\\.h5'
    writing = writer(str(tmp_path / name))
    command = [support.H5BRIDGE, 'serve', str(tmp_path), '--port', '0', '--json', '--metrics']
    serving = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        url, token = json.loads(serving.stdout.readline())['url'].split('?token=')
        end = time.time() + 60
        before = None
        # nobody shows the board: the file is followed for the metrics
        while time.time() < end:
            found = samples(url, token)
            rows = found.get(('file_rows', name))
            if before is not None and rows is not None and rows > before > 0:
                break
            before = rows if rows else before
            time.sleep(0.3)
        assert rows > before > 0, found
        assert found['file_readable', name] == found['file_open', name] == 1
        assert found['file_commit_age_seconds', name] < 60 and found['file_alerts', name] == 0
        assert found['connections',] == 1 and found['new_connections',] == 0
        assert found['answers_total', '2xx'] >= 1 and found['answers_total', '5xx'] == 0
        assert 1e6 < found['resident_memory_bytes',] < 1e9
    finally:
        writing.kill()
        serving.terminate()
        writing.communicate()
        serving.communicate()
