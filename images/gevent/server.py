"""gevent's pywsgi as a server of the WSGI application that several servers run."""

from __future__ import annotations

import signal

import forked

given = forked.words()
plain = forked.listener(given.address, given.port)
secure = forked.listener(given.address, given.tls_port) if given.tls_port else None
forked.fork(given.workers)

# Each worker patches what it imports from here on, as gevent asks for.
from gevent import monkey  # noqa: E402

monkey.patch_all()

import gevent  # noqa: E402
import wsgi  # noqa: E402
from gevent import event, pywsgi  # noqa: E402

shared = {"log": None, "error_log": None, "environ": {"wsgi.multiprocess": given.workers > 1}}
servers = [pywsgi.WSGIServer(plain, wsgi.app, **shared)]
if secure:
    servers.append(
        pywsgi.WSGIServer(
            secure, wsgi.app, certfile=given.tls_cert, keyfile=given.tls_key, **shared
        )
    )
for one in servers:
    one.start()
ended = event.Event()
gevent.signal_handler(signal.SIGTERM, ended.set)
ended.wait()
