"""The rules over many exchanges of one server: how often each is kept, and the first failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from httpmark.harness.judging import failure_modes, family_tally
from httpmark.harness.judging.response_rules.close_rules import STILL_OPEN
from httpmark.harness.judging.response_rules.exchange_view import declared, view
from httpmark.harness.judging.response_rules.findings import Finding, Findings, named
from httpmark.harness.judging.response_rules.judge_answers import judge_answers, judge_bytes
from httpmark.harness.judging.response_rules.rule_table import RULES
from httpmark.harness.model.cases import Case, Facts
from httpmark.harness.model.exchanges import Exchange
from httpmark.harness.model.verdicts import Tally, Verdict, Word

_FAILURES_KEPT = 5  # of one rule
_LOOPBACK = re.compile(r"(?:127(?:\.[0-9]+){3}|\[::1\]|localhost)(?::[0-9]*)?")


class Collector:
    """Judges the answers of one server, exchange after exchange."""

    def __init__(self, facts: Facts) -> None:
        self._declared = declared(facts)
        # Another machine has another clock, so its Date cannot be compared with ours.
        self._same_clock = _LOOPBACK.fullmatch(facts.host) is not None
        self._clean: Counter[int] = Counter()  # exchanges without a finding, by what was judged
        self._words: dict[str, dict[Word, int]] = {}
        self._failures: dict[str, list[Verdict]] = {}
        self._modes: dict[str, Counter[str]] = {}  # how often each fails how

    def judged(self, case: Case, exchange: Exchange) -> Findings:
        """What the rules find in one exchange; it is not counted yet."""
        return judge_answers(view(case, exchange, same_clock=self._same_clock), self._declared)

    def add(self, case: Case, exchange: Exchange) -> None:
        """Judge one more exchange; each rule counts once for it."""
        self.count(case, self.judged(case, exchange))

    def add_cut(self, cut: Case, exchange: Exchange) -> None:
        """Judge the answers to a delivery in pieces by their bytes only.

        Many pieces are in flight at once, so times say little. The report does not show these
        bytes, so the finding names the delivery instead."""
        found = judge_bytes(view(cut, exchange), self._declared)
        told = (
            Finding(one.rule, (0, 0), f"{one.text}: delivery {cut.delivery}", one.word)
            for one in found.found
        )
        self.count(cut, Findings(tuple(told), found.bits))

    def count(self, case: Case, found: Findings) -> None:
        """Count what was found in one exchange."""
        if not found.found:
            self._clean[found.bits] += 1
            return
        worst: dict[str, Finding] = {}
        for finding in found.found:
            before = worst.get(finding.rule)
            if before is None or (before.word is Word.WARN and finding.word is Word.FAIL):
                worst[finding.rule] = finding
        for name in found.judged:
            shown = worst.get(name)
            words = self._words.setdefault(name, {})
            word = Word.PASS if shown is None else shown.word
            words[word] = words.get(word, 0) + 1
            if shown is not None and shown.word is Word.FAIL:
                # What follows a colon is the server's own value.
                mode = failure_modes.failure_mode(shown.text.partition(": ")[0])
                self._modes.setdefault(name, Counter())[mode] += 1
            kept = self._failures.setdefault(name, [])
            if shown is not None and len(kept) < _FAILURES_KEPT:
                level, title = RULES[name].level, RULES[name].title
                kept.append(Verdict(case.id, word, title, shown.text, shown.span, level))

    def merge(self, other: Collector, position: Callable[[str], int] | None = None) -> None:
        """Add what another collector found.

        :param position: the place of a case in the family that both looked at, by its id; None if
            the other's failures come after the known ones.
        """
        self._clean += other._clean
        for name, words in other._words.items():
            mine = self._words.setdefault(name, {})
            for word, number in words.items():
                mine[word] = mine.get(word, 0) + number
        for name, counts in other._modes.items():
            self._modes.setdefault(name, Counter()).update(counts)
        for name, failures in other._failures.items():
            kept = self._failures.setdefault(name, [])
            kept += failures
            if position is not None:
                kept.sort(key=lambda one: position(one.case))
            del kept[_FAILURES_KEPT:]

    @staticmethod
    def lingers(found: Findings) -> bool:
        """Whether the server said "close" and, as far as was seen, did not close."""
        return any(finding.text.startswith(STILL_OPEN) for finding in found.found)

    def tallies(self) -> dict[str, Tally]:
        """What was found, by rule; a rule that applied to no answer is left out."""
        words = {name: dict(counts) for name, counts in self._words.items()}
        for bits, number in self._clean.items():
            for name in named(bits):
                counts = words.setdefault(name, {})
                counts[Word.PASS] = counts.get(Word.PASS, 0) + number
        return {
            name: Tally(
                words=family_tally.in_order({RULES[name].level: words[name]}),
                failures=tuple(self._failures.get(name, ())),
                failure_modes=failure_modes.most_frequent(self._modes.get(name, {})),
            )
            for name in sorted(words)
        }
