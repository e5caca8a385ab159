import { checkCount, checkText } from './check.js';
import { maxConcurrencyLimit, maxKeyClass, maxPointer } from './limits.js';

const conflicts = {
  queue: 'ON_CONFLICT_QUEUE',
  cancel_newcomer: 'ON_CONFLICT_CANCEL_NEWCOMER',
  cancel_oldest: 'ON_CONFLICT_CANCEL_OLDEST',
};

/** Returns the terms as the protocol has them, or throws an error that says what is wrong. */
export function checkTerms({ concurrencyKey, keyClass, concurrencyLimit, onConflict, fairnessKey, ...unknown }) {
  if (Object.keys(unknown).length > 0) throw new TypeError(`the term ${Object.keys(unknown)[0]} is unknown`);
  const terms = {};
  if (concurrencyKey !== undefined) {
    terms.concurrencyKey = checkPlace('concurrencyKey', concurrencyKey);
    terms.keyClass = checkText('keyClass', keyClass, 4 * maxKeyClass);
    if (keyClass.includes(':')) throw new TypeError(`keyClass ${JSON.stringify(keyClass)} has a colon`);
    if ([...keyClass].length > maxKeyClass) throw new RangeError(`keyClass is longer than ${maxKeyClass} characters`);
    if (concurrencyLimit !== undefined) {
      terms.concurrencyLimit = checkCount('concurrencyLimit', concurrencyLimit, maxConcurrencyLimit);
    }
    if (onConflict !== undefined) {
      terms.onConflict = conflicts[onConflict];
      if (!Object.hasOwn(conflicts, onConflict)) {
        throw new TypeError(`onConflict ${onConflict} is not one of ${Object.keys(conflicts).join(', ')}`);
      }
    }
  } else if (keyClass !== undefined || concurrencyLimit !== undefined || onConflict !== undefined) {
    throw new TypeError('keyClass, concurrencyLimit and onConflict need a concurrencyKey');
  }
  if (fairnessKey !== undefined) terms.fairnessKey = checkPlace('fairnessKey', fairnessKey);
  if (Object.keys(terms).length === 0) throw new TypeError('the terms name neither a concurrencyKey nor a fairnessKey');
  return terms;
}

function checkPlace(what, pointer) {
  checkText(what, pointer, maxPointer);
  if (!/^(\/([^~/]|~[01])*)+$/.test(pointer)) {
    throw new TypeError(`${what} ${JSON.stringify(pointer)} is no JSON Pointer, such as /customer/id`);
  }
  return pointer;
}
