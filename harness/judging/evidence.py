"""The exchanges of a run: one SQLite file (WAL), append-only. Equal bytes are stored once.

Tables: ``server(id, name)``, ``item(id, slug, family)`` (the cases, in their families' order),
``octets(id, value)`` and ``exchange``, whose ``sent`` and ``received`` are rows of ``octets``;
``facts(server, value)`` is what scenario texts needed to know of a server. ``observed`` is what a
runner saw that no single exchange shows. ``agreed`` is how many cuts of a case, by mode of
delivery, got the same answers as one write. These cuts are counted and not kept: they would be most
of the file.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Unpack

import msgspec

from httpmark.harness.http import masking
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError, Unusable
from httpmark.harness.model.exchanges import (
    RAN_OUT,
    SILENT,
    Doubt,
    End,
    Exchange,
    ExchangeFlag,
    Outcome,
    doubt,
)
from httpmark.harness.model.verdicts import Verdict

_OUTCOMES = tuple(Outcome)
_ENDS = tuple(End)
_OUTCOME_NUMBER = {outcome: number for number, outcome in enumerate(_OUTCOMES)}
_END_NUMBER = {end: number for number, end in enumerate(_ENDS)}
_ROWS_HELD = 4096
_ROWS_AT_ONCE = 50
# The bytes whose row is remembered, so that equal bytes are stored once. Equal answers mostly come
# soon after each other, and a million different answers must not stay in memory.
_KNOWN_BYTES_MAX = 4 << 20
_KNOWN_MAX = 1 << 14

_SCHEMA = """
CREATE TABLE IF NOT EXISTS server (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, slug TEXT NOT NULL, family TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS item_family ON item (family);
CREATE TABLE IF NOT EXISTS octets (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS exchange (
  server INTEGER NOT NULL, item INTEGER NOT NULL, delivery TEXT NOT NULL, attempt INTEGER NOT NULL,
  outcome INTEGER NOT NULL, ending INTEGER NOT NULL, flags INTEGER NOT NULL,
  head_only INTEGER NOT NULL, first_us INTEGER, end_us INTEGER NOT NULL,
  sent_octets INTEGER NOT NULL, sent INTEGER NOT NULL, received INTEGER NOT NULL,
  machine_dropped INTEGER NOT NULL, timeline BLOB NOT NULL DEFAULT x'',
  ended_s REAL,
  PRIMARY KEY (server, item, delivery, attempt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (server INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS observed (
  server INTEGER NOT NULL, slug TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (server, slug));
CREATE TABLE IF NOT EXISTS agreed (
  server INTEGER NOT NULL, slug TEXT NOT NULL, mode TEXT NOT NULL, cuts INTEGER NOT NULL,
  PRIMARY KEY (server, slug, mode)) WITHOUT ROWID;
"""


class Evidence:
    """The store of one run folder.

    What is added is masked (``masking``).

    :param masked: hide the values of the user's own field lines in what is read, too: older
        versions stored them.
    :raises HarnessError: the file is missing, or is not an evidence file.
    :raises Unusable: the disk is full.
    """

    def __init__(self, path: Path, *, create: bool = False, masked: bool = False) -> None:
        self._path = path
        self._masked = masked
        if not create and not path.is_file():
            raise HarnessError(f"{path}: no such file; is this a run folder?")
        try:
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode=WAL")
            # A lost last transaction after a power cut costs a rerun; syncing costs every run.
            self._base.execute("PRAGMA synchronous=OFF")
            self._base.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise self._trouble(error) from None
        self._octets: dict[bytes, int] = {}
        self._known_bytes = 0
        self._servers: dict[str, int] = {}
        self._rows: list[tuple[object, ...]] = []
        self._new_octets: list[tuple[int, bytes]] = []
        self._new_items: list[tuple[int, str, str]] = []
        self._next_octets = (
            self._base.execute("SELECT coalesce(max(id), 0) FROM octets").fetchone()[0] + 1
        )

    @functools.cached_property
    def _items(self) -> dict[str, int]:
        """The number of each case; not read where only families are asked for."""
        return dict(self._base.execute("SELECT slug, id FROM item"))

    @property
    def path(self) -> Path:
        """The file. After :meth:`flush`, other processes can read from it."""
        return self._path

    def _trouble(self, error: sqlite3.Error) -> HarnessError:
        if "full" in str(error):
            return Unusable(f"{self._path}: the disk is full; free some space or use --out")
        return HarnessError(f"{self._path}: {error}; is this an evidence file of httpmark?")

    def __enter__(self) -> Evidence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Write what is held, and close. One file is left, without a write-ahead log."""
        try:
            self.flush()
        finally:
            # On a full disk the log stays beside the file, and is read with it.
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("PRAGMA journal_mode=DELETE")
            self._base.close()

    def _octets_id(self, value: bytes) -> int:
        number = self._octets.get(value)
        if number is None:
            self._known_bytes += len(value)
            if self._known_bytes > _KNOWN_BYTES_MAX or len(self._octets) >= _KNOWN_MAX:
                self._octets.clear()
                self._known_bytes = len(value)
            number = self._octets[value] = self._next_octets
            self._next_octets += 1
            self._new_octets.append((number, value))
        return number

    def add(self, server: str, exchanges: Iterable[Exchange]) -> None:
        """Append exchanges of one server."""
        server_id = self._server_id(server)
        rows, items, octets_id = self._rows, self._items, self._octets_id
        for exchange in map(masking.exchange, exchanges):
            item = items.get(exchange.case)
            if item is None:
                item = items[exchange.case] = len(items) + 1
                self._new_items.append((item, exchange.case, exchange.family))
            rows.append(
                (
                    server_id,
                    item,
                    exchange.delivery,
                    exchange.attempt,
                    _OUTCOME_NUMBER[exchange.outcome],
                    _END_NUMBER[exchange.end],
                    exchange.flags,
                    exchange.head_only,
                    exchange.first_us,
                    exchange.end_us,
                    exchange.sent_octets,
                    octets_id(exchange.sent),
                    octets_id(exchange.received),
                    exchange.machine_dropped,
                    exchange.timeline,
                    exchange.ended_s,
                )
            )
        if len(rows) >= _ROWS_HELD:
            self.flush()

    def plan(self, cases: Iterable[tuple[str, str]]) -> None:
        """Number cases (slug, family) ahead of firing, so that reading keeps the family's order."""
        for slug, family in cases:
            if slug not in self._items:
                number = self._items[slug] = len(self._items) + 1
                self._new_items.append((number, slug, family))

    def flush(self) -> None:
        """Hand all held rows to SQLite, in one transaction."""
        if not (self._rows or self._new_items or self._new_octets):
            return
        try:
            self._base.execute("BEGIN")
            self._insert("item", 3, self._new_items)
            self._insert("octets", 2, self._new_octets)
            self._insert("exchange", 16, self._rows)
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise self._trouble(error) from None
        finally:
            self._rows.clear()
            self._new_items.clear()
            self._new_octets.clear()

    def _insert(self, table: str, columns: int, rows: Sequence[tuple[object, ...]]) -> None:
        """Insert many rows with each statement.

        A statement releases the interpreter lock, and other threads that make and fire cases take
        it. Fewer statements mean fewer waits for it.
        """
        one = f"({','.join('?' * columns)})"
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[begin : begin + _ROWS_AT_ONCE]
            values = ",".join([one] * len(some))
            words = list(itertools.chain.from_iterable(some))
            self._base.execute(f"INSERT INTO {table} VALUES {values}", words)

    def _server_id(self, name: str) -> int:
        if name not in self._servers:
            self._base.execute("INSERT OR IGNORE INTO server (name) VALUES (?)", (name,))
            row = self._base.execute("SELECT id FROM server WHERE name = ?", (name,)).fetchone()
            self._servers[name] = int(row[0])
        return self._servers[name]

    def servers(self) -> list[str]:
        """The servers that have exchanges here."""
        return [row[0] for row in self._base.execute("SELECT name FROM server ORDER BY id")]

    def families(self, server: str) -> list[str]:
        """The families of which a server has exchanges, in their order."""
        self.flush()
        return [
            row[0]
            for row in self._base.execute(
                "SELECT family FROM exchange JOIN item ON item.id = exchange.item "
                "WHERE server = (SELECT id FROM server WHERE name = ?) "
                "GROUP BY family ORDER BY min(item.id)",
                (server,),
            )
        ]

    def set_facts(self, server: str, facts: Facts) -> None:
        """Keep what scenario texts need to know of a server, so that it can be judged again."""
        self._base.execute(
            "INSERT OR REPLACE INTO facts VALUES (?,?)",
            (self._server_id(server), msgspec.json.encode(masking.facts(facts))),
        )

    def facts(self, server: str) -> Facts | None:
        """The same, or None where nothing was kept."""
        row = self._base.execute(
            "SELECT value FROM facts WHERE server = (SELECT id FROM server WHERE name = ?)",
            (server,),
        ).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Facts)

    def observe(self, server: str, seen: Verdict) -> None:
        """Keep what a runner saw. A later verdict on the same case replaces the earlier one."""
        hidden = msgspec.structs.replace(seen, actual=masking.text(seen.actual))
        self._base.execute(
            "INSERT OR REPLACE INTO observed VALUES (?,?,?)",
            (self._server_id(server), seen.case, msgspec.json.encode(hidden)),
        )

    def observed(self, server: str) -> dict[str, Verdict]:
        """What runners saw, by case."""
        rows = self._base.execute(
            "SELECT slug, value FROM observed"
            " WHERE server = (SELECT id FROM server WHERE name = ?)",
            (server,),
        )
        return {slug: msgspec.json.decode(value, type=Verdict) for slug, value in rows}

    def agree(self, server: str, cuts: Mapping[tuple[str, str], int]) -> None:
        """Count the cuts that got the same answers as one write, by case and mode; none is kept."""
        server_id = self._server_id(server)
        self._base.executemany(
            "INSERT INTO agreed VALUES (?,?,?,?)"
            " ON CONFLICT DO UPDATE SET cuts = cuts + excluded.cuts",
            [(server_id, slug, mode, number) for (slug, mode), number in cuts.items()],
        )

    def agreed(self, server: str, case: str) -> dict[str, int]:
        """How many cuts of a case agreed, by mode."""
        return dict(
            self._base.execute(
                "SELECT mode, cuts FROM agreed"
                " WHERE server = (SELECT id FROM server WHERE name = ?) AND slug = ?",
                (server, case),
            )
        )

    def forget(self, server: str, families: Iterable[str]) -> None:
        """Remove all that is kept of a server in some families, so that they can be asked anew."""
        self.flush()
        server_id = self._server_id(server)
        for family in families:
            of_family = "(SELECT id FROM item WHERE family = ?)"
            slugs = "(SELECT slug FROM item WHERE family = ?)"
            for query, words in (
                (f"DELETE FROM exchange WHERE server = ? AND item IN {of_family}", (family,)),
                (f"DELETE FROM agreed WHERE server = ? AND slug IN {slugs}", (family,)),
                (
                    f"DELETE FROM observed WHERE server = ? AND (slug = ? OR slug IN {slugs})",
                    (family, family),
                ),
            ):
                self._base.execute(query, (server_id, *words))

    def forget_facts(self, server: str) -> None:
        """Remove what was asked of a server before its cases."""
        self._base.execute("DELETE FROM facts WHERE server = ?", (self._server_id(server),))

    def holds(self, server: str, delivery: str) -> bool:
        """Whether a server has exchanges of a delivery."""
        self.flush()
        row = self._base.execute(
            "SELECT 1 FROM exchange WHERE server = (SELECT id FROM server WHERE name = ?)"
            " AND delivery = ? LIMIT 1",
            (server, delivery),
        ).fetchone()
        return row is not None

    def planned(self, family: str) -> int:
        """How many cases of a family were to be fired."""
        self.flush()
        row = self._base.execute("SELECT count(*) FROM item WHERE family = ?", (family,)).fetchone()
        return int(row[0])

    def answers(self) -> Iterator[tuple[str, bytes, bool, int]]:
        """What servers answered: server, bytes, whether the server closed after them, and in how
        many exchanges. Equal answers of a server mostly come once."""
        self.flush()
        rows = self._base.execute(
            "SELECT name, value, ending != ?, count(*) FROM exchange"
            " JOIN server ON server.id = exchange.server JOIN octets ON octets.id = received"
            " WHERE length(value) > 0 GROUP BY server.id, received, ending != ?"
            " ORDER BY server.id, received",
            (_END_NUMBER[End.OPEN], _END_NUMBER[End.OPEN]),
        )
        masks = {name: self._mask(name) for name in self.servers()}
        for name, value, ended, exchanges in rows:
            mask = masks[name]
            yield name, mask.received(value) if mask else value, bool(ended), exchanges

    def _mask(self, server: str) -> masking.Mask | None:
        """The mask for a server; None where nothing has to be hidden."""
        facts = self.facts(server) if self._masked else None
        return masking.Mask(facts.header) if facts is not None and facts.header else None

    def exchanges(self, server: str, **wanted: Unpack[Wanted]) -> Iterator[Exchange]:
        """A server's exchanges in case order. Of several attempts only the last one, which counts.

        :param wanted: see :class:`Wanted`.
        """
        for attempts in self.attempts(server, **wanted):
            yield attempts[-1]

    def doubtful(self, server: str) -> Iterator[tuple[str, str, Doubt]]:
        """(family, case, why) in order, where load may be the cause of what the last attempt at a
        whole delivery shows."""
        self.flush()
        numbers = ",".join(str(_OUTCOME_NUMBER[outcome]) for outcome in SILENT)
        rows = self._base.execute(
            "SELECT family, slug, outcome, ending, flags, end_us,"
            " CASE WHEN flags & ? THEN"
            " (SELECT substr(value, 10, 1) FROM octets WHERE id = received) END"
            " FROM exchange AS e JOIN item ON item.id = e.item"
            " WHERE e.server = (SELECT id FROM server WHERE name = ?) AND delivery = 'whole'"
            f" AND (outcome IN ({numbers}) OR ending != ? OR flags & ?)"
            " AND attempt = (SELECT max(attempt) FROM exchange AS x WHERE x.server = e.server"
            " AND x.item = e.item AND x.delivery = e.delivery) ORDER BY e.item",
            (
                int(ExchangeFlag.LOOK_RAN_OUT), server, _END_NUMBER[End.OPEN],
                int(RAN_OUT | ExchangeFlag.LOOK_RAN_OUT),
            ),
        )  # fmt: skip
        for family, slug, outcome, ending, flags, end_us, digit in rows:
            why = doubt(_OUTCOMES[outcome], _ENDS[ending], flags, end_us, digit)
            if why is not None:
                yield family, slug, why

    def attempts(
        self,
        server: str,
        *,
        family: str | None = None,
        case: str | None = None,
        delivery: str | None = "whole",
    ) -> Iterator[list[Exchange]]:
        """A server's exchanges in case order, all attempts at one case and delivery together."""
        self.flush()
        wheres = ["server = (SELECT id FROM server WHERE name = ?)"]
        words: list[str | int] = [server]
        for column, wanted in (("family", family), ("delivery", delivery)):
            if wanted is not None:
                wheres.append(f"{column} = ?")
                words.append(wanted)
        if case is not None:
            if case not in self._items:
                return
            wheres.append("item = ?")
            words.append(self._items[case])
        if family is not None:
            # The cases of a family have adjacent numbers: a range avoids a walk over all exchanges.
            low, high = self._base.execute(
                "SELECT min(id), max(id) FROM item WHERE family = ?", (family,)
            ).fetchone()
            if low is None:
                return
            wheres.append(f"item BETWEEN {int(low)} AND {int(high)}")
        query = (
            "SELECT slug, family, s.value, r.value, outcome, ending, first_us, end_us, sent_octets,"
            " flags, head_only, attempt, delivery, machine_dropped, timeline, ended_s FROM exchange"
            " JOIN item ON item.id = exchange.item"
            " JOIN octets AS s ON s.id = exchange.sent"
            " JOIN octets AS r ON r.id = exchange.received"
            f" WHERE {' AND '.join(wheres)} ORDER BY item, delivery, attempt"
        )
        held: list[Exchange] = []
        mask = self._mask(server)
        before: tuple[str, str] | None = None
        try:
            for (
                slug, group, sent, received, outcome, end, first_us, end_us, octets, flags,
                head_only, attempt, cut, dropped, timeline, ended_s,
            ) in self._base.execute(query, words):  # fmt: skip
                if mask:
                    sent, received = mask.sent(sent), mask.received(received)
                exchange = Exchange(
                    slug, group, sent, received, _OUTCOMES[outcome], _ENDS[end], first_us, end_us,
                    octets, flags, bool(head_only), attempt, cut, bool(dropped), timeline, ended_s,
                )  # fmt: skip
                if (slug, cut) != before:
                    if held:
                        yield held
                    held, before = [], (slug, cut)
                held.append(exchange)
        except sqlite3.Error as error:
            raise self._trouble(error) from None
        if held:
            yield held


def kept_as(finding: str) -> str:
    """The delivery under which a finding's smaller request is kept, by the finding's id."""
    return f"minimised:{finding}"


_CRASHED = "crash:"


def crashed(number: int, delivery: str) -> str:
    """The delivery under which is kept what was in flight when the server died, the first time or a
    later one. No verdict looks at it."""
    return f"{_CRASHED}{number}:{delivery}"


def is_beside(delivery: str) -> bool:
    """Whether a delivery is kept beside the case, so that no verdict depends on it."""
    return delivery.startswith((_CRASHED, kept_as("")))
