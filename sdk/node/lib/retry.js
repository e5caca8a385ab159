import { checkDuration } from './check.js';

/**
 * How long a job waits before retry n, counted from 1:
 *
 * - `exponential`: min(capMs, baseMs · factorⁿ⁻¹) · U(jitterMin, jitterMax)
 * - `fixed`: baseMs · U(jitterMin, jitterMax)
 * - `immediate`: 0
 *
 * where U is uniform.
 */
export class RetryPolicy {
  /**
   * @param {object} policy
   * @param {'exponential' | 'fixed' | 'immediate'} policy.backoff
   * @param {number} [policy.baseMs]
   * @param {number} [policy.factor]
   * @param {number} [policy.capMs]
   * @param {number} [policy.jitterMin]
   * @param {number} [policy.jitterMax]
   * @param {boolean} [policy.atOnceAfterTimeout] retry an attempt that timed out without a wait
   */
  constructor({
    backoff, baseMs = 0, factor = 1, capMs = 0, jitterMin = 0.9, jitterMax = 1.1, atOnceAfterTimeout = false,
  }) {
    if (!['exponential', 'fixed', 'immediate'].includes(backoff)) {
      throw new TypeError(`backoff ${backoff} is not one of exponential, fixed, immediate`);
    }
    /** @package As the protocol has it. */
    this.wire = { backoff: `BACKOFF_${backoff.toUpperCase()}`, atOnceAfterTimeout };
    if (backoff === 'immediate') return;
    if (!(jitterMin >= 0 && jitterMin <= jitterMax && jitterMax < Infinity)) {
      throw new RangeError(`jitter window ${jitterMin}..${jitterMax} is not 0 ≤ min ≤ max`);
    }
    Object.assign(this.wire, { baseMs: checkDuration('baseMs', baseMs), jitterMin, jitterMax });
    if (backoff === 'fixed') return;
    if (!(factor >= 1 && factor < Infinity)) throw new RangeError(`factor ${factor} is not 1 or more`);
    if (capMs < baseMs) throw new RangeError(`capMs ${capMs} is below baseMs ${baseMs}`);
    Object.assign(this.wire, { factor, capMs: checkDuration('capMs', capMs) });
  }
}

/**
 * Waits baseMs, baseMs · factor, baseMs · factor² … up to capMs, give or take a tenth.
 *
 * @param {number} baseMs
 * @param {number} factor
 * @param {number} capMs
 */
export const exponentialBackoff = (baseMs, factor, capMs) =>
  new RetryPolicy({ backoff: 'exponential', baseMs, factor, capMs });

/**
 * Waits the same time before each retry, give or take a tenth.
 *
 * @param {number} waitMs
 */
export const fixedBackoff = (waitMs) => new RetryPolicy({ backoff: 'fixed', baseMs: waitMs });

/** Does not wait. */
export const immediateRetry = () => new RetryPolicy({ backoff: 'immediate' });
