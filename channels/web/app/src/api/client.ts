/** The gateway's HTTP API, typed by its OpenAPI document. Every failure is an ApiError. */
import createClient from "openapi-fetch";

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin" });

/** A request that failed. `status` is 0 if the gateway was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly correlation: string,
    readonly reason: string,
    /** The field of the body that is wrong, as a JSON pointer; "" if the failure is about none. */
    readonly field = "",
  ) {
    super(reason || code);
    this.name = "ApiError";
  }

  /** Whether the same request may succeed later without a change. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

interface Reply<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The data of a reply. */
export async function dataOf<T>(request: Promise<Reply<T>>): Promise<T> {
  const reply = await request.catch(() => {
    throw new ApiError(0, "unreachable", "", "");
  });
  if (!reply.response.ok) throw errorOf(reply.response, reply.error);
  return reply.data as T;
}

/** The error that a response is. */
export function errorOf(response: Response, body: unknown): ApiError {
  const error: Failure = isError(body) ? body : { code: "internal", message: "" };
  const reason = typeof error.metadata?.reason === "string" ? error.metadata.reason : error.message;
  const field = typeof error.metadata?.field === "string" ? error.metadata.field : "";
  return new ApiError(response.status, error.code, response.headers.get("x-correlation-id") ?? "", reason, field);
}

/** The body of a failure. A newer gateway may have codes that this page does not know. */
interface Failure {
  code: string;
  message: string;
  metadata?: Record<string, unknown>;
}

function isError(body: unknown): body is Failure {
  return typeof body === "object" && body !== null && "code" in body && "message" in body;
}
