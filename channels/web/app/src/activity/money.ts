/** Amounts of money, which the gateway gives in millionths of a US dollar. */
const MILLION = 1e6;

export function dollars(micro: number): string {
  return `${(micro / MILLION).toFixed(4)} US$`;
}
