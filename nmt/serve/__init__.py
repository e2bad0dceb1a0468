"""The page, the REST interface and dynamic batching: `python -m nmt.serve`. Needs `pip install -e '.[serve]'`.

    request -app, libre-> bodies -pool-> rows -> batches -engine-> documents -answers-> response

One thread computes for each model; the event loop only waits. Nothing else in nmt imports this package.
"""
