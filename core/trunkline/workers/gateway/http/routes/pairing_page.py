"""The page ``/pair``: signs a browser in by a code in the fragment of its address, or by one that a person types.

The fragment is not sent to any server and is removed at once. The page contains no data, so it needs no credential.
"""

import base64
import hashlib

from starlette.requests import Request
from starlette.responses import Response

from trunkline.workers.gateway.http.scoped_route import ScopedRoute

PAGE_PATH = "/pair"

SCRIPT = """
// Such as "Firefox, Linux". The names that others claim to be come last.
function browser() {
  const agent = navigator.userAgent, first = (names) => names.find((name) => agent.includes(name));
  const name = first(["Edg", "OPR", "Firefox", "Chrome", "Safari"]) ?? "Browser";
  const system = first(["Android", "iPhone", "iPad", "Windows", "Mac OS", "CrOS", "Linux"]);
  return [{ Edg: "Edge", OPR: "Opera" }[name] ?? name, system].filter(Boolean).join(", ");
}
const form = document.querySelector("form"), note = document.querySelector("[role=status]");
async function pair(code) {
  note.textContent = "One moment…";
  const body = JSON.stringify({ code, as: "cookie", label: browser() });
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/api/pair", { method: "POST", headers, body }).catch(() => null);
  if (answer === null) note.textContent = "Trunkline does not answer. Is it running?";
  else if (answer.ok) location.replace("/");
  else note.textContent = "This code is wrong, was used before, or has expired. Run: trunkline pair";
}
form.addEventListener("submit", (event) => { event.preventDefault(); pair(form.elements.code.value); });
const code = decodeURIComponent(location.hash.slice(1));
history.replaceState(null, "", location.pathname);
if (code) pair(code);
"""

STYLE = (
    "body{font:1rem/1.5 system-ui;max-width:26rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}"
)

HTML = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pair with Trunkline</title><style>{STYLE}</style></head>
<body><main><h1>Pair with Trunkline</h1>
<form><label>Code of <code>trunkline pair</code><br>
<input name="code" required autocomplete="one-time-code" autocapitalize="characters" spellcheck="false"></label>
<button>Sign in</button></form><p role="status"></p></main><script>{SCRIPT}</script></body></html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": f"default-src 'none'; script-src {_hash(SCRIPT)}; style-src {_hash(STYLE)}; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
}


async def get_page(request: Request) -> Response:
    """``GET /pair``"""
    return Response(HTML, headers=HEADERS, media_type="text/html")


ROUTES = (ScopedRoute(PAGE_PATH, get_page, methods=["GET"], scope=None),)
