/** The sentence for a failure: what happened, and what to do. */
import { ApiError } from "../api/client";
import type { TextKey, Translate } from ".";

const SENTENCES: Record<string, TextKey> = {
  unreachable: "error.unreachable",
  unauthorized: "error.unauthorized",
  forbidden: "error.forbidden",
  not_found: "error.not_found",
  conflict: "error.conflict",
  too_large: "error.too_large",
  rate_limited: "error.rate_limited",
  panic: "error.panic",
  storage_failure: "error.storage_failure",
  provider_error: "error.provider_error",
  over_budget: "error.reason",
  not_sent: "error.reason",
  invalid_request: "error.invalid_request",
};

export function sentence(t: Translate, error: unknown): string {
  if (!(error instanceof ApiError)) return t("error.other", { reason: String(error), correlation: "" });
  return t(SENTENCES[error.code] ?? "error.other", { reason: error.reason, correlation: error.correlation });
}
