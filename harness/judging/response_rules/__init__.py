"""The rules RESP-01 to RESP-36, which every answer to every case has to keep.

Pure: the bytes and times of an exchange in, findings out. A rule is a requirement of its own and
never changes a case's verdict. The order: ``rule_table`` says what each rule asks, ``findings``
holds what is found; ``exchange_view`` and ``request_view`` say what the rules may know of an
exchange and of its requests; ``head_rules``, ``framing_rules``, ``date_rules``,
``reflection_rule``, ``not_modified_rule``, ``order_rules`` and ``close_rules`` judge;
``answer_reader`` reads the answers and ``judge_answers`` applies all rules; ``collector`` adds up
the findings of many exchanges.
"""
