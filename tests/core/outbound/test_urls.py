"""Reading addresses of pages: one reading, or none."""

from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trunkline._util.egress import UrlRefused, WebAddress, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/A?b=c#d", "https://example.com/A?b=c"),
        ("http://example.com:8080?q=1", "http://example.com:8080/?q=1"),
        ("http://example.com./", "http://example.com/"),
        ("https://bücher.example/für dich", "https://xn--bcher-kva.example/f%C3%BCr%20dich"),
        ("http://[2606:4700::1111]:80/", "http://[2606:4700::1111]/"),
        ("http://8.8.8.8/%2e%2e/", "http://8.8.8.8/%2e%2e/"),
        ("  https://example.com/a b  ", "https://example.com/a%20b"),
    ],
)
def test_urls_are_normalized(text: str, url: str) -> None:
    """Small letters, names in ASCII, usual ports left out, no fragment."""
    assert parse_url(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        "example.com", "//example.com", "/etc/passwd", "", "https://", "https:///x", "https:/example.com",
        "file:///etc/passwd", "ftp://example.com", "gopher://127.0.0.1:6379/_SET", "javascript:alert(1)", "data:,x",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "https://user@example.com", "https://a:b@example.com",
        "https://example.com@127.0.0.1/", "https://example.com\\@127.0.0.1/", "https://exam\tple.com", "https://a\n.b",
        "https://example.com:0", "https://example.com:65536", "https://example.com:99999999999", "https://example.com:x",
        "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/",
        "http://127.0.0.01/", "http://0/", "http://127.0.0.1.1/", "http://1.2.3.0x4/", "http://0x/",
        "http://[::1/", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[127.0.0.1]/",
        "http://-a.example/", "http://a..example/", "http://a_b-.example/", "http://%31%32%37.0.0.1/",
        "http://" + "a" * 64 + ".example/", "http://" + "a." * 200 + "example/", "https://example.com/" + "a" * 5000,
        "http://exa mple.com/", "https://\ud800.example/", "https://example.com/\ud800", "https://example.com/\0",
    ],
)  # fmt: skip
def test_ambiguous_urls_are_refused(text: str) -> None:
    """Other schemes, users, hosts in unusual forms, and what programs are known to disagree about."""
    with pytest.raises(UrlRefused):
        parse_url(text)


@pytest.mark.parametrize("text", ["http://１２７.0.0.1/", "http://127。0。0。1/", "http://①②⑦.⓪.⓪.①/"])
def test_digits_of_other_scripts_are_the_digits(text: str) -> None:
    """They come out as the address that they mean, and are judged as that."""
    with suppress(UrlRefused):
        assert parse_url(text).host == "127.0.0.1"


@given(st.text(max_size=60) | st.from_regex(r"https?://[^/]{1,20}[/?#@:\\]{0,3}.{0,10}", fullmatch=True))
@example("http://a:80:80/")
@example("http://a#@b/")
def test_urls_are_parsed_as_other_parsers_do(text: str) -> None:
    """Any text is refused, or reads again as itself, with the host that Python's own parser finds in it."""
    try:
        found = parse_url(text)
    except UrlRefused:
        return
    assert parse_url(found.url) == found
    again = urlsplit(found.url)
    assert (again.hostname, again.username, again.password) == (found.host, None, None)
    assert again.scheme in ("http", "https") and found.url.isascii()
    assert not set(found.url) & set(" \t\r\n\\")


@given(st.text(max_size=40))
def test_relative_links_resolve_or_are_refused(link: str) -> None:
    """A link of a stranger's page never raises anything else."""
    start = parse_url("https://example.com/a/b?c")
    with suppress(UrlRefused):
        assert isinstance(start.resolve_link(link), WebAddress)


def test_a_site_is_its_name_with_and_without_www() -> None:
    """No name above or below it belongs to the site."""
    sites = {
        url: parse_url(url).site
        for url in ("https://www.a.example", "https://a.example", "https://b.a.example")
    }
    assert list(sites.values()) == ["a.example", "a.example", "b.a.example"]
