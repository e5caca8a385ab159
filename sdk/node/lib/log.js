import { clean } from './json.js';
import { maxLog } from './limits.js';
import { currentIDs } from './tracing.js';

/** A logger whose records, as the protocol has them, go to the function. */
export function logger(send) {
  const at = (level) => (message, attributes) => send({
    level: `LEVEL_${level}`,
    message: clean(String(message), maxLog),
    attributes: encodeAttributes(attributes, currentIDs()),
    time: new Date().toISOString(),
  });
  return { debug: at('DEBUG'), info: at('INFO'), warn: at('WARN'), error: at('ERROR') };
}

/** For jobs that tests create. */
export const consoleLog = logger(({ level, message, attributes = '' }) => {
  console.error(level.slice('LEVEL_'.length), message, String(attributes));
});

// A JSON object with the ids and the attributes; undefined if there are neither.
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

// JSON.stringify makes {} of an error, and throws for a bigint.
function sayError(_, value) {
  if (value instanceof Error) return value.stack ?? String(value);
  return typeof value === 'bigint' ? String(value) : value;
}
