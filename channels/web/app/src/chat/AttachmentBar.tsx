/** The files that will be sent with the message, and the way to choose more. */
import { useRef } from "react";

import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { Button } from "../ui/Button";
import type { Attachments } from "./attachments";

/** What messages take: images, PDF and text. */
const TYPES = "image/png,image/jpeg,image/gif,image/webp,application/pdf,text/*";

export function AttachmentBar({ attachments }: { attachments: Attachments }) {
  const t = useTexts();
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field} type="file" accept={TYPES} multiple hidden aria-label={t("attach.choose")}
        onChange={(event) => { attachments.add(event.target.files ?? []); event.target.value = ""; }}
      />
      <Button kind="icon" aria-label={t("attach.choose")} title={t("attach.choose")} onClick={() => field.current?.click()}>
        +
      </Button>
      {attachments.files.length > 0 && (
        <ul className="attachments" aria-label={t("attach.files")}>
          {attachments.files.map((file) => (
            <li key={file.key} className="badge" aria-busy={file.id === "" && file.failure === null}>
              {file.name}{" "}
              {file.failure !== null && <span role="alert" className="notice-error">{sentence(t, file.failure)}</span>}
              {file.id === "" && file.failure === null && <span className="dim">{t("attach.uploading")}</span>}
              <button type="button" className="attachment-remove" aria-label={t("attach.remove", { name: file.name })} onClick={() => attachments.remove(file.key)}>
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
