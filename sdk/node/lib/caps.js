import { maxValue } from './limits.js';

/**
 * The largest values that the orchestrator takes, in bytes of JSON, by its DescribeRequest. By default, what fits into
 * a message.
 */
export function capsOf({ maxProgressBytes, maxCheckpointBytes, maxResultBytes } = {}) {
  const cap = (size) => Math.min(size || maxValue, maxValue);
  return { progress: cap(maxProgressBytes), checkpoint: cap(maxCheckpointBytes), result: cap(maxResultBytes) };
}

/** Throws for a value above its cap. */
export function checkSize(encoded, most) {
  if (encoded.length > most) throw new RangeError(`${encoded.length} bytes of JSON are more than ${most}`);
}
