"""The histograms of a run against null, read back with the hdrhistogram package."""

import json
import subprocess
import sys

try:
    from hdrh.histogram import HdrHistogram
except ImportError:
    sys.exit(77)  # CTest: skipped


def main() -> None:
    null, load = sys.argv[1:]
    server = subprocess.Popen([null, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        command = [load, "--connections", "8", "--depth", "16", "--duration-s", "0.3", "--json"]
        run = subprocess.run(
            [*command, f"http://{address}/"], capture_output=True, text=True, check=True, timeout=20
        )
    finally:
        server.terminate()
        server.wait(5)
    report = json.loads(run.stdout)
    histogram = HdrHistogram.decode(report["histograms"]["response"])
    assert histogram.get_total_count() == report["requests"] > 1000
    latency = report["latency_us"]
    for percent, key in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99_9")):
        theirs = histogram.get_value_at_percentile(percent) / 1000
        assert abs(theirs - latency[key]) <= theirs * 0.002, (key, theirs, latency[key])
    assert abs(histogram.get_mean_value() / 1000 - latency["mean"]) <= latency["mean"] * 0.002
    batches = HdrHistogram.decode(report["histograms"]["batch"])
    assert batches.get_total_count() * 16 == report["requests"]


if __name__ == "__main__":
    main()
