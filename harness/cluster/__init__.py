"""Work spread over the workers of a cluster, by Dask distributed.

In: the address of a cluster, servers. Out: facts of workers, run folders, windows of load.
May use: model, http, servers, load.
"""
