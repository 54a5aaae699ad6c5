"""A Ray cluster of two nodes inside this machine: real processes, and a second machine that can be lost."""

from federank.simulation.cluster import ray_module

STORE = 100 * 2**20


class TwoNodes:
    """A head with cores for everyone, and a second machine that can be lost and had again."""

    def __init__(self, cores):
        from ray.cluster_utils import Cluster

        self.ray = ray_module()
        self.node = {"num_cpus": cores, "object_store_memory": STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **self.node})
        self.second = None
        self.ray.init(address=self.cluster.address, log_to_driver=False, logging_level="error")

    def with_both(self):
        if self.second is None:
            self.second = self.cluster.add_node(**self.node)
            self.cluster.wait_for_nodes()
        return self

    def lose_second(self):
        """As when someone pulls the plug."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def close(self):
        self.ray.shutdown()
        self.cluster.shutdown()
