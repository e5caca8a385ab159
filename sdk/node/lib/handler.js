import { checkCount, checkDuration, checkText } from './check.js';
import { maxConcurrency, maxDescription, maxMaxAttempts, maxName, maxSchema } from './limits.js';
import { RetryPolicy } from './retry.js';

/**
 * @typedef {object} Options What no option says is decided by the orchestrator's configuration, which also wins over
 *   timeoutMs, retry and maxAttempts.
 * @property {object | boolean} [schema] JSON Schema (2020-12) of the payload, against which payloads are checked when
 *   jobs are submitted
 * @property {number} [timeoutMs] bounds each attempt
 * @property {RetryPolicy} [retry] how long a job waits between attempts
 * @property {number} [maxAttempts] how often a job is attempted, the first time included
 * @property {number} [concurrency] the most attempts of this type at once in each process
 * @property {string} [description] what the job type is for, in a line, for people
 */

/** A job type with the function that does it; see handler. */
export class Handler {
  /**
   * @param {string} jobType
   * @param {(job: import('./job.js').Job) => unknown} run
   * @param {Options} [options]
   */
  constructor(jobType, run, options = {}) {
    checkText('the name', jobType, maxName);
    try {
      if (typeof run !== 'function') throw new TypeError(`${run} is not a function`);
      this.jobType = jobType;
      /** The function as it is, for tests. */
      this.run = run;
      /** @package As the protocol has it. */
      this.wire = declare(jobType, options);
    } catch (error) {
      error.message = `job type ${jobType}: ${error.message}`;
      throw error;
    }
  }
}

/**
 * Makes a handler of a function, which is called with a Job. What its promise is fulfilled with is the job's
 * result, as JSON; undefined is no result. All handlers of a process share one event loop: what computes for
 * long belongs into a worker thread.
 *
 * @param {string} jobType
 * @param {(job: import('./job.js').Job) => unknown} run
 * @param {Options} [options]
 * @returns {Handler}
 */
export const handler = (jobType, run, options) => new Handler(jobType, run, options);

/**
 * @param {string} jobType
 * @param {Options} options
 */
function declare(jobType, { schema, timeoutMs, retry, maxAttempts, concurrency, description, ...unknown }) {
  if (Object.keys(unknown).length > 0) {
    throw new TypeError(`the option ${Object.keys(unknown)[0]} is unknown`);
  }
  /** @type {Record<string, unknown>} */
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
