"""The page, the REST interface and dynamic batching. Needs `pip install 'nmt[serve]'`.

    request -app-> rows -queueing-> batches -worker-> engine -> documents -> response

One thread computes for each model; the event loop only waits.
"""
