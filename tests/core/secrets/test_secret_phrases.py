"""Texts of people and programs about secrets: each secret is marked, and nothing else is (RLM-F21).

A secret stands between ``«`` and ``»``; a sentence without these signs has none.
"""

import re
import time

import pytest

from trunkline._util.secrets import REDACTION_MARK
from trunkline._util.secrets.redactor import Redactor

SECRETS = Redactor()
MARKED = re.compile("«.*?»", re.DOTALL)

SAID = """
My password is «swordfish».
My password is «hunter2», please remember it.
my wifi password is «correct-horse-battery» and the network is called Attic
The password for the router is «Tr0ub4dor&3».
the password for our old mail server was «mellon» but it changed
The admin password is now «S3cure!Pass».
The password of the printer was set to «48213377» yesterday.
We changed the password to «Blue-Whale_42».
The passphrase is "«open the garden gate»".
The password is: «qwertz123»
Mein Passwort ist «Sommer2024!».
Das WLAN-Passwort lautet «Apfelbaum».
Le mot de passe est «Printemps99».
La contraseña es «gatito77».
Your token is «9f8a7b6c5d4e».
The API key is «a81f-22c9-b77d-0041» as of today.
login: bob, password: «swordfish»
Password: «swordfish» (the old one)
user=bob&pass=1&password=«swordfish»&x=1
mysql --user bob --password «swordfish» --host db
psql --db-password=«swordfish» -h db
tool --api-key «a1b2c3d4» run
export PGPASSWORD=«swordfish»
PGPASSWORD=«s3cret» psql -h db -U bob
MYSQL_PWD=«swordfish» mysqldump all
DB_PASSWD='«sword fish»'
postgresql://bob:«swordfish»@db.example.org:5432/app?sslmode=require
amqps://worker:«s3cret%21»@rabbit/vhost and redis://:«hunter22»@cache:6379/0
Server=db;Database=app;User Id=bob;Password=«Sw0rd-fish»;Encrypt=yes
Server=tcp:db,1433;Uid=bob;Pwd=«swordfish»;Encrypt=yes
DefaultEndpointsProtocol=https;AccountName=bob;AccountKey=«QWxhZGRpbjpvcGVuIHNlc2FtZQ==»
host=db dbname=app user=bob password=«swordfish» connect_timeout=10
CREATE USER bob WITH PASSWORD '«swordfish»';
machine example.org login bob password «swordfish»
curl -s -u bob:«swordfish» https://example.org/
curl -u bob:«swordfish» https://example.org/
curl --user=bob:«swordfish» https://example.org/
Authorization: Basic «Ym9iOnN3b3JkZmlzaA==»
> authorization: basic «Ym9iOnN3b3JkZmlzaA==»
authorization: bearer «mF9B5f41JqM1bZ8yT0aQ7kXw»
password = r"«sword\\fish»"
secret = b'«swordfish»'
the key is «sk-or-v1-abcdefghijklmnopqrstuvwxyz» and «sk-abcdefghijklmnopqrstuvwxyz»
the bot is «123456789:AAEhBOweik6ad6PsWZRcXKZ0XxXcOlN0abc»
kept under «AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0S»
"""

TABLES = (
    """
| what | value |
| --- | --- |
| user | bob |
| password | «swordfish» |
| **API key** | `«a1b2c3d4e5»` |
| token lifetime | 3600 |
""",
    """
| host | user | password | note |
|:-----|------|---------:|------|
| db1  | bob  | «swordfish» | the old one |
| db2  | eve  | «Xy7-plover» | - |
| db3  | joe  | unknown | ask him |
""",
    """
 name | password
------+-----------
 bob  | «swordfish»
 eve  | «mellon»
(2 rows)
""",
    "|password|«swordfish»|",
)

