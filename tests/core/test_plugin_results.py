"""Results of plugins, and the method that is named for wrong ones."""

import pytest

from tocsin import Channel, Enrichment, Entity, EntityKind, Provider, Receipt
from tocsin.plugin_results import find_wrong_signature, require_result

ONE = Entity(EntityKind.IP, "192.0.2.1")


class Acme(Channel):
    async def check(self): ...

    async def deliver(self, delivery): ...


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "returned None, not a `Receipt`"),
        (Receipt(status="200"), "with `status` '200', not `int` or `None`"),
        (Receipt(status=True), "with `status` True, not `int` or `None`"),
        (Receipt(response="ok"), "with `response` 'ok', not `bytes`"),
        (Receipt(remote_id=7), "with `remote_id` 7, not `str` or `None`"),
    ],
)
def test_a_wrong_receipt_is_named_with_the_method(result, words):
    with pytest.raises(TypeError) as caught:
        require_result(result, Receipt, Acme.deliver)
    line = Acme.deliver.__code__.co_firstlineno
    assert f"`Acme.deliver` ({__file__}, line {line}) returned" in str(caught.value)
    assert words in str(caught.value)


def test_facts_are_a_mapping_and_tags_may_be_a_list():
    good = Enrichment(entity=ONE, summary="", tags=["a"], facts={"a": 1})
    assert require_result(good, Enrichment, Acme.check) is good
    with pytest.raises(TypeError, match=r"`facts` \[1\], not a mapping"):
        require_result(Enrichment(entity=ONE, summary="", facts=[1]), Enrichment, Acme.check)
    with pytest.raises(TypeError, match=r"`tags` .*, not a tuple of `str`"):
        require_result(Enrichment(entity=ONE, summary="", tags=(1,)), Enrichment, Acme.check)


def test_methods_that_are_no_coroutines_are_found():
    def check(self): ...

    async def read(self, stream, position, until):
        return []

    async def deliver(self, delivery): ...

    assert "write `async def`" in find_wrong_signature(check, Channel.check)
    assert "`yield`" in find_wrong_signature(read, Provider.read)
    assert find_wrong_signature(deliver, Channel.deliver) is None
