/** Passkeys: what an authenticator makes and signs for the gateway. */
import { api, ApiError, dataOf } from "../api/client";
import type { TextKey } from "../i18n";

/** Whether this page can have passkeys: browsers want https or localhost, and a host name instead of an address. */
export function hasPasskeys(): boolean {
  const isAddress = /^[\d.]+$|^\[/.test(window.location.hostname);
  return window.isSecureContext && !isAddress && "PublicKeyCredential" in window && "parseCreationOptionsFromJSON" in PublicKeyCredential;
}

/** Make a passkey for this account. Raises ApiError, and DOMException if the person or the authenticator declines. */
export async function addPasskey(label: string): Promise<void> {
  const { public_key: given } = await dataOf(api.POST("/api/passkeys/options"));
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(given as unknown as PublicKeyCredentialCreationOptionsJSON);
  const made = await navigator.credentials.create({ publicKey });
  await dataOf(api.POST("/api/passkeys", { body: { label, challenge: text(publicKey.challenge), credential: json(made) } }));
}

/** Exchange a passkey for a session. Raises ApiError, and DOMException if the person or the authenticator declines. */
export async function signInWithPasskey(): Promise<void> {
  const { public_key: given } = await dataOf(api.POST("/api/passkeys/sign-in/options"));
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(given as unknown as PublicKeyCredentialRequestOptionsJSON);
  const signed = await navigator.credentials.get({ publicKey });
  await dataOf(api.POST("/api/passkeys/sign-in", { body: { challenge: text(publicKey.challenge), credential: json(signed) } }));
}

/** What to say about a failure of the browser or of a sign-in; null for other failures. */
export function passkeyProblem(error: unknown): TextKey | null {
  if (error instanceof DOMException) return error.name === "InvalidStateError" ? "passkeys.known" : "passkeys.cancelled";
  return error instanceof ApiError && error.status === 401 ? "passkeys.refused" : null;
}

function text(challenge: BufferSource): string {
  return new TextDecoder().decode(challenge);
}

function json(credential: Credential | null): Record<string, unknown> {
  if (!(credential instanceof PublicKeyCredential)) throw new DOMException("no passkey", "NotAllowedError");
  return credential.toJSON() as Record<string, unknown>;
}
