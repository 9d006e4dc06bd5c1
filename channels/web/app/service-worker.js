/* Keeps the app's own files, so that it opens without a network and says what it waits for. It never touches a request
 * for data: nothing that a person wrote or an agent answered is kept here. It shows the notices that a person asked for.
 * The build fills in the names of the files and the texts of notices. */
const FILES = new Set(__FILES__);
const CACHE = "app-__VERSION__";
const NOTICES = __NOTICES__;
const APPROVALS = "/#/approvals";

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

self.addEventListener("push", (event) => event.waitUntil(showNotice(event.data)));

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openApprovals());
});

/** A browser ends a subscription whose messages show nothing, so a notice that cannot be read is shown as a number. */
async function showNotice(data) {
  const { language = "en", block = "", approval = "", count = 1, test = false } = readNotice(data);
  const texts = NOTICES[language] ?? NOTICES.en;
  const text = test ? texts.test : block === "" ? texts.many : texts.one;
  const body = text.replace("{block}", () => block).replace("{count}", () => String(count));
  await self.registration.showNotification("Trunkline", { body, tag: approval || "approvals", icon: "/icon.svg" });
}

function readNotice(data) {
  try {
    return data?.json() ?? {};
  } catch {
    return {};
  }
}

/** Go to the approvals in a page that is open, else in a new one. */
async function openApprovals() {
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (page === undefined) return self.clients.openWindow(APPROVALS);
  await page.focus();
  try {
    return await page.navigate(APPROVALS);
  } catch {
    return self.clients.openWindow(APPROVALS); // this worker may not lead a page that it does not serve
  }
}
