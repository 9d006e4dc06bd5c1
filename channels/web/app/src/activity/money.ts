/** Amounts of money, which the gateway gives in millionths of a US dollar, as the language writes them. */
export const MILLION = 1e6;

export function dollars(micro: number, locale: string, digits = 4, most = digits): string {
  const amount = (micro / MILLION).toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: most });
  return `${amount} US$`;
}