NOT_SAID = """
The password is in the safe.
The password is wrong.
My password is too long to type.
my password is not working
The password is stored in the password manager.
The password was changed yesterday by Anna.
The password is expired, and nobody noticed.
The password is mandatory.
The password is case-sensitive.
The password is 12-letter at least.
My password is Anna's birthday backwards.
The password is the name of her dog.
Is the password required? The password must be changed every year.
Password: minimum 12 characters
password: please choose another one
Password: forgotten. Ask Anna.
The secret is patience.
The secret to good bread is time, and the secret of time is bread.
Her secret: patience with people, and a garden.
The secret of a good soup: salt, and time.
Top secret: Anna likes Bob.
The token is a short string.
The token is base64-encoded and signed with HMAC-SHA256.
The token is HMAC-SHA256 signed.
Token: unit of text that a model reads
token: expired
The token limit is 4096; each token costs 0.0001 dollars.
The API key is missing, so the adapter does not start.
API key: see the page of the provider
The private key is kept in ~/.ssh and the access key is rotated every month.
private key: never leaves the machine
secret key: how to make one
Set the token with --token NAME, or with --token-file FILE.
The flag --password is needed.
`api_key=` and `token: ` are what it looks for: `password=…`
password | sort | uniq
token: Final = "trunkline.first_token"
def login(password: str, token: Token | None = None) -> Secret:
PWD=$HOME/src and OLDPWD=/tmp
https://example.org:8080/@bob and user:password@host
docker run -u 1000:1000 image; curl -u "$USER:$PASSWORD" https://example.org
Bearer of good news, basic understanding of authorization: Basic knowledge helps.
Forgot your password? Reset it: https://example.org/reset
The password field is `secret`, and the token is `NAME`.
task-force-on-the-rebuilding-of-the-harbour and disk-encryption-at-rest-everywhere
https://example.org/sk-a-walk-in-the-high-mountains is a page, and so is /pk-the-rest-of-it-in-english
const token = await fetchToken();
token = new TokenSource()
api_key: !vault |
Das Passwort ist falsch. Das Passwort liegt im Safe.
Le mot de passe est obligatoire.
"""

TABLES_WITHOUT = (
    """
| setting | type | default |
| --- | --- | --- |
| password | string | none |
| token | text | required |
| api_key | reference | where the key is |
""",
    """
| name | secret | meaning |
|---|---|---|
| garden | yes | where it is |
| token | varchar(32) | not null |
""",
    "cat password | grep x\ntoken | None",
)


def lines(table: str) -> list[str]:
    return table.strip().split("\n")


@pytest.mark.parametrize("text", [*lines(SAID), *TABLES])
def test_secrets_are_recognized(text: str) -> None:
    """A secret is marked completely, and no text around it; a marked one is left unchanged."""
    redacted = SECRETS.redact(text.replace("«", "").replace("»", ""))
    assert redacted == MARKED.sub(REDACTION_MARK, text)
    assert SECRETS.redact(redacted) == redacted


@pytest.mark.parametrize("text", [*lines(NOT_SAID), *TABLES_WITHOUT])
def test_ordinary_text_is_not_a_secret(text: str) -> None:
    """Prose, code, manuals and tables that only speak of secrets."""
    assert SECRETS.redact(text) == text


def test_a_secret_is_found_anywhere_in_a_text() -> None:
    """Text before and behind a secret does not hide it, and a secret does not hide a later one."""
    text = "\n".join([*lines(SAID), *lines(NOT_SAID)])
    assert SECRETS.redact(text.replace("«", "").replace("»", "")) == MARKED.sub(REDACTION_MARK, text)


@pytest.mark.parametrize(
    "piece",
    [
        "password is ",
        "password for a b c d ",
        "--password ",
        "password is ..........",
        "password=a(",
        "| password ",
        "|password|\n|---|\n",
        "-",
        "curl -u a",
        "curl -u ",
        "sk-a-",
        "password=r",
        "curl ",
        "login a password ",
        "1234567890:",
        "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAA\n",
        "aB",
    ],
)
@pytest.mark.parametrize("end", ["", "("])
def test_any_text_is_scanned_in_linear_time(piece: str, end: str) -> None:
    """Any text is scanned in one pass: twenty times the length does not take hundreds of times as long."""
    took = []
    for count in (500, 10_000):
        begun = time.process_time()
        SECRETS.redact(piece * count + end)
        took.append(time.process_time() - begun)
    assert took[1] < 100 * took[0] + 0.5
