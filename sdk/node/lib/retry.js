import { checkDuration } from './check.js';

export class RetryPolicy {
  constructor({
    backoff, initialDelayMs = 0, factor = 1, maxDelayMs = 0, jitterMin = 0.9, jitterMax = 1.1, immediateAfterTimeout = false,
    ...unknown
  }) {
    if (Object.keys(unknown).length > 0) throw new TypeError(`the option ${Object.keys(unknown)[0]} is unknown`);
    if (!['exponential', 'fixed', 'immediate'].includes(backoff)) {
      throw new TypeError(`backoff ${backoff} is not one of exponential, fixed, immediate`);
    }
    // As the protocol has it.
    this.wire = { backoff: `BACKOFF_${backoff.toUpperCase()}`, atOnceAfterTimeout: immediateAfterTimeout };
    if (backoff === 'immediate') return;
    if (!(jitterMin >= 0 && jitterMin <= jitterMax && jitterMax < Infinity)) {
      throw new RangeError(`jitter window ${jitterMin}..${jitterMax} is not 0 ≤ min ≤ max`);
    }
    Object.assign(this.wire, { baseMs: checkDuration('initialDelayMs', initialDelayMs), jitterMin, jitterMax });
    if (backoff === 'fixed') return;
    if (!(factor >= 1 && factor < Infinity)) throw new RangeError(`factor ${factor} is not 1 or more`);
    if (maxDelayMs < initialDelayMs) {
      throw new RangeError(`maxDelayMs ${maxDelayMs} is below initialDelayMs ${initialDelayMs}`);
    }
    Object.assign(this.wire, { factor, capMs: checkDuration('maxDelayMs', maxDelayMs) });
  }
}

export const exponentialBackoff = (initialDelayMs, factor, maxDelayMs) =>
  new RetryPolicy({ backoff: 'exponential', initialDelayMs, factor, maxDelayMs });

export const fixedBackoff = (delayMs) => new RetryPolicy({ backoff: 'fixed', initialDelayMs: delayMs });

export const immediateRetry = () => new RetryPolicy({ backoff: 'immediate' });
