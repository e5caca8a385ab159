import { maxValue } from './limits.js';

/**
 * The largest values that the orchestrator takes, in bytes of JSON, by its DescribeRequest. By default, what fits into
 * a message.
 */
export function capsOf({
  maxProgressBytes, maxCheckpointBytes, maxResultBytes, maxFollowUps = 0, maxFollowUpBytes,
} = {}) {
  const cap = (size) => Math.min(size || maxValue, maxValue);
  return {
    progress: cap(maxProgressBytes), checkpoint: cap(maxCheckpointBytes), result: cap(maxResultBytes),
    // How many; 0 if the orchestrator takes none.
    followUps: maxFollowUps, followUpBytes: cap(maxFollowUpBytes),
  };
}

/** Throws for a value above its cap. */
export function checkSize(bytes, most) {
  if (bytes > most) throw new RangeError(`${bytes} bytes of JSON are more than ${most}`);
}
