"""Whatever is changed behind the service's back is found, and said where."""

from __future__ import annotations

import pytest


@pytest.fixture
async def head(add, sealer, check) -> tuple[int, str]:
    """The end of a sealed chain of five."""
    await add(*"abcde", details={"name": "ci"})
    await sealer.seal()
    found = await check()
    return found.head_position, found.head_seal


def broken(position: int, row: int) -> str:
    return (
        f"position {position} (row {row}): the seal does not match the content and the "
        "previous seal"
    )


CHANGES = {
    "at": "at + 1",
    "actor": "'bob'",
    "action": "'x'",
    "target": "'x'",
    "address": "'x'",
    "request_id": "'x'",
    "count": "2",
    "details": """'{"name": "CI"}'""",
    "id": "17",
}


@pytest.mark.parametrize(("column", "value"), CHANGES.items(), ids=CHANGES)
async def test_a_changed_column_is_found(head, tamper, check, column, value):
    await tamper(f"UPDATE audit SET {column} = {value} WHERE position = 3")
    found = await check(head=head)
    assert found.problems == [broken(3, 17 if column == "id" else 3)]
    assert (found.entries, found.head_position) == (5, 5)


async def test_a_changed_seal_breaks_its_row_and_the_next(head, tamper, check):
    await tamper("UPDATE audit SET seal = NULL WHERE id = 2")
    assert (await check()).problems == [broken(2, 2), broken(3, 3)]


async def test_swapped_rows_are_found(head, tamper, check):
    await tamper(
        "UPDATE audit SET position = -1 WHERE id = 2",
        "UPDATE audit SET position = 2 WHERE id = 3",
        "UPDATE audit SET position = 3 WHERE id = 2",
    )
    problems = (await check(head=head)).problems
    assert problems == [broken(2, 3), broken(3, 2), broken(4, 4)]


async def test_a_removed_row_is_found(head, tamper, check):
    await tamper("DELETE FROM audit WHERE id IN (2, 3)")
    [problem] = (await check(head=head)).problems
    assert problem == "positions 2 to 3 are missing, so position 4 (row 4) cannot be verified"


async def test_a_removed_beginning_is_found(head, tamper, check):
    await tamper("DELETE FROM audit WHERE id = 1")
    [problem] = (await check(head=head)).problems
    assert problem == "position 1 is missing, so position 2 (row 2) cannot be verified"


async def test_a_removed_tail_is_found(head, tamper, check):
    await tamper("DELETE FROM audit WHERE id > 3")
    found = await check()
    assert found.problems == ["positions 4 to 5 are missing; position 5 was the last one assigned"]
    assert (found.entries, found.head_position) == (3, 3)


async def test_a_removed_log_is_found(head, tamper, check):
    await tamper("DELETE FROM audit")
    found = await check()
    assert found.problems == ["positions 1 to 5 are missing; position 5 was the last one assigned"]
    assert (found.entries, found.head_position, found.head_seal) == (0, None, None)


async def test_sealing_goes_on_after_a_removed_tail_and_hides_nothing(
    head, tamper, check, add, sealer
):
    await tamper("DELETE FROM audit WHERE id > 3")
    await add("f", "g")
    assert await sealer.seal() == 2
    [problem] = (await check()).problems
    assert problem.startswith("positions 4 to 5 are missing")


async def test_a_removed_sequence_is_reported(head, tamper, check):
    await tamper("DELETE FROM sequences WHERE value = 5")
    found = await check(head=head)
    [problem] = found.problems
    assert problem.startswith("the sequence 'audit_position' is missing")
    assert (found.entries, found.head_position) == (5, 5)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # which stores anything
@pytest.mark.parametrize("value", ["'abc'", "1.5", "x'ff'", "9e99"])
async def test_a_sequence_that_is_no_number_is_reported(head, tamper, check, value):
    await tamper(f"UPDATE sequences SET value = {value} WHERE value = 5")
    problem, *_ = (await check(head=head)).problems
    assert "has no valid value" in problem


CUT = ("DELETE FROM audit WHERE id > 3", "UPDATE sequences SET value = 3 WHERE value = 5")


async def test_a_tail_that_is_cut_with_its_sequence_is_found_by_its_witness_alone(
    head, tamper, check
):
    await tamper(*CUT)
    assert (await check()).problems == []
    [problem] = (await check(head=head)).problems
    assert problem == f"position 5: expected the recorded seal {head[1]}, found nothing"


async def test_a_tail_that_was_replaced_is_found_by_its_witness(head, tamper, check, add, sealer):
    await tamper(*CUT)
    await add("x", "y")
    await sealer.seal()
    found = await check(head=head)
    assert found.problems == [
        f"position 5: expected the recorded seal {head[1]}, found {found.head_seal}"
    ]


async def test_an_older_witness_is_still_in_a_chain_that_has_grown(head, check, add, sealer):
    await add("f")
    await sealer.seal()
    assert (await check(head=head)).problems == []


@pytest.mark.parametrize("position", [-1, 0, 6, 1000])
async def test_a_forged_row_is_found_wherever_it_claims_to_be(head, tamper, check, position):
    columns = "at, actor, action, address, request_id, count, details"
    await tamper(
        f"INSERT INTO audit (id, {columns}, position, seal)"
        f" SELECT 99, {columns}, {position}, seal FROM audit WHERE id = 5"
    )
    [problem] = (await check(head=head)).problems
    assert problem == f"position {position} (row 99): the position was never assigned"


async def test_a_forged_row_with_an_allotted_position_is_found(head, tamper, check):
    columns = "at, actor, action, address, request_id, count, details"
    await tamper(
        f"INSERT INTO audit (id, {columns}, position, seal)"
        f" SELECT 99, {columns}, 6, seal FROM audit WHERE id = 5",
        "UPDATE sequences SET value = 6 WHERE value = 5",
    )
    assert (await check(head=head)).problems == [broken(6, 99)]


async def test_a_wrong_key_fits_nothing(head, check):
    assert (await check(b"another")).problems == [broken(n, n) for n in range(1, 6)]


async def test_problems_are_capped_and_the_rest_is_still_counted(add, sealer, check):
    await add(*["a"] * 600)
    await sealer.seal()
    found = await check(b"another", head=(600, "x"))
    assert len(found.problems) == 100
    assert found.problems[0].startswith("position 600: expected the recorded seal")
    assert found.entries == 600


UNREADABLE = {
    "no JSON": "details = '{'",
    "no text": "details = 5",
    "too deep": f"details = '{'[' * 1000 + ']' * 1000}'",
    "bytes": "actor = x'ff'",
    "no UTF-8": "actor = CAST(x'ff' AS TEXT)",
    "details of bytes": "details = x'ff'",
    "seal of bytes": "seal = x'ff'",
    "seal that is not UTF-8": "seal = CAST(x'ff' AS TEXT)",
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
async def test_a_row_that_is_no_longer_readable_is_a_problem_and_no_crash(
    head, tamper, check, change
):
    await tamper(f"UPDATE audit SET {change} WHERE id = 5")
    assert (await check()).problems == [broken(5, 5)]


async def test_what_should_have_been_sealed_is_a_problem(head, add, check, clock):
    await add("f", "g")
    clock.advance(minutes=1)
    await add("h")
    assert (await check(head=head)).problems == []
    clock.advance(microseconds=1)
    assert (await check(head=head)).problems == [
        "row 6: unsealed for more than a minute, 2 rows in total; "
        "a running service seals rows within seconds"
    ]


async def test_what_was_sealed_in_time_stays_no_problem(head, check, clock):
    clock.advance(days=400)
    assert (await check(head=head)).problems == []
