"""What a forwarder says to Prometheus, read by the strict OpenMetrics parser of its Python client: metrics.py URL"""

import sys
from urllib.request import urlopen

from prometheus_client.openmetrics.parser import text_string_to_metric_families

EXPECTED = {
    "namecast_build_info": "gauge",
    "namecast_healthy": "gauge",
    "namecast_uptime_seconds": "gauge",
    "namecast_packets": "counter",
    "namecast_traffic_bytes": "counter",
    "namecast_retrieval_seconds": "histogram",
}

url = sys.argv[1]
with urlopen(url + "/health") as response:
    assert response.read() == b"ok\n"
with urlopen(url + "/metrics") as response:
    kind = response.headers["Content-Type"]
    text = response.read().decode()
assert kind.startswith("application/openmetrics-text"), kind
families = {family.name: family for family in text_string_to_metric_families(text)}
for name, kind in EXPECTED.items():
    assert families[name].type == kind, (name, families[name].type)
    assert families[name].documentation, name
for name, family in families.items():
    assert not name.endswith(("_octets", "_ms", "_bps")), name
[info] = families["namecast_build_info"].samples
assert info.labels["command"] == "forwarder" and info.labels["version"], info
directions = {sample.labels["direction"] for sample in families["namecast_traffic_bytes"].samples}
assert directions == {"in", "out"}, directions
print(f"ok  Prometheus: {len(families)} metrics of a forwarder")
