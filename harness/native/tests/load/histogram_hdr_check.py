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
    # The package rounds a rank that we take up to the next one, and buckets may be empty between
    # the two: the value lies between those of the ranks beside it.
    one = 100 / report["requests"]
    for percent, key in ((50, "p50"), (90, "p90"), (99, "p99"), (99.9, "p99_9")):
        low, high = (
            histogram.get_value_at_percentile(beside) / 1000
            for beside in (percent - one, percent + one)
        )
        assert low * 0.998 <= latency[key] <= high * 1.002, (key, low, high, latency[key])
    assert abs(histogram.get_mean_value() / 1000 - latency["mean"]) <= latency["mean"] * 0.002
    batches = HdrHistogram.decode(report["histograms"]["batch"])
    assert batches.get_total_count() * 16 == report["requests"]


if __name__ == "__main__":
    main()
