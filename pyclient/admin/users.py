"""Users with SCRAM credentials: describe, create, change, delete."""

from collections.abc import Iterable
from typing import TypeAlias

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.work import Work
from pyclient.admin.types.users import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentials,
    UserScramCredentialUpsertion,
)
from pyclient.errors import IllegalArgumentError
from pyclient.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from pyclient.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

Alteration: TypeAlias = UserScramCredentialDeletion | UserScramCredentialUpsertion


class UserCalls(AdminCalls):
    """The calls about users."""

    def alter_user_scram_credentials(
        self, alterations: Iterable[Alteration]
    ) -> dict[str, str | None]:
        """Create, change and delete credentials; None or the error's text by user.

        Apache Kafka takes one change of each user in a call. If a connection breaks, the request
        is repeated; the deletion of a credential that the first attempt has deleted is then an
        error that says so.

        Args:
            alterations: `UserScramCredentialUpsertion`s and `UserScramCredentialDeletion`s.

        Raises:
            KafkaError: no change was attempted, or its outcome is unknown.
        """
        by_user: dict[str, list[Alteration]] = {}
        for one in alterations:
            if not isinstance(one, Alteration):
                raise IllegalArgumentError(
                    f"{one!r} is neither a UserScramCredentialDeletion nor a"
                    " UserScramCredentialUpsertion"
                )
            by_user.setdefault(one.user, []).append(one)
        outcomes = self._requests.settle(
            Work(
                by_user,
                _request,
                lambda response: ((one.user, one) for one in response.results),
                lambda user: f"user {user!r}",
                self._requests.to_controller,
                self._requests.deadline(),
            )
        )
        return {
            user: None if one.error is None else str(one.error) for user, one in outcomes.items()
        }

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None
    ) -> dict[str, UserScramCredentials]:
        """The credentials of users, without their secrets.

        Args:
            users: their names; by default all users that have credentials.

        Raises:
            KafkaError: none could be described.
        """
        names = None if users is None else [UserName(name=name) for name in users]
        request = DescribeUserScramCredentialsRequest(users=names)
        response = self._requests.ask(
            request, DescribeUserScramCredentialsResponse, self._requests.deadline()
        )
        return {
            one.user: UserScramCredentials(
                error=(one.error_message or "unknown") if one.error_code else None,
                credential_infos=[
                    ScramCredentialInfo(
                        mechanism=ScramMechanism(info.mechanism), iterations=info.iterations
                    )
                    # Brokers list them in any order.
                    for info in sorted(one.credential_infos, key=lambda info: info.mechanism)
                ],
            )
            for one in response.results
        }


def _request(pending: list[list[Alteration]]) -> AlterUserScramCredentialsRequest:
    alterations = [one for of_user in pending for one in of_user]
    return AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=one.user, mechanism=one.mechanism)
            for one in alterations
            if isinstance(one, UserScramCredentialDeletion)
        ],
        upsertions=[
            ScramCredentialUpsertion(
                name=one.user,
                mechanism=one.mechanism,
                iterations=one.iterations,
                salt=one.salt,
                salted_password=one.salted_password,
            )
            for one in alterations
            if isinstance(one, UserScramCredentialUpsertion)
        ],
    )
