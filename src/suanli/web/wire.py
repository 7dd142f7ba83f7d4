"""What comes over a connection and is no request: told in the one shape, with the headers of every answer."""

from __future__ import annotations

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from suanli.web.errors import error_response, refusal
from suanli.web.guard import HEADERS


class Wire(H11Protocol):
    """uvicorn's reader of HTTP/1.1, which answers what it cannot read with a plain text of its own."""

    def send_400_response(self, msg: str) -> None:
        """Tell that what came is no request, and close the connection. `msg` is uvicorn's word for it."""
        answer = error_response(refusal(400, "bad_http", "what came is no request of HTTP/1.1", where="the connection",
                                        got=msg.rstrip(".").lower()))  # fmt: skip
        told = {**HEADERS, "cache-control": "no-store", "connection": "close"}
        named = [*answer.raw_headers, *((name.encode(), value.encode()) for name, value in told.items())]
        events = (
            h11.Response(status_code=400, headers=named, reason=b"Bad Request"),
            h11.Data(data=bytes(answer.body)),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
