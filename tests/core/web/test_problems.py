"""Problems: the statuses of errors of the domain, and documents that are as described."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from tocsin.errors import (
    AccessDeniedError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RequestError,
)
from tocsin.investigations import SessionBusyError
from tocsin.model import SessionStatus
from tocsin.schedules import ScheduleDeletedError, ScheduleNotStartedError
from tocsin.web import problems, record_problems, request_problems
from tocsin.web.problems import OAuthProblem, ProblemDocument, ProblemType, describe_error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInputError("x"), 422),
        (NotFoundError("x"), 404),
        (ConflictError("x"), 409),
        (SessionBusyError(SessionStatus.QUEUED), 409),
        (ScheduleDeletedError(), 409),
        (ScheduleNotStartedError("x"), 409),
        (AccessDeniedError("x"), 403),
        (RequestError("x"), 400),
    ],
)
def test_an_error_of_the_domain_has_its_status_and_its_text(error, status):
    problem = describe_error(make_mocked_request("GET", "/"), error)
    assert (problem.status, problem.detail) == (status, str(error))


CATALOG = [
    problem
    for module in (problems, request_problems, record_problems)
    for problem in vars(module).values()
    if isinstance(problem, ProblemType | OAuthProblem)
]


def test_names_of_problems_are_unique():
    by_name = {}
    for problem in CATALOG:
        if isinstance(problem, ProblemType):
            assert by_name.setdefault(problem.name, problem) is problem


@pytest.mark.parametrize(
    "problem",
    [problem for problem in CATALOG if isinstance(problem, ProblemType)],
    ids=lambda problem: problem.name,
)
def test_the_example_of_a_problem_is_a_problem_document(problem):
    document = problem.build_example()
    ProblemDocument.model_validate(document, strict=True)
    assert document["status"] == problem.status
    assert "{" not in document["detail"]
    assert not document["detail"].endswith(("?.", ".."))
