import { checkCount, checkDuration, checkText } from './check.js';
import { maxConcurrency, maxDescription, maxMaxAttempts, maxName, maxSchema } from './limits.js';
import { RetryPolicy } from './retry.js';
import { checkTerms } from './terms.js';

export class Handler {
  constructor(jobType, run, options = {}) {
    checkText('the name', jobType, maxName);
    try {
      if (typeof run !== 'function') throw new TypeError(`${run} is not a function`);
      this.jobType = jobType;
      this.run = run;
      // As the protocol has it.
      this.wire = declare(jobType, options);
    } catch (error) {
      error.message = `job type ${jobType}: ${error.message}`;
      throw error;
    }
  }
}

export const handler = (jobType, run, options) => new Handler(jobType, run, options);

function declare(jobType, { schema, timeoutMs, retry, maxAttempts, concurrency, description, terms, ...unknown }) {
  if (Object.keys(unknown).length > 0) {
    throw new TypeError(`the option ${Object.keys(unknown)[0]} is unknown`);
  }
  const declared = { name: jobType };
  if (schema !== undefined) declared.schema = encodeSchema(schema);
  if (timeoutMs !== undefined) declared.timeoutMs = checkDuration('timeoutMs', timeoutMs);
  if (retry !== undefined) {
    if (!(retry instanceof RetryPolicy)) throw new TypeError('retry is not a RetryPolicy');
    declared.retry = retry.wire;
  }
  if (maxAttempts !== undefined) declared.maxAttempts = checkCount('maxAttempts', maxAttempts, maxMaxAttempts);
  if (concurrency !== undefined) declared.concurrency = checkCount('concurrency', concurrency, maxConcurrency);
  if (description) declared.description = checkText('the description', description, maxDescription);
  if (terms !== undefined) declared.terms = checkTerms(terms);
  return declared;
}

function encodeSchema(schema) {
  if (typeof schema !== 'boolean' && (typeof schema !== 'object' || schema === null || Array.isArray(schema))) {
    throw new TypeError('the schema is neither an object nor a boolean');
  }
  const encoded = Buffer.from(JSON.stringify(schema));
  if (encoded.length > maxSchema) throw new RangeError(`the schema is longer than ${maxSchema} bytes`);
  return encoded;
}
