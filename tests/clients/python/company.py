"""What the two companies have in common: a client, how answers are taken, and what is asked of the asset that one sells to the other."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from souk_client import AuthenticatedClient
from souk_client.models import AnyObject, ExecuteIn, Problem
from souk_client.types import Response

T = TypeVar("T")

# Matches of 2025 in which the home team scored three times at least: by an asset's parameters, and by a feed's filters.
PARAMS: dict[str, float] = {"at_least": 2.5, "season": 2025}
QUERY = {"at_least": "2.5", "season": "2025"}
FILTERS = {"home_goals[gte]": "3", "season": "2025"}


def right(answer: T | Problem | None) -> T:
    """The answer, unless it is a refusal."""
    if isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer.to_dict()}")
    assert answer is not None, "an answer that the document does not describe"
    return answer


def refused(answer: object, code: str) -> Problem:
    assert isinstance(answer, Problem) and answer.error.code == code, answer
    return answer


def done(answer: Response[T]) -> None:
    assert answer.status_code == HTTPStatus.NO_CONTENT, answer


def execution() -> ExecuteIn:
    return ExecuteIn(params=AnyObject.from_dict(PARAMS))


@dataclass
class Company:
    base_url: str
    id: str
    key: str

    def __post_init__(self) -> None:
        self.client = self.by(self.key)

    def by(self, key: str) -> AuthenticatedClient:
        return AuthenticatedClient(
            base_url=self.base_url,
            token=key,
            prefix="",
            auth_header_name="x-api-key",
            raise_on_unexpected_status=True,
        )
