/** A modal dialog: the browser's own, which keeps the focus inside and closes on Escape. */
import { useEffect, useId, useRef, type ReactNode } from "react";

import { useTexts } from "../i18n";
import { Button } from "./Button";

interface Props {
  title: string;
  submit: string;
  isDangerous?: boolean;
  children: ReactNode;
  onSubmit: () => void;
  onClose: () => void;
}

export function Dialog({ title, submit, isDangerous = false, children, onSubmit, onClose }: Props) {
  const t = useTexts();
  const heading = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={heading} onClose={onClose}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
          onClose();
        }}
      >
        <h2 id={heading}>{title}</h2>
        {children}
        <div className="choices">
          <Button onClick={onClose}>{t("ui.cancel")}</Button>
          <Button kind={isDangerous ? "danger" : "primary"} type="submit">
            {submit}
          </Button>
        </div>
      </form>
    </dialog>
  );
}
