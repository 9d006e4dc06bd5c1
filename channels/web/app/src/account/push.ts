/** Push notices: what the browser's vendor carries for the gateway, once a person asks for it. */
import { api, dataOf } from "../api/client";
import type { TextKey } from "../i18n";

/** Whether this page can get notices: browsers want https or localhost. */
export function hasPush(): boolean {
  return window.isSecureContext && "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
}

/** Ask the browser for notices and tell the gateway. Raises ApiError, and DOMException if the person or the browser declines. */
export async function turnOnNotices(publicKey: string, label: string, language: string): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") throw new DOMException("no permission", "NotAllowedError");
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe(); // it may be bound to an earlier key
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: publicKey });
  const { endpoint = "", keys = {} } = made.toJSON();
  try {
    const body = { endpoint, keys: { p256dh: keys.p256dh ?? "", auth: keys.auth ?? "" }, label, language };
    await dataOf(api.POST("/api/push", { body }));
  } catch (error) {
    await made.unsubscribe();
    throw error;
  }
}

/** End the notices of a browser; also at the vendor, if it is this one. */
export async function turnOffNotices(id: string): Promise<void> {
  await dataOf(api.DELETE("/api/push/{id}", { params: { path: { id } } }));
  if (!hasPush()) return;
  const registration = await navigator.serviceWorker.getRegistration();
  const own = await registration?.pushManager.getSubscription();
  if (own && (await idOf(own.endpoint)) === id) await own.unsubscribe();
}

/** What to say about a failure of the browser; null for other failures. */
export function pushProblem(error: unknown): TextKey | null {
  if (!(error instanceof DOMException)) return null;
  return error.name === "NotAllowedError" ? "push.denied" : "push.unavailable";
}

/** The gateway's id of a subscription: a hash of the address, which nobody else may learn. */
async function idOf(endpoint: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint)));
  const digits = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `push_${digits.slice(0, 20)}`;
}
