import { longest } from './limits.js';

// Checks of options. Each throws an error that says what is wrong.

export function checkDuration(what, ms) {
  if (typeof ms !== 'number' || !(ms >= 1 && ms <= longest)) {
    throw new RangeError(`${what} ${ms} is not a number of milliseconds between 1 and ${longest}`);
  }
  return Math.trunc(ms);
}

/** Keeps a wait within what the orchestrator accepts. */
export function checkWait(ms) {
  if (typeof ms !== 'number' || Number.isNaN(ms)) {
    throw new TypeError(`${ms} is not a number of milliseconds`);
  }
  return Math.trunc(Math.min(Math.max(ms, 0), longest));
}

export function checkCount(what, count, most) {
  if (!Number.isInteger(count) || count < 1 || count > most) {
    throw new RangeError(`${what} ${count} is not an integer between 1 and ${most}`);
  }
  return count;
}

export function checkText(what, text, most) {
  if (typeof text !== 'string' || text === '') {
    throw new TypeError(`${what} ${JSON.stringify(text)} is not a text, or empty`);
  }
  // As in Go and the orchestrator, no space but the plain one is printable.
  if (/[^\P{C}]|[^\P{Z} ]|\uFFFD/u.test(text)) {
    throw new TypeError(`${what} ${JSON.stringify(text.slice(0, 40))} contains a character that cannot be printed`);
  }
  if (Buffer.byteLength(text) > most) {
    throw new RangeError(`${what} ${JSON.stringify(text.slice(0, 40))} is longer than ${most} bytes`);
  }
  return text;
}
