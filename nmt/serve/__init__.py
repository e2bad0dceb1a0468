"""The page, the REST interface and dynamic batching: `python -m nmt.serve`. Needs `pip install -e '.[serve]'`.

    request -app, libre-> bodies -pool-> rows -> batches -engine-> documents -answers-> response

Each model computes in its own thread; the event loop only waits. No other part of nmt imports this package.
"""
