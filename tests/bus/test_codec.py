"""Envelopes to bytes and back, by property, and what happens to everything else."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus import DecodeError, Endpoint, Envelope, Payload, Subject, Topic
from trunkline_bus.connection.codec import Codec


class Point(Payload, frozen=True, kw_only=True, tag="test.point.v1"):
    x: int = 0
    label: str | None = None
    tags: tuple[str, ...] = ()


class Line(Payload, frozen=True, kw_only=True, tag="test.line.v1"):
    start: Point
    end: Point


codec = Codec()
text = st.text(st.characters(exclude_categories=["Cs"]))
points = st.builds(
    Point, x=st.integers(-(2**53), 2**53), label=st.none() | text, tags=st.lists(text).map(tuple)
)
payloads = points | st.builds(Line, start=points, end=points)
envelopes = st.builds(
    Envelope,
    id=text,
    time=st.datetimes(timezones=st.just(UTC)),
    source=text,
    data=payloads,
    block=st.none() | text,
    turn=st.none() | text,
)


@given(envelopes)
def test_decoding_undoes_encoding(envelope: Envelope[Point | Line]) -> None:
    """Every payload of a union is decoded to its original, with its envelope."""
    assert codec.decode(Point | Line, codec.encode(envelope)) == envelope


@given(st.binary() | st.recursive(st.none() | text | st.integers(), st.lists).map(msgspec.json.encode))
def test_anything_else_is_a_decode_error(data: bytes) -> None:
    """No bytes raise anything but DecodeError."""
    with pytest.raises(DecodeError) as caught:
        codec.decode(Point, data)
    assert caught.value.reason in ("garbage", "invalid")


def _wire(**data: object) -> bytes:
    return msgspec.json.encode({"id": "1", "time": datetime.now(UTC), "source": "s", "data": data})


def test_unknown_fields_pass() -> None:
    """A newer sender may add fields."""
    assert codec.decode(Point, _wire(type="test.point.v1", x=1, newer=[1])).data == Point(x=1)


def test_an_unknown_tag_is_named() -> None:
    """The error has the actual and the expected tag."""
    with pytest.raises(DecodeError, match=r"test\.circle\.v1") as caught:
        codec.decode(Point | Line, _wire(type="test.circle.v1"))
    assert caught.value.reason == "unknown_type"
    assert "test.line.v1" in caught.value.detail


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (_wire(type="test.point.v1", x="one"), "invalid"),
        (b'{"id":"1","source":"s","time":"2020-01-01T00:00:00","data":{"type":"test.point.v1"}}', "invalid"),
        (b"\xff\xfe", "garbage"),
        (b"", "garbage"),
        (b'{"x":' + b"[" * 100_000, "garbage"),
    ],
)
def test_reasons(data: bytes, reason: str) -> None:
    """Wrong fields and a time without a zone are invalid; the rest is garbage."""
    with pytest.raises(DecodeError) as caught:
        codec.decode(Point, data)
    assert caught.value.reason == reason


def test_payloads_without_a_versioned_tag_are_refused_at_declaration() -> None:
    """The error quotes the class and teaches the form of a tag."""

    class Untagged(Payload, frozen=True, kw_only=True):
        x: int = 0

    with pytest.raises(TypeError, match=r'Untagged.*tag="area\.name\.v1"'):
        Topic("t", Subject("a.b"), Untagged)
    with pytest.raises(TypeError, match="not a Payload"):
        Endpoint("e", Subject("a.b"), dict, Point)


def test_keys_reserved_by_the_bus_are_refused_at_declaration() -> None:
    """A subject key may not be called like a parameter of publish, append or call."""
    with pytest.raises(TypeError, match="timeout"):
        Topic("t", Subject("a.{timeout}"), Point)
