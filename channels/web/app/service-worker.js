/* Keeps the app's own files, so that it opens without a network and says what it waits for. It never touches a request
 * for data: nothing that a person wrote or an agent answered is kept here. The build fills in the names of the files. */
const FILES = new Set(__FILES__);
const CACHE = "app-__VERSION__";

self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("activate", (event) => {
  event.waitUntil(removeOldCaches().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (event.request.method !== "GET" || origin !== self.location.origin) return;
  if (FILES.has(pathname)) event.respondWith(keptFirst(event.request));
  else if (event.request.mode === "navigate" && pathname === "/") event.respondWith(freshFirst(event.request));
});

/** The name of a file changes with its content. */
async function keptFirst(request) {
  const cache = await caches.open(CACHE);
  return (await cache.match(request)) ?? keep(cache, request, await fetch(request));
}

async function freshFirst(request) {
  const cache = await caches.open(CACHE);
  try {
    return keep(cache, request, await fetch(request));
  } catch (error) {
    const kept = await cache.match(request);
    if (kept === undefined) throw error;
    return kept;
  }
}

function keep(cache, request, response) {
  if (response.ok && !response.redirected) void cache.put(request, response.clone());
  return response;
}

async function removeOldCaches() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name)));
}
