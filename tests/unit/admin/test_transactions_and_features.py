"""Transactions, producers, users, quotas and features: who is asked, and what is repeated."""

import copy
import json
import pickle

import kafka.admin
import pytest

from pyclient.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AdminResult,
    ClientQuotaAlteration,
    PartitionLag,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    TransactionState,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from pyclient.errors import (
    IllegalArgumentError,
    NotControllerError,
    SecurityDisabledError,
    UnsupportedVersionError,
)
from pyclient.net.scripted import DISCONNECT
from pyclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryResult,
)
from pyclient.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from pyclient.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from pyclient.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from pyclient.protocol.messages.describe_transactions import TransactionState as Described
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from pyclient.protocol.messages.list_transactions import TransactionState as Listed
from pyclient.protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

ANYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def test_every_broker_lists_its_transactions(admin, controller, other):
    listed = Listed(transactional_id="till", producer_id=7, transaction_state="Dreaming")
    controller.on(ListTransactionsRequest, ListTransactionsResponse(transaction_states=[listed]))
    loading = ListTransactionsResponse(error_code=14)
    other.on(ListTransactionsRequest, [loading, ListTransactionsResponse()])
    assert admin.list_transactions(state_filters=[TransactionState.ONGOING]) == {
        1: [("till", 7, TransactionState.UNKNOWN)],
        2: [],
    }
    assert [one.state_filters for one in other.received(ListTransactionsRequest)] == [
        ["Ongoing"],
        ["Ongoing"],
    ]


def test_a_filter_that_a_broker_does_not_know_is_an_error_that_says_so(admin, controller):
    controller.versions[ListTransactionsRequest.api_key] = (0, 0)
    controller.cut()
    for filters in ({"duration_filter_ms": 5}, {"transactional_id_pattern": "till-.*"}):
        with pytest.raises(
            UnsupportedVersionError, match=r"ListTransactionsRequest.*the broker serves 0 to 0"
        ):
            admin.list_transactions([1], **filters)
    assert not controller.received(ListTransactionsRequest)


def test_a_transaction_is_described_by_its_coordinator(admin, controller, other):
    for broker in (controller, other):
        broker.on(FindCoordinatorRequest, FindCoordinatorResponse(node_id=2))
    described = Described(transactional_id="till", transaction_state="Ongoing")
    moved = Described(transactional_id="till", error_code=16)
    other.on(
        DescribeTransactionsRequest,
        [DescribeTransactionsResponse(transaction_states=[one]) for one in (moved, described)],
    )
    found = admin.describe_transactions(["till"])["till"]
    assert (found.coordinator_id, found.state) == (2, TransactionState.ONGOING)
    assert {
        one.key_type
        for broker in (controller, other)
        for one in broker.received(FindCoordinatorRequest)
    } == {1}


def test_users_are_changed_by_the_controller(admin, controller, other):
    not_controller = AlterUserScramCredentialsResult(
        user="alice", error_code=NotControllerError.code
    )
    changed = AlterUserScramCredentialsResult(user="alice")
    controller.on(
        AlterUserScramCredentialsRequest,
        [AlterUserScramCredentialsResponse(results=[one]) for one in (not_controller, changed)],
    )
    wanted = UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "secret", salt=b"salt")
    assert admin.alter_user_scram_credentials([wanted]) == {"alice": None}
    request = controller.received(AlterUserScramCredentialsRequest)[-1]
    (upsertion,) = request.upsertions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations) == ("alice", 1, 4096)
    foreign = kafka.admin.UserScramCredentialUpsertion("alice", 1, "secret", salt=b"salt")
    assert upsertion.salted_password == foreign.salted_password
    assert not other.received(AlterUserScramCredentialsRequest)


def test_a_password_is_not_shown_and_cannot_be_empty():
    assert "secret" not in repr(UserScramCredentialUpsertion("alice", 1, "secret"))
    with pytest.raises(IllegalArgumentError, match="the password of 'alice' is empty"):
        UserScramCredentialUpsertion("alice", 1, "")
    with pytest.raises(ValueError, match="'PLAIN' is no ScramMechanism"):
        UserScramCredentialDeletion("alice", "PLAIN")


