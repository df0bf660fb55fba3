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
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Unpack

import msgspec

from httpmark.harness.http import masking
from httpmark.harness.judging import evidence_damage
from httpmark.harness.judging.exchange_reader import Wanted
from httpmark.harness.model import digests
from httpmark.harness.model.cases import Facts
from httpmark.harness.model.errors import HarnessError, not_written
from httpmark.harness.model.exchanges import (
    RAN_OUT,
    SILENT,
    SLOW_ANSWER_US,
    Doubt,
    End,
    Exchange,
    ExchangeFlag,
    Outcome,
    doubt,
)
from httpmark.harness.model.progress import undisturbed
from httpmark.harness.model.verdicts import Verdict

_OUTCOMES = tuple(Outcome)
_ENDS = tuple(End)
_OUTCOME_NUMBER = {outcome: number for number, outcome in enumerate(_OUTCOMES)}
_END_NUMBER = {end: number for number, end in enumerate(_ENDS)}
_SILENT = ",".join(str(_OUTCOME_NUMBER[outcome]) for outcome in SILENT)
_ROWS_HELD = 4096
_BYTES_HELD = 16 << 20  # of what peers sent: one that floods must not fill the memory
_HELD_S = 1.0  # what is held longer would be lost where the process is killed
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
    :raises Unusable: the disk is full, or a file that is read masked is damaged.
    """

    def __init__(self, path: Path, *, create: bool = False, masked: bool = False) -> None:
        self._path = path
        self._masked = masked
        if not create and not path.is_file():
            raise HarnessError(f"{path}: no such file; is this a run folder?")
        try:
            if path.is_file() and digests.differs(path):
                raise evidence_damage.damaged(path, "it is not what was written")
            # A file without a digest may be an older one, that lacks a table.
            self._is_written = not (masked and digests.is_known(path))
            with self._reading():
                self._base = self._written() if self._is_written else self._read()
        except OSError as error:
            raise not_written(path, error) from None
        self._octets: dict[bytes, int] = {}
        self._known_bytes = 0
        self._new_bytes = 0
        self._servers: dict[str, int] = {}
        self._rows: list[tuple[object, ...]] = []
        self._new_octets: list[tuple[int, bytes]] = []
        self._new_items: list[tuple[int, str, str]] = []
        self._flush_at = time.monotonic() + _HELD_S
        if masked:
            self.must_be_whole()
        with self._reading():
            self._next_octets = self._octets_max() + 1

    def _written(self) -> sqlite3.Connection:
        """The file, opened for rows to be added; it has no digest until it is closed."""
        base = sqlite3.connect(self._path, isolation_level=None)
        digests.forget(self._path)
        base.execute("PRAGMA journal_mode=WAL")
        # A lost last transaction after a power cut costs a rerun; syncing costs every run.
        base.execute("PRAGMA synchronous=OFF")
        base.executescript(_SCHEMA)
        return base

    def _read(self) -> sqlite3.Connection:
        """The file as it is."""
        where = f"{self._path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(where, uri=True, isolation_level=None)

    @functools.cached_property
    def _items(self) -> dict[str, int]:
        """The number of each case; not read where only families are asked for."""
        with self._reading():
            return dict(self._base.execute("SELECT slug, id FROM item"))

    @property
    def path(self) -> Path:
        """The file. After :meth:`flush`, other processes can read from it."""
        return self._path

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        return evidence_damage.told(self._path)

    def _execute(self, query: str, words: Sequence[object] = ()) -> sqlite3.Cursor:
        """What SQLite makes of a query; an error of it becomes ours, in one line."""
        with self._reading():
            return self._base.execute(query, words)

    def must_be_whole(self) -> None:
        """Look at every page and every row of a stored file, before anything is made of it.

        :raises HarnessError: it is no evidence file.
        :raises Unusable: it is damaged.
        """
        evidence_damage.must_be_whole(self._base, self._path)

    def __enter__(self) -> Evidence:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Write what is held, and close. One file is left, without a write-ahead log, and its
        digest; where another process reads it yet, that one leaves them."""
        is_last = False
        try:
            self.flush()
        finally:
            # On a full disk the log stays beside the file, and is read with it.
            with contextlib.suppress(sqlite3.Error):
                if self._is_written:
                    mode = self._base.execute("PRAGMA journal_mode=DELETE").fetchone()
                    is_last = mode == ("delete",)
            self._base.close()
            if is_last:
                with contextlib.suppress(OSError):
                    digests.keep(self._path)

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
            self._new_bytes += len(value)
        return number

    @undisturbed()  # else a case may get a number and no row: its exchanges would be lost
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
            if self._new_bytes >= _BYTES_HELD:
                self.flush()
        if len(rows) >= _ROWS_HELD or time.monotonic() >= self._flush_at:
            self.flush()

    @undisturbed()
    def doubt_silence(self, server: str, cases: Iterable[tuple[str, str]]) -> None:
        """Say of cases (family, slug) that what ran out of time proves nothing: load may be why."""
        self.flush()
        server_id = self._server_id(server)
        rows = [(server_id, self._items[slug], int(RAN_OUT)) for _, slug in cases]
        try:
            self._base.execute("BEGIN")
            self._base.executemany(
                "UPDATE exchange SET machine_dropped = 1 WHERE server = ? AND item = ?"
                f" AND delivery = 'whole' AND (outcome IN ({_SILENT}) OR flags & ?)",
                rows,
            )
            self._base.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise evidence_damage.trouble(self._path, error) from None

    def plan(self, cases: Iterable[tuple[str, str]]) -> None:
        """Number cases (slug, family) ahead of firing, so that reading keeps the family's order."""
        for slug, family in cases:
            if slug not in self._items:
                number = self._items[slug] = len(self._items) + 1
                self._new_items.append((number, slug, family))

    @undisturbed()
    def flush(self) -> None:
        """Hand all held rows to SQLite, in one transaction."""
        self._flush_at = time.monotonic() + _HELD_S
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
            raise evidence_damage.trouble(self._path, error) from None
        finally:
            self._rows.clear()
            self._new_items.clear()
            self._new_octets.clear()
            self._new_bytes = 0

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
            self._execute("INSERT OR IGNORE INTO server (name) VALUES (?)", (name,))
            row = self._execute("SELECT id FROM server WHERE name = ?", (name,)).fetchone()
            self._servers[name] = int(row[0])
        return self._servers[name]

    def servers(self) -> list[str]:
        """The servers that have exchanges here."""
        with self._reading():
            return [row[0] for row in self._base.execute("SELECT name FROM server ORDER BY id")]

    def families(self, server: str) -> list[str]:
        """The families of which a server has exchanges, in their order."""
        self.flush()
        with self._reading():
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
        self._execute(
            "INSERT OR REPLACE INTO facts VALUES (?,?)",
            (self._server_id(server), msgspec.json.encode(masking.facts(facts))),
        )

    def facts(self, server: str) -> Facts | None:
        """The same, or None where nothing was kept."""
        with self._reading():
            row = self._base.execute(
                "SELECT value FROM facts WHERE server = (SELECT id FROM server WHERE name = ?)",
                (server,),
            ).fetchone()
            return None if row is None else msgspec.json.decode(row[0], type=Facts)

    def observe(self, server: str, seen: Verdict) -> None:
        """Keep what a runner saw. A later verdict on the same case replaces the earlier one."""
        hidden = msgspec.structs.replace(seen, actual=masking.text(seen.actual))
        self._execute(
            "INSERT OR REPLACE INTO observed VALUES (?,?,?)",
            (self._server_id(server), seen.case, msgspec.json.encode(hidden)),
        )

    def observed(self, server: str) -> dict[str, Verdict]:
        """What runners saw, by case."""
        with self._reading():
            rows = self._base.execute(
                "SELECT slug, value FROM observed"
                " WHERE server = (SELECT id FROM server WHERE name = ?)",
                (server,),
            )
            return {slug: msgspec.json.decode(value, type=Verdict) for slug, value in rows}

    def agree(self, server: str, cuts: Mapping[tuple[str, str], int]) -> None:
        """Count the cuts that got the same answers as one write, by case and mode; none is kept."""
        server_id = self._server_id(server)
        with self._reading():
            self._base.executemany(
                "INSERT INTO agreed VALUES (?,?,?,?)"
                " ON CONFLICT DO UPDATE SET cuts = cuts + excluded.cuts",
                [(server_id, slug, mode, number) for (slug, mode), number in cuts.items()],
            )

    def agreed(self, server: str, case: str) -> dict[str, int]:
        """How many cuts of a case agreed, by mode."""
        query = (
            "SELECT mode, cuts FROM agreed"
            " WHERE server = (SELECT id FROM server WHERE name = ?) AND slug = ?"
        )
        with self._reading():
            return dict(self._base.execute(query, (server, case)))

    @undisturbed()
    def take(self, path: Path, server: str) -> None:
        """Add all that another evidence file keeps, which is of one server, whole or not at all."""
        self.flush()
        number = self._server_id(server)
        try:
            self._base.execute("ATTACH ? AS other", (str(path),))
            try:
                self._base.execute("BEGIN")
                self._copy(number)
                self._base.execute("COMMIT")
            finally:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                self._base.execute("DETACH other")
        except sqlite3.Error as error:
            raise evidence_damage.trouble(self._path, error) from None
        self.__dict__.pop("_items", None)
        self._next_octets = self._octets_max() + 1

    def _octets_max(self) -> int:
        row = self._execute("SELECT coalesce(max(id), 0) FROM octets").fetchone()
        return int(row[0])

    def _copy(self, server: int) -> None:
        """Copy every row of the file that is attached, with numbers of this one."""
        above = self._octets_max()
        for query, words in (
            (
                "INSERT INTO item (slug, family) SELECT slug, family FROM other.item"
                " WHERE slug NOT IN (SELECT slug FROM main.item) ORDER BY id",
                (),
            ),
            ("INSERT INTO octets SELECT id + ?, value FROM other.octets", (above,)),
            (
                "INSERT OR REPLACE INTO exchange SELECT ?, ours.id, delivery, attempt, outcome,"
                " ending, flags, head_only, first_us, end_us, sent_octets, sent + ?, received + ?,"
                " machine_dropped, timeline, ended_s FROM other.exchange AS e"
                " JOIN other.item AS theirs ON theirs.id = e.item"
                " JOIN main.item AS ours ON ours.slug = theirs.slug",
                (server, above, above),
            ),
            ("INSERT OR REPLACE INTO facts SELECT ?, value FROM other.facts", (server,)),
            (
                "INSERT OR REPLACE INTO observed SELECT ?, slug, value FROM other.observed",
                (server,),
            ),
            (
                "INSERT OR REPLACE INTO agreed SELECT ?, slug, mode, cuts FROM other.agreed",
                (server,),
            ),
        ):
            self._base.execute(query, words)

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
                self._execute(query, (server_id, *words))

    def forget_facts(self, server: str) -> None:
        """Remove what was asked of a server before its cases."""
        self._execute("DELETE FROM facts WHERE server = ?", (self._server_id(server),))

    def holds(self, server: str, delivery: str) -> bool:
        """Whether a server has exchanges of a delivery."""
        self.flush()
        row = self._execute(
            "SELECT 1 FROM exchange WHERE server = (SELECT id FROM server WHERE name = ?)"
            " AND delivery = ? LIMIT 1",
            (server, delivery),
        ).fetchone()
        return row is not None

    def planned(self, family: str) -> int:
        """How many cases of a family were to be fired."""
        self.flush()
        query = "SELECT count(*) FROM item WHERE family = ?"
        with self._reading():
            return int(self._base.execute(query, (family,)).fetchone()[0])

    def answers(self) -> Iterator[tuple[str, bytes, bool, int]]:
        """What servers answered: server, bytes, whether the server closed after them, and in how
        many exchanges. Equal answers of a server mostly come once."""
        self.flush()
        masks = {name: self._mask(name) for name in self.servers()}
        with self._reading():
            rows = self._base.execute(
                "SELECT name, value, ending != ?, count(*) FROM exchange"
                " JOIN server ON server.id = exchange.server JOIN octets ON octets.id = received"
                " WHERE length(value) > 0 GROUP BY server.id, received, ending != ?"
                " ORDER BY server.id, received",
                (_END_NUMBER[End.OPEN], _END_NUMBER[End.OPEN]),
            )
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
        query = (
            "SELECT family, slug, outcome, ending, flags, first_us, end_us,"
            " CASE WHEN flags & ? THEN"
            " (SELECT substr(value, 10, 1) FROM octets WHERE id = received) END"
            " FROM exchange AS e JOIN item ON item.id = e.item"
            " WHERE e.server = (SELECT id FROM server WHERE name = ?) AND delivery = 'whole'"
            f" AND (outcome IN ({_SILENT}) OR ending != ? OR flags & ? OR first_us > ?)"
            " AND attempt = (SELECT max(attempt) FROM exchange AS x WHERE x.server = e.server"
            " AND x.item = e.item AND x.delivery = e.delivery) ORDER BY e.item"
        )
        words = (
            int(ExchangeFlag.LOOK_RAN_OUT), server, _END_NUMBER[End.OPEN],
            int(RAN_OUT | ExchangeFlag.LOOK_RAN_OUT | ExchangeFlag.HELD_UP), SLOW_ANSWER_US,
        )  # fmt: skip
        with self._reading():
            for family, slug, outcome, ending, flags, first_us, end_us, digit in self._base.execute(
                query, words
            ):
                why = doubt(_OUTCOMES[outcome], _ENDS[ending], flags, (first_us, end_us), digit)
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
            with self._reading():
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
        with self._reading():
            for (
                slug, group, sent, received, outcome, end, first_us, end_us, octets, flags,
                head_only, attempt, cut, dropped, timeline, ended_s,
            ) in self._execute(query, words):  # fmt: skip
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
