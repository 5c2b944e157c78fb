"""Relays: services that see the addresses of phones and forward sealed requests (RFC 9458)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from aiohttp import ClientError, ClientSession, web

from hushuffle_network.meter import Meter
from hushuffle_network.service import Refused, Service, Task
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.task import TaskDocument

REQUEST: Final = "message/ohttp-req"
RESPONSE: Final = "message/ohttp-res"
_ANSWER: Final = 4096


class Relay(Service):
    """Accepts a sealed request that has the size of a task's requests, and forwards it to the gateway.

    The gateway receives nothing about the phone: no address, no header, no name of a connection. The relay does not
    record addresses.

    Source: RFC 9458 (Thomson, Wood 2024), section 6.2.
    """

    role: ClassVar[str] = "relay"

    def __init__(self, settings: ServiceSettings, folder: Path, *, meter: Meter) -> None:
        super().__init__(settings, folder, meter=meter)
        assert settings.gateway is not None
        self._gateway = settings.gateway.rstrip("/") + "/gateway"
        self._session: ClientSession | None = None

    def check(self, task: Task) -> None:
        """Accept every task: a relay has no keys to check."""

    def onwards(self, document: TaskDocument) -> Sequence[str]:
        return (self._gateway.removesuffix("/gateway"),)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/", self._pass)]

    async def _pass(self, request: web.Request) -> web.Response:
        if request.content_type != REQUEST:
            raise Refused(415, "wrong type")
        body = await self.content(request, {task.document.sealed_request for task in self.tasks.values()})
        if self._session is None:
            self._session = self.session(most=0)
        try:
            async with self._session.post(
                self._gateway, data=body, headers={"Content-Type": REQUEST}, allow_redirects=False
            ) as answer:
                self.reached(self._gateway)
                content = await answer.content.read(_ANSWER)
                status = answer.status
        except (ClientError, OSError) as error:
            self.unreached(self._gateway, error)
            raise Refused(502, "no gateway") from None
        self.meter.count("messages")
        if status == 200:
            return web.Response(body=content, content_type=RESPONSE)
        return web.Response(status=status if status in {400, 413, 503} else 502)
