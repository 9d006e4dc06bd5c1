/** A button. Its text, or its label where it shows only an icon, names what it does. */
import type { ButtonHTMLAttributes } from "react";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "primary" | "plain" | "danger" | "icon";
}

export function Button({ kind = "plain", type = "button", className = "", ...rest }: ButtonProps) {
  return <button {...rest} type={type} className={`button button-${kind} ${className}`} />;
}
