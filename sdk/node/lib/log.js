import { clean } from './json.js';
import { maxLog } from './limits.js';
import { currentIDs } from './tracing.js';

/**
 * @typedef {(message: string, attributes?: object) => void} Write
 * @typedef {{ debug: Write, info: Write, warn: Write, error: Write }} Logger
 */

/**
 * @typedef {{ level: string, message: string, attributes?: Buffer, time: string }} Entry as the protocol has it
 *
 * @param {(entry: Entry) => void} send
 * @returns {Logger}
 */
export function logger(send) {
  /** @returns {Write} */
  const at = (level) => (message, attributes) => send({
    level: `LEVEL_${level}`,
    message: clean(String(message), maxLog),
    attributes: encodeAttributes(attributes, currentIDs()),
    time: new Date().toISOString(),
  });
  return { debug: at('DEBUG'), info: at('INFO'), warn: at('WARN'), error: at('ERROR') };
}

/** For jobs that belong to no attempt. */
export const consoleLog = logger(({ level, message, attributes = '' }) => {
  console.error(level.slice('LEVEL_'.length), message, String(attributes));
});

// A JSON object, with the ids first; nothing when there are neither.
function encodeAttributes(attributes, ids) {
  if (attributes === undefined || attributes === null) {
    return ids && Buffer.from(JSON.stringify(ids));
  }
  let text;
  try {
    text = JSON.stringify(attributes instanceof Error ? { error: attributes } : attributes, sayError);
  } catch {
    text = JSON.stringify({ attributes: 'have no JSON' });
  }
  if (!text?.startsWith('{')) text = JSON.stringify({ value: attributes });
  if (ids) text = `${JSON.stringify(ids).slice(0, -1)}${text === '{}' ? '' : ','}${text.slice(1)}`;
  const encoded = Buffer.from(text);
  return encoded.length <= maxLog ? encoded : Buffer.from('{"attributes":"too large"}');
}

// JSON makes {} of an error, and nothing of a bigint.
function sayError(_, value) {
  if (value instanceof Error) return value.stack ?? String(value);
  return typeof value === 'bigint' ? String(value) : value;
}
