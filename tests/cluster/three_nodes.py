"""Starts a Ray cluster of three nodes, prints its address; each line on stdin loses a node, its end all."""

import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

NODE = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
QUICK = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 4,
}


def main():
    cluster = Cluster()
    cluster.add_node(**NODE, _system_config=QUICK)
    for _ in range(2):
        cluster.add_node(**NODE)
    cluster.wait_for_nodes()
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
    cluster.shutdown()


main()