def test_quotas_are_set_again_after_a_broken_connection(admin, controller, other):
    entity = [EntityData(entity_type="user", entity_name=None)]
    done = AlterClientQuotasResponse(entries=[EntryResult(entity=entity)])
    for broker in (controller, other):
        broker.on(AlterClientQuotasRequest, [DISCONNECT, done])
    wanted = ClientQuotaAlteration({"user": None}, {"request_percentage": 5})
    (altered,) = admin.alter_client_quotas([wanted])
    assert (altered.entity, altered.error) == ({"user": None}, None)


def test_features_are_updated_by_the_controller(admin, controller, other):
    controller.versions[UpdateFeaturesRequest.api_key] = (0, 1)
    controller.cut()
    results = [
        UpdatableFeatureResult(feature="kraft.version"),
        UpdatableFeatureResult(feature="group.version", error_code=95, error_message="no"),
    ]
    controller.on(
        UpdateFeaturesRequest,
        [UpdateFeaturesResponse(error_code=41), UpdateFeaturesResponse(results=results)],
    )
    updated = admin.update_features({"kraft.version": 1, "group.version": ("upgrade", 9)})
    assert updated["kraft.version"] == "OK"
    assert updated["group.version"].startswith("no (INVALID_UPDATE_VERSION")
    assert not other.received(UpdateFeaturesRequest)


def test_a_validation_is_never_sent_where_it_would_be_an_update(admin, controller):
    controller.versions[UpdateFeaturesRequest.api_key] = (0, 0)
    controller.cut()
    for wanted in (1, ("safe_downgrade", 1)):
        with pytest.raises(UnsupportedVersionError, match="UpdateFeaturesRequest"):
            admin.update_features({"kraft.version": wanted}, validate_only=wanted == 1)
    assert not controller.received(UpdateFeaturesRequest)


def test_a_broker_without_an_authorizer_is_an_error(admin, controller, other):
    refused = DescribeAclsResponse(error_code=SecurityDisabledError.code, error_message="none")
    for broker in (controller, other):
        broker.on(DescribeAclsRequest, refused)
    with pytest.raises(SecurityDisabledError, match="none"):
        admin.describe_acls(ANYTHING)


def test_entries_must_be_concrete():
    with pytest.raises(IllegalArgumentError, match="pattern_type cannot be MATCH"):
        ResourcePattern(ResourceType.TOPIC, "orders", ACLResourcePatternType.MATCH)
    with pytest.raises(IllegalArgumentError, match="operation must be of type ACLOperation"):
        ACLFilter(None, None, "read", ACLPermissionType.ANY, ANYTHING.resource_pattern)


def test_a_call_that_a_broker_does_not_serve_is_an_error_that_names_it(admin, controller, other):
    for broker in (controller, other):
        del broker.versions[DescribeAclsRequest.api_key]
        broker.cut()
    with pytest.raises(UnsupportedVersionError, match="does not serve DescribeAclsRequest"):
        admin.describe_acls(ANYTHING)


def test_every_field_that_a_result_promises_can_be_read():
    """A subclass annotates fields; a nested one must be annotated as well."""
    seen = list(AdminResult.__subclasses__())
    for cls in seen:
        seen += cls.__subclasses__()
        assert set(cls.PARTS) <= set(cls.__annotations__), cls
        assert not set(cls.__annotations__) & set(dir(dict)), f"{cls} hides a method of dict"
    assert len(seen) > 20


def test_a_result_can_be_copied_pickled_and_written_as_json():
    result = PartitionLag(committed=1, end=3, lag=2, time_lag_ms=None)
    for copied in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert type(copied) is PartitionLag
        assert (copied, copied.lag) == (result, 2)
    assert json.loads(json.dumps(result)) == result
    assert not hasattr(result, "lags")
